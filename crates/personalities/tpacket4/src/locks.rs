//! Locks that a child of `fork` may have from a thread that it has not.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether any thread has it.
pub fn is_locked<T>(mutex: &Mutex<T>) -> bool {
    matches!(mutex.try_lock(), Err(TryLockError::WouldBlock))
}
