//! The port whose rings are in a client's region: a VALE port.
//!
//! The worker is the service side of these rings. Its cursors are its own variables; the
//! service line is only told. From the region it takes the client's published `head`, slots
//! and bytes, and nothing else.

use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use ringway_abi::{Dir, NETMAP_MAX_FRAGS, NS_BUF_CHANGED, NS_MOREFRAG, NS_PORT_SHIFT};
use ringway_kring::{Bell, Kring};
use ringway_region::Buf;
use ringway_tap::Taps;
use rustix::fd::{AsFd, BorrowedFd};

use crate::{
    frame::{Burst, Fate, Frame},
    offsets::{Offsets, place},
    port::{Delivered, Drops, Port, PortTaps, Room},
};

/// Slots looked at before other ports have their turn: their first lines fit the L1 cache.
const BURST: u32 = 128;

/// Bytes in as much, as far as a packet's end is there: a burst of large buffers is shorter.
const BURST_BYTES: u32 = 1 << 20;

/// One tx ring of the port: the bridge reads it.
#[derive(Debug)]
pub struct TxSide {
    kring: Kring,
    client: Arc<Bell>,
    hwcur: u32,
    /// `hwcur` as the client knows it.
    published: u32,
    /// The client's `head` as of the last `collect`.
    head: u32,
    /// Where that stopped.
    collected: u32,
    /// Whether that was amid a packet that is lost: its slots up to the last are.
    lost: bool,
    /// Slots freed since the client was last woken for some.
    freed: u32,
    bad_head: u32,
    offsets: Option<Offsets>,
    taps: Taps,
}

/// One rx ring of the port: the bridge fills it.
#[derive(Debug)]
pub struct RxSide {
    kring: Kring,
    client: Arc<Bell>,
    hwtail: u32,
    /// The client's `head` as last seen; what it has freed since does not count yet.
    head: u32,
    published: u32,
    unannounced: u32,
    /// Serial of the burst that found it full: the rest of that is lost (S-VALE-10).
    full: u64,
    offsets: Option<Offsets>,
    taps: Taps,
    /// Whether any of them wants what the client releases, at once.
    swaps: bool,
}

impl TxSide {
    /// Serves `kring` from where it stands; `client` is what its program sleeps on.
    pub fn new(kring: Kring, client: Arc<Bell>) -> TxSide {
        let hwcur = kring.hwcur();
        TxSide {
            kring,
            client,
            hwcur,
            published: hwcur,
            head: hwcur,
            collected: hwcur,
            lost: false,
            freed: 0,
            bad_head: u32::MAX,
            taps: Taps::default(),
            offsets: None,
        }
    }

    /// With data at offsets, if `Some`.
    pub fn with_offsets(self, offsets: Option<Offsets>) -> TxSide {
        TxSide { offsets, ..self }
    }

    /// Adds to `burst` what was sent; `data` says where in its buffer a slot's data begins.
    #[inline]
    fn collect<'a>(
        &'a mut self,
        burst: &mut Burst<'a>,
        drops: &mut Drops,
        data: impl Fn(Buf<'a>, u64) -> Option<Buf<'a>>,
    ) -> u32 {
        let side = self;
        let view = side.kring.ring();
        let head = side.kring.csb().app.head();
        if head >= view.num_slots() {
            if side.bad_head != head {
                side.bad_head = head;
                drops.bad_index += 1;
            }
            return 0;
        }
        side.head = head;
        let mut found = view.distance(side.hwcur, head).min(BURST);
        let (mut at, mut pieces, mut lost) = (side.hwcur, 0, side.lost);
        let (mut flags, mut spoilt, mut bytes) = (0, 0, 0);
        for done in 1..=found {
            let slot = view.slot(at);
            if slot.flags & NS_BUF_CHANGED != 0 {
                view.set_slot(at, slot.buf_idx, slot.len, slot.flags & !NS_BUF_CHANGED);
            }
            at = view.next(at);
            bytes += u32::from(slot.len);
            if pieces == 0 {
                flags = slot.flags;
            }
            let usable = !lost && pieces < NETMAP_MAX_FRAGS;
            let good = usable
                && view
                    .buf(slot.buf_idx)
                    .and_then(|buf| data(buf, slot.ptr))
                    .is_some_and(|buf| burst.push(buf, slot.len.into()));
            if good {
                pieces += 1;
            } else if !lost && (1..NETMAP_MAX_FRAGS).contains(&pieces) {
                burst.push_empty();
                pieces += 1;
                spoilt += 1;
            } else {
                burst.abandon();
                lost = true;
            }
            // What the program has not published yet is not part of the packet (S-VALE-5).
            if slot.flags & NS_MOREFRAG != 0 && at != head {
                continue;
            }
            if std::mem::take(&mut lost) {
                burst.close(0, flags, 0, Fate::BadSlot);
            } else {
                burst.close((done - pieces) as u16, flags, spoilt, Fate::Fine);
            }
            (pieces, spoilt) = (0, 0);
            if bytes >= BURST_BYTES {
                found = done;
                break;
            }
        }
        if pieces > 0 && !lost {
            // The packet goes on past this burst: leave it whole for the next. It is shorter
            // than a burst, so there is progress.
            burst.abandon();
            at = view.advance(at, view.num_slots() - pieces);
        }
        side.lost = lost;
        side.collected = at;
        found
    }

