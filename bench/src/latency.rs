//! Round trips: one packet under way, to another process and back, each of them timed.

use std::io;
use std::net::UdpSocket;
use std::time::Instant;

use clap::Args;
use hdrhistogram::Histogram;
use ringway::Port;

use crate::bench::Bench;
use crate::cpu;
use crate::figure::{Figure, Percentiles};
use crate::record::Road;
use crate::roles::{self, Count, Orders, Role, Seat};
use crate::turn::NAP;

/// Bytes of a packet.
const SIZE: usize = 60;

/// Ports of the loopback interface, below those that are given to programs.
const UDP: [u16; 2] = [20509, 20510];

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

/// The median in microseconds, and how far the others are from it.
pub fn once(bench: &Bench, road: Road, spins: bool) -> io::Result<Figure> {
    let [near, far] = match road {
        Road::PipeLatency => ["bench{2", "bench}2"].map(str::to_owned),
        Road::ValeLatency => ["valebench:ping", "valebench:pong"].map(str::to_owned),
        _ => [format!("{},{}", UDP[0], UDP[1]), format!("{},{}", UDP[1], UDP[0])],
    };
    let start = |process, at: &str, answers: &[&str]| {
        // A process that sleeps may be woken on any CPU.
        let seat = if spins { Seat::on(bench.cpu(process)) } else { Seat::default() };
        let spins: &[&str] = if spins { &["--spins"] } else { &[] };
        let at = format!("--at={at}");
        let arguments = [&["trip", &at], spins, answers].concat();
        Role::start(seat, &bench.daemon, &arguments)
    };
    let roles = vec![start(0, &near, &[])?, start(1, &far, &["--answers"])?];
    let counts = roles::run(roles, bench.warm_up, bench.counting)?;
    let nothing = || io::Error::other("no packet came back");
    let percentiles = counts[0].percentiles.ok_or_else(nothing)?;
    Ok(Figure { value: percentiles.p50, percentiles: Some(percentiles), ..Figure::default() })
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

    /// Sends a packet that ends with `number`.
    fn send(&mut self, number: u64) -> io::Result<()> {
        let mut packet = [0; SIZE];
        packet[..12].copy_from_slice(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1]);
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
                Some(number) => path.send(number).map(|()| 1),
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
    path.send(number)?;
    while begin.elapsed() < NAP {
        // A late answer to an earlier packet does not count.
        if path.receive(spins)? == Some(number) {
            return Ok(Some(begin.elapsed().as_nanos() as u64));
        }
    }
    Ok(None)
}
