//! What one open descriptor is, and how many use it.

use std::{ops::Deref, ptr};

use super::atomic::{AtomicPtr, AtomicU64, Ordering::*};

/// The states, in the upper bits of the word; below them is the number of users. Without any of
/// them the object is spare.
const TAKEN: u64 = 1 << 61;
const LIVE: u64 = 1 << 62;
const ENDING: u64 = 1 << 63;
const STATES: u64 = TAKEN | LIVE | ENDING;

/// See [the module](super). `T` is the same for as long as the object exists.
pub struct Object<T: 'static> {
    word: AtomicU64,
    /// The object that was made before this one.
    before: AtomicPtr<Object<T>>,
    content: T,
}

/// All objects that there are, spare or not: a list that only grows.
pub struct Objects<T: 'static> {
    last: AtomicPtr<Object<T>>,
}

/// Says that nothing uses the content that it is given to, and that nothing will before the call returns.
#[derive(Debug)]
pub struct End(());

/// What an object holds has a beginning and an end, many times.
pub trait Content {
    /// What is left to be done when the last number is closed.
    type Left;

    /// The last user has gone. It is called once in each life, and no user comes before it returns.
    fn end(&self, unused: &End) -> Option<Self::Left>;
}

/// One use of an object: it does not end before this is dropped.
pub struct InUse<T: Content + 'static>(&'static Object<T>);

impl<T: Content> Objects<T> {
    /// Without any.
    #[cfg(not(loom))]
    pub const fn new() -> Objects<T> {
        Objects { last: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Without any.
    #[cfg(loom)]
    pub fn new() -> Objects<T> {
        Objects { last: AtomicPtr::new(ptr::null_mut()) }
    }

    /// A spare object whose content `fits`, or a new one: used once, and live when `begin` has made
    /// it what it is to be.
    pub fn take(
        &self,
        fits: impl Fn(&T) -> bool,
        new: impl FnOnce() -> T,
        begin: impl FnOnce(&T),
    ) -> InUse<T> {
        let object = self.spare(fits).unwrap_or_else(|| self.add(new()));
        begin(&object.content);
        // A reader that lost its race may be counted as well for a moment.
        object.word.fetch_add(LIVE - TAKEN + 1, AcqRel);
        InUse(object)
    }

    fn spare(&self, fits: impl Fn(&T) -> bool) -> Option<&'static Object<T>> {
        let mut at = self.last.load(Acquire);
        // SAFETY: objects in the list are never freed.
        while let Some(object) = unsafe { at.as_ref::<'static>() } {
            if object.is_spare() && fits(&object.content) && object.claim() {
                return Some(object);
            }
            at = object.before.load(Acquire);
        }
        None
    }

    fn add(&self, content: T) -> &'static Object<T> {
        let word = AtomicU64::new(TAKEN);
        let object = Object { word, before: AtomicPtr::new(ptr::null_mut()), content };
        let object: &'static Object<T> = Box::leak(Box::new(object));
        let mut last = self.last.load(Relaxed);
        loop {
            object.before.store(last, Relaxed);
            let new = ptr::from_ref(object).cast_mut();
            match self.last.compare_exchange(last, new, AcqRel, Acquire) {
                Ok(_) => return object,
                Err(other) => last = other,
            }
        }
    }
}

impl<T: Content> Default for Objects<T> {
    fn default() -> Objects<T> {
        Objects::new()
    }
}

impl<T> Object<T> {
    pub(super) fn content(&self) -> &T {
        &self.content
    }

    fn is_spare(&self) -> bool {
        self.word.load(Relaxed) & STATES == 0
    }

    /// Takes a spare object. False: another thread was faster.
    fn claim(&self) -> bool {
        let spare = |word: u64| (word & STATES == 0).then_some(word | TAKEN);
        self.word.fetch_update(AcqRel, Relaxed, spare).is_ok()
    }
}

impl<T: Content> Object<T> {
    /// Counts a user. The object may be spare, or another descriptor's by now, and then the caller
    /// must not look at the content: see [`Slot::get`](super::Slot::get).
    #[inline]
    pub(super) fn enter(&'static self) -> InUse<T> {
        self.word.fetch_add(1, AcqRel);
        InUse(self)
    }

    /// Takes over a use that was [left](InUse::leave_in) in a slot.
    pub(super) fn resume(&'static self) -> InUse<T> {
        InUse(self)
    }

    #[inline]
    fn leave(&self) -> Option<T::Left> {
        if self.word.fetch_sub(1, AcqRel) == LIVE | 1 { self.end() } else { None }
    }

    /// The last user has gone, unless a reader that lost its race is counted just now: then that one
    /// finds itself the last.
    #[cold]
    fn end(&self) -> Option<T::Left> {
        self.word.compare_exchange(LIVE, ENDING, AcqRel, Relaxed).ok()?;
        let left = self.content.end(&End(()));
        self.word.fetch_and(!ENDING, AcqRel);
        left
    }
}

impl<T: Content> InUse<T> {
    /// One use more of the same object.
    pub fn again(&self) -> InUse<T> {
        self.0.enter()
    }

    /// Ends the use, and returns what is left to be done if it was the last.
    #[inline]
    pub fn leave(self) -> Option<T::Left> {
        let object = self.0;
        std::mem::forget(self);
        object.leave()
    }

    /// The use goes on in a slot.
    pub(super) fn leave_in(self) -> *mut Object<T> {
        let object = ptr::from_ref(self.0).cast_mut();
        std::mem::forget(self);
        object
    }
}

impl<T: Content> Deref for InUse<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0.content
    }
}

impl<T: Content> Drop for InUse<T> {
    #[inline]
    fn drop(&mut self) {
        drop(self.0.leave());
    }
}
