//! Which thread drives a ring now, and the ring's counters: lines of the control block
//! that only the program's side uses, kept in the region so that a forked or a receiving
//! process finds them.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};

use ringway_region::shared_struct;

use crate::{
    feed::{Feed, TryLock},
    lock::{Guard, Lock},
};

/// The state of the program's side between two syncs, and the lock around a sync.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct Owner {
    pub(crate) lock: Lock,
    /// `head` at the last accepted sync, and the `tail` that the program was told.
    pub(crate) rhead: AtomicU32,
    pub(crate) rtail: AtomicU32,
    /// For the driver: how long the last looks found little (see the pipe driver).
    pub backoff: AtomicU32,
    /// For the driver: a position of its own in the ring.
    pub driver_cursor: AtomicU32,
    /// For the driver: the bits of a slot's `ptr` that say where its data begins, none where it
    /// begins with the buffer; the greatest offset (S-OFF-4) and the least distance of two.
    pub offset_mask: AtomicU64,
    /// The greatest offset, in bytes.
    pub offset_max: AtomicU32,
    /// The least distance of two packets, in bytes.
    pub offset_gap: AtomicU32,
    /// Generation of the monitors that the ring's driver serves; 0: there has never been any.
    pub(crate) monitors: AtomicU32,
    /// Bytes of the longest frame that the interface behind the ring sends, without a VLAN tag; 0: that is
    /// not known, or there is no link.
    pub longest: AtomicU32,
    /// For the driver: buffers below this index are in the memory that the kernel has of the region; 0: all are.
    pub in_umem: AtomicU32,
    /// For the driver: how many of the ring's [spare](ringway_region::RingView::spare) buffers are free. These come
    /// first.
    pub spares: AtomicU32,
}

const _: () = assert!(size_of::<Owner>() == 64);

shared_struct!(Owner {
    lock,
    rhead,
    rtail,
    backoff,
    driver_cursor,
    offset_mask,
    offset_max,
    offset_gap,
    monitors,
    longest,
    in_umem,
    spares
});
shared_struct!(RingFeed { lock, id, ended });
shared_struct!(Counters {
    packets,
    bytes,
    bad_index,
    bad_slot,
    too_long,
    ring_full,
    kicks,
    too_short
});
shared_struct!(MoreCounters { bad_offload });

impl Owner {
    /// Bytes of the [longest](Self::longest) frame without a VLAN tag; `u32::MAX` where that is not known.
    #[inline]
    pub fn longest_frame(&self) -> u32 {
        match self.longest.load(Relaxed) {
            0 => u32::MAX,
            bytes => bytes,
        }
    }
}

/// The [feed](crate::feed) of a ring in shared memory.
pub(crate) type RingFeed = Feed<Lock>;

impl TryLock for Lock {
    type Guard<'a> = Guard<'a>;

    #[inline]
    fn try_lock(&self) -> Option<Guard<'_>> {
        Lock::try_lock(self)
    }

    fn keep(guard: Guard<'_>) {
        guard.keep();
    }
}

/// The counters of one ring, written by the thread that drives it, but for those of [`Kring::note_shared`](crate::Kring).
/// One cache line.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct Counters {
    /// Packets that the driver has moved.
    pub packets: AtomicU64,
    /// Bytes of these packets, where the driver counts them.
    pub bytes: AtomicU64,
    /// Syncs refused because of invalid cursors.
    pub bad_index: AtomicU64,
    /// Slots dropped because their buffer index or length was invalid.
    pub bad_slot: AtomicU64,
    /// Slots dropped because they were longer than the path allows.
    pub too_long: AtomicU64,
    /// Slots lost because the next hop's queue was full.
    pub ring_full: AtomicU64,
    /// System calls made to wake the other party.
    pub kicks: AtomicU64,
    /// Packets dropped because they were shorter than an Ethernet header.
    pub too_short: AtomicU64,
}

const _: () = assert!(size_of::<Counters>() == 64);

/// A counter that the [first line](Counters) has no room for, written as those are.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct MoreCounters {
    /// Packets dropped because what they asked of hardware cannot be.
    pub bad_offload: AtomicU64,
}

/// Adds to a counter, modulo 2^64: whatever others have written there, it goes on from it. One
/// party counts at a time; what another adds meanwhile is lost.
#[inline]
pub(crate) fn add(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(n), Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_was_spoiled_goes_on() {
        let counter = AtomicU64::new(u64::MAX);
        add(&counter, 3);
        assert_eq!(counter.load(Relaxed), 2);
    }
}
