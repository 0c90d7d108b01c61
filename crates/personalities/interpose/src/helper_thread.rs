//! A thread of a personality's own in the program's process: for what goes on while the program makes no call.
//!
//! It takes no signals, which are the program's: but for the two by which libc itself reaches all threads, to
//! change the user or to cancel one. A child of `fork` does not have it.

use std::ffi::c_void;

use crate::{
    raw::{Number, syscall},
    signals::set_mask,
};

/// What the thread is to do.
type Body = Box<dyn FnOnce() + Send>;

/// SIGCANCEL and SIGSETXID of libc's: a signal's bit is one below its number.
const OF_LIBC: u64 = 1 << 31 | 1 << 32;

/// Nanoseconds: the least that the scheduler takes.
const SLICE: u64 = 100_000;

/// Starts a thread that runs `body`, and that nothing waits for.
///
/// # Errors
/// Those of `pthread_create(3)`.
pub fn helper_thread(body: impl FnOnce() + Send + 'static) -> Result<(), i32> {
    let body: Box<Body> = Box::new(Box::new(body));
    let blocked = !OF_LIBC;
    let mut before = 0u64;
    // The new thread has the mask of the one that makes it.
    set_mask(&blocked, &mut before);
    let made = create(body);
    set_mask(&before, &mut 0);
    made
}

fn create(body: Box<Body>) -> Result<(), i32> {
    let argument = Box::into_raw(body);
    let mut thread = 0;
    // SAFETY: the thread takes the argument over, unless there is none.
    unsafe {
        let error = libc::pthread_create(&mut thread, std::ptr::null(), run, argument.cast());
        if error != 0 {
            drop(Box::from_raw(argument));
            return Err(error);
        }
        libc::pthread_detach(thread);
    }
    Ok(())
}

extern "C" fn run(argument: *mut c_void) -> *mut c_void {
    // SAFETY: what `create` has given this thread, and no other.
    let body = unsafe { Box::from_raw(argument.cast::<Body>()) };
    ask_for_short_slices();
    body();
    std::ptr::null_mut()
}

/// Has the scheduler give the thread its CPU sooner, and for a shorter time: as of Linux 6.12, one that wakes with a
/// shorter slice goes before one that runs. Its share of the CPU stays the same. Elsewhere nothing changes.
fn ask_for_short_slices() {
    const SIZE: usize = size_of::<libc::sched_attr>();
    let mut attributes = libc::sched_attr {
        size: 0,
        sched_policy: 0,
        sched_flags: 0,
        sched_nice: 0,
        sched_priority: 0,
        sched_runtime: 0,
        sched_deadline: 0,
        sched_period: 0,
    };
    let place = std::ptr::from_mut(&mut attributes) as usize;
    // SAFETY: a structure of ours of the size that is given, to be written.
    let known = unsafe { syscall(Number::SCHED_GETATTR, [0, place, SIZE, 0, 0, 0]) };
    if known == 0 && attributes.sched_policy == libc::SCHED_OTHER as u32 {
        attributes.sched_runtime = SLICE;
        let place = std::ptr::from_ref(&attributes) as usize;
        // SAFETY: the same, to be read.
        unsafe { syscall(Number::SCHED_SETATTR, [0, place, 0, 0, 0, 0]) };
    }
}
