//! A ring slot by slot: which buffer each names, its length and flags.

use std::ops::Range;

use ringway_abi::{NS_BUF_CHANGED, NS_MOREFRAG};
use ringway_region::{Buf, RingView, Slot};

use crate::{batch::held, rx::RxRing, tx::TxRing};

/// The slots of a ring, as netmap's own programs see them. For what
/// [`TxSlot`](crate::TxSlot) and [`RxFrame`](crate::RxFrame) are too simple: to exchange buffers
/// between rings of one region or with [extra buffers](crate::Port::take_extra_bufs), and to
/// split a packet over several slots.
///
/// Slots are numbered from the first that the program holds. An exchange writes the buffer's
/// index into the other slot, with `NS_BUF_CHANGED`; a buffer that is in two slots at once is
/// sent or filled twice, but does no other harm.
///
/// ```
/// # use ringway_doc as Port;
/// use ringway::{NS_BUF_CHANGED, NS_MOREFRAG};
///
/// let mut port = Port::options().extra_bufs(1).open("vale0:a")?;
/// let extra = port.take_extra_bufs()[0];
/// let mut tx = port.tx(0);
/// let mut slots = tx.slots();
/// let mut first = slots.get(0);
/// let kept = first.buf_idx;
/// (first.buf_idx, first.len, first.flags) = (extra, 60, NS_BUF_CHANGED | NS_MOREFRAG);
/// slots.set(0, first);
/// slots.write(1, 0, &[7; 40]);
/// let second = ringway::Slot { len: 40, flags: 0, ..slots.get(1) };
/// slots.set(1, second);
/// slots.advance(2); // one packet of two slots
/// tx.sync();
/// port.return_extra_bufs([kept]);
/// # Ok::<(), ringway::Error>(())
/// ```
#[derive(Debug)]
pub struct Slots<'r> {
    ring: &'r RingView,
    /// Place of the first that the program holds.
    first: u32,
}

impl<'r> Slots<'r> {
    fn of(ring: &'r RingView) -> Slots<'r> {
        Slots { ring, first: ring.head().min(ring.num_slots() - 1) }
    }
}

impl TxRing<'_> {
    /// The ring's free slots, one by one.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// let mut port = Port::open("vale0:a")?;
    /// let mut tx = port.tx(0);
    /// let mut slots = tx.slots();
    /// slots.write(0, 0, &[0xff; 60]);
    /// slots.set(0, ringway::Slot { len: 60, ..slots.get(0) });
    /// slots.advance(1);
    /// tx.sync();
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn slots(&mut self) -> Slots<'_> {
        Slots::of(self.ring())
    }
}

impl RxRing<'_> {
    /// The ring's received slots, one by one.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// let mut port = Port::open("vale0:a")?;
    /// let mut rx = port.rx(0);
    /// let mut slots = rx.slots();
    /// let held = slots.held();
    /// slots.advance(held); // released, unread
    /// rx.sync();
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn slots(&mut self) -> Slots<'_> {
        Slots::of(self.ring())
    }
}

