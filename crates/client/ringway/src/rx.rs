//! Receiving.

use std::num::NonZeroU64;

use ringway_abi::{NS_MOREFRAG, NS_TXMON};
use ringway_kring::Outcome;
use ringway_region::{Recorded, RingView, Slot};

use crate::{
    batch::{Batch, held},
    binding::{BoundRing, Stats},
    clock::tai_ahead,
    tx::{TxRing, TxSlot},
};

/// A receive ring. What was taken from it goes back with the next [`sync`](RxRing::sync).
///
/// ```
/// # use ringway_doc as Port;
/// let (mut a, mut b) = (Port::open("p{1")?, Port::open("p}1")?);
/// a.tx(0).push(&[7; 60]);
/// a.tx(0).sync();
///
/// let mut rx = b.rx(0);
/// assert_eq!((rx.sync(), rx.available()), (1, 1));
/// for frame in rx.batch(64) {
///     assert_eq!(frame.to_vec(), [7; 60]);
/// }
/// rx.sync(); // gives the slot back
/// assert_eq!(rx.stats().rx_packets, 1);
/// # Ok::<(), ringway::Error>(())
/// ```
#[derive(Debug)]
pub struct RxRing<'a> {
    bound: &'a BoundRing,
}

impl<'a> RxRing<'a> {
    pub(crate) fn new(bound: &'a BoundRing) -> RxRing<'a> {
        RxRing { bound }
    }

    pub(crate) fn ring(&self) -> &'a RingView {
        self.bound.kring().ring()
    }

    /// What the ring has done since the port was made.
    pub fn stats(&self) -> Stats {
        self.bound.stats()
    }

    /// Slots that hold packets, as of the last sync or wait.
    pub fn available(&self) -> usize {
        held(self.ring())
    }

    /// Of the first `max` slots, those before the end of the last packet that ends among them. To move
    /// just these keeps packets whole where there are several rings to move them to.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// let (mut a, mut b) = (Port::open("p{1")?, Port::open("p}1")?);
    /// for (mut slot, more) in a.tx(0).batch(3).zip([false, true, false]) {
    ///     slot.write_part(&[0; 60], more);
    /// }
    /// a.tx(0).sync();
    /// b.rx(0).sync();
    /// // A frame, and a packet of two slots:
    /// assert_eq!([b.rx(0).whole(3), b.rx(0).whole(2)], [3, 1]);
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn whole(&self, max: usize) -> usize {
        let ring = self.ring();
        let mut count = self.available().min(max);
        let goes_on = |count: usize| {
            let last = ring.advance(ring.head(), count as u32 - 1);
            ring.slot(last).flags & NS_MOREFRAG != 0
        };
        while count > 0 && goes_on(count) {
            count -= 1;
        }
        count
    }

    /// Up to `max` received slots, each of which is a frame, or a [part](RxFrame::more_fragments) of a
    /// longer one. Those that were looked at are released by the next sync; the others stay.
    pub fn batch(&mut self, max: usize) -> RxBatch<'_> {
        let batch = Batch::new(self.ring(), max);
        RxBatch { batch, bound: self.bound }
    }

    /// Takes the next packet, of one slot or several, into `packet`, in place of what is there. False if
    /// there is none, or its end has not come yet: then the next wait ends when there is more of it.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// let mut from = Port::open("p{1")?;
    /// let mut to = Port::open("p}1")?;
    /// from.tx(0).push(&[7; 5000]); // three slots of 2048 bytes
    /// from.tx(0).sync();
    ///
    /// to.wait_rx(None)?;
    /// let mut packet = Vec::new();
    /// assert!(to.rx(0).pop(&mut packet));
    /// assert_eq!(packet, [7; 5000]);
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn pop(&mut self, packet: &mut Vec<u8>) -> bool {
        let (ring, available) = (self.ring(), self.available() as u32);
        let ends = |n: &u32| ring.slot(ring.advance(ring.head(), *n)).flags & NS_MOREFRAG == 0;
        let Some(last) = (0..available).find(ends) else {
            self.slots().await_more();
            return false;
        };
        packet.clear();
        for part in self.batch(last as usize + 1) {
            let begin = packet.len();
            packet.resize(begin + part.len(), 0);
            let copied = part.copy_to(&mut packet[begin..]);
            packet.truncate(begin + copied);
        }
        true
    }

    /// Gives back what was taken, and learns what has arrived. Returns how many slots hold
    /// packets now. Does not wait.
    #[inline]
    pub fn sync(&mut self) -> usize {
        let _: Outcome = self.bound.sync();
        let available = self.available();
        self.bound.looked(available > 0);
        available
    }
}

