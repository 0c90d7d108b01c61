//! Sending.

#[cfg(feature = "files")]
use std::sync::atomic::Ordering::Relaxed;

use ringway_abi::{NS_BUF_CHANGED, NS_MOREFRAG};
use ringway_kring::Outcome;
use ringway_region::{Recorded, RingView};

use crate::{
    batch::{Batch, held},
    binding::{BoundRing, Stats},
    rx::RxFrame,
};

/// A transmit ring. What is put into it goes out with the next [`sync`](TxRing::sync).
///
/// ```
/// # use ringway_doc as Port;
/// let mut port = Port::open("p{1")?;
/// let mut tx = port.tx(0);
/// while tx.space() > 0 {
///     assert!(tx.push(&[0; 60]));
/// }
/// tx.sync();
/// println!("{} frames wait for the other end to take them", tx.pending());
/// assert_eq!(tx.stats().tx_packets as usize, tx.pending());
/// # Ok::<(), ringway::Error>(())
/// ```
#[derive(Debug)]
pub struct TxRing<'a> {
    bound: &'a BoundRing,
}

impl<'a> TxRing<'a> {
    pub(crate) fn new(bound: &'a BoundRing) -> TxRing<'a> {
        TxRing { bound }
    }

    pub(crate) fn ring(&self) -> &'a RingView {
        self.bound.kring().ring()
    }

    pub(crate) fn is_file(&self) -> bool {
        self.bound.is_file()
    }

    /// What the ring has done since the port was made.
    pub fn stats(&self) -> Stats {
        self.bound.stats()
    }

    /// Slots that can be filled now.
    pub fn space(&self) -> usize {
        held(self.ring())
    }

    /// Slots that are filled and have not come back: those not synced yet, and those that the other
    /// side has not taken.
    pub fn pending(&self) -> usize {
        (self.ring().num_slots() as usize - 1).saturating_sub(self.space())
    }

    /// Copies one frame into the next slot, or, if it is longer than a buffer, into as many slots as it
    /// takes. False if there is no room for it: nothing is sent then. A frame that is longer than all
    /// slots of the ring never has room. A switch drops frames of more than 64 slots, and counts them.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// let mut port = Port::open("vale0:a")?;
    /// let longer_than_a_buffer = vec![0xff; port.max_frame() + 1];
    /// let mut tx = port.tx(0);
    /// let room = tx.space();
    /// assert!(tx.push(&[0xff; 60]) && tx.push(&longer_than_a_buffer));
    /// assert_eq!(tx.space(), room - 3);
    /// tx.sync();
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn push(&mut self, frame: &[u8]) -> bool {
        let mut batch = self.batch(1);
        let Some(mut slot) = batch.next() else { return false };
        let whole = slot.write(frame);
        if !whole {
            batch.batch.give_up();
            drop(batch);
            return self.push_parts(frame);
        }
        whole
    }

    #[cold]
    fn push_parts(&mut self, frame: &[u8]) -> bool {
        let parts = frame.chunks(self.ring().region().layout().data_size() as usize);
        let count = parts.len();
        let mut batch = self.batch(count);
        // A single slot that did not take it has no buffer.
        let whole = count > 1
            && batch.batch.left() == count
            && (1..).zip(parts).all(|(n, part)| {
                batch.next().is_some_and(|mut slot| slot.write_part(part, n < count))
            });
        if !whole {
            batch.batch.give_up();
        }
        whole
    }

    /// Up to `max` free slots, to fill one after the other. Every slot taken is sent.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// let mut port = Port::open("vale0:a")?;
    /// let mut tx = port.tx(0);
    /// for mut slot in tx.batch(256) {
    ///     slot.write(&[0xff; 60]);
    /// }
    /// tx.sync();
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn batch(&mut self, max: usize) -> TxBatch<'_> {
        TxBatch { batch: Batch::new(self.ring(), max), is_file: self.is_file() }
    }

    /// Publishes what was put into the ring, and learns what has become free. Does not wait. When
    /// nothing more can be sent, nothing becomes free, and [`Port::check`](crate::Port::check) says
    /// why.
    #[inline]
    pub fn sync(&mut self) {
        // Cursors that this crate moves are valid; a program that shares the ring and spoils
        // them has it reinitialised, and both go on.
        let _: Outcome = self.bound.sync();
    }
}

