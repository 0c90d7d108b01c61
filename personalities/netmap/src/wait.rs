//! Waiting for netmap descriptors and others together.
//!
//! A netmap descriptor itself is a socket that is never readable. So a wait looks at the
//! rings first; if there is nothing, it announces itself on the rings, looks once more, and
//! sleeps in the kernel's `ppoll` on their doorbells in place of the descriptor.
//!
//! An epoll set with netmap descriptors in it is waited for as the kernel's set and as those
//! descriptors.

use std::{
    os::fd::{AsRawFd, RawFd},
    time::{Duration, Instant},
};

use libc::{POLLERR, POLLHUP, POLLIN, POLLRDNORM, c_int, c_short, pollfd, sigset_t, timespec};
use ringway::Binding;
use ringway_abi::Dir;

use crate::{
    next::{errno, next},
    probe, ready, sets,
    table::{self, InUse},
    worker,
};

/// A descriptor to wait for, with what came of it.
pub struct Entry {
    pub fd: RawFd,
    pub events: c_short,
    pub revents: c_short,
    pub what: What,
    /// For an edge-triggered member of an epoll set.
    pub edge: Option<Edge>,
}

/// What a descriptor is.
pub enum What {
    /// The kernel's alone.
    Foreign,
    Netmap(InUse),
    /// An epoll set with these members of ours, at any depth, beside the kernel's.
    Set(Vec<Entry>),
}

impl Entry {
    /// What the program calls `fd`, to be waited for until it has any of `events`.
    pub fn new(fd: RawFd, events: c_short) -> Entry {
        let what = match table::netmap(fd) {
            Some(netmap) => What::Netmap(netmap),
            None => match sets::entries(fd) {
                members if members.is_empty() => What::Foreign,
                members => What::Set(members),
            },
        };
        Entry { fd, events, revents: 0, what, edge: None }
    }

    /// Whether there is more to it than the kernel knows.
    pub fn is_ours(fd: RawFd) -> bool {
        table::netmap(fd).is_some() || sets::has_members(fd)
    }

    /// Looks at the rings, for `revents`.
    fn look(&mut self) {
        let revents = match &mut self.what {
            What::Foreign => return,
            What::Netmap(netmap) => ready::look(netmap, self.fd, self.events),
            What::Set(members) => {
                members.iter_mut().for_each(Entry::look);
                let ready = members.iter().any(|m| m.revents != 0);
                if ready { self.events & (POLLIN | POLLRDNORM) } else { 0 }
            }
        };
        self.revents = revents;
        if let Some(mut edge) = self.edge {
            self.revents = edge.news(revents, self.place());
            self.edge = Some(edge);
        }
    }

    /// Where the rings stand that it is about: another number when they have moved.
    fn place(&self) -> u64 {
        let mut place = 0;
        self.each_netmap(&mut |netmap, entry| {
            let rings = netmap.bound().map_or(0, |binding| ready::place(binding, entry.events));
            place = rings.wrapping_sub(place);
        });
        place
    }

    /// Calls `f` for each netmap descriptor in it.
    fn each_netmap<'a>(&'a self, f: &mut dyn FnMut(&'a InUse, &'a Entry)) {
        match &self.what {
            What::Foreign => {}
            What::Netmap(netmap) => f(netmap, self),
            What::Set(members) => members.iter().for_each(|m| m.each_netmap(f)),
        }
    }
}

/// What an edge-triggered member of a set was last reported for. There is news when an event
/// was not among that, or was gone in between, or when the rings have moved since.
#[derive(Clone, Copy, Debug, Default)]
pub struct Edge {
    reported: c_short,
    reported_at: u64,
    /// Where the rings stood at the last look.
    place: u64,
}

impl Edge {
    fn news(&mut self, revents: c_short, place: u64) -> c_short {
        let new = revents & !self.reported != 0 || place != self.reported_at;
        self.reported &= revents;
        self.place = place;
        if new { revents } else { 0 }
    }

    /// The program has been told of what the last look found.
    pub fn reported(&mut self, revents: c_short) {
        (self.reported, self.reported_at) = (revents, self.place);
    }
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

