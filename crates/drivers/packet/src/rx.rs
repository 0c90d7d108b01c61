//! Receiving: frames are copied out of the kernel's blocks into the buffers of released slots.
//!
//! ```text
//!   hwtail .. prev(head)  released, to be filled
//!   head   .. hwtail      the program's
//! ```
//!
//! The driver's mark is the place in the ring of blocks, so that any process that has the rings goes
//! on where the last one stopped.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, atomic::Ordering::Relaxed};

use ringway_abi::{NS_BUF_CHANGED, NS_MOREFRAG};
use ringway_kring::{Accepted, Driver, Kring, Offsets};
use ringway_region::{Buf, Layout, Timestamps};
use rustix::time::{ClockId, DynamicClockId, Timespec, clock_gettime, clock_gettime_dynamic};

use crate::blocks::{Blocks, Captured, Found};
use crate::finish::{OffloadScratch, pieces};
use crate::{Geometry, MAX_FRAGS, offsets, sys};

/// Driver of an rx ring of an interface: any process that holds the socket and the region.
///
/// Frames come as on a wire: with their VLAN tags, with checksums, and no longer than the interface
/// sends them. Those that are longer than a buffer take several slots, NS_MOREFRAG on all but the
/// last. What fits no ring is dropped (`too_long`), and what the kernel dropped counts as `ring_full`.
///
/// A released slot that names no buffer (`bad_slot`) comes back in its turn with length 0. A sync makes
/// no system call unless the kernel has dropped frames.
pub struct PacketRx {
    blocks: Blocks,
    socket: Arc<OwnedFd>,
    scratch: OffloadScratch,
    data_size: u32,
    timestamps: Option<Timestamps>,
}

impl PacketRx {
    /// Maps the ring of a socket that receives.
    ///
    /// Errors: EINVAL when the socket has no such ring; ENOMEM.
    pub fn new(socket: Arc<OwnedFd>, geometry: Geometry, layout: &Layout) -> io::Result<PacketRx> {
        let blocks = Blocks::map(socket.as_fd(), geometry)?;
        let (scratch, data_size) = (OffloadScratch::default(), layout.data_size());
        Ok(PacketRx { blocks, socket, scratch, data_size, timestamps: None })
    }

    /// Puts down when each frame was received; those of the hardware are for a socket that was
    /// opened for them.
    pub fn with_timestamps(self, timestamps: Option<Timestamps>) -> PacketRx {
        PacketRx { timestamps, ..self }
    }

    /// What to poll for POLLIN: the socket, readable while there are blocks to read.
    pub fn wait_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Counts what the kernel has dropped up to now, unless another thread is doing so.
    pub fn count_drops(&self, kring: &Kring) {
        if let Some(_guard) = kring.try_lock() {
            self.note_drops(kring);
        }
    }

    fn note_drops(&self, kring: &Kring) {
        // It fails for a broken descriptor alone, by which nothing is received either.
        let drops = sys::take_drops(self.socket.as_fd()).unwrap_or(0);
        if drops > 0 {
            kring.note(|c| &c.ring_full, drops.into());
        }
    }
}

impl Driver for PacketRx {
    fn sync(&self, kring: &Kring, Accepted { head, .. }: Accepted) {
        let head = kring.within(head);
        kring.consume(kring.hwcur(), head, NS_BUF_CHANGED);
        let hwtail = self.take(kring, kring.hwtail(), kring.ring().prev(head));
        kring.csb().service.publish(head, hwtail);
    }
}

impl PacketRx {
    /// Puts what has arrived into slots from `from` on, before `last`; returns how far that is.
    #[inline]
    fn take(&self, kring: &Kring, from: u32, last: u32) -> u32 {
        let offsets = offsets(kring, self.data_size);
        let (data_size, time) = (self.data_size, None);
        let mut slots = Slots { kring, offsets, data_size, at: from, last, bytes: 0, time };
        let clock = self.timestamps.map(Clock::new);
        let mark = &kring.owner().driver_cursor;
        let was = mark.load(Relaxed);
        let (mut place, mut losing, mut frames) = (self.blocks.place(was), false, 0);
        while slots.at != last {
            match self.blocks.look(&mut place, &mut losing) {
                Found::Nothing => break,
                Found::End => {
                    let done = place;
                    place = self.blocks.next_block(place);
                    // First the mark: a process killed in between costs the use of a block, for a
                    // while. The other way round its successor would wait for one that is far off.
                    mark.store(place.mark(), Relaxed);
                    self.blocks.give_back(done);
                }
                Found::Frame(frame) => {
                    slots.time = clock.map(|clock| clock.time(&frame));
                    let Some(taken) = self.deliver(kring, &mut slots, &frame) else { break };
                    frames += taken;
                    place = self.blocks.behind(place, frame.next);
                }
            }
        }
        if place.mark() != was {
            mark.store(place.mark(), Relaxed);
        }
        if frames > 0 {
            kring.count(frames);
            kring.note(|c| &c.bytes, slots.bytes);
        }
        if losing {
            self.note_drops(kring);
        }
        slots.at
    }

