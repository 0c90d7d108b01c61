//! Noticing that an interface goes down, or away, or gets another MTU, name or number of queues, while it is in use.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::netdevice::index_to_name;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recv, socket_with};

use serde::{Deserialize, Serialize};

use crate::operation::Watch;
use crate::privileges::unprivileged;
use crate::rtnl::{self, Message};
use crate::sys::netdevice::{Status, status};
use crate::{Error, Interface, helper, parcel, queue_watch};

/// `RTMGRP_LINK`: news of all links of a network namespace.
const LINKS: u32 = 1;

/// Messages read in one look; the rest is for the next.
const MESSAGES: usize = 64;

/// Bytes of `struct ifinfomsg`, in front of the attributes of a link.
const LINK_HEADER: usize = 16;

/// What an interface is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LinkState {
    /// Packets can come and go.
    Up,
    /// Without a carrier: nothing comes or goes by the wire, for now.
    NoCarrier,
    /// Set down: its stack receives nothing by it either.
    Down,
    /// Gone from its network namespace: deleted, or moved to another one, which for sockets and
    /// programs that it had is the same. It does not come back.
    Gone,
}

impl LinkState {
    /// By its flags.
    fn of(flags: libc::c_int) -> LinkState {
        match (flags & libc::IFF_UP != 0, flags & libc::IFF_RUNNING != 0) {
            (false, _) => LinkState::Down,
            (true, false) => LinkState::NoCarrier,
            (true, true) => LinkState::Up,
        }
    }
}

/// An interface as it is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    pub state: LinkState,
    /// As [`Interface::mtu`]; the last that it had, where it has gone.
    pub mtu: u32,
}

/// Tells what becomes of an interface.
///
/// It holds the namespace, and has news when one of its [descriptors](Self::descriptors) is readable.
#[derive(Debug, Serialize, Deserialize)]
pub struct LinkWatch {
    #[serde(with = "parcel::fd")]
    socket: OwnedFd,
    index: u32,
    link: Link,
    /// `None`: the kernel tells nothing of queues.
    queues: Option<Queues>,
    name: String,
    /// What it was called at the last [`LinkWatch::renamed`].
    known_as: String,
    /// Behind the news that are there.
    #[serde(skip)]
    has_missed_some: bool,
}

/// What hears of its queues.
#[derive(Debug, Serialize, Deserialize)]
struct Queues {
    #[serde(with = "parcel::fd")]
    socket: OwnedFd,
    family: u16,
}

impl LinkWatch {
    /// For an interface of the calling thread's network namespace, which is held to be up, and as it
    /// is told. What it is in fact is the first news: one that goes before it is watched is not
    /// missed. Needs no privilege.
    pub fn open(interface: &Interface) -> Result<LinkWatch, Error> {
        helper::run_where_needed(Watch { interface: interface.clone() })
    }

    /// That has its news by this socket.
    pub(crate) fn of_socket(socket: OwnedFd, interface: &Interface) -> LinkWatch {
        let link = Link { state: LinkState::Up, mtu: interface.mtu };
        let (index, name) = (interface.index, interface.name.clone());
        let known_as = name.clone();
        LinkWatch { socket, index, link, queues: None, name, known_as, has_missed_some: false }
    }

    pub(crate) fn open_here(interface: &Interface) -> Result<LinkWatch, Error> {
        let open = || -> io::Result<LinkWatch> {
            let watch = LinkWatch::of_socket(listen()?, interface);
            watch.ask()?;
            let queues = queue_watch::listen(interface.index).ok();
            let queues = queues.map(|(socket, family)| Queues { socket, family });
            Ok(LinkWatch { queues, ..watch })
        };
        open().map_err(Error::refused(
            &interface.name,
            "it cannot be watched",
            "raise the limit of open files",
        ))
    }

    /// What the interface has become since the last look, if it is not what it was. Never waits.
    pub fn news(&mut self) -> Option<Link> {
        let before = self.link;
        let mut message = vec![0u8; 32 << 10];
        for _ in 0..MESSAGES {
            match recv(&self.socket, &mut message[..], RecvFlags::empty()) {
                Ok((length, _)) => {
                    for told in told(message.get(..length).unwrap_or_default(), self.index) {
                        self.hear(told);
                    }
                }
                // There was no room for all that happened: what there was room for comes first.
                Err(Errno::NOBUFS) => self.has_missed_some = true,
                Err(Errno::INTR) => {}
                Err(_) => {
                    if std::mem::take(&mut self.has_missed_some) {
                        self.look();
                    }
                    break;
                }
            }
        }
        (self.link != before).then_some(self.link)
    }

    /// What it was at the last look.
    pub fn state(&self) -> LinkState {
        self.link.state
    }

    /// How many of its queues receive, if the kernel has told that since the last look. Never waits.
    pub fn rx_queues(&self) -> Option<u32> {
        let Queues { socket, family } = self.queues.as_ref()?;
        queue_watch::news(socket.as_fd(), *family, self.index)
    }

