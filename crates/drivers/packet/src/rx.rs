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
use ringway_vnet::Error;
use rustix::time::{ClockId, DynamicClockId, Timespec, clock_gettime, clock_gettime_dynamic};

use crate::blocks::{Blocks, Captured, Found};
use crate::finish::{OffloadScratch, pieces};
use crate::listener::count_drops;
use crate::{Geometry, MAX_FRAGS, offsets};

/// Driver of an rx ring of an interface: any process that holds the socket and the region.
///
/// Frames come as on a wire: with their VLAN tags, with checksums, and no longer than the interface
/// sends them. Those that are longer than a buffer take several slots, NS_MOREFRAG on all but the
/// last. What fits no ring is dropped at once (`too_long`), as is a frame whose header asks for what cannot be
/// (`bad_offload`), and what the kernel dropped counts as `ring_full`. Of a frame
/// that is cut into more than the ring ever has room for, the parts that find none are dropped (`ring_full`).
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

    /// Counts what the kernel has dropped up to now.
    pub fn count_drops(&self, kring: &Kring) {
        count_drops(self.socket.as_fd(), kring);
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
        let (bytes, bad_slots) = (0, 0);
        let mut slots = Slots { kring, offsets, data_size, at: from, last, bytes, bad_slots, time };
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
        if frames != 0 {
            kring.count(frames);
            kring.note(|c| &c.bytes, slots.bytes);
        }
        if slots.bad_slots != 0 {
            kring.note(|c| &c.bad_slot, slots.bad_slots);
        }
        if losing {
            self.count_drops(kring);
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
            if slots.put(pieces.iter().flatten()) {
                return Some(1);
            }
            let total = pieces.iter().flatten().map(Buf::size).sum();
            return match slots.room_for(total, 0) {
                Some(_) => None,
                None => {
                    kring.note(|c| &c.too_long, 1);
                    Some(0)
                }
            };
        }
        let before = *slots;
        let (mut put, mut left) = (0, 0);
        // How many slots all that it is cut into takes; `None`: more than there ever are.
        let mut needed = None;
        let done = self.scratch.finish(frame, |piece| {
            if left == 0 && slots.put([piece].iter()) {
                put += 1;
                return;
            }
            if left == 0 {
                needed = Some(kring.ring().distance(before.at, slots.at));
            }
            needed = needed.and_then(|taken| before.room_for(piece.size(), taken));
            left += 1;
        });
        match done {
            Err(Error::NoRoom) => kring.note(|c| &c.too_long, 1),
            Err(_) => kring.note_bad_offload(1),
            Ok(()) if needed.is_some() => {
                *slots = before;
                return None;
            }
            Ok(()) => kring.note_shared(|c| &c.ring_full, left),
        }
        Some(put)
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
    let utc = clock_gettime(ClockId::Realtime);
    // Every kernel since 3.10 has it.
    whole_seconds(utc, clock_gettime_dynamic(DynamicClockId::Tai).unwrap_or(utc))
}

/// Between two clocks of which the second was looked at a moment later; not half a second.
fn whole_seconds(first: Timespec, second: Timespec) -> u64 {
    const SECOND: u64 = 1_000_000_000;
    let nanoseconds = |now: Timespec| now.tv_sec as u64 * SECOND + now.tv_nsec as u64;
    let between = nanoseconds(second).saturating_sub(nanoseconds(first));
    (between + SECOND / 2) / SECOND * SECOND
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
    /// Slots without a buffer that were passed.
    bad_slots: u64,
    /// When the frame was received that is put next, if that is to be put down.
    time: Option<u64>,
}

