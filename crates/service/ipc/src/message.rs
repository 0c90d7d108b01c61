//! Datagrams with descriptors.

use std::{
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
};

use ringway_proto::{Cause, Error as Refusal, Reply, Request, VERSION};
use rustix::{
    event::{PollFd, PollFlags, poll},
    fd::{AsFd, BorrowedFd, OwnedFd},
    net::{
        AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
        SendAncillaryBuffer, SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
        sockopt::socket_domain,
    },
};

use serde::Deserialize;

use crate::Error;

/// Bytes of a message at most: what a socket's default buffer holds.
pub const MAX_MESSAGE: usize = 128 * 1024;
/// Descriptors in a message at most (`SCM_MAX_FD`).
pub const MAX_FDS: usize = 253;

/// The answer, and how many descriptors belong to it. Those that do not fit the first message
/// come in further ones, which hold nothing else.
type Answer = (Result<Reply, Refusal>, u32);

/// A request as it came in.
#[derive(Debug)]
pub struct Received {
    pub request: Request,
    /// Where the reply goes.
    pub reply_to: OwnedFd,
}

/// Sends one message with these descriptors.
pub fn send(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    fds: &[BorrowedFd<'_>],
    flags: SendFlags,
) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    loop {
        let sent = sendmsg(
            socket,
            &[IoSlice::new(&[VERSION]), IoSlice::new(bytes)],
            &mut ancillary,
            flags | SendFlags::NOSIGNAL,
        );
        match sent {
            Err(rustix::io::Errno::INTR) => continue,
            // Another process that has the connection may have made it non-blocking.
            Err(rustix::io::Errno::AGAIN) if !flags.contains(SendFlags::DONTWAIT) => {
                let _ = poll(&mut [PollFd::from_borrowed_fd(socket, PollFlags::OUT)], None);
            }
            result => return Ok(result.map(drop)?),
        }
    }
}

/// Bytes and the descriptors that came with them.
pub type Datagram = (Vec<u8>, Vec<OwnedFd>);

/// One message; `None` is the end.
pub fn receive(socket: BorrowedFd<'_>, flags: RecvFlags) -> Result<Option<Datagram>, Error> {
    let mut fds = Vec::new();
    let bytes = receive_with(socket, flags, &mut fds)?;
    Ok(bytes.map(|bytes| (bytes, fds)))
}

/// As [`receive`]; the descriptors are added to `fds` whatever comes of the rest.
fn receive_with(
    socket: BorrowedFd<'_>,
    flags: RecvFlags,
    fds: &mut Vec<OwnedFd>,
) -> Result<Option<Vec<u8>>, Error> {
    let mut bytes = vec![0; MAX_MESSAGE];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let got = loop {
        let mut iov = [IoSliceMut::new(&mut bytes)];
        match recvmsg(socket, &mut iov, &mut ancillary, flags | RecvFlags::CMSG_CLOEXEC) {
            Err(rustix::io::Errno::INTR) => continue,
            result => break result.map_err(|e| Error::Lost(e.into()))?,
        }
    };
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            fds.extend(received);
        }
    }
    if got.bytes == 0 {
        return Ok(None);
    }
    bytes.truncate(got.bytes);
    if got.flags.contains(ReturnFlags::CTRUNC) {
        return Err(Error::Lost(io::Error::from_raw_os_error(libc::EMFILE)));
    }
    if got.flags.contains(ReturnFlags::TRUNC) || bytes.remove(0) != VERSION {
        return Err(Error::Version);
    }
    Ok(Some(bytes))
}

/// Sends a request; the reply comes to the other end of `reply_to`.
pub(crate) fn send_request(
    connection: BorrowedFd<'_>,
    request: &Request,
    reply_to: BorrowedFd<'_>,
) -> Result<(), Error> {
    let bytes = postcard::to_allocvec(request).map_err(|_| Error::Version)?;
    send(connection, &bytes, &[reply_to], SendFlags::empty()).map_err(Error::Lost)
}

/// Takes a request off a connection, without waiting. `Ok(None)`: nothing (more) there for
/// now. `Err`: the peer has gone, or does not speak the protocol; drop the connection.
///
/// Descriptors that came along and are of no use are left in `useless`. To close one, or to ask it
/// anything, may take as long as its maker likes: a file system in user space, a TCP socket that
/// lingers. The same goes for a [`Received`], and for the connection: what is queued in a socket is
/// closed with it.
pub fn receive_request(
    connection: impl AsFd,
    useless: &mut Vec<OwnedFd>,
) -> Result<Option<Received>, Error> {
    let received = match receive_with(connection.as_fd(), RecvFlags::DONTWAIT, useless) {
        Err(Error::Lost(e)) if e.kind() == io::ErrorKind::WouldBlock => return Ok(None),
        // We have no descriptors left: the request is lost, not the caller's port. With the
        // reply end that did not arrive, the caller's wait ends.
        Err(Error::Lost(e)) if e.raw_os_error() == Some(libc::EMFILE) => return Ok(None),
        other => other?,
    };
    let bytes = received.ok_or(Error::Lost(io::ErrorKind::UnexpectedEof.into()))?;
    let request = postcard::from_bytes(&bytes).map_err(|_| Error::Version)?;
    match useless.pop() {
        Some(reply_to) if useless.is_empty() && is_unix_socket(&reply_to) => {
            Ok(Some(Received { request, reply_to }))
        }
        other => {
            useless.extend(other);
            Err(Error::Version)
        }
    }
}

