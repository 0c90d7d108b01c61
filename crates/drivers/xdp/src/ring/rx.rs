//! Receiving: buffers of released slots go to the FILL ring, and come back by the RX ring.
//!
//! ```text
//!   hwtail .. posted     the kernel's: shadow word = buffer, or NOTHING
//!   posted .. prev(head) released, to be posted now; `posted` is the driver's mark
//!   head   .. hwtail     the program's
//! ```
//!
//! A packet of several buffers appears when it is whole; until then its descriptors stay on the RX
//! ring. There is a slot for each, for every buffer that comes back was posted from one: a packet of
//! more is dropped by the kernel.
//!
//! Frames mostly arrive in the order of posting. The kernel may reorder buffers, though (it uses
//! those of dropped frames first): then the two slots exchange theirs, so that every buffer stays
//! in exactly one slot, and the registry, which cleans up after a program, finds all by walking the slots.

use std::iter;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, atomic::Ordering::Relaxed};

use ringway_abi::{NS_BUF_CHANGED, NS_MOREFRAG};
use ringway_kring::{Accepted, Driver, Kring, Offsets};
use ringway_region::Layout;

use super::spares::{self, SPARE};
use super::{Chunks, find};
use crate::partial_csum::finish;
use crate::rings::{Consumer, Desc, Producer, map_rx};
use crate::sys::Ring;
use crate::{Lost, RX_HEADROOM, RingSizes, kick_rx};

/// The shadow word of a released slot that named no buffer. Index 0 is reserved, so no buffer's.
const NOTHING: u32 = 0;

/// Driver of an rx ring of a NIC: any process that holds the socket and the region.
///
/// A released slot that names no buffer (`bad_slot`) comes back in its turn with length 0 and
/// whatever it names, for the program to mend.
///
/// On a ring with offsets a sync moves what has arrived to where its slot says. It also moves what a driver in
/// zero-copy mode has put elsewhere in the chunk. A packet that has too little room there (`too_long`), or
/// lies in no chunk (`bad_slot`), is lost: its slots come with length 0.
///
/// A sync makes no system call, but with a zero-copy NIC that ran out of buffers.
pub struct XdpRx {
    rx: Ring<Desc>,
    fill: Ring<u64>,
    socket: Arc<OwnedFd>,
    chunks: Chunks,
    /// The flags that a sync takes off a released slot.
    consumed: u16,
    /// Whether a packet may have several buffers.
    frags: bool,
    /// Whether checksums may be partial.
    partial_csum: bool,
    /// Whether frames have their timestamps in front.
    timestamps: bool,
}

/// Where in a chunk a frame begins that the kernel has copied, and mostly in zero-copy mode. There it begins earlier if
/// the XDP program has put a VLAN tag into it, and later if the card writes its timestamp in front of it (igb, igc,
/// tsnep).
const PLACE: u64 = RX_HEADROOM as u64;

/// Frames whose beginnings are on their way to the cache while one is looked at.
const AHEAD: u32 = 4;

impl XdpRx {
    /// Maps the RX and FILL rings; parameters and errors as for [`crate::XdpTx::new`]. The kernel
    /// has buffers to receive into from the first sync on: so what makes the ring syncs it once
    /// before any frame is led to the socket.
    pub fn new(
        socket: Arc<OwnedFd>,
        sizes: RingSizes,
        layout: &Layout,
    ) -> rustix::io::Result<XdpRx> {
        let (rx, fill) = map_rx(socket.as_fd(), &sizes)?;
        XdpRx::over(socket, rx, fill, layout)
    }

    /// Over rings that are mapped.
    pub(crate) fn over(
        socket: Arc<OwnedFd>,
        rx: Ring<Desc>,
        fill: Ring<u64>,
        layout: &Layout,
    ) -> rustix::io::Result<XdpRx> {
        let chunks = Chunks::new(layout)?;
        let (partial_csum, timestamps) = (false, false);
        let (consumed, frags) = (NS_BUF_CHANGED, false);
        Ok(XdpRx { rx, fill, socket, chunks, consumed, frags, partial_csum, timestamps })
    }

    /// For an interface whose XDP program has [timestamps](ringway_region::Timestamps): a frame that it has
    /// none for has 0 in front.
    pub fn with_timestamps(self) -> XdpRx {
        XdpRx { timestamps: true, ..self }
    }

    /// For a socket that takes packets of several buffers ([`crate::XskSocket::frags`]).
    pub fn with_frags(self) -> XdpRx {
        XdpRx { frags: true, ..self }
    }

    /// For an interface that leaves TCP's and UDP's checksums partial (`Xsk::partial_csum` of the set-up):
    /// they are completed, as they would be on a wire.
    pub fn with_csum_completion(self) -> XdpRx {
        XdpRx { partial_csum: true, ..self }
    }

