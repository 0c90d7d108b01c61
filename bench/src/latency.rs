//! Round trips: one packet under way, to another process and back, each of them timed. Beside them another pair of ports, of
//! the same kind and on the same switch or interface, may have a load of so many packets a second.

use std::io;
use std::net::UdpSocket;
use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use hdrhistogram::Histogram;
use ringway::Port;

use crate::bench::Bench;
use crate::cpu;
use crate::figure::{Figure, Percentiles};
use crate::netns::Netns;
use crate::nic::stage::Stage;
use crate::record::{Contestant, Road, Subject};
use crate::roles::{self, Count, Orders, Role, Seat};
use crate::stack_end::TAP;
use crate::turn::NAP;

/// Bytes of a packet.
const SIZE: usize = 60;

/// Ports of the loopback interface, below those that are given to programs.
const UDP: [&str; 2] = ["20509", "20510"];

/// The addresses of the two ends, each that of what sends to it.
const ENDS: [[u8; 6]; 2] = [[2, 0, 0, 0, 1, 1], [2, 0, 0, 0, 1, 2]];

/// Addresses on an interface, the near side's first.
const ADDRESSES: [&str; 2] = ["198.18.1.2", "198.18.1.1"];

/// One end of a path.
#[derive(Args)]
pub struct End {
    /// A port of Ringway's, or two UDP ports, the own one and the other's: numbers, or addresses with them
    #[arg(long)]
    at: String,
    /// Sends back what comes
    #[arg(long)]
    answers: bool,
    /// Looks all the time in place of sleeping
    #[arg(long)]
    spins: bool,
}

/// Where the processes of an experiment are: the two ends, then a sender and a receiver of the load.
struct Course<'a> {
    ends: [String; 2],
    load: [String; 2],
    /// Network namespaces of the two ends, and of the load, where they are in others than the benchmark.
    netns: Option<[&'a Netns; 2]>,
    /// The daemons of the two.
    daemons: [PathBuf; 2],
    /// The second end answers what the host's stack sends.
    to_stack: bool,
}

