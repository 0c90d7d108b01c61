//! rtnetlink: as much of it as links take.
#![expect(
    clippy::indexing_slicing,
    reason = "offsets of fields in headers that the message begins with, or that were just appended"
)]

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

pub(crate) use crate::netlink::{ERROR, find, messages};
use crate::sys;

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};

/// A request under construction: `struct nlmsghdr`, `struct ifinfomsg`, attributes.
pub(crate) struct Message {
    bytes: Vec<u8>,
    /// An attribute is longer than one can say that it is: the request is not to be sent, for what does not
    /// belong to the attribute any more would be read as others.
    too_long: bool,
}

/// Bytes of the two headers, and of the second.
const HEADERS: usize = 32;
const LINK_HEADER: usize = 16;

/// `struct tcmsg`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TcHeader {
    /// Of the link.
    pub index: u32,
    pub handle: u32,
    pub parent: u32,
    pub info: u32,
}

impl TcHeader {
    pub const LEN: usize = 20;

    /// Of what is behind `struct nlmsghdr`.
    pub fn read(body: &[u8]) -> Option<TcHeader> {
        let word = |at| Some(u32::from_ne_bytes(body.get(at..at + 4)?.try_into().ok()?));
        Some(TcHeader { index: word(4)?, handle: word(8)?, parent: word(12)?, info: word(16)? })
    }
}

const NESTED: u16 = 1 << 15;

