//! A client: a few connections, and what it was granted.

use std::{io::IoSlice, mem::MaybeUninit};

use ringway_ipc::{MAX_FDS, receive};
use ringway_proto::{Error as Refusal, Reply};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fd::{AsFd, BorrowedFd, OwnedFd},
    io::Errno,
    net::{RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketType, sendmsg},
};

use crate::{
    daemon::{Daemon, LIMIT},
    descriptors::{Kept, pair},
};

const CONNECTIONS: usize = 3;

pub struct Client {
    daemon: &'static Daemon,
    connections: [Option<OwnedFd>; CONNECTIONS],
    /// What the daemon has sent, and the other ends of what was sent to it.
    kept: Kept,
}

/// An answer, and the descriptors that belong to it.
type Answer = (Result<Reply, Refusal>, Vec<OwnedFd>);

fn send(socket: &OwnedFd, message: &[u8], fds: &[BorrowedFd<'_>]) -> Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    assert!(fds.is_empty() || ancillary.push(SendAncillaryMessage::ScmRights(fds)));
    let parts = [IoSlice::new(message)];
    sendmsg(socket, &parts, &mut ancillary, SendFlags::DONTWAIT | SendFlags::NOSIGNAL).map(drop)
}

/// Waits for the socket to be ready for that, or at its end.
fn wait(socket: &OwnedFd, flags: PollFlags, what: &str) {
    let limit = Timespec { tv_sec: LIMIT.as_secs() as i64, tv_nsec: 0 };
    loop {
        match poll(&mut [PollFd::new(socket, flags)], Some(&limit)) {
            // The fuzzer's clock.
            Err(Errno::INTR) => {}
            heard => return assert_eq!(heard, Ok(1), "{what}"),
        }
    }
}

/// Asks as every client does. `None`: the daemon has hung up.
pub fn question(connection: &OwnedFd, message: &[u8]) -> Option<Answer> {
    let [ours, theirs] = pair(SocketType::SEQPACKET);
    loop {
        match send(connection, message, &[theirs.as_fd()]) {
            // The daemon has not read what was sent before.
            Err(Errno::AGAIN) => {
                wait(connection, PollFlags::OUT, "the daemon does not read");
            }
            Err(_) => return None,
            Ok(()) => break,
        }
    }
    drop(theirs);
    let (mut answer, mut count, mut fds) = (None, 0, Vec::new());
    while answer.is_none() || fds.len() < count {
        wait(&ours, PollFlags::IN, "the daemon does not answer");
        let (bytes, more) = receive(ours.as_fd(), RecvFlags::DONTWAIT).ok()??;
        fds.extend(more);
        if answer.is_none() {
            let read = postcard::from_bytes::<(Result<Reply, Refusal>, u32)>(&bytes);
            let (reply, fds) = read.expect("the answer is whole");
            (answer, count) = (Some(reply), fds as usize);
        }
    }
    Some((answer?, fds))
}

impl Client {
    pub fn new(daemon: &'static Daemon) -> Client {
        Client { daemon, connections: Default::default(), kept: Kept::default() }
    }

    fn connection(&mut self, which: usize) -> &OwnedFd {
        let daemon = self.daemon;
        self.connections[which % CONNECTIONS].get_or_insert_with(|| daemon.connect())
    }

    /// A message as a client sends it: the answer comes, unless the daemon has hung up.
    pub fn ask(&mut self, connection: usize, message: &[u8]) {
        match question(self.connection(connection), message) {
            Some((answer, fds)) => {
                match answer {
                    Ok(Reply::Granted(grant)) => {
                        let doorbells = grant.rings.iter().map(|ring| usize::from(ring.doorbell));
                        assert!(doorbells.max().unwrap_or(0) < fds.len());
                    }
                    Ok(_) => {}
                    Err(refusal) => assert!(!refusal.problem.is_empty()),
                }
                self.kept.granted.extend(fds);
            }
            None => self.disconnect(connection),
        }
    }

    /// A message of any bytes, with descriptors of these kinds, `copies` of each. Nothing need come of it.
    pub fn send(&mut self, connection: usize, message: &[u8], kinds: &[u8], copies: usize) {
        self.connection(connection);
        let Some(socket) = &self.connections[connection % CONNECTIONS] else { return };
        let made: Vec<_> =
            kinds.iter().filter_map(|kind| self.kept.descriptor(*kind, socket)).collect();
        let fds: Vec<_> = made.iter().flat_map(|fd| vec![fd.as_fd(); copies]).collect();
        let sent = send(socket, message, &fds);
        drop(fds);
        self.kept.keep(made);
        match sent {
            // There is no room now; too many are on their way, in sockets within sockets.
            Ok(()) | Err(Errno::AGAIN | Errno::TOOMANYREFS) => {}
            Err(_) => self.disconnect(connection),
        }
    }

    pub fn disconnect(&mut self, connection: usize) {
        self.connections[connection % CONNECTIONS] = None;
    }

    pub fn let_go(&mut self) {
        self.kept = Kept::default();
    }
}
