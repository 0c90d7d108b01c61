//! What one thread uses for long, and others borrow for a moment.

use std::{
    ops::{Deref, DerefMut},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{
            AtomicU32,
            Ordering::{Acquire, Relaxed, Release},
        },
    },
    thread,
    time::{Duration, Instant},
};

/// How long the user waits for a borrower: longer than it takes to open a port again.
const PATIENCE: Duration = Duration::from_secs(2);

/// What belongs to the thread that reads. Neither it nor a borrower ever waits for a read of another thread; a read waits for
/// borrowers.
#[derive(Debug, Default)]
pub struct Lent<T> {
    lock: Mutex<T>,
    /// Those that have it, or try to.
    borrowers: AtomicU32,
}

impl<T> Lent<T> {
    /// Nobody has it.
    pub fn new(value: T) -> Lent<T> {
        Lent { lock: Mutex::new(value), borrowers: AtomicU32::new(0) }
    }

    /// For a read. `None` while another has it.
    #[inline]
    pub fn take(&self) -> Option<MutexGuard<'_, T>> {
        match self.lock.try_lock() {
            Ok(taken) => Some(taken),
            Err(_) => self.given_back(),
        }
    }

    /// A borrower gives it back soon. A handler of a signal that has interrupted the borrower, and reads, would wait in
    /// vain.
    #[cold]
    #[inline(never)]
    fn given_back(&self) -> Option<MutexGuard<'_, T>> {
        let until = Instant::now() + PATIENCE;
        let is_borrowed = || self.borrowers.load(Acquire) > 0;
        loop {
            let was_borrowed = is_borrowed();
            match self.lock.try_lock() {
                Ok(taken) => return Some(taken),
                Err(_) if (was_borrowed || is_borrowed()) && Instant::now() < until => {
                    thread::yield_now();
                }
                Err(_) => return None,
            }
        }
    }

    /// For another call, and a moment. `None` while a read has it.
    pub fn borrow(&self) -> Option<Borrowed<'_, T>> {
        self.borrowers.fetch_add(1, Relaxed);
        let borrowing = Borrowing(&self.borrowers);
        Some(Borrowed { value: self.lock.try_lock().ok()?, _borrowing: borrowing })
    }

    /// No other thread has it.
    pub fn get_mut(&mut self) -> &mut T {
        self.lock.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The lock alone.
impl<T> Deref for Lent<T> {
    type Target = Mutex<T>;

    #[inline]
    fn deref(&self) -> &Mutex<T> {
        &self.lock
    }
}

/// What a borrower has.
#[derive(Debug)]
pub struct Borrowed<'l, T> {
    value: MutexGuard<'l, T>,
    /// Behind the guard: it is given back when the lock is.
    _borrowing: Borrowing<'l>,
}

impl<T> Deref for Borrowed<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Borrowed<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

#[derive(Debug)]
struct Borrowing<'l>(&'l AtomicU32);

impl Drop for Borrowing<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Release);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn a_read_waits_for_a_borrower_and_for_no_other_read() {
        let lent = Lent::new(0);
        let taken = lent.take().unwrap();
        assert!(lent.take().is_none() && lent.borrow().is_none());
        drop(taken);
        let mut borrowed = lent.borrow().unwrap();
        let begin = Barrier::new(2);
        thread::scope(|scope| {
            let read = scope.spawn(|| {
                begin.wait();
                lent.take().map(|value| *value)
            });
            begin.wait();
            *borrowed = 1;
            drop(borrowed);
            assert_eq!(read.join().unwrap(), Some(1));
        });
    }
}
