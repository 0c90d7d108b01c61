//! Attacks by a virtual machine: what is in its memory is all that its card sees of it.

use std::{
    env,
    fs::File,
    io::Write,
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use ringway::Error;
use ringway_testkit::Folder;
use ringway_vhost::guest::{GUEST_BASE, Guest, Setup};
use rustix::{
    event::{EventfdFlags, eventfd},
    pipe::pipe,
};

use super::Attacker;

/// How long a machine lives, and so many to a card.
const LIFE: Duration = Duration::from_millis(100);
const MACHINES: u64 = 16;
/// Connections that come before each of them, and go at once.
const CONNECTIONS: u64 = 64;
/// Descriptors of no length in a table.
const EMPTY: u16 = 2048;
/// The header of a virtio-net frame.
const HEADER: usize = 12;

/// The card of a machine, which runs as its user.
struct Card(Child);

impl Drop for Card {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn failed(what: &'static str) -> impl Fn(std::io::Error) -> Error {
    move |source| Error::System { what, source }
}

/// Machines one after the other, which send every kind of frame, and write anything into their queues meanwhile.
pub(super) fn machines(attacker: &Attacker) -> Result<String, Error> {
    let folder = Folder::new();
    let socket = folder.path().join("machine");
    let mut card = card(attacker, &socket)?;
    let mut sent = 0;
    for number in 0..MACHINES {
        for _ in 0..CONNECTIONS {
            say_something(attacker, connect(&mut card, &socket)?);
        }
        let stream = connect(&mut card, &socket)?;
        let (packed, events) = (number % 2 == 1, number % 4 > 1);
        let setup = Setup { packed, events, indirect: number % 8 > 3, ..Setup::default() };
        let guest = Guest::over(setup, stream).map_err(failed("a machine"))?;
        sent += live(attacker, guest);
    }
    Ok(format!("{MACHINES} machines sent {sent} frames"))
}

fn card(attacker: &Attacker, socket: &Path) -> Result<Card, Error> {
    let own = env::current_exe().map_err(failed("current_exe"))?;
    // It ends with the attacker.
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(own.with_file_name("ringway"));
    command.args(["vm", "attach", &attacker.switch, "machine", "--socket"]).arg(socket);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().map(Card).map_err(failed("ringway vm attach"))
}

/// Waits until the card listens.
fn connect(card: &mut Card, socket: &Path) -> Result<UnixStream, Error> {
    loop {
        match UnixStream::connect(socket) {
            Ok(stream) => return Ok(stream),
            Err(error) if matches!(card.0.try_wait(), Ok(Some(_))) => {
                return Err(failed("the card has ended")(error));
            }
            // There is no event for a socket that another program is about to make.
            Err(_) => thread::sleep(Duration::from_millis(5)),
        }
    }
}

/// The life of a machine; how many frames it has sent.
fn live(attacker: &Attacker, mut guest: Guest) -> u64 {
    let mut random = attacker.random.borrow_mut();
    let (mut sent, mut bytes) = (0, [0; HEADER + 1600]);
    let begun = Instant::now();
    while begun.elapsed() < LIFE {
        let queue = random.below(2) as usize;
        match random.below(1 << 14) {
            // Rings, tables and indices.
            0 => {
                let (at, len) = guest.rings(queue);
                let mut word = [0; 8];
                random.fill(&mut word);
                guest.write(at + random.below(len - 8), &word);
                guest.kick_at_once(queue);
            }
            1 => drop(guest.set_up(queue, random.below(1 << 16) as u32)),
            2 => drop(guest.enable(queue, random.below(2) == 0)),
            3..5000 => drop(guest.offer_buffer(0, random.below(2048) as u32)),
            _ => {
                let len = HEADER as u64 + random.below(1600);
                let filled = HEADER + 14;
                random.fill(&mut bytes[..filled]);
                // Most are broadcast, by headers without offloads.
                if random.below(4) > 0 {
                    bytes[..HEADER].fill(0);
                    bytes[HEADER..HEADER + 6].fill(0xff);
                }
                if guest.send(0, &bytes[..len as usize], 512) {
                    sent += 1;
                } else if guest.reap(0) == 0 {
                    thread::yield_now();
                }
            }
        }
    }
    // Frames are looked at before each message.
    offer_empty_tables(&guest, 1);
    for odd in odd_descriptors(&guest).iter().flatten() {
        // These fail where the card has hung up.
        (12..15).for_each(|message| drop(guest.tell_by(message, 1, odd)));
    }
    // It takes its memory with it, while the card looks at it.
    let _ = guest.resize(4096);
    guest.kick_at_once(1);
    sent
}

/// Says a part of a message, or nothing, and goes.
fn say_something(attacker: &Attacker, mut stream: UnixStream) {
    let mut random = attacker.random.borrow_mut();
    let mut message = [0; 12];
    random.fill(&mut message);
    // It fails where the card has hung up.
    let _ = stream.write(&message[..random.below(13) as usize]);
}

/// What can be read for ever, holds other descriptors, or has no other end: for a queue to be told by.
fn odd_descriptors(guest: &Guest) -> std::io::Result<Vec<OwnedFd>> {
    let semaphore = eventfd(u32::MAX, EventfdFlags::SEMAPHORE)?;
    let ([ended, _], [_, unread]) = (ends()?, ends()?);
    let zeros = File::open("/dev/zero")?.into();
    Ok(vec![semaphore, ended, unread, zeros, guest.socket().as_fd().try_clone_to_owned()?])
}

/// Both ends of a pipe.
fn ends() -> std::io::Result<[OwnedFd; 2]> {
    Ok(pipe()?.into())
}

/// Fills a split queue with tables whose descriptors have no length: each is long to walk, and holds nothing.
fn offer_empty_tables(guest: &Guest, queue: usize) {
    const NEXT: u16 = 1;
    const INDIRECT: u16 = 4;
    let size = u64::from(Setup::default().size);
    let (rings, len) = guest.rings(queue);
    // There is room behind the rings.
    let table = (rings + len).next_multiple_of(16);
    let write = |to: u64, at: u64, len: u32, flags: u16, next: u16| {
        let halves = [flags, next].map(u16::to_le_bytes).concat();
        let at = (GUEST_BASE + at).to_le_bytes();
        guest.write(to, &[&at[..], &len.to_le_bytes(), &halves].concat());
    };
    for n in 0..EMPTY {
        let flags = if n + 1 < EMPTY { NEXT } else { 0 };
        write(table + 16 * u64::from(n), rings, 0, flags, n + 1);
    }
    let available = rings + 16 * size;
    for n in 0..size {
        write(rings + 16 * n, table, 16 * u32::from(EMPTY), INDIRECT, 0);
        guest.write(available + 4 + 2 * n, &(n as u16).to_le_bytes());
    }
    let used = (available + 6 + 2 * size).next_multiple_of(16);
    let taken = guest.read(used + 2, 2);
    let index = u16::from_le_bytes([taken[0], taken[1]]).wrapping_add(size as u16);
    guest.write(available + 2, &index.to_le_bytes());
    guest.kick_at_once(queue);
}
