//! One request and its answer.

use ringway_proto::{Request, VERSION, Versions};
use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    net::{AddressFamily, SocketFlags, SocketType, socketpair},
};

use crate::{
    Error,
    answer::Answer,
    message::{Decode, receive_reply, refusal, send_request},
};

/// Asks the daemon on `connection`, and waits for the answer that belongs to such a request. Another
/// one is an error, [`Error::Malformed`].
///
/// It asks in the newest version, and again in the newest that an older daemon speaks. That it keeps no note of it
/// costs a request to such a daemon a second message, and takes nothing from a connection that has come from another
/// program.
pub fn call<T: Answer>(
    connection: impl AsFd,
    request: &Request,
) -> Result<(T, Vec<OwnedFd>), Error> {
    let mut answer = None;
    let fds = exchange(connection.as_fd(), request, T::VARIANT, &mut |bytes| {
        let (decoded, rest) = T::decode(bytes)?;
        answer = Some(decoded);
        Some(rest)
    })?;
    Ok((answer.ok_or(Error::Malformed)?, fds))
}

/// All of [`call`] that is the same for every answer, so that programs have it once.
#[inline(never)]
fn exchange(
    connection: BorrowedFd<'_>,
    request: &Request,
    variant: u32,
    decode: &mut Decode<'_>,
) -> Result<Vec<OwnedFd>, Error> {
    match exchange_in(VERSION, connection, request, variant, decode) {
        Err(Error::Version { daemon }) => match daemon.common(Versions::SPOKEN) {
            Some(older) if older < VERSION => {
                exchange_in(older, connection, request, variant, decode)
            }
            _ => Err(Error::Version { daemon }),
        },
        result => result,
    }
}

fn exchange_in(
    version: u8,
    connection: BorrowedFd<'_>,
    request: &Request,
    variant: u32,
    decode: &mut Decode<'_>,
) -> Result<Vec<OwnedFd>, Error> {
    let reply = ask(connection, version, request);
    reply.and_then(|reply| receive_reply(reply.as_fd(), version, variant, decode)).map_err(
        |error| match error {
            // The daemon may have said why it closed the connection.
            Error::Lost(_) => refusal(connection).unwrap_or(error),
            _ => error,
        },
    )
}

/// Asks. The answer comes on the socket.
fn ask(connection: BorrowedFd<'_>, version: u8, request: &Request) -> Result<OwnedFd, Error> {
    // Names of interfaces are meant in the network namespace that the pair is made in.
    let (mine, daemons) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
            .map_err(Error::in_call)?;
    // Our copy of the daemon's end goes with this call, so that a daemon that dies ends the wait.
    send_request(connection, version, request, daemons.as_fd())?;
    Ok(mine)
}