    /// For a host ring: the flags of released slots stay.
    pub fn from_host(self) -> XdpRx {
        XdpRx { consumed: 0, ..self }
    }

    /// Gives the kernel the buffers of a ring that no program has yet, but for one: before the socket is
    /// bound, for a driver in zero-copy looks for them then. What another socket was given of them, which is
    /// no more, does not count.
    pub fn lend(&self, kring: &Kring) {
        XdpRx::take_back(kring);
        kring.sync(self);
    }

    /// The kernel has none of a ring's buffers any more: the socket that they were lent to is no more.
    pub fn take_back(kring: &Kring) {
        kring.owner().driver_cursor.store(0, Relaxed);
    }

    /// What the kernel has dropped since the socket was made.
    pub fn lost(&self) -> Lost {
        Lost::receiving(&self.socket, self.frags)
    }

    /// What to poll for POLLIN: the socket, readable while frames lie on the RX ring.
    pub fn wait_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Driver for XdpRx {
    fn sync(&self, kring: &Kring, Accepted { head, .. }: Accepted) {
        let (ring, hwtail) = (kring.ring(), kring.hwtail());
        let head = kring.within(head);
        let last = ring.prev(head);
        // The mark is the index plus one; 0 in a ring that was never synced.
        let posted = match kring.owner().driver_cursor.load(Relaxed) {
            0 => hwtail,
            mark => kring.bounded(mark - 1),
        };
        let mut fill = Producer::new(&self.fill);
        let posted = if posted == last { last } else { self.post(kring, &mut fill, posted, last) };
        if head != kring.hwcur() {
            // Released as well, although its turn to be posted comes with the next sync.
            self.consume(kring, last);
        }
        let hwtail = self.take(kring, hwtail, posted);
        if fill.needs_wakeup() && fill.pending() > 0 {
            // Whatever the answer, the buffers stay on the ring until the kernel wants them.
            let _ = kick_rx(&self.socket);
            kring.note(|c| &c.kicks, 1);
        }
        kring.csb().service.publish(head, hwtail);
    }
}

impl XdpRx {
    /// Gives the buffers of slots `[from, to)` to the kernel, as far as the FILL ring has room
    /// (always, unless a client scribbled over its indices); returns how far that is.
    #[inline]
    fn post(&self, kring: &Kring, fill: &mut Producer<u64, &Ring<u64>>, from: u32, to: u32) -> u32 {
        let ring = kring.ring();
        let room = fill.free(ring.distance(from, to));
        let reach = spares::reach(kring).min(ring.region().layout().bufs.total);
        let (mut at, mut posted) = (from, 0);
        if self.timestamps {
            clear_timestamps(kring, from, to);
        }
        while at != to && posted < room {
            let slot = ring.slot(at);
            if (2..reach).contains(&slot.buf_idx) {
                fill.write(posted, self.chunks.start(slot.buf_idx));
                kring.shadow(at).store(slot.buf_idx, Relaxed);
                posted += 1;
            } else if ring.buf(slot.buf_idx).is_some() {
                let Some(spare) = self.lend_spare(kring) else { break };
                fill.write(posted, self.chunks.start(spare));
                kring.shadow(at).store(spare | SPARE, Relaxed);
                posted += 1;
            } else {
                kring.shadow(at).store(NOTHING, Relaxed);
                kring.note(|c| &c.bad_slot, 1);
            }
            self.consume(kring, at);
            at = ring.next(at);
        }
        // First the mark: a process killed in between loses the use of some buffers, while a
        // successor that posts them again would have two frames written to one.
        kring.owner().driver_cursor.store(at + 1, Relaxed);
        fill.submit(posted);
        at
    }

    /// Takes off a slot the flags that a sync consumes.
    #[inline]
    fn consume(&self, kring: &Kring, at: u32) {
        let (ring, slot) = (kring.ring(), kring.ring().slot(at));
        if slot.flags & self.consumed != 0 {
            ring.set_slot(at, slot.buf_idx, slot.len, slot.flags & !self.consumed);
        }
    }

