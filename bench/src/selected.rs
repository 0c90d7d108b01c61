//! A few flows at full rate to a program, the rest to the kernel's stack: what the program takes, and how long round trips
//! of the stack's own sockets take meanwhile. It is what Cloudflare took one queue of a NIC by netmap for.
//!
//! ```text
//!   far                                             near
//!   far0 queue 1: flows to port 9, at full rate === near0 queue 1: the program
//!   far0 queue 0: a socket that pings           === near0 queue 0: the stack, a socket that answers
//! ```

use std::io;
use std::path::Path;

use crate::bench::Bench;
use crate::datagrams;
use crate::figure::{Figure, Spent};
use crate::nic::stage::Stage;
use crate::record::{Contestant, Payload, Road, Subject, Unit};
use crate::roles::{self, Role, Seat};
use crate::study::Study;

/// Bytes of a packet.
const SIZE: usize = 64;

/// Flows, told apart by the ports that they come from.
const FLOWS: usize = 4;

/// The queue that the program takes.
const QUEUE: &str = "near0~1";
/// The same, of which it takes the flows alone.
const FILTER: &str = "near0~1@filter=udp dst port 9";

/// Where the flows go, for a socket.
const FLOWS_TO: &str = "198.18.0.2:9";

/// The ends of the stack's own traffic, below the ports that are given to programs.
const STACK: [&str; 2] = ["198.18.1.1:20509", "198.18.1.2:20510"];

/// All of them.
pub fn subjects() -> Vec<Subject> {
    use Contestant::*;
    let takers = [RingwayQueue, RingwayFilter, TpacketV3, Udp];
    let mut all = takers.map(|one| subject(Road::SelectedTaken, one, Unit::Mpps)).to_vec();
    for (road, unit) in [(Road::SelectedPing, Unit::Microseconds), (Road::SelectedRate, Unit::Mpps)]
    {
        all.extend(takers.map(|one| subject(road, one, unit)));
        all.push(subject(road, NoProgram, unit));
    }
    all
}

fn subject(road: Road, contestant: Contestant, unit: Unit) -> Subject {
    Subject {
        size: Some(SIZE),
        payload: Some(Payload::Touched),
        settings: Some(settings(contestant)),
        ..Subject::new(Study::SelectedFlows, road, contestant, unit)
    }
}

fn settings(contestant: Contestant) -> String {
    match contestant {
        Contestant::RingwayQueue => format!("netmap:{QUEUE}"),
        Contestant::RingwayFilter => format!("netmap:{FILTER}"),
        Contestant::TpacketV3 => {
            "near0 beside the stack, which drops its copies for their address; 32 blocks of 128 KiB, timeout 1 ms".into()
        }
        Contestant::Udp => datagrams::settings(),
        _ => "nothing is sent to the flows".into(),
    }
}

/// Which process has which CPU.
pub fn cpus([zero, one]: [usize; 2]) -> String {
    let shared = if zero == one { ", which both share" } else { "" };
    format!("sender {zero}, program {one}{shared}; the stack's sockets any")
}

