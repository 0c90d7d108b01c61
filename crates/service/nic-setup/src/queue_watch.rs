//! Noticing that an interface gets more queues, or fewer, while it is in use: `ethtool -L`.
//!
//! The kernel tells it on the family `ethtool` of generic netlink, since Linux 5.7
//! (`Documentation/networking/ethtool-netlink.rst`, CHANNELS), and not among the news of links.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::netlink::{GENERIC, SocketAddrNetlink};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, send, socket_with,
};

use crate::genl::{self, GENERAL_HEADER};
use crate::netlink::{find, messages};

/// Attributes of what the family `ethtool` is asked, and tells (`linux/ethtool_netlink.h`).
const CHANNELS_GET: u8 = 17;
const GET_REPLY: u8 = 18;
const NOTICE: u8 = 19;
const HEADER: u16 = 1;
const HEADER_INDEX: u16 = 1;
const RX_COUNT: u16 = 6;
const COMBINED_COUNT: u16 = 9;
/// Of an attribute with attributes in it.
const NESTED: u16 = 1 << 15;

/// The group that hears of changes.
const GROUP: &str = "monitor";

/// Messages read in one look; the rest is for the next.
const MESSAGES: usize = 64;

/// A socket that hears of changes of the interfaces of the calling thread's network namespace, and the number of the
/// family. How many queues the interface `index` has is the first news, where the driver tells that. Needs no privilege.
///
/// # Errors
/// [`io::ErrorKind::Unsupported`] where the kernel tells no changes.
pub(crate) fn listen(index: u32) -> io::Result<(OwnedFd, u16)> {
    let (family, group) = genl::family_with_group("ethtool", GROUP)?;
    // Of the groups behind, `bind(2)` knows none.
    let group = group.checked_sub(1).and_then(|bit| 1u32.checked_shl(bit));
    let group = group.ok_or(io::ErrorKind::Unsupported)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, Some(GENERIC))?;
    bind(&socket, &SocketAddrNetlink::new(0, group))?;
    let question = genl::attribute(HEADER_INDEX, &index.to_ne_bytes());
    let question = genl::request(family, CHANNELS_GET, HEADER | NESTED, &question);
    send(&socket, &question, SendFlags::empty())?;
    Ok((socket, family))
}

/// How many queues of interface `index` receive by now, if the kernel has told that since the last look at what the
/// socket has [heard](listen). Never waits.
pub(crate) fn news(socket: BorrowedFd<'_>, family: u16, index: u32) -> Option<u32> {
    let (mut last, mut message) = (None, vec![0u8; 32 << 10]);
    for _ in 0..MESSAGES {
        match recv(socket, &mut message[..], RecvFlags::empty()) {
            Ok((length, _)) => {
                let told = told(message.get(..length).unwrap_or_default(), family, index);
                last = told.or(last);
            }
            Err(Errno::INTR | Errno::NOBUFS) => {}
            Err(_) => break,
        }
    }
    last
}

/// What a datagram of the kernel says of link `index`, the last of it.
pub(crate) fn told(datagram: &[u8], family: u16, index: u32) -> Option<u32> {
    let of_link = |(kind, body): (u16, &[u8])| {
        let command = *body.first()?;
        if kind != family || ![GET_REPLY, NOTICE].contains(&command) {
            return None;
        }
        let attributes = body.get(GENERAL_HEADER..)?;
        let number = |kind| Some(u32::from_ne_bytes(find(attributes, kind)?.try_into().ok()?));
        let of = find(find(attributes, HEADER)?, HEADER_INDEX)?;
        // Those that only receive, and those that do both; a driver need not have either.
        let (rx, combined) = (number(RX_COUNT), number(COMBINED_COUNT));
        let count = rx.unwrap_or(0).saturating_add(combined.unwrap_or(0));
        (of == index.to_ne_bytes() && count > 0).then_some(count)
    };
    messages(datagram).filter_map(of_link).last()
}

#[cfg(test)]
mod tests {
    use ringway_testkit::{Netns, isolate_thread, skip_without_root};

    use std::os::fd::AsFd;

    use super::*;
    use crate::Interface;

    #[test]
    fn the_kernel_tells_that_queues_were_added() {
        if skip_without_root("the_kernel_tells_that_queues_were_added") {
            return;
        }
        isolate_thread();
        let netns = Netns::root();
        netns
            .run("ip link add n0 numrxqueues 4 numtxqueues 4 type veth peer name n1 numrxqueues 4");
        netns.run("ethtool -L n0 rx 2 tx 2");
        let index = Interface::by_name("n0").unwrap().index;
        let (socket, family) = listen(index).unwrap();
        let news = || news(socket.as_fd(), family, index);
        assert_eq!(news(), Some(2), "what there are is told first");
        netns.run("ethtool -L n1 rx 3; ethtool -K n0 gro on");
        assert_eq!(news(), None, "of another, or of something else");
        netns.run("ethtool -L n0 rx 3 && ethtool -L n0 rx 4");
        assert_eq!((news(), news()), (Some(4), None));
    }

    #[test]
    fn only_this_interface_and_whole_messages_count() {
        let number = |kind, value: u32| genl::attribute(kind, &value.to_ne_bytes());
        let notice = |index, command| {
            let header = genl::attribute(HEADER | NESTED, &number(HEADER_INDEX, index));
            let body = [header, number(RX_COUNT, 1), number(COMBINED_COUNT, 2)].concat();
            let mut bytes = vec![0; 16];
            bytes.extend([command, 1, 0, 0]);
            bytes.extend(body);
            let length = bytes.len() as u32;
            bytes[..4].copy_from_slice(&length.to_ne_bytes());
            bytes[4..6].copy_from_slice(&20u16.to_ne_bytes());
            bytes
        };
        assert_eq!(told(&notice(7, NOTICE), 20, 7), Some(3));
        assert_eq!(told(&notice(7, GET_REPLY), 20, 7), Some(3));
        assert_eq!(told(&notice(7, GET_REPLY + 5), 20, 7), None);
        assert_eq!(
            (told(&notice(7, NOTICE), 21, 7), told(&notice(8, NOTICE), 20, 7)),
            (None, None)
        );
        let two = [notice(8, NOTICE), notice(7, NOTICE)].concat();
        assert_eq!(told(&two, 20, 7), Some(3));
        for cut in 1..two.len() {
            told(&two[..two.len() - cut], 20, 7);
        }
        assert_eq!(told(&[0xff; 64], 20, 7), None);
    }
}
