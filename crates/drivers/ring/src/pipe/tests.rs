use std::collections::VecDeque;

use proptest::prelude::*;
use ringway_abi::Dir;
use ringway_kring::Outcome;
use ringway_region::{Layout, Region, RingInit, RingView, Sizes};

use super::*;

const SLOTS: u32 = 8;

struct Pipe {
    tx: Kring,
    rx: Kring,
    to_rx: PipeTx,
    to_tx: PipeRx,
}

fn pipe() -> Pipe {
    let sizes = Sizes::private([1, 1], [SLOTS, SLOTS], 0, 0);
    let region = Arc::new(Region::create(3, Layout::new(&sizes, 0).unwrap()).unwrap());
    let make = |object, dir, first: u32| {
        let bufs: Vec<u32> = (first..first + SLOTS).collect();
        let init = RingInit { dir, ringid: 0, num_slots: SLOTS };
        Kring::create(&region, object, &init, &bufs).unwrap()
    };
    let (tx, rx) = (make(0, Dir::Tx, 2), make(1, Dir::Rx, 2 + SLOTS));
    let doorbell = || Arc::new(Doorbell::new().unwrap());
    Pipe {
        to_rx: PipeTx { peer: rx.clone(), receiver: doorbell() },
        to_tx: PipeRx { peer: tx.clone(), sender: doorbell() },
        tx,
        rx,
    }
}

impl Pipe {
    fn space(&self) -> u32 {
        self.tx.ring().distance(self.tx.ring().head(), self.tx.ring().tail())
    }

    fn unread(&self) -> u32 {
        self.rx.ring().distance(self.rx.ring().head(), self.rx.ring().tail())
    }

    fn send(&self, lens: &[u16], flags: u16) {
        let ring = self.tx.ring();
        let mut at = ring.head();
        for &len in lens {
            ring.set_slot(at, ring.slot(at).buf_idx, len, flags);
            at = ring.next(at);
        }
        ring.set_head(at);
        ring.set_cur(at);
        assert_eq!(self.tx.sync(&self.to_rx), Outcome::Done);
    }

    /// Releases `count` slots and looks for more; returns the lengths of those released.
    fn receive(&self, count: u32) -> Vec<u16> {
        let ring = self.rx.ring();
        let from = ring.head();
        let lens = (0..count).map(|i| ring.slot(ring.advance(from, i)).len).collect();
        let to = ring.advance(from, count);
        ring.set_head(to);
        ring.set_cur(to);
        assert_eq!(self.rx.sync(&self.to_tx), Outcome::Done);
        lens
    }
}

#[test]
fn s_pipe_7_free_slots_are_those_released() {
    let p = pipe();
    p.send(&[60; 6], 0);
    p.receive(0);
    assert_eq!((p.unread(), p.space()), (6, 1));
    p.receive(4);
    p.send(&[], 0);
    assert_eq!((p.unread(), p.space()), (2, SLOTS - 1 - 2));
}

#[test]
fn s_pipe_7_only_complete_packets_become_visible() {
    let p = pipe();
    p.send(&[60], 0);
    p.send(&[100, 100], NS_MOREFRAG);
    p.receive(0);
    assert_eq!(p.unread(), 1);
    p.send(&[20], 0);
    p.receive(0);
    assert_eq!(p.unread(), 4);
}

#[test]
fn s_pipe_9_buffers_travel_and_come_back() {
    let p = pipe();
    let (sent, spare) = (p.tx.ring().slot(0).buf_idx, 40);
    p.send(&[60], NS_BUF_CHANGED);
    p.receive(0);
    let got = p.rx.ring().slot(0);
    assert_eq!((got.buf_idx, got.flags), (sent, NS_BUF_CHANGED));
    assert_eq!(p.tx.ring().slot(0).flags, 0, "cleared on the originating side");

    p.rx.ring().set_slot(0, spare, 60, NS_BUF_CHANGED);
    p.receive(1);
    let back = p.tx.ring().slot(0);
    assert_eq!((back.buf_idx, back.flags), (spare, NS_BUF_CHANGED));
    let own = p.rx.ring().slot(0);
    assert_eq!((own.buf_idx, own.len, own.flags), (spare, 60, 0), "and here, too");
}

