//! A lock that can be kept shut: while the program unmaps memory, nothing looks at it, and if the kernel
//! refuses, all goes on as before.

use std::{
    ops::{Deref, DerefMut},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
};

/// See the file's description.
pub struct Pausable<T> {
    inner: Mutex<Inner<T>>,
    resumed: Condvar,
}

struct Inner<T> {
    content: T,
    /// Those that keep it shut.
    pauses: u32,
}

/// The content, for one thread.
pub struct Opened<'a, T>(MutexGuard<'a, Inner<T>>);

impl<T> Pausable<T> {
    pub fn new(content: T) -> Pausable<T> {
        let inner = Mutex::new(Inner { content, pauses: 0 });
        Pausable { inner, resumed: Condvar::new() }
    }

    fn inner(&self) -> MutexGuard<'_, Inner<T>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until it is open, and no other thread has it.
    pub fn lock(&self) -> Opened<'_, T> {
        let mut inner = self.inner();
        while inner.pauses > 0 {
            inner = self.resumed.wait(inner).unwrap_or_else(PoisonError::into_inner);
        }
        Opened(inner)
    }

    /// `None`: it would have to wait.
    pub fn try_lock(&self) -> Option<Opened<'_, T>> {
        let inner = self.inner.try_lock().ok().filter(|inner| inner.pauses == 0)?;
        Some(Opened(inner))
    }

    /// When this returns, no thread has it, and none gets it before [`resume`](Self::resume).
    pub fn pause(&self) {
        self.inner().pauses += 1;
    }

    /// Ends a pause, after `last` has changed the content.
    pub fn resume(&self, last: impl FnOnce(&mut T)) {
        let mut inner = self.inner();
        last(&mut inner.content);
        inner.pauses -= 1;
        drop(inner);
        self.resumed.notify_all();
    }
}

impl<T> Deref for Opened<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0.content
    }
}

impl<T> DerefMut for Opened<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0.content
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_paused_waits_for_the_last_to_resume_it() {
        let number = Pausable::new(0);
        number.pause();
        number.pause();
        assert!(number.try_lock().is_none());
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| *number.lock());
            number.resume(|number| *number = 1);
            assert!(number.try_lock().is_none());
            number.resume(|number| *number += 1);
            assert_eq!(waiting.join().unwrap(), 2);
        });
        *number.lock() = 3;
        assert_eq!(number.try_lock().map(|number| *number), Some(3));
    }
}
