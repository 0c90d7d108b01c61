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
use std::time::Instant;

use ringway_abi::{NS_BUF_CHANGED, NS_MOREFRAG, NS_REPORT};
use ringway_kring::{Accepted, Driver, Kring, Offsets};
use ringway_region::{Layout, Slot};

use super::spares::{self, SPARE};
use super::{Chunks, find};
use crate::loss::Lengths;
use crate::rings::{Consumer, Desc, Producer, map_tx};
use crate::sys::Ring;
use crate::{KickOutcome, Lost, RX_HEADROOM, RingSizes, SHORTEST, VLAN_TAG, kick_tx};

/// In a shadow word: the slot is completed, or was never sent. Buffer indices are below.
const DONE: u32 = 1 << 31;

/// Frames lost in one sync before the rest is left for the next: the kernel stops at each lost one,
/// and a peer that is full has more use for a moment's rest than for another system call.
const LOSSES: u32 = 16;

/// Driver of a tx ring of a NIC: any process that holds the socket and the region.
///
/// Packets are sent whole, or dropped whole, completed at once and counted: as `too_long` with a
/// slot that is longer than what is left of its buffer (S-SYNC-9), with more slots than the kernel takes, or when they
/// are longer than the interface sends: the kernel gets none of these, which it would drop, or not, by its driver and
/// the other end; as `too_short` with less than 14 bytes; as `bad_slot` when they name no buffer, or begin with a slot
/// of less than 14 bytes and go on. Packets with buffers that the kernel does not reach wait for
/// spare ones; with more of them than there are, they are `too_long`, and `bad_slot` where there is
/// none at all. What the kernel drops counts as `too_long` where it is longer than the interface's MTU allows by then,
/// or, at an end of [a pair](XdpTx::of_pair), than all that the kernel has taken lately while the link was there: the
/// other end may have a smaller MTU. Else it counts as `ring_full`.
///
/// A packet that is not whole yet waits, with those behind it, for its last slot. By default the
/// kernel takes one slot a packet, and a packet of several is dropped as `too_long`;
/// [with fragments](XdpTx::with_frags) it takes some.
///
/// A sync makes one system call for every 256 frames, one for each frame that the kernel drops (16
/// at most), and none when there is nothing to send. Frames that the kernel did not take (no room
/// further on, link down) stay in order and go out with a later sync, or when a program polls
/// [`XdpTx::wait_fd`].
pub struct XdpTx {
    completion: Ring<u64>,
    tx: Ring<Desc>,
    socket: Arc<OwnedFd>,
    chunks: Chunks,
    /// The flags that a sync takes off a slot.
    consumed: u16,
    /// Slots of a packet, at most.
    most_slots: u32,
    lengths: Lengths,
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
        let (completion, tx) = map_tx(socket.as_fd(), &sizes)?;
        XdpTx::over(socket, completion, tx, layout)
    }

    /// Over rings that are mapped.
    pub(crate) fn over(
        socket: Arc<OwnedFd>,
        completion: Ring<u64>,
        tx: Ring<Desc>,
        layout: &Layout,
    ) -> rustix::io::Result<XdpTx> {
        let chunks = Chunks::new(layout)?;
        // S-FLAGS-NS_REPORT, S-FLAGS-NS_BUF_CHANGED.
        let consumed = NS_REPORT | NS_BUF_CHANGED;
        let (most_slots, lengths) = (1, Lengths::none(false));
        Ok(XdpTx { completion, tx, socket, chunks, consumed, most_slots, lengths })
    }

    /// For a socket that takes packets of up to so many buffers ([`crate::XskSocket::max_segs`]).
    pub fn with_frags(self, max_segs: u32) -> XdpTx {
        XdpTx { most_slots: max_segs.max(1), ..self }
    }

    /// For an interface that is an end of a pair, as of veth: the other end may have a smaller MTU.
    pub fn of_pair(self) -> XdpTx {
        XdpTx { lengths: Lengths::none(true), ..self }
    }

    /// For a host ring: the flags of slots stay (S-HOST-4).
    pub fn to_host(self) -> XdpTx {
        XdpTx { consumed: 0, ..self }
    }

    /// What the kernel has refused to send since the socket was made, and nothing else counts.
    pub fn lost(&self) -> Lost {
        Lost::sending(&self.socket)
    }

    /// What to poll for POLLOUT: the socket. Polling it also makes the kernel send what is pending.
    pub fn wait_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

type Tx<'r> = Producer<Desc, &'r Ring<Desc>>;

