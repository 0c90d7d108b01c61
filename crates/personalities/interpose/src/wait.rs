//! Waiting for descriptors of personalities and others together.
//!
//! The kernel's descriptor that stands for a personality's is never ready. So a wait looks at what the
//! personality has first; if there is nothing, it announces itself there, looks once more, and sleeps
//! in `ppoll` on what the personality names, in place of the descriptor.
//!
//! An epoll set with descriptors of ours in it is waited for as the kernel's set and as those
//! descriptors.

use std::{
    os::fd::RawFd,
    time::{Duration, Instant},
};

use libc::{POLLIN, POLLRDNORM, c_int, c_short, pollfd, sigset_t, timespec};
use ringway_kring::{BusyPoll, Waiter, prepare};
use smallvec::SmallVec;

use crate::{
    descriptors::{self, InUse},
    epoll_sets::{self, Listening},
    real_libc::{errno, real},
    uaccess,
};

/// So many descriptors are waited for without an allocation: as a handler of a signal may, which
/// has interrupted one.
pub const FEW: usize = 16;

/// Descriptors to wait for: beside these there may be a set of the kernel's, and [news](Listening).
pub type Entries = SmallVec<[Entry; FEW + 2]>;

type Polled = SmallVec<[pollfd; 2 * FEW]>;

/// How long a wait whose time is up goes on for an event that is
/// [about to come](crate::Descriptor::is_about_to).
const GRACE: Duration = Duration::from_secs(1);

/// A descriptor to wait for, with what came of it.
pub struct Entry {
    pub fd: RawFd,
    pub events: c_short,
    pub revents: c_short,
    pub what: What,
    /// For an edge-triggered member of an epoll set.
    pub edge: Option<Edge>,
    /// [Which](epoll_sets::Member) member of an epoll set it is.
    pub member: u64,
}

/// What a descriptor is.
pub enum What {
    /// The kernel's alone.
    Foreign,
    /// A personality's.
    Own(InUse),
    /// An epoll set with these members of ours, at any depth, beside the kernel's.
    Set(Vec<Entry>),
}

impl Entry {
    /// What the program calls `fd`, to be waited for until it has any of `events`.
    pub fn new(fd: RawFd, events: c_short) -> Entry {
        let what = match descriptors::get(fd) {
            Some(own) => What::Own(own),
            // It may get members of ours later.
            None if descriptors::is_set(fd) => What::Set(epoll_sets::entries(fd).into_vec()),
            None => What::Foreign,
        };
        Entry { fd, events, revents: 0, what, edge: None, member: 0 }
    }

    /// A descriptor for the kernel alone.
    pub fn foreign(fd: RawFd, events: c_short) -> Entry {
        Entry { fd, events, revents: 0, what: What::Foreign, edge: None, member: 0 }
    }

    /// Whether there is more to it than the kernel knows.
    #[inline]
    pub fn is_ours(fd: RawFd) -> bool {
        !descriptors::is_foreign(fd) && (descriptors::get(fd).is_some() || descriptors::is_set(fd))
    }

    /// Looks at what there is, for `revents`.
    fn look(&mut self) {
        let revents = match &mut self.what {
            What::Foreign => return,
            What::Own(own) => own.look(self.fd, self.events),
            What::Set(members) => {
                members.iter_mut().for_each(Entry::look);
                let ready = members.iter().any(|m| m.revents != 0);
                if ready { self.events & (POLLIN | POLLRDNORM) } else { 0 }
            }
        };
        self.revents = revents;
        if let Some(mut edge) = self.edge {
            self.revents = edge.news(revents, self.position());
            self.edge = Some(edge);
        }
    }

    /// Another number when what it is about has moved.
    fn position(&self) -> u64 {
        let mut position = 0;
        self.each_own(&mut |own, entry| {
            position = own.position(entry.events).wrapping_sub(position);
        });
        position
    }

    /// Calls `f` for each descriptor of ours in it.
    fn each_own<'a>(&'a self, f: &mut dyn FnMut(&'a InUse, &'a Entry)) {
        match &self.what {
            What::Foreign => {}
            What::Own(own) => f(own, self),
            What::Set(members) => members.iter().for_each(|m| m.each_own(f)),
        }
    }
}

