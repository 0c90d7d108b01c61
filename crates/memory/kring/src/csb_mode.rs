//! The marks of CSB mode: whether a binding is in it, which thread runs its loop, and the request that
//! the loop stop (S-CSB, S-KLOOP).
//!
//! A binding in CSB mode has its rings to itself. So the marks are in its rings' control
//! blocks, where every process that shares the descriptor finds them; the loop's are those of
//! the binding's first ring.

use std::{
    sync::atomic::{AtomicU32, Ordering::*},
    time::Duration,
};

use rustix::{thread::futex, time::Timespec};

use crate::lock::{Guard, Lock};

/// How long to wait before looking whether the thread that runs the loop still exists.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// See the file's description.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct CsbMode {
    looping: Lock,
    on: AtomicU32,
    stop: AtomicU32,
    /// Loops that have ended; threads that wait for an end sleep on it.
    ended: AtomicU32,
}

ringway_region::shared_struct!(CsbMode { on, looping, stop, ended });

/// The right to run the loop; given back, and the request to stop with it, on drop.
#[derive(Debug)]
pub struct Running<'a> {
    mode: &'a CsbMode,
    guard: Option<Guard<'a>>,
}

impl CsbMode {
    /// Whether the program's cursors are in memory of its own.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.on.load(Relaxed) != 0
    }

    pub(crate) fn turn_on(&self) {
        self.on.store(1, Relaxed);
    }

    /// The binding has gone.
    pub(crate) fn clear(&self) {
        self.on.store(0, Relaxed);
        self.stop.store(0, Relaxed);
    }

    /// Takes the right to run the loop. `None`: somebody runs it.
    pub fn run(&self) -> Option<Running<'_>> {
        let guard = self.looping.try_lock()?;
        Some(Running { mode: self, guard: Some(guard) })
    }

    /// Whether somebody runs the loop.
    pub fn is_running(&self) -> bool {
        self.looping.is_held()
    }

    /// Asks the loop to stop; without one, the next ends at once (S-KLOOP-2). It may be asleep:
    /// ring the doorbells.
    pub fn ask_to_stop(&self) {
        self.stop.store(1, SeqCst);
    }

    /// Waits until the loop that runs now, if one does, has ended.
    pub fn wait_for_end(&self) {
        let seen = self.ended.load(Acquire);
        let timeout = Timespec::try_from(LOOK_AGAIN).ok();
        while self.is_running() && self.ended.load(Acquire) == seen {
            let _ = futex::wait(&self.ended, futex::Flags::empty(), seen, timeout.as_ref());
        }
    }
}

impl Running<'_> {
    /// Whether the loop is asked to stop.
    #[inline]
    pub fn must_stop(&self) -> bool {
        self.mode.stop.load(SeqCst) != 0
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.mode.stop.store(0, SeqCst);
        self.guard.take();
        self.mode.ended.fetch_add(1, Release);
        let _ = futex::wake(&self.mode.ended, futex::Flags::empty(), u32::MAX >> 1);
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn s_kloop_1_one_loop_at_a_time() {
        let mode = CsbMode::default();
        let running = mode.run();
        assert!(running.is_some() && mode.is_running());
        std::thread::scope(|s| assert!(s.spawn(|| mode.run().is_none()).join().unwrap()));
        drop(running);
        assert!(!mode.is_running() && mode.run().is_some());
    }

    #[test]
    fn s_kloop_2_stop_waits_and_is_sticky() {
        let mode = CsbMode::default();
        mode.ask_to_stop();
        mode.wait_for_end();
        assert!(mode.run().unwrap().must_stop(), "asked for before the start");
        let running = mode.run().unwrap();
        assert!(!running.must_stop(), "the loop that ended took the request with it");
        std::thread::scope(|s| {
            s.spawn(|| {
                mode.ask_to_stop();
                mode.wait_for_end();
                assert!(!mode.is_running());
            });
            while !running.must_stop() {
                std::thread::yield_now();
            }
            drop(running);
        });
    }

    /// A thread that ended without a word does not keep others waiting.
    #[test]
    fn the_dead_run_nothing() {
        let mode = CsbMode::default();
        std::thread::scope(|s| {
            s.spawn(|| std::mem::forget(mode.run().unwrap())).join().unwrap();
        });
        mode.wait_for_end();
        assert!(mode.run().is_some());
    }
}