/// What [`RxRing::forward`] has moved.
///
/// ```
/// # use ringway_doc as Port;
/// use ringway::Forwarded;
///
/// let (mut from, mut to) = (Port::open("vale0:a")?, Port::open("vale1:a")?);
/// let Forwarded { packets, bytes, misfits, .. } = from.rx(0).forward(&mut to.tx(0), 64, false);
/// assert_eq!([packets, bytes, misfits], [0; 3], "nothing has come");
/// # Ok::<(), ringway::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Forwarded {
    /// Whole packets, and their bytes.
    pub packets: u64,
    /// See `packets`.
    pub bytes: u64,
    /// Packets that were dropped: with a slot that no buffer of the other port holds, or longer than its ring.
    pub misfits: u64,
}

impl RxRing<'_> {
    /// Sends the packets that begin in the first `slots` slots on by another port, whole, and in their order: without
    /// copying if both ports share a region, unless `copy` is wanted. A packet that finds too little room stays, with
    /// those behind it. One with a slot that no buffer of the other port holds, or with more slots than its ring has
    /// room for at all, is dropped as a whole. A packet whose end has not come is begun with those of these slots that
    /// find room; [`whole`](Self::whole) leaves it out. In a capture file, packets keep the time and the length on the
    /// wire that another file has of them, and the time at which a monitor has seen them.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// let (mut from, mut to) = (Port::open("vale0:a")?, Port::open("vale1:a")?);
    /// let (mut rx, mut tx) = (from.rx(0), to.tx(0));
    /// let room = tx.space();
    /// let forwarded = rx.forward(&mut tx, room, false);
    /// tx.sync();
    /// rx.sync();
    /// println!("{} packets went on, {} did not fit", forwarded.packets, forwarded.misfits);
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn forward(&mut self, to: &mut TxRing<'_>, slots: usize, copy: bool) -> Forwarded {
        let mut forwarded = Forwarded::default();
        let recorded = self.times_for(to);
        let longest = to.ring().num_slots() as usize - 1;
        let mut free = to.batch(usize::MAX);
        // Slots that are looked at are released, sent on or not.
        let mut frames = self.batch(usize::MAX);
        let mut left = slots;
        let mut is_short = false;
        while left > 0 {
            let (mut count, is_whole) = frames.packet();
            let room = free.size_hint().0;
            if !is_whole {
                count = count.min(left).min(room);
            }
            let mut lost = count > longest;
            is_short = count > room && !lost;
            if count == 0 || is_short {
                break;
            }
            left = left.saturating_sub(count);
            let mut bytes = 0;
            let mut first = None;
            for (taken, frame) in (1..).zip(frames.by_ref().take(count)) {
                if lost {
                    continue;
                }
                let Some(mut slot) = free.next() else { break };
                bytes += frame.len() as u64;
                let known = if taken == 1 { recorded.of(&frame) } else { None };
                let fits =
                    if copy { frame.forward_copy(&mut slot) } else { frame.forward(&mut slot) };
                first = known.map(|known| (known, slot)).or(first);
                if !fits {
                    free.take_back(taken);
                    lost = true;
                }
            }
            if lost {
                forwarded.misfits += 1;
            } else if is_whole {
                forwarded.packets += 1;
                forwarded.bytes += bytes;
                if let Some((known, mut slot)) = first {
                    let length = known.length.max(bytes as u32);
                    slot.set_recorded(Recorded { length, ..known });
                }
            }
        }
        drop((frames, free));
        if is_short {
            to.slots().await_more();
        }
        forwarded
    }

    /// What packets take along to another port.
    fn times_for(&self, to: &TxRing<'_>) -> Times {
        if !to.is_file() {
            return Times::None;
        }
        match self.bound.has_times_of_monitor() {
            _ if self.bound.is_file() => Times::Recorded,
            true => Times::Seen { ahead: tai_ahead().unsigned_abs() * 1_000_000_000 },
            false => Times::None,
        }
    }
}

/// Where what a capture file has of packets comes from.
#[derive(Clone, Copy)]
enum Times {
    None,
    /// Another file.
    Recorded,
    /// A monitor, whose times are ahead of those since 1970.
    Seen {
        ahead: u64,
    },
}

