//! A port of another bridge, whose program is this bridge: what the other bridge delivers to it is
//! sent on here, and the other way round. So the two are connected (S-VALE-14).
//!
//! The rings are driven as their program would drive them, by the sync of their driver.
#![expect(
    clippy::indexing_slicing,
    reason = "the worker asks for rings below `tx_rings` and `rx_rings`, which count these vectors"
)]

use std::{io, sync::Arc};

use ringway_abi::{NETMAP_MAX_FRAGS, NS_MOREFRAG};
use ringway_kring::{Doorbell, Driver, Kring};
use ringway_switch_port::{
    Backpressure, Burst, Configure, Delivered, Drops, Frame, Mirrored, PacketIo, Piece, Wake,
    wrapped,
};
use rustix::{
    event::{Timespec, epoll},
    fd::{AsFd, BorrowedFd, OwnedFd},
};

/// Slots looked at before other ports have their turn.
const BURST: u32 = 128;

/// Bytes in as much.
const BURST_BYTES: u32 = 1 << 18;

/// A receive ring and what its program sleeps on.
struct Rx {
    kring: Kring,
    /// Kept as long as it is listened to.
    _doorbell: Arc<Doorbell>,
    head: u32,
    collected: u32,
}

struct Tx {
    kring: Kring,
    head: u32,
    staged: bool,
}

/// What has become of a packet for a sending ring.
enum Outcome {
    Sent,
    /// A slot names no buffer.
    NoBuffer,
    /// A piece is longer than its slot's buffer; if it is the first, that has so much room.
    TooLong {
        room: Option<u32>,
    },
    /// Fewer than so many slots are free.
    NoRoom {
        slots: u32,
    },
}

/// See the module.
pub struct ProgramPort<D> {
    rx: Vec<Rx>,
    tx: Vec<Tx>,
    driver: D,
    /// Listens to the doorbells of all receive rings.
    doorbell: OwnedFd,
}

impl<D: Driver> ProgramPort<D> {
    /// Goes on where the last program of these rings stopped. `rx` are rings with what their program
    /// sleeps on; `driver` is that of all of them. Nothing else may drive them meanwhile.
    ///
    /// Fails when the process is out of descriptors.
    pub fn new(tx: Vec<Kring>, rx: Vec<(Kring, Arc<Doorbell>)>, driver: D) -> io::Result<Self> {
        let doorbell = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for (_, ring) in &rx {
            let data = epoll::EventData::new_u64(0);
            // By the edge: former programs of the rings may hold the doorbells still.
            let edge = epoll::EventFlags::IN | epoll::EventFlags::ET;
            epoll::add(&doorbell, ring.as_ref(), data, edge)?;
        }
        let head = |kring: &Kring| kring.bounded(kring.ring().head());
        let tx = tx.into_iter().map(|kring| Tx { head: head(&kring), kring, staged: false });
        let rx = rx.into_iter().map(|(kring, doorbell)| {
            let head = head(&kring);
            Rx { kring, _doorbell: doorbell, head, collected: head }
        });
        Ok(ProgramPort { rx: rx.collect(), tx: tx.collect(), driver, doorbell })
    }
}

/// One sync with `head` in the ring; the head that the program has afterwards, which is another one
/// when a client has scribbled over the ring.
#[inline]
fn sync(kring: &Kring, head: u32, driver: &impl Driver) -> u32 {
    let ring = kring.ring();
    ring.set_head(head);
    ring.set_cur(head);
    kring.sync(driver);
    kring.bounded(ring.head())
}

impl Tx {
    /// Whether `slots` are free, after a sync if need be: by the tail that the last sync told. A program that
    /// goes beyond that has its ring reinitialised, although more may be free by now (S-SYNC-4).
    #[inline]
    fn has_room(&mut self, slots: u32, driver: &impl Driver) -> bool {
        let free = |tx: &Tx| tx.kring.ring().distance(tx.head, tx.kring.last_tail());
        if free(self) >= slots {
            return true;
        }
        self.head = sync(&self.kring, self.head, driver);
        free(self) >= slots
    }

    #[inline]
    fn send(&mut self, frame: &Frame, burst: &Burst<'_>, driver: &impl Driver) -> Outcome {
        let pieces = burst.pieces(frame);
        let slots = pieces.len() as u32;
        if !self.has_room(slots, driver) {
            return Outcome::NoRoom { slots };
        }
        match self.fill(frame, pieces.iter().copied(), slots, burst) {
            Outcome::TooLong { room: Some(room) } => self.send_cut(frame, room, burst, driver),
            outcome => outcome,
        }
    }

