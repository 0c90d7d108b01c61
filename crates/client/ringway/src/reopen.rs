//! A port opened again, after its daemon has ended or its interface has gone.

use std::{
    io::ErrorKind,
    thread,
    time::{Duration, Instant},
};

use ringway_proto::Cause;

use crate::{error::Error, open_options::OpenOptions, port::Port};

/// From one attempt to the next.
const PAUSE: Duration = Duration::from_millis(20);

/// How a port was opened.
#[derive(Clone, Debug)]
pub(crate) struct Opened {
    pub options: OpenOptions,
    pub spec: String,
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
    pub fn reopen(mut self, patience: Duration) -> Result<Port, Error> {
        let end = Instant::now().checked_add(patience);
        loop {
            match self.try_reopen() {
                Ok(()) => return Ok(self),
                Err(error) if error.may_pass() && end.is_none_or(|end| Instant::now() < end) => {
                    thread::sleep(PAUSE);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The same for a program that has other things to do: one attempt, which waits for nothing.
    ///
    /// Without success the port is [closed](Self::is_closed): it has no rings, and every wait fails with
    /// [`Cause::Gone`]. Take what its receive rings still have before that. After success it is like a port that was just
    /// opened: the number of its rings may be another.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// let mut port = Port::open("vale0:a")?;
    /// port.try_reopen()?;
    /// assert!(!port.is_closed());
    /// # Ok::<(), ringway::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Port::open`]. It can be tried again after each, and is worth it where the error
    /// [may pass](Error::may_pass).
    pub fn try_reopen(&mut self) -> Result<(), Error> {
        self.close();
        let Opened { options, spec } = self.opened();
        *self = options.open(spec)?;
        Ok(())
    }
}

impl Error {
    /// Whether the cause may be that a daemon is not there yet, or has only just begun: then it helps to try again.
    pub fn may_pass(&self) -> bool {
        match self {
            Error::Daemon(ringway_ipc::Error::Connect { source, .. }) => {
                matches!(source.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused)
            }
            error => matches!(error.cause(), Cause::Gone | Cause::Busy | Cause::NoPort),
        }
    }
}