impl Times {
    /// What is known of the packet that begins with `frame`.
    #[inline]
    fn of(self, frame: &RxFrame<'_>) -> Option<Recorded> {
        match self {
            Times::None => None,
            Times::Recorded => frame.recorded(),
            Times::Seen { ahead } => {
                let time = frame.timestamp()?.get().checked_sub(ahead)?;
                Some(Recorded { time, length: 0 })
            }
        }
    }
}

/// Received slots; see [`RxRing::batch`].
///
/// ```
/// # use ringway_doc as Port;
/// let mut port = Port::open("vale0:a")?;
/// let bytes: usize = port.rx(0).batch(64).map(|frame| frame.len()).sum();
/// assert_eq!(bytes, 0, "nothing has come");
/// # Ok::<(), ringway::Error>(())
/// ```
#[derive(Debug)]
pub struct RxBatch<'r> {
    batch: Batch<'r>,
    bound: &'r BoundRing,
}

impl RxBatch<'_> {
    /// Slots of the next packet, and whether its end is among them.
    #[inline]
    fn packet(&self) -> (usize, bool) {
        self.batch.packet()
    }
}

impl<'r> Iterator for RxBatch<'r> {
    type Item = RxFrame<'r>;

    #[inline]
    fn next(&mut self) -> Option<RxFrame<'r>> {
        let (ring, bound) = (self.batch.ring(), self.bound);
        self.batch.take().map(|index| RxFrame { ring, index, bound })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.batch.left(), Some(self.batch.left()))
    }
}

/// One received slot. Its buffer stays ours until the ring's next sync.
///
/// ```
/// # use ringway_doc as Port;
/// let (mut a, mut b) = (Port::open("p{1")?, Port::open("p}1")?);
/// a.tx(0).push(b"\xff\xff\xff\xff\xff\xff\x02\0\0\0\0\x01\x88\xb5 and more");
/// a.tx(0).sync();
/// b.rx(0).sync();
/// for frame in b.rx(0).batch(64) {
///     let ethertype = frame.read(12).map(u16::from_be_bytes);
///     assert_eq!((frame.len(), ethertype), (23, Some(0x88b5)));
///     let mut head = [0; 14];
///     assert_eq!(frame.copy_to(&mut head), 14);
///     assert!(frame.to_vec().ends_with(b"and more"));
/// }
/// # Ok::<(), ringway::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct RxFrame<'r> {
    ring: &'r RingView,
    index: u32,
    bound: &'r BoundRing,
}

impl<'r> RxFrame<'r> {
    #[inline]
    pub(crate) fn slot(&self) -> Slot {
        self.ring.slot(self.index)
    }

