//! A tx ring in a client's region, which the bridge reads.

use std::sync::Arc;

use ringway_abi::{NETMAP_MAX_FRAGS, NS_BUF_CHANGED, NS_MOREFRAG};
use ringway_kring::{Doorbell, Kring, Offsets};
use ringway_mirror::{Mirrors, Shown};
use ringway_region::{Buf, Slot};
use ringway_switch_port::{Burst, Drops, FrameStatus, TxSlots};

/// Slots looked at before other ports have their turn: their first lines fit the L1 cache.
const BURST: u32 = 128;

/// One tx ring of the port: the bridge reads it.
#[derive(Debug)]
pub struct TxSide {
    kring: Kring,
    client: Arc<Doorbell>,
    hwcur: u32,
    /// `hwcur` as the client knows it.
    published: u32,
    /// The client's `head` as of the last `collect`.
    head: u32,
    /// Where that stopped, and the bytes of its packets, without the headers for the switch alone, which have this many each.
    collected: u32,
    collected_bytes: u32,
    header_len: u32,
    /// Bytes that the ring's readers have not been told of.
    bytes: u64,
    /// Why the packet is lost that it was amid: its slots up to the last are.
    lost: Option<FrameStatus>,
    /// Slots freed since the client was last woken for some.
    freed: u32,
    bad_head: u32,
    /// The last `head` that counts, once the port goes.
    sealed: Option<u32>,
    offsets: Option<Offsets>,
    mirrors: Mirrors,
}

impl TxSide {
    /// Serves `kring` from where it stands; `client` is what its program sleeps on.
    pub fn new(kring: Kring, client: Arc<Doorbell>) -> TxSide {
        let hwcur = kring.hwcur();
        TxSide {
            kring,
            client,
            hwcur,
            published: hwcur,
            head: hwcur,
            collected: hwcur,
            collected_bytes: 0,
            header_len: 0,
            bytes: 0,
            lost: None,
            freed: 0,
            bad_head: u32::MAX,
            sealed: None,
            mirrors: Mirrors::default(),
            offsets: None,
        }
    }

    /// With data at offsets, if `Some`.
    pub fn with_offsets(self, offsets: Option<Offsets>) -> TxSide {
        TxSide { offsets, ..self }
    }

    /// Whether there is anything to collect, be it only a wrong index.
    #[inline]
    pub(crate) fn may_have_sent(&self) -> bool {
        self.head() != self.hwcur
    }

    /// The client's `head`, any number, or the last that counts.
    #[inline]
    fn head(&self) -> u32 {
        self.sealed.unwrap_or_else(|| self.kring.csb().app.head())
    }

