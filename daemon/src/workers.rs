//! Threads for what takes long, so that the loop goes on serving others meanwhile.
//!
//! A request of a client waits for one piece of work at a time, and each has a thread. What comes of it
//! is collected by the loop.

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

/// What has become of work for a client.
pub struct Finished {
    pub client: u64,
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

    fn report(&self, client: u64, outcome: Outcome) {
        self.finished().push(Finished { client, outcome });
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

    /// Does work for a client. Fails when there is no thread to be had.
    pub fn start(&self, client: u64, work: Work) -> io::Result<()> {
        let shared = self.shared.clone();
        let run = move || {
            let subject = work.subject().clone();
            let outcome = guarded("the set-up of an interface", || work.run());
            shared.report(client, outcome.map_err(|error| (subject, error)));
        };
        thread::Builder::new().name("set-up".into()).spawn(run).map(drop)
    }

    /// Something is finished without work.
    pub fn report(&self, client: u64, outcome: Outcome) {
        self.shared.report(client, outcome);
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