    /// Puts one frame into slots; returns as how many. `None`: there are too few for it, as yet.
    #[inline]
    fn deliver(&self, kring: &Kring, slots: &mut Slots<'_>, frame: &Captured<'_>) -> Option<u32> {
        if !frame.whole {
            kring.note(|c| &c.too_long, 1);
            return Some(0);
        }
        if frame.header.is_plain() {
            let mut tag = [0; 4];
            let pieces = pieces(frame, &mut tag);
            return match slots.put(pieces.iter().flatten()) {
                true => Some(1),
                false => self.lacks_room(kring, slots, 1).then_some(0),
            };
        }
        let (start, bytes) = (slots.at, slots.bytes);
        let (mut put, mut left) = (0, 0);
        let good =
            self.scratch.finish(frame, |piece| match left == 0 && slots.put([piece].iter()) {
                true => put += 1,
                false => left += 1,
            });
        if !good {
            kring.note(|c| &c.too_long, 1);
        } else if left > 0 && !(Slots { at: start, ..*slots }).is_all() {
            (slots.at, slots.bytes) = (start, bytes);
            return None;
        } else if left > 0 {
            kring.note(|c| &c.ring_full, left);
        }
        Some(put)
    }

    /// Whether a frame for which there is no room will never have any: then it is dropped.
    #[cold]
    fn lacks_room(&self, kring: &Kring, slots: &Slots<'_>, frames: u64) -> bool {
        let never = slots.is_all();
        if never {
            kring.note(|c| &c.too_long, frames);
        }
        never
    }
}

/// Tells when frames were received.
#[derive(Clone, Copy)]
pub(crate) struct Clock {
    kind: Timestamps,
    /// Nanoseconds by which CLOCK_TAI is ahead of the kernel's timestamps.
    ahead: u64,
}

impl Clock {
    pub fn new(kind: Timestamps) -> Clock {
        Clock { kind, ahead: tai_ahead() }
    }

    pub fn time(self, frame: &Captured<'_>) -> u64 {
        match self.kind {
            Timestamps::Software => frame.time + self.ahead,
            Timestamps::Hardware if frame.by_hardware => frame.time,
            Timestamps::Hardware => 0,
        }
    }
}

/// By how much CLOCK_TAI is ahead of CLOCK_REALTIME: whole seconds, in nanoseconds.
fn tai_ahead() -> u64 {
    let nanoseconds = |now: Timespec| now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
    let utc = nanoseconds(clock_gettime(ClockId::Realtime));
    // Every kernel since 3.10 has it.
    let tai = clock_gettime_dynamic(DynamicClockId::Tai).map_or(utc, nanoseconds);
    // The second look was a moment later; not half a second.
    (tai.saturating_sub(utc) + 500_000_000) / 1_000_000_000 * 1_000_000_000
}

/// The slots to be filled: `at` up to `last`, not included.
#[derive(Clone, Copy)]
struct Slots<'a> {
    kring: &'a Kring,
    offsets: Offsets,
    data_size: u32,
    at: u32,
    last: u32,
    /// Bytes put so far.
    bytes: u64,
    /// When the frame was received that is put next, if that is to be put down.
    time: Option<u64>,
}

