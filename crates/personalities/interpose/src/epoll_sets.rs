//! The epoll sets of this process that have descriptors of personalities in them, or sets in turn.
//!
//! These descriptors are kept here and not in the kernel's set. A set that is put into
//! another is in the kernel's set as well, for its other members.
//!
//! A handler of a signal may close descriptors, change sets and wait for them, while the code that it
//! has interrupted changes sets, or allocates. So no handler begins in a thread that holds the lock; few
//! sets with few members take no memory that is allocated; a number that is [closed] is noted only, and
//! leaves the sets when these are locked for the next time; and numbers that are in no set are known
//! without the lock.
//!
//! A set may change while other threads wait for it, and then they wait for what it is from then on. Those
//! that wait for members of ours sleep on [news] as well; those that sleep in the kernel, which has all
//! other members, are [called](asleep) out of there.

mod asleep;
mod news;

use std::{
    ffi::c_int,
    sync::atomic::{
        AtomicBool,
        Ordering::{AcqRel, Release},
    },
};

use smallvec::SmallVec;

pub use self::asleep::{Asleep, data as call_data};
use self::{asleep::Call, news::News};
use crate::{
    descriptors,
    numbers::Numbers,
    signals::{Lock, Locked},
    vfork,
    wait::{Edge, Entries, Entry, FEW, What},
};

/// Sets within sets, at most: the kernel allows fewer.
const DEEPEST: usize = 8;

/// A member of a set. As for the kernel, it is an open descriptor with the number that it was added by,
/// and goes with the last number of the descriptor.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// A number of the descriptor's.
    pub fd: c_int,
    /// The number that it was added by.
    pub added_as: c_int,
    /// Which descriptor of ours it is; `None`: a set.
    pub life: Option<u64>,
    /// Another number for each member that a process has had.
    pub id: u64,
    pub events: u32,
    pub data: u64,
    /// With `EPOLLET`: what was reported last.
    pub edge: Option<Edge>,
    /// False after the only event of a member with `EPOLLONESHOT`.
    pub armed: bool,
}

/// So many sets there are without an allocation.
const FEW_SETS: usize = 8;
/// So many copies a set has.
const FEW_COPIES: usize = 4;

/// A set: its members, and how often it was waited for.
#[derive(Debug, Default)]
pub struct Set {
    /// The descriptors that it has.
    numbers: SmallVec<[c_int; FEW_COPIES]>,
    pub members: SmallVec<[Member; FEW]>,
    pub waits: usize,
    /// While threads are to leave the kernel's wait for it.
    call: Option<Call>,
}

/// A process has few sets: those with descriptors of ours in them, and their copies.
struct State {
    sets: SmallVec<[Set; FEW_SETS]>,
    news: News,
}

static STATE: Lock<State> = Lock::new(State { sets: SmallVec::new_const(), news: News::new() });
/// Numbers of sets and of members, and those that this file has of the kernel.
static KNOWN: Numbers = Numbers::new();
/// Those of them that were closed since the sets were locked last.
static CLOSED: Numbers = Numbers::new();
/// Whether there are any.
static ANY_CLOSED: AtomicBool = AtomicBool::new(false);

/// The sets, locked.
pub struct Sets {
    state: Locked<State>,
}

impl Sets {
    pub fn lock() -> Sets {
        let mut sets = Sets { state: STATE.lock() };
        if ANY_CLOSED.swap(false, AcqRel) {
            CLOSED.each().for_each(|fd| sets.remove(fd));
        }
        sets
    }

    /// The set behind a descriptor, if it ever had members of ours.
    pub fn get(&mut self, epfd: c_int) -> Option<&mut Set> {
        self.state.sets.iter_mut().find(|set| set.numbers.contains(&epfd))
    }

    /// The set behind a descriptor.
    pub fn get_or_new(&mut self, epfd: c_int) -> &mut Set {
        let all = &mut self.state.sets;
        let known = all.iter().position(|set| set.numbers.contains(&epfd));
        let at = known.unwrap_or_else(|| {
            KNOWN.insert(epfd);
            all.push(Set { numbers: SmallVec::from_iter([epfd]), ..Set::default() });
            all.len() - 1
        });
        &mut all[at]
    }

    fn members(&mut self, epfd: c_int) -> SmallVec<[Member; FEW]> {
        self.get(epfd).map(|set| set.members.clone()).unwrap_or_default()
    }

    /// There is more to wait for: the threads that wait for the set are to know.
    pub fn changed(&mut self, epfd: c_int) {
        self.state.news.ring();
        self.call(epfd, DEEPEST);
    }

    /// Calls those that sleep in the kernel for the set, or for another that has the set in it.
    fn call(&mut self, epfd: c_int, depth: usize) {
        let Some(at) = self.state.sets.iter().position(|set| set.numbers.contains(&epfd)) else {
            return;
        };
        let set = &mut self.state.sets[at];
        if set.call.is_none() && asleep::are_there(&set.numbers) {
            set.call = set.numbers.iter().find_map(|number| Call::new(*number));
            if let Some(call) = &set.call {
                KNOWN.insert(call.number());
            }
        }
        if depth == 0 {
            return;
        }
        let numbers = self.state.sets[at].numbers.clone();
        for outer in 0..self.state.sets.len() {
            let outer = &self.state.sets[outer];
            if outer.members.iter().any(|m| numbers.contains(&m.fd)) {
                let number = outer.numbers.first().copied();
                number.into_iter().for_each(|number| self.call(number, depth - 1));
            }
        }
    }

