//! What goes to the helper and back: a socket for each request, on which the request goes one way and
//! the answer the other, each in as many messages as it needs.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use ringway_ipc::{Error, MAX_FDS, receive, send};
use ringway_nic_setup::Parcel;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, socketpair};
use serde::{Deserialize, Serialize};

/// Bytes in a message.
const CHUNK: usize = 64 << 10;

/// More than any request to the helper or its answer has: filters of 224 queues, and sockets of as many.
pub const OF_REQUEST: usize = 16 << 20;
const MOST_FDS: u32 = 1024;

/// Goes before a parcel.
#[derive(Serialize, Deserialize)]
struct Header {
    bytes: u32,
    fds: u32,
}

/// Two ends of a connection.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let (kind, flags) = (SocketType::SEQPACKET, SocketFlags::CLOEXEC);
    Ok(socketpair(AddressFamily::UNIX, kind, flags, None)?)
}

/// Sends a parcel, and waits until the other side has taken it.
pub fn send_parcel(socket: &OwnedFd, parcel: &Parcel) -> io::Result<()> {
    let fds: Vec<_> = parcel.fds.iter().map(|fd| fd.as_fd()).collect();
    let header = Header { bytes: parcel.bytes.len() as u32, fds: fds.len() as u32 };
    let header = postcard::to_allocvec(&header).map_err(io::Error::other)?;
    let put =
        |bytes: &[u8], fds: &[BorrowedFd<'_>]| send(socket.as_fd(), bytes, fds, SendFlags::empty());
    put(&header, &[])?;
    fds.chunks(MAX_FDS).try_for_each(|fds| put(&[], fds))?;
    parcel.bytes.chunks(CHUNK).try_for_each(|bytes| put(bytes, &[]))
}

/// Waits for a parcel of at most so many bytes. `UnexpectedEof`: the other side has gone.
pub fn receive_parcel(socket: &OwnedFd, most: usize) -> io::Result<Parcel> {
    let next = || {
        let received =
            receive(socket.as_fd(), RecvFlags::empty()).map_err(|error| match error {
                Error::NoDescriptors { source, .. } => source,
                other => io::Error::other(other),
            })?;
        received.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))
    };
    let (header, _) = next()?;
    let header: Header = postcard::from_bytes(&header).map_err(io::Error::other)?;
    let invalid = || io::Error::from(io::ErrorKind::InvalidData);
    if header.bytes as usize > most || header.fds > MOST_FDS {
        return Err(invalid());
    }
    let mut parcel = Parcel::default();
    while parcel.bytes.len() < header.bytes as usize || parcel.fds.len() < header.fds as usize {
        let (bytes, fds) = next()?;
        if bytes.is_empty() && fds.is_empty() {
            return Err(invalid());
        }
        parcel.bytes.extend(bytes);
        parcel.fds.extend(fds);
    }
    Ok(parcel)
}

#[cfg(test)]
mod tests {
    use std::{fs::File, thread};

    use super::*;

    #[test]
    fn a_parcel_has_any_size() {
        for (bytes, fds) in [(0, 0), (1, 1), (CHUNK, MAX_FDS), (5 * CHUNK + 1, MAX_FDS + 1)] {
            let (ours, theirs) = pair().unwrap();
            let fds = (0..fds).map(|_| File::open("/dev/null").unwrap().into()).collect();
            let sent = Parcel { bytes: (0..bytes).map(|i| i as u8).collect(), fds };
            let received = thread::scope(|scope| {
                scope.spawn(|| send_parcel(&ours, &sent).unwrap());
                receive_parcel(&theirs, OF_REQUEST).unwrap()
            });
            assert_eq!(received.bytes, sent.bytes);
            assert_eq!(received.fds.len(), sent.fds.len());
        }
    }

    #[test]
    fn what_is_none_is_refused() {
        let (ours, theirs) = pair().unwrap();
        let header = Header { bytes: OF_REQUEST as u32 + 1, fds: 0 };
        let header = postcard::to_allocvec(&header).unwrap();
        send(ours.as_fd(), &header, &[], SendFlags::empty()).unwrap();
        assert!(receive_parcel(&theirs, OF_REQUEST).is_err());
        // Half of one.
        let header = Header { bytes: 2, fds: 0 };
        let header = postcard::to_allocvec(&header).unwrap();
        send(ours.as_fd(), &header, &[], SendFlags::empty()).unwrap();
        send(ours.as_fd(), &[0], &[], SendFlags::empty()).unwrap();
        drop(ours);
        assert!(receive_parcel(&theirs, OF_REQUEST).is_err());
    }
}
