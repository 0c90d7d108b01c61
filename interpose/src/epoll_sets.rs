//! The epoll sets of this process that have descriptors of personalities in them, or sets in turn.
//!
//! These descriptors are kept here and not in the kernel's set. A set that is put into
//! another is in the kernel's set as well, for its other members.

use std::{
    ffi::c_int,
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use crate::{
    descriptors, vfork,
    wait::{Edge, Entry, What},
};

/// Sets within sets, at most: the kernel allows fewer.
const DEEPEST: usize = 8;

/// A member of a set.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    pub fd: c_int,
    pub events: u32,
    pub data: u64,
    /// With `EPOLLET`: what was reported last.
    pub edge: Option<Edge>,
    /// False after the only event of a member with `EPOLLONESHOT`.
    pub armed: bool,
}

/// A set: its members, and how often it was waited for.
#[derive(Debug, Default)]
pub struct Set {
    /// The descriptors that it has.
    numbers: Vec<c_int>,
    pub members: Vec<Member>,
    pub waits: usize,
}

/// A process has few of them: those with descriptors of ours in them, and their copies.
static SETS: Mutex<Vec<Set>> = Mutex::new(Vec::new());
/// How many sets there are: with none, there is nothing to look up.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// The sets, locked.
pub struct Sets(MutexGuard<'static, Vec<Set>>);

impl Sets {
    pub fn lock() -> Sets {
        Sets(SETS.lock().unwrap_or_else(|e| e.into_inner()))
    }

    /// The set behind a descriptor, if it ever had members of ours.
    pub fn get(&mut self, epfd: c_int) -> Option<&mut Set> {
        self.0.iter_mut().find(|set| set.numbers.contains(&epfd))
    }

    /// The set behind a descriptor.
    pub fn get_or_new(&mut self, epfd: c_int) -> &mut Set {
        let known = self.0.iter().position(|set| set.numbers.contains(&epfd));
        let at = known.unwrap_or_else(|| {
            self.0.push(Set { numbers: vec![epfd], ..Set::default() });
            self.0.len() - 1
        });
        &mut self.0[at]
    }
}

impl Drop for Sets {
    fn drop(&mut self) {
        COUNT.store(self.0.len(), Relaxed);
    }
}

/// Whether there may be any set.
#[inline]
fn any() -> bool {
    COUNT.load(Relaxed) != 0
}

/// A descriptor is closed: it leaves all sets, and a set goes with the last of its own.
pub fn closed(fd: c_int) {
    if !any() || vfork::is_child() {
        return;
    }
    let mut sets = Sets::lock();
    sets.0.retain_mut(|set| {
        set.members.retain(|m| m.fd != fd);
        set.numbers.retain(|&number| number != fd);
        !set.numbers.is_empty()
    });
}

/// `copy` is another number for the set `original`, which may get members of ours later.
pub fn copied(original: c_int, copy: c_int) {
    if vfork::is_child() {
        return;
    }
    Sets::lock().get_or_new(original).numbers.push(copy);
}

/// What to wait for on behalf of a set that has descriptors of ours in it, at any depth;
/// nothing for others.
#[inline]
pub fn entries(epfd: c_int) -> Vec<Entry> {
    if any() && descriptors::is_set(epfd) { within(epfd, DEEPEST) } else { Vec::new() }
}

/// Whether [`entries`] may find something.
#[inline]
pub fn has_members(epfd: c_int) -> bool {
    descriptors::is_set(epfd) && !entries(epfd).is_empty()
}

#[inline(never)]
fn within(epfd: c_int, depth: usize) -> Vec<Entry> {
    if depth == 0 {
        return Vec::new();
    }
    let members = Sets::lock().get(epfd).map(|set| set.members.clone()).unwrap_or_default();
    members.iter().filter(|m| m.armed).filter_map(|m| entry(m, depth)).collect()
}

fn entry(member: &Member, depth: usize) -> Option<Entry> {
    let what = match descriptors::get(member.fd) {
        Some(own) => What::Own(own),
        None => match within(member.fd, depth - 1) {
            inner if inner.is_empty() => return None,
            inner => What::Set(inner),
        },
    };
    // The bits of epoll and poll are the same for what is reported here.
    let events = member.events as libc::c_short;
    Some(Entry { fd: member.fd, events, revents: 0, what, edge: member.edge })
}
