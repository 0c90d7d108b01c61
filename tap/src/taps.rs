//! The taps of one ring, and how they are fed.

use std::sync::Arc;

use ringway_abi::{NS_MOREFRAG, NS_TXMON};
use ringway_kring::{Bell, Kring};
use ringway_region::RingView;
use serde::{Deserialize, Serialize};

use crate::slots::{Offsets, Place, copy, swap};

/// What a tap carries, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Way {
    /// A copy of what is sent.
    CopySent,
    /// A copy of what is received.
    CopyReceived,
    /// The buffers of what was sent, when the sender gets its slots back.
    SwapSent,
    /// The buffers of what was received, when the receiver has released them.
    SwapReceived,
    /// The same, where the receiver is a monitor itself: NS_TXMON stays what it is.
    SwapReleased,
}

impl Way {
    /// Whether it is fed what is in use, not what is free.
    pub fn copies(self) -> bool {
        matches!(self, Way::CopySent | Way::CopyReceived)
    }

    fn tag(self) -> Option<u16> {
        match self {
            Way::CopySent | Way::SwapSent => Some(NS_TXMON),
            Way::CopyReceived | Way::SwapReceived => Some(0),
            Way::SwapReleased => None,
        }
    }
}

/// One monitor's ring, as whoever feeds it sees it.
#[derive(Debug)]
pub struct Tap {
    monitor: Kring,
    bell: Arc<Bell>,
    way: Way,
    /// Of the ring that is tapped, and of the monitor's.
    offsets: [Offsets; 2],
    /// Slots that the monitor's program has not been woken for.
    unannounced: u32,
}

impl Tap {
    /// A tap into the rx ring `monitor`, whose program sleeps on `bell`. For a swap, `monitor`
    /// must be in the region of the ring that is tapped.
    pub fn new(monitor: Kring, bell: Arc<Bell>, way: Way) -> Tap {
        Tap { monitor, bell, way, offsets: Default::default(), unannounced: 0 }
    }

    /// For rings whose packets begin elsewhere than at the start of their buffers: the ring that
    /// is tapped, and the monitor's.
    pub fn with_offsets(self, offsets: [Offsets; 2]) -> Tap {
        Tap { offsets, ..self }
    }

    /// Puts slots `[from, to)` of `ring` into the monitor's ring; returns how many.
    fn feed(&self, ring: &RingView, from: u32, to: u32) -> u32 {
        let monitor = self.monitor.ring();
        let csb = self.monitor.csb();
        let head = csb.app.head();
        if head >= monitor.num_slots() {
            return 0;
        }
        let first = self.monitor.hwtail();
        let room = monitor.distance(first, monitor.prev(head));
        let (mut at, mut tail) = (begin(ring, from, to, room), first);
        while at != to {
            let [theirs, mine] = self.offsets;
            let from = Place { ring, at, offsets: theirs };
            let to = Place { ring: monitor, at: tail, offsets: mine };
            if self.way.copies() {
                copy(from, to, self.way.tag());
            } else {
                swap(from, to, self.way.tag());
            }
            at = ring.next(at);
            tail = monitor.next(tail);
        }
        csb.service.publish(head, tail);
        monitor.distance(first, tail)
    }

    fn wake(&self) {
        if self.monitor.csb().app.must_kick(&self.monitor.csb().service) {
            self.bell.ring();
        }
    }
}

/// Where to begin so that at most `room` slots before `to` remain: with the first slot of a
/// packet.
fn begin(ring: &RingView, from: u32, to: u32, room: u32) -> u32 {
    let count = ring.distance(from, to);
    if count <= room {
        return from;
    }
    let mut at = ring.advance(from, count - room);
    while at != to && ring.slot(ring.prev(at)).flags & NS_MOREFRAG != 0 {
        at = ring.next(at);
    }
    at
}

/// The taps of one ring. The default has none, and feeds nobody.
#[derive(Debug, Default)]
pub struct Taps {
    taps: Vec<Tap>,
    /// The ring that is tapped, and the generation of monitors that these are: where several
    /// parties feed the monitors.
    shared: Option<(Kring, u32)>,
}

impl Taps {
    /// Taps that nobody else ever feeds.
    pub fn alone(taps: Vec<Tap>) -> Taps {
        Taps { taps, shared: None }
    }

    /// Taps that others may feed too, good for as long as `ring` says that its monitors are of
    /// this `generation`.
    pub fn shared(taps: Vec<Tap>, ring: Kring, generation: u32) -> Taps {
        Taps { taps, shared: Some((ring, generation)) }
    }

    pub fn is_empty(&self) -> bool {
        self.taps.is_empty()
    }

    /// Shows slots `[from, to)` of `ring`, which hold packets, to those who copy.
    #[inline]
    pub fn copy(&mut self, ring: &RingView, from: u32, to: u32) {
        self.feed(true, ring, from, to);
    }

    /// Lets those who swap have the buffers in slots `[from, to)` of `ring`, which are free.
    #[inline]
    pub fn swap(&mut self, ring: &RingView, from: u32, to: u32) {
        self.feed(false, ring, from, to);
    }

    fn feed(&mut self, copies: bool, ring: &RingView, from: u32, to: u32) {
        if from == to {
            return;
        }
        for tap in self.taps.iter_mut().filter(|tap| tap.way.copies() == copies) {
            let Some((tapped, generation)) = &self.shared else {
                tap.unannounced += tap.feed(ring, from, to);
                continue;
            };
            // The lock first, then the look: whoever takes a monitor away announces it first,
            // then waits for the lock. So the monitor's ring is there, or we are told.
            let Some(_guard) = tap.monitor.try_feed() else { continue };
            if tapped.monitors() == *generation && tap.feed(ring, from, to) > 0 {
                tap.wake();
            }
        }
    }

    /// Wakes the monitors that sleep and have been given something; unless `now`, those only
    /// that have been given much.
    #[inline]
    pub fn wake(&mut self, now: bool) {
        for tap in &mut self.taps {
            let much = tap.monitor.ring().num_slots() / 4;
            if tap.unannounced > 0 && (now || tap.unannounced >= much) {
                tap.unannounced = 0;
                tap.wake();
            }
        }
    }
}