/// Whatever syncs lie between the slots of a packet, the receiver gets the flags that the sender
/// has set, the sender's are cleared once the packet is whole, and each slot counts once.
#[test]
fn s_pipe_9_a_packet_in_several_syncs_keeps_its_flags() {
    const SENT: [u16; 4] =
        [NS_BUF_CHANGED | NS_MOREFRAG, NS_MOREFRAG, NS_BUF_CHANGED | NS_MOREFRAG, NS_BUF_CHANGED];
    // A bit for each slot that a sync of the receiver follows.
    for looks in 0..1 << SENT.len() {
        let p = pipe();
        p.send(&[60], NS_BUF_CHANGED);
        for (n, flags) in SENT.into_iter().enumerate() {
            p.send(&[60], flags);
            if looks >> n & 1 != 0 {
                p.receive(0);
            }
        }
        p.receive(0);
        let flags = |ring: &RingView| [0, 1, 2, 3, 4].map(|at| ring.slot(at).flags);
        let [a, b, c, d] = SENT;
        assert_eq!(flags(p.rx.ring()), [NS_BUF_CHANGED, a, b, c, d], "looks {looks:04b}");
        let cleared = [0, NS_MOREFRAG, NS_MOREFRAG, NS_MOREFRAG, 0];
        assert_eq!(flags(p.tx.ring()), cleared, "looks {looks:04b}");
        assert_eq!((p.unread(), p.rx.counters().packets.load(Relaxed)), (5, 5));
    }
}

/// A slot may say anything: both ends are in one region, and nothing leaves it here. What a packet
/// has too much of is for the port to see that sends it on.
#[test]
fn s_sync_9_slots_are_handed_on_as_they_are() {
    let p = pipe();
    let ring = p.tx.ring();
    // Flags, length, buffer; and what the slot points to.
    let word = |flags: u16, len: u16, buf_idx: u32| {
        u64::from(flags) << 48 | u64::from(len) << 32 | u64::from(buf_idx)
    };
    let sent = [
        [word(NS_MOREFRAG, u16::MAX, 3), 99],
        [word(0x8000, 2049, u32::MAX), u64::MAX],
        [word(0, 60, 0), 0],
    ];
    for (at, words) in (0..).zip(sent) {
        ring.set_slot_words(at, words);
    }
    ring.set_head(3);
    ring.set_cur(3);
    assert_eq!(p.tx.sync(&p.to_rx), Outcome::Done);
    p.receive(0);
    assert_eq!(p.unread(), 3);
    assert_eq!([0, 1, 2].map(|at| p.rx.ring().slot_words(at)), sent);
    p.receive(3);
    p.send(&[], 0);
    assert_eq!(p.space(), SLOTS - 1);
}

#[test]
fn a_sleeper_is_woken_once() {
    let p = pipe();
    let rung = |doorbell: &Doorbell| doorbell.drain();
    p.send(&[60], 0);
    assert!(!rung(&p.to_rx.receiver), "nobody waits yet");
    p.receive(0);
    p.receive(1);
    p.rx.csb().app.arm();
    p.send(&[60], 0);
    assert!(rung(&p.to_rx.receiver));
    p.send(&[60], 0);
    assert!(!rung(&p.to_rx.receiver), "that wait was answered");
    p.tx.csb().app.arm();
    p.receive(0);
    assert!(!rung(&p.to_tx.sender), "nothing was released");
    p.receive(1);
    assert!(rung(&p.to_tx.sender));
}

/// A sender that was killed between the two has published, and not told.
#[test]
fn what_was_published_and_not_told_is_told_by_the_next_sync() {
    let p = pipe();
    p.rx.csb().app.arm();
    p.tx.csb().app.publish(3, 3);
    let told = || {
        p.tx.sync(&p.to_rx);
        p.to_rx.receiver.drain()
    };
    p.tx.ring().set_head(3);
    p.tx.ring().set_cur(3);
    assert!(told());
    p.receive(0);
    assert_eq!(p.unread(), 3);
    p.rx.csb().app.arm();
    assert!(!told(), "the receiver has seen all");
}

/// S-SYNC-8: a receiver's wrong cursors are taken over, and cost the sender nothing: what it has not
/// sent stays as it is.
#[test]
fn a_receiver_releases_nothing_that_it_has_not_received() {
    let p = pipe();
    p.send(&[60; 2], 0);
    p.receive(0);
    let ring = p.tx.ring();
    let unsent = |len| (2..6).for_each(|at| ring.set_slot(at, ring.slot(at).buf_idx, len, 0));
    let slots = || (0..SLOTS).map(|at| ring.slot_words(at)).collect::<Vec<_>>();
    unsent(99);
    let before = slots();
    let rx = p.rx.ring();
    rx.set_head(5);
    rx.set_cur(5);
    assert_eq!(p.rx.sync(&p.to_tx), Outcome::Reinitialised);
    assert_eq!(p.rx.sync(&p.to_tx), Outcome::Done);
    assert_eq!((slots(), p.tx.hwcur(), p.rx.hwtail()), (before, 0, 2));
    // What was sent meanwhile is the receiver's, and its cursors are right by then.
    p.send(&[99; 4], 0);
    p.receive(0);
    assert_eq!((p.tx.hwcur(), p.rx.hwtail(), p.unread()), (0, 6, 1));
    p.receive(1);
    assert_eq!((p.tx.hwcur(), p.unread()), (6, 0));
}

