//! An interface's own thread, which moves packets while no thread of the program does, and sleeps while there are none.
//!
//! A program whose threads poll all the time moves its packets in these polls: no other thread has to be woken for each burst.
//! The interface's thread then only looks from time to time whether that is still so.

use std::{
    io, mem,
    os::fd::{AsFd, OwnedFd},
    sync::{Arc, atomic::Ordering::Relaxed},
    thread::JoinHandle,
    time::Duration,
};

use ringway::{Interest, Port, Prepared, Sleeper, Sources, prepare};
use ringway_helper_thread::helper_thread;
use ringway_qbman::manager;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{POLLS, interface::Interface};

/// How long nobody has to poll to be polling no longer.
const GRACE: Duration = Duration::from_millis(10);

/// What a sleep ends by: descriptors of the port.
pub struct Sleep {
    rx: Vec<(OwnedFd, PollFlags)>,
    both: Vec<(OwnedFd, PollFlags)>,
}

impl Sleep {
    pub fn new(port: Option<&mut Port>) -> io::Result<Sleep> {
        let Some(port) = port else { return Ok(Sleep { rx: Vec::new(), both: Vec::new() }) };
        Ok(Sleep { rx: sources(port, Interest::Rx)?, both: sources(port, Interest::Both)? })
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
pub fn start(interface: Arc<Interface>, sleep: Sleep) -> io::Result<JoinHandle<()>> {
    helper_thread(&interface.place.to_string(), move || work(&interface, &sleep))
}

fn work(interface: &Interface, sleep: &Sleep) {
    any_cpu();
    let mut polls = POLLS.load(Relaxed);
    while !interface.ends.load(Relaxed) {
        let now = POLLS.load(Relaxed);
        let is_polled = mem::replace(&mut polls, now) != now;
        interface.notifier.clear();
        if is_polled {
            wait(interface, &[], Some(GRACE));
            continue;
        }
        let (moved, waits) = interface.with_io(|io| (interface.turn(io), io.waits()));
        // While frames wait for room, no others are asked for.
        if moved || !waits && !manager().arm(interface.numbers.channel, &interface.notifier) {
            continue;
        }
        let interest = interface.with_io(|io| {
            let interest = interface.interest(io);
            let (Some(port), Some(interest)) = (io.port.as_mut(), interest) else {
                return Ok(None);
            };
            match prepare(&mut port.waiter(interest)) {
                Prepared::Armed(_) => Ok(Some(interest)),
                // Nothing can come any more: the interface has gone, or the daemon.
                Prepared::Ready => match port.poll_or_check(interest) {
                    Ok(_) => Err(None),
                    Err(error) => Err(Some(error)),
                },
            }
        });
        match interest {
            Ok(None) => wait(interface, &[], None),
            Ok(Some(Interest::Rx)) => wait(interface, &sleep.rx, None),
            Ok(Some(_)) => wait(interface, &sleep.both, None),
            Err(None) => {}
            Err(Some(error)) => {
                eprintln!("usdpaa: {}: {error}", interface.place);
                return;
            }
        }
    }
}

/// Sleeps until there is news on these descriptors, or on the interface's own.
fn wait(interface: &Interface, sources: &[(OwnedFd, PollFlags)], limit: Option<Duration>) {
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