impl Message {
    /// A request `kind` (`RTM_*LINK`) about link `index`; 0 where the kernel is to find one.
    pub fn new(kind: u16, flags: libc::c_int, index: u32) -> Message {
        let mut bytes = vec![0; HEADERS];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&((libc::NLM_F_REQUEST | flags) as u16).to_ne_bytes());
        bytes[20..24].copy_from_slice(&index.to_ne_bytes());
        Message { bytes, too_long: false }
    }

    /// A request `kind` (`RTM_*QDISC`, `RTM_*TFILTER`) about the traffic control of a link.
    pub fn tc(kind: u16, flags: libc::c_int, header: TcHeader) -> Message {
        let mut message = Message::new(kind, flags, 0);
        message.bytes.truncate(HEADERS - LINK_HEADER);
        for word in [0, header.index, header.handle, header.parent, header.info] {
            message.bytes.extend_from_slice(&word.to_ne_bytes());
        }
        message
    }

    /// Sets the link's flags in `mask` (`IFF_*`) to what they are in `flags`.
    pub fn flags(mut self, flags: libc::c_int, mask: libc::c_int) -> Message {
        self.bytes[24..28].copy_from_slice(&flags.to_ne_bytes());
        self.bytes[28..32].copy_from_slice(&mask.to_ne_bytes());
        self
    }

    pub fn attribute(self, kind: u16, payload: &[u8]) -> Message {
        self.put(kind, |message| message.bytes.extend_from_slice(payload))
    }

    pub fn number(self, kind: u16, value: u32) -> Message {
        self.attribute(kind, &value.to_ne_bytes())
    }

    /// A name, with the zero that ends it.
    pub fn text(self, kind: u16, text: &str) -> Message {
        self.put(kind, |message| {
            message.bytes.extend_from_slice(text.as_bytes());
            message.bytes.push(0);
        })
    }

    /// Attributes within an attribute, behind `head`: the fixed part that some of them have.
    pub fn nest(self, kind: u16, head: &[u8], fill: impl FnOnce(Message) -> Message) -> Message {
        self.put(kind | NESTED, |message| {
            message.bytes.extend_from_slice(head);
            let Message { bytes, too_long } = message;
            let inner = Message { bytes: std::mem::take(bytes), too_long: *too_long };
            *message = fill(inner);
        })
    }

    /// `struct rtattr`, payload, padding to four bytes.
    fn put(mut self, kind: u16, fill: impl FnOnce(&mut Message)) -> Message {
        let at = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        fill(&mut self);
        let bytes = &mut self.bytes;
        let length = u16::try_from(bytes.len() - at);
        self.too_long |= length.is_err();
        bytes[at..at + 2].copy_from_slice(&length.unwrap_or(0).to_ne_bytes());
        bytes[at + 2..at + 4].copy_from_slice(&kind.to_ne_bytes());
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        self
    }

    /// Sends it from the calling thread's network namespace, and waits for it to be done.
    pub fn carry_out(self) -> io::Result<()> {
        let answer = self.with_flags(libc::NLM_F_ACK).exchange()?;
        outcome(&answer)
    }

    /// Sends it likewise. Where the kernel refuses it: what it says of that in words, if anything.
    pub fn carry_out_or_say(self) -> Result<(), Option<String>> {
        let ask = || {
            let socket = route_socket()?;
            sys::ask_for_words(socket.as_fd())?;
            self.with_flags(libc::NLM_F_ACK).exchange_on(socket)
        };
        let answer = ask().map_err(|_: io::Error| None)?;
        outcome(&answer).map_err(|_| words(&answer))
    }

    /// Sends a question for one link, and returns what the answer tells of it. ENODEV: there is none.
    pub fn ask_link(self) -> io::Result<LinkAnswer> {
        let answer = self.exchange()?;
        LinkAnswer::read(&answer)
    }

    /// Sends a question for one object that is no link: what is behind `struct nlmsghdr` in the answer. Of some
    /// objects the kernel tells only those who listen to changes, or nobody, without an error: so it is asked to
    /// tell this socket as well, and to say at least that it is done.
    pub fn ask(self) -> io::Result<Option<Vec<u8>>> {
        let answer = self.with_flags(libc::NLM_F_ACK | libc::NLM_F_ECHO).exchange()?;
        match messages(&answer).next() {
            Some((ERROR, body)) => failure(body)?.map_or(Ok(None), Err),
            Some((_, body)) => Ok(Some(body.to_vec())),
            None => Err(unclear()),
        }
    }

    /// Sends a question for all of a kind: what is behind `struct nlmsghdr` in each answer.
    pub fn dump(self) -> io::Result<Vec<Vec<u8>>> {
        let socket = route_socket()?;
        self.with_flags(libc::NLM_F_DUMP).send_on(socket.as_fd())?;
        let (mut all, mut datagram) = (Vec::new(), vec![0u8; 32 << 10]);
        loop {
            let (length, _) = recv(&socket, &mut datagram[..], RecvFlags::empty())?;
            for (kind, body) in messages(datagram.get(..length).unwrap_or_default()) {
                match kind {
                    DONE => return Ok(all),
                    ERROR => return failure(body)?.map_or(Ok(all), Err),
                    _ => all.push(body.to_vec()),
                }
            }
        }
    }

    fn with_flags(mut self, more: libc::c_int) -> Message {
        let flags = u16::from_ne_bytes([self.bytes[6], self.bytes[7]]) | more as u16;
        self.bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        self
    }

    /// Sends it on a socket of the caller's own, to which the answer comes.
    pub fn send_on(mut self, socket: BorrowedFd<'_>) -> io::Result<()> {
        if self.too_long {
            return Err(io::Error::from_raw_os_error(libc::EMSGSIZE));
        }
        let length = self.bytes.len() as u32;
        self.bytes[0..4].copy_from_slice(&length.to_ne_bytes());
        send(socket, &self.bytes, SendFlags::empty())?;
        Ok(())
    }

    fn exchange(self) -> io::Result<Vec<u8>> {
        self.exchange_on(route_socket()?)
    }

    fn exchange_on(self, socket: OwnedFd) -> io::Result<Vec<u8>> {
        self.send_on(socket.as_fd())?;
        let mut answer = vec![0u8; 32 << 10];
        let (length, _) = recv(&socket, &mut answer[..], RecvFlags::empty())?;
        answer.truncate(length);
        Ok(answer)
    }
}