    /// Is done with the slots up to `to`: they are free, and the monitors see what they held.
    fn release(&mut self, to: u32) {
        if !self.taps.is_empty() {
            let ring = self.kring.ring();
            self.taps.copy(ring, self.hwcur, to);
            self.taps.swap(ring, self.hwcur, to);
        }
        self.hwcur = to;
    }

    fn complete(&mut self, idle: bool) {
        let (ring, csb) = (self.kring.ring(), self.kring.csb());
        // Other rings of the port may be busy for ever: nobody waits here for them to pause.
        let quiet = self.hwcur == self.published;
        self.taps.wake(idle || quiet);
        if !quiet {
            self.freed += ring.distance(self.published, self.hwcur);
            self.published = self.hwcur;
            csb.service.publish(self.hwcur, ring.prev(self.hwcur));
        }
        if self.freed == 0 {
            return;
        }
        // Who waits until all is taken is woken as soon as it is.
        let all = || self.hwcur == self.head && csb.app.seems_to_wait(&csb.service);
        if idle || quiet || self.freed >= ring.num_slots() / 2 || all() {
            self.freed = 0;
            if csb.app.must_kick(&csb.service) {
                self.client.ring();
            }
        }
    }
}

impl RxSide {
    /// Serves `kring` from where it stands; `client` is what its program sleeps on.
    pub fn new(kring: Kring, client: Arc<Bell>) -> RxSide {
        let (head, hwtail) = (kring.hwcur(), kring.hwtail());
        kring.csb().service.set_takes_back(false);
        RxSide {
            kring,
            client,
            hwtail,
            head,
            published: hwtail,
            unannounced: 0,
            full: 0,
            taps: Taps::default(),
            offsets: None,
            swaps: false,
        }
    }

    /// With data at offsets, if `Some`.
    pub fn with_offsets(self, offsets: Option<Offsets>) -> RxSide {
        RxSide { offsets, ..self }
    }

    /// Free slots: one always stays empty.
    #[inline]
    fn space(&mut self, wanted: u32) -> bool {
        let ring = self.kring.ring();
        if ring.distance(self.hwtail, ring.prev(self.head)) >= wanted {
            return true;
        }
        self.take_back();
        let ring = self.kring.ring();
        ring.distance(self.hwtail, ring.prev(self.head)) >= wanted
    }

    /// Learns which slots the client has released. Returns whether there are new ones.
    fn take_back(&mut self) -> bool {
        let (ring, head) = (self.kring.ring(), self.kring.csb().app.head());
        let news = head != self.head && head < ring.num_slots();
        if news {
            self.taps.swap(ring, self.head, head);
            self.head = head;
            if self.swaps {
                self.tell_taken_back();
            }
        }
        news
    }

    /// Tells the client that the monitors have what it has released.
    fn tell_taken_back(&self) {
        let csb = self.kring.csb();
        csb.service.publish(self.head, self.published);
        if csb.app.must_kick(&csb.service) {
            self.client.ring();
        }
    }

    fn room(&mut self) -> Room {
        self.take_back();
        let ring = self.kring.ring();
        let free = ring.distance(self.hwtail, ring.prev(self.head));
        Room { free, slots: ring.num_slots() - 1 }
    }

    /// Delivers as many leading packets as fit (S-VALE-10).
    #[inline]
    fn deliver_run<const OFFSETS: bool>(
        &mut self,
        frames: &[Frame],
        burst: &Burst<'_>,
        drops: &mut Drops,
    ) -> Delivered {
        let mut delivered = Delivered::default();
        if self.full == burst.serial {
            drops.ring_full += frames.len() as u64;
            return delivered;
        }
        let plain = !OFFSETS && burst.source.header_len == 0;
        let mut rest = frames.iter();
        while let Some(frame) = rest.next() {
            if self.space(frame.count.into()) {
                let simple = plain && frame.skip == 0;
                let bytes = match burst.pieces(frame) {
                    [(from, len)] if simple => self.deliver_simple(frame, from, *len, drops),
                    _ => self.deliver::<OFFSETS>(frame, burst, drops),
                };
                if let Some(bytes) = bytes {
                    delivered.add(bytes);
                }
            } else if self.refuse(frame, burst, drops) {
                drops.ring_full += rest.len() as u64;
                break;
            }
        }
        delivered
    }

