//! Attacks on the daemon's socket: what no client would say, or does not wait for.

use std::{io::IoSlice, mem::MaybeUninit, path::Path, thread};

use ringway::Error;
use ringway_proto::{Request, VERSION};
use ringway_testkit::lingering;
use rustix::{
    fd::{AsFd, OwnedFd},
    io::Errno,
    net::{
        AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags,
        SocketType, sendmsg, socketpair,
    },
};

use super::Attacker;
use crate::{Random, connect};

/// Rounds and connections of an attack's round.
const ROUNDS: usize = 100;

fn say(socket: &OwnedFd, bytes: &[u8], fds: &[&OwnedFd]) -> Result<usize, Errno> {
    let fds: Vec<_> = fds.iter().map(|fd| fd.as_fd()).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(64))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    assert!(fds.is_empty() || ancillary.push(SendAncillaryMessage::ScmRights(&fds)));
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    sendmsg(socket, &[IoSlice::new(bytes)], &mut ancillary, flags)
}

fn pair_of_sockets() -> (OwnedFd, OwnedFd) {
    socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
        .expect("there are descriptors left")
}

fn question() -> Vec<u8> {
    let request = postcard::to_allocvec(&Request::Ports { from: 0 }).expect("it has a form");
    // The version goes before it.
    [&[VERSION], &request[..]].concat()
}

/// Says random things, `rounds` times on a new connection.
pub fn garbage(socket: &Path, random: &mut Random, rounds: usize) {
    let mut bytes = vec![0; 4096];
    for round in 0..rounds {
        let Ok(socket) = connect(socket) else { continue };
        let (mine, reply_to) = pair_of_sockets();
        for _ in 0..random.below(4) {
            let len = random.below(if round % 10 == 0 { 4096 } else { 64 }) as usize;
            random.fill(&mut bytes);
            // The version byte, and a request's number that exists, lead further in.
            bytes[0] = if random.below(4) == 0 { bytes[0] } else { VERSION };
            bytes[1] = if random.below(2) == 0 { bytes[1] } else { bytes[1] % 20 };
            let fds: &[&OwnedFd] = match random.below(4) {
                0 => &[],
                1 => &[&reply_to],
                2 => &[&reply_to, &mine],
                _ => &[&reply_to; 64],
            };
            if say(&socket, &bytes[..len], fds).is_err() {
                break; // The daemon has hung up already.
            }
        }
    }
}

/// Connects, many times at once, and lets go; how often.
pub fn connections(socket: &Path, count: usize) -> usize {
    let open: Vec<_> = (0..count).map_while(|_| connect(socket).ok()).collect();
    open.len()
}

/// Asks and asks, and never reads; then lets the place of the answer go before it comes. Returns how often
/// the daemon has taken a question that it cannot answer.
pub fn unread_answers(socket: &Path, enough: usize) -> usize {
    let Ok(socket) = connect(socket) else { return 0 };
    let (_unread, reply_to) = pair_of_sockets();
    let question = question();
    let mut asked = 0;
    while asked < enough {
        match say(&socket, &question, &[&reply_to]) {
            Ok(_) => asked += 1,
            Err(Errno::AGAIN) => thread::yield_now(),
            Err(_) => return asked,
        }
    }
    for _ in 0..enough / 10 {
        let (unread, reply_to) = pair_of_sockets();
        drop(unread);
        while say(&socket, &question, &[&reply_to]) == Err(Errno::AGAIN) {
            thread::yield_now();
        }
    }
    asked
}

/// Puts sockets that take an hour to close wherever a client can put them, `rounds` times; after each it
/// does `then`. The sockets can be closed at last when this returns.
pub fn slow_to_close(socket: &Path, rounds: usize, mut then: impl FnMut()) {
    let question = question();
    let mut others = Vec::new();
    // The daemon may be faster than we are to close it: then it is we who wait.
    let send = |socket: &OwnedFd, bytes: &[u8], fds: Vec<OwnedFd>| {
        // It may have hung up by now.
        let _ = say(socket, bytes, &fds.iter().collect::<Vec<_>>());
        thread::spawn(move || drop(fds));
    };
    let mut slow = || {
        let (slow, other) = lingering();
        others.push(other);
        slow
    };
    for _ in 0..rounds {
        let (Ok(first), Ok(second)) = (connect(socket), connect(socket)) else { continue };
        let (reply_end, _mine) = pair_of_sockets();
        // In the socket that the answer goes to.
        let (mine, holder) = pair_of_sockets();
        send(&mine, b"x", vec![slow(), slow()]);
        send(&first, &question, vec![holder]);
        // Where none is asked for.
        send(&second, &question, vec![reply_end, slow()]);
        // Behind what ends the connection, twice.
        for end in [&b"\0"[..], b""] {
            let Ok(ended) = connect(socket) else { continue };
            send(&ended, end, vec![slow()]);
            send(&ended, &question, vec![slow()]);
        }
        then();
    }
    drop(others);
}

pub(super) fn garbage_round(attacker: &Attacker) -> Result<String, Error> {
    garbage(&attacker.socket, &mut attacker.random.borrow_mut(), ROUNDS);
    Ok(format!("{ROUNDS} connections"))
}

pub(super) fn connections_round(attacker: &Attacker) -> Result<String, Error> {
    let count = connections(&attacker.socket, 10 * ROUNDS);
    Ok(format!("{count} connections of {}", 10 * ROUNDS))
}

pub(super) fn unread_round(attacker: &Attacker) -> Result<String, Error> {
    let asked = unread_answers(&attacker.socket, 10 * ROUNDS);
    Ok(format!("{asked} questions"))
}

pub(super) fn linger_round(attacker: &Attacker) -> Result<String, Error> {
    slow_to_close(&attacker.socket, ROUNDS / 10, || {});
    Ok(format!("{} sockets", 6 * ROUNDS / 10))
}
