//! An interface's own thread, which moves packets while no thread of the program does, and sleeps while there are none.
//!
//! A program whose threads poll all the time moves its packets in these polls: no other thread has to be woken for each burst.
//! The interface's thread then only looks from time to time whether that is still so.

use std::{
    io, mem,
    os::fd::{AsFd, OwnedFd},
    sync::{Arc, atomic::Ordering::Relaxed},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use ringway::{Error, Interest, Port, Prepared, Sleeper, Sources, prepare};
use ringway_helper_thread::helper_thread;
use ringway_qbman::manager;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{
    POLLS,
    interface::{Counters, Interface, system},
};
use crate::print;

/// How long nobody has to poll to be polling no longer.
const GRACE: Duration = Duration::from_millis(10);

/// What a sleep ends by: descriptors of the port.
#[derive(Default)]
pub struct Sleep {
    rx: Vec<(OwnedFd, PollFlags)>,
    both: Vec<(OwnedFd, PollFlags)>,
    /// While nothing is waited for: the daemon's end.
    daemon: Vec<(OwnedFd, PollFlags)>,
}

impl Sleep {
    pub fn new(port: Option<&mut Port>) -> io::Result<Sleep> {
        let Some(port) = port else { return Ok(Sleep::default()) };
        let daemon = port.daemon_fd().map(|fd| fd.try_clone_to_owned()).transpose()?;
        Ok(Sleep {
            rx: sources(port, Interest::Rx)?,
            both: sources(port, Interest::Both)?,
            daemon: daemon.into_iter().map(|fd| (fd, PollFlags::empty())).collect(),
        })
    }
}

fn sources(port: &mut Port, interest: Interest) -> io::Result<Vec<(OwnedFd, PollFlags)>> {
    let waiter = port.waiter(interest);
    let mut sources = Sources::default();
    waiter.sources(&mut sources);
    let copy = |(fd, events): &(_, PollFlags)| Ok((AsFd::as_fd(fd).try_clone_to_owned()?, *events));
    sources.as_slice().iter().map(copy).collect()
}

/// Starts the thread: it takes no signals, which are the program's, and runs on any CPU.
pub fn start(interface: Arc<Interface>, mut sleep: Sleep) -> io::Result<JoinHandle<()>> {
    helper_thread(&interface.place.to_string(), move || {
        any_cpu();
        while let Err(error) = work(&interface, &sleep) {
            match if error.is_gone() { reopen(&interface) } else { Err(error) } {
                Ok(Some(again)) => sleep = again,
                Ok(None) => break,
                Err(error) => {
                    print::error(&format!("{}: {error}", interface.place));
                    break;
                }
            }
        }
    })
}

/// Moves packets until the interface ends, or its port does.
fn work(interface: &Interface, sleep: &Sleep) -> Result<(), Error> {
    let mut polls = POLLS.load(Relaxed);
    while !interface.ends.load(Relaxed) {
        let now = POLLS.load(Relaxed);
        let is_polled = mem::replace(&mut polls, now) != now;
        interface.notifier.clear();
        if is_polled {
            wait(interface, &[], Some(GRACE));
            interface.with_io(|io| interface.check(io))?;
            continue;
        }
        let (moved, waits) = interface.with_io(|io| (interface.turn(io), io.waits()));
        // While frames wait for room, no others are asked for.
        if moved || !waits && !manager().arm(interface.numbers.channel, &interface.notifier) {
            continue;
        }
        let news = interface.with_io(|io| {
            let interest = interface.interest(io);
            let (Some(port), Some(interest)) = (io.port.as_mut(), interest) else {
                return Ok(Some(&sleep.daemon));
            };
            // It does not look for longer: frames to send come meanwhile, and it shares the program's processors.
            match prepare(&mut port.waiter(interest).at_once()) {
                Prepared::Armed(_) if interest == Interest::Rx => Ok(Some(&sleep.rx)),
                Prepared::Armed(_) => Ok(Some(&sleep.both)),
                // Nothing can come any more: the interface has gone, or the daemon.
                Prepared::Ready => port.poll_or_check(interest).map(|_| None),
            }
        })?;
        if news.is_some_and(|news| wait(interface, news, None)) {
            interface.with_io(|io| interface.check(io))?;
        }
    }
    Ok(())
}

/// Opens a port again whose daemon has ended, and says so. `None` if the interface ends meanwhile.
fn reopen(interface: &Interface) -> Result<Option<Sleep>, Error> {
    let Some((mut reopening, lost)) = interface.with_io(|io| io.shut()) else { return Ok(None) };
    Counters::add(&interface.counters.lost, lost);
    let say = |what: &str| print::error(&format!("{}: {what}", interface.place));
    say("ringwayd has ended; the port is opened again when the next is there");
    while !interface.ends.load(Relaxed) {
        if let Some(mut port) = reopening.attempt()? {
            let sleep = Sleep::new(Some(&mut port)).map_err(system)?;
            interface.with_io(|io| io.port = Some(port));
            say("the port is open again");
            return Ok(Some(sleep));
        }
        interface.notifier.clear();
        let left = reopening.due().saturating_duration_since(Instant::now());
        wait(interface, &[], Some(left));
    }
    Ok(None)
}

/// Sleeps until there is news on these descriptors, or on the interface's own. True: one of them has hung up.
fn wait(interface: &Interface, sources: &[(OwnedFd, PollFlags)], limit: Option<Duration>) -> bool {
    let own = interface.notifier.fd();
    let mut fds = vec![PollFd::from_borrowed_fd(own, PollFlags::IN)];
    // While others move packets, the port's news is theirs; and what was raised is seen in the next round.
    fds.extend(sources.iter().map(|(fd, events)| PollFd::from_borrowed_fd(fd.as_fd(), *events)));
    let limit = limit.map(|limit| Timespec {
        tv_sec: limit.as_secs() as i64,
        tv_nsec: limit.subsec_nanos().into(),
    });
    // It is looked at all there is in either case.
    let _ = poll(&mut fds, limit.as_ref());
    fds.iter().any(|fd| fd.revents().intersects(PollFlags::HUP | PollFlags::ERR))
}

/// The thread that has started this one may be bound to a CPU.
fn any_cpu() {
    // SAFETY: a set of CPUs is plain data, which the call reads; CPUs that there are not are passed over.
    unsafe {
        let mut all: libc::cpu_set_t = mem::zeroed();
        for cpu in 0..libc::CPU_SETSIZE as usize {
            libc::CPU_SET(cpu, &mut all);
        }
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &all);
    }
}
