//! An rx ring in a client's region, which the bridge fills.

use std::{ops::Range, slice, sync::Arc};

use ringway_abi::{NETMAP_MAX_FRAGS, NS_BUF_CHANGED, NS_MOREFRAG, NS_PORT_SHIFT};
use ringway_kring::{Doorbell, Kring, Offsets};
use ringway_mirror::Mirrors;
use ringway_region::{Buf, RingView, Slot};

use crate::offsets::place;
use ringway_switch_port::{Burst, Delivered, Drops, Frame, Piece, Room, TxSlots};

/// Released slots that go to monitors in one look.
const SWAPS: u32 = 128;

/// Bytes of a packet from which on two slots are sooner written than the packet is copied.
const SWAP_FROM: u32 = 384;

/// Why a packet cannot be copied to the slots that there are for it.
enum Misfit {
    /// A slot names no buffer.
    NoBuffer,
    /// A piece is longer than its slot's buffer; if it is the first, that has so much room.
    TooLong { room: Option<u32> },
}

/// One rx ring of the port: the bridge fills it.
#[derive(Debug)]
pub struct RxSide {
    kring: Kring,
    client: Arc<Doorbell>,
    hwtail: u32,
    /// The client's `head` as last seen; what it has freed since does not count yet.
    head: u32,
    published: u32,
    /// Bytes that the ring's readers have not been told of.
    bytes: u64,
    pending_notify: u32,
    /// A `head` that was not believed, and how many those were.
    bad_head: u32,
    bad_heads: u64,
    /// Serial of the burst that found it full: the rest of that is lost (S-VALE-10).
    full: u64,
    offsets: Option<Offsets>,
    mirrors: Mirrors,
    /// Whether any of them wants what the client releases, at once.
    swaps: bool,
}