impl<'a> Course<'a> {
    fn new(bench: &Bench, subject: &Subject, stage: Option<&'a Stage>) -> io::Result<Course<'a>> {
        let both = |name: [&str; 2]| name.map(str::to_owned);
        let addressed = |[own, other]: [usize; 2]| {
            let end = |at: usize| format!("{}:{}", ADDRESSES[at], UDP[at]);
            format!("{},{}", end(own), end(other))
        };
        let udp = || [addressed([0, 1]), addressed([1, 0])];
        let is_loaded = subject.load.is_some();
        let (ends, load) = match (subject.experiment, subject.contestant) {
            (Road::PipeLatency, _) => (["bench{2", "bench}2"], ["bench{6", "bench}6"]),
            (Road::ValeLatency, _) => {
                (["valebench:ping", "valebench:pong"], ["valebench:loadtx", "valebench:loadrx"])
            }
            (Road::VethLatency, Contestant::Ringway) if is_loaded => {
                (["netmap:near0-0", "netmap:far0-0"], ["netmap:near0-1", "netmap:far0-1"])
            }
            (Road::VethLatency, Contestant::Ringway) => (["netmap:near0", "netmap:far0"], ["", ""]),
            _ => (["", ""], ["", ""]),
        };
        let ends = match (subject.experiment, subject.contestant) {
            (Road::LoopbackLatency, _) => {
                [format!("{},{}", UDP[0], UDP[1]), format!("{},{}", UDP[1], UDP[0])]
            }
            (Road::VethLatency, Contestant::Udp) => udp(),
            (Road::HostLatency, Contestant::Ringway) => [addressed([0, 1]), "netmap:near0^".into()],
            (Road::HostLatency, _) => [addressed([0, 1]), format!("{TAP}tap0")],
            _ => both(ends),
        };
        let to_stack = subject.experiment == Road::HostLatency;
        let netns = stage.map(|stage| match to_stack {
            true => [&stage.near, &stage.near],
            false => [&stage.near, &stage.far],
        });
        let daemons = match netns {
            // A daemon serves the namespace that it was started in.
            Some(_) => [bench.scratch.folder("near")?, bench.scratch.folder("far")?],
            None => [bench.daemon.clone(), bench.daemon.clone()],
        };
        Ok(Course { ends, load: both(load), netns, daemons, to_stack })
    }

    /// Starts a process on that side. A process that looks all the time has a CPU of its own; others may be woken on any.
    fn start(&self, side: usize, cpu: Option<usize>, arguments: &[&str]) -> io::Result<Role> {
        let seat = Seat { cpu, ..Seat::default() };
        let seat = self.netns.map_or(seat, |netns| seat.inside(netns[side]));
        Role::start(seat, &self.daemons[side], arguments)
    }
}

/// Interfaces for it, with a queue for the load if there is one.
fn stage(subject: &Subject) -> io::Result<Option<Stage>> {
    if !matches!(subject.experiment, Road::VethLatency | Road::HostLatency) {
        return Ok(None);
    }
    let stage = Stage::new(1, if subject.load.is_some() { 2 } else { 1 })?;
    let [near, far] = ADDRESSES;
    let nobody = "02:00:00:00:00:01";
    match (subject.experiment, subject.contestant) {
        (Road::VethLatency, Contestant::Udp) => {
            stage.near.run(&format!("ip addr add {near}/24 dev near0\n"))?;
            stage.far.run(&format!("ip addr add {far}/24 dev far0\n"))?;
        }
        (Road::HostLatency, Contestant::Ringway) => stage.near.run(&format!(
            "ip addr add {near}/24 dev near0\n\
             ip neigh add {far} lladdr {nobody} nud permanent dev near0\n"
        ))?,
        (Road::HostLatency, _) => stage.near.run(&format!(
            "ip tuntap add dev tap0 mode tap\n\
             ip addr add {near}/24 dev tap0\n\
             ip link set tap0 up\n\
             ip neigh add {far} lladdr {nobody} nud permanent dev tap0\n"
        ))?,
        _ => {}
    }
    Ok(Some(stage))
}

/// The median in microseconds, and how far the others are from it.
pub fn once(bench: &Bench, subject: &Subject) -> io::Result<Figure> {
    let spins = subject.spins == Some(true);
    let stage = stage(subject)?;
    let course = Course::new(bench, subject, stage.as_ref())?;
    let cpu = |process| spins.then(|| bench.cpu(process));
    let more: &[&str] = if spins { &["--spins"] } else { &[] };
    let [near, far] = [0, 1].map(|side| format!("--at={}", course.ends[side]));
    let answers: &[&str] = match course.to_stack {
        true => &["stack-end", &far],
        false => &["trip", "--answers", &far],
    };
    let mut roles = vec![
        course.start(0, cpu(0), &[&["trip", &near], more].concat())?,
        course.start(1, cpu(1), &[answers, more].concat())?,
    ];
    if let Some(rate) = subject.load {
        let [to, from] = [0, 1].map(|side| format!("--at={}", course.load[side]));
        roles.push(course.start(0, None, &["drain", &to])?);
        roles.push(course.start(1, None, &["paced", &from, &format!("--rate={rate}")])?);
    }
    let counts = roles::run(roles, bench.warm_up, bench.counting)?;
    let load = match &counts[..] {
        [_, _, drained, _] => Some(drained.rate()),
        _ => None,
    };
    let nothing = || io::Error::other("no packet came back");
    let percentiles = counts[0].percentiles.ok_or_else(nothing)?;
    let value = percentiles.p50;
    Ok(Figure { value, percentiles: Some(percentiles), load, ..Figure::default() })
}

/// What packets go through.
enum Path {
    Port(Box<Port>),
    Udp(UdpSocket),
}

impl Path {
    fn open(at: &str, spins: bool) -> io::Result<Path> {
        let Some((own, other)) = at.split_once(',') else {
            return Port::open(at).map(|port| Path::Port(Box::new(port))).map_err(io::Error::other);
        };
        let address = |end: &str| match end.contains(':') {
            true => end.to_owned(),
            false => format!("127.0.0.1:{end}"),
        };
        let socket = UdpSocket::bind(address(own))?;
        socket.connect(address(other))?;
        socket.set_nonblocking(spins)?;
        socket.set_read_timeout(Some(NAP))?;
        Ok(Path::Udp(socket))
    }

