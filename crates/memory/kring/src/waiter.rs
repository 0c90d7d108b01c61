//! How a party sleeps: the other half of `csb.rs`, one for all who wait for rings.
//!
//! ```text
//!   look                        something: Ready
//!   look for a moment           where that has paid of late (busy_poll.rs)
//!   drain the doorbells
//!   arm: need_kick, a fence
//!   look once more              something: Ready, and the doorbells that were drained are notified
//!   nothing: Armed              sleep on the sources, and begin again
//! ```
//!
//! The order is the protocol. A doorbell that is drained after arming loses a wake-up, and so does a
//! party that sleeps without the second look. Others may wait for the same ring, and share its
//! doorbell: a notification that was drained may have been theirs, so a party that does not sleep
//! after all passes it on. `tests/loom.rs` runs this very code.

#[cfg(not(loom))]
use std::{
    io,
    time::{Duration, Instant},
};

#[cfg(not(loom))]
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fd::BorrowedFd,
    io::Errno,
};

#[cfg(not(loom))]
use crate::busy_poll::BusyPoll;

/// A party that may have to wait: for one ring, or for many.
pub trait Waiter {
    /// Looks for what is waited for, as a sync does. True where there is no reason to sleep: there is
    /// something, or nothing can come any more.
    fn look(&mut self) -> bool;

    /// Drains the doorbells, and then announces the wait on each ring. True if one of them had been
    /// notified.
    fn arm(&mut self) -> bool;

    /// Notifies the doorbells that [`arm`](Self::arm) has drained.
    fn pass_on(&mut self);

    /// What decides whether a wait begins with looking for a moment; `None`: it does not.
    #[cfg(not(loom))]
    #[doc(hidden)]
    fn busy_poll(&self) -> Option<&BusyPoll> {
        None
    }
}

/// A waiter that can sleep by [`Armed::sleep`].
#[cfg(not(loom))]
pub trait Sleeper: Waiter {
    /// Lists what ends a sleep.
    fn sources<'s>(&'s self, sources: &mut Sources<'s>);
}

/// What [`prepare`] has come to.
#[derive(Debug)]
pub enum Prepared<'w, W: ?Sized> {
    /// The last [look](Waiter::look) has found something.
    Ready,
    /// There is nothing, and from now on news ends a sleep on the sources.
    Armed(Armed<'w, W>),
}

/// A waiter that may sleep.
#[derive(Debug)]
pub struct Armed<'w, W: ?Sized>(&'w mut W);

/// Looks, and announces a wait where there is nothing.
pub fn prepare<W: Waiter + ?Sized>(waiter: &mut W) -> Prepared<'_, W> {
    if waiter.look() {
        return Prepared::Ready;
    }
    #[cfg(not(loom))]
    if let Some(moment) = waiter.busy_poll().and_then(BusyPoll::begin) {
        let looks = moment.find(|| waiter.look());
        if let Some(poll) = waiter.busy_poll() {
            poll.end(&looks);
        }
        if looks.found {
            return Prepared::Ready;
        }
    }
    let drained = waiter.arm();
    if waiter.look() {
        if drained {
            waiter.pass_on();
        }
        return Prepared::Ready;
    }
    Prepared::Armed(Armed(waiter))
}

impl<W: ?Sized> Prepared<'_, W> {
    /// Whether something was found.
    pub fn is_ready(&self) -> bool {
        matches!(self, Prepared::Ready)
    }
}

/// Several at once: whatever one of them waits for ends the wait.
impl<W: Waiter> Waiter for [W] {
    fn look(&mut self) -> bool {
        self.iter_mut().any(W::look)
    }

    fn arm(&mut self) -> bool {
        self.iter_mut().fold(false, |drained, waiter| drained | waiter.arm())
    }

    fn pass_on(&mut self) {
        self.iter_mut().for_each(W::pass_on);
    }

    /// The first's decides for all.
    #[cfg(not(loom))]
    fn busy_poll(&self) -> Option<&BusyPoll> {
        self.iter().find_map(W::busy_poll)
    }
}

#[cfg(not(loom))]
impl<W: Sleeper> Sleeper for [W] {
    fn sources<'s>(&'s self, sources: &mut Sources<'s>) {
        self.iter().for_each(|waiter| waiter.sources(sources));
    }
}

/// What ended a sleep.
#[cfg(not(loom))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// A source, or a signal: look again.
    Notified,
    /// The other end of a [connection](Sources::add_connection) was closed.
    HungUp,
    /// The deadline.
    TimedOut,
}

/// Descriptors that end a sleep, each with the events that do besides errors.
#[cfg(not(loom))]
#[derive(Debug, Default)]
pub struct Sources<'s> {
    /// The connections first.
    list: Vec<(BorrowedFd<'s>, PollFlags)>,
    connections: usize,
}

#[cfg(not(loom))]
impl<'s> Sources<'s> {
    /// A descriptor, and the events that end the sleep besides errors.
    pub fn add(&mut self, fd: BorrowedFd<'s>, events: PollFlags) {
        self.list.push((fd, events));
    }

    /// A socket whose hang-up ends the sleep, and which is not to be read.
    pub fn add_connection(&mut self, fd: BorrowedFd<'s>) {
        self.list.insert(self.connections, (fd, PollFlags::empty()));
        self.connections += 1;
    }

    /// All of them, connections first.
    pub fn as_slice(&self) -> &[(BorrowedFd<'s>, PollFlags)] {
        &self.list
    }

    fn sleep(&self, deadline: Option<Instant>) -> io::Result<Woken> {
        let source = |(fd, events): &(BorrowedFd<'s>, _)| PollFd::from_borrowed_fd(*fd, *events);
        let mut fds: Vec<_> = self.list.iter().map(source).collect();
        let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
        match poll(&mut fds, left.map(timespec).as_ref()) {
            Ok(0) => Ok(Woken::TimedOut),
            Err(Errno::INTR) => Ok(Woken::Notified),
            Err(error) => Err(error.into()),
            Ok(_) => {
                let gone = PollFlags::HUP | PollFlags::ERR;
                match fds[..self.connections].iter().any(|fd| fd.revents().intersects(gone)) {
                    true => Ok(Woken::HungUp),
                    false => Ok(Woken::Notified),
                }
            }
        }
    }
}

#[cfg(not(loom))]
fn timespec(time: Duration) -> Timespec {
    Timespec {
        tv_sec: time.as_secs().min(i64::MAX as u64) as i64,
        tv_nsec: time.subsec_nanos().into(),
    }
}

#[cfg(not(loom))]
impl<W: Sleeper + ?Sized> Armed<'_, W> {
    /// What to sleep on, for a caller that does so by itself.
    pub fn sources(&self) -> Sources<'_> {
        let mut sources = Sources::default();
        self.0.sources(&mut sources);
        sources
    }

    /// Sleeps until there may be news, or until `deadline`; one that is over ends it at once.
    ///
    /// # Errors
    /// Those of `poll(2)`, but for a signal: that is as good as news.
    pub fn sleep(self, deadline: Option<Instant>) -> io::Result<Woken> {
        self.sources().sleep(deadline)
    }
}