/// What the program takes; microseconds of a ping beside that; or what the stack's sockets exchange beside that.
pub fn once(bench: &Bench, road: Road, contestant: Contestant) -> io::Result<Figure> {
    let stage = Stage::new(1, 2)?;
    stage.hold_back()?;
    prepare(bench, &stage, contestant)?;
    let near = Seat::on(bench.cpu(1)).inside(&stage.near);
    let far = Seat::on(bench.cpu(0)).inside(&stage.far);
    let daemon = bench.scratch.folder("ringwayd-near")?;
    let size = format!("--size={SIZE}");
    let receive =
        |by, interface| Role::start(near, &daemon, &["nic", by, "receive", &size, interface]);
    let mut all = match contestant {
        Contestant::RingwayQueue => vec![receive("ringway", QUEUE)?],
        Contestant::RingwayFilter => vec![receive("ringway", FILTER)?],
        Contestant::TpacketV3 => vec![receive("tpacket3", "near0")?],
        Contestant::Udp => vec![Role::start(near, &daemon, &["datagrams", FLOWS_TO])?],
        _ => vec![],
    };
    let stack = all.len();
    match road {
        Road::SelectedPing => {
            let at = [0, 1].map(|own| format!("--at={},{}", STACK[own], STACK[1 - own]));
            let answers = end(&stage, &bench.daemon, 1, &["trip", &at[1], "--answers"])?;
            all.push(end(&stage, &bench.daemon, 0, &["trip", &at[0]])?);
            all.push(answers);
        }
        Road::SelectedRate => {
            all.push(end(&stage, &bench.daemon, 1, &["datagrams", STACK[1]])?);
            let sends = ["send-datagrams", STACK[0], STACK[1]];
            all.push(end(&stage, &bench.daemon, 0, &sends)?);
        }
        _ => {}
    }
    if contestant != Contestant::NoProgram {
        let flows = format!("--flows={FLOWS}");
        let generator = ["nic", "generator", "send", &size, &flows, "--queue=1", "far0"];
        all.push(Role::start(far, &daemon, &generator)?);
    }
    let counts = roles::run(all, bench.warm_up, bench.counting)?;
    if road == Road::SelectedPing {
        let nothing = || io::Error::other("no ping was answered");
        let percentiles = counts[stack].percentiles.ok_or_else(nothing)?;
        let value = percentiles.p50;
        return Ok(Figure { value, percentiles: Some(percentiles), ..Figure::default() });
    }
    if road == Road::SelectedRate {
        let [arrived, sent] = [&counts[stack], &counts[stack + 1]];
        return Ok(Figure::from(arrived).of_sent(sent.mpps()));
    }
    let [taken, sent] = &counts[..] else { return Err(io::Error::other("a role is missing")) };
    let spent = Spent { usage: taken.usage, packets: taken.packets as f64 };
    Ok(Figure { spent: Some(spent), ..Figure::from(taken).of_sent(sent.mpps()) })
}

/// Has the stack of the far side send by queue 0 alone, and gives both sides addresses. The flows are for nobody, so that
/// the stack drops what it sees of them, unless a socket is to take them.
fn prepare(bench: &Bench, stage: &Stage, contestant: Contestant) -> io::Result<()> {
    let mask = mask(&bench.cpus);
    stage.far.run(&format!(
        "echo {mask} > /sys/class/net/far0/queues/tx-0/xps_cpus\n\
         echo 0 > /sys/class/net/far0/queues/tx-1/xps_cpus\n\
         ip addr add 198.18.1.1/24 dev far0\n"
    ))?;
    stage.near.run("ip addr add 198.18.1.2/24 dev near0\n")?;
    match contestant {
        Contestant::Udp => stage.near.run(
            "ip link set near0 address 02:00:00:00:00:00\n\
             ip addr add 198.18.0.2/24 dev near0\n",
        ),
        _ => Ok(()),
    }
}

/// An end of the stack's own traffic, the far one first. It sleeps, and may be woken on any CPU.
fn end(stage: &Stage, daemon: &Path, own: usize, arguments: &[&str]) -> io::Result<Role> {
    let netns = if own == 0 { &stage.far } else { &stage.near };
    Role::start(Seat::default().inside(netns), daemon, arguments)
}

/// A set of CPUs as sysfs has it: groups of 32, the highest first.
fn mask(cpus: &[usize]) -> String {
    let mut groups = vec![0_u32; cpus.iter().max().map_or(1, |most| most / 32 + 1)];
    cpus.iter().for_each(|cpu| groups[cpu / 32] |= 1 << (cpu % 32));
    let groups: Vec<String> = groups.iter().rev().map(|group| format!("{group:x}")).collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_cpus_are_written_as_sysfs_reads_them() {
        assert_eq!(mask(&[0, 1]), "3");
        assert_eq!(mask(&[1, 33]), "2,2");
    }
}
