//! One descriptor for a port, which any event loop can watch.

use std::{
    ops::{Deref, DerefMut},
    time::Duration,
};

use ringway_kring::{Sleeper, Sources, prepare};
use rustix::{
    event::{EventfdFlags, PollFlags, epoll, eventfd},
    fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd},
    fs::{OFlags, fcntl_setfl},
    io::Errno,
    time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    },
};

use crate::{error::Error, liveness::has_hung_up, port::Port, wait::Interest};

/// A port with one pollable descriptor, for event loops: `poll(2)`, epoll, tokio's `AsyncFd`, Go's
/// netpoller, Python's selectors and asyncio, a selectable descriptor as libpcap's.
///
/// The descriptor is *readable* while there is something to do, and never anything else; it is watched,
/// not read. The kernel cannot see the rings, so the program says when it has done what there was:
///
/// 1. While there is something, work: [`prepare`](Self::prepare) says whether there is.
/// 2. When [`prepare`](Self::prepare) says no, the descriptor is not readable until there is.
///
/// Between those the descriptor stays readable: a program that takes some of the packets and goes back
/// to its event loop is called again. So a watcher may be level-triggered or edge-triggered; with edges,
/// the program goes on until `prepare` says no, as with any other descriptor. The descriptor may be
/// readable though nothing is there, but never the other way round. In the beginning it is readable.
///
/// ```
/// # use ringway_doc as Port;
/// use ringway::Interest;
/// use rustix::event::{PollFd, PollFlags, poll};
///
/// let mut port = Port::open("p{1")?.into_pollable()?;
/// # let mut peer = Port::open("p}1")?;
/// # peer.tx(0).push(&[0; 60]);
/// # peer.tx(0).sync();
/// loop {
///     while port.prepare(Interest::Rx)? {
///         for frame in port.rx(0).batch(64) {
///             println!("{} bytes", frame.len());
/// #           return Ok(());
///         }
///     }
///     poll(&mut [PollFd::new(&port, PollFlags::IN)], None).unwrap();
/// }
/// # #[allow(unreachable_code)]
/// # Ok::<(), ringway::Error>(())
/// ```
///
/// To hand it on, duplicate it: `port.as_fd().try_clone_to_owned()`. Copies are the same descriptor, in
/// another process too, and are of use as long as the port is open. It is non-blocking, for Go. A
/// forked child that goes on with the port makes a descriptor of its own, by
/// [`into_port`](Self::into_port) and [`Port::into_pollable`].
///
/// # What it costs
///
/// Nothing in a sync. Beside the event loop's own calls, a wake-up of a port with one ring of a switch
/// or a pipe costs one system call, in `prepare`: it drains the ring's doorbell. A `prepare` that finds
/// packets where the one before found none costs one call for each descriptor watched (two for such a
/// port, four for an interface's ring) and one more, and as much again when it next finds none: as long
/// as there are packets, nothing is watched. So the kernel has no watcher to tell of every packet, which
/// would cost an interface a third more time for each. Where there is always something, `prepare` makes
/// no call but what the syncs make. A port holds three descriptors more.
///
/// Waiting for room to send on an interface ends by a timer: see [`Interest::Tx`].
#[derive(Debug)]
pub struct PollablePort {
    set: OwnedFd,
    /// What is watched of the port: a set in `set`, so that it can be replaced as a whole.
    sources: OwnedFd,
    /// Keeps the set readable while there is something.
    hold: OwnedFd,
    held: bool,
    /// Makes the set readable when a [rest](Self::rest) is over.
    timer: Option<OwnedFd>,
    /// What is waited for, while there is nothing, and of which [port](Port::id): the program can put another one
    /// in its place, as `*pollable = port`.
    watched: Option<(Interest, u64)>,
    port: Port,
}

impl Port {
    /// The port with one descriptor for all its rings, for event loops.
    ///
    /// # Errors
    /// When the process (`ulimit -n`) or the system is out of descriptors. The port is closed then:
    /// [`Port::opened_as`] has what opens it again.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// use std::os::fd::AsFd;
    ///
    /// let port = Port::open("vale0:a")?.into_pollable()?;
    /// println!("{:?} is for the event loop", port.as_fd());
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn into_pollable(self) -> Result<PollablePort, Error> {
        let error = Error::system("cannot make a descriptor for the port (see `ulimit -n`)");
        PollablePort::new(self).map_err(error)
    }
}

impl PollablePort {
    fn new(port: Port) -> rustix::io::Result<PollablePort> {
        let set = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        fcntl_setfl(&set, OFlags::NONBLOCK)?;
        let hold = eventfd(1, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&set, &hold, NO_DATA, epoll::EventFlags::IN)?;
        let sources = sources_in(&set)?;
        Ok(PollablePort { set, sources, hold, held: true, timer: None, watched: None, port })
    }

