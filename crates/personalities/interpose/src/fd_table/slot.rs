//! What one number stands for.

use std::ptr;

use super::{
    Content, Held, InUse, Object,
    atomic::{AtomicPtr, Ordering::*},
};

/// One number's place in the table.
pub struct Slot<T: 'static>(AtomicPtr<Object<T>>);

/// What a slot says.
pub enum Found<T: Content + 'static> {
    /// Nothing is known of the number.
    Unknown,
    /// It was looked at, and is nothing that anybody here knows.
    Foreign,
    /// An epoll set, which may have members of ours.
    Set,
    /// A descriptor of ours.
    Object(InUse<T>),
}

/// The marks: addresses at which no object is.
const FOREIGN: usize = 1;
const SET: usize = 2;

fn mark<T>(mark: usize) -> *mut Object<T> {
    ptr::without_provenance_mut(mark)
}

impl<T: Content> Slot<T> {
    /// Of which nothing is known.
    #[cfg(not(loom))]
    pub const fn new() -> Slot<T> {
        Slot(AtomicPtr::new(ptr::null_mut()))
    }

    /// Of which nothing is known.
    #[cfg(loom)]
    pub fn new() -> Slot<T> {
        Slot(AtomicPtr::new(ptr::null_mut()))
    }

    /// What it says. An object that is returned does not end before the result is dropped.
    #[inline]
    pub fn get(&self) -> Found<T> {
        let mut found = self.0.load(Acquire);
        loop {
            match found.addr() {
                0 => return Found::Unknown,
                FOREIGN => return Found::Foreign,
                SET => return Found::Set,
                _ => {}
            }
            // SAFETY: what is no mark is an object, and these are never freed.
            let object: &'static Object<T> = unsafe { &*found };
            let in_use = object.enter();
            // The thread that takes the object out of the slot does so before it gives up what the slot
            // had. If that was the last, our count came after it, and so this load sees the slot changed; if
            // our count came before, it was not the last.
            let now = self.0.load(Acquire);
            if now == found {
                return Found::Object(in_use);
            }
            found = now;
        }
    }

    /// What the object there has, without a use of it: it may end at once, and be another descriptor's.
    pub fn glance(&self) -> Option<&'static T> {
        let found = self.0.load(Acquire);
        if found.addr() <= SET {
            return None;
        }
        // SAFETY: what is no mark is an object, and these are never freed.
        let object: &'static Object<T> = unsafe { &*found };
        Some(object.content())
    }

    /// Whether the number is an epoll set's.
    #[inline]
    pub fn is_set(&self) -> bool {
        self.0.load(Relaxed).addr() == SET
    }

    /// Whether it says more than a mark does. Another thread may change that at once.
    #[inline]
    pub fn has_object(&self) -> bool {
        self.0.load(Relaxed).addr() > SET
    }

    /// Whether the number is foreign. Another thread may change that at once.
    #[inline]
    pub fn is_foreign(&self) -> bool {
        self.0.load(Relaxed).addr() == FOREIGN
    }

    /// Whether it says nothing that could end.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.0.load(Relaxed).addr() <= FOREIGN
    }

    /// The number is the object's from now on. Returns what the slot had of another.
    pub fn put(&self, object: Held<T>) -> Option<Held<T>> {
        self.swap(object.leave_in())
    }

    /// The number is an epoll set's from now on. Returns what the slot had of an object.
    pub fn put_set(&self) -> Option<Held<T>> {
        self.swap(mark(SET))
    }

    /// The number is foreign from now on. Returns what the slot had of an object.
    pub fn put_foreign(&self) -> Option<Held<T>> {
        self.swap(mark(FOREIGN))
    }

    /// Notes that the number is foreign, unless something is known by now.
    pub fn note_foreign(&self) {
        let _ = self.0.compare_exchange(ptr::null_mut(), mark(FOREIGN), AcqRel, Relaxed);
    }

    /// Nothing is known of the number any more. Returns what the slot had.
    #[inline]
    pub fn clear(&self) -> Option<Held<T>> {
        if self.0.load(Relaxed).is_null() {
            return None;
        }
        self.swap(ptr::null_mut())
    }

    /// The same, if `is_gone` says so of the number, and nothing else was put there since it was
    /// asked.
    pub fn clear_if(&self, is_gone: impl FnOnce() -> bool) -> Option<Held<T>> {
        let found = self.0.load(Acquire);
        if found.is_null() || !is_gone() {
            return None;
        }
        // An object that is found again is the same use of it: the slot's own keeps it from being
        // spare.
        let cleared = self.0.compare_exchange(found, ptr::null_mut(), AcqRel, Relaxed);
        cleared.ok().and_then(Self::use_of)
    }

    fn swap(&self, new: *mut Object<T>) -> Option<Held<T>> {
        Self::use_of(self.0.swap(new, AcqRel))
    }

    /// The slot's use of what was taken out of it: each was left there once, and is taken once.
    fn use_of(old: *mut Object<T>) -> Option<Held<T>> {
        if old.addr() <= SET {
            return None;
        }
        // SAFETY: what is no mark is an object, and these are never freed.
        let object: &'static Object<T> = unsafe { &*old };
        Some(object.resume())
    }
}

impl<T: Content> Default for Slot<T> {
    fn default() -> Slot<T> {
        Slot::new()
    }
}
