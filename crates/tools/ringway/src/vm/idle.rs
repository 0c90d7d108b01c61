//! How a card sleeps: until the machine offers something, its port has something, or its monitor says something.

use super::socket::Socket;
use ringway::{Port, PortWaiter, Sleeper, Sources, Waiter};
use ringway_vhost::{Connection, LostPages};
use rustix::event::PollFlags;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// A card whose machine is away: it waits for a monitor, or the end of the daemon.
pub struct Away<'c> {
    pub socket: &'c Socket,
    pub port: &'c Port,
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
        self.port.daemon_fd().into_iter().for_each(|fd| sources.add_connection(fd));
        self.socket.listener().into_iter().for_each(|fd| sources.add(fd, PollFlags::IN));
    }
}

/// A card that waits for frames, or for room for them.
pub struct Idle<'c> {
    pub connection: &'c mut Connection,
    /// What is waited for at the port: frames, room, both, or nothing.
    pub port: Result<PortWaiter<'c>, &'c Port>,
    /// Whether frames that the machine sends are waited for: there is room for them.
    pub frames: bool,
    /// Whether its buffers are: there is a frame for them.
    pub buffers: bool,
    pub kicks: Vec<Arc<OwnedFd>>,
    /// Readable when memory was taken away.
    pub lost_pages: &'c LostPages,
}

impl Waiter for Idle<'_> {
    fn look(&mut self) -> bool {
        self.port.as_mut().is_ok_and(|port| port.look())
            || self.frames && self.connection.offers(true)
            || self.buffers && self.connection.offers(false)
    }

    fn arm(&mut self) -> bool {
        let drained = self.port.as_mut().is_ok_and(|port| port.arm());
        self.kicks.clear();
        for to_send in [true, false] {
            if if to_send { self.frames } else { self.buffers } {
                self.connection.arm(to_send);
                self.kicks.extend(self.connection.kicks(to_send));
            }
        }
        drained
    }

    fn pass_on(&mut self) {
        if let Ok(port) = &mut self.port {
            port.pass_on();
        }
    }
}

impl Sleeper for Idle<'_> {
    fn sources<'s>(&'s self, sources: &mut Sources<'s>) {
        match &self.port {
            Ok(port) => port.sources(sources),
            Err(port) => port.daemon_fd().into_iter().for_each(|fd| sources.add_connection(fd)),
        }
        self.kicks.iter().for_each(|kick| sources.add(kick.as_fd(), PollFlags::IN));
        sources.add(self.connection.socket(), PollFlags::IN);
        sources.add(self.lost_pages.as_fd(), PollFlags::IN);
    }
}
