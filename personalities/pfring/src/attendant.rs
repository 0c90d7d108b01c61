//! Rules that send packets on, in a program that receives none.
//!
//! PF_RING's module applies rules when a packet comes, whatever the program does. Here that is done where the program
//! receives. Until it does so for the first time, a thread, the attendant, looks at what comes in its place: rules
//! send on what they are to send on, and the first packet that they leave to the program waits for it, and those behind that.

use std::{
    process,
    sync::{
        Arc, Mutex, OnceLock, Weak,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread::JoinHandle,
};

use ringway_helper_thread::helper_thread;
use rustix::{
    event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll},
    fd::{AsFd, OwnedFd},
};

use crate::{
    abi::{MANAGEMENT_ONLY, SEND_ONLY},
    receive::{Got, take_error},
    ring::{Ring, lock},
    source::Source,
};

/// How long a device is left alone that says it has failed, and has no packets.
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// See the file's description.
#[derive(Default)]
pub struct Attendant {
    /// The ring, for the thread.
    ring: OnceLock<Weak<Ring>>,
    running: Mutex<Option<Running>>,
    is_needed: AtomicBool,
    /// The program receives itself.
    is_relieved: AtomicBool,
}

struct Running {
    thread: JoinHandle<()>,
    order: Arc<Order>,
    /// The process that it is in: a child of `fork` has none.
    process: u32,
}

/// That the thread is to end.
struct Order {
    given: AtomicBool,
    /// Readable then.
    wake: OwnedFd,
}

impl Running {
    fn is_alive(&self) -> bool {
        self.process == process::id() && !self.thread.is_finished()
    }
}

impl Attendant {
    /// Of a ring that a program has from now on.
    pub fn know(&self, ring: &Arc<Ring>) {
        let _ = self.ring.set(Arc::downgrade(ring));
    }
}

impl Ring {
    /// There is a rule that sends packets on.
    pub fn has_sending_rule(&self) {
        self.attendant.is_needed.store(true, Relaxed);
        self.attend();
    }

    /// Starts the attendant, if there is something to do for it.
    pub fn attend(&self) {
        let Attendant { ring, running, is_needed, is_relieved } = &self.attendant;
        if !is_needed.load(Relaxed) {
            return;
        }
        // A file is there to be read.
        let is_read = self.sources.is_empty() || self.sources.iter().any(Source::is_file);
        if is_read || self.has_mode(SEND_ONLY) || self.has_mode(MANAGEMENT_ONLY) {
            return;
        }
        let Some(ring) = ring.get().and_then(Weak::upgrade) else { return };
        // Whoever relieves it waits for this lock then.
        let mut running = lock(running);
        let is_useful = self.enabled.load(Relaxed) && !is_relieved.load(Relaxed);
        if !is_useful || running.as_ref().is_some_and(Running::is_alive) {
            return;
        }
        // Without it, rules are applied when the program receives.
        let Ok(wake) = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK) else { return };
        let order = Arc::new(Order { given: AtomicBool::new(false), wake });
        let heard = order.clone();
        let thread = helper_thread("pf_ring-rules", move || ring.stand_in(&heard));
        *running = thread.ok().map(|thread| Running { thread, order, process: process::id() });
    }

    /// Ends the attendant. It may be started again.
    pub fn dismiss(&self) {
        let Some(running) = lock(&self.attendant.running).take() else { return };
        if running.is_alive() {
            running.order.given.store(true, Relaxed);
            let _ = rustix::io::write(&running.order.wake, &1u64.to_ne_bytes());
        }
        if running.process == process::id() {
            let _ = running.thread.join();
        }
    }

    /// The program receives itself from now on.
    #[inline]
    pub fn relieve(&self) {
        if !self.attendant.is_relieved.load(Relaxed) {
            self.relieve_now();
        }
    }

    #[cold]
    fn relieve_now(&self) {
        self.attendant.is_relieved.store(true, Relaxed);
        self.dismiss();
    }

    /// What the thread does.
    fn stand_in(&self, order: &Order) {
        loop {
            // A child of `fork` may have it locked for ever.
            let Ok(mut reader) = self.reader.try_lock() else { return };
            let mut has_failed = false;
            for source in &self.sources {
                let is_over = || order.given.load(Relaxed);
                if is_over() || reader.kept.is_some() {
                    return;
                }
                match self.read_until(&mut reader, source, false, is_over) {
                    Got::Packet(place) => {
                        reader.kept = Some(place);
                        return;
                    }
                    Got::Nothing | Got::Broken => {}
                    Got::Failed => has_failed = true,
                }
            }
            // It is not held while nothing comes.
            drop(reader);
            self.wait_beside(order, has_failed);
        }
    }

    /// Waits for packets, or for the order.
    fn wait_beside(&self, order: &Order, mut has_failed: bool) {
        let devices = self.sources.iter().map(Source::watch);
        let fds = devices.chain([order.wake.as_fd()]);
        let mut fds: Vec<_> = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        if !has_failed && poll(&mut fds, None).is_ok() {
            has_failed = take_error(&fds);
        }
        if has_failed && let Some(order) = fds.last_mut() {
            let _ = poll(std::slice::from_mut(order), Some(&PAUSE));
        }
    }
}