    /// Adds to `burst` what was sent. Returns how many slots that are.
    pub(crate) fn collect<'a>(&'a mut self, burst: &mut Burst<'a>, drops: &mut Drops) -> u32 {
        match self.offsets {
            None => self.collect_from(burst, drops, |buf, _| Some(buf)),
            Some(offsets) => {
                self.collect_from(burst, drops, |buf, ptr| buf.skip(offsets.read(ptr)))
            }
        }
    }

    /// `data` says where in its buffer a slot's data begins.
    #[inline]
    fn collect_from<'a>(
        &'a mut self,
        burst: &mut Burst<'a>,
        drops: &mut Drops,
        data: impl Fn(Buf<'a>, u64) -> Option<Buf<'a>>,
    ) -> u32 {
        let side = self;
        // Monitors get what the slots hold.
        if burst.swaps && side.offsets.is_none() && side.mirrors.is_empty() {
            burst.slots = Some(TxSlots { ring: side.kring.ring(), at: side.hwcur });
        }
        let (view, bufs) = (side.kring.ring(), side.kring.ring().bufs());
        let head = side.head();
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
        let (mut flags, mut bad_slots, mut bytes) = (0, 0, 0);
        let (packets, header) = (burst.frames.len(), u32::from(burst.source.header_len));
        for done in 1..=found {
            let slot = view.slot(at);
            // S-FLAGS-NS_BUF_CHANGED.
            if slot.flags & NS_BUF_CHANGED != 0 {
                view.set_slot(at, slot.buf_idx, slot.len, slot.flags & !NS_BUF_CHANGED);
            }
            at = view.next(at);
            bytes += u32::from(slot.len);
            if pieces == 0 {
                flags = slot.flags;
            }
            let usable = lost.is_none() && pieces < NETMAP_MAX_FRAGS;
            let good = usable
                && bufs
                    .get(slot.buf_idx)
                    .and_then(|buf| data(buf, slot.ptr))
                    .is_some_and(|buf| burst.push(buf, slot.len.into()));
            if good {
                pieces += 1;
            } else if usable && is_too_long(&slot, bufs.get(slot.buf_idx), &data) {
                burst.abandon();
                lost = Some(FrameStatus::TooLong);
            } else if usable && pieces > 0 {
                burst.push_empty();
                pieces += 1;
                bad_slots += 1;
            } else {
                burst.abandon();
                lost = lost.or(Some(FrameStatus::BadSlot));
            }
            // What the program has not published yet is not part of the packet (S-VALE-5).
            // S-FLAGS-NS_MOREFRAG.
            if slot.flags & NS_MOREFRAG != 0 && at != head {
                continue;
            }
            if let Some(status) = lost.take() {
                burst.close(0, flags, 0, status);
            } else {
                burst.close((done - pieces) as u16, flags, bad_slots, FrameStatus::Fine);
            }
            (pieces, bad_slots) = (0, 0);
            if bytes >= burst.limit {
                found = done;
                break;
            }
        }
        if pieces > 0 && lost.is_none() {
            // The packet goes on past this burst: leave it whole for the next. It is shorter
            // than a burst, so there is progress.
            burst.abandon();
            at = view.advance(at, view.num_slots() - pieces);
            let left = (0..pieces).map(|i| u32::from(view.slot(view.advance(at, i)).len));
            bytes = bytes.saturating_sub(left.sum());
        }
        side.lost = lost;
        let headers = (burst.frames.len() - packets) as u32 * header;
        (side.collected, side.collected_bytes) = (at, bytes.saturating_sub(headers));
        side.header_len = header;
        found
    }

    /// What was sent by now is the last.
    pub(crate) fn seal(&mut self) {
        self.sealed = Some(self.kring.csb().app.head());
    }

    /// Is done with all that was collected.
    pub(crate) fn release(&mut self) {
        self.bytes += u64::from(self.collected_bytes);
        self.release_up_to(self.collected);
    }

    /// Is done with so many slots of it: what is behind them is collected again.
    pub(crate) fn release_some(&mut self, slots: u32) {
        let (ring, mut at) = (self.kring.ring(), self.hwcur);
        for _ in 0..slots {
            let slot = ring.slot(at);
            let is_last = slot.flags & NS_MOREFRAG == 0;
            let header = if is_last { u64::from(self.header_len) } else { 0 };
            self.bytes = (self.bytes + u64::from(slot.len)).saturating_sub(header);
            at = ring.next(at);
        }
        self.release_up_to(at);
        self.lost = None;
    }

    /// Shows what was sent to the monitors that copy.
    pub(crate) fn show(&mut self, bytes: &[u8], slots: &[Shown]) {
        self.mirrors.show(bytes, slots);
    }

    /// The slots up to `to` are free, and the monitors that swap have what they held.
    fn release_up_to(&mut self, to: u32) {
        if !self.mirrors.is_empty() {
            let ring = self.kring.ring();
            self.mirrors.swap(ring, self.hwcur, to);
        }
        self.hwcur = to;
    }

    /// Tells the client whether what it has sent waits for a lossless port.
    pub(crate) fn hold_back(&self, held: bool) {
        let csb = self.kring.csb();
        csb.service.hold_back(held);
        // A sender that waits until all is taken need not any longer.
        if held {
            csb.app.kick(&csb.service, || self.client.notify());
        }
    }

    /// Asks the client to yield its processor once, if it has sent something in this round.
    pub(crate) fn ask_to_yield(&self) {
        if self.hwcur != self.published {
            self.kring.csb().service.ask_to_yield();
        }
    }

    pub(crate) fn set_offsets(&mut self, offsets: Option<Offsets>) {
        self.offsets = offsets;
    }

    pub(crate) fn set_mirrors(&mut self, mirrors: Mirrors) {
        self.mirrors = mirrors;
    }

    /// Asks to be woken for what is sent from now on.
    pub(crate) fn arm(&self) {
        self.kring.csb().service.arm();
    }

    /// Makes visible what was released.
    pub(crate) fn complete(&mut self, idle: bool) {
        let (ring, csb) = (self.kring.ring(), self.kring.csb());
        // Other rings of the port may be busy for ever: the worker does not wait here for them to pause.
        let quiet = self.hwcur == self.published;
        self.mirrors.wake(idle || quiet);
        if !quiet {
            self.freed += ring.distance(self.published, self.hwcur);
            self.published = self.hwcur;
            csb.service.count_bytes(std::mem::take(&mut self.bytes));
            csb.service.publish(self.hwcur, ring.prev(self.hwcur));
        }
        if self.freed == 0 {
            return;
        }
        // Who waits until all is taken is woken as soon as it is.
        let all = || self.hwcur == self.head && csb.app.seems_to_wait(&csb.service);
        if idle || quiet || self.freed >= ring.num_slots() / 2 || all() {
            self.freed = 0;
            csb.app.kick(&csb.service, || self.client.notify());
        }
    }
}

/// S-SYNC-9: whether a slot is longer than what is left of its buffer.
#[cold]
fn is_too_long<'a>(
    slot: &Slot,
    buf: Option<Buf<'a>>,
    data: impl Fn(Buf<'a>, u64) -> Option<Buf<'a>>,
) -> bool {
    buf.is_some_and(|buf| data(buf, slot.ptr).is_none_or(|data| u32::from(slot.len) > data.size()))
}
