//! A switch has taken everything when a sync returns (S-VALE-5). Here its worker is in the
//! daemon, so a sync waits for it: awake for as long as that pays, then asleep. Not so in a
//! [stream](crate::stream).

use std::{
    os::fd::RawFd,
    time::{Duration, Instant},
};

use ringway::Binding;
use ringway_abi::Dir;
use ringway_kring::{BusyPoll, Prepared, Sleeper, Sources, Waiter, Woken, prepare};

use crate::{netmap_fd::NetmapFd, sys};

/// How long a daemon that does not get on is waited for.
const PATIENCE: Duration = Duration::from_secs(1);

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
    let stream = (dir == Dir::Tx).then_some(&netmap.stream);
    // Also a sync that finds nothing to wait for is one of a stream.
    let may_go_on = stream.is_some_and(|stream| stream.may_go_on(binding));
    if !may_go_on && is_behind(binding, dir) && !netmap.is_gone() {
        wait(netmap, fd, binding, dir);
        if let Some(stream) = stream {
            stream.waited();
        }
    }
    if dir == Dir::Tx && binding.rings(dir).iter().any(|ring| ring.has_news()) {
        binding.sync(dir);
    }
}

fn wait(netmap: &NetmapFd, fd: RawFd, binding: &Binding, dir: Dir) {
    let deadline = Instant::now() + PATIENCE;
    let mut behind = Behind { fd, binding, dir, busy_poll: &netmap.busy_poll };
    while let Prepared::Armed(armed) = prepare(&mut behind) {
        match armed.sleep(Some(deadline)) {
            // Or a signal: a sync is not interrupted.
            Ok(Woken::Notified) => {}
            Ok(Woken::HungUp) => return netmap.set_gone(),
            Ok(Woken::TimedOut) | Err(_) => return,
        }
    }
}

/// Waits until the worker is not behind.
struct Behind<'b> {
    fd: RawFd,
    binding: &'b Binding,
    dir: Dir,
    busy_poll: &'b BusyPoll,
}

impl Waiter for Behind<'_> {
    fn look(&mut self) -> bool {
        !is_behind(self.binding, self.dir)
    }

    fn arm(&mut self) -> bool {
        self.binding.arm(self.dir)
    }

    fn pass_on(&mut self) {
        self.binding.disarm(self.dir);
    }

    fn busy_poll(&self) -> Option<&BusyPoll> {
        Some(self.busy_poll)
    }
}

impl Sleeper for Behind<'_> {
    fn sources<'s>(&'s self, sources: &mut Sources<'s>) {
        // If another thread of the program closes it meanwhile, the number is watched all the same, as by a
        // poll of the program's own, and no more.
        sources.add_connection(sys::of_program(&self.fd));
        self.binding.wait_sources(self.dir).for_each(|(fd, events)| sources.add(fd, events));
    }
}
