//! The port whose rings are in a client's region: a VALE port.
//!
//! The worker is the service side of these rings. Its cursors are its own variables; the
//! service line is only told. From the region it takes the client's published `head`, slots
//! and bytes, and nothing else.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};

use ringway_abi::{NETMAP_MAX_FRAGS, NS_BUF_CHANGED, NS_MOREFRAG, NS_PORT_SHIFT};
use ringway_kring::{Bell, Kring};
use ringway_tap::Taps;
use rustix::fd::{AsFd, BorrowedFd};

use crate::{
    frame::{Burst, Fate, Frame},
    port::{Delivered, Drops, Port, PortTaps},
};

/// Slots looked at before other ports have their turn: their first lines fit the L1 cache.
const BURST: u32 = 128;

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
    taps: Taps,
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
        }
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
        let taps = Taps::default();
        RxSide { kring, client, hwtail, head, published: hwtail, unannounced: 0, full: 0, taps }
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

    /// Delivers as many leading packets as fit (S-VALE-10).
    #[inline]
    fn deliver_run(&mut self, frames: &[Frame], burst: &Burst<'_>, drops: &mut Drops) -> Delivered {
        let mut delivered = Delivered::default();
        let full = self.full == burst.serial;
        for (i, frame) in frames.iter().enumerate() {
            if full || !self.space(frame.count.into()) {
                if !full && u32::from(frame.count) >= self.kring.ring().num_slots() {
                    // No ring of this size will ever have room: it says nothing of the others.
                    drops.ring_full += 1;
                    continue;
                }
                self.full = burst.serial;
                drops.ring_full += (frames.len() - i) as u64;
                break;
            }
            if let Some(bytes) = self.deliver(frame, burst, drops) {
                delivered.add(bytes);
            }
        }
        delivered
    }

    /// Copies a packet for which there is room; returns its bytes.
    #[inline]
    fn deliver(&mut self, frame: &Frame, burst: &Burst<'_>, drops: &mut Drops) -> Option<u32> {
        let ring = self.kring.ring();
        let (mut at, mut bytes) = (self.hwtail, 0);
        for (i, &(from, len)) in (1..).zip(burst.pieces(frame)) {
            let index = ring.slot(at).buf_idx;
            let Some(to) = ring.buf(index) else {
                drops.bad_slot += 1;
                return None;
            };
            let len = if len <= to.size() {
                to.copy_from(&from, len as usize);
                if i == 1 {
                    // Whole even if the piece is shorter: the header is zero past its end.
                    to.store(burst.source.header_len.into(), frame.header());
                }
                len
            } else {
                drops.too_long += 1;
                0
            };
            bytes += len;
            let more = if i == frame.count { 0 } else { NS_MOREFRAG };
            ring.set_slot(at, index, len as u16, u16::from(frame.count) << NS_PORT_SHIFT | more);
            at = ring.next(at);
        }
        self.hwtail = at;
        Some(bytes)
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
        let found = view.distance(side.hwcur, head).min(BURST);
        let (mut at, mut pieces, mut lost) = (side.hwcur, 0, side.lost);
        let (mut flags, mut spoilt) = (0, 0);
        for done in 1..=found {
            let slot = view.slot(at);
            if slot.flags & NS_BUF_CHANGED != 0 {
                view.set_slot(at, slot.buf_idx, slot.len, slot.flags & !NS_BUF_CHANGED);
            }
            at = view.next(at);
            if pieces == 0 {
                flags = slot.flags;
            }
            let usable = !lost && pieces < NETMAP_MAX_FRAGS;
            let good = usable
                && view.buf(slot.buf_idx).is_some_and(|buf| burst.push(buf, slot.len.into()));
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

    fn release(&mut self, ring: usize) {
        let side = &mut self.tx[ring];
        side.release(side.collected);
    }

    fn tx_rings(&self) -> usize {
        self.tx.len()
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
        let delivered = side.deliver_run(frames, burst, drops);
        if !side.taps.is_empty() {
            side.taps.copy(side.kring.ring(), first, side.hwtail);
        }
        delivered
    }

    fn has_room(&mut self, ring: usize, frames: &[Frame], burst: &Burst<'_>) -> bool {
        let ring = ring % self.rx.len().max(1);
        let slots = frames.iter().map(|frame| u32::from(frame.count)).sum();
        let side = self.rx.get_mut(ring);
        side.is_some_and(|side| side.full != burst.serial && side.space(slots))
    }

    fn flush(&mut self, idle: bool) {
        self.rx.iter_mut().for_each(|side| side.flush(idle));
    }

    fn complete(&mut self, idle: bool) {
        self.tx.iter_mut().for_each(|side| side.complete(idle));
    }

    fn take_back(&mut self) -> bool {
        let tapped = self.rx.iter_mut().filter(|side| !side.taps.is_empty());
        tapped.fold(false, |news, side| {
            let more = side.take_back();
            if more {
                side.tell_taken_back();
            }
            news | more
        })
    }

    fn set_taps(&mut self, taps: PortTaps) {
        self.tx.iter_mut().zip(taps.tx).for_each(|(side, taps)| side.taps = taps);
        for (side, taps) in self.rx.iter_mut().zip(taps.rx) {
            // What was released before is not for those who come now.
            side.take_back();
            side.taps = taps;
        }
        // From now on the client tells what it releases.
        self.arm();
    }

    fn arm(&mut self) {
        self.tx.iter().for_each(|side| side.kring.csb().service.arm());
        let tapped = self.rx.iter().filter(|side| !side.taps.is_empty());
        tapped.for_each(|side| side.kring.csb().service.arm());
    }

    fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    fn silence(&self) {
        self.bell.silence();
    }
}