    /// Counts a packet for which there is no room. True if there is none for those behind, either.
    #[cold]
    fn refuse(&mut self, frame: &Frame, burst: &Burst<'_>, drops: &mut Drops) -> bool {
        drops.ring_full += 1;
        self.ends(frame.count.into(), burst)
    }

    /// Notes that there is no room for `slots` slots; true if there is none for what is behind,
    /// either.
    #[cold]
    fn ends(&mut self, slots: u32, burst: &Burst<'_>) -> bool {
        // What exceeds the whole ring says nothing of the others.
        let full = slots < self.kring.ring().num_slots();
        if full {
            self.full = burst.serial;
        }
        full
    }

    /// As [`deliver`](Self::deliver), for a packet of one piece that arrives as it was sent: nearly
    /// all are.
    #[inline]
    fn deliver_simple(
        &mut self,
        frame: &Frame,
        from: &Buf<'_>,
        len: u32,
        drops: &mut Drops,
    ) -> Option<u32> {
        let ring = self.kring.ring();
        let index = ring.slot(self.hwtail).buf_idx;
        let Some(to) = ring.buf(index).filter(|to| len <= to.size()) else {
            return self.deliver_misfit(index, drops);
        };
        to.copy_from(from, len as usize);
        // Whole even if the piece is shorter: the header is zero past its end.
        to.store(0, frame.header());
        ring.set_slot(self.hwtail, index, len as u16, 1 << NS_PORT_SHIFT);
        self.hwtail = ring.next(self.hwtail);
        Some(len)
    }

    /// A piece without a buffer, or with too small a one.
    #[cold]
    fn deliver_misfit(&mut self, index: u32, drops: &mut Drops) -> Option<u32> {
        let ring = self.kring.ring();
        if ring.buf(index).is_none() {
            drops.bad_slot += 1;
            return None;
        }
        drops.too_long += 1;
        ring.set_slot(self.hwtail, index, 0, 1 << NS_PORT_SHIFT);
        self.hwtail = ring.next(self.hwtail);
        Some(0)
    }

    /// Copies a packet for which there is room; returns its bytes.
    #[inline(never)]
    fn deliver<const OFFSETS: bool>(
        &mut self,
        frame: &Frame,
        burst: &Burst<'_>,
        drops: &mut Drops,
    ) -> Option<u32> {
        let ring = self.kring.ring();
        let (mut at, mut bytes) = (self.hwtail, 0);
        for (i, &(from, len)) in (1..).zip(burst.pieces(frame)) {
            let index = ring.slot(at).buf_idx;
            let Some(to) = ring.buf(index) else {
                drops.bad_slot += 1;
                return None;
            };
            let begin = (i == 1).then_some(burst.source.header_len.into());
            let to = if OFFSETS {
                let len = if begin.is_some() { frame.moved_len(len) } else { len };
                self.place(at, &from, len, to)
            } else {
                to
            };
            let copied = frame.copy_piece(begin, &from, len, &to);
            drops.too_long += u64::from(copied.is_none());
            let len = copied.unwrap_or(0);
            bytes += len;
            let more = if i == frame.count { 0 } else { NS_MOREFRAG };
            ring.set_slot(at, index, len as u16, u16::from(frame.count) << NS_PORT_SHIFT | more);
            at = ring.next(at);
        }
        self.hwtail = at;
        Some(bytes)
    }

    /// The part of slot `at`'s buffer that the piece is to fill. The program is told.
    fn place<'a>(&self, at: u32, from: &Buf<'_>, len: u32, to: Buf<'a>) -> Buf<'a> {
        let Some(offsets) = self.offsets else { return to };
        let ptr = self.kring.ring().slot(at).ptr;
        let Range { start, end } = place(&offsets, ptr, from, len, &to);
        self.kring.ring().set_slot_ptr(at, offsets.write(ptr, start));
        to.part(start, end.saturating_sub(start)).unwrap_or(to)
    }

    fn flush(&mut self, idle: bool) {
        let ring = self.kring.ring();
        // As for the other direction.
        let quiet = self.hwtail == self.published;
        self.taps.wake(idle || quiet);
        if !quiet {
            self.unannounced += ring.distance(self.published, self.hwtail);
            self.published = self.hwtail;
            self.kring.csb().service.publish(self.head, self.hwtail);
        }
        if self.unannounced != 0 && (idle || quiet || self.unannounced >= ring.num_slots() / 4) {
            self.unannounced = 0;
            if self.kring.csb().app.must_kick(&self.kring.csb().service) {
                self.client.ring();
            }
        }
    }
}

