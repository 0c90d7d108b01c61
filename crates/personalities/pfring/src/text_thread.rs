//! A thread that writes the text of a ring when the program has asked for the ring's counters.
//!
//! Programs ask for counters in handlers of signals, as PF_RING's examples do. A handler may have interrupted the
//! allocator, and writing the text allocates. So a request only stores a flag and wakes this thread. The process has one
//! of them while it has rings.

use std::{
    process,
    sync::{
        Arc, Mutex, Weak,
        atomic::{
            AtomicU32,
            Ordering::{Acquire, Relaxed, Release},
        },
    },
    thread::JoinHandle,
};

use ringway_helper_thread::helper_thread;
use rustix::thread::futex::{self, Flags};

use crate::ring::{Ring, lock};

static RINGS: Mutex<Rings> = Mutex::new(Rings { open: Vec::new(), thread: None, ended: 0 });

/// The process that the thread is of; 0 while there is none. A child of `fork` has no such thread, and perhaps no lock.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// Requests; the thread sleeps on this word.
static REQUESTS: AtomicU32 = AtomicU32::new(0);

struct Rings {
    open: Vec<Weak<Ring>>,
    thread: Option<JoinHandle<()>>,
    /// Threads that have ended, or are to.
    ended: u64,
}

/// Adds a ring that was opened.
pub fn add(ring: &Arc<Ring>) {
    let process = process::id();
    if ![0, process].contains(&PROCESS.load(Relaxed)) {
        return;
    }
    let mut rings = lock(&RINGS);
    rings.open.push(Arc::downgrade(ring));
    if rings.thread.is_none() {
        // Without it the ring's text is of when it was opened and enabled.
        let before = rings.ended;
        rings.thread = helper_thread("pf_ring-texts", move || write_texts(before)).ok();
        PROCESS.store(if rings.thread.is_some() { process } else { 0 }, Relaxed);
    }
}

/// Removes a ring before it is closed. After this the thread does nothing with it.
pub fn remove(ring: &Arc<Ring>) {
    if PROCESS.load(Relaxed) != process::id() {
        return;
    }
    let mut rings = lock(&RINGS);
    rings.open.retain(|open| !std::ptr::eq(open.as_ptr(), Arc::as_ptr(ring)));
    if !rings.open.is_empty() {
        return;
    }
    let thread = rings.thread.take();
    rings.ended += 1;
    PROCESS.store(0, Relaxed);
    drop(rings);
    wake();
    thread.map(JoinHandle::join);
}

impl Ring {
    /// Has the thread write the ring's text. A signal handler may call it.
    pub fn request_text(&self) {
        if PROCESS.load(Relaxed) == process::id() {
            self.wants_text.store(true, Release);
            wake();
        }
    }
}

fn wake() {
    REQUESTS.fetch_add(1, Release);
    let _ = futex::wake(&REQUESTS, Flags::PRIVATE, u32::MAX >> 1);
}

/// The body of the thread, before which so many have ended.
fn write_texts(before: u64) {
    loop {
        let requests = REQUESTS.load(Acquire);
        {
            let rings = lock(&RINGS);
            if rings.ended != before {
                return;
            }
            // No ring is closed by this thread: one that is being closed has to be removed first.
            for ring in rings.open.iter().filter_map(Weak::upgrade) {
                if ring.wants_text.swap(false, Acquire) {
                    ring.publish();
                }
            }
        }
        while REQUESTS.load(Acquire) == requests {
            let _ = futex::wait(&REQUESTS, Flags::PRIVATE, requests, None);
        }
    }
}
