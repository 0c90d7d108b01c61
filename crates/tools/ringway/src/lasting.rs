//! A port that outlives its daemon: after a restart or an upgrade it is opened again, and has one account of what
//! was dropped.
//!
//! ```text
//!   open --> its daemon has ended, which a wait tells: closed --> an attempt from time to time --> open
//! ```
//!
//! Pipes and interfaces that go on without a daemon stay open.

use crate::drops::{DropBook, PortDrops};
use crate::error::{Error, Result};
use crate::output::{Opened, note};
use crate::run_loop::RunLoop;
use ringway::{Interest, Port};
use std::time::{Duration, Instant};

/// Between two attempts.
const RETRY: Duration = Duration::from_millis(100);

/// For how long a daemon may refuse a port that its predecessor has granted: what was set up by others may not be
/// back yet.
const PATIENCE: Duration = Duration::from_secs(10);

/// A refusal that is waited out for so long is told.
const LONG: Duration = Duration::from_secs(1);

/// What is known of an open port beside itself.
pub struct Lasting {
    book: DropBook,
    closed: Option<Closed>,
}

/// That there is no daemon for it.
struct Closed {
    retry: Instant,
    /// Since when a daemon has refused it.
    refused: Option<Instant>,
    told: bool,
}

impl Lasting {
    /// Of a port that has just been opened.
    pub fn begin(port: &Port) -> Result<Lasting> {
        Ok(Lasting { book: DropBook::open(port)?, closed: None })
    }

    /// What was dropped since [`begin`](Self::begin).
    pub fn drops(&mut self, port: &Port) -> PortDrops {
        self.book.read(port)
    }

    /// Whether the port's daemon has ended. Then it is closed.
    pub fn has_ended(&mut self, port: &mut Port) -> bool {
        if port.is_closed() {
            return true;
        }
        let ends = |interest| matches!(port.check(interest), Err(ringway::Error::Gone { .. }));
        if !ends(Interest::Both) {
            return false;
        }
        port.poll(Interest::Tx);
        let (tx, rx) = port.split();
        let unsent = tx.iter().map(|tx| tx.pending() as u64).sum();
        let unread = rx.iter().map(|rx| rx.available() as u64).sum();
        let lost = match unsent + unread {
            0 => String::new(),
            lost => format!(", with {lost} slots in its rings"),
        };
        let name = port.name();
        note(format_args!(
            "{name}: ringwayd has ended{lost}; the port is opened again when there is a daemon"
        ));
        self.book.ended(port, unsent, unread);
        port.close();
        self.closed = Some(Closed { retry: Instant::now(), refused: None, told: false });
        true
    }

    /// Opens the port again, if it is time to try. True: it has got its rings just now.
    fn look(&mut self, port: &mut Port, now: Instant) -> Result<bool> {
        let Some(closed) = self.closed.as_mut().filter(|closed| closed.retry <= now) else {
            return Ok(false);
        };
        let opened = port.try_reopen().map_err(Error::from);
        match opened.and_then(|()| self.book.reopened(port)) {
            Ok(()) => {
                self.closed = None;
                Ok(true)
            }
            Err(error) => {
                closed.wait(&error, now).then_some(()).ok_or(error)?;
                Ok(false)
            }
        }
    }

    /// `due`, or when it is time to try to open the port again.
    pub fn until(&self, due: Instant) -> Instant {
        self.closed.as_ref().map_or(due, |closed| closed.retry.min(due))
    }
}

impl Closed {
    /// Whether to try again.
    fn wait(&mut self, error: &Error, now: Instant) -> bool {
        self.retry = now + RETRY;
        let Error::Ringway(error) = error else { return false };
        if matches!(error, ringway::Error::Daemon(error) if error.refusal().is_none()) {
            // Nobody was there to refuse it.
            self.refused = None;
            return true;
        }
        let since = now - *self.refused.get_or_insert(now);
        if since >= LONG && !std::mem::replace(&mut self.told, true) {
            note(format_args!("{error} (it is tried again)"));
        }
        error.may_pass() || since < PATIENCE
    }
}

/// What follows a wait with these ports: those whose daemon has ended, which is no failure of the wait, are closed, and
/// opened again if it is time to try. Which of them have been.
pub fn outlive<'p>(
    waited: Result<()>,
    ports: impl IntoIterator<Item = (&'p mut Lasting, &'p mut Port)>,
    run_loop: &RunLoop,
) -> Result<Vec<usize>> {
    let (mut ended, mut opened) = (false, Vec::new());
    for (at, (lasting, port)) in ports.into_iter().enumerate() {
        ended |= waited.is_err() && !port.is_closed() && lasting.has_ended(port);
        if port.is_closed() && lasting.look(port, Instant::now())? {
            run_loop.tell(&Opened::new(port))?;
            opened.push(at);
        }
    }
    if !ended {
        waited?;
    }
    Ok(opened)
}