/// Free slots; see [`TxRing::batch`]. The slots taken become part of the ring on drop.
///
/// ```
/// # use ringway_doc as Port;
/// let mut port = Port::open("vale0:a")?;
/// let mut tx = port.tx(0);
/// let frames = [[0xff; 60]; 3];
/// for (mut slot, frame) in tx.batch(frames.len()).zip(&frames) {
///     slot.write(frame);
/// }
/// assert_eq!(tx.pending(), 3);
/// # Ok::<(), ringway::Error>(())
/// ```
#[derive(Debug)]
pub struct TxBatch<'r> {
    batch: Batch<'r>,
    is_file: bool,
}

impl<'r> Iterator for TxBatch<'r> {
    type Item = TxSlot<'r>;

    #[inline]
    fn next(&mut self) -> Option<TxSlot<'r>> {
        let (ring, is_file) = (self.batch.ring(), self.is_file);
        self.batch.take().map(|index| TxSlot { ring, index, is_file })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.batch.left(), Some(self.batch.left()))
    }
}

impl TxBatch<'_> {
    /// The last `slots` that were taken are not sent, and come again.
    pub(crate) fn take_back(&mut self, slots: u32) {
        self.batch.take_back(slots);
    }
}

/// One slot to fill.
///
/// ```
/// # use ringway_doc as Port;
/// let mut port = Port::open("vale0:a")?;
/// let mut tx = port.tx(0);
/// let template = [0xff; 60];
/// for (number, mut slot) in (0u32..).zip(tx.batch(64)) {
///     slot.write(&template);
///     slot.write_at(14, &number.to_be_bytes()); // the length stays
/// }
/// tx.sync();
/// # Ok::<(), ringway::Error>(())
/// ```
#[derive(Debug)]
pub struct TxSlot<'r> {
    ring: &'r RingView,
    index: u32,
    is_file: bool,
}