fn route_socket() -> io::Result<OwnedFd> {
    // Protocol 0, hence `None`, is NETLINK_ROUTE.
    Ok(socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?)
}

/// What the kernel tells of a link that was asked for.
pub(crate) struct LinkAnswer {
    /// `ARPHRD_*`.
    pub hardware: u16,
    pub index: u32,
    /// `IFF_*`.
    pub flags: libc::c_int,
    attributes: Vec<u8>,
}

impl LinkAnswer {
    /// What an answer tells: a link, or that the question failed.
    pub fn read(answer: &[u8]) -> io::Result<LinkAnswer> {
        let (kind, body) = messages(answer).next().ok_or_else(unclear)?;
        if kind == ERROR {
            return Err(failure(body)?.unwrap_or_else(unclear));
        }
        // `struct ifinfomsg`: family, type, index, flags.
        let word = |at| Some(i32::from_ne_bytes(body.get(at..at + 4)?.try_into().ok()?));
        let hardware = body.get(2..4).and_then(|bytes| bytes.try_into().ok());
        let (hardware, index) = (hardware.ok_or_else(unclear)?, word(4).ok_or_else(unclear)?);
        Ok(LinkAnswer {
            hardware: u16::from_ne_bytes(hardware),
            index: u32::try_from(index).map_err(|_| unclear())?,
            flags: word(8).ok_or_else(unclear)?,
            attributes: body.get(16..).unwrap_or_default().to_vec(),
        })
    }

    /// The payload of its attribute of `kind`.
    pub fn find(&self, kind: u16) -> Option<&[u8]> {
        find(&self.attributes, kind)
    }

    /// A text without the zero that ends it.
    pub fn text(&self, kind: u16) -> Option<&str> {
        std::str::from_utf8(self.find(kind)?.strip_suffix(&[0])?).ok()
    }

    pub fn number(&self, kind: u16) -> Option<u32> {
        self.find(kind)?.try_into().ok().map(u32::from_ne_bytes)
    }
}

fn unclear() -> io::Error {
    io::ErrorKind::UnexpectedEof.into()
}

/// How a request went that asked to be told.
pub(crate) fn outcome(answer: &[u8]) -> io::Result<()> {
    match messages(answer).next() {
        Some((ERROR, body)) => failure(body)?.map_or(Ok(()), Err),
        _ => Err(unclear()),
    }
}

/// Attribute of an answer: what the kernel says in words (`NLMSGERR_ATTR_MSG`).
const WORDS: u16 = 1;

/// What a refusal says in words. The kernel [was asked](sys::ask_for_words) to give them behind the errno and
/// the header of the request.
fn words(answer: &[u8]) -> Option<String> {
    let (kind, body) = messages(answer).next()?;
    let text = find(body.get(4 + 16..)?, WORDS).filter(|_| kind == ERROR)?;
    let text = String::from_utf8_lossy(text.split(|byte| *byte == 0).next()?).into_owned();
    Some(text).filter(|text| !text.is_empty())
}

/// What a message of kind [`ERROR`] says: the errno, negative. `None`: 0, it is done.
fn failure(body: &[u8]) -> io::Result<Option<io::Error>> {
    let errno = body.get(..4).and_then(|bytes| bytes.try_into().ok()).ok_or_else(unclear)?;
    let errno = i32::from_ne_bytes(errno).checked_neg().ok_or_else(unclear)?;
    Ok((errno != 0).then(|| io::Error::from_raw_os_error(errno)))
}

/// Longest name that a request may ask for, with the zero that ends it.
const NAME: usize = libc::IFNAMSIZ;