impl Slots<'_> {
    /// For a packet of `total` bytes, behind `taken` slots: how many slots are taken with it, once the program has released
    /// all that it holds. `None`: there are never so many. Those that it holds are expected to have buffers then.
    #[cold]
    fn room_for(&self, total: u32, taken: u32) -> Option<u32> {
        let ring = self.kring.ring();
        let (free, all) = (ring.distance(self.at, self.last), ring.num_slots() - 1);
        let (mut done, mut parts) = (0, 0);
        for n in taken..all {
            let slot = ring.slot(ring.advance(self.at, n));
            let offset = self.offsets.read(slot.ptr);
            let room = self.offsets.end(offset, self.data_size) - offset;
            if n < free && ring.buf(slot.buf_idx).and_then(|buf| buf.part(offset, room)).is_none() {
                continue;
            }
            done += room.min(total - done);
            parts += 1;
            if done == total {
                return Some(n + 1);
            }
            if parts == MAX_FRAGS {
                return None;
            }
        }
        None
    }

    /// Copies a frame that lies in pieces; false, with nothing done that counts, if there are too few
    /// slots.
    #[inline]
    fn put<'p>(&mut self, pieces: impl Iterator<Item = &'p Buf<'p>> + Clone) -> bool {
        let ring = self.kring.ring();
        let total: u32 = pieces.clone().map(Buf::size).sum();
        let (mut at, mut done, mut taken, mut bad_slots) = (self.at, 0, 0, 0);
        loop {
            if at == self.last || taken == MAX_FRAGS {
                return false;
            }
            let slot = ring.slot(at);
            let offset = self.offsets.read(slot.ptr);
            let room = self.offsets.end(offset, self.data_size) - offset;
            let Some(buf) = ring.buf(slot.buf_idx).and_then(|buf| buf.part(offset, room)) else {
                bad_slots += 1;
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
                // Here, however often a frame was tried before that found too few slots.
                self.bad_slots += bad_slots;
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
    use std::fs::File;

    use super::*;
    use crate::block::BlockCursor;
    use crate::blocks::written::{Laid, lay, ring as blocks};
    use crate::finish::tests::{CHECKSUM, DATAGRAMS, TAG, partial};
    use proptest::prelude::*;
    use ringway_abi::Dir;
    use ringway_kring::Outcome;
    use ringway_region::{Region, RingInit, Sizes};
    use ringway_vnet::Header;

    const HEADROOM: u32 = 16;
    const DATA_SIZE: u32 = 128 - HEADROOM;
    const BLOCKS: u32 = 3;

    /// A ring whose frames are those that a test lays into its blocks.
    struct Ring {
        kring: Kring,
        driver: PacketRx,
        offsets: Offsets,
        /// Frames that were laid, and the block for the next ones.
        laid: u32,
    }

    /// A frame as a program finds it: its bytes, and its time.
    type Taken = (Vec<u8>, u64);

    impl Ring {
        /// Slots whose `ptr` is this.
        fn new(slots: u32, agreed: Offsets, ptr: u64) -> Ring {
            let sizes = Sizes {
                if_size: 1024,
                if_num: 2,
                ring_size: 4608,
                ring_num: 2,
                buf_size: DATA_SIZE + HEADROOM,
                buf_num: 2 + slots,
            };
            let layout = Layout::new(&sizes, HEADROOM).unwrap();
            let region = Arc::new(Region::create(2, layout).unwrap());
            let init = RingInit { dir: Dir::Rx, ringid: 0, num_slots: slots };
            let bufs: Vec<u32> = (2..2 + slots).collect();
            let kring = Kring::create(&region, 0, &init, &bufs).unwrap();
            agreed.note(&kring);
            (0..slots).for_each(|slot| kring.ring().set_slot_ptr(slot, ptr));
            let geometry = Geometry { block_size: 16 << 10, blocks: BLOCKS };
            // What is not a socket has dropped nothing.
            let socket = Arc::new(File::open("/dev/null").unwrap().into());
            let (blocks, scratch) = (blocks(geometry), OffloadScratch::default());
            let timestamps = Some(Timestamps::Hardware);
            let driver = PacketRx { blocks, socket, scratch, data_size: DATA_SIZE, timestamps };
            let offsets = offsets(&kring, DATA_SIZE);
            Ring { kring, driver, offsets, laid: 0 }
        }

        fn sync(&self) {
            assert_eq!(self.kring.sync(&self.driver), Outcome::Done);
        }

        /// Whether the next block is the kernel's.
        fn has_room(&self) -> bool {
            let block = self.laid % BLOCKS;
            !self.driver.blocks.is_filled(BlockCursor { block, offset: 0 })
        }

        fn lay(&mut self, frames: &[Laid]) {
            assert!(self.has_room());
            lay(&self.driver.blocks, self.laid % BLOCKS, frames);
            self.laid += 1;
        }

        /// Up to `most` frames of those that are there; they are released at the next sync.
        fn take(&self, most: usize) -> Vec<Taken> {
            let ring = self.kring.ring();
            let (mut at, mut frames, mut bytes, mut time) =
                (ring.head(), Vec::new(), Vec::new(), None);
            while at != ring.tail() && frames.len() < most {
                let slot = ring.slot(at);
                let mut piece = vec![0; slot.len.into()];
                let buf = ring.buf(slot.buf_idx).unwrap();
                let data = buf.skip(self.offsets.read(slot.ptr)).unwrap();
                assert_eq!(data.copy_to(piece.len(), &mut piece), piece.len());
                bytes.extend(piece);
                time = time.or(ring.timestamp(slot.buf_idx));
                if slot.flags & NS_MOREFRAG == 0 {
                    frames.push((std::mem::take(&mut bytes), time.take().unwrap()));
                }
                at = ring.next(at);
            }
            assert!(bytes.is_empty(), "half a frame");
            ring.set_head(at);
            ring.set_cur(at);
            frames
        }

        fn counts(&self) -> [u64; 5] {
            let c = self.kring.counters();
            [&c.packets, &c.bytes, &c.bad_slot, &c.too_long, &c.ring_full].map(|c| c.load(Relaxed))
        }
    }

    /// Each frame's number is its time, and in its bytes.
    fn numbered(number: usize, length: usize) -> Laid {
        let bytes = (0..length).map(|i| (i * 7 + number) as u8).collect();
        let (status, nanoseconds) = (1 << 31, number as u32);
        Laid { status, nanoseconds, ..Laid::plain(bytes) }
    }

    fn time(number: usize) -> u64 {
        3_000_000_000 + number as u64
    }

    const NONE: Offsets = Offsets { mask: 0, max: 0, gap: 0 };
    /// What was agreed upon, what the slots say, what they say afterwards, and bytes that each has room for.
    const AGREED: [(Offsets, u64, u64, u32); 5] = [
        (NONE, 0xabcd, 0xabcd, DATA_SIZE),
        (Offsets { mask: 0xff, max: 40, gap: 0 }, 8, 8, DATA_SIZE - 8),
        (Offsets { mask: 0xff, max: 40, gap: 0 }, 0xabcd_00ff, 0xabcd_0028, DATA_SIZE - 40),
        (Offsets { mask: 0xff, max: 40, gap: 50 }, 30, 30, 50),
        // A buffer has not so many bytes.
        (Offsets { mask: 0xfff, max: 4000, gap: 0 }, 0xfff, DATA_SIZE as u64, 0),
    ];

    proptest! {
        /// Against a list: what the slots of the ring can hold at all comes in order, with its tag and its time, however
        /// the program takes it; the rest is counted.
        #[test]
        fn frames_come_in_their_order(
            frames in proptest::collection::vec((0usize..900, 0..8), 0..40),
            takes in proptest::collection::vec(0usize..4, 1..6), agreed in 0usize..5,
        ) {
            let (agreed, ptr, ptr_after, room) = AGREED[agreed];
            let mut ring = Ring::new(8, agreed, ptr);
            let (mut laid, mut expected, mut too_long, mut bytes) = (Vec::new(), Vec::new(), 0, 0);
            for (number, (length, kind)) in frames.into_iter().enumerate() {
                let mut frame = numbered(number, length);
                let mut whole = frame.bytes.clone();
                match kind {
                    0 => frame.missing = 1,
                    1 | 2 => frame.tag = Some(TAG),
                    _ => {}
                }
                if frame.tag.is_some() && length >= 12 {
                    whole.splice(12..12, TAG);
                }
                if frame.missing > 0 || whole.len() > 7 * room as usize {
                    too_long += 1;
                } else {
                    bytes += whole.len() as u64;
                    expected.push((whole, time(number)));
                }
                laid.push(frame);
            }
            let (mut found, mut takes, mut idle) = (Vec::new(), takes.into_iter().chain([2]).cycle(), 0);
            let mut chunks = laid.chunks(3).peekable();
            let mut rounds = 0;
            // Until all was seen, and the program has released all for some time.
            while chunks.peek().is_some() || idle < 20 {
                rounds += 1;
                prop_assert!(rounds < 2000, "blocks do not come back");
                if ring.has_room() && let Some(chunk) = chunks.next() {
                    ring.lay(chunk);
                }
                ring.sync();
                let taken = ring.take(takes.next().unwrap_or(1));
                idle = if taken.is_empty() { idle + 1 } else { 0 };
                found.extend(taken);
            }
            let count = expected.len() as u64;
            prop_assert_eq!(found, expected);
            prop_assert_eq!(ring.counts(), [count, bytes, 0, too_long, 0]);
            let slots = ring.kring.ring();
            let used = (0..slots.num_slots()).map(|at| slots.slot(at)).filter(|slot| slot.len < 128);
            for slot in used {
                prop_assert_eq!(slot.ptr, ptr_after);
            }
        }
    }

    /// S-FLAGS-NS_MOREFRAG: a frame has so many slots at most, even if more are free.
    #[test]
    fn a_frame_has_64_slots_at_most() {
        let mut ring = Ring::new(128, Offsets { mask: 0, max: 0, gap: 1 }, 0);
        ring.lay(&[numbered(0, 64), numbered(1, 65), numbered(2, 3)]);
        let mut found = Vec::new();
        (0..3).for_each(|_| {
            ring.sync();
            found.extend(ring.take(9));
        });
        assert_eq!(found.iter().map(|(bytes, _)| bytes.len()).collect::<Vec<_>>(), [64, 3]);
        assert_eq!(ring.counts(), [2, 67, 0, 1, 0]);
    }

    /// It is dropped at once, while the program holds slots, as it always may: others are behind it.
    #[test]
    fn what_never_fits_holds_up_nothing() {
        let cut = Laid { header: DATAGRAMS, ..Laid::plain(partial(&[7; 700])) };
        let one_byte = Offsets { mask: 0, max: 0, gap: 1 };
        // The cut one takes two slots for each of its seven parts, of which three have room.
        for (slots, agreed, frame, found, [too_long, ring_full]) in [
            (8, NONE, numbered(1, 7 * DATA_SIZE as usize + 1), vec![60, 61], [1, 0]),
            (128, one_byte, numbered(1, 65), vec![60, 61], [1, 0]),
            (8, NONE, cut, vec![60, 142, 142, 142], [0, 4]),
        ] {
            let length = |bytes: usize| if agreed.gap == 1 { bytes - 30 } else { bytes };
            let mut ring = Ring::new(slots, agreed, 0);
            ring.lay(&[numbered(0, length(60)), frame, numbered(2, length(61))]);
            ring.sync();
            let lengths: Vec<_> = ring.take(9).iter().map(|(bytes, _)| bytes.len()).collect();
            let found: Vec<_> = found.into_iter().map(length).collect();
            assert_eq!(lengths, found);
            assert_eq!(ring.counts()[2..], [0, too_long, ring_full]);
        }
    }

    /// It comes back in its turn, empty; within a frame, as a part of it.
    #[test]
    fn a_slot_without_a_buffer_comes_back_empty() {
        let mut ring = Ring::new(8, NONE, 0);
        let slots = ring.kring.ring().clone();
        [(0, 0), (2, u32::MAX)].iter().for_each(|(at, buf)| slots.set_slot(*at, *buf, 9, 0));
        ring.lay(&[numbered(0, 200)]);
        ring.sync();
        let found = [0, 1, 2, 3].map(|at| (slots.slot(at).len, slots.slot(at).flags));
        let (rest, more) = (200 - DATA_SIZE as u16, NS_MOREFRAG);
        assert_eq!(found, [(0, 0), (DATA_SIZE as u16, more), (0, more), (rest, 0)]);
        assert_eq!([0, 2].map(|at| slots.slot(at).buf_idx), [0, u32::MAX]);
        assert_eq!((slots.tail(), ring.counts()), (4, [1, 200, 2, 0, 0]));
    }

    /// A frame that finds too few slots is tried again by each sync: whole, or in the parts that it is cut into.
    #[test]
    fn a_slot_without_a_buffer_counts_once() {
        let cut = Laid { header: DATAGRAMS, ..Laid::plain(partial(&[7; 250])) };
        // Slots that are in use before it, and those that the frame takes.
        for (frame, used, slots) in [(numbered(9, 200), 5, 2), (cut, 4, 5)] {
            let mut ring = Ring::new(8, NONE, 0);
            ring.kring.ring().set_slot(used, u32::MAX, 0, 0);
            ring.lay(&(0..used as usize).map(|i| numbered(i, 60)).collect::<Vec<_>>());
            ring.lay(&[frame]);
            (0..3).for_each(|_| ring.sync());
            assert_eq!((ring.kring.ring().tail(), ring.counts()[2]), (used, 0));
            assert_eq!(ring.take(9).len(), used as usize);
            ring.sync();
            assert_eq!((ring.kring.ring().tail(), ring.counts()[2]), ((used + 1 + slots) % 8, 1));
        }
    }

    /// What the kernel left undone is done, in as many frames as it makes: all at once; of what the ring never has room
    /// for, as many as it has room for at the moment.
    #[test]
    fn frames_are_finished_when_there_is_room_for_all_of_them() {
        let mut ring = Ring::new(8, NONE, 0);
        let laid =
            |payload: usize, header| Laid { header, ..Laid::plain(partial(&vec![7; payload])) };
        let bad = Header { csum_start: 999, ..CHECKSUM };
        // Five slots of seven, then five again; one; none; and two for each of seven, when one is free.
        ring.lay(&[
            laid(250, DATAGRAMS),
            laid(250, DATAGRAMS),
            laid(60, CHECKSUM),
            laid(60, bad),
            laid(700, DATAGRAMS),
        ]);
        let rounds = [&[142, 142, 92][..], &[142, 142, 92, 102], &[], &[]];
        for (round, lengths) in rounds.into_iter().enumerate() {
            ring.sync();
            let found: Vec<_> = ring.take(9).iter().map(|(bytes, _)| bytes.len()).collect();
            assert_eq!(found, lengths, "{round}");
        }
        let bytes = 2 * (142 + 142 + 92) + 102;
        assert_eq!(ring.counts(), [7, bytes, 0, 0, 7]);
        assert_eq!(ring.kring.more_counters().bad_offload.load(Relaxed), 1);
    }

    /// Slots are reset as a sync does, and released.
    #[test]
    fn a_sync_consumes_what_the_program_said() {
        let mut ring = Ring::new(8, NONE, 0);
        ring.lay(&[numbered(0, 60), numbered(1, 60)]);
        ring.sync();
        let slots = ring.kring.ring().clone();
        slots.set_slot(0, 2, 60, NS_BUF_CHANGED | 0x10);
        assert_eq!(ring.take(9).len(), 2);
        ring.sync();
        assert_eq!((slots.slot(0).flags, ring.kring.hwcur(), slots.tail()), (0x10, 2, 2));
    }

    #[test]
    fn clocks_differ_by_whole_seconds() {
        let at = |tv_sec, tv_nsec| Timespec { tv_sec, tv_nsec };
        for (first, second, expected) in [
            (at(1000, 5), at(1000, 5), 0),
            (at(1000, 5), at(1037, 5), 37),
            (at(1000, 999_999_999), at(1038, 400_000_000), 37),
            (at(1000, 400_000_000), at(1037, 899_999_999), 37),
            (at(1000, 0), at(1037, 500_000_000), 38),
            (at(1000, 0), at(999, 0), 0),
        ] {
            assert_eq!(
                whole_seconds(first, second),
                expected * 1_000_000_000,
                "{first:?} {second:?}"
            );
        }
    }

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