impl TxSlot<'_> {
    /// Copies a frame into the slot's buffer and sets its length. False, with length 0, if it
    /// does not fit.
    #[inline]
    pub fn write(&mut self, frame: &[u8]) -> bool {
        let slot = self.ring.slot(self.index);
        let written = self.ring.buf(slot.buf_idx).map_or(0, |buf| {
            if frame.len() <= buf.size() as usize { buf.write(0, frame) } else { 0 }
        });
        self.ring.set_slot(self.index, slot.buf_idx, written as u16, 0);
        written == frame.len()
    }

    /// The same for a part of a packet: `more` says whether it goes on in the next slot.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// let mut port = Port::open("vale0:a")?;
    /// let packet = vec![0xff; 4000];
    /// let parts: Vec<_> = packet.chunks(port.max_frame()).collect();
    /// let mut tx = port.tx(0);
    /// if tx.space() >= parts.len() {
    ///     for (n, (mut slot, part)) in tx.batch(parts.len()).zip(&parts).enumerate() {
    ///         slot.write_part(part, n + 1 < parts.len());
    ///     }
    /// }
    /// tx.sync();
    /// # Ok::<(), ringway::Error>(())
    /// ```
    #[inline]
    pub fn write_part(&mut self, part: &[u8], more: bool) -> bool {
        let written = self.write(part);
        let (slot, flags) = (self.ring.slot(self.index), if more { NS_MOREFRAG } else { 0 });
        self.ring.set_slot(self.index, slot.buf_idx, slot.len, flags);
        written
    }

    /// Of a packet that goes to a capture file: the file is to have this of it, rather than the
    /// time at which it is written, and the bytes that are there. For the packet's first slot, once
    /// it is filled. On other ports it does nothing.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// use ringway::Recorded;
    ///
    /// // A port that may be a capture file: another one ignores it.
    /// let mut port = Port::open("vale0:a")?;
    /// for mut slot in port.tx(0).batch(1) {
    ///     slot.write(&[0xff; 60]);
    ///     slot.set_recorded(Recorded { time: 1_700_000_000_000_000_000, length: 60 });
    /// }
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn set_recorded(&mut self, recorded: Recorded) {
        #[cfg(feature = "files")]
        if self.is_file {
            self.ring.set_recorded(self.ring.slot(self.index).buf_idx, recorded);
            self.ring.shadow(self.index).store(ringway_file::RECORDED, Relaxed);
        }
        // Without files, there are none to go to.
        #[cfg(not(feature = "files"))]
        let _ = (recorded, self.is_file);
    }

    /// Copies bytes to an offset of the buffer; the length stays. False if they do not fit.
    #[inline]
    pub fn write_at(&mut self, offset: usize, bytes: &[u8]) -> bool {
        let slot = self.ring.slot(self.index);
        self.ring.buf(slot.buf_idx).is_some_and(|buf| buf.write(offset, bytes) == bytes.len())
    }

    /// Sends `len` bytes of what is in the buffer already; the slot's flags stay.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// let mut port = Port::open("p{1")?;
    /// for mut slot in port.tx(0).batch(1) {
    ///     slot.write_at(0, &[0xff; 60]);
    ///     slot.set_len(60);
    /// }
    /// # Ok::<(), ringway::Error>(())
    /// ```
    #[inline]
    pub fn set_len(&mut self, len: u16) {
        let slot = self.ring.slot(self.index);
        self.ring.set_slot(self.index, slot.buf_idx, len, slot.flags);
    }

    /// First byte of the buffer, which has [`max_frame`](crate::Port::max_frame) bytes; `None` if the
    /// slot names none. It stays mapped as long as the port is open, and is this slot's until the next
    /// sync. Other programs with the region may write to it at any time.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// let mut port = Port::open("p{1")?;
    /// for mut slot in port.tx(0).batch(1) {
    ///     if let Some(buffer) = slot.as_ptr() {
    ///         // SAFETY: the buffer has max_frame bytes, is this slot's until the next sync, and the other end of the
    ///         // pipe, which has the same memory, is this program's.
    ///         unsafe { buffer.write_bytes(0xff, 60) };
    ///         slot.set_len(60);
    ///     }
    /// }
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn as_ptr(&mut self) -> Option<*mut u8> {
        let slot = self.ring.slot(self.index);
        self.ring.buf(slot.buf_idx).map(|buf| buf.as_ptr())
    }

    /// Takes over a received frame: by exchanging buffers if both rings are in one region, else
    /// by copying. False, with length 0, if the frame does not fit.
    #[inline]
    pub(crate) fn take_from(&mut self, from: &RxFrame<'_>) -> bool {
        if self.ring.region().is_same(from.ring().region()) {
            let (ours, theirs) = (self.ring.slot(self.index), from.slot());
            let more = theirs.flags & NS_MOREFRAG;
            self.ring.set_slot(self.index, theirs.buf_idx, theirs.len, NS_BUF_CHANGED | more);
            from.ring().set_slot(from.index(), ours.buf_idx, 0, NS_BUF_CHANGED);
            return true;
        }
        self.copy_from(from)
    }

    /// Copies a received frame. False, with length 0, if it does not fit.
    #[inline]
    pub(crate) fn copy_from(&mut self, from: &RxFrame<'_>) -> bool {
        let (ours, theirs) = (self.ring.slot(self.index), from.slot());
        let more = theirs.flags & NS_MOREFRAG;
        let (Some(to), Some(source)) =
            (self.ring.buf(ours.buf_idx), from.ring().buf(theirs.buf_idx))
        else {
            self.ring.set_slot(self.index, ours.buf_idx, 0, 0);
            return false;
        };
        let fits = u32::from(theirs.len) <= to.size().min(source.size());
        if fits {
            to.copy_from(&source, theirs.len.into());
        }
        self.ring.set_slot(self.index, ours.buf_idx, if fits { theirs.len } else { 0 }, more);
        fits
    }
}
