//! How far apart two CPUs are, in time.
//!
//! Packets that cross from core to core cost what their cache lines cost, and a virtual machine's
//! host may move its CPUs between dies while nobody looks: on one such machine the round trip of a
//! line went from 50 to 330 ns and back within seconds, and every figure of every contestant with
//! it, up to a factor of four. So the distance is measured beside every run.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use std::{hint, io, thread};

use crate::cpu;

const GROUPS: usize = 101;
const TRIPS: u64 = 200;

/// A line that nothing else shares.
#[repr(align(128))]
struct Line(AtomicU64);

impl Line {
    fn wait_for(&self, value: u64) {
        while self.0.load(Ordering::Acquire) != value {
            hint::spin_loop();
        }
    }
}

/// Nanoseconds that a cache line takes from `here` to `there` and back: the median of many, so
/// that a thread which had to wait for its CPU does not count.
pub fn round_trip(here: usize, there: usize) -> io::Result<f64> {
    let line = Line(AtomicU64::new(0));
    thread::scope(|scope| {
        let echo = scope.spawn(|| {
            // A thread that could not be pinned must play on, or the other waits for ever.
            let pinned = cpu::pin(there);
            for trip in 0..GROUPS as u64 * TRIPS {
                line.wait_for(2 * trip + 1);
                line.0.store(2 * trip + 2, Ordering::Release);
            }
            pinned
        });
        let call = scope.spawn(|| {
            let pinned = cpu::pin(here);
            let mut groups = [0.0; GROUPS];
            for (group, time) in (0..).zip(&mut groups) {
                let begin = Instant::now();
                for trip in group * TRIPS..(group + 1) * TRIPS {
                    line.0.store(2 * trip + 1, Ordering::Release);
                    line.wait_for(2 * trip + 2);
                }
                *time = begin.elapsed().as_nanos() as f64 / TRIPS as f64;
            }
            groups.sort_by(f64::total_cmp);
            pinned.map(|()| groups[GROUPS / 2])
        });
        echo.join().expect("no panic in an echo")?;
        call.join().expect("no panic in a call")
    })
}
