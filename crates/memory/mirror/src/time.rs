//! When the packets came that a monitor is fed: nanoseconds of CLOCK_TAI in the `ptr` of each slot.
//!
//! It is a clock's time when the packet is put into the monitor's ring, read for each packet, or
//! what the mirrored ring, or the interface of a switch, says of it, where that has timestamps. A monitor whose data begins at
//! offsets needs `ptr` for these, and has no times.

use ringway_abi::NS_MOREFRAG;
use ringway_kring::{Kring, Offsets};
use ringway_region::{RingView, Slot};
use rustix::time::{DynamicClockId, clock_gettime_dynamic};

/// Where the time of a ring's packets stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeSource {
    /// Nowhere: they come as they are shown.
    #[default]
    Clock,
    /// In front of the data: timestamps of the kernel's or the NIC's.
    Buffer,
    /// In the slot: the ring is a monitor's.
    Slot,
}

/// Whether the slots of a monitor's ring have times.
pub fn has_times(monitor: &Kring) -> bool {
    Offsets::of(monitor) == Offsets::default()
}

/// Tells the times of slots one after another: those of a packet have the time of the first.
pub(crate) struct Times {
    source: TimeSource,
    last: u64,
    goes_on: bool,
}

impl Times {
    pub fn new(source: TimeSource) -> Times {
        Times { source, last: 0, goes_on: false }
    }

    /// The time of the next slot of a ring.
    #[inline]
    pub fn of(&mut self, ring: &RingView, slot: &Slot) -> u64 {
        let told = match self.source {
            TimeSource::Clock => None,
            TimeSource::Buffer => ring.timestamp(slot.buf_idx),
            TimeSource::Slot => Some(slot.ptr),
        };
        self.next(slot.flags, told.filter(|time| *time != 0))
    }

    /// The time of the next slot, which has these flags, and of which this is known.
    #[inline]
    pub fn next(&mut self, flags: u16, told: Option<u64>) -> u64 {
        if !self.goes_on {
            self.last = told.unwrap_or_else(now);
        }
        self.goes_on = flags & NS_MOREFRAG != 0;
        self.last
    }
}

fn now() -> u64 {
    let now = clock_gettime_dynamic(DynamicClockId::Tai).unwrap_or_default();
    (now.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec as u64)
}
