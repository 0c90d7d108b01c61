//! The end of a client's connection, by the daemon's loop.
//!
//! A connection with descriptors in its queue closes them with it, which takes as long as their maker likes: that is
//! for the [closer](crate::closer). All others are closed here at once. So an account whose descriptors take for ever
//! adds to them only with further descriptors, of which the kernel lets each user queue as many as a process of the
//! user may have open (RLIMIT_NOFILE, `unix(7)`).

use std::{io::IoSliceMut, mem::MaybeUninit};

use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    io::Errno,
    net::{
        RecvAncillaryBuffer, RecvFlags, ReturnFlags, Shutdown, recvmsg, shutdown,
        sockopt::set_socket_passcred,
    },
};

/// More than a queue holds on most systems (`net.unix.max_dgram_qlen`): it is not looked at any further.
const MOST: usize = 64;

/// What is first in the queue of a connection into which nothing more is sent.
#[derive(Debug, PartialEq, Eq)]
enum Head {
    Nothing,
    Bytes,
    Descriptors,
    /// It cannot be told.
    Unknown,
}

/// Ends a connection, and closes it unless there are descriptors in it: then it comes back. What was sent to the client
/// can be read still.
pub fn hang_up(connection: OwnedFd) -> Option<OwnedFd> {
    // The kernel takes no message any more, so what is not there now does not come.
    if shutdown(&connection, Shutdown::Both).is_err() {
        return Some(connection);
    }
    for _ in 0..MOST {
        match head(connection.as_fd()) {
            Head::Nothing => return None,
            Head::Bytes if take(connection.as_fd(), RecvFlags::empty()).is_some() => {}
            Head::Bytes | Head::Descriptors | Head::Unknown => return Some(connection),
        }
    }
    Some(connection)
}

fn head(connection: BorrowedFd<'_>) -> Head {
    let has = |credentials: bool| {
        set_socket_passcred(connection, credentials).ok()?;
        let flags = take(connection, RecvFlags::PEEK)?;
        // A look without room for them installs no descriptors.
        Some(flags.contains(ReturnFlags::CTRUNC))
    };
    // There is no room for what comes with a message: credentials with each if they are asked for, else descriptors
    // alone. The end has neither, and is told from an empty message by that.
    match (has(true), has(false)) {
        (Some(false), Some(false)) => Head::Nothing,
        (Some(true), Some(false)) => Head::Bytes,
        (Some(true), Some(true)) => Head::Descriptors,
        _ => Head::Unknown,
    }
}

/// Takes the first message, or looks at it, without what comes with it. `None`: it fails.
fn take(connection: BorrowedFd<'_>, flags: RecvFlags) -> Option<ReturnFlags> {
    let mut byte = [0];
    let mut space: [MaybeUninit<u8>; 0] = [];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut bytes = [IoSliceMut::new(&mut byte)];
    let flags = flags | RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let mut receive = || recvmsg(connection, &mut bytes, &mut ancillary, flags);
    let got = match receive() {
        // That the client has gone without reading what it was told is said first, once.
        Err(Errno::CONNRESET) => receive(),
        got => got,
    };
    got.ok().map(|got| got.flags)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use ringway_ipc::send;
    use rustix::net::{
        AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags,
        SocketType, recv, sendmsg, socketpair,
    };

    use super::*;

    fn pair() -> (OwnedFd, OwnedFd) {
        let (kind, flags) = (SocketType::SEQPACKET, SocketFlags::CLOEXEC);
        socketpair(AddressFamily::UNIX, kind, flags, None).unwrap()
    }

    fn open_descriptors() -> usize {
        fs::read_dir("/proc/self/fd").unwrap().count()
    }

    fn send_empty(to: &OwnedFd) {
        rustix::net::send(to, &[], SendFlags::empty()).unwrap();
    }

    /// Descriptors are found behind any messages, and come neither into this process nor out of the queue.
    #[test]
    fn descriptors_are_not_closed_here() {
        let null = fs::File::open("/dev/null").unwrap();
        for before in 0..4 {
            for is_gone in [false, true] {
                let (ours, theirs) = pair();
                for number in 0..before {
                    match number % 2 {
                        0 => send_empty(&theirs),
                        _ => send(theirs.as_fd(), b"bytes", &[], SendFlags::empty()).unwrap(),
                    }
                }
                send(theirs.as_fd(), b"x", &[null.as_fd()], SendFlags::empty()).unwrap();
                let _theirs = (!is_gone).then_some(theirs);
                let back = hang_up(ours).expect("it has a descriptor in its queue");
                assert_eq!(head(back.as_fd()), Head::Descriptors);
            }
        }
    }

    /// The same where the message is empty but for them.
    #[test]
    fn descriptors_without_bytes_are_found() {
        let null = fs::File::open("/dev/null").unwrap();
        let (ours, theirs) = pair();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let fds = [null.as_fd()];
        assert!(ancillary.push(SendAncillaryMessage::ScmRights(&fds)));
        sendmsg(&theirs, &[], &mut ancillary, SendFlags::empty()).unwrap();
        assert_eq!(head(ours.as_fd()), Head::Descriptors);
        assert!(hang_up(ours).is_some());
    }

    /// Without descriptors it is closed, whether the client is there or not; and the client reads what it was told.
    #[test]
    fn all_else_is_closed() {
        for messages in [0, 1, 5] {
            for is_gone in [false, true] {
                let (ours, theirs) = pair();
                for _ in 0..messages {
                    send_empty(&theirs);
                    send(theirs.as_fd(), b"bytes", &[], SendFlags::empty()).unwrap();
                }
                send(ours.as_fd(), b"why", &[], SendFlags::empty()).unwrap();
                // If it goes, then without reading that.
                let theirs = (!is_gone).then_some(theirs);
                assert!(hang_up(ours).is_none());
                let Some(theirs) = theirs else { continue };
                let mut told = [0; 16];
                assert_eq!(recv(&theirs, &mut told, RecvFlags::empty()).map(|(n, _)| n), Ok(4));
                assert_eq!(send_again(&theirs), Err(Errno::PIPE));
            }
        }
    }

    fn send_again(to: &OwnedFd) -> Result<usize, Errno> {
        rustix::net::send(to, b"x", SendFlags::NOSIGNAL)
    }

    /// Each look is at the queue alone.
    #[test]
    fn a_look_opens_nothing() {
        let null = fs::File::open("/dev/null").unwrap();
        let (ours, theirs) = pair();
        send(theirs.as_fd(), b"x", &[null.as_fd(); 100], SendFlags::empty()).unwrap();
        let before = open_descriptors();
        assert_eq!(head(ours.as_fd()), Head::Descriptors);
        // Other tests of this process open some, and far fewer.
        assert!(open_descriptors() < before + 100);
    }
}
