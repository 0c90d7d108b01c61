//! How a command that moves packets runs: until when, and how it sleeps meanwhile.

use crate::error::{Error, Result};
use crate::output::Output;
use crate::sys::Stop;
use crate::units::parse_duration;
use ringway::{BusyPoll, Interest, Port, PortWaiter, Prepared, Sleeper, Sources, Waiter, prepare};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use serde::Serialize;
use std::fmt::Display;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The options that `gen`, `recv` and `bridge` share.
#[derive(clap::Args, Debug, Default)]
#[group(skip)]
pub struct Args {
    /// End after this time: 10s, 200ms, 2m [default: run until interrupted]
    #[arg(short, long, value_name = "TIME", value_parser = parse_duration)]
    pub duration: Option<Duration>,
}

/// By how much a sleep ends too late on a machine that is not overloaded.
pub const OVERSLEPT: Duration = Duration::from_micros(60);

/// A run, from the first packet to the summary.
pub struct RunLoop {
    pub output: Output,
    pub start: Instant,
    end: Option<Instant>,
    stop: Stop,
    /// Whether the command knows that the user has asked for the end, and that its time is over. Until then either
    /// ends a sleep, even if the sleep began after it.
    knows_stop: AtomicBool,
    knows_end: AtomicBool,
    waker: Option<Waker>,
}

/// Ends the sleep of a run, from any thread. One that comes while the run does not sleep ends its next sleep.
#[derive(Clone)]
pub struct Waker(Arc<OwnedFd>);

impl Waker {
    fn new() -> Result<Waker> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let fail =
            |error: rustix::io::Errno| Error::System { what: "eventfd", source: error.into() };
        Ok(Waker(Arc::new(event.map_err(fail)?)))
    }

    pub fn wake(&self) {
        // It fails when it was written to as often as a number has values: then it is readable.
        let _ = rustix::io::write(&*self.0, &1u64.to_ne_bytes());
    }

    fn forget(&self) {
        let _ = rustix::io::read(&*self.0, &mut [0; 8]);
    }
}

impl RunLoop {
    /// Starts the clock and takes over SIGINT, SIGQUIT, SIGTERM and SIGHUP.
    pub fn begin(args: &Args) -> Result<RunLoop> {
        let stop = Stop::install()?;
        let start = Instant::now();
        let end = args.duration.and_then(|time| start.checked_add(time));
        let output = Output::chosen();
        Ok(RunLoop {
            output,
            start,
            end,
            stop,
            knows_stop: AtomicBool::new(false),
            knows_end: AtomicBool::new(false),
            waker: None,
        })
    }

    /// What ends its sleeps from now on.
    pub fn waker(&mut self) -> Result<Waker> {
        let waker = Waker::new()?;
        self.waker = Some(waker.clone());
        Ok(waker)
    }

    /// Tells how the run goes.
    pub fn tell(&self, result: &(impl Display + Serialize)) -> Result<()> {
        self.output.write(result)
    }

    /// When it ends by itself.
    pub fn end(&self) -> Option<Instant> {
        self.end
    }

    /// Whether the user has asked for the end.
    pub fn is_interrupted(&self) -> bool {
        let is_so = self.stop.requested();
        self.knows_stop.store(is_so, Ordering::Relaxed);
        is_so
    }

    /// Whether it is time to end: interrupted, or through with `--duration`.
    pub fn is_over(&self, now: Instant) -> bool {
        let is_through = self.end.is_some_and(|end| end <= now);
        self.knows_end.store(is_through, Ordering::Relaxed);
        self.is_interrupted() || is_through
    }

    /// Waits until any of the ports has what is asked of it, the run is over, or `until`. A closed port has
    /// nothing.
    pub fn wait(&self, ports: &mut [(&mut Port, Interest)], until: Instant) -> Result<()> {
        self.wait_for(&mut waiters(ports)[..], until)?;
        // What has ended the wait may be that nothing can come any more.
        if ports.iter_mut().any(|(port, interest)| port.poll(*interest)) {
            return Ok(());
        }
        for (port, interest) in ports.iter_mut().filter(|(port, _)| !port.is_shut()) {
            if port.poll_or_check(*interest)? {
                break;
            }
        }
        Ok(())
    }