impl RxSide {
    /// Serves `kring` from where it stands; `client` is what its program sleeps on.
    pub fn new(kring: Kring, client: Arc<Doorbell>) -> RxSide {
        let (head, hwtail) = (kring.hwcur(), kring.hwtail());
        kring.csb().service.set_takes_back(false);
        RxSide {
            kring,
            client,
            hwtail,
            head,
            published: hwtail,
            bytes: 0,
            pending_notify: 0,
            bad_head: u32::MAX,
            bad_heads: 0,
            full: 0,
            mirrors: Mirrors::default(),
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

    /// Learns which slots the client has released. Returns whether there are new ones. Only what it was
    /// told of can be released: a client that claims more has its claim ignored, until its `head` is
    /// back among the slots that it holds.
    pub(crate) fn take_back(&mut self) -> bool {
        let (ring, head) = (self.kring.ring(), self.kring.csb().app.head());
        if head == self.head {
            return false;
        }
        let news = head < ring.num_slots()
            && ring.distance(self.head, head) <= ring.distance(self.head, self.published);
        if !news && self.bad_head != head {
            self.bad_head = head;
            self.bad_heads += 1;
        }
        if news {
            // A ring may have thousands of slots, and monitors that want each: the rest is for the next look.
            let far = self.swaps && ring.distance(self.head, head) > SWAPS;
            let head = if far { ring.advance(self.head, SWAPS) } else { head };
            self.mirrors.swap(ring, self.head, head);
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
        csb.app.kick(&csb.service, || self.client.notify());
    }

    /// How many wrong claims there were since the last call.
    pub(crate) fn take_bad_heads(&mut self) -> u64 {
        std::mem::take(&mut self.bad_heads)
    }

    /// Tells the client how many packets found no room, and how many were too long.
    pub(crate) fn tell_lost(&self, lost: [u64; 2]) {
        self.kring.csb().service.count_lost(lost);
    }

    pub(crate) fn room(&mut self) -> Room {
        self.take_back();
        let ring = self.kring.ring();
        let free = ring.distance(self.hwtail, ring.prev(self.head));
        let size = ring.region().layout().data_size();
        let bytes = self.offsets.map_or(size, |it| it.end(it.max, size).saturating_sub(it.max));
        Room { free, slots: ring.num_slots() - 1, bytes }
    }

    /// Whether there are `slots` free slots for a packet of this burst.
    pub(crate) fn has_room(&mut self, slots: u32, burst: &Burst<'_>) -> bool {
        let has = self.full != burst.serial && self.space(slots);
        if !has {
            self.ends(slots, burst);
        }
        has
    }

    /// Asks to be woken when the client releases slots.
    pub(crate) fn arm(&self) {
        self.kring.csb().service.arm();
    }

    /// Delivers as many leading packets as fit (S-VALE-10), and shows them to the monitors.
    pub(crate) fn deliver(
        &mut self,
        frames: &[Frame],
        burst: &Burst<'_>,
        drops: &mut Drops,
    ) -> Delivered {
        let first = self.hwtail;
        let delivered = match self.offsets {
            None => self.deliver_run::<false, false>(frames, burst, drops),
            Some(_) => self.deliver_run::<true, false>(frames, burst, drops),
        };
        let delivered = delivered.without(burst.source.header_len);
        self.bytes += delivered.bytes;
        if !self.mirrors.is_empty() {
            self.mirrors.copy(self.kring.ring(), first, self.hwtail);
        }
        delivered
    }

    /// The same for packets that go to no other port: buffers change hands where the sender's are in the same region.
    pub(crate) fn hand_over(
        &mut self,
        frames: &[Frame],
        burst: &Burst<'_>,
        drops: &mut Drops,
    ) -> Delivered {
        let is_own =
            |slots: TxSlots<'_>| Arc::ptr_eq(slots.ring.region(), self.kring.ring().region());
        if !burst.slots.is_some_and(is_own) || self.offsets.is_some() || !self.mirrors.is_empty() {
            return self.deliver(frames, burst, drops);
        }
        let delivered = self.deliver_run::<false, true>(frames, burst, drops);
        let delivered = delivered.without(burst.source.header_len);
        self.bytes += delivered.bytes;
        delivered
    }

    #[inline]
    fn deliver_run<const OFFSETS: bool, const SWAP: bool>(
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
        loop {
            if plain {
                self.deliver_plain::<SWAP>(&mut rest, burst, &mut delivered);
            }
            let Some(frame) = rest.next() else { break };
            if self.space(frame.count.into()) {
                if let Some(bytes) = self.deliver_pieces::<OFFSETS>(frame, burst, drops) {
                    delivered.add(bytes);
                } else if self.full == burst.serial {
                    drops.ring_full += rest.len() as u64;
                    break;
                }
            } else if self.refuse(frame.count.into(), burst, drops) {
                drops.ring_full += rest.len() as u64;
                break;
            }
        }
        delivered
    }

    /// Counts a packet of `slots` slots for which there is no room. True if there is none for those behind, either.
    #[cold]
    fn refuse(&mut self, slots: u32, burst: &Burst<'_>, drops: &mut Drops) -> bool {
        drops.ring_full += 1;
        self.ends(slots, burst)
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

    /// Delivers packets as nearly all are, of one piece that arrives as it was sent: up to the first that takes more than
    /// a good slot which is known to be free.
    #[inline]
    fn deliver_plain<const SWAP: bool>(
        &mut self,
        rest: &mut slice::Iter<'_, Frame>,
        burst: &Burst<'_>,
        delivered: &mut Delivered,
    ) {
        let ring = self.kring.ring();
        let (bufs, mut at) = (ring.bufs(), self.hwtail);
        let mut free = ring.distance(at, ring.prev(self.head));
        while free > 0
            && let [frame, behind @ ..] = rest.as_slice()
            && let ([(from, len)], 0) = (burst.pieces(frame), frame.skip)
        {
            if SWAP
                && *len >= SWAP_FROM
                && let Some(TxSlots { ring: sent, at: first }) = burst.slots
            {
                let from = sent.advance(first, frame.start.into());
                if !swap([sent, ring], [from, at], frame, *len) {
                    break;
                }
                at = ring.next(at);
                free -= 1;
                delivered.add(*len);
                *rest = behind.iter();
                continue;
            }
            let index = ring.plain_slot(at).buf_idx;
            let Some(to) = bufs.get(index).filter(|to| *len <= to.size()) else { break };
            to.copy_from(from, *len as usize);
            // Whole even if the piece is shorter: the header is zero past its end.
            to.store(0, frame.header());
            ring.set_slot(at, index, *len as u16, 1 << NS_PORT_SHIFT);
            at = ring.next(at);
            free -= 1;
            delivered.add(*len);
            *rest = behind.iter();
        }
        self.hwtail = at;
    }

    /// Copies a packet for which there are slots; returns its bytes. One with a piece that does not
    /// fit its slot's buffer is dropped (S-VALE-11), unless it is only a tag that takes the room.
    #[inline(never)]
    fn deliver_pieces<const OFFSETS: bool>(
        &mut self,
        frame: &Frame,
        burst: &Burst<'_>,
        drops: &mut Drops,
    ) -> Option<u32> {
        let pieces = burst.pieces(frame);
        match self.copy_pieces::<OFFSETS>(frame, pieces.iter().copied(), frame.count, burst) {
            Ok(bytes) => Some(bytes),
            Err(Misfit::NoBuffer) => {
                drops.bad_slot += 1;
                None
            }
            Err(Misfit::TooLong { room }) => self.deliver_cut::<OFFSETS>(frame, room, burst, drops),
        }
    }

    /// The same for a packet that does not fit so: where the tag takes `room` that the first piece had without, what is
    /// pushed out goes into a slot of its own.
    #[cold]
    #[inline(never)]
    fn deliver_cut<const OFFSETS: bool>(
        &mut self,
        frame: &Frame,
        room: Option<u32>,
        burst: &Burst<'_>,
        drops: &mut Drops,
    ) -> Option<u32> {
        let slots = u32::from(frame.count) + 1;
        let cut = burst.pieces(frame).split_first().zip(room).filter(|_| slots <= NETMAP_MAX_FRAGS);
        let cut = cut.and_then(|((first, others), room)| Some((frame.cut(*first, room)?, others)));
        let Some((cut, others)) = cut else {
            drops.too_long += 1;
            return None;
        };
        if !self.space(slots) {
            self.refuse(slots, burst, drops);
            return None;
        }
        let pieces = cut.into_iter().chain(others.iter().copied());
        match self.copy_pieces::<OFFSETS>(frame, pieces, slots as u8, burst) {
            Ok(bytes) => return Some(bytes),
            Err(Misfit::NoBuffer) => drops.bad_slot += 1,
            Err(Misfit::TooLong { .. }) => drops.too_long += 1,
        }
        None
    }

    /// Copies the `count` pieces of a packet, which becomes a received one if all of them fit; returns their bytes.
    #[inline]
    fn copy_pieces<'b, const OFFSETS: bool>(
        &mut self,
        frame: &Frame,
        pieces: impl Iterator<Item = Piece<'b>>,
        count: u8,
        burst: &Burst<'_>,
    ) -> Result<u32, Misfit> {
        let ring = self.kring.ring();
        let (mut at, mut bytes) = (self.hwtail, 0);
        for (i, (from, len)) in (1..).zip(pieces) {
            let index = ring.slot(at).buf_idx;
            let Some(to) = ring.buf(index) else { return Err(Misfit::NoBuffer) };
            let begin = (i == 1).then_some(burst.source.header_len.into());
            let (to, ptr) = if OFFSETS {
                let len = if begin.is_some() { frame.moved_len(len) } else { len };
                self.place(at, &from, len, to)
            } else {
                (to, 0)
            };
            let Some(len) = frame.copy_piece(begin, &from, len, &to) else {
                return Err(Misfit::TooLong { room: begin.map(|_| to.size()) });
            };
            bytes += len;
            if OFFSETS {
                ring.set_slot_ptr(at, ptr);
            }
            // S-FLAGS-NS_MOREFRAG, S-FLAGS-NS_RFRAGS: the number of slots is in each.
            let more = if i == count { 0 } else { NS_MOREFRAG };
            ring.set_slot(at, index, len as u16, u16::from(count) << NS_PORT_SHIFT | more);
            at = ring.next(at);
        }
        self.hwtail = at;
        Ok(bytes)
    }

    /// The part of slot `at`'s buffer that the piece is to fill, and the `ptr` that tells the
    /// program.
    fn place<'a>(&self, at: u32, from: &Buf<'_>, len: u32, to: Buf<'a>) -> (Buf<'a>, u64) {
        let ptr = self.kring.ring().slot(at).ptr;
        let Some(offsets) = self.offsets else { return (to, ptr) };
        let Range { start, end } = place(&offsets, ptr, from, len, &to);
        let part = to.part(start, end.saturating_sub(start)).unwrap_or(to);
        (part, offsets.write(ptr, start))
    }

    pub(crate) fn set_offsets(&mut self, offsets: Option<Offsets>) {
        self.offsets = offsets;
    }

    pub(crate) fn set_mirrors(&mut self, mirrors: Mirrors) {
        // What was released before is not for those who come now.
        while self.take_back() {}
        self.tell_taken_back();
        self.swaps = mirrors.swaps();
        self.kring.csb().service.set_takes_back(self.swaps);
        self.mirrors = mirrors;
    }

    /// Whether any monitor wants what the client releases, at once.
    pub(crate) fn swaps(&self) -> bool {
        self.swaps
    }

    /// Makes visible what was delivered.
    pub(crate) fn flush(&mut self, idle: bool) {
        let ring = self.kring.ring();
        // Other rings of the port may be busy for ever: the worker does not wait here for them to pause.
        let quiet = self.hwtail == self.published;
        self.mirrors.wake(idle || quiet);
        if !quiet {
            self.pending_notify += ring.distance(self.published, self.hwtail);
            self.published = self.hwtail;
            let csb = self.kring.csb();
            csb.service.count_bytes(std::mem::take(&mut self.bytes));
            csb.service.publish(self.head, self.hwtail);
        }
        if self.pending_notify != 0
            && (idle || quiet || self.pending_notify >= ring.num_slots() / 4)
        {
            self.pending_notify = 0;
            let csb = self.kring.csb();
            csb.app.kick(&csb.service, || self.client.notify());
        }
    }
}

/// Has a slot that was sent and a free one change buffers, which are of one region: the packet, of `len` bytes, is in the
/// free one then. False, with nothing changed, if either buffer is none. The sender's slot is read again, and may name
/// another buffer by now, of those that its program can write to anyway.
fn swap([sent, ring]: [&RingView; 2], [from, to]: [u32; 2], frame: &Frame, len: u32) -> bool {
    let (theirs, mine) = (sent.plain_slot(from), ring.plain_slot(to));
    let (Some(buf), Some(_)) = (sent.buf(theirs.buf_idx), ring.buf(mine.buf_idx)) else {
        return false;
    };
    // The receiver gets what was looked at.
    buf.store(0, frame.header());
    // S-FLAGS-NS_BUF_CHANGED.
    let back = Slot { buf_idx: mine.buf_idx, flags: theirs.flags | NS_BUF_CHANGED, ..theirs };
    let came = Slot { len: len as u16, flags: 1 << NS_PORT_SHIFT | NS_BUF_CHANGED, ..theirs };
    ring.exchange(to, &came, sent, from, &back);
    true
}