    /// Puts what has arrived into slots from `from` on, before `posted`; returns how far that is.
    #[inline]
    fn take(&self, kring: &Kring, from: u32, posted: u32) -> u32 {
        let ring = kring.ring();
        let offsets = self.chunks.offsets(kring);
        let mut rx = Consumer::new(&self.rx);
        let found = rx.available(ring.distance(from, posted));
        // Descriptors that were read, and those among them that name none of the ring's buffers.
        let (mut at, mut read, mut bad, mut bytes) = (from, 0, 0, 0);
        let mut copied = false;
        // What mostly is not to be done with a whole packet, and whether this one is lost.
        let moves = self.partial_csum || offsets.mask != 0;
        let (mut extra, mut lost) = (moves, false);
        // As of the end of the last packet that is whole, and what joins the next slot to it.
        let (mut whole, mut taken, mut joined) = (from, Taken::default(), 0);
        while at != posted {
            let expected = kring.shadow(at).load(Relaxed);
            if expected == NOTHING {
                ring.set_slot(at, ring.slot(at).buf_idx, 0, joined);
                at = ring.next(at);
                whole = if joined == 0 { at } else { whole };
                continue;
            }
            if read == found {
                break;
            }
            let desc = rx.read(read);
            read += 1;
            if self.partial_csum {
                self.prefetch(kring, &rx, read, found);
            }
            let buffer = self.chunks.chunk(desc.address);
            let mut is_spare = false;
            if buffer != u64::from(expected) {
                let Some(mark) = exchange(kring, at, posted, expected, buffer) else {
                    bad += 1;
                    if whole == at {
                        (taken.descriptors, taken.bad) = (read, bad);
                    }
                    continue;
                };
                is_spare = mark & SPARE != 0;
            }
            let mut length = desc.length.min(self.chunks.data_size);
            if self.chunks.offset(desc.address) != PLACE {
                if !is_whole(&rx, read - 1, found) {
                    break;
                }
                if !self.settle(kring, buffer as u32, &desc, lost) {
                    (length, lost, extra) = (0, true, true);
                }
            }
            joined = if desc.goes_on() { NS_MOREFRAG } else { 0 };
            let mut own = buffer as u32;
            if is_spare {
                (own, length) = self.bring(kring, at, own, length);
                copied = true;
            }
            ring.set_slot(at, own, length as u16, joined);
            bytes += u64::from(length);
            at = ring.next(at);
            if joined == 0 {
                (taken.descriptors, taken.bad) = (read, bad);
                if extra && !self.complete(kring, &offsets, whole, at, lost) {
                    (bytes, lost, extra) = (taken.bytes, false, moves);
                } else {
                    taken.packets += 1;
                    taken.bytes = bytes;
                }
                whole = at;
            }
        }
        if taken.descriptors > 0 {
            rx.release(taken.descriptors);
            if copied {
                spares::give_all_back(kring, from, whole, NOTHING);
            }
            kring.count(taken.packets);
            kring.note(|c| &c.bytes, taken.bytes);
            // Once, however often they were read with a packet whose end had not come.
            if taken.bad > 0 {
                kring.note(|c| &c.bad_slot, taken.bad);
            }
        }
        whole
    }

    /// Moves a part of a packet from where it lies to where its slot has it. False: that cannot be done, which is
    /// counted but where the packet `is_counted`. Once only, for it does not lie there any more: so not before the
    /// packet is whole.
    #[cold]
    #[inline(never)]
    fn settle(&self, kring: &Kring, buffer: u32, desc: &Desc, is_counted: bool) -> bool {
        let begin = self.chunks.offset(desc.address) as u32;
        if kring.ring().region().settle(buffer, begin, desc.length) {
            return true;
        }
        let in_chunk = u64::from(begin) + u64::from(desc.length) <= 1 << self.chunks.shift;
        if !is_counted {
            kring.note(|c| if in_chunk { &c.too_long } else { &c.bad_slot }, 1);
        }
        false
    }

    /// Does with the whole packet in slots `[from, to)` what is asked for on this ring. If it is `lost`, it has no
    /// length. False: it is lost.
    #[inline]
    fn complete(&self, kring: &Kring, offsets: &Offsets, from: u32, to: u32, lost: bool) -> bool {
        if lost {
            lose(kring, from, to);
        } else if self.partial_csum {
            self.finish(kring, from, to);
        }
        let fits = offsets.mask == 0 || self.shift(kring, offsets, from, to);
        if !fits {
            lose(kring, from, to);
            kring.note(|c| &c.too_long, 1);
        }
        !lost && fits
    }

    /// A spare buffer for the kernel, in place of a buffer that it does not reach.
    #[cold]
    #[inline(never)]
    fn lend_spare(&self, kring: &Kring) -> Option<u32> {
        let spare = spares::take(kring)?;
        if self.timestamps {
            kring.ring().set_timestamp(spare, 0);
        }
        Some(spare)
    }

    /// Copies a frame from a spare buffer to the buffer that the slot names; returns that one, and the frame's length.
    #[cold]
    fn bring(&self, kring: &Kring, at: u32, spare: u32, length: u32) -> (u32, u32) {
        let ring = kring.ring();
        let own = ring.slot(at).buf_idx;
        let (Some(from), Some(to)) = (ring.buf(spare), ring.buf(own)) else {
            // The program has written to a slot that was not its own.
            kring.note(|c| &c.bad_slot, 1);
            return (own, 0);
        };
        to.copy_from(&from, length as usize);
        if self.timestamps {
            ring.set_timestamp(own, ring.timestamp(spare).unwrap_or(0));
        }
        (own, length)
    }