    /// Waits until a port has what is asked of it, for so long at most, and unless the user has had
    /// enough. Whether it has it.
    pub fn await_port(&self, port: &mut Port, interest: Interest, time: Duration) -> Result<bool> {
        let until = Instant::now() + time;
        loop {
            if port.poll(interest) {
                return Ok(true);
            }
            if self.is_interrupted() || Instant::now() >= until {
                return Ok(false);
            }
            self.wait(&mut [(port, interest)], until)?;
        }
    }

    /// Waits until any of the ports has what is asked of it, one of the descriptors is readable,
    /// the run is over, or `until`. A closed port has nothing.
    pub fn wait_beside(
        &self,
        ports: &mut [(&mut Port, Interest)],
        fds: Vec<BorrowedFd<'_>>,
        until: Instant,
    ) -> Result<()> {
        self.wait_for(&mut Beside { ports: waiters(ports), fds }, until)
    }

    /// Waits until `waiter` has found something, or is to look again, the run is over, or `until`.
    /// Once the caller has been told that it is over, only the others end it.
    pub fn wait_for(&self, waiter: &mut (impl Sleeper + ?Sized), until: Instant) -> Result<()> {
        let stop = (!self.knows_stop.load(Ordering::Relaxed)).then_some(&self.stop);
        let end = self.end.filter(|_| stop.is_some() && !self.knows_end.load(Ordering::Relaxed));
        let until = end.map_or(until, |end| end.min(until));
        let waker = self.waker.as_ref();
        match prepare(&mut Stoppable { waiter, stop, waker }) {
            Prepared::Ready => Ok(()),
            Prepared::Armed(armed) => {
                let woken = armed.sleep(Some(until));
                if let Some(waker) = waker {
                    waker.forget();
                }
                woken.map(drop).map_err(|source| Error::System { what: "waiting", source })
            }
        }
    }

    /// Sleeps until the run is over, or until `until`. Once the caller knows of an interruption, only that ends it.
    pub fn sleep(&self, until: Instant) -> Result<()> {
        let nothing: &mut [PortWaiter<'_>] = &mut [];
        self.wait_for(nothing, until)
    }

    /// Waits until `due`, to which it sleeps as close as a sleep ends in time, and then looks at the clock.
    /// May return before that: when the run is over, at `until`, and when the sleep is through.
    pub fn sleep_exactly(&self, due: Instant, until: Instant) -> Result<()> {
        let asleep = due.checked_sub(OVERSLEPT).unwrap_or(due).min(until);
        if Instant::now() < asleep {
            return self.sleep(asleep);
        }
        while Instant::now() < due && !self.is_interrupted() {
            std::hint::spin_loop();
        }
        Ok(())
    }

    /// Sleeps until a descriptor has what is asked for, the user asks for the end, or `until`.
    pub fn sleep_on(&self, fd: BorrowedFd<'_>, events: PollFlags, until: Instant) -> Result<()> {
        let mut fds = [
            PollFd::from_borrowed_fd(fd, events),
            PollFd::from_borrowed_fd(self.stop.as_fd(), PollFlags::IN),
        ];
        poll_until(&mut fds, until)
    }
}

/// What a port is waited for: packets to take, room to send, both, or nothing.
pub fn interest(packets: bool, room: bool) -> Option<Interest> {
    match (packets, room) {
        (true, false) => Some(Interest::Rx),
        (false, true) => Some(Interest::Tx),
        (true, true) => Some(Interest::Both),
        (false, false) => None,
    }
}

/// Those of the open ports: the wait for a closed one has an end at once, which says that it fails.
fn waiters<'p>(ports: &'p mut [(&mut Port, Interest)]) -> Vec<PortWaiter<'p>> {
    let open = ports.iter_mut().filter(|(port, _)| !port.is_shut());
    open.map(|(port, interest)| port.waiter(*interest)).collect()
}

/// Ports, and descriptors that are no port's.
struct Beside<'p, 'f> {
    ports: Vec<PortWaiter<'p>>,
    fds: Vec<BorrowedFd<'f>>,
}

impl Beside<'_, '_> {
    fn is_readable(&self) -> bool {
        if self.fds.is_empty() {
            return false;
        }
        let readable = |&fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        let mut fds: Vec<_> = self.fds.iter().map(readable).collect();
        poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0)
    }
}

impl Waiter for Beside<'_, '_> {
    fn look(&mut self) -> bool {
        self.ports[..].look() || self.is_readable()
    }