/// And a sender's cost the receiver nothing: the slots that it reads stay as they are.
#[test]
fn a_sender_sends_nothing_that_it_does_not_hold() {
    let p = pipe();
    p.send(&[60; 5], 0);
    p.receive(0);
    let slots = || (0..SLOTS).map(|at| p.rx.ring().slot_words(at)).collect::<Vec<_>>();
    let before = slots();
    let ring = p.tx.ring();
    (0..SLOTS).for_each(|at| ring.set_slot(at, ring.slot(at).buf_idx, 99, 0));
    ring.set_head(3);
    ring.set_cur(3);
    assert_eq!(p.tx.sync(&p.to_rx), Outcome::Reinitialised);
    assert_eq!(p.tx.sync(&p.to_rx), Outcome::Done);
    p.receive(0);
    assert_eq!((slots(), p.unread()), (before, 5));
    // Its cursors are right again where they come to what it holds.
    p.send(&[99; 3], 0);
    p.receive(0);
    assert_eq!((p.unread(), p.tx.counters().packets.load(Relaxed)), (6, 6));
}

/// Both ends count what passes, once, and how often they have woken the other.
#[test]
fn packets_and_kicks_are_counted() {
    let p = pipe();
    let counted = |kring: &Kring| {
        let counters = kring.counters();
        (counters.packets.load(Relaxed), counters.kicks.load(Relaxed))
    };
    p.send(&[60; 3], 0);
    p.receive(0);
    p.receive(2);
    assert_eq!((counted(&p.tx), counted(&p.rx)), ((3, 0), (3, 0)));
    p.rx.csb().app.arm();
    p.send(&[60], 0);
    assert_eq!(counted(&p.tx), (4, 1));
    p.tx.csb().app.arm();
    p.receive(1);
    assert_eq!(counted(&p.rx), (4, 1));
}

/// Where there is nothing to receive, a sender that waits is woken even if nothing was released: it
/// may wait for what a receiver that was killed has given back.
#[test]
fn a_sender_that_waits_is_woken_by_a_receiver_that_finds_nothing() {
    let p = pipe();
    p.tx.csb().app.arm();
    p.receive(0);
    assert!(p.to_tx.sender.drain());
    p.tx.csb().app.arm();
    p.send(&[60], 0);
    p.receive(0);
    assert!(!p.to_tx.sender.drain(), "there is something to receive first");
}

/// A look that finds little makes the next one wait longer, up to a limit; one that finds plenty
/// less long.
#[test]
fn a_receiver_waits_the_longer_the_less_it_finds() {
    let p = pipe();
    let set = |now| p.rx.owner().backoff.store(now, Relaxed);
    let after = |now, found| {
        set(now);
        backoff::learn(&p.rx, found);
        p.rx.owner().backoff.load(Relaxed)
    };
    assert_eq!([0, 1, 15, 16, 32, u32::MAX].map(|now| after(now, 0)), [1, 3, 31, 32, 32, 32]);
    assert_eq!([15, 16, 64, 65, 1000].map(|found| after(8, found)), [17, 8, 8, 4, 4]);
    assert_eq!((after(0, 65), after(1, 65)), (0, 0));
}

proptest! {
    /// Against a queue of lengths with n-1 places.
    #[test]
    fn behaves_like_a_queue(steps in proptest::collection::vec((any::<bool>(), 0u32..9), 1..100)) {
        let p = pipe();
        let (mut queue, mut next) = (VecDeque::new(), 0u16);
        let mut visible = 0usize;
        for (send, amount) in steps {
            if send {
                let count = amount.min(p.space());
                let lens: Vec<u16> = (0..count as u16).map(|i| next.wrapping_add(i)).collect();
                next = next.wrapping_add(count as u16);
                queue.extend(lens.iter().copied());
                p.send(&lens, 0);
            } else {
                let count = amount.min(visible as u32);
                let expected: Vec<u16> = queue.drain(..count as usize).collect();
                prop_assert_eq!(p.receive(count), expected);
                visible = queue.len();
                prop_assert_eq!(p.unread() as usize, visible);
                p.send(&[], 0);
                prop_assert_eq!(p.space() as usize, SLOTS as usize - 1 - queue.len());
            }
        }
    }
}
