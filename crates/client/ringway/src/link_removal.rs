//! Noticing that an interface has gone, where no daemon is left to tell (S-LIFE-9).
//!
//! The kernel's sockets hold that back from who only sleeps on them: an AF_XDP socket wakes nobody
//! when its interface goes, but knows when it is asked. So who waits listens to the news of all
//! interfaces as well, and asks the sockets when there are any.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use rustix::{
    event::PollFlags,
    fd::{AsFd, BorrowedFd, OwnedFd},
    io::Errno,
    net::{
        AddressFamily, RecvFlags, SocketFlags, SocketType, bind, netlink::SocketAddrNetlink, recv,
        socket_with,
    },
};

use crate::binding::BoundRing;

/// What a binding with rings of interfaces listens to.
#[derive(Debug)]
pub(crate) struct LinkRemovalWatch {
    news: LinkNews,
    /// Where the rings of each direction stood at the last look.
    seen: [AtomicU32; 2],
}

impl LinkRemovalWatch {
    /// For interfaces of the calling thread's network namespace. `None` where the kernel will not:
    /// then only who sends learns it.
    pub fn new() -> Option<LinkRemovalWatch> {
        Some(LinkRemovalWatch { news: LinkNews::open().ok()?, seen: Default::default() })
    }

    /// What to sleep on besides the rings.
    pub fn source(&self) -> (BorrowedFd<'_>, PollFlags) {
        (self.news.as_fd(), PollFlags::IN)
    }

    /// Looks, before a wait for `rings`, which are all of a direction; those whose interface has gone
    /// are stopped, and with them those of the other direction. As long as packets come by, none has gone: that
    /// costs no system call.
    pub fn look(&self, rings: &[BoundRing], others: &[BoundRing]) {
        let Some(first) = rings.first() else { return };
        let place = |sum: u32, ring: &BoundRing| sum.wrapping_add(ring.kring().hwtail());
        let at = rings.iter().fold(0, place);
        if self.seen[first.kring().dir() as usize].swap(at, Relaxed) != at {
            return;
        }
        let heard = self.news.heard();
        let mut any = false;
        for ring in rings {
            // The other way round, a socket's error would be left, and end every wait at once.
            if (ring.has_failed() || heard) && ring.has_lost_interface() {
                ring.kring().stop();
                any = true;
            }
        }
        // The daemon, which stops all of them, may be slower than the program that is told now.
        if any {
            let lost = others.iter().filter(|ring| ring.has_lost_interface());
            lost.for_each(|ring| ring.kring().stop());
        }
    }
}

/// `RTMGRP_LINK`: news of all links of a network namespace.
const LINKS: u32 = 1;

/// News that are taken off in one look; the rest is for the next.
const MESSAGES: usize = 64;

/// Tells that something has become of some interface, of any of a network namespace.
///
/// It holds the namespace, and is readable ([`AsFd`]) when there are news.
#[derive(Debug)]
struct LinkNews(OwnedFd);

impl LinkNews {
    /// For the calling thread's network namespace. Needs no privilege.
    fn open() -> io::Result<LinkNews> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        // Protocol 0, hence `None`, is NETLINK_ROUTE.
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
        bind(&socket, &SocketAddrNetlink::new(0, LINKS))?;
        Ok(LinkNews(socket))
    }

    /// Whether there have been news since the last call. Never waits.
    fn heard(&self) -> bool {
        let heard = || loop {
            match recv(&self.0, &mut [0u8; 0][..], RecvFlags::TRUNC) {
                Err(Errno::INTR) => {}
                // That there was no room for all of it is news as well.
                result => return !matches!(result, Err(Errno::AGAIN)),
            }
        };
        (0..MESSAGES).take_while(|_| heard()).count() > 0
    }
}

impl AsFd for LinkNews {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