fn is_unix_socket(fd: &OwnedFd) -> bool {
    socket_domain(fd) == Ok(AddressFamily::UNIX)
}

/// Answers. A client that does not read its answer loses it; the daemon never waits.
pub fn send_reply(reply_to: impl AsFd, answer: Result<(Reply, Vec<OwnedFd>), Refusal>) {
    let (answer, fds): (Result<_, _>, _) = match answer {
        Ok((reply, fds)) => (Ok(reply), fds),
        Err(error) => (Err(error), Vec::new()),
    };
    let encode = |answer: Answer| postcard::to_allocvec(&answer).unwrap_or_default();
    let mut fds: Vec<_> = fds.iter().map(|fd| fd.as_fd()).collect();
    let mut bytes = encode((answer, fds.len() as u32));
    if bytes.len() >= MAX_MESSAGE {
        let too_long = Refusal::new(Cause::TooLong, "the answer is too long for one message");
        fds.clear();
        bytes = encode((Err(too_long), 0));
    }
    let (first, rest) = fds.split_at(fds.len().min(MAX_FDS));
    let messages = [(&bytes[..], first)].into_iter();
    for (bytes, fds) in messages.chain(rest.chunks(MAX_FDS).map(|fds| (&[][..], fds))) {
        if send(reply_to.as_fd(), bytes, fds, SendFlags::DONTWAIT).is_err() {
            return;
        }
    }
}

/// Tells a client, before it has asked anything, why it is not served. Close the connection then.
pub fn refuse(connection: impl AsFd, why: &Refusal) {
    let bytes = postcard::to_allocvec(why).unwrap_or_default();
    // As with an answer: a client that has no room for it loses it.
    let _ = send(connection.as_fd(), &bytes, &[], SendFlags::DONTWAIT);
}

/// Why the daemon has closed a connection, if it has said so.
pub(crate) fn refusal(connection: BorrowedFd<'_>) -> Option<Refusal> {
    // That a request of ours was not read is told first, once.
    let told = (0..2).find_map(|_| receive(connection, RecvFlags::DONTWAIT).ok());
    let (bytes, _) = told.flatten()?;
    postcard::from_bytes(&bytes).ok()
}

/// Takes what a reply holds off the bytes, and returns what is left of them.
pub(crate) type Decode<'a> = dyn FnMut(&[u8]) -> Option<&[u8]> + 'a;

/// Waits for the answer, which is of this variant, and returns the descriptors that belong to it.
pub(crate) fn receive_reply(
    pair: BorrowedFd<'_>,
    variant: u32,
    decode: &mut Decode<'_>,
) -> Result<Vec<OwnedFd>, Error> {
    let (bytes, mut fds) = receive_some(pair)?;
    let count = take_reply(&bytes, variant, decode)?;
    while fds.len() < count as usize {
        fds.extend(receive_some(pair)?.1);
    }
    Ok(fds)
}

/// Takes an [`Answer`] apart: its success, the variant of the reply, what that holds, and how many
/// descriptors belong to it.
fn take_reply(bytes: &[u8], variant: u32, decode: &mut Decode<'_>) -> Result<u32, Error> {
    let (success, bytes): (Result<u32, Refusal>, _) = take(bytes)?;
    if success? != variant {
        return Err(Error::Version);
    }
    let (count, _) = take(decode(bytes).ok_or(Error::Version)?)?;
    Ok(count)
}

fn take<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<(T, &'a [u8]), Error> {
    postcard::take_from_bytes(bytes).map_err(|_| Error::Version)
}

fn receive_some(pair: BorrowedFd<'_>) -> Result<Datagram, Error> {
    let eof = || Error::Lost(io::ErrorKind::UnexpectedEof.into());
    receive(pair, RecvFlags::empty())?.ok_or_else(eof)
}

#[cfg(test)]
mod tests {
    use rustix::net::{SocketFlags, SocketType, socketpair};

    use super::*;
    use crate::answer::Answer as _;

    /// A port with many queues has more descriptors than a message takes.
    #[test]
    fn an_answer_has_as_many_descriptors_as_it_needs() {
        for count in [0, 1, MAX_FDS, MAX_FDS + 1] {
            let (mine, theirs) =
                socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                    .expect("a pair of sockets");
            let fds = (0..count).map(|_| theirs.try_clone().expect("a descriptor")).collect();
            send_reply(theirs, Ok((Reply::Done, fds)));
            let fds = receive_reply(mine.as_fd(), <()>::VARIANT, &mut |bytes| Some(bytes));
            let fds = fds.expect("an answer");
            assert_eq!(fds.len(), count);
        }
    }
}
