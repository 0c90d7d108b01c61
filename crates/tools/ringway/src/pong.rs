//! `ringway pong`: sends pings back.

use crate::endpoint::Mac;
use crate::error::Result;
use crate::forward::has_packets;
use crate::metered::Metered;
use crate::opening;
use crate::ping::ECHO;
use crate::port_notes;
use crate::reflect::{Reflected, reflect};
use crate::run_loop;
use crate::traffic::mac_of;
use crate::units::parse_count;
use ringway::{Interest, Port, Turns};
use serde::Serialize;
use std::fmt;
use std::time::Instant;

#[derive(clap::Args)]
#[command(after_help = "\
Sends UDP datagrams to port 7 back, with addresses and ports exchanged, and drops all other frames;
with --all it sends everything back. Two ports that send everything back to each other never stop. A ping
to a group address is answered from --mac. Nothing is copied: buffers go from the receive ring to
the transmit ring. On an interface with a filter, `pong` also sends what the stack sends and the filter
matches, so that the stack loses only what it would receive of that.

Examples (quote the braces of a pipe's name):
  ringway pong 'p}0'
  ringway pong vale0:b --poll
  ringway pong netmap:eth0 --filter 'udp port 7'    the kernel keeps all else")]
pub struct Args {
    /// Port to answer on: a pipe's end, vale<switch>:<port> or netmap:<interface>
    port: String,

    /// End after so many answers: 1000, 10k, 1.5M
    #[arg(short = 'n', long, value_name = "PINGS", value_parser = parse_count)]
    count: Option<u64>,

    /// Send back everything
    #[arg(long)]
    all: bool,

    /// Look at the port all the time instead of sleeping
    #[arg(long)]
    poll: bool,

    /// Own MAC address, for answers to pings to all [default: made from the process id]
    #[arg(long, value_name = "MAC")]
    mac: Option<Mac>,

    #[command(flatten)]
    chosen: crate::filter::Chosen,

    #[command(flatten)]
    opening: opening::Args,

    #[command(flatten)]
    run_loop: run_loop::Args,
}

/// Answers until the count, the time or the user's patience is through.
pub fn run(args: &Args) -> Result<()> {
    let mut options = Port::options();
    if let Some(filter) = args.chosen.filter()? {
        options = options.filter(filter);
    }
    let port = opening::open_answering(&options, &args.port, args.opening)?;
    port_notes::receiving(&port, &args.port);
    let mac = args.mac.unwrap_or(mac_of(std::process::id()));
    let mut run = Metered::begin(port, &args.run_loop)?;
    let (mut last, mut ignored) = (run.run_loop.start, 0);
    let answered = answer(args, mac, &mut run, &mut last, &mut ignored);
    run.summarize(last, 0)?;
    run.run_loop.output.write(&Ignored { ignored })?;
    answered
}

fn answer(
    args: &Args,
    mac: Mac,
    run: &mut Metered,
    last: &mut Instant,
    ignored: &mut u64,
) -> Result<()> {
    let wanted = args.count.unwrap_or(u64::MAX);
    let mut turns = Turns::default();
    loop {
        let turn = |head: &mut [u8]| turn_around(head, mac, args.all);
        let moved = reflect(&mut run.port, &mut turns, turn);
        let Reflected { packets, bytes, ignored: others, of_stack } = moved;
        let now = Instant::now();
        run.counted.packets += packets;
        run.counted.bytes += bytes;
        *ignored += others;
        if packets > 0 {
            *last = now;
        }
        run.report(now)?;
        if run.counted.packets >= wanted || run.run_loop.is_over(now) {
            return Ok(());
        }
        if packets + others + of_stack == 0 && !args.poll {
            let lacks = if has_packets(&mut run.port) { Interest::Tx } else { Interest::Rx };
            let due = run.reporter.due();
            run.wait(lacks, due)?;
        }
    }
}

/// Exchanges the addresses and ports of a frame; whether it is to be sent back.
fn turn_around(frame: &mut [u8], own: Mac, all: bool) -> bool {
    let udp = udp_ports(frame);
    let is_ping = udp.is_some_and(|at| frame[at + 2..at + 4] == ECHO.to_be_bytes());
    if !is_ping && !all {
        return false;
    }
    swap(frame, 0, 6);
    // No frame comes from a group.
    if let Some(from) = frame.get_mut(6..12).filter(|from| from[0] & 1 != 0) {
        from.copy_from_slice(&own.0);
    }
    if let Some((at, length)) = ip_addresses(frame) {
        swap(frame, at, length);
    }
    if let Some(at) = udp {
        swap(frame, at, 2);
    }
    true
}

/// Exchanges two fields of a length that stand one behind the other.
fn swap(frame: &mut [u8], at: usize, length: usize) {
    if let Some(fields) = frame.get_mut(at..at + 2 * length) {
        let (one, other) = fields.split_at_mut(length);
        one.swap_with_slice(other);
    }
}

/// Where the IP header is, behind at most two VLAN tags, and whether it is IPv6.
fn ip_header(frame: &[u8]) -> Option<(usize, bool)> {
    let mut at = 12;
    for _ in 0..2 {
        if !matches!(frame.get(at..at + 2)?, [0x81, 0] | [0x88, 0xa8]) {
            break;
        }
        at += 4;
    }
    match frame.get(at..at + 2)? {
        [8, 0] => Some((at + 2, false)),
        [0x86, 0xdd] => Some((at + 2, true)),
        _ => None,
    }
}

/// Where the source address is, and how long each address is.
fn ip_addresses(frame: &[u8]) -> Option<(usize, usize)> {
    let (at, six) = ip_header(frame)?;
    Some(if six { (at + 8, 16) } else { (at + 12, 4) })
}

/// Where the ports are, if it is UDP, and not a later fragment.
fn udp_ports(frame: &[u8]) -> Option<usize> {
    const UDP: u8 = 17;
    let (at, six) = ip_header(frame)?;
    let (protocol, header, whole) = match six {
        true => (frame.get(at + 6)?, 40, true),
        false => {
            let length = usize::from(frame.get(at)? & 0xf) * 4;
            let fragment = frame.get(at + 6..at + 8)?;
            (frame.get(at + 9)?, length, fragment[0] & 0x3f == 0 && fragment[1] == 0)
        }
    };
    let ports = at + header;
    (*protocol == UDP && whole && frame.len() >= ports + 4).then_some(ports)
}

/// What was not sent back.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "type", rename = "ignored")]
pub struct Ignored {
    ignored: u64,
}

impl fmt::Display for Ignored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "  {} packets that are no pings were dropped", self.ignored)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Builder;
    use crate::frame::tests::spec;
    use crate::frame_check::{FrameCheck, read};
    use crate::payload::Pattern;
    use proptest::prelude::*;

    const OWN: Mac = Mac([2, 9, 9, 9, 9, 9]);

    #[test]
    fn an_answer_is_a_ping_of_the_other_direction() {
        let pattern = Pattern::new();
        for (src, dst) in [("10.0.0.1:9", "10.1.0.1:7"), ("[fd00::1]:9", "[fd00::2]:7")] {
            let mut frame = Builder::new(spec(src, dst, "90")).unwrap().build().to_vec();
            assert!(turn_around(&mut frame, OWN, false));
            assert!(matches!(read(&frame, &pattern), FrameCheck::Good(_)), "the checksum holds");
            assert_eq!((&frame[..6], &frame[6..12]), (&[2, 0, 0, 0, 0, 1][..], &OWN.0[..]));
            let mut back = Builder::new(spec(dst, src, "90")).unwrap().build().to_vec();
            back[..12].copy_from_slice(&frame[..12]);
            assert_eq!(frame, back);
            // An answer is no ping.
            assert!(!turn_around(&mut frame, OWN, false));
            assert_eq!(frame, back);
        }
    }

    #[test]
    fn the_rest_is_left_alone_or_comes_back() {
        let mut arp = [[0xff; 6], [2; 6]].concat();
        arp.extend([8, 6, 1, 2, 3]);
        let before = arp.clone();
        assert!(!turn_around(&mut arp, OWN, false));
        assert_eq!(arp, before);
        assert!(turn_around(&mut arp, OWN, true));
        assert_eq!(arp, [&[2; 6], &OWN.0[..], &before[12..]].concat());
    }

    proptest! {
        #[test]
        fn any_bytes_can_be_turned_around(mut bytes: Vec<u8>, tagged: bool, six: bool, all: bool) {
            for (at, ethertype) in [(12, [0x81, 0]), (16, if six { [0x86, 0xdd] } else { [8, 0] })] {
                let at = if tagged { at } else { 12 };
                if let Some(field) = bytes.get_mut(at..at + 2) {
                    field.copy_from_slice(&ethertype);
                }
            }
            let len = bytes.len();
            prop_assert!(turn_around(&mut bytes, OWN, all) || !all);
            prop_assert_eq!(bytes.len(), len);
        }
    }
}
