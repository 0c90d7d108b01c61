//! The end of the process: a program that waits for it finds the interfaces that it had with the
//! stack (S-LIFE-7), as it would if the kernel had them.
//!
//! A process that is killed, or calls `_exit`, ends without this: then the daemon gives the
//! interfaces back some moments later.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::{descriptors, mappings, personality::AfterClose};

/// Whether the process has ever had such a descriptor: most have not, and end without a look around.
static HAD_SOME: AtomicBool = AtomicBool::new(false);

/// There is a descriptor that [is closed at exit](crate::Descriptor::is_closed_at_exit).
pub fn close_at_exit() {
    HAD_SOME.store(true, Relaxed);
}

/// Runs when the program and its own libraries have said what they had to say.
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = {
    extern "C" fn at_exit() {
        if HAD_SOME.load(Relaxed) {
            close_all();
        }
    }
    at_exit
};

fn close_all() {
    mappings::remove_all();
    let mut after: Vec<AfterClose> = Vec::new();
    for fd in descriptors::closed_at_exit() {
        // Other threads still run. One that closes the number at this moment has taken it, and closes it.
        let Some(own) = descriptors::take(fd) else { continue };
        after.extend(own.leave());
        // SAFETY: the number's use was taken here, so it is closed here alone: the program has come to its
        // end, and a thread that goes on with the number gets EBADF.
        unsafe { rustix::io::close(fd) };
    }
}
