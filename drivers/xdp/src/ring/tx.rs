//! Sending: slots up to `head` go to the TX ring, and come back by the COMPLETION ring.
//!
//! ```text
//!   hwtail+1 .. hwcur    sent, not yet completed: shadow word = buffer, | DONE once completed
//!   hwcur    .. head     to be sent now
//!   head     .. hwtail   the program's
//! ```
//!
//! Completions come in any order, since a dropped frame overtakes those still on their way; slots
//! go back to the program in ring order.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, atomic::Ordering::Relaxed};

use ringway_abi::{NS_BUF_CHANGED, NS_INDIRECT, NS_MOREFRAG, NS_REPORT};
use ringway_kring::{Accepted, Driver, Kring};
use ringway_region::{Layout, Slot};

use super::{Chunks, find, within};
use crate::rings::{Consumer, Desc, Producer, Ring, map_tx};
use crate::{KickOutcome, RX_HEADROOM, RingSizes, kick_tx};

/// In a shadow word: the slot is completed, or was never sent. Buffer indices are below.
const DONE: u32 = 1 << 31;

/// The shortest frame that the kernel sends: an Ethernet header.
const SHORTEST: u16 = 14;

/// Frames lost in one sync before the rest is left for the next: the kernel stops at each lost one,
/// and a peer that is full has more use for a moment's rest than for another system call.
const LOSSES: u32 = 16;

/// Driver of a tx ring of a NIC: any process that holds the socket and the region.
///
/// Slots are dropped, and completed at once, when they are shorter than 14 bytes, name no buffer or
/// use NS_INDIRECT or NS_MOREFRAG (`bad_slot`, once a packet), or are longer than a buffer
/// (`too_long`). What the kernel drops counts as `ring_full`.
///
/// A sync makes one system call for every 256 frames, one for each frame that the kernel drops (16
/// at most), and none when there is nothing to send. Frames that the kernel did not take (no room
/// further on, link down) stay in order and go out with a later sync, or when somebody polls
/// [`XdpTx::wait_fd`].
pub struct XdpTx {
    completion: Ring<u64>,
    tx: Ring<Desc>,
    socket: Arc<OwnedFd>,
    chunks: Chunks,
    /// The flags that a sync takes off a slot, and the one that joins slots.
    consumed: u16,
    joins: u16,
}

impl XdpTx {
    /// Maps the TX and COMPLETION rings of an AF_XDP socket that was opened with the given ring
    /// sizes, and with the buffer area of a region of this layout as its memory.
    ///
    /// Errors: those of [`crate::Rings::map`]; EINVAL when the layout does not suit AF_XDP.
    pub fn new(
        socket: Arc<OwnedFd>,
        sizes: RingSizes,
        layout: &Layout,
    ) -> rustix::io::Result<XdpTx> {
        let chunks = Chunks::new(layout)?;
        let (completion, tx) = map_tx(socket.as_fd(), &sizes)?;
        let consumed = NS_REPORT | NS_BUF_CHANGED;
        Ok(XdpTx { completion, tx, socket, chunks, consumed, joins: NS_MOREFRAG })
    }

    /// For a host ring: each slot is a packet, and its flags stay (S-HOST-4).
    pub fn to_host(self) -> XdpTx {
        XdpTx { consumed: 0, joins: 0, ..self }
    }

