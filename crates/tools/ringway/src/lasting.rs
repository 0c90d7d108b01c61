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
use crate::losses::DeviceBook;
use crate::opened::Opened;
use crate::output::{Output, note};
use crate::run_loop::RunLoop;
use ringway::{Interest, Port, Reopening};
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Between two attempts.
const RETRY: Duration = Duration::from_millis(100);

/// For how long a command waits for an attempt. A daemon that is stopped answers none: the command goes on meanwhile, and
/// looks at the attempt when the next would be due.
const ANSWER: Duration = Duration::from_millis(100);

/// For how long a daemon may refuse a port that its predecessor has granted: what was set up by others may not be
/// back yet.
const PATIENCE: Duration = Duration::from_secs(10);

/// A refusal that is waited out for so long is told.
const LONG: Duration = Duration::from_secs(1);

/// What is known of an open port beside itself.
pub struct Lasting {
    book: DropBook,
    device: DeviceBook,
    closed: Option<Closed>,
}

/// That there is no daemon for it.
struct Closed {
    attempt: Attempt,
    retry: Instant,
    /// Since when a daemon has refused it.
    refused: Option<Instant>,
    told: bool,
}

impl Lasting {
    /// Of a port that has just been opened.
    pub fn begin(port: &Port) -> Result<Lasting> {
        let (book, device) = (DropBook::open(port)?, DeviceBook::open(port));
        Ok(Lasting { book, device, closed: None })
    }

    /// What was dropped since [`begin`](Self::begin).
    pub fn drops(&mut self, port: &Port) -> PortDrops {
        self.book.read(port)
    }

    /// Tells what its device has counted as lost since the port was opened, for the first time or again, if anything.
    pub fn tell_device(&self, port: &Port, output: Output) -> Result<()> {
        self.device.read(port).map_or(Ok(()), |losses| output.write(&losses))
    }

    /// Whether the port's daemon has ended. Then it is closed.
    pub fn has_ended(&mut self, port: &mut Port) -> bool {
        if port.is_shut() {
            return true;
        }
        if !port.check(Interest::Both).is_err_and(|error| error.is_gone()) {
            return false;
        }
        port.poll(Interest::Tx);
        // What it lets go of would be in the way of the next.
        let reopening = port.reopening(Duration::MAX);
        let lost = match self.book.ended(port) {
            0 => String::new(),
            lost => format!(", with {lost} frames in its rings"),
        };
        let name = port.name();
        note(format_args!(
            "{name}: ringwayd has ended{lost}; the port is opened again when there is a daemon"
        ));
        let retry = Instant::now();
        let attempt = Attempt::Ended(Box::new(reopening));
        self.closed = Some(Closed { attempt, retry, refused: None, told: false });
        true
    }

    /// Opens the port again, if it is time to try. True: it has got its rings just now.
    fn look(&mut self, port: &mut Port, now: Instant) -> Result<bool> {
        let Some(closed) = self.closed.as_mut().filter(|closed| closed.retry <= now) else {
            return Ok(false);
        };
        closed.retry = now + RETRY;
        match closed.attempt.go_on()? {
            Ok(Some(opened)) => {
                *port = opened;
                self.closed = None;
                self.book.reopened(port);
                self.device = DeviceBook::open(port);
                Ok(true)
            }
            Ok(None) => {
                closed.tell(now);
                Ok(false)
            }
            Err(error) => match closed.refused_for(now) < PATIENCE {
                true => Ok(false),
                false => Err(error.into()),
            },
        }
    }

    /// `due`, or when it is time to try to open the port again.
    pub fn until(&self, due: Instant) -> Instant {
        self.closed.as_ref().map_or(due, |closed| closed.retry.min(due))
    }

    /// Whether the port is closed.
    pub fn is_waiting(&self) -> bool {
        self.closed.is_some()
    }
}

/// [`Lasting::until`] of several.
pub fn until<'l>(due: Instant, all: impl IntoIterator<Item = &'l Lasting>) -> Instant {
    all.into_iter().fold(due, |due, lasting| lasting.until(due))
}

/// What an attempt has come to, and what makes the next.
type Tried = (Box<Reopening>, std::result::Result<Option<Port>, ringway::Error>);

/// Whether an attempt to open the port is under way.
enum Attempt {
    Ended(Box<Reopening>),
    /// By a thread of its own.
    Begun(Receiver<Tried>),
    /// That thread has not ended as it should.
    Lost,
}

impl Attempt {
    /// Begins an attempt, if none is under way, and waits for it a little. `None`: not yet.
    fn go_on(&mut self) -> Result<std::result::Result<Option<Port>, ringway::Error>> {
        let (answer, patience) = match std::mem::replace(self, Attempt::Lost) {
            Attempt::Ended(reopening) => (begin(reopening)?, ANSWER),
            Attempt::Begun(answer) => (answer, Duration::ZERO),
            Attempt::Lost => return Err(lost()),
        };
        match answer.recv_timeout(patience) {
            Ok((reopening, tried)) => {
                *self = Attempt::Ended(reopening);
                Ok(tried)
            }
            Err(RecvTimeoutError::Timeout) => {
                *self = Attempt::Begun(answer);
                Ok(Ok(None))
            }
            Err(RecvTimeoutError::Disconnected) => Err(lost()),
        }
    }

    /// Why a daemon has refused the port at the last attempt, if it has.
    fn refusal(&self) -> Option<String> {
        match self {
            Attempt::Ended(reopening) => reopening.refusal().map(ToString::to_string),
            _ => None,
        }
    }
}

fn lost() -> Error {
    let source = io::Error::other("the thread that does so has ended");
    Error::System { what: "opening a port again", source }
}

fn begin(mut reopening: Box<Reopening>) -> Result<Receiver<Tried>> {
    let (sender, answer) = channel();
    let attempt = thread::Builder::new().name("reopening".into()).spawn(move || {
        let tried = reopening.attempt();
        // It fails where the run is over.
        let _ = sender.send((reopening, tried));
    });
    attempt.map_err(|source| Error::System { what: "a thread", source })?;
    Ok(answer)
}

impl Closed {
    /// Says why the port is not open yet, if a daemon has refused it for long.
    fn tell(&mut self, now: Instant) {
        let Some(refusal) = self.attempt.refusal() else {
            self.refused = None;
            return;
        };
        if self.refused_for(now) >= LONG && !std::mem::replace(&mut self.told, true) {
            note(format_args!("{refusal} (it is tried again)"));
        }
    }

    /// For how long daemons have refused it by now.
    fn refused_for(&mut self, now: Instant) -> Duration {
        now - *self.refused.get_or_insert(now)
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
        ended |= waited.is_err() && !port.is_shut() && lasting.has_ended(port);
        if port.is_shut() && lasting.look(port, Instant::now())? {
            run_loop.tell(&Opened::new(port))?;
            opened.push(at);
        }
    }
    if !ended {
        waited?;
    }
    Ok(opened)
}