    /// The first piece is longer than the `room` of its slot. If only its tag makes it so, what that pushes out goes into a
    /// slot of its own.
    #[cold]
    fn send_cut(
        &mut self,
        frame: &Frame,
        room: u32,
        burst: &Burst<'_>,
        driver: &impl Driver,
    ) -> Outcome {
        let pieces = burst.pieces(frame);
        let slots = pieces.len() as u32 + 1;
        let cut = pieces.split_first().filter(|_| slots <= NETMAP_MAX_FRAGS);
        let cut = cut.and_then(|(first, others)| Some((frame.cut(*first, room)?, others)));
        let Some((cut, others)) = cut else { return Outcome::TooLong { room: None } };
        if !self.has_room(slots, driver) {
            return Outcome::NoRoom { slots };
        }
        self.fill(frame, cut.into_iter().chain(others.iter().copied()), slots, burst)
    }

    /// Fills slots that are free with the `count` pieces of a packet.
    #[inline]
    fn fill<'b>(
        &mut self,
        frame: &Frame,
        pieces: impl Iterator<Item = Piece<'b>>,
        count: u32,
        burst: &Burst<'_>,
    ) -> Outcome {
        let ring = self.kring.ring();
        let mut at = self.head;
        for (i, (from, len)) in (1..).zip(pieces) {
            let index = ring.slot(at).buf_idx;
            let Some(to) = ring.buf(index) else { return Outcome::NoBuffer };
            let begin = (i == 1).then_some(burst.source().header_len.into());
            let Some(len) = frame.copy_piece(begin, &from, len, &to) else {
                return Outcome::TooLong { room: begin.map(|_| to.size()) };
            };
            let more = if i == count { 0 } else { NS_MOREFRAG };
            ring.set_slot(at, index, len as u16, more);
            at = ring.next(at);
        }
        self.head = at;
        self.staged = true;
        Outcome::Sent
    }
}

impl<D: Driver + Send> PacketIo for ProgramPort<D> {
    fn collect<'a>(&'a mut self, ring: usize, burst: &mut Burst<'a>, drops: &mut Drops) -> u32 {
        let side = &mut self.rx[ring];
        side.head = sync(&side.kring, side.head, &self.driver);
        let (view, tail) = (side.kring.ring(), side.kring.hwtail());
        let (mut at, mut found, mut pieces, mut lost) = (side.head, 0, 0, false);
        let (mut bytes, most) = (0, burst.limit.min(BURST_BYTES));
        // A bridge delivers whole packets only: the last one is looked at to its end.
        while at != tail && (found < BURST && bytes < most || pieces > 0) {
            let slot = view.slot(at);
            bytes += u32::from(slot.len);
            at = view.next(at);
            found += 1;
            pieces += 1;
            if pieces == 1 {
                bytes += burst.per_frame;
            }
            lost |= pieces > NETMAP_MAX_FRAGS
                || !view.buf(slot.buf_idx).is_some_and(|buf| burst.push(buf, slot.len.into()));
            if slot.flags & NS_MOREFRAG != 0 && at != tail {
                continue;
            }
            if std::mem::take(&mut lost) {
                burst.abandon();
                drops.bad_slot += 1;
            } else {
                burst.end_frame();
            }
            pieces = 0;
        }
        side.collected = at;
        found
    }

    fn release(&mut self, ring: usize) {
        let side = &mut self.rx[ring];
        side.head = side.collected;
    }

    fn tx_rings(&self) -> usize {
        self.rx.len()
    }

    fn receives(&self) -> bool {
        true
    }

    fn deliver(
        &mut self,
        ring: usize,
        frames: &[Frame],
        burst: &Burst<'_>,
        drops: &mut Drops,
    ) -> Delivered {
        let ring = wrapped(ring, self.tx.len());
        let tx = &mut self.tx[ring];
        let mut delivered = Delivered::default();
        // Each look at a full ring is a sync: one is enough for a burst.
        let mut full = false;
        for frame in frames {
            if full {
                drops.ring_full += 1;
                continue;
            }
            match tx.send(frame, burst, &self.driver) {
                Outcome::Sent => delivered.add(frame.len),
                Outcome::NoBuffer => drops.bad_slot += 1,
                Outcome::TooLong { .. } => drops.too_long += 1,
                Outcome::NoRoom { slots } => {
                    drops.ring_full += 1;
                    full = slots < tx.kring.ring().num_slots();
                }
            }
        }
        delivered
    }

    fn flush(&mut self, _idle: bool) {
        for tx in self.tx.iter_mut().filter(|tx| tx.staged) {
            tx.staged = false;
            tx.head = sync(&tx.kring, tx.head, &self.driver);
        }
    }
}

impl<D: Driver + Send> Backpressure for ProgramPort<D> {}

impl<D: Driver + Send> Configure for ProgramPort<D> {}

impl<D: Driver + Send> Mirrored for ProgramPort<D> {}

impl<D: Driver + Send> Wake for ProgramPort<D> {
    fn arm(&mut self) {
        self.rx.iter().for_each(|side| side.kring.csb().app.arm());
    }

    fn doorbell(&self) -> BorrowedFd<'_> {
        self.doorbell.as_fd()
    }

    fn drain(&self) {
        let nothing =
            epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) };
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        // If there are more, the worker does not sleep before it has heard them.
        let _ = epoll::wait(&self.doorbell, &mut [nothing; 16], Some(&at_once));
    }
}