/// What a sync puts on the TX ring.
#[derive(Default)]
struct Batch {
    /// Descriptors that there is room for, and those that there are.
    room: u32,
    staged: u32,
    packets: u32,
    bytes: u64,
}

impl Batch {
    /// One more packet.
    #[inline]
    fn add(&mut self, descriptors: u32, bytes: u32) {
        self.staged += descriptors;
        self.packets += 1;
        self.bytes += u64::from(bytes);
    }
}

/// What has become of a packet of several slots.
enum Chain {
    /// It is on the TX ring; the next one begins there.
    Staged(u32),
    /// It cannot be sent; `goes_on`: the rest of it is at `next`.
    Bad { next: u32, goes_on: bool },
    /// It is not whole yet, or there is no room for it.
    Waits,
}

/// The slot of `[oldest, end)` that was sent from `buffer`: a spare one is free again.
#[cold]
#[inline(never)]
fn find_sent(kring: &Kring, oldest: u32, end: u32, buffer: u64) -> Option<u32> {
    let own = find(kring, oldest, end, buffer);
    if own.is_some() {
        return own;
    }
    let at = find(kring, oldest, end, buffer | u64::from(SPARE))?;
    let shadow = kring.shadow(at);
    let lent = shadow.load(Relaxed);
    shadow.store(lent & !SPARE, Relaxed);
    spares::give_back(kring, lent);
    Some(at)
}

/// Whether a packet may begin like that.
#[inline]
fn is_frame(desc: &Desc) -> bool {
    desc.length >= SHORTEST
}

/// Bytes of the longest frame that the interface sends: with a VLAN tag, as a NIC takes it, which does not look.
#[inline]
fn longest(kring: &Kring) -> u32 {
    kring.owner().longest_frame().saturating_add(VLAN_TAG)
}

impl Driver for XdpTx {
    fn sync(&self, kring: &Kring, Accepted { head, .. }: Accepted) {
        let hwtail = kring.hwtail();
        let mut tx = Producer::new(&self.tx);
        let hwcur = self.stage(kring, &mut tx, kring.hwcur(), kring.within(head));
        self.kick(kring, &tx);
        let oldest = self.reap(kring, kring.ring().next(hwtail), hwcur);
        kring.csb().service.publish(hwcur, kring.ring().prev(oldest));
    }
}

impl XdpTx {
    /// Puts slots `[from, head)` on the TX ring, as far as it has room and their packets are whole;
    /// returns how far that is.
    #[inline]
    fn stage(&self, kring: &Kring, tx: &mut Tx<'_>, from: u32, head: u32) -> u32 {
        let ring = kring.ring();
        let offsets = self.chunks.offsets(kring);
        let reach = spares::reach(kring).min(ring.region().layout().bufs.total);
        let mut batch = Batch { room: tx.free(ring.distance(from, head)), ..Batch::default() };
        // As `is_frame` and `longest`, by one comparison: bytes beyond the shortest frame, of which a shorter one has more
        // than any.
        let most_beyond = longest(kring).min(u32::MAX - 1).saturating_sub(SHORTEST);
        let is_sent = |desc: &Desc| desc.length.wrapping_sub(SHORTEST) <= most_beyond;
        // The driver's mark: the rest of a packet with too many slots is to be dropped.
        let was_dropping = kring.owner().driver_cursor.load(Relaxed) != 0;
        let (mut at, mut dropping) = (from, was_dropping);
        while at != head && batch.staged < batch.room {
            let slot = ring.slot(at);
            if dropping {
                dropping = slot.flags & NS_MOREFRAG != 0;
                self.drop_slots(kring, at, ring.next(at));
            } else if slot.flags & NS_MOREFRAG != 0 {
                match self.stage_chain(kring, tx, &offsets, [at, head], &mut batch) {
                    Chain::Staged(next) => at = next,
                    Chain::Bad { next, goes_on } => {
                        spares::give_all_back(kring, at, next, DONE);
                        self.note_loss(kring, &offsets, at, next);
                        self.drop_slots(kring, at, next);
                        (at, dropping) = (next, goes_on);
                    }
                    Chain::Waits => break,
                }
                continue;
            } else if (2..reach).contains(&slot.buf_idx)
                && let Some(desc) = self.describe(&offsets, &slot).filter(is_sent)
            {
                tx.write(batch.staged, desc);
                kring.shadow(at).store(slot.buf_idx, Relaxed);
                batch.add(1, desc.length);
            } else if !self.stage_other(kring, tx, &offsets, at, slot, &mut batch) {
                break;
            }
            self.consume(kring, at, &slot);
            at = ring.next(at);
        }
        if dropping != was_dropping {
            kring.owner().driver_cursor.store(dropping.into(), Relaxed);
        }
        if batch.staged > 0 {
            tx.submit(batch.staged);
            // At once, lest a successor of a killed process sends them again.
            kring.csb().service.publish(at, kring.hwtail());
            kring.count(batch.packets);
            kring.note(|c| &c.bytes, batch.bytes);
        }
        at
    }

