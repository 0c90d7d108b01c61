//! The descriptors of this process, by number.
//!
//! A [child of vfork](crate::vfork) in this memory changes none of what is known.

use std::{
    ffi::c_int,
    os::fd::{AsRawFd, BorrowedFd, RawFd},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use crate::{
    epoll_sets,
    fd_table::{self, Content, End, Found, Objects, Slot},
    numbers::SIZE,
    personality::{self, AfterClose, Descriptor, Personality, SocketOption},
    real_libc::keep_errno,
    vfork,
};

static SLOTS: [Slot<State>; SIZE] = [const { Slot::new() }; SIZE];
static OBJECTS: Objects<State> = Objects::new();

/// A personality's descriptor. Which personality's it is never changes.
pub struct State {
    personality: usize,
    descriptor: &'static dyn Descriptor,
    /// Another number in each life of it.
    life: AtomicU64,
}

/// Lives that have begun.
static LIVES: AtomicU64 = AtomicU64::new(0);

impl State {
    /// A number that only this open descriptor has, and all its copies.
    pub fn life(&self) -> u64 {
        self.life.load(Relaxed)
    }
}

impl Content for State {
    type Left = AfterClose;

    fn end(&self, unused: &End) -> Option<AfterClose> {
        keep_errno(|| self.descriptor.end(unused))
    }
}

/// A descriptor during a call: it does not end before the call does (S-LIFE-5).
pub type InUse = fd_table::InUse<State>;

/// A descriptor that a number or a mapping holds.
pub type Held = fd_table::Held<State>;

impl std::ops::Deref for State {
    type Target = dyn Descriptor;

    #[inline]
    fn deref(&self) -> &(dyn Descriptor + 'static) {
        self.descriptor
    }
}

/// What is known of a descriptor.
pub enum Known {
    Own(InUse),
    Foreign,
    /// Never seen: it may have been inherited or received.
    Unknown,
}

#[inline]
fn slot(fd: RawFd) -> Option<&'static Slot<State>> {
    SLOTS.get(fd as u32 as usize)
}

/// What `fd` is, as far as is known.
#[inline]
pub fn known(fd: RawFd) -> Known {
    match slot(fd).map(Slot::get) {
        Some(Found::Object(object)) => Known::Own(object),
        Some(Found::Unknown) => Known::Unknown,
        Some(Found::Foreign | Found::Set) | None => Known::Foreign,
    }
}

/// False for what is certainly no descriptor of ours that was ever seen: a glance, for what is called
/// often.
#[inline]
pub fn may_be_own(fd: RawFd) -> bool {
    slot(fd).is_some_and(Slot::has_object)
}

/// True for what was looked at, and is neither a descriptor of ours nor an epoll set: a glance.
#[inline]
pub fn is_foreign(fd: RawFd) -> bool {
    slot(fd).is_none_or(Slot::is_foreign)
}

/// The personality's descriptor `fd`; one that was never seen is looked at first.
#[inline]
pub fn get(fd: RawFd) -> Option<InUse> {
    match known(fd) {
        Known::Own(found) => Some(found),
        Known::Foreign => None,
        Known::Unknown => look(fd),
    }
}

#[cold]
fn look(fd: RawFd) -> Option<InUse> {
    let slot = slot(fd)?;
    if vfork::is_child() {
        return None;
    }
    // SAFETY: if the descriptor is not open, the calls on it fail, and that is the answer.
    let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
    keep_errno(|| {
        rustix::io::fcntl_getfd(borrowed).ok()?;
        let Some(index) = personality::all().iter().position(|p| p.recognises(borrowed)) else {
            slot.note_foreign();
            return None;
        };
        insert(borrowed, index, libc::O_RDWR);
        match known(fd) {
            Known::Own(found) => Some(found),
            _ => None,
        }
    })
}

/// Enters a new descriptor of a personality, which is given by its index. False if its number is
/// beyond the table.
pub fn insert(fd: BorrowedFd<'_>, personality: usize, flags: c_int) -> bool {
    let Some(slot) = slot(fd.as_raw_fd()) else { return false };
    let Some(owner) = personality::all().get(personality) else { return false };
    if vfork::is_child() {
        return true;
    }
    let object = OBJECTS.take(
        |state| state.personality == personality && state.descriptor.may_begin(),
        || State { personality, descriptor: owner.new_descriptor(), life: AtomicU64::new(0) },
        |state| {
            state.life.store(LIVES.fetch_add(1, Relaxed), Relaxed);
            state.descriptor.begin(flags);
        },
    );
    drop(slot.put(object));
    true
}

