//! A sender that keeps to a rate, and a receiver that sleeps when nothing has come.

use std::hint;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use ringway::{Interest, Port};

use crate::cpu;
use crate::nic;
use crate::traffic;
use crate::turn::{NAP, turn};

/// Bytes of a packet.
pub const SIZE: usize = 60;

/// Packets in a sync, at most.
const BATCH: u64 = 256;

/// Between two looks at the clock of a sender that sleeps: the kernel's timers are no finer.
const REST: Duration = Duration::from_micros(50);

/// What is more late than that is not made up for.
const LATE: Duration = Duration::from_millis(10);

/// A sender.
#[derive(Args)]
pub struct Paced {
    #[arg(long)]
    at: String,
    /// Packets a second; 0: as many as there is room for, one with each call
    #[arg(long)]
    rate: u64,
    /// Looks at the clock all the time, and sends each packet when it is due, in place of sleeping in between
    #[arg(long)]
    even: bool,
}

/// The sender. Its packets are for the port that [`receive`] has told the switch of.
pub fn send(cpu: Option<usize>, paced: &Paced) -> io::Result<()> {
    let port = Port::open(&paced.at).map_err(io::Error::other)?;
    cpu.map_or(Ok(()), cpu::pin)?;
    let packet = nic::packet(SIZE as u16, 0);
    let mut pace = Pace { rate: paced.rate, begin: Instant::now(), sent: 0 };
    let batch = |port: &mut Port| {
        let mut ring = port.tx(0);
        let due = pace.due();
        let mut sent = 0;
        if due > 0 {
            for mut slot in ring.batch(due as usize) {
                slot.write(hint::black_box(&packet));
                sent += 1;
            }
        }
        ring.sync();
        pace.sent += sent;
        sent
    };
    let wait = |port: &mut Port| match (paced.rate, paced.even) {
        (0, _) => port.wait(Interest::Tx, Some(NAP)).map(drop).map_err(io::Error::other),
        (_, true) => Ok(()),
        (_, false) => {
            thread::sleep(REST);
            Ok(())
        }
    };
    turn(port, 0, batch, wait)
}

struct Pace {
    rate: u64,
    begin: Instant,
    sent: u64,
}

impl Pace {
    /// Packets to be sent now.
    fn due(&mut self) -> u64 {
        if self.rate == 0 {
            return 1;
        }
        let of = |time: Duration| (time.as_nanos() * u128::from(self.rate) / 1_000_000_000) as u64;
        let (all, late) = (of(self.begin.elapsed()), of(LATE).max(1));
        self.sent = self.sent.max(all.saturating_sub(late));
        (all - self.sent.min(all)).min(BATCH)
    }
}

/// The receiver. It reads every byte.
pub fn receive(cpu: Option<usize>, at: &str) -> io::Result<()> {
    let mut port = Port::open(at).map_err(io::Error::other)?;
    // A switch learns where it is.
    let mut ring = port.tx(0);
    ring.push(&traffic::introduction(0));
    ring.sync();
    cpu.map_or(Ok(()), cpu::pin)?;
    let mut bytes = [0; SIZE];
    let batch = |port: &mut Port| {
        let mut ring = port.rx(0);
        let mut received = 0;
        for frame in ring.batch(usize::MAX) {
            let length = frame.copy_to(&mut bytes);
            hint::black_box(&bytes[..length]);
            received += 1;
        }
        ring.sync();
        received
    };
    let wait =
        |port: &mut Port| port.wait(Interest::Rx, Some(NAP)).map(drop).map_err(io::Error::other);
    turn(port, 0, batch, wait)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_is_a_share_of_the_time_and_never_a_flood() {
        let Some(begin) = Instant::now().checked_sub(Duration::from_millis(5)) else { return };
        let mut pace = Pace { rate: 1000, begin, sent: 3 };
        assert!(pace.due() >= 2);
        // Far behind: what is later than that is left out.
        let Some(begin) = begin.checked_sub(Duration::from_secs(1)) else { return };
        let mut pace = Pace { rate: 10_000, begin, sent: 0 };
        assert_eq!(pace.due(), 100);
        assert!(pace.sent >= 9950);
        assert_eq!(Pace { rate: 0, begin, sent: 7 }.due(), 1);
    }
}