    /// Syncs, and says whether there is something of what `interest` asks for. If not, the descriptor
    /// is readable as soon as there is.
    ///
    /// # Errors
    /// Those of [`Port::wait`]; the descriptor is readable then, and stays so. ENOSPC where the user
    /// watches too much (`/proc/sys/fs/epoll/max_user_watches`), ENOMEM; the next call tries it again.
    pub fn prepare(&mut self, interest: Interest) -> Result<bool, Error> {
        self.try_prepare(interest).inspect_err(|_| self.hold())
    }

    fn try_prepare(&mut self, interest: Interest) -> Result<bool, Error> {
        self.port.check_rings(interest)?;
        loop {
            let mut waiter = self.port.waiter(interest);
            let ready = prepare(&mut waiter).is_ready();
            let drained = waiter.drained;
            if !ready {
                return self.wait_for(interest, drained).map(|()| false);
            }
            self.hold();
            if self.port.ready(interest) {
                return Ok(true);
            }
            // Unless nothing can come any more, another process has been faster.
            if self.port.poll_or_check(interest)? {
                return Ok(true);
            }
        }
    }

    /// The port without the descriptor.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// let port = Port::open("vale0:a")?.into_pollable()?;
    /// // In a forked child, say: with a descriptor of its own.
    /// let port = port.into_port().into_pollable()?;
    /// # drop(port);
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn into_port(self) -> Port {
        self.port
    }

    /// Has another port in the place of this one, which is returned. The descriptor stays, and is readable.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// use std::{thread, time::{Duration, Instant}};
    ///
    /// let mut port = Port::open("vale0:a")?.into_pollable()?;
    /// let mut reopening = port.reopening(Duration::from_secs(10));
    /// port.shut();
    /// while let None = reopening.attempt()?.map(|new| port.replace(new)) {
    ///     // The event loop goes on meanwhile: the descriptor is readable when the next attempt is due.
    ///     port.rest(reopening.due().saturating_duration_since(Instant::now()))?;
    ///     thread::sleep(Duration::from_millis(1));
    /// }
    /// assert!(!port.is_shut());
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn replace(&mut self, port: Port) -> Port {
        self.hold();
        self.unwatch();
        self.timer = None;
        std::mem::replace(&mut self.port, port)
    }

    /// [Shuts](Port::shut) the port, until another [replaces](Self::replace) it. The descriptor stays.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// use ringway::Interest;
    ///
    /// let mut port = Port::open("vale0:a")?.into_pollable()?;
    /// port.shut();
    /// assert!(port.prepare(Interest::Rx).is_err(), "until it is replaced");
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn shut(&mut self) -> u64 {
        self.hold();
        self.unwatch();
        self.port.shut()
    }

    /// The descriptor of a port that was [shut](Self::shut) is not readable for so long, and then it is.
    ///
    /// # Errors
    /// When the process, or the system, is out of descriptors. The descriptor is readable then.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// use std::time::Duration;
    /// use rustix::event::{PollFd, PollFlags, poll};
    ///
    /// let mut port = Port::open("vale0:a")?.into_pollable()?;
    /// port.shut();
    /// port.rest(Duration::from_millis(1))?;
    /// let readable = poll(&mut [PollFd::new(&port, PollFlags::IN)], None);
    /// assert_eq!(readable, Ok(1), "the pause is over");
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn rest(&mut self, pause: Duration) -> Result<(), Error> {
        self.time(pause)
            .map_err(Error::system("cannot make a descriptor for a pause (see `ulimit -n`)"))?;
        if self.held {
            let _ = rustix::io::read(&self.hold, &mut [0; 8]);
            self.held = false;
        }
        Ok(())
    }

    fn time(&mut self, pause: Duration) -> rustix::io::Result<()> {
        let timer = match &mut self.timer {
            Some(timer) => timer,
            none => {
                let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
                let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
                epoll::add(&self.set, &timer, NO_DATA, epoll::EventFlags::IN)?;
                none.insert(timer)
            }
        };
        // A time of nothing would be none at all.
        let tv_sec = pause.as_secs().min(i64::MAX as u64) as i64;
        let tv_nsec = pause.subsec_nanos().max(1).into();
        let once = Itimerspec {
            it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
            it_value: Timespec { tv_sec, tv_nsec },
        };
        timerfd_settime(timer, TimerfdTimerFlags::empty(), &once).map(drop)
    }

