//! The end of the process: who waits for it finds the interfaces that it had with the stack
//! (S-LIFE-7), as he would if the kernel had them.
//!
//! A process that is killed, or calls `_exit`, ends without this: then the daemon gives the
//! interfaces back some moments later.

use std::{
    ffi::c_int,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

use ringway::CloseBarrier;

use crate::{map, next::next, table};

/// Whether the process has ever had such a port: most have not, and end without a look around.
static HAD_SOME: AtomicBool = AtomicBool::new(false);

/// A port was bound that keeps traffic from others.
pub fn keeps_traffic() {
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
    map::remove_all();
    let mut farewells: Vec<CloseBarrier> = Vec::new();
    for fd in table::keepers() {
        farewells.extend(table::forget(fd));
        next!(close: fn(fd => c_int) -> c_int);
    }
}