impl Slots<'_> {
    /// Whether these are all that the ring can ever have.
    fn is_all(&self) -> bool {
        let ring = self.kring.ring();
        ring.next(self.last) == self.at
    }

    /// Copies a frame that lies in pieces; false, with nothing done that counts, if there are too few
    /// slots.
    #[inline]
    fn put<'p>(&mut self, pieces: impl Iterator<Item = &'p Buf<'p>> + Clone) -> bool {
        let (kring, ring) = (self.kring, self.kring.ring());
        let total: u32 = pieces.clone().map(Buf::size).sum();
        let (mut at, mut done, mut taken) = (self.at, 0, 0);
        loop {
            if at == self.last || taken == MAX_FRAGS {
                return false;
            }
            let slot = ring.slot(at);
            let offset = self.offsets.read(slot.ptr);
            let room = self.offsets.end(offset, self.data_size) - offset;
            let Some(buf) = ring.buf(slot.buf_idx).and_then(|buf| buf.part(offset, room)) else {
                kring.note(|c| &c.bad_slot, 1);
                ring.set_slot(at, slot.buf_idx, 0, if done == 0 { 0 } else { NS_MOREFRAG });
                at = ring.next(at);
                continue;
            };
            let length = room.min(total - done);
            if done == 0
                && let Some(time) = self.time
            {
                ring.set_timestamp(slot.buf_idx, time);
            }
            copy_range(pieces.clone(), done, length, &buf);
            done += length;
            taken += 1;
            let flags = if done < total { NS_MOREFRAG } else { 0 };
            ring.set_slot(at, slot.buf_idx, length as u16, flags);
            let ptr = self.offsets.write(slot.ptr, offset);
            if ptr != slot.ptr {
                ring.set_slot_ptr(at, ptr);
            }
            at = ring.next(at);
            if done == total {
                self.at = at;
                self.bytes += u64::from(total);
                return true;
            }
        }
    }
}

/// Copies `length` bytes from `from` on, counted over all pieces, to the start of `to`.
#[inline]
fn copy_range<'p>(
    pieces: impl Iterator<Item = &'p Buf<'p>>,
    mut from: u32,
    length: u32,
    to: &Buf<'_>,
) {
    let mut filled = 0;
    for piece in pieces {
        let n = piece.size().saturating_sub(from).min(length - filled);
        if let (Some(source), Some(room)) = (piece.part(from.min(piece.size()), n), to.skip(filled))
        {
            room.copy_from(&source, n as usize);
        }
        filled += n;
        from = from.saturating_sub(piece.size());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringway_vnet::Header;

    #[test]
    fn times_are_those_of_tai_or_of_the_hardware() {
        let of = |kind, by_hardware| {
            let (data, header) = (Buf::of(&mut []), Header::default());
            let frame =
                Captured { data, header, tag: None, whole: true, time: 5, by_hardware, next: 0 };
            Clock { kind, ahead: 37_000_000_000 }.time(&frame)
        };
        assert_eq!([true, false].map(|by| of(Timestamps::Software, by)), [37_000_000_005; 2]);
        assert_eq!([true, false].map(|by| of(Timestamps::Hardware, by)), [5, 0]);
    }

    /// A moment of CLOCK_REALTIME before one of CLOCK_TAI is so many whole seconds earlier, and one behind it
    /// later.
    #[test]
    fn tai_is_ahead_by_whole_seconds() {
        let nanoseconds = |now: Timespec| now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
        let utc = || nanoseconds(clock_gettime(ClockId::Realtime));
        let ahead = tai_ahead();
        let before = utc();
        let tai = nanoseconds(clock_gettime_dynamic(DynamicClockId::Tai).unwrap());
        assert!((before + ahead..=utc() + ahead).contains(&tai), "{ahead}");
        assert_eq!(ahead % 1_000_000_000, 0);
    }

    /// Against slices: what is between two places of all pieces together, wherever they begin and end.
    #[test]
    fn a_range_of_pieces_is_copied() {
        let bytes: Vec<u8> = (1..=40).collect();
        for cuts in [[0, 0], [0, 40], [5, 5], [12, 16], [40, 40], [1, 39]] {
            let mut all = bytes.clone();
            let (first, rest) = all.split_at_mut(cuts[0]);
            let (second, third) = rest.split_at_mut(cuts[1] - cuts[0]);
            let pieces = [Buf::of(first), Buf::of(second), Buf::of(third)];
            for from in 0..=40 {
                for length in 0..=40 - from {
                    let mut to = [0; 42];
                    copy_range(pieces.iter(), from as u32, length as u32, &Buf::of(&mut to));
                    assert_eq!(to[..length], bytes[from..from + length], "{cuts:?} {from}");
                    assert!(to[length..].iter().all(|byte| *byte == 0), "{cuts:?} {from} {length}");
                }
            }
        }
    }
}
