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

use crate::{
    abi::{MANAGEMENT_ONLY, SEND_ONLY},
    receive::Got,
    ring::{Ring, lock},
    source::Source,
};

/// See the file's description.
#[derive(Default)]
pub struct Attendant {
    /// The ring, for the thread.
    ring: OnceLock<Weak<Ring>>,
    running: Mutex<Option<Running>>,
    is_needed: AtomicBool,
    /// The program receives itself.
    is_relieved: AtomicBool,
    stopping: AtomicBool,
}

struct Running {
    thread: JoinHandle<()>,
    /// The process that it is in: a child of `fork` has none.
    process: u32,
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
        let Attendant { ring, running, is_needed, is_relieved, .. } = &self.attendant;
        let is_useful = is_needed.load(Relaxed) && self.enabled.load(Relaxed);
        let receives = !self.has_mode(SEND_ONLY) && !self.has_mode(MANAGEMENT_ONLY);
        if !is_useful || !receives || is_relieved.load(Relaxed) {
            return;
        }
        // A file is there to be read.
        if self.sources.is_empty() || self.sources.iter().any(Source::is_file) {
            return;
        }
        let Some(ring) = ring.get().and_then(Weak::upgrade) else { return };
        let mut running = lock(running);
        if running.is_none() {
            // Without it, rules are applied when the program receives.
            let thread = helper_thread("pf_ring-rules", move || ring.stand_in());
            *running = thread.ok().map(|thread| Running { thread, process: process::id() });
        }
    }

    /// Ends the attendant. It may be started again.
    pub fn dismiss(&self) {
        let Attendant { running, stopping, .. } = &self.attendant;
        let Some(Running { thread, process }) = lock(running).take() else { return };
        if process != process::id() {
            return;
        }
        stopping.store(true, Relaxed);
        self.break_loop();
        let _ = thread.join();
        stopping.store(false, Relaxed);
        self.forget_break();
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
    fn stand_in(&self) {
        let mut reader = lock(&self.reader);
        let ends = || self.attendant.stopping.load(Relaxed) || self.closing.load(Relaxed);
        while !ends() && reader.kept.is_none() {
            match self.next_alone(&mut reader, true) {
                Got::Packet(place) => reader.kept = Some(place),
                Got::Nothing => {}
                Got::Broken => self.forget_break(),
                Got::Failed => return,
            }
        }
    }
}
