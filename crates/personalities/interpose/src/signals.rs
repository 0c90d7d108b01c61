//! Signals wait while a lock is held that a handler may ask for.

use std::{
    ops::{Deref, DerefMut},
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::raw::{Number, syscall};

/// Bit of a signal in the kernel's masks.
const fn bit(signal: libc::c_int) -> u64 {
    1 << (signal - 1)
}

/// All but those that an instruction of the thread itself causes: were these blocked, the kernel would
/// end the process, and no handler would say why.
const ALL: u64 = !(bit(libc::SIGSEGV)
    | bit(libc::SIGBUS)
    | bit(libc::SIGILL)
    | bit(libc::SIGFPE)
    | bit(libc::SIGTRAP));

/// No handler of a signal begins in this thread, until it is dropped. The mask is the thread's own:
/// it stays on the thread that made it.
pub struct Blocked {
    /// The mask to go back to.
    before: u64,
    _of_this_thread: std::marker::PhantomData<*const ()>,
}

impl Blocked {
    #[inline]
    pub fn new() -> Blocked {
        let mut before = 0;
        set_mask(&ALL, &mut before);
        Blocked { before, _of_this_thread: std::marker::PhantomData }
    }
}

impl Drop for Blocked {
    #[inline]
    fn drop(&mut self) {
        set_mask(&self.before, &mut 0);
    }
}

/// A lock that a handler of a signal may ask for, also by a `fork`.
pub struct Lock<T>(Mutex<T>);

/// What the lock guards, for one thread. Several are dropped in the reverse of the order in which they were
/// taken: each brings back the mask that it has found.
pub struct Locked<T: 'static> {
    // The lock goes before the signals come.
    content: MutexGuard<'static, T>,
    _signals: Blocked,
}

impl<T> Lock<T> {
    pub const fn new(content: T) -> Lock<T> {
        Lock(Mutex::new(content))
    }

    /// Waits until no other thread has it.
    pub fn lock(&'static self) -> Locked<T> {
        let signals = Blocked::new();
        let content = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Locked { content, _signals: signals }
    }
}

impl<T> Deref for Locked<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.content
    }
}

impl<T> DerefMut for Locked<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.content
    }
}

/// Sets the thread's mask; the one that it had is `before` then.
#[inline]
pub fn set_mask(mask: &u64, before: &mut u64) {
    let (mask, before) = (std::ptr::from_ref(mask) as usize, std::ptr::from_mut(before) as usize);
    let arguments = [libc::SIG_SETMASK as usize, mask, before, size_of::<u64>(), 0, 0];
    // SAFETY: two words of ours, one to be read and one to be written.
    unsafe { syscall(Number::RT_SIGPROCMASK, arguments) };
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    use super::*;

    static HANDLED: AtomicU32 = AtomicU32::new(0);

    extern "C" fn count(_: libc::c_int) {
        HANDLED.fetch_add(1, Relaxed);
    }

    #[test]
    fn handlers_wait() {
        // SAFETY: the handler is a function of the type that there is to be, and counts only.
        unsafe { libc::signal(libc::SIGUSR1, count as *const () as libc::sighandler_t) };
        // SAFETY: to this thread.
        let raise = || unsafe { libc::raise(libc::SIGUSR1) };
        let outer = Blocked::new();
        let inner = Blocked::new();
        raise();
        drop(inner);
        assert_eq!(HANDLED.load(Relaxed), 0, "the outer one is there yet");
        drop(outer);
        assert_eq!(HANDLED.load(Relaxed), 1);
        raise();
        assert_eq!(HANDLED.load(Relaxed), 2);
    }
}
