//! The other end of what the host's stack sends: by host rings, or by a TAP device. It answers each datagram.

use std::fs::File;
use std::io::{self, Read, Write};

use clap::Args;
use ringway::Port;
use rustix::event::PollFlags;

use crate::cpu;
use crate::sys;
use crate::turn::{NAP, sleep, turn};

/// A frame's end.
const LONGEST: usize = 2048;

/// What goes before the name of a TAP device.
pub const TAP: &str = "tap:";

#[derive(Args)]
pub struct StackEnd {
    /// A port with host rings alone, or `tap:` and the name of a TAP device
    #[arg(long)]
    at: String,
    /// Looks all the time in place of sleeping
    #[arg(long)]
    spins: bool,
}

/// The process.
pub fn play(cpu: Option<usize>, end: &StackEnd) -> io::Result<()> {
    let spins = end.spins;
    if let Some(name) = end.at.strip_prefix(TAP) {
        let tap = sys::open_tap(name)?;
        cpu.map_or(Ok(()), cpu::pin)?;
        let mut failure = Ok(());
        let step = |tap: &mut File| {
            by_tap(tap).unwrap_or_else(|error| {
                failure = Err(error);
                0
            })
        };
        let wait = |tap: &mut File| match spins {
            true => Ok(()),
            false => sleep(&*tap, PollFlags::IN).map(drop),
        };
        turn(tap, 0, step, wait)?;
        return failure;
    }
    let open = |name: &str| Port::open(name).map_err(io::Error::other);
    // The stack's frames go to host rings while a program has the interface's own.
    let _interface = end.at.strip_suffix('^').map(open).transpose()?;
    let port = open(&end.at)?;
    cpu.map_or(Ok(()), cpu::pin)?;
    let wait = |port: &mut Port| match spins {
        true => Ok(()),
        false => port.wait_rx(Some(NAP)).map(drop).map_err(io::Error::other),
    };
    turn(port, 0, by_port, wait)
}

fn by_port(port: &mut Port) -> u64 {
    let (mut to, mut from) = port.tx_and_rx(0, 0);
    from.sync();
    let (mut bytes, mut answered) = ([0; LONGEST], 0);
    for frame in from.batch(to.space()) {
        let length = frame.copy_to(&mut bytes);
        if is_answered(&mut bytes[..length]) {
            to.push(&bytes[..length]);
            answered += 1;
        }
    }
    to.sync();
    answered
}

fn by_tap(tap: &mut File) -> io::Result<u64> {
    let mut bytes = [0; LONGEST];
    let length = match tap.read(&mut bytes) {
        Ok(length) => length,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(0),
        Err(error) => return Err(error),
    };
    if !is_answered(&mut bytes[..length]) {
        return Ok(0);
    }
    tap.write_all(&bytes[..length])?;
    Ok(1)
}

/// Makes a frame with a UDP datagram the answer to it: addresses and ports are exchanged. False for other frames.
fn is_answered(frame: &mut [u8]) -> bool {
    if frame.len() < 42 || frame[12..15] != [8, 0, 0x45] || frame[23] != 17 {
        return false;
    }
    frame[..12].rotate_left(6);
    frame[26..34].rotate_left(4);
    frame[34..38].rotate_left(2);
    // The stack leaves its sum to the interface: the answer has none.
    frame[40..42].fill(0);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nic;

    #[test]
    fn an_answer_goes_back_to_where_the_question_came_from() {
        let question = nic::packet(60, 3);
        let mut answer = question.clone();
        assert!(is_answered(&mut answer));
        assert_eq!((&answer[..6], &answer[6..12]), (&question[6..12], &question[..6]));
        assert_eq!((&answer[26..30], &answer[30..34]), (&question[30..34], &question[26..30]));
        assert_eq!((&answer[34..36], &answer[36..38]), (&question[36..38], &question[34..36]));
        assert!(!is_answered(&mut [0; 60]));
    }
}