    /// What becomes readable when there may be news.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        [self.socket.as_fd()]
            .into_iter()
            .chain(self.queues.as_ref().map(|queues| queues.socket.as_fd()))
    }

    /// What it was called, and is called by the last [`news`](Self::news), if that is another name.
    pub fn renamed(&mut self) -> Option<[String; 2]> {
        let is_new = self.known_as != self.name;
        is_new
            .then(|| [std::mem::replace(&mut self.known_as, self.name.clone()), self.name.clone()])
    }

    fn hear(&mut self, told: Told<'_>) {
        self.link = self.link.then(&told);
        if let Some(name) = told.name {
            self.name = name.into();
        }
    }

    /// Looks at the interface itself. That waits for nobody, as [`ask`](Self::ask) does for whoever changes
    /// interfaces. What changes while this looks comes among the news.
    fn look(&mut self) {
        let socket = self.socket.as_fd();
        let look = || -> io::Result<(String, Status)> {
            let name = index_to_name(socket, self.index)?;
            let status = status(socket, &name)?;
            Ok((name, status))
        };
        match unprivileged(look) {
            Ok(Ok((name, Status { flags, mtu }))) => {
                let (state, mtu) = (LinkState::of(flags), Some(mtu));
                self.hear(Told { state, mtu, name: Some(&name) });
            }
            // It may just have been renamed.
            Ok(Err(_)) if index_to_name(socket, self.index) == Err(Errno::NODEV) => {
                self.hear(Told::GONE);
            }
            _ => {}
        }
    }

    /// Asks the kernel for the interface: the answer comes among the news.
    fn ask(&self) -> io::Result<()> {
        Message::new(libc::RTM_GETLINK, 0, self.index).send_on(self.socket.as_fd())
    }
}

/// Its socket of the namespace.
impl AsFd for LinkWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Link {
    fn then(self, told: &Told<'_>) -> Link {
        match self.state {
            LinkState::Gone => self,
            _ => Link { state: told.state, mtu: told.mtu.unwrap_or(self.mtu) },
        }
    }
}

/// A socket that gets the news of all links.
fn listen() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    // Protocol 0, hence `None`, is NETLINK_ROUTE.
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
    bind(&socket, &SocketAddrNetlink::new(0, LINKS))?;
    Ok(socket)
}

/// What a message says of a link: its state, and what else is told.
pub(crate) struct Told<'a> {
    pub state: LinkState,
    pub mtu: Option<u32>,
    pub name: Option<&'a str>,
}

impl Told<'_> {
    const GONE: Told<'static> = Told { state: LinkState::Gone, mtu: None, name: None };
}