/// The link that the calling thread's network namespace knows by `name`, one of its alternative names
/// perhaps. ENODEV: there is none.
///
/// All look-ups go this way. The ioctls of `netdevice(7)`, and libc's `if_nametoindex` with them, have
/// the kernel load the module `netdev-NAME` for a name that it does not know, as root, and names come
/// from clients.
pub(crate) fn link_by_name(name: &str) -> io::Result<LinkAnswer> {
    if name.is_empty() || name.len() >= NAME || name.contains('\0') {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    Message::new(libc::RTM_GETLINK, 0, 0).text(libc::IFLA_IFNAME, name).ask_link()
}

/// The link of that number, in the same namespace.
pub(crate) fn link_by_index(index: u32) -> io::Result<LinkAnswer> {
    Message::new(libc::RTM_GETLINK, 0, index).ask_link()
}

/// There are no more answers (`NLMSG_DONE`).
const DONE: u16 = 3;

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    #[test]
    fn attributes_are_found_and_bad_ones_end_the_search() {
        let list = [5, 0, 1, 0, 9, 0, 0, 0, 8, 0, 2, 0x80, 1, 2, 3, 4];
        assert_eq!(find(&list, 1), Some(&[9][..]));
        assert_eq!(find(&list, 2), Some(&[1, 2, 3, 4][..]));
        assert_eq!(find(&list, 3), None);
        assert_eq!(find(&[0, 0, 1, 0], 1), None);
        assert_eq!(find(&[200, 0, 1, 0], 1), None);
        assert_eq!(find(&[], 1), None);
    }

    proptest! {
        /// Whatever the bytes are, both come to an end, and find nothing that is not there.
        #[test]
        fn any_bytes_are_parsed(bytes in vec(any::<u8>(), 0..200), small in any::<bool>(), kind in 0u16..4) {
            // Small numbers are lengths and kinds that can be.
            let bytes: Vec<u8> = bytes.iter().map(|b| if small { b & 31 } else { *b }).collect();
            let within = |part: &[u8]| bytes.windows(part.len().max(1)).any(|w| w == part) || part.is_empty();
            for (_, body) in messages(&bytes) {
                prop_assert!(within(body));
                prop_assert!(find(body, kind).is_none_or(within));
            }
            prop_assert!(messages(&bytes).count() <= bytes.len() / 16);
            prop_assert!(find(&bytes, kind).is_none_or(within));
        }

        /// What is left out in the middle of an answer takes nothing else for what it is not.
        #[test]
        fn cut_messages_end(numbers in vec((1u16..4, any::<u32>()), 0..8), cut in 0usize..200) {
            let message = numbers.iter().fold(Message::new(libc::RTM_NEWLINK, 0, 7), |m, (k, n)| m.number(*k, *n));
            let mut bytes = message.bytes;
            let length = bytes.len() as u32;
            bytes[0..4].copy_from_slice(&length.to_ne_bytes());
            prop_assert_eq!(messages(&bytes).count(), 1);
            bytes.truncate(bytes.len().saturating_sub(cut));
            prop_assert_eq!(messages(&bytes).count(), usize::from(cut == 0));
        }
    }

    /// Of a name that comes from another process, the end would be attributes of that process's choice.
    #[test]
    fn an_attribute_that_cannot_say_how_long_it_is_is_not_sent() {
        let long = "x".repeat(usize::from(u16::MAX));
        let nested = Message::new(libc::RTM_GETLINK, 0, 1).nest(18, &[], |m| m.text(1, &long));
        for message in [Message::new(libc::RTM_GETLINK, 0, 1).text(3, &long), nested] {
            let refused = message.carry_out().unwrap_err();
            assert_eq!(refused.raw_os_error(), Some(libc::EMSGSIZE));
        }
    }

    #[test]
    fn what_is_put_is_found() {
        let message = Message::new(libc::RTM_NEWLINK, 0, 7)
            .text(3, "abc")
            .nest(18, &[9; 4], |m| m.number(1, 5).text(2, "x"));
        let attributes = &message.bytes[HEADERS..];
        assert_eq!(find(attributes, 3), Some(&b"abc\0"[..]));
        let nested = &find(attributes, 18).unwrap()[4..];
        assert_eq!(find(nested, 1), Some(&5u32.to_ne_bytes()[..]));
        assert_eq!(find(nested, 2), Some(&b"x\0"[..]));
    }
}