    /// The same of slot `at` alone, which holds no frame that is sent, or has a buffer that the kernel does not reach. False:
    /// there is no spare buffer for it yet.
    #[cold]
    #[inline(never)]
    fn stage_other(
        &self,
        kring: &Kring,
        tx: &mut Tx<'_>,
        offsets: &Offsets,
        at: u32,
        slot: Slot,
        batch: &mut Batch,
    ) -> bool {
        let is_sent = |desc: &Desc| is_frame(desc) && desc.length <= longest(kring);
        let desc = self.place(kring, offsets, &slot).filter(is_sent);
        match desc.and_then(|desc| self.copy_out(kring, slot.buf_idx, desc)) {
            Some((copied, mark)) => {
                tx.write(batch.staged, copied);
                kring.shadow(at).store(mark, Relaxed);
                batch.add(1, copied.length);
            }
            None if desc.is_some() && spares::are_lent(kring, at) => return false,
            None => {
                kring.shadow(at).store(DONE, Relaxed);
                self.note_loss(kring, offsets, at, kring.ring().next(at));
            }
        }
        true
    }

    /// Puts the packet that begins in slot `first` on the TX ring, whole or not at all. Until it is
    /// staged, nothing of what is written here counts.
    fn stage_chain(
        &self,
        kring: &Kring,
        tx: &mut Tx<'_>,
        offsets: &Offsets,
        [first, head]: [u32; 2],
        batch: &mut Batch,
    ) -> Chain {
        let (ring, reach) = (kring.ring(), spares::reach(kring));
        // A packet that cannot end in time is not waited for: the program may have no slot left.
        let most = self.most_slots.min(ring.num_slots() - 1);
        let (mut at, mut good, mut length) = (first, true, 0);
        let mut staged = batch.staged;
        let mut last = None;
        let wait = |at| {
            spares::give_all_back(kring, first, at, DONE);
            Chain::Waits
        };
        for _ in 0..most {
            if at == head || staged == batch.room {
                return wait(at);
            }
            let slot = ring.slot(at);
            let desc = self.place(kring, offsets, &slot);
            match desc {
                // Only the first need be long enough for the kernel.
                Some(desc) if at != first && desc.length == 0 => {
                    kring.shadow(at).store(DONE, Relaxed);
                }
                Some(desc) if at != first || is_frame(&desc) => {
                    let (desc, mark) = match slot.buf_idx < reach {
                        true => (desc, slot.buf_idx),
                        false => match self.copy_out(kring, slot.buf_idx, desc) {
                            Some(copied) => copied,
                            None if spares::are_lent(kring, first) => return wait(at),
                            None => return Chain::Bad { next: at, goes_on: true },
                        },
                    };
                    tx.write(staged, desc.going_on());
                    kring.shadow(at).store(mark, Relaxed);
                    length += desc.length;
                    last = Some(desc);
                    staged += 1;
                }
                _ => {
                    kring.shadow(at).store(DONE, Relaxed);
                    good = false;
                }
            }
            self.consume(kring, at, &slot);
            at = ring.next(at);
            if slot.flags & NS_MOREFRAG == 0 {
                let Some(last) = last.filter(|_| good && length <= longest(kring)) else {
                    return Chain::Bad { next: at, goes_on: false };
                };
                tx.write(staged - 1, last);
                batch.add(staged - batch.staged, length);
                return Chain::Staged(at);
            }
        }
        Chain::Bad { next: at, goes_on: true }
    }

    /// Completes slots `[from, to)` without sending them.
    #[cold]
    fn drop_slots(&self, kring: &Kring, from: u32, to: u32) {
        let mut at = from;
        while at != to {
            kring.shadow(at).store(DONE, Relaxed);
            at = kring.ring().next(at);
        }
    }

