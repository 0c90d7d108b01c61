//! One request and its answer.

use ringway_proto::{Request, VERSION, Versions};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fd::{AsFd, BorrowedFd, OwnedFd},
    io::Errno,
    net::{AddressFamily, RecvFlags, SocketFlags, SocketType, recv, socketpair},
};

use crate::{
    Error,
    answer::Answer,
    message::{Decode, receive_reply, refusal, send_request},
    process::has_ended,
    sys::peer_pid,
};

/// As long as there is no answer before the daemon's process is looked at, and again before it is given up.
const PATIENCE: Timespec = Timespec { tv_sec: 2, tv_nsec: 0 };

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
    let reply = ask(connection, version, request).and_then(|reply| {
        await_answer(connection, reply.as_fd())?;
        Ok(reply)
    });
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

/// Waits until there is an answer, or no more to come. Requests may take as long as they like, of a daemon that lives.
fn await_answer(connection: BorrowedFd<'_>, reply: BorrowedFd<'_>) -> Result<(), Error> {
    let mut hung = None;
    while !is_readable(reply, Some(&PATIENCE)) {
        let found = hung_daemon(connection);
        match found {
            // It had the time to close its sockets.
            Some(pid) if found == hung => return Err(Error::Hung { pid }),
            _ => hung = found,
        }
    }
    Ok(())
}

/// The process that listens for a connection, if it [has ended](has_ended). Where a service manager has made the
/// socket, it is that.
pub fn hung_daemon(connection: impl AsFd) -> Option<u32> {
    peer_pid(connection.as_fd()).ok().filter(|pid| has_ended(*pid))
}

/// What is heard of a daemon on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// It has answered, be it by a refusal.
    Answer,
    Nothing,
    /// It has closed the connection, and not said why: it ends, as a killed process does some time after others
    /// could still connect to it.
    End,
}

/// Asks a daemon something, and waits for an answer for about that time.
pub fn hear(connection: impl AsFd, patience: Timespec) -> Heard {
    let connection = connection.as_fd();
    if let Ok(reply) = ask(connection, VERSION, &Request::Daemon) {
        if !is_readable(reply.as_fd(), Some(&patience)) {
            return Heard::Nothing;
        }
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        if recv(&reply, &mut [0; 1][..], flags).is_ok_and(|(bytes, _)| bytes > 0) {
            return Heard::Answer;
        }
    }
    if refusal(connection).is_some() { Heard::Answer } else { Heard::End }
}

fn is_readable(socket: BorrowedFd<'_>, patience: Option<&Timespec>) -> bool {
    loop {
        match poll(&mut [PollFd::from_borrowed_fd(socket, PollFlags::IN)], patience) {
            Err(Errno::INTR) => {}
            heard => return heard != Ok(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::Read,
        process::{Child, Command, Stdio},
    };

    use rustix::net::{SocketAddrUnix, bind, connect, socket_with};

    use super::*;

    fn socket() -> OwnedFd {
        let kind = SocketType::SEQPACKET;
        socket_with(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None).expect("a socket")
    }

    /// A process that listens at a socket of this one, and answers nothing.
    fn listening(socket: &OwnedFd) -> Child {
        const LISTENS: &str = "import socket, sys; s = socket.socket(fileno=0); s.listen(); print('it listens', flush=True); \
             s.detach(); sys.stdin = None; import time; time.sleep(1000)";
        let mut python = Command::new("python3");
        python.args(["-B", "-c", LISTENS]).stdin(socket.try_clone().expect("a descriptor"));
        let mut child = python.stdout(Stdio::piped()).spawn().expect("it is installed");
        let mut said = [0; 10];
        child.stdout.as_mut().expect("a pipe").read_exact(&mut said).expect("it listens");
        child
    }

    /// A killed process whose sockets stay open, as where the kernel holds it up: requests of its clients
    /// end, and say why.
    #[test]
    fn a_killed_daemon_that_does_not_end_is_not_waited_for() {
        let name = format!("ringway-{}-hung", std::process::id());
        let address = SocketAddrUnix::new_abstract_name(name.as_bytes()).expect("a short name");
        let listener = socket();
        bind(&listener, &address).expect("the name is free");
        let mut child = listening(&listener);
        let connected = || {
            let connection = socket();
            connect(&connection, &address).map(|()| connection).expect("it listens")
        };
        let (asking, other) = (connected(), connected());
        let now = Timespec { tv_sec: 0, tv_nsec: 1 };
        assert_eq!(hung_daemon(&other), None, "it lives");
        assert_eq!(hear(&other, now), Heard::Nothing, "it answers nothing");
        child.kill().expect("it is our child");
        let error = call::<()>(&asking, &Request::Daemon).expect_err("it has gone");
        assert!(matches!(error, Error::Hung { pid } if pid == child.id()), "{error}");
        assert!(error.to_string().contains("/sys/fs/fuse"), "{error}");
        assert_eq!(hung_daemon(&other), Some(child.id()));
        child.wait().expect("it is our child");
    }
}