    /// What to poll for POLLOUT: the socket. Polling it also makes the kernel send what is pending.
    pub fn wait_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Driver for XdpTx {
    fn sync(&self, kring: &Kring, Accepted { head, .. }: Accepted) {
        let hwtail = kring.hwtail();
        let mut tx = Producer::new(&self.tx);
        let hwcur = self.stage(kring, &mut tx, kring.hwcur(), within(kring, head));
        self.kick(kring, &tx);
        let oldest = self.reap(kring, kring.ring().next(hwtail), hwcur);
        kring.csb().service.publish(hwcur, kring.ring().prev(oldest));
    }
}

impl XdpTx {
    /// Puts slots `[from, head)` on the TX ring, as far as it has room; returns how far that is.
    #[inline]
    fn stage(
        &self,
        kring: &Kring,
        tx: &mut Producer<Desc, &Ring<Desc>>,
        from: u32,
        head: u32,
    ) -> u32 {
        let ring = kring.ring();
        let room = tx.free(ring.distance(from, head));
        // The driver's mark says that the last slot was of a packet that goes on.
        let was_chained = kring.owner().mark.load(Relaxed) != 0;
        let (mut at, mut staged, mut bytes, mut chained) = (from, 0, 0, was_chained);
        while at != head && staged < room {
            let slot = ring.slot(at);
            let goes_on = slot.flags & self.joins != 0;
            if !chained && !goes_on && self.may_send(kring, &slot) {
                let address = self.chunks.start(slot.buf_idx) | u64::from(RX_HEADROOM);
                tx.write(staged, Desc { address, length: slot.len.into(), options: 0 });
                kring.shadow(at).store(slot.buf_idx, Relaxed);
                staged += 1;
                bytes += u64::from(slot.len);
            } else {
                kring.shadow(at).store(DONE, Relaxed);
                if chained && !goes_on {
                    kring.note(|c| &c.bad_slot, 1);
                }
            }
            chained = goes_on;
            if slot.flags & self.consumed != 0 {
                ring.set_slot(at, slot.buf_idx, slot.len, slot.flags & !self.consumed);
            }
            at = ring.next(at);
        }
        if chained != was_chained {
            kring.owner().mark.store(chained.into(), Relaxed);
        }
        if staged > 0 {
            tx.submit(staged);
            // At once, lest a successor of a killed process sends them again.
            kring.csb().service.publish(at, kring.hwtail());
            kring.count(staged);
            kring.note(|c| &c.bytes, bytes);
        }
        at
    }

    /// Whether a slot holds a frame; counts why not.
    #[inline]
    fn may_send(&self, kring: &Kring, slot: &Slot) -> bool {
        let known = kring.ring().buf(slot.buf_idx).is_some();
        if !known || slot.len < SHORTEST || slot.flags & NS_INDIRECT != 0 {
            kring.note(|c| &c.bad_slot, 1);
            return false;
        }
        let fits = u32::from(slot.len) <= self.chunks.data_size;
        if !fits {
            kring.note(|c| &c.too_long, 1);
        }
        fits
    }

    /// Kicks until the kernel has consumed everything or can do no more. Every turn but the last
    /// consumes a descriptor, and no new ones are made: it ends.
    #[inline]
    fn kick(&self, kring: &Kring, tx: &Producer<Desc, &Ring<Desc>>) {
        let (mut kicks, mut lost) = (0, 0);
        let mut pending = tx.pending();
        while pending > 0 && lost < LOSSES && tx.needs_wakeup() {
            kicks += 1;
            match kick_tx(&self.socket) {
                Ok(KickOutcome::Sent | KickOutcome::Again) => {}
                Ok(KickOutcome::Lost) => lost += 1,
                Ok(KickOutcome::LinkDown) | Err(_) => break,
                Ok(KickOutcome::Gone) => {
                    kring.stop();
                    break;
                }
            }
            let left = tx.pending();
            if left >= pending {
                break;
            }
            pending = left;
        }
        if kicks > 0 {
            kring.note(|c| &c.kicks, kicks);
        }
        if lost > 0 {
            kring.note(|c| &c.ring_full, lost.into());
        }
    }

    /// Takes the completions of slots `[oldest, end)`; returns the oldest that is not completed.
    #[inline]
    fn reap(&self, kring: &Kring, oldest: u32, end: u32) -> u32 {
        let ring = kring.ring();
        let mut completion = Consumer::new(&self.completion);
        let done = completion.available(u32::MAX);
        let mut expected = oldest;
        for i in 0..done {
            let buffer = self.chunks.chunk(completion.read(i));
            while expected != end && kring.shadow(expected).load(Relaxed) & DONE != 0 {
                expected = ring.next(expected);
            }
            let in_order =
                expected != end && u64::from(kring.shadow(expected).load(Relaxed)) == buffer;
            let found = if in_order { Some(expected) } else { find(kring, oldest, end, buffer) };
            // Not found: sent by a process that was killed before it could say so.
            let Some(at) = found else { continue };
            let shadow = kring.shadow(at);
            shadow.store(shadow.load(Relaxed) | DONE, Relaxed);
            expected = ring.next(at);
        }
        if done > 0 {
            completion.release(done);
        }
        let mut oldest = oldest;
        while oldest != end && kring.shadow(oldest).load(Relaxed) & DONE != 0 {
            oldest = ring.next(oldest);
        }
        oldest
    }
}
