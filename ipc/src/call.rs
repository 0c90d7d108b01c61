//! One request and its answer.

use ringway_proto::{Reply, Request};
use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    net::{AddressFamily, SocketFlags, SocketType, socketpair},
};

use crate::{
    Error,
    message::{receive_reply, refusal, send_request},
};

/// Asks the daemon on `connection` and waits for the answer.
pub fn call(connection: impl AsFd, request: &Request) -> Result<(Reply, Vec<OwnedFd>), Error> {
    let connection = connection.as_fd();
    let answer = exchange(connection, request);
    answer.map_err(|error| match error {
        Error::Lost(_) => refusal(connection).map_or(error, Error::Refused),
        _ => error,
    })
}

fn exchange(connection: BorrowedFd<'_>, request: &Request) -> Result<(Reply, Vec<OwnedFd>), Error> {
    // Names of interfaces are meant in the network namespace that the pair is made in.
    let (mine, daemons) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
            .map_err(|e| Error::Lost(e.into()))?;
    send_request(connection, request, daemons.as_fd())?;
    // Our copy must go, so that a daemon that dies ends the wait.
    drop(daemons);
    receive_reply(mine.as_fd())
}