    /// A frame that is looked at soon after `read`, if there is one before `found`.
    #[inline]
    fn prefetch(&self, kring: &Kring, rx: &Consumer<Desc, &Ring<Desc>>, read: u32, found: u32) {
        if read + AHEAD >= found {
            return;
        }
        let buffer = self.chunks.chunk(rx.read(read + AHEAD).address).try_into().ok();
        if let Some(buf) = buffer.and_then(|buffer| kring.ring().buf(buffer)) {
            buf.prefetch();
        }
    }

    /// Completes the checksum of the packet in slots `[from, to)`.
    #[inline]
    fn finish(&self, kring: &Kring, from: u32, to: u32) {
        let ring = kring.ring();
        let slots = iter::successors(Some(from), |&at| Some(ring.next(at)));
        finish(slots.take_while(|&at| at != to).filter_map(|at| {
            let slot = ring.slot(at);
            ring.buf(slot.buf_idx)?.part(0, slot.len.into())
        }));
    }

    /// Moves the data of slots `[from, to)` to where they say that it is to begin (S-OFF-5). Whether there is room for
    /// all.
    fn shift(&self, kring: &Kring, offsets: &Offsets, from: u32, to: u32) -> bool {
        let ring = kring.ring();
        let (mut at, mut all_fit) = (from, true);
        while at != to {
            let slot = ring.slot(at);
            let offset = offsets.read(slot.ptr);
            let ptr = offsets.write(slot.ptr, offset);
            if ptr != slot.ptr {
                ring.set_slot_ptr(at, ptr);
            }
            let fits = ring.buf(slot.buf_idx).is_some_and(|b| b.shift(offset, slot.len.into()));
            all_fit &= fits || slot.len == 0;
            at = ring.next(at);
        }
        all_fit
    }
}

/// Whether the packet that the descriptor `at` belongs to ends before `found`.
#[cold]
#[inline(never)]
fn is_whole(rx: &Consumer<Desc, &Ring<Desc>>, at: u32, found: u32) -> bool {
    (at..found).any(|at| !rx.read(at).goes_on())
}

/// The packet in slots `[from, to)` is lost, all of it: what there is would lack its beginning, or another part.
#[cold]
#[inline(never)]
fn lose(kring: &Kring, from: u32, to: u32) {
    let (ring, mut at) = (kring.ring(), from);
    while at != to {
        let slot = ring.slot(at);
        ring.set_slot(at, slot.buf_idx, 0, slot.flags);
        at = ring.next(at);
    }
}

/// What stands in front of the buffers of slots `[from, to)` is of another frame.
fn clear_timestamps(kring: &Kring, from: u32, to: u32) {
    let (ring, mut at) = (kring.ring(), from);
    while at != to {
        ring.set_timestamp(ring.slot(at).buf_idx, 0);
        at = ring.next(at);
    }
}

/// What a sync has taken off the RX ring.
#[derive(Clone, Copy, Default)]
struct Taken {
    descriptors: u32,
    /// Those among them that name none of the ring's buffers.
    bad: u64,
    packets: u32,
    bytes: u64,
}

/// Slot `at` is to get `wanted`, which this slot lent to the kernel as a spare one, or another one before `posted`
/// did: that one gets `expected`, which is still there. Returns the shadow word of `at`; `None`: no slot lent it.
#[cold]
fn exchange(kring: &Kring, at: u32, posted: u32, expected: u32, wanted: u64) -> Option<u32> {
    if wanted == u64::from(NOTHING) {
        // No buffer of any slot, although there are slots that have the same word for none.
        return None;
    }
    let spare = wanted | u64::from(SPARE);
    if spare == u64::from(expected) {
        return Some(expected);
    }
    let ring = kring.ring();
    let find = |wanted| find(kring, ring.next(at), posted, wanted);
    let (other, mark) = match find(wanted) {
        Some(other) => (other, wanted as u32),
        None => (find(spare)?, spare as u32),
    };
    // Where the kernel has a spare one, the buffer of the slot itself changes places with it.
    let named = |at, mark| if mark & SPARE == 0 { mark } else { ring.slot(at).buf_idx };
    let (own, others) = (named(at, expected), named(other, mark));
    kring.shadow(other).store(expected, Relaxed);
    // For a packet that is not whole this is looked at again.
    kring.shadow(at).store(mark, Relaxed);
    ring.set_slot(other, own, 0, 0);
    ring.set_slot(at, others, 0, 0);
    Some(mark)
}
