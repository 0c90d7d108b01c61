//! Datagrams with descriptors.

use std::{
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
};

use ringway_proto::{
    Cause, Error as Refusal, NO_VERSION, OLDEST, Reply, Request, VERSION, Versions, in_version,
};
use rustix::{
    event::{PollFd, PollFlags, poll},
    fd::{AsFd, BorrowedFd, OwnedFd},
    net::{
        AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
        SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrAny, SocketType,
        getpeername, getsockname, recvmsg, sendmsg,
        sockopt::{socket_domain, socket_type},
    },
};

use serde::Deserialize;

use crate::{Error, sys};

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
    /// The version that it is in, and that the answer is to be in.
    pub version: u8,
    pub request: Request,
    /// Where the reply goes.
    pub reply_to: OwnedFd,
}

/// Sends one message with these descriptors, to a process of the same build.
pub fn send(
    socket: BorrowedFd<'_>,
    bytes: &[u8],
    fds: &[BorrowedFd<'_>],
    flags: SendFlags,
) -> io::Result<()> {
    send_in(socket, VERSION, bytes, fds, flags)
}

/// Sends one message of this version with these descriptors.
fn send_in(
    socket: BorrowedFd<'_>,
    version: u8,
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
            &[IoSlice::new(&[version]), IoSlice::new(bytes)],
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

/// One message of a process of the same build; `None` is the end.
pub fn receive(socket: BorrowedFd<'_>, flags: RecvFlags) -> Result<Option<Datagram>, Error> {
    let mut fds = Vec::new();
    match receive_with(socket, flags, &mut fds)? {
        None => Ok(None),
        Some((VERSION, bytes)) => Ok(Some((bytes, fds))),
        Some(_) => Err(Error::Malformed),
    }
}

/// One message and the version that it is in. The descriptors are added to `fds` whatever comes of the rest.
fn receive_with(
    socket: BorrowedFd<'_>,
    flags: RecvFlags,
    fds: &mut Vec<OwnedFd>,
) -> Result<Option<(u8, Vec<u8>)>, Error> {
    let mut bytes = vec![0; MAX_MESSAGE];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let got = loop {
        let mut iov = [IoSliceMut::new(&mut bytes)];
        match recvmsg(socket, &mut iov, &mut ancillary, flags | RecvFlags::CMSG_CLOEXEC) {
            Err(rustix::io::Errno::INTR) => continue,
            result => break result.map_err(Error::in_call)?,
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
        let source = io::Error::from_raw_os_error(libc::EMFILE);
        return Err(Error::NoDescriptors { source, is_done: true });
    }
    if got.flags.contains(ReturnFlags::TRUNC) {
        return Err(Error::Malformed);
    }
    let version = bytes.remove(0);
    Ok(Some((version, bytes)))
}

/// Sends a request in this version; the reply comes to the other end of `reply_to`.
pub(crate) fn send_request(
    connection: BorrowedFd<'_>,
    version: u8,
    request: &Request,
    reply_to: BorrowedFd<'_>,
) -> Result<(), Error> {
    let bytes = in_version(version, || postcard::to_allocvec(request));
    let bytes = bytes.map_err(|_| Error::TooNew { daemon: version })?;
    send_in(connection, version, &bytes, &[reply_to], SendFlags::empty()).map_err(Error::in_call)
}

/// Takes a request off a connection, without waiting. `Ok(None)`: nothing (more) there for
/// now. `Err`: the peer has gone, or does not speak the protocol; drop the connection.
///
/// A request in a version that the daemon does not speak, or for what it does not know, is answered here.
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
        Err(Error::NoDescriptors { .. }) => return Ok(None),
        other => other?,
    };
    let (version, bytes) = received.ok_or(Error::Lost(io::ErrorKind::UnexpectedEof.into()))?;
    let reply_to = match useless.pop() {
        Some(reply_to) if useless.is_empty() && is_answer_end(&reply_to) => reply_to,
        other => {
            useless.extend(other);
            return Err(Error::Malformed);
        }
    };
    if !Versions::SPOKEN.contains(version) {
        tell_versions(&reply_to);
    } else if let Some(request) = in_version(version, || read_request(&bytes)) {
        return Ok(Some(Received { version, request, reply_to }));
    } else {
        let _ = send_reply(&reply_to, version, Err(unknown()));
    }
    useless.push(reply_to);
    Ok(None)
}

/// What came is no request of the version that it says it is in.
fn unknown() -> Refusal {
    const PROBLEM: &str =
        concat!("ringwayd ", env!("CARGO_PKG_VERSION"), " does not know what is asked for");
    Refusal::new(Cause::Unsupported, PROBLEM).remedy("upgrade it to the version of the program")
}

/// A request of the version that is spoken, and nothing behind it: that would be asked for in vain.
fn read_request(bytes: &[u8]) -> Option<Request> {
    let (request, rest) = postcard::take_from_bytes(bytes).ok()?;
    rest.is_empty().then_some(request)
}

/// Which versions this daemon speaks.
fn tell_versions(reply_to: &OwnedFd) {
    let Versions { oldest, newest } = Versions::SPOKEN;
    let _ = send_in(reply_to.as_fd(), NO_VERSION, &[oldest, newest], &[], SendFlags::DONTWAIT);
}

/// Whether an answer may be sent into a descriptor: it is an end of a pair.
///
/// A socket that was connected leads to another program: a service manager, a log. That would take an answer, with
/// texts of the client's in it, for a message of this process. A socket for datagrams can be connected at any time,
/// also an end of a pair; a socket for messages in order stays connected as it is.
fn is_answer_end(fd: &OwnedFd) -> bool {
    socket_domain(fd) == Ok(AddressFamily::UNIX)
        && socket_type(fd) == Ok(SocketType::SEQPACKET)
        && is_pair(fd)
}

/// Whether a connected Unix socket was made by `socketpair`: after `connect` there is a name at one end, for
/// only a socket with a name can be listened to.
fn is_pair(socket: &OwnedFd) -> bool {
    // One without a name has a family and nothing else.
    let is_unnamed =
        |name: SocketAddrAny| name.addr_len() as usize <= size_of::<libc::sa_family_t>();
    getsockname(socket).is_ok_and(is_unnamed)
        && getpeername(socket).is_ok_and(|name| name.is_none_or(is_unnamed))
}

/// Answers in the version of the request. Returns the length of the answer in bytes.
///
/// A client that does not read its answer loses it; the daemon never waits. It is lost, too, where the socket holds
/// an answer that is not read: that takes memory of the daemon's.
///
/// # Errors
/// Why it is lost. ETOOMANYREFS: the kernel takes no more descriptors that are not read; an answer without them can
/// still be sent.
pub fn send_reply(
    reply_to: impl AsFd,
    version: u8,
    answer: Result<(Reply, Vec<OwnedFd>), Refusal>,
) -> io::Result<usize> {
    if sys::unread_bytes(reply_to.as_fd())? > 0 {
        return Err(io::ErrorKind::WouldBlock.into());
    }
    let (answer, fds): (Result<_, _>, _) = match answer {
        Ok((reply, fds)) => (Ok(reply), fds),
        Err(error) => (Err(error), Vec::new()),
    };
    let encode = |answer: Answer| in_version(version, || postcard::to_allocvec(&answer));
    let mut fds: Vec<_> = fds.iter().map(|fd| fd.as_fd()).collect();
    let why_not = match encode((answer, fds.len() as u32)) {
        Ok(bytes) if bytes.len() < MAX_MESSAGE => Ok(bytes),
        Ok(_) => Err(Refusal::new(Cause::TooLong, "the answer is too long for one message")),
        Err(_) => Err(Refusal::new(Cause::Version, cannot_be_said(version))
            .remedy("start the program again with the library of this ringwayd")),
    };
    let bytes = why_not.or_else(|refusal| {
        fds.clear();
        encode((Err(refusal), 0))
    });
    let bytes = bytes.unwrap_or_default();
    let (first, rest) = fds.split_at(fds.len().min(MAX_FDS));
    let messages = [(&bytes[..], first)].into_iter();
    for (bytes, fds) in messages.chain(rest.chunks(MAX_FDS).map(|fds| (&[][..], fds))) {
        send_in(reply_to.as_fd(), version, bytes, fds, SendFlags::DONTWAIT)?;
    }
    Ok(bytes.len())
}

/// What an answer has that a version has no words for.
fn cannot_be_said(version: u8) -> String {
    format!(
        "version {version} of the control protocol, which the program speaks, lacks what there is to answer"
    )
}

/// Tells a client, before it has asked anything, why it is not served: in the oldest version. Close the connection
/// then.
pub fn refuse(connection: impl AsFd, why: &Refusal) {
    let bytes = in_version(OLDEST, || postcard::to_allocvec(why)).unwrap_or_default();
    // As with an answer: a client that has no room for it loses it.
    let _ = send_in(connection.as_fd(), OLDEST, &bytes, &[], SendFlags::DONTWAIT);
}

/// Why the daemon has closed a connection, if it has said so.
pub(crate) fn refusal(connection: BorrowedFd<'_>) -> Option<Error> {
    let mut fds = Vec::new();
    // That a request of ours was not read is told first, once.
    let told = (0..2).find_map(|_| receive_with(connection, RecvFlags::DONTWAIT, &mut fds).ok());
    let (version, bytes) = told.flatten()?;
    if !Versions::SPOKEN.contains(version) {
        return Some(Error::Version { daemon: Versions { oldest: version, newest: version } });
    }
    in_version(version, || postcard::from_bytes(&bytes)).ok().map(Error::Refused)
}

/// Takes what a reply holds off the bytes, and returns what is left of them.
pub(crate) type Decode<'a> = dyn FnMut(&[u8]) -> Option<&[u8]> + 'a;

/// Waits for the answer, which is in this version and of this variant, and returns the descriptors that belong to it.
pub(crate) fn receive_reply(
    pair: BorrowedFd<'_>,
    version: u8,
    variant: u32,
    decode: &mut Decode<'_>,
) -> Result<Vec<OwnedFd>, Error> {
    let mut fds = Vec::new();
    let bytes = receive_some(pair, version, &mut fds)?;
    let count = in_version(version, || take_reply(&bytes, variant, decode))?;
    while fds.len() < count as usize {
        receive_some(pair, version, &mut fds)?;
    }
    Ok(fds)
}

/// Takes an [`Answer`] apart: its success, the variant of the reply, what that holds, and how many
/// descriptors belong to it.
fn take_reply(bytes: &[u8], variant: u32, decode: &mut Decode<'_>) -> Result<u32, Error> {
    let (success, bytes): (Result<u32, Refusal>, _) = take(bytes)?;
    if success? != variant {
        return Err(Error::Malformed);
    }
    let (count, _) = take(decode(bytes).ok_or(Error::Malformed)?)?;
    Ok(count)
}

fn take<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<(T, &'a [u8]), Error> {
    postcard::take_from_bytes(bytes).map_err(|_| Error::Malformed)
}

/// A message of this version; or the daemon says which versions it speaks.
fn receive_some(
    pair: BorrowedFd<'_>,
    version: u8,
    fds: &mut Vec<OwnedFd>,
) -> Result<Vec<u8>, Error> {
    match receive_with(pair, RecvFlags::empty(), fds)? {
        Some((is, bytes)) if is == version => Ok(bytes),
        Some((NO_VERSION, bytes)) => match bytes[..] {
            [oldest, newest, ..] => Err(Error::Version { daemon: Versions { oldest, newest } }),
            _ => Err(Error::Malformed),
        },
        Some(_) => Err(Error::Malformed),
        None => Err(Error::Lost(io::ErrorKind::UnexpectedEof.into())),
    }
}

#[cfg(test)]
mod tests {
    use rustix::net::{
        SocketAddrUnix, SocketFlags, accept, bind, connect, listen, socket, socketpair,
    };

    use super::*;
    use crate::answer::Answer as _;

    /// What is not read takes the daemon's memory: one answer in a socket, and no more.
    #[test]
    fn an_answer_comes_when_the_one_before_was_read() {
        let (mine, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .expect("a pair of sockets");
        let answer = || send_reply(&theirs, VERSION, Ok((Reply::Done, Vec::new())));
        let read = || receive_reply(mine.as_fd(), VERSION, <()>::VARIANT, &mut |bytes| Some(bytes));
        for _ in 0..3 {
            answer().expect("it holds none");
            let refused = answer().map_err(|e| e.kind());
            assert_eq!(refused, Err(io::ErrorKind::WouldBlock));
            read().expect("an answer");
        }
    }

    /// Each end that a client could send in place of one of a pair: the answer would reach another program.
    #[test]
    fn answers_go_into_pairs_alone() {
        let named = |name: &str| {
            let name = format!("ringway-{}-{name}", std::process::id());
            SocketAddrUnix::new_abstract_name(name.as_bytes()).expect("a short name")
        };
        let unix = |kind| socket(AddressFamily::UNIX, kind, None).expect("a socket");
        let pair = |kind| {
            let flags = SocketFlags::CLOEXEC;
            socketpair(AddressFamily::UNIX, kind, flags, None).expect("a pair of sockets")
        };
        let (one, other) = pair(SocketType::SEQPACKET);
        assert!(is_answer_end(&one) && is_answer_end(&other));
        drop(other);
        assert!(is_answer_end(&one), "a client that has gone is no reason to end its connection");

        for (name, kind) in [("seq", SocketType::SEQPACKET), ("stream", SocketType::STREAM)] {
            let address = named(name);
            let (listener, client) = (unix(kind), unix(kind));
            bind(&listener, &address).expect("the name is free");
            listen(&listener, 1).expect("it has a name");
            connect(&client, &address).expect("it listens");
            let accepted = accept(&listener).expect("a client is there");
            for wrong in [client, accepted, listener, unix(kind)] {
                assert!(!is_answer_end(&wrong), "{kind:?}");
            }
        }
        let address = named("service");
        let service = unix(SocketType::DGRAM);
        bind(&service, &address).expect("the name is free");
        let (turned, other) = pair(SocketType::DGRAM);
        connect(&turned, &address).expect("datagram sockets are connected anew");
        for wrong in [turned, other, service, pair(SocketType::STREAM).0] {
            assert!(!is_answer_end(&wrong));
        }
        let file = std::fs::File::open("/dev/null").expect("each machine has it");
        assert!(!is_answer_end(&file.into()));
    }

    /// A port with many queues has more descriptors than a message takes.
    #[test]
    fn an_answer_has_as_many_descriptors_as_it_needs() {
        for count in [0, 1, MAX_FDS, MAX_FDS + 1] {
            let (mine, theirs) =
                socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                    .expect("a pair of sockets");
            let fds = (0..count).map(|_| theirs.try_clone().expect("a descriptor")).collect();
            send_reply(theirs, VERSION, Ok((Reply::Done, fds))).expect("there is room");
            let fds = receive_reply(mine.as_fd(), VERSION, <()>::VARIANT, &mut |bytes| Some(bytes));
            let fds = fds.expect("an answer");
            assert_eq!(fds.len(), count);
        }
    }
}
