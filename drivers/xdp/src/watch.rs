//! Noticing that an interface goes away while it is in use.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recv, socket_with};

use crate::rtnl::{self, Message};
use crate::{Error, Interface};

/// `RTMGRP_LINK`: news of all links of a network namespace.
const LINKS: u32 = 1;

/// Messages read in one look; the rest is for the next.
const MESSAGES: usize = 64;

/// Tells when an interface has gone from its network namespace: deleted, or moved to another one,
/// which for sockets and programs that it had is the same.
///
/// It holds the namespace, and is readable ([`AsFd`]) when there may be news.
#[derive(Debug)]
pub struct LinkWatch {
    socket: OwnedFd,
    index: u32,
    gone: bool,
}

impl LinkWatch {
    /// For an interface of the calling thread's network namespace. Whether it is still there is news
    /// as well: one that goes before it is watched is not missed. Needs no privilege.
    pub fn open(interface: &Interface) -> Result<LinkWatch, Error> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        // Protocol 0, hence `None`, is NETLINK_ROUTE.
        let open = || -> io::Result<LinkWatch> {
            let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
            bind(&socket, &SocketAddrNetlink::new(0, LINKS))?;
            let watch = LinkWatch { socket, index: interface.index, gone: false };
            watch.ask()?;
            Ok(watch)
        };
        open().map_err(Error::refused(
            &interface.name,
            "it cannot be watched",
            "raise the limit of open files",
        ))
    }

    /// Whether the interface has gone, as far as the kernel has told. Never waits.
    pub fn is_gone(&mut self) -> bool {
        let mut message = vec![0u8; 32 << 10];
        for _ in 0..MESSAGES {
            match recv(&self.socket, &mut message[..], RecvFlags::empty()) {
                Ok((length, _)) => self.gone |= tells_end(&message[..length], self.index),
                // There was no room for all that happened: ask what has come of it. Where even that
                // fails, the next news of this interface is lost, and no more.
                Err(Errno::NOBUFS) => drop(self.ask()),
                Err(Errno::INTR) => {}
                Err(_) => break,
            }
        }
        self.gone
    }

    /// Asks the kernel for the interface: the answer comes among the news.
    fn ask(&self) -> io::Result<()> {
        Message::new(libc::RTM_GETLINK, 0, self.index).send_on(self.socket.as_fd())
    }
}

impl AsFd for LinkWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Whether a datagram of the kernel says that link `index` has gone. The only answer of ours among
/// the news is that to [`LinkWatch::ask`].
fn tells_end(datagram: &[u8], index: u32) -> bool {
    rtnl::messages(datagram).any(|(kind, body)| {
        let word = |at| Some(i32::from_ne_bytes(body.get(at..at + 4)?.try_into().ok()?));
        match kind {
            libc::RTM_DELLINK => {
                // Of another family it tells that the link is no port of a kernel bridge any more.
                body.first() == Some(&(libc::AF_UNSPEC as u8)) && word(4) == Some(index as i32)
            }
            rtnl::ERROR => word(0) == Some(-libc::ENODEV),
            _ => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `struct nlmsghdr` and a body.
    fn message(kind: u16, body: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 16];
        bytes[..4].copy_from_slice(&(16 + body.len() as u32).to_ne_bytes());
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes.extend_from_slice(body);
        bytes
    }

    fn link(family: u8, index: u32) -> Vec<u8> {
        let mut body = vec![0; 16];
        body[0] = family;
        body[4..8].copy_from_slice(&index.to_ne_bytes());
        body
    }

    #[test]
    fn only_the_end_of_this_link_counts() {
        let gone = message(libc::RTM_DELLINK, &link(0, 7));
        assert!(tells_end(&gone, 7));
        assert!(!tells_end(&gone, 8));
        assert!(!tells_end(&message(libc::RTM_NEWLINK, &link(0, 7)), 7));
        assert!(!tells_end(&message(libc::RTM_DELLINK, &link(libc::AF_BRIDGE as u8, 7)), 7));
        assert!(tells_end(&message(rtnl::ERROR, &(-libc::ENODEV).to_ne_bytes()), 7));
        assert!(!tells_end(&message(rtnl::ERROR, &(-libc::ENOMEM).to_ne_bytes()), 7));
    }

    #[test]
    fn it_may_stand_behind_other_news_and_amid_nonsense() {
        let other = message(libc::RTM_NEWLINK, &[link(0, 3), vec![1; 3]].concat());
        let padded = [other.clone(), vec![0; other.len().next_multiple_of(4) - other.len()]];
        let gone = message(libc::RTM_DELLINK, &link(0, 7));
        assert!(tells_end(&[padded.concat(), gone.clone()].concat(), 7));
        for cut in 0..gone.len() {
            tells_end(&gone[..cut], 7);
        }
        assert!(!tells_end(&[0; 64], 7));
        assert!(!tells_end(&[0xff; 64], 7));
    }
}
