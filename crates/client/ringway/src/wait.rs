//! Waiting for slots.

use std::time::{Duration, Instant};

use ringway_abi::Dir;
use ringway_kring::{BusyPoll, Prepared, Sleeper, Sources, Waiter, Woken, prepare};

use crate::{binding::Binding, error::Error, port::Port};

/// What to wait for.
///
/// ```
/// # use ringway_doc as Port;
/// use std::time::Duration;
/// use ringway::Interest;
///
/// let mut port = Port::open("vale0:a")?;
/// let now = Some(Duration::ZERO);
/// assert!(port.wait(Interest::Tx, now)? && !port.wait(Interest::Rx, now)?);
/// assert!(port.wait(Interest::Both, now)?, "there is room");
/// # Ok::<(), ringway::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Received packets.
    Rx,
    /// Room to send.
    Tx,
    /// Either.
    Both,
}

impl Interest {
    pub(crate) fn dirs(self) -> impl Iterator<Item = Dir> + Clone {
        let (tx, rx) = match self {
            Interest::Rx => (None, Some(Dir::Rx)),
            Interest::Tx => (Some(Dir::Tx), None),
            Interest::Both => (Some(Dir::Tx), Some(Dir::Rx)),
        };
        tx.into_iter().chain(rx)
    }
}

/// A port as one that waits, alone or with others: see [`Port::waiter`].
///
/// ```
/// # use ringway_doc as Port;
/// use ringway::{Interest, Prepared, prepare};
/// use std::time::Instant;
///
/// let mut a = Port::open("p{1")?;
/// let mut b = Port::open("p{2")?;
/// let mut waiters = [a.waiter(Interest::Rx), b.waiter(Interest::Rx)];
/// match prepare(&mut waiters[..]) {
///     Prepared::Ready => println!("one of them has something, or never will: Port::check tells"),
///     Prepared::Armed(armed) => {
///         let woken = armed.sleep(Some(Instant::now())).unwrap();
///         println!("{woken:?}: look again");
///     }
/// }
/// # Ok::<(), ringway::Error>(())
/// ```
#[derive(Debug)]
pub struct PortWaiter<'p> {
    port: &'p mut Port,
    interest: Interest,
    /// Whether the last wait that was announced found doorbells notified.
    pub(crate) drained: bool,
    busily: bool,
}

impl PortWaiter<'_> {
    /// For a program that does not wait: it looks once.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// use ringway::{Interest, prepare};
    ///
    /// let mut port = Port::open("vale0:a")?;
    /// let mut waiter = port.waiter(Interest::Rx).at_once();
    /// assert!(!prepare(&mut waiter).is_ready());
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn at_once(self) -> Self {
        PortWaiter { busily: false, ..self }
    }

    /// The port that waits.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// use ringway::{Interest, prepare};
    ///
    /// let mut port = Port::open("vale0:a")?;
    /// let mut waiter = port.waiter(Interest::Rx);
    /// if prepare(&mut waiter).is_ready() {
    ///     println!("{} has something", waiter.port().name());
    /// }
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn port(&mut self) -> &mut Port {
        self.port
    }
}

impl Waiter for PortWaiter<'_> {
    fn look(&mut self) -> bool {
        self.port.poll(self.interest) || self.port.fails(self.interest)
    }

    fn arm(&mut self) -> bool {
        self.drained = arm(self.port.binding(), self.interest.dirs());
        self.drained
    }

    fn pass_on(&mut self) {
        self.interest.dirs().for_each(|dir| self.port.binding().disarm(dir));
    }

    fn busy_poll(&self) -> Option<&BusyPoll> {
        if self.busily { self.port.binding().busy_poll() } else { None }
    }
}

impl Sleeper for PortWaiter<'_> {
    fn sources<'s>(&'s self, sources: &mut Sources<'s>) {
        if let Some(connection) = self.port.daemon_fd() {
            sources.add_connection(connection);
        }
        let rings = self.interest.dirs().flat_map(|dir| self.port.binding().wait_sources(dir));
        rings.for_each(|(fd, events)| sources.add(fd, events));
    }
}

