//! The epoll sets of this process that have descriptors of personalities in them, or sets in turn.
//!
//! These descriptors are kept here and not in the kernel's set. A set that is put into
//! another is in the kernel's set as well, for its other members.

use std::{
    collections::HashMap,
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
    pub members: Vec<Member>,
    pub waits: usize,
}

/// Sets by number, and the numbers that each has.
#[derive(Debug, Default)]
struct Index {
    numbers: HashMap<c_int, u64>,
    sets: HashMap<u64, Set>,
    last: u64,
}

static INDEX: Mutex<Option<Index>> = Mutex::new(None);
/// Numbers in the index: with none, there is nothing to look up.
static NUMBERS: AtomicUsize = AtomicUsize::new(0);

/// The sets, locked.
pub struct Sets(MutexGuard<'static, Option<Index>>);

impl Sets {
    pub fn lock() -> Sets {
        Sets(INDEX.lock().unwrap_or_else(|e| e.into_inner()))
    }

    /// The set behind a descriptor, if it ever had members of ours.
    pub fn get(&mut self, epfd: c_int) -> Option<&mut Set> {
        let index = self.0.as_mut()?;
        index.sets.get_mut(index.numbers.get(&epfd)?)
    }

    /// The set behind a descriptor.
    pub fn get_or_new(&mut self, epfd: c_int) -> &mut Set {
        let index = self.0.get_or_insert_default();
        let id = *index.numbers.entry(epfd).or_insert_with(|| {
            index.last += 1;
            index.last
        });
        index.sets.entry(id).or_default()
    }
}

impl Drop for Sets {
    fn drop(&mut self) {
        NUMBERS.store(self.0.as_ref().map_or(0, |index| index.numbers.len()), Relaxed);
    }
}

/// Whether there may be anything in the index.
#[inline]
fn any() -> bool {
    NUMBERS.load(Relaxed) != 0
}

/// A descriptor is closed: it leaves all sets, and a set goes with the last of its own.
pub fn closed(fd: c_int) {
    if !any() || vfork::is_child() {
        return;
    }
    let mut sets = Sets::lock();
    let Some(index) = sets.0.as_mut() else { return };
    if let Some(id) = index.numbers.remove(&fd)
        && !index.numbers.values().any(|other| *other == id)
    {
        index.sets.remove(&id);
    }
    index.sets.values_mut().for_each(|set| set.members.retain(|m| m.fd != fd));
}

/// `copy` is another number for the set `original`, which may get members of ours later.
pub fn copied(original: c_int, copy: c_int) {
    if vfork::is_child() {
        return;
    }
    let mut sets = Sets::lock();
    sets.get_or_new(original);
    let Some(index) = sets.0.as_mut() else { return };
    if let Some(&id) = index.numbers.get(&original) {
        index.numbers.insert(copy, id);
    }
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
