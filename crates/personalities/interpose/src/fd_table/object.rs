//! What one open descriptor is, and how many use it.

use std::{marker::PhantomData, ops::Deref, ptr};

use super::{
    atomic::{AtomicPtr, AtomicU64, Ordering::*},
    nesting,
};

/// One call, in the lower half of the word, and one holder above it.
const CALL: u64 = 1;
const HOLDER: u64 = 1 << 32;
/// The states, in the upper bits of the word; below them are the counts. Without any of them the object is spare.
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

/// A call's use of an object, which does not end before this is dropped. It stays in the thread of the call.
pub struct InUse<T: Content + 'static>(&'static Object<T>, PhantomData<*const ()>);

/// What a number or a mapping has of an object, which does not end before this is dropped.
pub struct Held<T: Content + 'static>(&'static Object<T>);

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

    /// A spare object whose content `fits`, or a new one: held once, and live when `begin` has made
    /// it what it is to be.
    pub fn take(
        &self,
        fits: impl Fn(&T) -> bool,
        new: impl FnOnce() -> T,
        begin: impl FnOnce(&T),
    ) -> Held<T> {
        let object = self.spare(fits).unwrap_or_else(|| self.add(new()));
        begin(&object.content);
        // A reader that lost its race may be counted as well for a moment.
        object.word.fetch_add(LIVE - TAKEN + HOLDER, AcqRel);
        Held(object)
    }

    /// In a child of `fork`, while it has one thread: the calls of its parent's other threads are none of its own. An
    /// object that only those used ends.
    ///
    /// In a child that was forked in the middle of a call of this thread, by a handler, the calls stay: the thread's
    /// own goes on, and the objects do not know which it is. What others used there is let go when the child ends.
    #[cfg(not(loom))]
    pub fn forked(&self) {
        if nesting::count() > 0 {
            return;
        }
        let mut at = self.last.load(Acquire);
        // SAFETY: objects in the list are never freed.
        while let Some(object) = unsafe { at.as_ref::<'static>() } {
            let before = object.word.fetch_and(!(HOLDER - 1), AcqRel);
            if before & !(HOLDER - 1) == LIVE {
                drop(object.end());
            }
            at = object.before.load(Acquire);
        }
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
    /// Counts a call. The object may be spare, or another descriptor's by now, and then the caller
    /// must not look at the content: see [`Slot::get`](super::Slot::get).
    #[inline]
    pub(super) fn enter(&'static self) -> InUse<T> {
        nesting::begin();
        self.word.fetch_add(CALL, AcqRel);
        InUse(self, PhantomData)
    }

    /// Takes over what was [left](Held::leave_in) in a slot.
    pub(super) fn resume(&'static self) -> Held<T> {
        Held(self)
    }

    #[inline]
    fn leave(&self, count: u64) -> Option<T::Left> {
        if self.word.fetch_sub(count, AcqRel) == LIVE | count { self.end() } else { None }
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
    /// Holds the same object.
    pub fn hold(&self) -> Held<T> {
        self.0.word.fetch_add(HOLDER, AcqRel);
        Held(self.0)
    }
}

impl<T: Content> Held<T> {
    /// Lets go, and returns what is left to be done if nothing else has the object.
    #[inline]
    pub fn leave(self) -> Option<T::Left> {
        let object = self.0;
        std::mem::forget(self);
        object.leave(HOLDER)
    }

    /// It goes on in a slot.
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

impl<T: Content> Deref for Held<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0.content
    }
}

impl<T: Content> Drop for InUse<T> {
    #[inline]
    fn drop(&mut self) {
        drop(self.0.leave(CALL));
        nesting::end();
    }
}

impl<T: Content> Drop for Held<T> {
    #[inline]
    fn drop(&mut self) {
        drop(self.0.leave(HOLDER));
    }
}
