//! A program that sends to a switch without a pause, and need not wait for the worker each time.
//!
//! A sync waits until the worker has taken everything (S-VALE-5). To a program that sends burst after
//! burst this is a switch of processes for each, and while it waits the switch has nothing to do. So a
//! sync that comes soon after the one before it, as the last [`LEAST`] have, returns while a quarter of
//! each ring is free: the worker takes what is left in microseconds, also when the program ends. Two
//! kinds of programs could see a difference. Some fill a ring without looking for room: there is always
//! a quarter. Others look at the port that has received, at once: so a process that receives from a
//! switch always waits.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

use ringway::Binding;
use ringway_abi::Dir;
use rustix::time::{ClockId, clock_gettime};

/// Syncs in a row, each soon after the one before it, that make a stream.
const LEAST: u32 = 1024;

/// In nanoseconds. A program that does something else between two syncs may have told others of the first.
const SOON: u64 = 200_000;

/// This process receives from a switch.
static RECEIVES: AtomicBool = AtomicBool::new(false);

/// A program looks for what it has received by this binding.
#[inline]
pub fn note_receiver(binding: &Binding) {
    if binding.is_served() && !RECEIVES.load(Relaxed) {
        RECEIVES.store(true, Relaxed);
    }
}

/// The syncs of a descriptor.
pub struct Stream {
    /// When the last one was made, or its wait was over, in nanoseconds.
    last: AtomicU64,
    /// So many were soon after the one before them.
    in_a_row: AtomicU32,
}

impl Stream {
    pub const fn new() -> Stream {
        Stream { last: AtomicU64::new(0), in_a_row: AtomicU32::new(0) }
    }

    /// Another descriptor begins.
    pub fn reset(&self) {
        self.last.store(0, Relaxed);
        self.in_a_row.store(0, Relaxed);
    }

    /// After a sync: whether it may return although the worker has yet to take some.
    pub fn may_go_on(&self, binding: &Binding) -> bool {
        if RECEIVES.load(Relaxed) {
            return false;
        }
        let (now, last) = (now(), self.last.load(Relaxed));
        self.last.store(now, Relaxed);
        let soon = now.saturating_sub(last) < SOON;
        let in_a_row = if soon { self.in_a_row.load(Relaxed).saturating_add(1) } else { 0 };
        self.in_a_row.store(in_a_row, Relaxed);
        in_a_row >= LEAST
            && binding.rings(Dir::Tx).iter().all(|ring| {
                let ring = ring.kring().ring();
                ring.held() >= ring.num_slots() / 4
            })
    }

    /// The sync has waited.
    pub fn waited(&self) {
        self.last.store(now(), Relaxed);
    }
}

fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
