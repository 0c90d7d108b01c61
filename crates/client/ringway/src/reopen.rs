//! A port opened again, after its daemon has ended or its interface has gone.

use std::{
    io::ErrorKind,
    thread,
    time::{Duration, Instant},
};

use ringway_ipc::SocketPath;
use ringway_proto::{Cause, PortKind};
use rustix::process::{Uid, geteuid};

use crate::{
    error::Error, open_options::OpenOptions, port::Port, session::Session, verbose::explain,
};

/// From one attempt to the next.
const PAUSE: Duration = Duration::from_millis(20);

/// How a port was opened.
#[derive(Clone, Debug)]
pub(crate) struct Opened {
    pub options: OpenOptions,
    pub spec: String,
    /// The system daemon has opened it.
    of_system: bool,
    /// The user whose private daemon it was, if it was one.
    uid: Uid,
}

impl Opened {
    /// By the calling thread, in that session.
    pub fn new(options: OpenOptions, spec: &str, session: &Session) -> Opened {
        let of_system = session.connection().is_some_and(ringway_ipc::is_of_system);
        Opened { options, spec: spec.into(), of_system, uid: geteuid() }
    }

    /// Whether the system daemon has opened it, at its usual place.
    pub fn is_of_system(&self) -> bool {
        self.of_system
    }
}

impl Port {
    /// Closes the port, and opens it again as it was opened: by the same name, with the same options.
    ///
    /// It is for a port whose daemon has ended ([`Cause::Gone`]), because it was upgraded perhaps. Rings and
    /// buffers are new ones, and what was in the old ones is lost. Where no daemon can be reached yet, and
    /// where what the last one had set up is not cleared away or set up again yet, it tries again until
    /// `patience` has passed. It blocks the calling thread meanwhile.
    ///
    /// ```
    /// # use std::time::Duration;
    /// use ringway::Cause;
    ///
    /// # fn main() -> Result<(), ringway::Error> {
    /// # use ringway_doc as Port;
    /// let mut port = Port::open("vale0:a")?;
    /// match port.wait_rx(Some(Duration::ZERO)) {
    ///     Ok(_) => {}
    ///     Err(error) if error.cause() == Cause::Gone => {
    ///         port = port.reopen(Duration::from_secs(10))?;
    ///     }
    ///     Err(error) => return Err(error),
    /// }
    /// # drop(port);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`Port::open`]. The port is closed then.
    pub fn reopen(self, patience: Duration) -> Result<Port, Error> {
        let mut reopening = self.reopening(patience);
        drop(self);
        loop {
            if let Some(port) = reopening.attempt()? {
                return Ok(port);
            }
            thread::sleep(reopening.due().saturating_duration_since(Instant::now()));
        }
    }

    /// What opens the port again as [`reopen`](Self::reopen) does, one attempt at a time. [Shut](Self::shut) the port
    /// before the first attempt: it may be in the way.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// use std::{thread, time::{Duration, Instant}};
    ///
    /// let mut port = Port::open("vale0:a")?;
    /// let mut reopening = port.reopening(Duration::from_secs(10));
    /// port.shut();
    /// let port = loop {
    ///     if let Some(port) = reopening.attempt()? {
    ///         break port;
    ///     }
    ///     // Or something useful, until then.
    ///     thread::sleep(reopening.due().saturating_duration_since(Instant::now()));
    /// };
    /// assert_eq!(port.name(), "vale0:a");
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn reopening(&self, patience: Duration) -> Reopening {
        let now = Instant::now();
        Reopening {
            opened: self.opened().clone(),
            is_monitor: self.kind() == PortKind::Monitor,
            patience,
            end: now.checked_add(patience),
            due: now,
            refusal: None,
        }
    }
}