    fn arm(&mut self) -> bool {
        self.ports[..].arm()
    }

    fn pass_on(&mut self) {
        self.ports[..].pass_on();
    }

    fn busy_poll(&self) -> Option<&BusyPoll> {
        self.ports[..].busy_poll()
    }
}

impl Sleeper for Beside<'_, '_> {
    fn sources<'s>(&'s self, sources: &mut Sources<'s>) {
        self.ports[..].sources(sources);
        self.fds.iter().for_each(|fd| sources.add(*fd, PollFlags::IN));
    }
}

/// A waiter, and what else ends its sleep: the user's wish to end the run, and a waker.
struct Stoppable<'r, W: ?Sized> {
    waiter: &'r mut W,
    stop: Option<&'r Stop>,
    waker: Option<&'r Waker>,
}

impl<W: Waiter + ?Sized> Waiter for Stoppable<'_, W> {
    fn look(&mut self) -> bool {
        self.waiter.look()
    }

    fn arm(&mut self) -> bool {
        self.waiter.arm()
    }

    fn pass_on(&mut self) {
        self.waiter.pass_on();
    }

    fn busy_poll(&self) -> Option<&BusyPoll> {
        self.waiter.busy_poll()
    }
}

impl<W: Sleeper + ?Sized> Sleeper for Stoppable<'_, W> {
    fn sources<'s>(&'s self, sources: &mut Sources<'s>) {
        self.waiter.sources(sources);
        if let Some(stop) = self.stop {
            sources.add(stop.as_fd(), PollFlags::IN);
        }
        if let Some(waker) = self.waker {
            sources.add(waker.0.as_fd(), PollFlags::IN);
        }
    }
}

/// Waits until one of them has what is asked of it, a signal comes, or `until`.
pub fn poll_until(fds: &mut [PollFd<'_>], until: Instant) -> Result<()> {
    let left = until.saturating_duration_since(Instant::now());
    let timeout = Timespec {
        tv_sec: left.as_secs().min(i64::MAX as u64) as i64,
        tv_nsec: left.subsec_nanos().into(),
    };
    match poll(fds, Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(Error::System { what: "waiting", source: error.into() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(3600);

    /// What comes between a look at it and the sleep is not slept through. What the caller knows ends no sleep.
    #[test]
    fn the_end_of_a_run_ends_one_sleep() {
        type Over = fn(&mut RunLoop);
        let ways: [Over; 2] =
            [|run_loop| run_loop.stop.request(), |run_loop| run_loop.end = Some(run_loop.start)];
        for over in ways {
            let run_loop = RunLoop::begin(&Args { duration: Some(LONG) }).unwrap();
            let mut run_loop = RunLoop { stop: Stop::of_test(), ..run_loop };
            assert!(!run_loop.is_over(run_loop.start));
            over(&mut run_loop);
            run_loop.sleep(run_loop.start + LONG).unwrap();
            assert!(run_loop.is_over(Instant::now()));
            let until = Instant::now() + Duration::from_millis(1);
            run_loop.sleep(until).unwrap();
            assert!(Instant::now() >= until);
        }
    }

    /// A port whose daemon has ended is opened again from time to time; between two attempts the command sleeps.
    #[test]
    fn a_closed_port_does_not_end_a_sleep() {
        let run_loop = RunLoop::begin(&Args { duration: Some(LONG) }).unwrap();
        let run_loop = RunLoop { stop: Stop::of_test(), ..run_loop };
        let mut closed = ringway_doc::open("closed{1").unwrap();
        closed.shut();
        let mut open = ringway_doc::open("closed}1").unwrap();
        for interest in [Interest::Rx, Interest::Tx, Interest::Both] {
            let is_slept = |wait: &mut dyn FnMut(Instant)| {
                let until = Instant::now() + Duration::from_millis(20);
                wait(until);
                Instant::now() >= until
            };
            let mut alone = [(&mut closed, interest)];
            assert!(is_slept(&mut |until| run_loop.wait(&mut alone, until).unwrap()));
            assert!(is_slept(&mut |until| run_loop
                .wait_beside(&mut alone, vec![], until)
                .unwrap()));
            let mut both = [(&mut closed, interest), (&mut open, Interest::Rx)];
            assert!(is_slept(&mut |until| run_loop.wait(&mut both, until).unwrap()));
        }
    }
}
