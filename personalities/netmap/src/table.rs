//! What each descriptor of this process is.
//!
//! The table is read on every call, without a lock. The objects it points to are never freed,
//! only used again, so that a reader that lost a race against `close` still reads an object;
//! [`get`] then notices that the table has changed.
//!
//! A [guest](guest) in this memory changes none of what is known.

use std::{
    os::fd::{AsRawFd, BorrowedFd, RawFd},
    ptr,
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicPtr, Ordering::SeqCst},
    },
};

use ringway::{Binding, CloseBarrier};

use crate::{guest, netmap_fd::NetmapFd, next::keep_errno};

/// Descriptors that can be netmap's.
const SIZE: usize = 1 << 16;

static TABLE: [AtomicPtr<NetmapFd>; SIZE] = [const { AtomicPtr::new(ptr::null_mut()) }; SIZE];

/// Objects for use: those that were let go.
static SPARE: Mutex<Vec<&'static NetmapFd>> = Mutex::new(Vec::new());

/// In the table: looked at, and not ours.
static FOREIGN: NetmapFd = NetmapFd::new();

/// In the table: an epoll set, which may have netmap descriptors in it.
static SET: NetmapFd = NetmapFd::new();

fn foreign() -> *mut NetmapFd {
    (&raw const FOREIGN).cast_mut()
}

fn set() -> *mut NetmapFd {
    (&raw const SET).cast_mut()
}

fn place(fd: RawFd) -> Option<&'static AtomicPtr<NetmapFd>> {
    usize::try_from(fd).ok().and_then(|fd| TABLE.get(fd))
}

/// Notes that `fd` is an epoll set.
pub fn mark_set(fd: RawFd) {
    if let Some(place) = place(fd).filter(|_| !guest::is_guest()) {
        drop_entry(place.swap(set(), SeqCst));
    }
}

/// Whether `fd` is known as an epoll set.
#[inline]
pub fn is_set(fd: RawFd) -> bool {
    place(fd).is_some_and(|place| place.load(SeqCst) == set())
}

/// What the table says of a descriptor.
pub enum Known {
    Netmap(InUse),
    Foreign,
    /// Never seen: it may have been inherited or received.
    Unknown,
}

/// A netmap descriptor during a call: it is not let go before the call ends (S-LIFE-5).
pub struct InUse(&'static NetmapFd);

impl InUse {
    /// The same descriptor, in use once more.
    pub fn again(&self) -> InUse {
        self.0.enter();
        InUse(self.0)
    }
}

impl std::ops::Deref for InUse {
    type Target = NetmapFd;

    fn deref(&self) -> &NetmapFd {
        self.0
    }
}

impl Drop for InUse {
    #[inline]
    fn drop(&mut self) {
        if self.0.leave() {
            keep_errno(|| drop(recycle(self.0)));
        }
    }
}

/// Keeps the spare objects as they are, for `fork`.
pub type Still = MutexGuard<'static, Vec<&'static NetmapFd>>;

/// While the result lives, nobody is in the middle of a change.
pub fn still() -> Still {
    SPARE.lock().unwrap_or_else(|e| e.into_inner())
}

/// Lets go of what nobody uses or refers to.
#[cold]
fn recycle(fd: &'static NetmapFd) -> Option<CloseBarrier> {
    let mut spare = SPARE.lock().unwrap_or_else(|e| e.into_inner());
    let retired = fd.retire();
    if retired.is_some() {
        spare.push(fd);
    }
    drop(spare);
    retired?.end()
}

/// What `fd` is, as far as is known.
#[inline]
pub fn get(fd: RawFd) -> Known {
    let Some(place) = place(fd) else { return Known::Foreign };
    loop {
        let found = place.load(SeqCst);
        if found == foreign() || found == set() {
            return Known::Foreign;
        }
        if found.is_null() {
            return Known::Unknown;
        }
        // SAFETY: pointers in the table are to objects that are never freed.
        let object: &'static NetmapFd = unsafe { &*found };
        object.enter();
        let in_use = InUse(object);
        if place.load(SeqCst) == found {
            return Known::Netmap(in_use);
        }
    }
}

/// The netmap descriptor `fd`; one that was never seen is looked at first.
#[inline]
pub fn netmap(fd: RawFd) -> Option<InUse> {
    match get(fd) {
        Known::Netmap(found) => Some(found),
        Known::Foreign => None,
        Known::Unknown => look(fd),
    }
}

#[cold]
fn look(fd: RawFd) -> Option<InUse> {
    if fd < 0 || fd as usize >= SIZE || guest::is_guest() {
        return None;
    }
    // SAFETY: if the descriptor is not open, the calls on it fail, and that is the answer.
    let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
    if rustix::io::fcntl_getfd(borrowed).is_err() {
        return None;
    }
    if !ringway_ipc::is_daemon(borrowed) {
        let place = &TABLE[fd as usize];
        let _ = place.compare_exchange(ptr::null_mut(), foreign(), SeqCst, SeqCst);
        return None;
    }
    insert(borrowed);
    match get(fd) {
        Known::Netmap(found) => Some(found),
        _ => None,
    }
}

/// The numbers of descriptors that keep traffic from others.
pub fn keepers() -> impl Iterator<Item = RawFd> {
    let keeps = |found: &InUse| found.bound().is_some_and(Binding::keeps_traffic);
    (0..SIZE as RawFd).filter(move |&fd| matches!(get(fd), Known::Netmap(found) if keeps(&found)))
}

/// Enters a new netmap descriptor. False if its number is beyond the table.
pub fn insert(fd: BorrowedFd<'_>) -> bool {
    let fd = fd.as_raw_fd();
    let Some(place) = TABLE.get(fd as usize) else { return false };
    if guest::is_guest() {
        return true;
    }
    let mut spare = SPARE.lock().unwrap_or_else(|e| e.into_inner());
    let object = spare.pop().unwrap_or_else(|| Box::leak(Box::new(NetmapFd::new())));
    object.begin();
    drop(spare);
    put(place, object);
    true
}

fn put(place: &AtomicPtr<NetmapFd>, object: &'static NetmapFd) {
    let old = place.swap(ptr::from_ref(object).cast_mut(), SeqCst);
    drop_entry(old);
}

/// `copy` is another number for the same descriptor.
pub fn alias(original: &InUse, copy: RawFd) {
    if let Some(place) = place(copy).filter(|_| !guest::is_guest()) {
        original.0.add_ref();
        put(place, original.0);
    }
}

/// The number is about to be closed, or to be something else: nothing is known of it. The result is
/// to be dropped when it is closed.
#[inline]
pub fn forget(fd: RawFd) -> Option<CloseBarrier> {
    let place = place(fd)?;
    let found = place.load(SeqCst);
    if found.is_null() || found != foreign() && guest::is_guest() {
        return None;
    }
    drop_entry(place.swap(ptr::null_mut(), SeqCst))
}

fn drop_entry(old: *mut NetmapFd) -> Option<CloseBarrier> {
    if old.is_null() || old == foreign() || old == set() {
        return None;
    }
    // SAFETY: pointers in the table are to objects that are never freed.
    let object: &'static NetmapFd = unsafe { &*old };
    object.enter();
    object.drop_ref();
    if object.leave() { recycle(object) } else { None }
}