    /// Sends a packet that ends with `number` to that one of [`ENDS`].
    fn send(&mut self, to: usize, number: u64) -> io::Result<()> {
        let mut packet = [0; SIZE];
        packet[..6].copy_from_slice(&ENDS[to]);
        packet[6..12].copy_from_slice(&ENDS[1 - to]);
        packet[SIZE - 8..].copy_from_slice(&number.to_le_bytes());
        match self {
            Path::Port(port) => {
                let mut ring = port.tx(0);
                ring.push(&packet);
                ring.sync();
            }
            Path::Udp(socket) => match socket.send(&packet) {
                // The other end is not there yet, or no more.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                sent => drop(sent?),
            },
        }
        Ok(())
    }

    /// The number of the next one; nothing if none has come: at once, or after a nap.
    fn receive(&mut self, spins: bool) -> io::Result<Option<u64>> {
        let number = |end: [u8; 8]| Some(u64::from_le_bytes(end));
        match self {
            Path::Port(port) => {
                let waits = port.rx(0).sync() == 0 && !spins;
                if waits && !port.wait_rx(Some(NAP)).map_err(io::Error::other)? {
                    return Ok(None);
                }
                let mut ring = port.rx(0);
                Ok(ring.batch(1).next().and_then(|frame| frame.read(SIZE - 8)).and_then(number))
            }
            Path::Udp(socket) => {
                let mut packet = [0; SIZE];
                match socket.recv(&mut packet) {
                    Ok(SIZE) => Ok(packet[SIZE - 8..].try_into().ok().and_then(number)),
                    Ok(_) => Ok(None),
                    Err(error) => match error.kind() {
                        io::ErrorKind::WouldBlock | io::ErrorKind::ConnectionRefused => Ok(None),
                        _ => Err(error),
                    },
                }
            }
        }
    }
}

/// The process at an end.
pub fn play(cpu: Option<usize>, end: &End) -> io::Result<()> {
    let mut path = Path::open(&end.at, end.spins)?;
    // Only now: a daemon that was started by the opening is to have all CPUs.
    cpu.map_or(Ok(()), cpu::pin)?;
    let orders = Orders::ready()?;
    let mut failure = None;
    if end.answers {
        let count = orders.count(|| {
            let answered = path.receive(end.spins).and_then(|number| match number {
                Some(number) => path.send(0, number).map(|()| 1),
                None => Ok(0),
            });
            answered.unwrap_or_else(|error| {
                failure = Some(error);
                0
            })
        });
        return failure.map_or_else(|| Orders::report(&count), Err);
    }
    let longest = NAP.as_nanos() as u64;
    let mut times = Histogram::<u64>::new_with_bounds(1, longest, 3).map_err(io::Error::other)?;
    let mut number = 0;
    let count = orders.count(|| {
        number += 1;
        match round_trip(&mut path, number, end.spins) {
            Ok(Some(nanoseconds)) => {
                times.saturating_record(nanoseconds);
                1
            }
            Ok(None) => 0,
            Err(error) => {
                failure = Some(error);
                0
            }
        }
    });
    if let Some(error) = failure {
        return Err(error);
    }
    if times.is_empty() {
        return Orders::report(&count);
    }
    Orders::report(&Count { percentiles: Some(Percentiles::of(&times)), ..count })
}

/// Nanoseconds until the packet is back; nothing if it was lost.
fn round_trip(path: &mut Path, number: u64, spins: bool) -> io::Result<Option<u64>> {
    let begin = Instant::now();
    path.send(1, number)?;
    while begin.elapsed() < NAP {
        // A late answer to an earlier packet does not count.
        if path.receive(spins)? == Some(number) {
            return Ok(Some(begin.elapsed().as_nanos() as u64));
        }
    }
    Ok(None)
}