    /// Makes the descriptor readable, from another thread than the one that works: for
    /// [`replace`](Self::replace), which is to follow.
    ///
    /// ```
    /// # use ringway_doc as Port;
    /// use std::thread;
    /// use rustix::event::{PollFd, PollFlags, poll};
    /// use ringway::Interest;
    ///
    /// let mut port = Port::open("vale0:a")?.into_pollable()?;
    /// assert!(!port.prepare(Interest::Rx)?);
    /// thread::scope(|scope| {
    ///     scope.spawn(|| port.interrupt());
    ///     let readable = poll(&mut [PollFd::new(&port, PollFlags::IN)], None);
    ///     assert_eq!(readable, Ok(1));
    /// });
    /// # Ok::<(), ringway::Error>(())
    /// ```
    pub fn interrupt(&self) {
        // It is full only if it is readable.
        let _ = rustix::io::write(&self.hold, &1u64.to_ne_bytes());
    }

    /// There is nothing, and a wait is announced; on the way there, doorbells were drained or not.
    fn wait_for(&mut self, interest: Interest, drained: bool) -> Result<(), Error> {
        if self.watched != Some((interest, self.port.id())) {
            self.watch(interest).map_err(Error::system("cannot watch the port"))?;
        } else if !drained && self.port.daemon_fd().is_some_and(has_hung_up) {
            // Readable, and no ring has anything: it was the connection.
            return Err(self.port.gone());
        }
        if self.held {
            // It holds a number, or is not readable anyway.
            let _ = rustix::io::read(&self.hold, &mut [0; 8]);
            self.held = false;
        }
        Ok(())
    }

    /// From now on the descriptor is readable, whatever happens on the rings.
    #[cold]
    fn hold_anew(&mut self) {
        // There is room for the number 1.
        let _ = rustix::io::write(&self.hold, &1u64.to_ne_bytes());
        self.held = true;
        self.unwatch();
    }

    /// Has the descriptor be readable until [`prepare`](Self::prepare) says no, without a sync: for a caller that has
    /// synced the rings by itself, and leaves some of what came.
    #[doc(hidden)]
    #[inline]
    pub fn hold(&mut self) {
        if !self.held {
            self.hold_anew();
        }
    }

    fn watch(&mut self, interest: Interest) -> rustix::io::Result<()> {
        self.unwatch();
        if self.watched.is_some() {
            // Another port's descriptors, which are not to be had any more.
            let sources = sources_in(&self.set)?;
            let _ = epoll::delete(&self.set, &self.sources);
            self.sources = sources;
        }
        // First, so that an error leaves no descriptor that is not known.
        self.watched = Some((interest, self.port.id()));
        let set = &self.sources;
        each_source(&mut self.port, interest, |fd, events| {
            match epoll::add(set, fd, NO_DATA, events) {
                // One descriptor may serve both directions.
                Ok(()) | Err(Errno::EXIST) => Ok(()),
                Err(error) => Err(error),
            }
        })
        .inspect_err(|_| self.unwatch())
    }

    /// Nothing of the port is watched any more, unless it was another port.
    fn unwatch(&mut self) {
        let id = self.port.id();
        let Some((interest, _)) = self.watched.take_if(|(_, watched)| *watched == id) else {
            return;
        };
        let set = &self.sources;
        // Those that are not in the set are not to be there.
        let _ = each_source(&mut self.port, interest, |fd, _| {
            let _ = epoll::delete(set, fd);
            Ok(())
        });
    }
}

const NO_DATA: epoll::EventData = epoll::EventData::new_u64(0);

/// A set that makes `set` readable.
fn sources_in(set: &OwnedFd) -> rustix::io::Result<OwnedFd> {
    let sources = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(set, &sources, NO_DATA, epoll::EventFlags::IN)?;
    Ok(sources)
}

/// Calls `f` for each descriptor that has news of `interest`, with the events to ask for.
fn each_source(
    port: &mut Port,
    interest: Interest,
    mut f: impl FnMut(BorrowedFd<'_>, epoll::EventFlags) -> rustix::io::Result<()>,
) -> rustix::io::Result<()> {
    let waiter = port.waiter(interest);
    let mut sources = Sources::default();
    waiter.sources(&mut sources);
    // The bits of poll and epoll are the same for what is asked for here.
    let events = |events: PollFlags| epoll::EventFlags::from_bits_retain(events.bits().into());
    sources.as_slice().iter().try_for_each(|(fd, wanted)| f(*fd, events(*wanted)))
}

impl Deref for PollablePort {
    type Target = Port;

    fn deref(&self) -> &Port {
        &self.port
    }
}

impl DerefMut for PollablePort {
    fn deref_mut(&mut self) -> &mut Port {
        &mut self.port
    }
}

impl AsFd for PollablePort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.set.as_fd()
    }
}

impl AsRawFd for PollablePort {
    fn as_raw_fd(&self) -> RawFd {
        self.set.as_raw_fd()
    }
}
