//! A thread that applies the rules of a ring whose program does not receive.
//!
//! PF_RING's module applies rules when a packet arrives, whatever the program does. Here they are applied where the
//! program receives. A program that only forwards by rules never does: until its first receive, this thread reads the
//! ring and forwards what the rules say. It stops at the first packet that the rules deliver to the program; that packet,
//! and all behind it, wait for the program.

use std::{
    process,
    sync::{
        Arc, Mutex, OnceLock, Weak,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread::JoinHandle,
};

use ringway_helper_thread::helper_thread;
use ringway_live_capture::Signals;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fd::BorrowedFd,
};

use crate::{
    abi::{MANAGEMENT_ONLY, SEND_ONLY},
    receive::{Got, take_error},
    ring::{Ring, lock},
    source::Source,
    state::NOT_READ,
};

/// How long the thread waits after a device has reported an error.
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// The thread of a ring, and when it is needed.
#[derive(Default)]
pub struct RuleThread {
    /// The ring, for the thread.
    ring: OnceLock<Weak<Ring>>,
    running: Mutex<Option<Running>>,
    has_forwarding_rule: AtomicBool,
}

struct Running {
    thread: JoinHandle<()>,
    /// A break ends the thread.
    signals: Arc<Signals>,
    /// The process that started the thread. A child of `fork` does not have it.
    process: u32,
}

impl RuleThread {
    /// Sets the ring that the thread reads.
    pub fn set_ring(&self, ring: &Arc<Ring>) {
        let _ = self.ring.set(Arc::downgrade(ring));
    }
}

impl Ring {
    /// Notes that a rule forwards packets, and starts the thread if it is needed.
    pub fn add_forwarding_rule(&self) {
        self.rule_thread.has_forwarding_rule.store(true, Relaxed);
        self.start_rule_thread();
    }

    /// Starts the thread if it is needed and does not run.
    pub fn start_rule_thread(&self) {
        let RuleThread { ring, running, has_forwarding_rule } = &self.rule_thread;
        if !has_forwarding_rule.load(Relaxed) {
            return;
        }
        // The packets of a capture file are for the program.
        let is_read = self.sources.is_empty() || self.sources.iter().any(Source::is_file);
        if is_read || self.has_mode(SEND_ONLY) || self.has_mode(MANAGEMENT_ONLY) {
            return;
        }
        let Some(ring) = ring.get().and_then(Weak::upgrade) else { return };
        // `set_program_receives` stores its flag before it takes this lock, so the check below sees it.
        let mut running = lock(running);
        let is_needed = self.is_enabled() && self.state.has(NOT_READ);
        let runs = running.as_ref().is_some_and(|running| {
            running.process == process::id() && !running.thread.is_finished()
        });
        if !is_needed || runs {
            return;
        }
        let signals = Arc::new(Signals::default());
        let of_thread = signals.clone();
        // On an error the rules are applied when the program receives.
        let thread = signals.arm().ok().and_then(|()| {
            helper_thread("pf_ring-rules", move || ring.apply_rules(&of_thread)).ok()
        });
        *running = thread.map(|thread| Running { thread, signals, process: process::id() });
    }

    /// Ends the thread. [`start_rule_thread`](Self::start_rule_thread) may start it again.
    pub fn stop_rule_thread(&self) {
        let Some(running) = lock(&self.rule_thread.running).take() else { return };
        if running.process == process::id() {
            running.signals.break_loop();
            let _ = running.thread.join();
        }
    }

    /// Notes that the program receives itself, which ends the thread for good.
    #[inline]
    pub fn set_program_receives(&self) {
        if self.state.has(NOT_READ) {
            self.set_program_receives_now();
        }
    }

    #[cold]
    fn set_program_receives_now(&self) {
        self.state.set(NOT_READ, false);
        self.stop_rule_thread();
    }

    /// The body of the thread.
    fn apply_rules(&self, signals: &Signals) {
        let stops = || signals.any();
        loop {
            // In a child of `fork` the lock may be held for ever.
            let Ok(mut reader) = self.reader.try_lock() else { return };
            let mut has_failed = false;
            for (index, source) in self.sources.iter().enumerate() {
                if stops() || reader.kept.is_some() {
                    return;
                }
                if source.is_left_out.load(Relaxed) {
                    continue;
                }
                match self.read_turn(&mut reader, source, stops).0 {
                    Got::Packet(place) => {
                        (reader.kept, reader.kept_of) = (Some(place), index);
                        self.hold_kept(&reader);
                        return;
                    }
                    Got::Nothing | Got::Broken => {}
                    Got::Failed => has_failed = !self.leave_out(source),
                }
            }
            // The lock is not held during the wait.
            drop(reader);
            let Some(wake) = signals.wake_fd() else { return };
            self.wait_for_rules(wake, has_failed);
        }
    }

    /// Waits for packets or for the end of the thread.
    fn wait_for_rules(&self, wake: BorrowedFd<'_>, mut has_failed: bool) {
        let watched: Vec<_> = self.present().map(Source::watch).chain([wake]).collect();
        let listed = watched.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN));
        let mut fds: Vec<_> = listed.collect();
        if !has_failed && poll(&mut fds, None).is_ok() {
            let seen = fds.iter().map(PollFd::revents);
            has_failed = take_error(watched.iter().copied().zip(seen));
        }
        if has_failed {
            let _ = poll(&mut [PollFd::from_borrowed_fd(wake, PollFlags::IN)], Some(&PAUSE));
        }
    }
}