    /// Counts the packet in slots `[from, to)`, which cannot be sent, by what is wrong with it.
    #[cold]
    fn note_loss(&self, kring: &Kring, offsets: &Offsets, from: u32, to: u32) {
        let (ring, mut at) = (kring.ring(), from);
        // Of a packet without a slot, no spare buffer was had for the first.
        let (mut length, mut good) = (0u32, from != to);
        while at != to {
            let slot = ring.slot(at);
            let next = ring.next(at);
            // A packet that goes on behind the last slot has more than the kernel takes.
            let goes_on = next == to && slot.flags & NS_MOREFRAG != 0;
            if goes_on || u32::from(slot.len) > self.room(offsets.read(slot.ptr)) {
                return kring.note(|c| &c.too_long, 1);
            }
            good &= ring.buf(slot.buf_idx).is_some();
            length = length.saturating_add(slot.len.into());
            at = next;
        }
        if good && length > longest(kring) {
            kring.note(|c| &c.too_long, 1);
        } else if good && length < SHORTEST {
            kring.note(|c| &c.too_short, 1);
        } else {
            kring.note(|c| &c.bad_slot, 1);
        }
    }

    /// Bytes of a buffer behind an offset, which [`Chunks::offsets`] keeps within it.
    #[inline]
    fn room(&self, offset: u32) -> u32 {
        self.chunks.data_size - offset
    }

    /// What a slot holds; `None` if it names no buffer, or is longer than its buffer (S-SYNC-9).
    #[inline]
    fn place(&self, kring: &Kring, offsets: &Offsets, slot: &Slot) -> Option<Desc> {
        kring.ring().buf(slot.buf_idx)?;
        self.describe(offsets, slot)
    }

    /// The same of a slot that names a buffer.
    #[inline]
    fn describe(&self, offsets: &Offsets, slot: &Slot) -> Option<Desc> {
        let (offset, length) = (offsets.read(slot.ptr), u32::from(slot.len));
        if length > self.room(offset) {
            return None;
        }
        let address = self.chunks.start(slot.buf_idx) + u64::from(RX_HEADROOM + offset);
        Some(Desc { address, length, options: 0 })
    }

    /// Copies what a slot holds to a spare buffer, to be sent from there; with the shadow word for that. `None`: there is
    /// none left until some have been sent.
    #[cold]
    fn copy_out(&self, kring: &Kring, buffer: u32, desc: Desc) -> Option<(Desc, u32)> {
        let ring = kring.ring();
        let spare = spares::take(kring)?;
        let offset = self.chunks.offset(desc.address) as u32 - RX_HEADROOM;
        let part = |buffer| ring.buf(buffer)?.part(offset, desc.length);
        if let (Some(from), Some(to)) = (part(buffer), part(spare)) {
            to.copy_from(&from, desc.length as usize);
        }
        let address = self.chunks.start(spare) + u64::from(RX_HEADROOM + offset);
        Some((Desc { address, ..desc }, spare | SPARE))
    }

    /// Takes off a slot the flags that a sync consumes.
    #[inline]
    fn consume(&self, kring: &Kring, at: u32, slot: &Slot) {
        if slot.flags & self.consumed != 0 {
            kring.ring().set_slot(at, slot.buf_idx, slot.len, slot.flags & !self.consumed);
        }
    }

    /// Kicks until the kernel has consumed everything or can do no more. Every turn but the last
    /// consumes a descriptor, and no new ones are made: it ends.
    #[inline]
    fn kick(&self, kring: &Kring, tx: &Tx<'_>) {
        let (mut kicks, mut lost, mut too_long) = (0, 0, 0);
        let mut pending = tx.pending();
        while pending > 0 && lost < LOSSES && tx.needs_kick() {
            kicks += 1;
            match kick_tx(&self.socket) {
                Ok(KickOutcome::Sent | KickOutcome::Again) => {}
                Ok(KickOutcome::Lost) => {
                    lost += 1;
                    too_long += u32::from(self.is_too_long(kring, tx));
                }
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
            kring.note(|c| &c.too_long, too_long.into());
            kring.note(|c| &c.ring_full, (lost - too_long).into());
        }
    }

    /// Whether the frame that the kernel has consumed last, and lost, is too long for this end or the other.
    #[cold]
    fn is_too_long(&self, kring: &Kring, tx: &Tx<'_>) -> bool {
        let lost = self.lengths.lost(tx, Instant::now());
        let longest = longest(kring);
        longest != u32::MAX && (lost.too_long || lost.bytes > longest)
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
            let found =
                if in_order { Some(expected) } else { find_sent(kring, oldest, end, buffer) };
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
