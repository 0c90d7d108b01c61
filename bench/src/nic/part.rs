//! The parts that a process plays on its interfaces, whatever it reaches them through.

use std::io;

use clap::{Args, ValueEnum};

use super::generator;
use super::packet::packet;
use super::ringway::Ringway;
use super::tpacket2::Tpacket2;
use super::tpacket3::Tpacket3;
use crate::cpu;
use crate::turn::{LOOKS, turn};

/// Packets in a batch, at most.
pub const BATCH: usize = 256;

/// The way to the interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum By {
    Ringway,
    /// What all get their packets from.
    Generator,
    Tpacket2,
    Tpacket3,
}

/// What to do there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Task {
    /// Send as fast as possible.
    Send,
    /// Receive and drop; count what was received.
    Receive,
    /// Send what the first interface receives through the last one, which may be the same.
    Forward,
    /// Keep so many packets under way and count those that come back.
    Ping,
}

impl Task {
    /// Whether it receives from its first interface.
    pub fn receives(self) -> bool {
        self != Task::Send
    }
}

/// One process's part.
#[derive(Args)]
pub struct Part {
    by: By,
    task: Task,
    #[arg(required = true)]
    interfaces: Vec<String>,
    /// Bytes in a packet that it sends
    #[arg(long)]
    size: u16,
    /// Packets that a ping keeps under way
    #[arg(long, default_value_t = 1)]
    in_flight: usize,
    /// Packets that are sent at once, at most
    #[arg(long, default_value_t = BATCH)]
    batch: usize,
    /// Write and read no payload
    #[arg(long)]
    untouched: bool,
    /// Flows of what a generator sends
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    flows: u16,
    /// The queue that a generator sends by
    #[arg(long, default_value_t = 0)]
    queue: u32,
}

/// Bytes of the longest packet.
pub const LONGEST: usize = 2048;

/// One or two open interfaces. The first one receives, the last one sends.
pub trait Ends: Sized {
    /// Opens `interfaces` for `task`; what it sends is `packet`, again and again. If it `touches` payload, it writes
    /// that each time, and reads what it receives.
    fn open(interfaces: &[String], task: Task, packet: &[u8], touches: bool) -> io::Result<Self>;

    /// Sends up to `most` packets, [`BATCH`] at most; returns how many the kernel was given.
    fn send(&mut self, most: usize) -> u64;

    /// Drops what was received, or a batch of it; returns how many packets that were.
    fn receive(&mut self) -> u64;

    /// Sends what was received, or a batch of it; returns how many packets that were.
    fn forward(&mut self) -> u64;

    /// Sleeps until there is something to receive, or room to send where `task` is to send, but not
    /// longer than [`crate::turn::NAP`]. False if there was nothing.
    fn wait(&mut self, task: Task) -> io::Result<bool>;
}

/// Plays a part on `cpu`, as the parent orders.
pub fn play(cpu: Option<usize>, part: &Part) -> io::Result<()> {
    match part.by {
        By::Ringway => play_by::<Ringway>(cpu, part),
        By::Generator => {
            let packets: Vec<_> = (0..part.flows).map(|flow| packet(part.size, flow)).collect();
            generator::play(cpu, &part.interfaces[0], part.queue, &packets)
        }
        By::Tpacket2 => play_by::<Tpacket2>(cpu, part),
        By::Tpacket3 => play_by::<Tpacket3>(cpu, part),
    }
}

fn play_by<E: Ends>(cpu: Option<usize>, part: &Part) -> io::Result<()> {
    let packet = packet(part.size, 0);
    let ends = E::open(&part.interfaces, part.task, &packet, !part.untouched)?;
    // Only now: a daemon that was started by the opening is to have all CPUs.
    cpu.map_or(Ok(()), cpu::pin)?;
    let task = part.task;
    let wait = |ends: &mut E| ends.wait(task).map(drop);
    match task {
        Task::Send => turn(ends, LOOKS, |ends| ends.send(part.batch), wait),
        Task::Receive => turn(ends, LOOKS, E::receive, wait),
        Task::Forward => turn(ends, LOOKS, E::forward, wait),
        Task::Ping => {
            let ping = Ping { ends, wanted: part.in_flight, under_way: 0 };
            turn(ping, LOOKS, Ping::turn, Ping::wait)
        }
    }
}

/// Packets that go round.
struct Ping<E> {
    ends: E,
    wanted: usize,
    under_way: usize,
}

impl<E: Ends> Ping<E> {
    fn turn(&mut self) -> u64 {
        let back = self.ends.receive();
        self.under_way = self.under_way.saturating_sub(back as usize);
        self.under_way += self.ends.send(self.wanted - self.under_way) as usize;
        back
    }

    /// Who waits in vain has lost its packets, and begins anew.
    fn wait(&mut self) -> io::Result<()> {
        if !self.ends.wait(Task::Ping)? {
            self.under_way = 0;
        }
        Ok(())
    }
}
