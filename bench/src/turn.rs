//! The loop of a role that moves packets.
//!
//! A role that finds nothing to do waits. On network interfaces, where the peers' waits are calls of the kernel's,
//! each lets others have its CPU and looks again, and waits when it has looked often enough.

use std::os::fd::AsFd;
use std::time::Duration;
use std::{io, thread};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::roles::Orders;

/// Looks of a role that finds nothing, before it sleeps: together some ten microseconds, about
/// what it takes to fall asleep and to be woken.
pub const LOOKS: u32 = 100;

/// Longest sleep: the orders are looked at in between.
pub const NAP: Duration = Duration::from_millis(20);

/// Repeats `batch`, which moves one batch and returns how many packets it counts, as the parent
/// orders, and tells it their sum. When it has found nothing to move `most` times it calls `wait`,
/// which is to sleep until there is, for [`NAP`] at most.
pub fn turn<T>(
    mut ends: T,
    most: u32,
    mut batch: impl FnMut(&mut T) -> u64,
    mut wait: impl FnMut(&mut T) -> io::Result<()>,
) -> io::Result<()> {
    let mut failure = Ok(());
    let mut looks = 0;
    let orders = Orders::ready()?;
    let count = orders.count(|| {
        let moved = batch(&mut ends);
        if moved != 0 {
            looks = 0;
        } else if looks < most {
            looks += 1;
            thread::yield_now();
        } else if let Err(error) = wait(&mut ends) {
            failure = Err(error);
        }
        moved
    });
    failure?;
    Orders::report(&count)
}

/// Sleeps until `fd` is ready, for a nap at most; false if it is not.
pub fn sleep(fd: impl AsFd, readiness: PollFlags) -> io::Result<bool> {
    let nap = Timespec::try_from(NAP).map_err(io::Error::other)?;
    Ok(poll(&mut [PollFd::new(&fd, readiness)], Some(&nap))? > 0)
}
