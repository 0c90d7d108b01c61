//! What the distributor sleeps for.

use std::os::fd::BorrowedFd;

use ringway::{PortWaiter, Sleeper, Sources, Waiter};
use rustix::event::PollFlags;

/// Ports with packets, and descriptors with news.
pub struct News<'a> {
    pub ports: Vec<PortWaiter<'a>>,
    pub fds: &'a [BorrowedFd<'a>],
}

impl Waiter for News<'_> {
    fn look(&mut self) -> bool {
        self.ports[..].look()
    }

    fn arm(&mut self) -> bool {
        self.ports[..].arm()
    }

    fn pass_on(&mut self) {
        self.ports[..].pass_on();
    }
}

impl Sleeper for News<'_> {
    fn sources<'s>(&'s self, sources: &mut Sources<'s>) {
        self.ports[..].sources(sources);
        self.fds.iter().for_each(|fd| sources.add(*fd, PollFlags::IN));
    }
}
