//! Pipes: slots pass between the tx ring of one end and the rx ring of the other.
//!
//! Slot `i` of the sender's ring and slot `i` of the receiver's ring are partners
//! (S-PIPE-7, S-PIPE-9). A packet travels by a copy of its 16-byte slot, and the buffer comes back
//! by another copy when the receiver releases it. Both copies are made by the receiver, in
//! its `rxsync`: it *pulls*.
//!
//! ```text
//!            sender's ring (tx)                      receiver's ring (rx)
//!   hwtail+1 .. head   being filled        head .. hwtail   being read
//!   .. app.head        published    --->   pulled up to app.head
//!   .. hwtail          free again   <---   released up to head
//! ```
//!
//! So the sender's `txsync` is one store, every slot's cache line crosses between the cores
//! once, and nobody waits for anybody: what is sent stays in the sender's ring until the
//! receiver takes it, which is just what a pipe promises (S-PIPE-8).
//!
//! Both ends are in one region, hence in one trust domain: the peer's slots are handed on
//! unread, and only indices are bounded. A slot that says more than its buffer holds is no
//! exception: no buffer has more bytes, so none is cut off, and the port that sends it on loses
//! the packet, whole (S-SYNC-9).

use std::sync::{Arc, atomic::Ordering::Relaxed};

use ringway_abi::{NS_BUF_CHANGED, NS_MOREFRAG};
use ringway_kring::{Accepted, Doorbell, Driver, Kring};
use ringway_region::SlotWords;

const MOREFRAG: u64 = (NS_MOREFRAG as u64) << 48;
const BUF_CHANGED: u64 = (NS_BUF_CHANGED as u64) << 48;

/// Driver of the sending ring of a pipe end.
#[derive(Debug)]
pub struct PipeTx {
    /// The receiver's ring.
    pub peer: Kring,
    /// What the receiver sleeps on.
    pub receiver: Arc<Doorbell>,
}

impl Driver for PipeTx {
    #[inline]
    fn sync(&self, kring: &Kring, Accepted { head, cur }: Accepted) {
        let app = &kring.csb().app;
        let published = kring.bounded(app.head());
        let head = kring.within_from(published, head);
        app.publish(head, cur);
        let news = kring.ring().distance(published, head);
        // What a sender has published that was killed before it could tell is still to be told of.
        if news == 0 && self.peer.hwtail() == head {
            return;
        }
        kring.count(news);
        // S-PIPE-10.
        if self.peer.csb().app.kick_peer(app, || self.receiver.notify()) {
            kring.note(|c| &c.kicks, 1);
        }
    }
}

/// Driver of the receiving ring of a pipe end.
#[derive(Debug)]
pub struct PipeRx {
    /// The sender's ring.
    pub peer: Kring,
    /// What the sender sleeps on.
    pub sender: Arc<Doorbell>,
}

impl Driver for PipeRx {
    #[inline]
    fn sync(&self, kring: &Kring, Accepted { head, .. }: Accepted) {
        let (hwcur, hwtail) = (kring.hwcur(), kring.hwtail());
        let head = kring.within(head);
        if head != hwcur {
            self.release(kring, hwcur, head);
            // Our cursors before the sender's: what a receiver that dies between the two has
            // given back, its successor must not give back again.
            kring.csb().service.publish(head, hwtail);
        }
        let freed = self.peer.hwcur() != head;
        if freed {
            self.peer.csb().service.publish(head, kring.ring().prev(head));
        }
        if head == hwtail {
            backoff::wait(kring);
        }
        let end = self.pull(kring, hwtail);
        kring.csb().service.publish(head, end);

        // The sender looks at this line whenever it sends, to see whether somebody waits. So the
        // cursors, which nobody would read, are not published there.
        let app = &kring.csb().app;
        // S-PIPE-10. Where there is nothing to receive, the sender may wait for what a receiver that was
        // killed has given back.
        if (freed || end == head) && self.peer.csb().app.kick_peer(app, || self.sender.notify()) {
            kring.note(|c| &c.kicks, 1);
        }
    }
}