    pub(crate) fn ring(&self) -> &'r RingView {
        self.ring
    }

    pub(crate) fn index(&self) -> u32 {
        self.index
    }

    /// Bytes of the frame; no more than its buffer holds.
    #[inline]
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        let slot = self.slot();
        self.ring.buf(slot.buf_idx).map_or(0, |buf| buf.size().min(slot.len.into())) as usize
    }

    /// Whether the packet goes on in the next slot.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// let mut port = Port::open("vale0:a")?;
    /// let mut packet = Vec::new();
    /// for part in port.rx(0).batch(64) {
    ///     packet.extend(part.to_vec());
    ///     if !part.more_fragments() {
    ///         println!("a packet of {} bytes", packet.len());
    ///         packet.clear();
    ///     }
    /// }
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn more_fragments(&self) -> bool {
        self.slot().flags & NS_MOREFRAG != 0
    }

    /// Of a monitor's frame: whether the monitored port has sent it, rather than received.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// let mut port = Port::open("vale0:a")?;
    /// let mut monitor = Port::open("vale0:a/rt")?;
    /// port.tx(0).push(&[0xff; 60]);
    /// port.tx(0).sync();
    /// monitor.wait_rx(None)?;
    /// for frame in monitor.rx(0).batch(64) {
    ///     assert!(frame.was_sent());
    /// }
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn was_sent(&self) -> bool {
        self.slot().flags & NS_TXMON != 0
    }

    /// When the packet that begins with this frame was received, in nanoseconds of the clock that
    /// was [asked for](crate::OpenOptions::timestamps). `None` if none was, or the NIC does not
    /// know. Of a monitor: when the monitored port received or sent the packet, by that clock, or
    /// else by CLOCK_TAI. Of a capture file: when it says that the packet came, since 1970, where
    /// its buffers have room for that.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// let mut port = Port::open("vale0:a")?;
    /// let mut monitor = Port::open("vale0:a/t")?;
    /// port.tx(0).push(&[0xff; 60]);
    /// port.tx(0).sync();
    /// monitor.wait_rx(None)?;
    /// for frame in monitor.rx(0).batch(64) {
    ///     println!("sent at {:?} ns", frame.timestamp());
    /// }
    /// # Ok::<(), ringway::Error>(())
    /// ```
    #[inline]
    pub fn timestamp(&self) -> Option<NonZeroU64> {
        self.bound.timestamp(self.index)
    }

    /// What a capture file says of the packet that begins with this frame: when it came, and how
    /// long it was on the wire. `None` where it comes from no file, or buffers have no room for
    /// that.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// // Of a port that may be a capture file: there is nothing about frames of others.
    /// let mut port = Port::open("vale0:a")?;
    /// for frame in port.rx(0).batch(64) {
    ///     let length = frame.recorded().map_or(frame.len(), |recorded| recorded.length as usize);
    ///     println!("{length} bytes on the wire");
    /// }
    /// # Ok::<(), ringway::Error>(())
    /// ```
    #[inline]
    pub fn recorded(&self) -> Option<Recorded> {
        if self.bound.is_file() { self.ring.recorded(self.slot().buf_idx) } else { None }
    }

    /// Copies the frame out, as far as `to` holds it; returns how many bytes that were.
    #[inline]
    pub fn copy_to(&self, to: &mut [u8]) -> usize {
        let slot = self.slot();
        self.ring.buf(slot.buf_idx).map_or(0, |buf| buf.copy_to(slot.len.into(), to))
    }

    /// The frame, copied out.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.len()];
        let n = self.copy_to(&mut bytes);
        bytes.truncate(n);
        bytes
    }

    /// `N` bytes at an offset, if the frame has them.
    #[inline]
    pub fn read<const N: usize>(&self, offset: usize) -> Option<[u8; N]> {
        let slot = self.slot();
        let inside = offset.checked_add(N)? <= usize::from(slot.len);
        self.ring.buf(slot.buf_idx).filter(|_| inside)?.read(offset)
    }

    /// First byte of the frame, which has [`len`](Self::len) bytes; `None` if the slot names no buffer.
    /// It stays mapped as long as the port is open, and is this frame's until the ring's next sync.
    /// Other programs with the region may write to it at any time.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// let mut port = Port::open("vale0:a")?;
    /// for frame in port.rx(0).batch(64) {
    ///     if let Some(first) = frame.as_ptr().filter(|_| frame.len() >= 14) {
    ///         // SAFETY: the frame has 14 bytes, and is this program's until the ring's next sync. A switch's port has
    ///         // memory of its own, which no other program has.
    ///         let ethertype = unsafe { first.add(12).cast::<[u8; 2]>().read_volatile() };
    ///         println!("{ethertype:02x?}");
    ///     }
    /// }
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn as_ptr(&self) -> Option<*const u8> {
        self.ring.buf(self.slot().buf_idx).map(|buf| buf.as_ptr().cast_const())
    }

    /// Sends the frame on through `slot`: without copying if both ports share a region, else
    /// by a copy. False if the frame does not fit the other port's buffers; the slot is then
    /// sent empty.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// let mut from = Port::open("p{1")?;
    /// let mut to = Port::open("p{2")?;
    /// assert!(from.shares_region_with(&to));
    /// let (mut rx, mut tx) = (from.rx(0), to.tx(0));
    /// let room = tx.space();
    /// for (frame, mut slot) in rx.batch(room).zip(tx.batch(room)) {
    ///     frame.forward(&mut slot);
    /// }
    /// # Ok::<(), ringway::Error>(())
    /// ```
    #[inline]
    pub fn forward(&self, slot: &mut TxSlot<'_>) -> bool {
        slot.take_from(self)
    }

    /// As [`forward`](Self::forward), but by a copy even where none is needed: the frame stays
    /// in its buffer.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// let (mut from, mut to) = (Port::open("p{1")?, Port::open("p{2")?);
    /// let (mut rx, mut tx) = (from.rx(0), to.tx(0));
    /// let room = tx.space();
    /// for (frame, mut slot) in rx.batch(room).zip(tx.batch(room)) {
    ///     frame.forward_copy(&mut slot);
    ///     println!("{:?} is still there", frame.to_vec());
    /// }
    /// # Ok::<(), ringway::Error>(())
    /// ```
    #[inline]
    pub fn forward_copy(&self, slot: &mut TxSlot<'_>) -> bool {
        slot.copy_from(self)
    }
}