/// What a datagram of the kernel says of link `index`. The only answer of ours among the news is
/// that to [`LinkWatch::ask`].
pub(crate) fn told(datagram: &[u8], index: u32) -> impl Iterator<Item = Told<'_>> {
    rtnl::messages(datagram).filter_map(move |(kind, body)| {
        let word = |at| Some(i32::from_ne_bytes(body.get(at..at + 4)?.try_into().ok()?));
        // Of another family it tells of the link as a port of a kernel bridge.
        let of_link =
            || body.first() == Some(&(libc::AF_UNSPEC as u8)) && word(4) == Some(index as i32);
        match kind {
            libc::RTM_DELLINK if of_link() => Some(Told::GONE),
            libc::RTM_NEWLINK if of_link() => {
                let state = LinkState::of(word(8)?);
                let find = |kind| rtnl::find(body.get(LINK_HEADER..)?, kind);
                let mtu = find(libc::IFLA_MTU).and_then(|bytes| bytes.try_into().ok());
                let name = find(libc::IFLA_IFNAME).and_then(|bytes| bytes.strip_suffix(&[0]));
                Some(Told {
                    state,
                    mtu: mtu.map(u32::from_ne_bytes),
                    name: name.and_then(|bytes| std::str::from_utf8(bytes).ok()),
                })
            }
            rtnl::ERROR if word(0) == Some(-libc::ENODEV) => Some(Told::GONE),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use ringway_testkit::{Netns, isolate_thread, skip_without_root};
    use rustix::net::sockopt::set_socket_recv_buffer_size;

    use super::*;

    /// `struct nlmsghdr` and a body.
    fn message(kind: u16, body: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 16];
        bytes[..4].copy_from_slice(&(16 + body.len() as u32).to_ne_bytes());
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes.extend_from_slice(body);
        bytes
    }

    fn link(family: u8, index: u32, flags: i32) -> Vec<u8> {
        let mut body = vec![0; 16];
        body[0] = family;
        body[4..8].copy_from_slice(&index.to_ne_bytes());
        body[8..12].copy_from_slice(&flags.to_ne_bytes());
        body
    }

    fn all_told(datagram: &[u8], index: u32) -> Vec<LinkState> {
        told(datagram, index).map(|told| told.state).collect()
    }

    #[test]
    fn news_that_there_is_no_room_for_are_not_missed() {
        if skip_without_root("news_that_there_is_no_room_for_are_not_missed") {
            return;
        }
        isolate_thread();
        let netns = Netns::root();
        netns.run("ip link add n0 up type veth peer name n1 && ip link set n1 up");
        let mut watch = LinkWatch::open(&Interface::by_name("n0").unwrap()).unwrap();
        // The first message after that has room, and no other.
        set_socket_recv_buffer_size(&watch.socket, 0).unwrap();
        let _ = watch.news();
        let flood = "for mtu in 1400 1401 1402 1403; do ip link set n1 mtu $mtu; done";
        netns.run(&format!("{flood}; ip link set n0 down mtu 1300; ip link set n0 name n0x"));
        assert_eq!(watch.news(), Some(Link { state: LinkState::Down, mtu: 1300 }));
        assert_eq!(watch.renamed(), Some(["n0".into(), "n0x".into()]));
        assert_eq!(watch.news(), None);
        netns.run(&format!("{flood}; ip link del n0x"));
        assert_eq!(watch.news(), Some(Link { state: LinkState::Gone, mtu: 1300 }));
    }

    #[test]
    fn only_this_link_counts() {
        let (up, both) = (libc::IFF_UP, libc::IFF_UP | libc::IFF_RUNNING);
        let new = |index, flags| message(libc::RTM_NEWLINK, &link(0, index, flags));
        let gone = message(libc::RTM_DELLINK, &link(0, 7, both));
        assert_eq!(all_told(&gone, 7), [LinkState::Gone]);
        assert_eq!(all_told(&gone, 8), []);
        assert_eq!(all_told(&new(7, both), 7), [LinkState::Up]);
        assert_eq!(all_told(&new(7, up), 7), [LinkState::NoCarrier]);
        for flags in [0, libc::IFF_RUNNING] {
            assert_eq!(all_told(&new(7, flags), 7), [LinkState::Down]);
        }
        assert_eq!(all_told(&new(7, both), 8), []);
        for kind in [libc::RTM_NEWLINK, libc::RTM_DELLINK] {
            assert_eq!(all_told(&message(kind, &link(libc::AF_BRIDGE as u8, 7, up)), 7), []);
        }
        let error = |errno: i32| message(rtnl::ERROR, &(-errno).to_ne_bytes());
        assert_eq!(all_told(&error(libc::ENODEV), 7), [LinkState::Gone]);
        assert_eq!(all_told(&error(libc::ENOMEM), 7), []);
        let link = |state| Link { state, mtu: 1500 };
        let told = |state, mtu| Told { state, mtu, name: None };
        assert_eq!(
            link(LinkState::Gone).then(&told(LinkState::Up, Some(9))),
            link(LinkState::Gone)
        );
        assert_eq!(link(LinkState::Up).then(&told(LinkState::Down, None)), link(LinkState::Down));
    }

    #[test]
    fn the_mtu_and_the_name_are_told_where_they_stand() {
        let address = [10, 0, 1, 0, 2, 0, 0, 0, 0, 7, 0, 0];
        let name = [8, 0, libc::IFLA_IFNAME as u8, 0, b'n', b'0', b'x', 0];
        let mtu = [&[8, 0, libc::IFLA_MTU as u8, 0][..], &9000u32.to_ne_bytes()].concat();
        let body = [link(0, 7, libc::IFF_UP), address.into(), name.into(), mtu].concat();
        let whole = message(libc::RTM_NEWLINK, &body);
        let all = |message: &[u8]| {
            let of = |told: Told<'_>| (told.state, told.mtu, told.name.map(str::to_owned));
            told(message, 7).map(of).collect::<Vec<_>>()
        };
        assert_eq!(all(&whole), [(LinkState::NoCarrier, Some(9000), Some("n0x".into()))]);
        for cut in 0..8 {
            let cut = message(libc::RTM_NEWLINK, &body[..body.len() - cut - 1]);
            assert_eq!(all(&cut), [(LinkState::NoCarrier, None, Some("n0x".into()))]);
        }
        let before = Link { state: LinkState::Up, mtu: 1500 };
        let after = told(&whole, 7).fold(before, |link, told| link.then(&told));
        assert_eq!(after, Link { state: LinkState::NoCarrier, mtu: 9000 });
    }

    #[test]
    fn it_may_stand_behind_other_news_and_amid_nonsense() {
        let other = message(libc::RTM_NEWLINK, &[link(0, 3, 0), vec![1; 3]].concat());
        let padded = [other.clone(), vec![0; other.len().next_multiple_of(4) - other.len()]];
        let gone = message(libc::RTM_DELLINK, &link(0, 7, 0));
        assert_eq!(all_told(&[padded.concat(), gone.clone()].concat(), 7), [LinkState::Gone]);
        for cut in 0..gone.len() {
            all_told(&gone[..cut], 7);
        }
        assert_eq!(all_told(&[0; 64], 7), []);
        assert_eq!(all_told(&[0xff; 64], 7), []);
    }
}
