//! A socket for rtnetlink(7) in one network namespace: requests, and their answers.

use std::{io, thread};

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage;
use rustix::{
    fd::{BorrowedFd, OwnedFd},
    net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with},
    thread::{LinkNameSpaceType, move_into_link_name_space},
};

/// More than the kernel puts into one datagram: 32 KiB, unless one object has more to tell.
const LONGEST: usize = 1 << 17;

/// It stays in the namespace where it was opened.
pub struct Netlink {
    socket: OwnedFd,
}

impl Netlink {
    /// In the calling thread's network namespace.
    pub fn here() -> io::Result<Netlink> {
        // Protocol 0, hence `None`, is NETLINK_ROUTE.
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
        Ok(Netlink { socket })
    }

    /// In another one. The calling thread stays where it is.
    pub fn inside(netns: BorrowedFd<'_>) -> io::Result<Netlink> {
        let enter = || {
            move_into_link_name_space(netns, Some(LinkNameSpaceType::Network))?;
            Netlink::here()
        };
        thread::scope(|scope| {
            let thread = thread::Builder::new().name("netns".into()).spawn_scoped(scope, enter)?;
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Has something changed, and waits until it is.
    pub fn change(&self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.send(message, NLM_F_ACK | flags)?;
        self.answers(|_| ())
    }

    /// Asks for one object.
    pub fn ask(&self, message: RouteNetlinkMessage) -> io::Result<Option<RouteNetlinkMessage>> {
        self.send(message, NLM_F_ACK)?;
        let mut found = None;
        self.answers(|answer| found = Some(answer))?;
        Ok(found)
    }

    /// Asks for all objects of a kind.
    pub fn all(&self, message: RouteNetlinkMessage) -> io::Result<Vec<RouteNetlinkMessage>> {
        self.send(message, NLM_F_DUMP)?;
        let mut all = Vec::new();
        self.answers(|answer| all.push(answer))?;
        Ok(all)
    }

    fn send(&self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | flags;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::InnerMessage(message));
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        send(&self.socket, &bytes, SendFlags::empty())?;
        Ok(())
    }

    /// Reads what comes until the kernel says that it was all, or what is wrong.
    fn answers(&self, mut take: impl FnMut(RouteNetlinkMessage)) -> io::Result<()> {
        let mut datagram = vec![0; LONGEST];
        loop {
            let (length, _) = recv(&self.socket, &mut datagram[..], RecvFlags::empty())?;
            let mut rest = datagram.get(..length).unwrap_or_default();
            while !rest.is_empty() {
                let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest)
                    .map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e.to_string()))?;
                let length = (message.header.length as usize).next_multiple_of(4);
                match message.payload {
                    NetlinkPayload::InnerMessage(answer) => take(answer),
                    NetlinkPayload::Done(_) => return Ok(()),
                    NetlinkPayload::Error(error) => {
                        return error.code.map_or(Ok(()), |_| Err(error.to_io()));
                    }
                    _ => {}
                }
                rest = rest.get(length..).unwrap_or_default();
            }
        }
    }
}
