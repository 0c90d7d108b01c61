//! A packet socket: frames as a stack sends and gets them.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{SendFlags, send};

use crate::{FROM, Netns, sys};

/// Sends through an interface what is given to it, and hears what the stack receives by it.
pub struct PacketSocket {
    socket: OwnedFd,
    /// Whether it hears others than [`frame`](crate::frame)s.
    hears_all: bool,
}

/// A frame as the stack has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    /// The VLAN tag beside it: kind and value.
    pub tag: Option<(u16, u16)>,
    pub bytes: Vec<u8>,
}

impl PacketSocket {
    pub fn new(netns: &Netns, interface: &str) -> PacketSocket {
        PacketSocket { hears_all: false, ..PacketSocket::of_all(netns, interface) }
    }

    /// It hears frames from all addresses.
    pub fn of_all(netns: &Netns, interface: &str) -> PacketSocket {
        let ifindex = netns.ifindex(interface);
        let open = || sys::hearing(ifindex as i32);
        let socket = netns.enter(open);
        let socket = socket.unwrap_or_else(|e| panic!("{interface}: {e}"));
        PacketSocket { socket, hears_all: true }
    }

    pub fn send(&self, frame: &[u8]) {
        let sent = send(&self.socket, frame, SendFlags::empty());
        assert_eq!(sent, Ok(frame.len()));
    }

    /// The same, where the frame may find no room. Whether it was sent.
    pub fn try_send(&self, frame: &[u8]) -> bool {
        send(&self.socket, frame, SendFlags::empty()) == Ok(frame.len())
    }

    /// The next [`frame`](crate::frame) that the interface received; panics after half a minute, which
    /// only a bug takes.
    pub fn hear(&self) -> Heard {
        self.next(0).unwrap_or_else(|e| panic!("the stack hears nothing: {e}"))
    }

    /// The next frame, if one comes within that time.
    pub fn hear_within(&self, limit: Duration) -> Option<Heard> {
        let deadline = Instant::now() + limit;
        loop {
            if let Some(heard) = self.try_hear() {
                return Some(heard);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let left = Timespec::try_from(left).expect("a limit is short");
            let mut waiting = [PollFd::new(&self.socket, PollFlags::IN)];
            // Zero: the time is over.
            if poll(&mut waiting, Some(&left)).is_ok_and(|ready| ready == 0) {
                return None;
            }
        }
    }

    /// The next frame, if there is one already.
    pub fn try_hear(&self) -> Option<Heard> {
        self.next(libc::MSG_DONTWAIT).ok()
    }

    fn next(&self, flags: i32) -> io::Result<Heard> {
        loop {
            let (way, heard) = sys::receive(&self.socket, flags)?;
            let is_ours = self.hears_all || heard.bytes.get(6..12) == Some(&FROM[..]);
            if way != libc::PACKET_OUTGOING && is_ours {
                return Ok(heard);
            }
        }
    }
}
