//! Signals to the calling thread, again and again: a system call that a signal ends lasts no longer
//! than until the next.

use std::{marker::PhantomData, mem::zeroed, ptr::null_mut, sync::Once, time::Duration};

use super::signals::let_interrupt;

/// No other code sends it to a single thread.
const SIGNAL: libc::c_int = libc::SIGALRM;

/// Signals that the thread which made it gets until it is dropped, by the same thread.
pub struct Interrupts {
    timer: libc::timer_t,
    _of_this_thread: PhantomData<*mut ()>,
}

impl Interrupts {
    /// The first comes after `period`. `None` where the kernel has no timer to spare.
    pub fn every(period: Duration) -> Option<Interrupts> {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| let_interrupt(SIGNAL));
        let time = libc::timespec {
            tv_sec: period.as_secs() as libc::time_t,
            tv_nsec: period.subsec_nanos().into(),
        };
        let times = libc::itimerspec { it_interval: time, it_value: time };
        // SAFETY: all zeros are a valid sigevent.
        let mut event: libc::sigevent = unsafe { zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = SIGNAL;
        // SAFETY: the call takes nothing and cannot fail.
        event.sigev_notify_thread_id = unsafe { libc::gettid() };
        let mut timer = null_mut();
        // SAFETY: the call reads and writes locals, which outlive it. The signal goes to this thread, and
        // to no other that might get its number: the kernel holds on to the thread itself.
        if unsafe { libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer) } != 0 {
            return None;
        }
        // SAFETY: the timer made above, and a local that outlives the call; the old time is not asked
        // for.
        unsafe { libc::timer_settime(timer, 0, &times, null_mut()) };
        Some(Interrupts { timer, _of_this_thread: PhantomData })
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        // SAFETY: made by `every`, and deleted here alone, once.
        unsafe { libc::timer_delete(self.timer) };
    }
}