impl PipeRx {
    /// Takes what the sender has published beyond `from`; returns how far the receiver may
    /// read: up to the end of the last complete packet.
    #[inline]
    fn pull(&self, kring: &Kring, from: u32) -> u32 {
        let (ring, source) = (kring.ring(), self.peer.ring());
        let end = kring.bounded(self.peer.csb().app.head());
        backoff::learn(kring, ring.distance(from, end));
        let mut at = from;
        // All of them, but where there is the ring's end among them, or a packet of several slots.
        for (to, from) in ring.zip(source, from, end) {
            if !take(to, from) {
                break;
            }
            at += 1;
        }
        while at != end {
            if take(ring.words(at), source.words(at)) {
                at = ring.next(at);
                continue;
            }
            match self.pull_chain(kring, at, end) {
                Some(next) => at = next,
                None => break,
            }
        }
        kring.count(ring.distance(from, at));
        at
    }

    /// Takes the packet of several slots that begins in slot `from`; returns the slot behind it.
    /// `None` if it has no end yet: the sender's slots stay as they are, for a later sync to take
    /// them.
    #[cold]
    fn pull_chain(&self, kring: &Kring, from: u32, end: u32) -> Option<u32> {
        let (ring, source) = (kring.ring(), self.peer.ring());
        let (mut at, mut marks) = (from, 0);
        loop {
            let words = source.slot_words(at);
            ring.set_slot_words(at, words);
            marks |= words[0];
            at = ring.next(at);
            if words[0] & MOREFRAG == 0 {
                break;
            }
            if at == end {
                return None;
            }
        }
        if marks & BUF_CHANGED != 0 {
            self.peer.consume(from, at, NS_BUF_CHANGED);
        }
        Some(at)
    }

    /// Hands slots `[from, to)` back to the sender, with the buffers that are in them now.
    /// A slot that comes back as it went is not written, so that its cache line stays where
    /// it is.
    #[inline]
    fn release(&self, kring: &Kring, from: u32, to: u32) {
        let (ring, source) = (kring.ring(), self.peer.ring());
        if from <= to {
            return ring.zip(source, from, to).for_each(give_back);
        }
        let mut at = from;
        while at != to {
            give_back((ring.words(at), source.words(at)));
            at = ring.next(at);
        }
    }
}

/// Takes a packet of one slot of the sender's ring; false where it is no such packet.
#[inline]
fn take(slot: &SlotWords, sent: &SlotWords) -> bool {
    let [first, ptr] = sent.each_ref().map(|word| word.load(Relaxed));
    let is_whole = first & MOREFRAG == 0;
    if is_whole {
        slot[0].store(first, Relaxed);
        slot[1].store(ptr, Relaxed);
        if first & BUF_CHANGED != 0 {
            sent[0].store(first & !BUF_CHANGED, Relaxed);
        }
    }
    is_whole
}

/// Hands a slot back to the sender's ring.
#[inline]
fn give_back((slot, sent): (&SlotWords, &SlotWords)) {
    let [first, ptr] = slot.each_ref().map(|word| word.load(Relaxed));
    if [first, ptr] != sent.each_ref().map(|word| word.load(Relaxed)) {
        sent[0].store(first, Relaxed);
        sent[1].store(ptr, Relaxed);
        slot[0].store(first & !BUF_CHANGED, Relaxed);
    }
}

/// A receiver that finds little waits a moment before it looks again, so that the sender's
/// publishing line crosses once for many packets instead of once for each. Never longer
/// than a microsecond or two, and not at all while there is plenty.
mod backoff {
    use super::*;

    /// Fewer packets than this in one look are little.
    const LITTLE: u32 = 16;
    const PLENTY: u32 = 64;
    const LONGEST: u32 = 32;

    #[inline]
    pub fn learn(kring: &Kring, found: u32) {
        let backoff = &kring.owner().backoff;
        let now = backoff.load(Relaxed).min(LONGEST);
        if found < LITTLE {
            backoff.store((now * 2 + 1).min(LONGEST), Relaxed);
        } else if found > PLENTY && now != 0 {
            backoff.store(now / 2, Relaxed);
        }
    }

    #[inline]
    pub fn wait(kring: &Kring) {
        for _ in 0..kring.owner().backoff.load(Relaxed).min(LONGEST) {
            std::hint::spin_loop();
        }
    }
}

#[cfg(test)]
mod tests;
