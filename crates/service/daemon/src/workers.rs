//! Threads for what takes long, so that the loop goes on serving others meanwhile.
//!
//! A request of a client waits for one piece of work at a time, and its answer for what is closed with it. Each
//! piece has a thread. What comes of it is collected by the loop.

use std::{
    io,
    sync::{Arc, Mutex, MutexGuard},
    thread,
};

use ringway_proto::Error;
use ringway_registry::{Done, Subject, Work};
use rustix::{
    event::{EventfdFlags, eventfd},
    fd::{AsFd, BorrowedFd, OwnedFd},
};

use crate::guard::guarded;

/// Who waits for work.
#[derive(Clone, Copy)]
pub enum Waiter {
    Nobody,
    /// The request of a client, which goes on with the result.
    Request(u64),
    /// The answer to a client, until something is closed.
    Answer(u64),
}

/// What has become of work.
pub struct Finished {
    pub waiter: Waiter,
    pub outcome: Outcome,
}

/// The result of work, or why there is none.
pub type Outcome = Result<Done, (Subject, Error)>;

struct Shared {
    finished: Mutex<Vec<Finished>>,
    news: OwnedFd,
}

impl Shared {
    fn finished(&self) -> MutexGuard<'_, Vec<Finished>> {
        self.finished.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn report(&self, waiter: Waiter, outcome: Outcome) {
        self.finished().push(Finished { waiter, outcome });
        // It is full only if the loop has more news than it could count.
        let _ = rustix::io::write(&self.news, &1u64.to_ne_bytes());
    }
}

/// See above. Its [`AsFd`] is readable when work is finished.
pub struct Workers {
    shared: Arc<Shared>,
}

impl Workers {
    pub fn new() -> io::Result<Workers> {
        let news = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Workers { shared: Arc::new(Shared { finished: Mutex::default(), news }) })
    }

    /// Does work. Fails when there is no thread to be had.
    pub fn start(&self, waiter: Waiter, work: Work) -> io::Result<()> {
        let shared = self.shared.clone();
        let run = move || {
            let subject = work.subject().clone();
            let outcome = guarded("the set-up of an interface", || work.run());
            shared.report(waiter, outcome.map_err(|error| (subject, error)));
        };
        thread::Builder::new().name("set-up".into()).spawn(run).map(drop)
    }

    /// Something is finished without work.
    pub fn report(&self, waiter: Waiter, outcome: Outcome) {
        self.shared.report(waiter, outcome);
    }

    /// All that is finished by now.
    pub fn collect(&self) -> Vec<Finished> {
        let _ = rustix::io::read(&self.shared.news, &mut [0u8; 8]);
        std::mem::take(&mut *self.shared.finished())
    }
}

impl AsFd for Workers {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.news.as_fd()
    }
}