impl Slots<'_> {
    /// Slots of the ring.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// let mut port = Port::options().tx_slots(512).open("vale0:a")?;
    /// let mut tx = port.tx(0);
    /// let slots = tx.slots();
    /// assert_eq!((slots.num_slots(), slots.held()), (512, 511));
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn num_slots(&self) -> u32 {
        self.ring.num_slots()
    }

    /// Slots that the program holds.
    pub fn held(&self) -> u32 {
        held(self.ring) as u32
    }

    /// Place in the ring of the `n`th slot that the program holds; `n` counts on beyond them.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// let mut port = Port::options().tx_slots(512).open("p{1")?;
    /// port.tx(0).push(&[0; 60]);
    /// let mut tx = port.tx(0);
    /// assert_eq!([0, 1, 511].map(|n| tx.slots().place(n)), [1, 2, 0]);
    /// # Ok::<(), ringway::Error>(())
    /// ```
    #[inline]
    pub fn place(&self, n: u32) -> u32 {
        let slots = self.num_slots();
        // No division in the ordinary case.
        let n = if n < slots { n } else { n % slots };
        self.ring.advance(self.first, n)
    }

    /// A copy of the `n`th slot.
    #[inline]
    pub fn get(&self, n: u32) -> Slot {
        self.ring.slot(self.place(n))
    }

    /// Stores the `n`th slot.
    #[inline]
    pub fn set(&mut self, n: u32, slot: Slot) {
        let first = u64::from(slot.buf_idx) | u64::from(slot.len) << 32;
        self.ring.set_slot_words(self.place(n), [first | u64::from(slot.flags) << 48, slot.ptr]);
    }

    /// Moves a packet, or a part of one, from the `m`th slot of another ring of the same region into the `n`th of this
    /// one, which gives its buffer in exchange. Returns the packet's bytes.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// let (mut a, mut b) = (Port::open("p{1")?, Port::open("p}1")?);
    /// assert!(a.shares_region_with(&b) && a.tx(0).push(&[7; 60]));
    /// a.tx(0).sync();
    /// b.rx(0).sync();
    /// let (mut tx, mut rx) = b.tx_and_rx(0, 0);
    /// assert_eq!(tx.slots().exchange(0, &mut rx.slots(), 0), 60);
    /// # Ok::<(), ringway::Error>(())
    /// ```
    #[inline]
    pub fn exchange(&mut self, n: u32, from: &mut Slots<'_>, m: u32) -> u16 {
        let (to_at, from_at) = (self.place(n), from.place(m));
        let (spare, sent) = (self.ring.plain_slot(to_at).buf_idx, from.ring.slot(from_at));
        let packet = u64::from(sent.buf_idx) | u64::from(sent.len) << 32;
        let flags = NS_BUF_CHANGED | sent.flags & NS_MOREFRAG;
        self.ring.set_slot_words(to_at, [packet | u64::from(flags) << 48, sent.ptr]);
        from.ring.set_slot(from_at, spare, 0, NS_BUF_CHANGED);
        sent.len
    }

    /// Calls `each` for slots that the program holds, one after another, with the slot and a copy of the first `N` bytes of
    /// its buffer; the slot's length says how many of them are the packet's. Stops when `each` returns false, and before a
    /// slot that has only a part of a packet. Returns the number of the slot at which it has stopped. Buffers are
    /// prefetched.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// let (mut a, mut b) = (Port::open("q{1")?, Port::open("q}1")?);
    /// (0..3).for_each(|n| assert!(a.tx(0).push(&[n; 60])));
    /// a.tx(0).sync();
    /// b.rx(0).sync();
    /// let mut rx = b.rx(0);
    /// let slots = rx.slots();
    /// let stopped = slots.scan(0..slots.held(), |_, slot, head: &[u8; 16]| slot.len == 60 && head[0] < 2);
    /// assert_eq!(stopped, 2);
    /// # Ok::<(), ringway::Error>(())
    /// ```
    #[inline]
    pub fn scan<const N: usize>(
        &self,
        places: Range<u32>,
        mut each: impl FnMut(u32, Slot, &[u8; N]) -> bool,
    ) -> u32 {
        /// How many slots ahead of the present one.
        const AHEAD: u32 = 8;
        let (ring, bufs) = (self.ring, self.ring.bufs());
        let mut place = self.place(places.start);
        for n in places.clone() {
            if n.saturating_add(AHEAD) < places.end {
                let ahead = ring.plain_slot(ring.advance(place, AHEAD));
                bufs.get(ahead.buf_idx).into_iter().for_each(|buf| buf.prefetch());
            }
            let slot = ring.plain_slot(place);
            let head = bufs.get(slot.buf_idx).and_then(|buf| buf.read::<N>(0));
            let Some(head) = head.filter(|_| slot.flags & NS_MOREFRAG == 0) else { return n };
            if !each(n, slot, &head) {
                return n;
            }
            place = ring.next(place);
        }
        places.end.max(places.start)
    }

    /// Has the processor fetch the first bytes of the `n`th slot's buffer, which are going to be read.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// let mut port = Port::open("vale0:a")?;
    /// let mut rx = port.rx(0);
    /// let slots = rx.slots();
    /// let mut head = [0; 64];
    /// for n in 0..slots.held() {
    ///     slots.prefetch(n + 8);
    ///     let read = slots.read(n, &mut head);
    ///     println!("{:?}", &head[..read]);
    /// }
    /// # Ok::<(), ringway::Error>(())
    /// ```
    #[inline]
    pub fn prefetch(&self, n: u32) {
        if let Some(buf) = self.ring.buf(self.ring.plain_slot(self.place(n)).buf_idx) {
            buf.prefetch();
        }
    }

    /// Copies out the first bytes of the `n`th slot's buffer, as many as `to` and the slot's
    /// length hold; returns how many.
    #[inline]
    pub fn read(&self, n: u32, to: &mut [u8]) -> usize {
        let slot = self.ring.plain_slot(self.place(n));
        self.ring.buf(slot.buf_idx).map_or(0, |buf| buf.copy_to(slot.len.into(), to))
    }

    /// Copies bytes to an offset of the `n`th slot's buffer; returns how many fitted. The slot's
    /// length stays.
    #[inline]
    pub fn write(&mut self, n: u32, offset: usize, bytes: &[u8]) -> usize {
        self.ring.buf(self.get(n).buf_idx).map_or(0, |buf| buf.write(offset, bytes))
    }

    pub(crate) fn buf(&self, index: u32) -> Option<Buf<'_>> {
        self.ring.buf(index)
    }

    /// Sends or releases the first `n` slots with the next sync; at most those that are held.
    #[inline]
    pub fn advance(&mut self, n: u32) {
        let at = self.place(n.min(self.held()));
        self.ring.set_cur(at);
        self.ring.set_head(at);
        self.first = at;
    }

    /// Has the next wait end only when there are more slots than now, without sending or
    /// releasing any.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// use std::time::Duration;
    ///
    /// let (mut a, mut b) = (Port::open("p{1")?, Port::open("p}1")?);
    /// a.tx(0).push(&[0; 60]);
    /// a.tx(0).sync();
    /// b.wait_rx(None)?;
    /// // One is too few: the wait ends when there is another.
    /// b.rx(0).slots().await_more();
    /// assert!(!b.wait_rx(Some(Duration::from_millis(1)))?);
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn await_more(&mut self) {
        self.ring.set_cur(self.ring.tail());
    }
}