/// What an edge-triggered member of a set was last reported for. There is news when an event
/// was not among that, or was gone in between, or when something has moved since.
#[derive(Clone, Copy, Debug, Default)]
pub struct Edge {
    reported: c_short,
    reported_at: u64,
    /// The position at the last look.
    position: u64,
    /// How often it was reported: another thread that waits for the set may be faster.
    pub reports: u32,
}

impl Edge {
    fn news(&mut self, revents: c_short, position: u64) -> c_short {
        let new = revents & !self.reported != 0 || position != self.reported_at;
        self.reported &= revents;
        self.position = position;
        if new { revents } else { 0 }
    }

    /// The program has been told of what the last look found.
    pub fn reported(&mut self, revents: c_short) {
        (self.reported, self.reported_at) = (revents, self.position);
        self.reports = self.reports.wrapping_add(1);
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

    /// This one, or another that comes after `time` at the latest.
    pub fn within(self, time: Duration) -> Deadline {
        let soon = Deadline::after(time);
        Deadline(self.0.map_or(soon.0, |at| soon.0.map(|soon| soon.min(at))))
    }

    /// Time left, `None` for ever.
    pub fn left(&self) -> Option<Duration> {
        self.0.map(|at| at.saturating_duration_since(Instant::now()))
    }
}

/// Waits until something is ready, the deadline is there, or a signal comes (Err(EINTR)).
/// Returns how many entries have `revents`. Sets are waited for as they are, and as they become.
pub fn wait(
    entries: &mut Entries,
    deadline: Deadline,
    mask: Option<*const sigset_t>,
) -> Result<usize, c_int> {
    if !entries.iter().any(|e| matches!(e.what, What::Set(_))) {
        return wait_for_these(entries, deadline, mask);
    }
    loop {
        let mut listening = Listening::begin(&mut epoll_sets::Sets::lock());
        let sets = entries.iter_mut().filter(|e| matches!(e.what, What::Set(_)));
        sets.for_each(|set| *set = Entry::new(set.fd, set.events));
        entries.push(listening.entry());
        let waited = wait_for_these(entries, deadline, mask);
        listening.heard(entries.pop());
        let ready = waited? - usize::from(listening.is_ready);
        if ready > 0 || deadline.is_over() {
            return Ok(ready);
        }
    }
}

impl Listening {
    /// What to wait for beside all else.
    pub fn entry(&self) -> Entry {
        Entry::foreign(self.fd.unwrap_or(-1), POLLIN)
    }

    /// The wait is over, and this came of the entry.
    pub fn heard(&mut self, entry: Option<Entry>) {
        self.is_ready = entry.is_some_and(|entry| entry.revents != 0);
    }
}

/// The same, where sets are what they are.
pub fn wait_for_these(
    entries: &mut [Entry],
    deadline: Deadline,
    mask: Option<*const sigset_t>,
) -> Result<usize, c_int> {
    if mask.is_some_and(|mask| !mask.is_null() && !uaccess::readable(mask, size_of::<u64>())) {
        return Err(libc::EFAULT);
    }
    let mut deadline = deadline;
    if deadline.is_over() {
        // Without a wait there is nothing to announce.
        if look(entries) > 0 {
            return merge(entries);
        }
        if is_about_to_come(entries) {
            deadline = Deadline::after(GRACE);
        } else if look(entries) > 0 {
            // It came between the look and the question.
            return merge(entries);
        }
    }
    loop {
        if deadline.is_over() {
            return last_look(entries, mask);
        }
        if prepare(&mut Awaited(entries)).is_ready() {
            return merge(entries);
        }
        let (woken, timed_out) = sleep(entries, deadline.left(), mask)?;
        // What has become ready here meanwhile counts too.
        let ready = look(entries);
        if woken > 0 || timed_out {
            return Ok(count(entries));
        }
        if ready > 0 {
            return merge(entries);
        }
    }
}

fn is_about_to_come(entries: &[Entry]) -> bool {
    let mut awaited = false;
    each_wait(entries, |own, entry| awaited |= own.is_about_to(entry.events));
    awaited
}

/// Looks at what there is of ours; returns how many entries are ready because of it.
fn look(entries: &mut [Entry]) -> usize {
    entries.iter_mut().for_each(Entry::look);
    entries.iter().filter(|e| !matches!(e.what, What::Foreign) && e.revents != 0).count()
}

/// What a wait is for, as a [`Waiter`].
struct Awaited<'e>(&'e mut [Entry]);

