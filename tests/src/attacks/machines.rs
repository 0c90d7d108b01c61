//! Attacks by a virtual machine: what is in its memory is all that its card sees of it.

use std::{
    env,
    os::unix::net::UnixStream,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use ringway::Error;
use ringway_testkit::Folder;
use ringway_vhost::guest::{Guest, Setup};

use super::Attacker;

/// How long a machine lives, and so many to a card.
const LIFE: Duration = Duration::from_millis(100);
const MACHINES: u64 = 16;
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
        let stream = connect(&mut card, &socket)?;
        let setup = Setup { packed: number % 2 == 1, events: number % 4 > 1, ..Setup::default() };
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
    // It takes its memory with it, while the card looks at it.
    let _ = guest.resize(4096);
    guest.kick_at_once(1);
    sent
}
