//! Attacks on the daemon's socket: what no client would say, or does not wait for.

use std::{io::IoSlice, iter, mem::MaybeUninit, path::Path, thread};

use ringway::Error;
use ringway_proto::{Registration, Request, VERSION};
use ringway_testkit::lingering;
use rustix::{
    fd::{AsFd, OwnedFd},
    io::Errno,
    net::{
        AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
        SocketFlags, SocketType, recv, sendmsg, socketpair,
    },
    process::{Resource, getrlimit},
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

/// Has a port with many rings, and asks for its descriptors again and again, without ever taking any: they are in
/// flight, which the kernel counts for the daemon's user. Returns how often it was answered.
fn untaken(attacker: &Attacker) -> Result<usize, Errno> {
    const RINGS: u16 = 16;
    // With those of a daemon's usual limit of open files in flight, 65 each, no other user would be granted a port.
    const ENOUGH: usize = 4000;
    const PATIENCE: usize = 10_000;
    let own = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let enough = usize::try_from(own.saturating_sub(100)).unwrap_or(ENOUGH).min(ENOUGH);
    let connection = connect(&attacker.socket).map_err(|_| Errno::CONNREFUSED)?;
    let registration = Registration {
        tx_rings: RINGS,
        rx_rings: RINGS,
        tx_slots: 16,
        rx_slots: 16,
        ..Registration::default()
    };
    let (name, options) = (attacker.port("untaken"), Box::default());
    let mut mine = Vec::new();
    for request in [Request::Register { name, registration, options }]
        .into_iter()
        .chain(iter::repeat_n(Request::Describe, enough))
    {
        let request = postcard::to_allocvec(&request).expect("it has a form");
        let (end, reply_to) = pair_of_sockets();
        let asked = || say(&connection, &[&[VERSION], &request[..]].concat(), &[&reply_to]);
        let mut patience = PATIENCE;
        let mut said = asked();
        while said == Err(Errno::AGAIN) && patience > 0 {
            thread::yield_now();
            (said, patience) = (asked(), patience - 1);
        }
        if said.is_err() {
            // It is not listened to any more.
            break;
        }
        mine.push(end);
    }
    drop(connection);
    let answered = |end: &&OwnedFd| recv(end, &mut [0], RecvFlags::TRUNC).is_ok_and(|(n, _)| n > 0);
    Ok(mine.iter().filter(answered).count())
}

pub(super) fn untaken_round(attacker: &Attacker) -> Result<String, Error> {
    let answered = untaken(attacker).unwrap_or(0);
    Ok(format!("{answered} answers"))
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