fn arm(binding: &Binding, dirs: impl Iterator<Item = Dir>) -> bool {
    dirs.fold(false, |drained, dir| drained | binding.arm(dir))
}

impl Port {
    /// The port as one that waits for `interest`: to wait for several at once, with
    /// [`prepare`](crate::prepare).
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// use ringway::{Interest, prepare};
    ///
    /// let (mut a, mut b) = (Port::open("vale0:a")?, Port::open("vale0:b")?);
    /// let mut both = [a.waiter(Interest::Rx), b.waiter(Interest::Rx)];
    /// assert!(!prepare(&mut both[..]).is_ready());
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn waiter(&mut self, interest: Interest) -> PortWaiter<'_> {
        PortWaiter { port: self, interest, drained: false, busily: true }
    }

    /// Waits until a packet has been received, at most for `timeout`. True if there is one. A signal does not end it:
    /// see [`wait`](Self::wait).
    ///
    /// # Errors
    /// Those of [`check`](Self::check), and those of `poll(2)`. [`Error::Name`] where the port has no
    /// ring to wait for, opened as it was.
    pub fn wait_rx(&mut self, timeout: Option<Duration>) -> Result<bool, Error> {
        self.wait(Interest::Rx, timeout)
    }

    /// Waits until there is room to send, at most for `timeout`. True if there is. A signal does not end it: see
    /// [`wait`](Self::wait).
    ///
    /// # Errors
    /// Those of [`check`](Self::check), and those of `poll(2)`. [`Error::Name`] where the port has no
    /// ring to wait for, opened as it was.
    pub fn wait_tx(&mut self, timeout: Option<Duration>) -> Result<bool, Error> {
        self.wait(Interest::Tx, timeout)
    }

    /// Waits for either; see [`Interest`]. Syncs the rings it waits for.
    ///
    /// A signal does not end the wait: after its handler has run, the wait goes on. A program that is to stop by one
    /// waits for something else beside the port, as `PortOrStop` in the example of [`Sleeper`](crate::Sleeper), or has
    /// a timeout.
    ///
    /// # Errors
    /// Those of [`check`](Self::check), and those of `poll(2)`. [`Error::Name`] where the port has no
    /// ring to wait for, opened as it was.
    pub fn wait(&mut self, interest: Interest, timeout: Option<Duration>) -> Result<bool, Error> {
        self.check_rings(interest)?;
        let deadline = timeout.and_then(|t| Instant::now().checked_add(t));
        loop {
            let waiter = self.waiter(interest);
            let at_once = timeout == Some(Duration::ZERO);
            let woken = match prepare(&mut if at_once { waiter.at_once() } else { waiter }) {
                Prepared::Ready => None,
                Prepared::Armed(_) if deadline.is_some_and(|at| at <= Instant::now()) => {
                    Some(Woken::TimedOut)
                }
                Prepared::Armed(armed) => {
                    Some(armed.sleep(deadline).map_err(Error::system("cannot wait"))?)
                }
            };
            match woken {
                None if self.ready(interest) => return Ok(true),
                None if self.poll_or_check(interest)? => return Ok(true),
                None => {}
                Some(Woken::Notified) => {}
                Some(Woken::TimedOut) => return Ok(self.poll(interest)),
                Some(Woken::HungUp) if self.poll_or_check(interest)? => return Ok(true),
                Some(Woken::HungUp) => return Err(self.gone()),
            }
        }
    }

    /// Without a ring nothing comes, and a wait has no end.
    pub(crate) fn check_rings(&self, interest: Interest) -> Result<(), Error> {
        if interest.dirs().any(|dir| !self.binding().rings(dir).is_empty()) {
            return Ok(());
        }
        self.check(interest)?;
        let problem = match interest {
            Interest::Rx => "the port has no receive rings; open it without tx_only() and /T",
            _ => "the port has no transmit rings; open it without rx_only() and /R",
        };
        Err(Error::Name { name: self.name().into(), problem: problem.into() })
    }
}