/// `copy` is another number for the same descriptor.
pub fn alias(original: &InUse, copy: RawFd) {
    if let Some(slot) = slot(copy).filter(|_| !vfork::is_child()) {
        drop(slot.put(original.hold()));
    }
}

/// A number of the open descriptor with that [life](State::life), if it has any.
#[cold]
pub fn number_of(life: u64) -> Option<RawFd> {
    let is_it = |slot: &Slot<State>| slot.glance().is_some_and(|state| state.life() == life);
    SLOTS.iter().position(is_it).map(|fd| fd as RawFd)
}

/// Notes that `fd` is an epoll set.
pub fn mark_set(fd: RawFd) {
    if let Some(slot) = slot(fd).filter(|_| !vfork::is_child()) {
        drop(slot.put_set());
    }
}

/// Whether `fd` is known as an epoll set.
#[inline]
pub fn is_set(fd: RawFd) -> bool {
    slot(fd).is_some_and(Slot::is_set)
}

/// The number stands for something that the kernel has just made for the program, and that is
/// nothing of ours.
pub fn mark_foreign(fd: RawFd) {
    if let Some(slot) = slot(fd).filter(|_| !vfork::is_child()) {
        drop(slot.put_foreign());
    }
}

/// The number is about to be closed, or to be something else: nothing is known of it. Returns what
/// the number held.
#[inline]
pub fn take(fd: RawFd) -> Option<Held> {
    let slot = slot(fd)?;
    if !slot.is_plain() && vfork::is_child() {
        return None;
    }
    slot.clear()
}

/// As [`take`]. The result is to be dropped when the number is closed.
pub fn forget(fd: RawFd) -> Option<AfterClose> {
    take(fd)?.leave()
}

/// In a child of `fork`: what only calls of its parent's other threads used ends.
pub fn forked() {
    OBJECTS.forked();
}

/// Numbers from `first` to `last` were closed, but for those that another thread has had of the
/// kernel since.
pub fn forget_closed(first: u32, last: u32) {
    if vfork::is_child() {
        return;
    }
    let last = last.min(SIZE as u32 - 1);
    for (slot, fd) in (first..=last).filter_map(|fd| Some((slot(fd as RawFd)?, fd as RawFd))) {
        // SAFETY: the call fails where the number is not open, and that is the answer.
        let number = unsafe { BorrowedFd::borrow_raw(fd) };
        let mut is_gone = epoll_sets::knows(fd) && rustix::io::fcntl_getfd(number).is_err();
        drop(slot.clear_if(|| {
            is_gone = rustix::io::fcntl_getfd(number).is_err();
            is_gone
        }));
        if is_gone {
            epoll_sets::closed(fd);
        }
    }
}

/// An option of `fd` is set, which is nothing of ours: a personality may take the number over.
#[cold]
pub fn adopt(fd: RawFd, option: SocketOption, value: u64, len: u32) -> Option<InUse> {
    let adopted = |p: &'static dyn Personality| p.adopts(fd, option, value, len).then_some(());
    let (personality, ()) = claim(adopted)?;
    // SAFETY: the number is open: the personality has just put something there. A thread of the program that
    // closes it meanwhile closes its own.
    let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
    insert(borrowed, personality, libc::O_RDWR);
    get(fd)
}

/// Calls `f` with the personality's descriptor that has the number `fd`, if it has one: it does not end during
/// the call.
pub fn with_descriptor<R>(fd: RawFd, f: impl FnOnce(&dyn Descriptor) -> R) -> Option<R> {
    get(fd).map(|own| f(own.descriptor))
}

/// The numbers of descriptors for whose end others wait.
pub fn closed_at_exit() -> impl Iterator<Item = RawFd> {
    let is_one = |fd| matches!(known(fd), Known::Own(found) if found.is_closed_at_exit());
    (0..SIZE as RawFd).filter(move |&fd| is_one(fd))
}

/// The personality that claims something, with what it made of it.
pub fn claim<T>(by: impl Fn(&'static dyn Personality) -> Option<T>) -> Option<(usize, T)> {
    let all = personality::all().iter().enumerate();
    let mut claims = all.map(|(index, personality)| Some((index, by(*personality)?)));
    keep_errno(|| claims.find_map(|claim| claim))
}
