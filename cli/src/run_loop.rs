//! How a command that moves packets runs: until when, and how it sleeps meanwhile.

use crate::error::{Error, Result};
use crate::output::Output;
use crate::stop::Stop;
use crate::units::parse_duration;
use ringway::{Interest, Port};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// The options that `gen`, `recv` and `bridge` share.
#[derive(clap::Args, Debug, Default)]
#[group(skip)]
pub struct Args {
    /// End after this time: 10s, 200ms, 2m [default: run until interrupted]
    #[arg(short, long, value_name = "TIME", value_parser = parse_duration)]
    pub duration: Option<Duration>,

    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
}

/// How long to look at the rings before sleeping: about as long as two wake-ups take, so that a
/// steady stream is not slept through, and an idle port costs nothing.
const LOOK: Duration = Duration::from_micros(20);

/// A run, from the first packet to the summary.
pub struct RunLoop {
    pub output: Output,
    pub start: Instant,
    end: Option<Instant>,
    stop: Stop,
}

impl RunLoop {
    /// Starts the clock and takes over SIGINT and SIGTERM.
    pub fn begin(args: &Args) -> Result<RunLoop> {
        let stop = Stop::install()?;
        let start = Instant::now();
        let end = args.duration.and_then(|time| start.checked_add(time));
        Ok(RunLoop { output: Output { json: args.json }, start, end, stop })
    }

    /// When it ends by itself.
    pub fn end(&self) -> Option<Instant> {
        self.end
    }

    /// Whether the user has asked for the end.
    pub fn is_interrupted(&self) -> bool {
        self.stop.requested()
    }

    /// Whether it is time to end: interrupted, or through with `--duration`.
    pub fn is_over(&self, now: Instant) -> bool {
        self.is_interrupted() || self.end.is_some_and(|end| end <= now)
    }

    /// Waits until any of the ports has what is asked of it, the run is over, or `until`.
    pub fn wait(&self, ports: &mut [(&mut Port, Interest)], until: Instant) -> Result<()> {
        let sleep_at = Instant::now() + LOOK;
        while Instant::now() < sleep_at {
            if ports.iter_mut().any(|(port, interest)| port.poll(*interest)) {
                return Ok(());
            }
        }
        if ports.iter_mut().any(|(port, interest)| port.arm(*interest)) {
            return Ok(());
        }
        for (port, interest) in ports.iter() {
            port.check(*interest)?;
        }
        let ports: Vec<_> = ports.iter().map(|(port, interest)| (&**port, *interest)).collect();
        self.sleep(&ports, until)
    }

    /// Sleeps until a descriptor has what is asked for, the user asks for the end, or `until`.
    pub fn sleep_on(&self, fd: BorrowedFd<'_>, events: PollFlags, until: Instant) -> Result<()> {
        let mut fds = [
            PollFd::from_borrowed_fd(fd, events),
            PollFd::from_borrowed_fd(self.stop.as_fd(), PollFlags::IN),
        ];
        poll_until(&mut fds, until)
    }

    /// Sleeps until any of the ports, which have been [armed](Port::arm), rings, the run is over,
    /// or `until`. Once interrupted, only the other two end it.
    pub fn sleep(&self, ports: &[(&Port, Interest)], until: Instant) -> Result<()> {
        let until =
            if self.is_interrupted() { until } else { self.end.unwrap_or(until).min(until) };
        // First those whose hang-up means that a port has lost its daemon.
        let served: Vec<_> =
            ports.iter().filter_map(|(port, _)| Some((port, port.daemon_fd()?))).collect();
        let hang_ups =
            served.iter().map(|(_, fd)| PollFd::from_borrowed_fd(*fd, PollFlags::empty()));
        let sources = ports.iter().flat_map(|(port, interest)| port.wait_fds(*interest));
        let stop = (!self.is_interrupted()).then(|| (self.stop.as_fd(), PollFlags::IN));
        let sources = sources.chain(stop).map(|(fd, events)| PollFd::from_borrowed_fd(fd, events));
        let mut fds: Vec<_> = hang_ups.chain(sources).collect();
        poll_until(&mut fds, until)?;
        let gone = served.iter().zip(&fds).find(|(_, fd)| fd.revents().contains(PollFlags::HUP));
        match gone {
            Some(((port, _), _)) => Err(ringway::Error::Gone { name: port.name().into() }.into()),
            None => Ok(()),
        }
    }
}

fn poll_until(fds: &mut [PollFd<'_>], until: Instant) -> Result<()> {
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
