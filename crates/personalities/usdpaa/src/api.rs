//! USDPAA's functions. Each takes its arguments as they come, does what the managers can, and gives the result that
//! USDPAA gives: 0, or a negative number of an error.

mod buffers;
mod clock;
mod dma;
mod enqueue;
mod fman;
mod groups;
mod ids;
mod mac;
mod netcfg;
mod of;
mod options;
mod poll;
mod portals;
mod query;
mod queues;

use std::ffi::c_int;

use ringway_qbman::Error;

/// 0, or the number of an error.
fn result(result: Result<(), c_int>) -> c_int {
    result.err().unwrap_or(0)
}

/// What the queue manager refuses is said in one way.
fn refused(_: Error) -> c_int {
    -libc::EIO
}