impl Waiter for Awaited<'_> {
    fn look(&mut self) -> bool {
        look(self.0) > 0
    }

    fn arm(&mut self) -> bool {
        let mut drained = false;
        each_wait(self.0, |own, entry| drained |= own.arm(entry.events));
        drained
    }

    fn pass_on(&mut self) {
        each_wait(self.0, |own, entry| own.disarm(entry.events));
    }

    fn busy_poll(&self) -> Option<&BusyPoll> {
        let mut first = None;
        each_wait(self.0, |own, _| first = first.or_else(|| own.busy_poll()));
        first
    }
}

/// Every descriptor of ours that is waited for.
fn each_wait<'a>(entries: &'a [Entry], mut f: impl FnMut(&'a InUse, &'a Entry)) {
    entries.iter().for_each(|entry| entry.each_own(&mut f));
}

fn count(entries: &[Entry]) -> usize {
    entries.iter().filter(|e| e.revents != 0).count()
}

/// Adds what the other descriptors have to say, without waiting. What is ready is not given up
/// for a signal, and with the mask that the program has anyway, none comes that would not.
fn merge(entries: &mut [Entry]) -> Result<usize, c_int> {
    if entries.iter().any(|e| !matches!(e.what, What::Own(_))) {
        let mut fds: Polled = entries.iter().map(foreign).collect();
        if ppoll(&mut fds, Some(Duration::ZERO), None).is_ok() {
            take(entries, &fds);
        }
    }
    Ok(count(entries))
}

/// Nothing of ours is ready, and time is up. A signal that the mask lets in counts even
/// then, unless another descriptor is ready.
fn last_look(entries: &mut [Entry], mask: Option<*const sigset_t>) -> Result<usize, c_int> {
    if mask.is_none_or(|mask| mask.is_null()) {
        return merge(entries);
    }
    let mut fds: Polled = entries.iter().map(foreign).collect();
    ppoll(&mut fds, Some(Duration::ZERO), mask)?;
    take(entries, &fds);
    Ok(count(entries))
}

/// The entry as the kernel is to see it: not at all, if it is ours.
fn foreign(entry: &Entry) -> pollfd {
    let fd = if matches!(entry.what, What::Own(_)) { -1 } else { entry.fd };
    pollfd { fd, events: entry.events, revents: 0 }
}

fn take(entries: &mut [Entry], fds: &[pollfd]) {
    for (entry, fd) in entries.iter_mut().zip(fds) {
        match entry.what {
            What::Own(_) => {}
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
    let mut fds: Polled = entries.iter().map(foreign).collect();
    let mut sources = SmallVec::<[_; FEW]>::new();
    each_wait(entries, |own, entry| {
        own.wait_sources(entry.fd, entry.events, &mut |fd, events| {
            fds.push(pollfd { fd, events, revents: 0 });
            sources.push((own, entry.fd));
        });
    });

    let heard = ppoll(&mut fds, timeout, mask)?;
    for ((own, fd), source) in sources.iter().zip(&fds[entries.len()..]) {
        if source.revents != 0 {
            own.woken(*fd, source.fd, source.revents);
        }
    }
    drop(sources);
    take(entries, &fds);
    let others = fds[..entries.len()].iter().filter(|fd| fd.revents != 0).count();
    Ok((others, heard == 0))
}

/// Sleeps in libc's `ppoll`, or in the next library's, which may have to answer for some of the descriptors.
///
/// As all waits of libc's, it is a point where a thread can be cancelled: what the callers hold is dropped then.
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
    let heard = real!(
        unwinding ppoll: fn(
            list => *mut pollfd,
            len => libc::nfds_t,
            timeout => *const timespec,
            mask => *const sigset_t,
        ) -> c_int
    );
    if heard < 0 { Err(errno()) } else { Ok(heard) }
}
