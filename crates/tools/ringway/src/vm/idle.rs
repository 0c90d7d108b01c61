//! How a card sleeps: until the machine offers something, its port has something, or its monitor says something.

use super::link::{Awaited, Link};
use super::socket::Socket;
use ringway::{BusyPoll, Port, PortWaiter, Sleeper, Sources, Waiter};
use ringway_vhost::LostPages;
use rustix::event::PollFlags;
use std::os::fd::{AsFd, BorrowedFd};

/// A card that moves no frames, because its machine or its daemon is away: it waits for a monitor, and for what it has.
pub struct Away<'c> {
    pub socket: &'c Socket,
    /// What has connected, and said nothing yet.
    pub silent: Option<BorrowedFd<'c>>,
    /// While there is a daemon, which may end.
    pub port: Option<&'c Port>,
    /// While there is a monitor, which is answered.
    pub link: Option<&'c dyn Link>,
    /// Pages that a monitor has taken from its memory.
    pub lost_pages: Option<&'c LostPages>,
}

impl Waiter for Away<'_> {
    fn look(&mut self) -> bool {
        false
    }

    fn arm(&mut self) -> bool {
        false
    }

    fn pass_on(&mut self) {}
}

impl Sleeper for Away<'_> {
    fn sources<'s>(&'s self, sources: &mut Sources<'s>) {
        if let Some(daemon) = self.port.and_then(Port::daemon_fd) {
            sources.add_connection(daemon);
        }
        if let Some(link) = self.link {
            link.message_sources(sources);
        }
        let monitors = self.socket.listener().into_iter().chain(self.silent);
        let lost_pages = self.lost_pages.map(AsFd::as_fd);
        monitors.chain(lost_pages).for_each(|fd| sources.add(fd, PollFlags::IN));
    }
}

/// A card that waits for frames, or for room for them.
pub struct Idle<'c> {
    pub link: &'c mut dyn Link,
    /// Where other monitors may connect.
    pub socket: &'c Socket,
    /// What is waited for at the port: frames, room, both, or nothing.
    pub port: Result<PortWaiter<'c>, &'c Port>,
    pub awaited: Awaited,
    /// Readable when memory was taken away.
    pub lost_pages: &'c LostPages,
}

impl Waiter for Idle<'_> {
    fn look(&mut self) -> bool {
        self.port.as_mut().is_ok_and(|port| port.look()) || self.link.look(self.awaited)
    }

    fn arm(&mut self) -> bool {
        let drained = self.port.as_mut().is_ok_and(|port| port.arm());
        self.link.arm(self.awaited);
        drained
    }

    fn pass_on(&mut self) {
        if let Ok(port) = &mut self.port {
            port.pass_on();
        }
    }

    fn busy_poll(&self) -> Option<&BusyPoll> {
        self.port.as_ref().ok()?.busy_poll()
    }
}

impl Sleeper for Idle<'_> {
    fn sources<'s>(&'s self, sources: &mut Sources<'s>) {
        match &self.port {
            Ok(port) => port.sources(sources),
            Err(port) => port.daemon_fd().into_iter().for_each(|fd| sources.add_connection(fd)),
        }
        self.link.sources(self.awaited, sources);
        self.socket.listener().into_iter().for_each(|fd| sources.add(fd, PollFlags::IN));
        sources.add(self.lost_pages.as_fd(), PollFlags::IN);
    }
}
