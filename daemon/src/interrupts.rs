//! Signals to the calling thread, again and again: a system call that a signal ends lasts no longer
//! than until the next.
#![allow(unsafe_code)]

use std::{marker::PhantomData, mem::zeroed, ptr::null_mut, sync::Once, time::Duration};

/// Nobody else sends it to a single thread.
const SIGNAL: libc::c_int = libc::SIGALRM;

/// Signals that the thread which made it gets until it is dropped, by the same thread.
pub struct Interrupts {
    timer: libc::timer_t,
    _of_this_thread: PhantomData<*mut ()>,
}

impl Interrupts {
    /// The first comes after `period`. `None` where the kernel has no timer to spare.
    pub fn every(period: Duration) -> Option<Interrupts> {
        heed();
        let time = libc::timespec {
            tv_sec: period.as_secs() as libc::time_t,
            tv_nsec: period.subsec_nanos().into(),
        };
        let times = libc::itimerspec { it_interval: time, it_value: time };
        let mut timer = null_mut();
        // SAFETY: all zeros are a valid sigevent. The calls read and write locals, which outlive
        // them; the thread lives as long as the timer, which `drop` deletes.
        unsafe {
            let mut event: libc::sigevent = zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = SIGNAL;
            event.sigev_notify_thread_id = libc::gettid();
            if libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer) != 0 {
                return None;
            }
            libc::timer_settime(timer, 0, &times, null_mut());
        }
        Some(Interrupts { timer, _of_this_thread: PhantomData })
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        // SAFETY: made by `every`, and deleted nowhere else.
        unsafe { libc::timer_delete(self.timer) };
    }
}

/// From now on the signal interrupts, and does nothing else.
fn heed() {
    static ONCE: Once = Once::new();
    extern "C" fn nothing(_: libc::c_int) {}
    ONCE.call_once(|| {
        // SAFETY: all zeros are a valid sigaction, without flags: what it interrupts is not begun
        // anew. The handler touches nothing.
        unsafe {
            let mut action: libc::sigaction = zeroed();
            action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as libc::sighandler_t;
            libc::sigaction(SIGNAL, &action, null_mut());
        }
    });
}
