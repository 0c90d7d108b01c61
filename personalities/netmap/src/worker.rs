//! A switch has taken everything when a sync returns (S-VALE-5). Here its worker is in the
//! daemon, so that who syncs waits for it: awake for as long as it mostly takes, then asleep.
#![allow(unsafe_code)]

use std::{
    os::fd::{BorrowedFd, RawFd},
    time::{Duration, Instant},
};

use ringway::Binding;
use ringway_abi::Dir;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::netmap_fd::NetmapFd;

/// How long a daemon that does not get on is waited for.
const PATIENCE: Duration = Duration::from_secs(1);

/// Looks before sleeping: they take as long as a sleep costs, some 10 us, and a worker that is
/// awake needs less.
const LOOKS: u32 = 400;

/// Whether the worker has yet to take some of what was sent, or, for monitors, released.
#[inline]
pub fn is_behind(binding: &Binding, dir: Dir) -> bool {
    binding.is_served() && binding.rings(dir).iter().any(|ring| ring.is_behind())
}

/// After a sync of the rings of a direction: waits until the worker has taken everything, and
/// tells the program of the room that it made meanwhile, be it between the sync and the question.
#[inline]
pub fn catch_up(netmap: &NetmapFd, fd: RawFd, binding: &Binding, dir: Dir) {
    if !binding.is_served() {
        return;
    }
    if is_behind(binding, dir) && !netmap.is_gone() {
        wait(netmap, fd, binding, dir);
    }
    if dir == Dir::Tx && binding.rings(dir).iter().any(|ring| ring.has_news()) {
        binding.sync(dir);
    }
}

fn wait(netmap: &NetmapFd, fd: RawFd, binding: &Binding, dir: Dir) {
    for _ in 0..LOOKS {
        if !is_behind(binding, dir) {
            return;
        }
        std::hint::spin_loop();
    }
    let deadline = Instant::now() + PATIENCE;
    loop {
        let drained = binding.arm(dir);
        if !is_behind(binding, dir) {
            if drained {
                binding.disarm(dir);
            }
            return;
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || !sleep(netmap, fd, binding, dir, left) {
            return;
        }
    }
}

/// Sleeps until a doorbell is rung, or a signal comes: a sync is not interrupted. False if the
/// daemon has gone.
fn sleep(netmap: &NetmapFd, fd: RawFd, binding: &Binding, dir: Dir, time: Duration) -> bool {
    // SAFETY: the descriptor is open: the program is in a call on it.
    let connection = unsafe { BorrowedFd::borrow_raw(fd) };
    let doorbells = binding
        .wait_sources(dir)
        .map(|(doorbell, events)| PollFd::from_borrowed_fd(doorbell, events));
    let connection = PollFd::from_borrowed_fd(connection, PollFlags::empty());
    let mut fds: Vec<_> = [connection].into_iter().chain(doorbells).collect();
    let _ = poll(&mut fds, Timespec::try_from(time).ok().as_ref());
    if fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR) {
        netmap.set_gone();
        return false;
    }
    true
}