    pub fn is_over(&self) -> bool {
        self.left() == Some(Duration::ZERO)
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
    if mask.is_some_and(|mask| !mask.is_null() && !probe::readable(mask, size_of::<u64>())) {
        return Err(libc::EFAULT);
    }
    if look(entries) > 0 {
        return merge(entries);
    }
    let mut deadline = deadline;
    if deadline.is_over() {
        if awaits_worker(entries) {
            deadline = Deadline::after(worker::PATIENCE);
        } else if look(entries) > 0 {
            // The worker has made room between the look and the question.
            return merge(entries);
        }
    }
    loop {
        if deadline.is_over() {
            return last_look(entries, mask);
        }
        let drained = arm(entries);
        if look(entries) > 0 {
            if drained {
                each_wait(entries, |binding, dir| binding.disarm(dir));
            }
            return merge(entries);
        }
        let (woken, timed_out) = sleep(entries, deadline.left(), mask)?;
        // What has become ready on the rings meanwhile counts too.
        let ready = look(entries);
        if woken > 0 || timed_out {
            return Ok(count(entries));
        }
        if ready > 0 {
            return merge(entries);
        }
    }
}

/// Whether a switch's worker is about to make room that is asked for. Where the switch itself is
/// in the kernel there is always room (S-POLL-7), so a program that does not wait counts on it.
fn awaits_worker(entries: &[Entry]) -> bool {
    let mut awaited = false;
    each_wait(entries, |binding, dir| {
        awaited |= dir == Dir::Tx && worker::is_behind(binding, Dir::Tx)
    });
    awaited
}

/// Looks at the rings; returns how many entries are ready because of them.
fn look(entries: &mut [Entry]) -> usize {
    entries.iter_mut().for_each(Entry::look);
    entries.iter().filter(|e| !matches!(e.what, What::Foreign) && e.revents != 0).count()
}

/// Whether a doorbell was drained that somebody else may have been meant by.
fn arm(entries: &[Entry]) -> bool {
    let mut drained = false;
    each_wait(entries, |binding, dir| drained |= binding.arm(dir));
    drained
}

/// Every binding and direction that is waited for.
fn each_wait<'a>(entries: &'a [Entry], mut f: impl FnMut(&'a Binding, Dir)) {
    for entry in entries {
        entry.each_netmap(&mut |netmap, entry| {
            if let Some(binding) = netmap.bound() {
                ready::wanted(entry.events).for_each(|dir| f(binding, dir));
            }
        });
    }
}

fn count(entries: &[Entry]) -> usize {
    entries.iter().filter(|e| e.revents != 0).count()
}

/// Adds what the other descriptors have to say, without waiting. What is ready is not given up
/// for a signal, and with the mask that the program has anyway, none comes that would not.
fn merge(entries: &mut [Entry]) -> Result<usize, c_int> {
    if entries.iter().any(|e| !matches!(e.what, What::Netmap(_))) {
        let mut fds: Vec<pollfd> = entries.iter().map(foreign).collect();
        if ppoll(&mut fds, Some(Duration::ZERO), None).is_ok() {
            take(entries, &fds);
        }
    }
    Ok(count(entries))
}

/// Nothing is ready on the rings, and time is up. A signal that the mask lets in counts even
/// then, unless another descriptor is ready.
fn last_look(entries: &mut [Entry], mask: Option<*const sigset_t>) -> Result<usize, c_int> {
    if mask.is_none_or(|mask| mask.is_null()) {
        return merge(entries);
    }
    let mut fds: Vec<pollfd> = entries.iter().map(foreign).collect();
    ppoll(&mut fds, Some(Duration::ZERO), mask)?;
    take(entries, &fds);
    Ok(count(entries))
}

/// The entry as the kernel is to see it: not at all, if it is netmap's.
fn foreign(entry: &Entry) -> pollfd {
    let fd = if matches!(entry.what, What::Netmap(_)) { -1 } else { entry.fd };
    pollfd { fd, events: entry.events, revents: 0 }
}

fn take(entries: &mut [Entry], fds: &[pollfd]) {
    for (entry, fd) in entries.iter_mut().zip(fds) {
        match entry.what {
            What::Netmap(_) => {}
            What::Foreign => entry.revents = fd.revents,
            What::Set(_) => entry.revents |= fd.revents,
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
    each_wait(entries, |binding, dir| {
        for (source, events) in binding.wait_sources(dir) {
            let events = events.bits() as c_short;
            fds.push(pollfd { fd: source.as_raw_fd(), events, revents: 0 });
        }
    });
    let doorbells = fds.len();
    // The connection speaks up only when the daemon hangs up, and then for ever: rings that go
    // on without it do not listen.
    let mut served = Vec::new();
    for entry in entries.iter() {
        entry.each_netmap(&mut |netmap, entry| {
            if netmap.bound().is_some_and(Binding::is_served) {
                served.push(netmap.again());
                fds.push(pollfd { fd: entry.fd, events: 0, revents: 0 });
            }
        });
    }

    let heard = ppoll(&mut fds, timeout, mask)?;
    for (netmap, connection) in served.iter().zip(&fds[doorbells..]) {
        if connection.revents & (POLLHUP | POLLERR) != 0 {
            netmap.set_gone();
        }
    }
    take(entries, &fds);
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
