//! Waiting for netmap descriptors and others together.
//!
//! A netmap descriptor itself is a socket that is never readable. So a wait looks at the
//! rings first; if there is nothing, it announces itself on the rings, looks once more, and
//! sleeps in the kernel's `ppoll` on their bells in place of the descriptor.

use std::{
    os::fd::{AsRawFd, RawFd},
    time::{Duration, Instant},
};

use libc::{POLLERR, POLLHUP, c_int, c_short, pollfd, sigset_t, timespec};
use ringway::Binding;
use ringway_abi::Dir;

use crate::{
    next::{errno, next},
    ready,
    table::InUse,
};

/// A descriptor to wait for, with what came of it.
pub struct Entry {
    pub fd: RawFd,
    pub events: c_short,
    pub revents: c_short,
    pub netmap: Option<InUse>,
}

/// When a wait ends by itself.
#[derive(Clone, Copy)]
pub struct Deadline(Option<Instant>);

impl Deadline {
    pub fn never() -> Deadline {
        Deadline(None)
    }

    pub fn after(timeout: Duration) -> Deadline {
        Deadline(Instant::now().checked_add(timeout))
    }

    /// As `poll` gives it: negative is for ever.
    pub fn after_millis(millis: c_int) -> Deadline {
        u64::try_from(millis)
            .map_or(Deadline::never(), |millis| Deadline::after(Duration::from_millis(millis)))
    }

    /// Time left, `None` for ever.
    pub fn left(&self) -> Option<Duration> {
        self.0.map(|at| at.saturating_duration_since(Instant::now()))
    }
}

/// Waits until something is ready, the deadline is there, or a signal comes (Err(EINTR)).
/// Returns how many entries have `revents`.
pub fn wait(
    entries: &mut [Entry],
    deadline: Deadline,
    mask: Option<*const sigset_t>,
) -> Result<usize, c_int> {
    loop {
        if look(entries) > 0 {
            return merge(entries, mask);
        }
        if deadline.left() == Some(Duration::ZERO) {
            return merge(entries, mask);
        }
        let silenced = arm(entries);
        if look(entries) > 0 {
            if silenced {
                each_wait(entries, |binding, dir| binding.disarm(dir));
            }
            return merge(entries, mask);
        }
        let (woken, timed_out) = sleep(entries, deadline.left(), mask)?;
        if woken > 0 || timed_out {
            // What has become ready on the rings meanwhile counts too.
            look(entries);
            return Ok(count(entries));
        }
    }
}

/// Looks at the rings; returns how many netmap entries are ready.
fn look(entries: &mut [Entry]) -> usize {
    let mut ready = 0;
    for entry in entries.iter_mut() {
        if let Some(netmap) = &entry.netmap {
            entry.revents = ready::look(netmap, entry.fd, entry.events);
            ready += usize::from(entry.revents != 0);
        }
    }
    ready
}

/// Whether a bell was silenced that somebody else may have been meant by.
fn arm(entries: &[Entry]) -> bool {
    let mut silenced = false;
    each_wait(entries, |binding, dir| silenced |= binding.arm(dir));
    silenced
}

/// Every binding and direction that is waited for.
fn each_wait(entries: &[Entry], mut f: impl FnMut(&Binding, Dir)) {
    for entry in entries {
        if let Some(binding) = entry.netmap.as_ref().and_then(|n| n.bound()) {
            ready::wanted(entry.events).for_each(|dir| f(binding, dir));
        }
    }
}

fn count(entries: &[Entry]) -> usize {
    entries.iter().filter(|e| e.revents != 0).count()
}

/// Adds what the other descriptors have to say, without waiting.
fn merge(entries: &mut [Entry], mask: Option<*const sigset_t>) -> Result<usize, c_int> {
    if entries.iter().any(|e| e.netmap.is_none()) {
        let mut fds: Vec<pollfd> = entries.iter().map(foreign).collect();
        // A signal is not waited for here, and what is ready is not given up for one.
        if ppoll(&mut fds, Some(Duration::ZERO), mask).is_ok() {
            take(entries, &fds);
        }
    }
    Ok(count(entries))
}

/// The entry as the kernel is to see it: not at all, if it is netmap's.
fn foreign(entry: &Entry) -> pollfd {
    let fd = if entry.netmap.is_some() { -1 } else { entry.fd };
    pollfd { fd, events: entry.events, revents: 0 }
}

fn take(entries: &mut [Entry], fds: &[pollfd]) {
    for (entry, fd) in entries.iter_mut().zip(fds) {
        if entry.netmap.is_none() {
            entry.revents = fd.revents;
        }
    }
}

/// Sleeps. Returns how many of the other descriptors are ready, and whether time is up.
fn sleep(
    entries: &mut [Entry],
    timeout: Option<Duration>,
    mask: Option<*const sigset_t>,
) -> Result<(usize, bool), c_int> {
    let mut fds: Vec<pollfd> = entries.iter().map(foreign).collect();
    for entry in entries.iter() {
        let Some(binding) = entry.netmap.as_ref().and_then(|n| n.bound()) else { continue };
        let rings = ready::wanted(entry.events).flat_map(|dir| binding.rings(dir));
        for (source, events) in rings.flat_map(|ring| ring.wait_sources()) {
            let events = events.bits() as c_short;
            fds.push(pollfd { fd: source.as_raw_fd(), events, revents: 0 });
        }
    }
    let bells = fds.len();
    // The connection speaks up only when the daemon hangs up, and then for ever: rings that go
    // on without it do not listen.
    let is_served = |e: &Entry| e.netmap.as_ref()?.bound().map(Binding::is_served);
    let connections = entries.iter().filter(|e| is_served(e) == Some(true));
    fds.extend(connections.map(|e| pollfd { fd: e.fd, events: 0, revents: 0 }));

    let heard = ppoll(&mut fds, timeout, mask)?;
    take(entries, &fds);
    let served = entries.iter().filter(|e| is_served(e) == Some(true));
    for (entry, connection) in served.zip(&fds[bells..]) {
        if let Some(netmap) = &entry.netmap
            && connection.revents & (POLLHUP | POLLERR) != 0
        {
            netmap.set_gone();
        }
    }
    let others = fds[..entries.len()].iter().filter(|fd| fd.revents != 0).count();
    Ok((others, heard == 0))
}

/// The kernel's `ppoll`.
fn ppoll(
    fds: &mut [pollfd],
    timeout: Option<Duration>,
    mask: Option<*const sigset_t>,
) -> Result<c_int, c_int> {
    let timeout = timeout.map(|t| timespec {
        tv_sec: t.as_secs().min(i64::MAX as u64) as i64,
        tv_nsec: t.subsec_nanos().into(),
    });
    let (list, len) = (fds.as_mut_ptr(), fds.len() as libc::nfds_t);
    let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    let mask = mask.unwrap_or(std::ptr::null());
    let heard = next!(
        ppoll: fn(
            list => *mut pollfd,
            len => libc::nfds_t,
            timeout => *const timespec,
            mask => *const sigset_t,
        ) -> c_int
    );
    if heard < 0 { Err(errno()) } else { Ok(heard) }
}
