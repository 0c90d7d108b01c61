//! Commands for a thread that looks after other things, and sleeps on a doorbell.
//!
//! ```text
//!   to post                      the thread
//!   add the command              drain the doorbell
//!   note that there is one       is there a command? take all of them, and carry them out
//!   notify the doorbell          sleep on the doorbell
//! ```
//!
//! The note is for a thread that is awake: it looks at it as often as it likes, and finds each
//! command without the doorbell. `tests/loom.rs` runs this code.

#[cfg(loom)]
use loom::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, Ordering::*},
};
#[cfg(not(loom))]
use std::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, Ordering::*},
};

/// What wakes the thread.
pub trait Notify {
    /// Wakes it, or keeps it from its next sleep.
    fn notify(&self);
}

/// See the file's description.
pub struct Mailbox<T, D> {
    /// `None`: nothing carries them out any more.
    commands: Mutex<Option<Vec<T>>>,
    waiting: AtomicBool,
    doorbell: D,
}

impl<T, D: Notify> Mailbox<T, D> {
    /// An empty one, whose thread sleeps on `doorbell`.
    pub fn new(doorbell: D) -> Mailbox<T, D> {
        let (commands, waiting) = (Mutex::new(Some(Vec::new())), AtomicBool::new(false));
        Mailbox { commands, waiting, doorbell }
    }

    /// What the thread sleeps on.
    pub fn doorbell(&self) -> &D {
        &self.doorbell
    }

    /// Hands a command to the thread. If that has gone, the command goes too, with the sender of an
    /// answer that may be in it.
    pub fn post(&self, command: T) {
        match &mut *self.lock() {
            Some(commands) => commands.push(command),
            None => return,
        }
        self.waiting.store(true, Release);
        self.doorbell.notify();
    }

    /// Whether commands wait; as cheap as a load.
    #[inline]
    pub fn has_mail(&self) -> bool {
        self.waiting.load(Acquire)
    }

    /// All that wait, in their order.
    pub fn take(&self) -> Vec<T> {
        self.waiting.store(false, Relaxed);
        self.lock().as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// From now on nothing carries commands out.
    pub fn close(&self) {
        self.lock().take();
    }

    fn lock(&self) -> MutexGuard<'_, Option<Vec<T>>> {
        self.commands.lock().unwrap_or_else(|e| e.into_inner())
    }
}