    /// A thread sleeps for the set no longer: the last of them ends the call.
    fn end_call(&mut self, epfd: c_int) {
        if let Some(set) = self.get(epfd)
            && !asleep::are_there(&set.numbers)
        {
            set.end_call();
        }
    }

    /// Threads were called that do not come: they have left the kernel's wait by a jump.
    #[cold]
    pub fn call_no_longer(&mut self, epfd: c_int) {
        if let Some(set) = self.get(epfd) {
            set.numbers.iter().for_each(|number| asleep::forget(*number));
            set.end_call();
        }
    }

    /// In a child of `fork`, which has no threads that wait; what would wake its parent's is not its own.
    pub fn forked(&mut self) {
        self.state.news = News::new();
        self.state.sets.iter_mut().for_each(|set| set.call = None);
    }

    /// A number leaves all sets, and a member or a set goes with the last of its own.
    #[cold]
    fn remove(&mut self, fd: c_int) {
        CLOSED.remove(fd);
        KNOWN.remove(fd);
        let State { sets, news } = &mut *self.state;
        news.closed(fd);
        let of_set = sets.iter().find(|set| set.numbers.contains(&fd));
        let copy = of_set.and_then(|set| set.numbers.iter().copied().find(|other| *other != fd));
        sets.retain(|set| {
            if let Some(call) = set.call.take_if(|call| call.number() == fd) {
                call.closed();
            }
            set.members.retain(|m| {
                if m.life.is_none() && m.added_as == fd {
                    m.added_as = -1;
                }
                if m.fd != fd {
                    return true;
                }
                let other = m.life.map_or(copy, descriptors::number_of);
                if let Some(other) = other {
                    KNOWN.insert(other);
                    m.fd = other;
                }
                other.is_some()
            });
            set.numbers.retain(|number| *number != fd);
            !set.numbers.is_empty()
        });
    }
}

impl Set {
    /// A new member.
    pub fn add(&mut self, member: Member) {
        KNOWN.insert(member.fd);
        self.members.push(member);
    }

    fn end_call(&mut self) {
        if let (Some(call), Some(number)) = (self.call.take(), self.numbers.first()) {
            KNOWN.remove(call.number());
            call.end(*number);
        }
    }
}

/// A wait that is to end when a set changes.
pub struct Listening {
    /// What it sleeps on. `None`: there was no descriptor left for it.
    pub fd: Option<c_int>,
    /// Whether it was found ready.
    pub is_ready: bool,
}

impl Listening {
    /// What the sets are after this call is what they are until there is news.
    pub fn begin(sets: &mut Sets) -> Listening {
        Listening { fd: sets.state.news.begin(), is_ready: false }
    }

    /// The same as dropping it.
    pub fn end(mut self, sets: &mut Sets) {
        if let Some(fd) = self.fd.take() {
            sets.state.news.end(fd, self.is_ready);
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        if let Some(fd) = self.fd.take() {
            Sets::lock().state.news.end(fd, self.is_ready);
        }
    }
}

/// Whether it matters that a number is [`closed`].
#[inline]
pub fn knows(fd: c_int) -> bool {
    KNOWN.has(fd)
}

/// A number is closed: it leaves all sets, and a member or a set goes with the last of its own. The table of
/// descriptors says so already.
#[inline]
pub fn closed(fd: c_int) {
    if knows(fd) && !vfork::is_child() {
        CLOSED.insert(fd);
        ANY_CLOSED.store(true, Release);
    }
}

/// `copy` is another number for the set `original`, which may get members of ours later.
pub fn copied(original: c_int, copy: c_int) {
    if vfork::is_child() {
        return;
    }
    let mut sets = Sets::lock();
    KNOWN.insert(copy);
    sets.get_or_new(original).numbers.push(copy);
}

/// What to wait for on behalf of a set that has descriptors of ours in it, at any depth;
/// nothing for others.
#[inline]
pub fn entries(epfd: c_int) -> Entries {
    if descriptors::is_set(epfd) && KNOWN.has(epfd) {
        within(epfd, DEEPEST)
    } else {
        Entries::new()
    }
}

/// The same, as it is until there is news.
pub fn entries_until(epfd: c_int) -> (Listening, Entries) {
    let mut sets = Sets::lock();
    let listening = Listening::begin(&mut sets);
    let members = sets.members(epfd);
    drop(sets);
    (listening, of_members(&members, DEEPEST))
}

#[inline(never)]
fn within(epfd: c_int, depth: usize) -> Entries {
    if depth == 0 {
        return Entries::new();
    }
    let members = Sets::lock().members(epfd);
    of_members(&members, depth)
}

fn of_members(members: &[Member], depth: usize) -> Entries {
    members.iter().filter(|m| m.armed).filter_map(|m| entry(m, depth)).collect()
}

fn entry(member: &Member, depth: usize) -> Option<Entry> {
    let what = match member.life {
        Some(life) => What::Own(descriptors::get(member.fd).filter(|own| own.life() == life)?),
        None => match within(member.fd, depth - 1) {
            inner if inner.is_empty() => return None,
            inner => What::Set(inner.into_vec()),
        },
    };
    // The bits of epoll and poll are the same for what is reported here.
    let events = member.events as libc::c_short;
    Some(Entry { fd: member.fd, events, revents: 0, what, edge: member.edge, member: member.id })
}