/// A VALE port as its bridge sees it.
#[derive(Debug)]
pub struct RingPort {
    tx: Vec<TxSide>,
    rx: Vec<RxSide>,
    bell: Arc<Bell>,
    receives: Arc<AtomicBool>,
}

impl RingPort {
    /// `bell` is what the clients ring when they have sent; `receives` tells whether anybody
    /// has the receive rings open.
    pub fn new(
        tx: Vec<TxSide>,
        rx: Vec<RxSide>,
        bell: Arc<Bell>,
        receives: Arc<AtomicBool>,
    ) -> RingPort {
        RingPort { tx, rx, bell, receives }
    }
}

impl Port for RingPort {
    fn collect<'a>(&'a mut self, ring: usize, burst: &mut Burst<'a>, drops: &mut Drops) -> u32 {
        let side = &mut self.tx[ring];
        match side.offsets {
            None => side.collect(burst, drops, |buf, _| Some(buf)),
            Some(offsets) => side.collect(burst, drops, |buf, ptr| buf.skip(offsets.read(ptr))),
        }
    }

    fn release(&mut self, ring: usize) {
        let side = &mut self.tx[ring];
        side.release(side.collected);
    }

    fn release_some(&mut self, ring: usize, slots: u32) {
        let side = &mut self.tx[ring];
        side.release(side.kring.ring().advance(side.hwcur, slots));
        side.lost = false;
    }

    fn hold_back(&mut self, ring: usize, held: bool) {
        let csb = self.tx[ring].kring.csb();
        csb.service.hold_back(held);
        // Whoever waits until all is taken need not any longer.
        if held && csb.app.must_kick(&csb.service) {
            self.tx[ring].client.ring();
        }
    }

    fn can_wait(&self) -> bool {
        true
    }

    fn set_offsets(&mut self, dir: Dir, ring: usize, offsets: Option<Offsets>) {
        let place = match dir {
            Dir::Tx => self.tx.get_mut(ring).map(|side| &mut side.offsets),
            Dir::Rx => self.rx.get_mut(ring).map(|side| &mut side.offsets),
        };
        if let Some(place) = place {
            *place = offsets;
        }
    }

    fn tx_rings(&self) -> usize {
        self.tx.len()
    }

    fn rx_rings(&self) -> usize {
        self.rx.len()
    }

    fn room(&mut self, ring: usize) -> Room {
        self.rx[ring].room()
    }

    fn await_room(&self, ring: usize) {
        self.rx[ring].kring.csb().service.arm();
    }

    #[inline]
    fn receives(&self) -> bool {
        self.receives.load(Relaxed)
    }

    fn deliver(
        &mut self,
        ring: usize,
        frames: &[Frame],
        burst: &Burst<'_>,
        drops: &mut Drops,
    ) -> Delivered {
        let ring = if ring < self.rx.len() { ring } else { ring % self.rx.len() };
        let side = &mut self.rx[ring];
        let first = side.hwtail;
        let delivered = match side.offsets {
            None => side.deliver_run::<false>(frames, burst, drops),
            Some(_) => side.deliver_run::<true>(frames, burst, drops),
        };
        if !side.taps.is_empty() {
            side.taps.copy(side.kring.ring(), first, side.hwtail);
        }
        delivered
    }

    fn has_room(&mut self, ring: usize, slots: u32, burst: &Burst<'_>) -> bool {
        let ring = ring % self.rx.len().max(1);
        let Some(side) = self.rx.get_mut(ring) else { return false };
        let has = side.full != burst.serial && side.space(slots);
        if !has {
            side.ends(slots, burst);
        }
        has
    }

    fn flush(&mut self, idle: bool) {
        self.rx.iter_mut().for_each(|side| side.flush(idle));
    }

    fn complete(&mut self, idle: bool) {
        self.tx.iter_mut().for_each(|side| side.complete(idle));
    }

    fn take_back(&mut self) -> bool {
        let tapped = self.rx.iter_mut().filter(|side| side.swaps);
        tapped.fold(false, |news, side| news | side.take_back())
    }

    fn set_taps(&mut self, taps: PortTaps) {
        self.tx.iter_mut().zip(taps.tx).for_each(|(side, taps)| side.taps = taps);
        for (side, taps) in self.rx.iter_mut().zip(taps.rx) {
            // What was released before is not for those who come now.
            side.take_back();
            side.tell_taken_back();
            side.swaps = taps.swaps();
            side.kring.csb().service.set_takes_back(side.swaps);
            side.taps = taps;
        }
        // From now on the client tells what it releases.
        self.arm();
    }

    fn arm(&mut self) {
        self.tx.iter().for_each(|side| side.kring.csb().service.arm());
        let tapped = self.rx.iter().filter(|side| side.swaps);
        tapped.for_each(|side| side.kring.csb().service.arm());
    }

    fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    fn silence(&self) {
        self.bell.silence();
    }
}
