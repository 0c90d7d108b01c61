//! What a socket is bound to.

use std::{
    os::fd::{AsRawFd, RawFd},
    sync::Arc,
    time::Duration,
};

use ringway::{BoundRing, Port, PortKind};
use ringway_abi::Dir;
use ringway_kring::{BusyPoll, Sources};
use rustix::event::PollFlags;

use crate::stack::Stack;

/// How long the mover, the thread that receives, sleeps between two looks while packets come fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rests {
    /// Not at all. On a pipe the sender sends no wake-up to a receiver that runs, and waits while the ring is full; a
    /// socket of the kernel delivers blocks of many packets.
    Never,
    /// On an interface: until a part of its ring, which has so many slots, is filled.
    ByRoom(u32),
    /// On a switch: for as long as it has run.
    ByShare,
}

/// One direction of what a socket is bound to.
pub enum Device {
    /// Rings of a port, which are the socket's alone.
    Port(Box<Port>),
    /// An interface, which the socket shares with the stack.
    Stack(Arc<Stack>),
}

impl Device {
    /// Packets that were lost so far because nothing took them.
    pub fn lost(&self) -> u64 {
        match self {
            Device::Port(port) => {
                let no_room = |bound: &BoundRing| bound.lost()[0];
                port.binding().rings(Dir::Rx).iter().map(no_room).fold(0, u64::wrapping_add)
            }
            Device::Stack(stack) => stack.lost(),
        }
    }

    pub fn rests(&self) -> Rests {
        match self {
            Device::Port(port) => match port.kind() {
                PortKind::Nic => {
                    let slots = |bound: &BoundRing| bound.kring().ring().num_slots();
                    let rings = port.binding().rings(Dir::Rx);
                    Rests::ByRoom(rings.iter().map(slots).min().unwrap_or(0))
                }
                PortKind::Vale => Rests::ByShare,
                _ => Rests::Never,
            },
            Device::Stack(_) => Rests::Never,
        }
    }

    /// Whether nothing will move any more: the interface has gone, or the daemon.
    pub fn has_gone(&self, dir: Dir) -> bool {
        match self {
            Device::Port(port) => port.binding().fails(dir),
            Device::Stack(stack) => stack.has_gone(),
        }
    }

    /// Announces a wait. True if there was something before.
    pub fn arm(&self, dir: Dir) -> bool {
        match self {
            Device::Port(port) => port.binding().arm(dir),
            Device::Stack(_) => false,
        }
    }

    /// The announced wait does not come to be.
    pub fn disarm(&self, dir: Dir) {
        if let Device::Port(port) = self {
            port.binding().disarm(dir);
        }
    }

    /// What decides whether a wait begins with looking for a moment.
    pub fn busy_poll(&self) -> Option<&BusyPoll> {
        match self {
            Device::Port(port) => port.binding().busy_poll(),
            Device::Stack(_) => None,
        }
    }

    /// How long a wait lasts that nothing may end: for room, or for an interface that is down to come up or to go.
    pub fn rest(&self, dir: Dir) -> Option<Duration> {
        const ROOM: Duration = Duration::from_micros(50);
        match self {
            Device::Stack(_) if dir == Dir::Tx => Some(ROOM),
            Device::Stack(stack) => stack.link().longest_wait(),
            Device::Port(_) => None,
        }
    }

    /// What ends a sleep of a thread of ours.
    pub fn add_sources<'s>(&'s self, dir: Dir, sources: &mut Sources<'s>) {
        match self {
            Device::Port(port) => {
                if let Some(connection) = port.daemon_fd() {
                    sources.add_connection(connection);
                }
                port.binding().wait_sources(dir).for_each(|(fd, events)| sources.add(fd, events));
            }
            Device::Stack(stack) if dir == Dir::Rx => sources.add(stack.socket(), PollFlags::IN),
            // The socket has room where the interface has none.
            Device::Stack(_) => {}
        }
    }

    /// What ends a poll of the program's that waits for room.
    pub fn poll_sources(&self, add: &mut dyn FnMut(RawFd, i16)) {
        match self {
            Device::Port(port) => {
                for (fd, events) in port.binding().wait_sources(Dir::Tx) {
                    add(fd.as_raw_fd(), events.bits() as i16);
                }
                if let Some(connection) = port.daemon_fd() {
                    add(connection.as_raw_fd(), 0);
                }
            }
            Device::Stack(stack) => add(stack.socket().as_raw_fd(), libc::POLLOUT),
        }
    }

    /// Whether others wait for it to be closed, when the process ends.
    pub fn keeps_traffic(&self) -> bool {
        matches!(self, Device::Port(port) if port.binding().keeps_traffic())
    }
}