/// A port that is being opened again: for programs that have something else to do meanwhile.
///
/// A port of the system daemon is not opened at a private daemon: that one would be started where the
/// system daemon has removed its socket, and has other switches. Nor is one of a private daemon, if the program has become
/// another user since it was opened ([`Cause::Denied`]).
///
/// ```
/// # use ringway_doc as Port;
/// use std::time::Duration;
///
/// let mut port = Port::open("vale0:a")?;
/// let mut reopening = port.reopening(Duration::from_secs(10));
/// port.shut();
/// match reopening.attempt()? {
///     Some(port) => println!("{} is open again", port.name()),
///     None => match reopening.refusal() {
///         Some(error) => println!("not yet: {error}"),
///         None => println!("no daemon yet, for {:?} at most: again at {:?}", reopening.patience(), reopening.due()),
///     },
/// }
/// # Ok::<(), ringway::Error>(())
/// ```
#[derive(Debug)]
pub struct Reopening {
    opened: Opened,
    is_monitor: bool,
    patience: Duration,
    end: Option<Instant>,
    due: Instant,
    refusal: Option<Error>,
}

impl Reopening {
    /// Tries it, unless the [last](Self::due) attempt was just now. `None`: not yet.
    ///
    /// # Errors
    /// Those of [`Port::open`], where they will not pass, or patience has.
    pub fn attempt(&mut self) -> Result<Option<Port>, Error> {
        let now = Instant::now();
        if now < self.due {
            return Ok(None);
        }
        match self.open() {
            Err(error)
                if self.may_pass(&error)
                    && (self.end.is_none_or(|end| now < end) || self.met_the_end(&error)) =>
            {
                self.due = Instant::now() + PAUSE;
                self.refusal = Some(error);
                Ok(None)
            }
            result => result.map(Some),
        }
    }

    fn open(&self) -> Result<Port, Error> {
        let Opened { options, spec, of_system, uid } = &self.opened;
        if matches!(SocketPath::find(), SocketPath::Private { .. }) {
            if *of_system {
                return Err(Error::Gone { name: spec.clone() });
            }
            // Another user has another daemon, or none.
            let now = geteuid();
            if now != *uid {
                let uid = now.as_raw();
                let problem = format!(
                    "the program has given up its rights (uid {uid}) since it opened the port"
                );
                let remedy = "have it keep them (tcpdump: -Z root)";
                let error = ringway_proto::Error::new(Cause::Denied, problem);
                return Err(error.at(spec).remedy(remedy).into());
            }
        }
        options.open(spec)
    }

    /// Whether the first attempt has met a daemon that ends: its connections are closed before its socket. The next
    /// one says whether there is another.
    fn met_the_end(&self, error: &Error) -> bool {
        self.refusal.is_none() && error.cause() == Cause::Gone
    }

    /// Why the last attempt has failed, if it was a daemon that refused the port.
    pub fn refusal(&self) -> Option<&Error> {
        self.refusal.as_ref().filter(|error| error.refusal().is_some())
    }

    /// When the next attempt is due.
    pub fn due(&self) -> Instant {
        self.due
    }

    /// For how long it is tried.
    pub fn patience(&self) -> Duration {
        self.patience
    }

    /// Whether it may be because a daemon is not there yet, or has only just begun.
    fn may_pass(&self, error: &Error) -> bool {
        match error {
            Error::Daemon(ringway_ipc::Error::Connect { source, .. }) => {
                matches!(source.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused)
            }
            // The program whose port is monitored has not opened that again yet.
            error if self.is_monitor && error.cause() == Cause::Invalid => true,
            error => matches!(error.cause(), Cause::Gone | Cause::Busy | Cause::NoPort),
        }
    }
}

/// How long libraries that open ports again by themselves try it: `RINGWAY_PATIENCE`, in seconds, else a minute.
///
/// ```
/// # use ringway_doc as Port;
/// let mut port = Port::open("vale0:a")?;
/// port = port.reopen(ringway::patience())?;
/// # drop(port);
/// # Ok::<(), ringway::Error>(())
/// ```
pub fn patience() -> Duration {
    const VARIABLE: &str = "RINGWAY_PATIENCE";
    const DEFAULT: Duration = Duration::from_secs(60);
    let Some(text) = ringway_environment::variable(VARIABLE) else { return DEFAULT };
    match text.to_str().and_then(|text| text.parse().ok()) {
        Some(seconds) => Duration::from_secs(seconds),
        None => {
            explain(&format_args!("{VARIABLE}={}: write a number of seconds", text.display()));
            DEFAULT
        }
    }
}
