//! Layer-2 forwarding, the workload that all APIs have in common: a reflector exchanges the two addresses of each packet, and
//! sends it back by the port that it came by.
//!
//! The generator is Ringway's own client, and the same for all. A reflector is Ringway's own client too, or a program in C
//! of another API, which knows nothing of Ringway: so what differs between two of them is that API's price.
//!
//! ```text
//!   generator == pipe, or two ports of a switch == reflector
//! ```

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use clap::Args;
use hdrhistogram::Histogram;
use ringway::{Interest, Port, RxRing, TxRing};

use crate::bench::Bench;
use crate::c_program::{self, Running, Through};
use crate::cpu;
use crate::extent::{BATCH, Extent};
use crate::figure::{Figure, Percentiles};
use crate::nic;
use crate::record::{Contestant, Road, Subject, Unit};
use crate::roles::{self, Count, Orders, Role, Seat};
use crate::study::Study;
use crate::traffic;
use crate::turn::{NAP, turn};

/// Bytes of a packet.
const SIZE: usize = 60;

/// Where the time of sending is in a packet: behind its headers.
const TIME: usize = 42;

/// Both ends of the pipe.
const PIPE: [&str; 2] = ["bench{4", "bench}4"];
/// The generator's port of the switch.
const PORT: &str = "valebench:l2gen";

/// How long a program may take to be there.
const PATIENCE: Duration = Duration::from_secs(10);

const USDPAA: &str = "examples/c/usdpaa_hello.c";
const TPACKET4: &str = "examples/c/tpacket4.c";
/// Seconds that a program would run by itself: it is ended before.
const LONG: &str = "3600";

/// All of them: as fast as possible, and with so many packets under way.
pub fn subjects(extent: Extent) -> Vec<Subject> {
    use Contestant::*;
    let in_flight: &[Option<usize>] = match extent {
        Extent::Whole => &[None, Some(1), Some(64)],
        Extent::Quick => &[None, Some(64)],
    };
    let mut all = Vec::new();
    for road in [Road::PipeL2fwd, Road::ValeL2fwd] {
        for &in_flight in in_flight {
            for contestant in [Ringway, CPreload, PfRing, Usdpaa, TpacketV4] {
                let unit = if in_flight.is_some() { Unit::Microseconds } else { Unit::Mpps };
                all.push(Subject {
                    size: Some(SIZE),
                    in_flight,
                    settings: Some(settings(contestant).into()),
                    ..Subject::new(Study::L2fwd, road, contestant, unit)
                });
            }
        }
    }
    all
}

fn settings(contestant: Contestant) -> &'static str {
    match contestant {
        Contestant::CPreload => "bench/c/netmap.c: poll, swapped buffers, ioctl(NIOCTXSYNC)",
        Contestant::PfRing => "bench/c/pfring_l2fwd.c: pfring_recv, pfring_send, pfring_poll",
        Contestant::Usdpaa => {
            "examples/c/usdpaa_hello.c -n 1: polls, exchanges addresses of IPv4, too"
        }
        Contestant::TpacketV4 => "examples/c/tpacket4.c l2fwd: polls, batch 64, rings of 4096",
        _ => "swapped buffers, batch as it comes",
    }
}

/// Which process has which CPU.
pub fn cpus(bench: &Bench, subject: &Subject) -> String {
    let [generator, reflector] = seats(bench, subject.experiment).map(|seat| match seat.cpu {
        Some(cpu) => cpu.to_string(),
        None => "any".into(),
    });
    let reflector = match subject.contestant {
        // Its thread settles by itself.
        Contestant::Usdpaa => "0".to_owned(),
        // The thread that fills its ring is wherever the kernel puts it.
        Contestant::TpacketV4 => "any".into(),
        _ => reflector,
    };
    let worker =
        if subject.experiment == Road::ValeL2fwd { "; the switch's worker any" } else { "" };
    format!("generator {generator}, reflector {reflector}{worker}")
}

/// A reflector that plays a role, or a program that knows of none.
enum Reflector {
    Role(Role),
    Program(Running),
}

/// Packets that come back, in millions a second; or microseconds of a round trip, where so many are under way.
pub fn once(bench: &Bench, subject: &Subject) -> io::Result<Figure> {
    let [at, port] = match subject.experiment {
        Road::PipeL2fwd => PIPE.map(str::to_owned),
        _ => [PORT.to_owned(), traffic::short_port()],
    };
    let [own, other] = seats(bench, subject.experiment);
    let reflector = reflector(bench, subject.contestant, &port, other)?;
    let (at, packets) = (format!("--at={at}"), subject.in_flight.unwrap_or(0));
    let in_flight = format!("--in-flight={packets}");
    let mut arguments = vec!["l2-generate", &at, &in_flight];
    if matches!(reflector, Reflector::Program(_)) {
        arguments.push("--awaits");
    }
    let generator = Role::start(own, &bench.daemon, &arguments)?;
    let (mut all, _program) = match reflector {
        Reflector::Role(role) => (vec![role], None),
        Reflector::Program(program) => (vec![], Some(program)),
    };
    all.push(generator);
    let counts = roles::run(all, bench.warm_up, bench.counting)?;
    let Some(count) = counts.last() else { return Err(io::ErrorKind::NotFound.into()) };
    let lost = match count.sent {
        Some(sent) if sent > 0 => Some((1.0 - count.packets as f64 / sent as f64).max(0.0) * 100.0),
        _ => None,
    };
    let figure = Figure { lost, ..Figure::from(count) };
    if packets == 0 {
        return Ok(figure);
    }
    let nothing = || io::Error::other("no packet came back");
    let percentiles = count.percentiles.ok_or_else(nothing)?;
    Ok(Figure { value: percentiles.p50, percentiles: Some(percentiles), ..figure })
}

/// Where the generator and the reflector run. On a switch they leave room for its worker, as in other experiments.
fn seats(bench: &Bench, road: Road) -> [Seat<'static>; 2] {
    let [reflector, generator] = match road {
        Road::PipeL2fwd => [Seat::on(bench.cpu(0)), Seat::on(bench.cpu(1))],
        _ => bench.on_switch(),
    };
    [generator, reflector]
}

fn reflector(
    bench: &Bench,
    contestant: Contestant,
    port: &str,
    seat: Seat,
) -> io::Result<Reflector> {
    let size = SIZE.to_string();
    let of_c = |name: &str, libraries: &[&str], arguments: &[&str]| {
        let folder = bench.scratch.folder(name)?;
        let program = c_program::own(&folder, name, Through::Preload, libraries)?;
        c_program::role(seat, &bench.daemon, &program, Through::Preload, arguments)
    };
    match contestant {
        Contestant::CPreload => {
            let (batch, port) = (BATCH.to_string(), device(port));
            let arguments = ["l2fwd", port.as_str(), &size, &batch, "touched"];
            of_c("netmap", &[], &arguments).map(Reflector::Role)
        }
        Contestant::PfRing => {
            of_c("pfring_l2fwd", &["-lpfring"], &[&device(port)]).map(Reflector::Role)
        }
        Contestant::Usdpaa => usdpaa(bench, port).map(Reflector::Program),
        Contestant::TpacketV4 => {
            let program = c_program::build(&bench.scratch.folder("tpacket4")?, TPACKET4)?;
            let arguments = ["l2fwd", port, LONG];
            let program = c_program::start(Seat::default(), &bench.daemon, &program, &arguments)?;
            Ok(Reflector::Program(program))
        }
        _ => {
            let at = format!("--at={port}");
            Role::start(seat, &bench.daemon, &["l2-forward", &at]).map(Reflector::Role)
        }
    }
}

/// A port as programs of netmap's API, and of PF_RING's, name it.
fn device(port: &str) -> String {
    if port.starts_with("vale") { port.to_owned() } else { format!("netmap:{port}") }
}

/// A program of USDPAA. Its thread is on the first CPU.
fn usdpaa(bench: &Bench, port: &str) -> io::Result<Running> {
    let project = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let headers = format!("-I{project}/include/usdpaa");
    let flags = [&headers, "-include", "usdpaa/little_endian.h", "-lusdpaa", "-lpthread"];
    let program = c_program::build_with(&bench.scratch.folder("usdpaa")?, USDPAA, &flags)?;
    let file = |name: &str| format!("{project}/dist/usdpaa/{name}");
    let [policies, config] = ["usdpaa_policy_hash_ipv4.xml", "usdpaa_config_one.xml"].map(file);
    let ports = format!("RINGWAY_USDPAA_PORTS=fm0-10g0={port}");
    let program = program.to_string_lossy();
    let arguments = [&ports, &*program, "-n", "1", "-p", &policies, "-c", &config];
    c_program::start(Seat::default(), &bench.daemon, Path::new("env"), &arguments)
}

/// What the generator is told.
#[derive(Args)]
pub struct Generate {
    #[arg(long)]
    at: String,
    /// Packets under way; 0: as many as there is room for
    #[arg(long)]
    in_flight: usize,
    /// Waits until something sends packets back
    #[arg(long)]
    awaits: bool,
}

/// The generator. It writes what it sends, and looks at what comes back.
pub fn generate(cpu: Option<usize>, generate: &Generate) -> io::Result<()> {
    let mut generator = Generator {
        port: Port::open(&generate.at).map_err(io::Error::other)?,
        packet: nic::packet(SIZE as u16, 0),
        most: generate.in_flight,
        under_way: 0,
        begin: Instant::now(),
    };
    cpu.map_or(Ok(()), cpu::pin)?;
    if generate.awaits {
        generator.await_answer()?;
    }
    let longest = NAP.as_nanos() as u64;
    let mut times = Histogram::<u64>::new_with_bounds(1, longest, 3).map_err(io::Error::other)?;
    let mut failure = Ok(());
    let mut sent = 0;
    let orders = Orders::ready()?;
    let count = orders.count(|| {
        let counts = orders.is_counting();
        let back = generator.receive(|took| {
            if counts {
                times.saturating_record(took);
            }
        });
        let away = generator.send();
        sent += if counts { away } else { 0 };
        if back == 0
            && away == 0
            && let Err(error) = generator.wait()
        {
            failure = Err(error);
        }
        back
    });
    failure?;
    let timed = generator.most > 0 && !times.is_empty();
    let percentiles = timed.then(|| Percentiles::of(&times));
    Orders::report(&Count { sent: Some(sent), percentiles, ..count })
}

struct Generator {
    port: Port,
    packet: Vec<u8>,
    /// Packets under way, at most; 0 for all that there is room for.
    most: usize,
    under_way: usize,
    begin: Instant,
}

impl Generator {
    /// Takes what has come back; `took` hears of each how many nanoseconds it was under way.
    fn receive(&mut self, mut took: impl FnMut(u64)) -> u64 {
        let timed = self.most > 0;
        let mut ring = self.port.rx(0);
        ring.sync();
        let now = self.begin.elapsed().as_nanos() as u64;
        let mut back = 0;
        for frame in ring.batch(BATCH) {
            let at = frame.read(TIME).map(u64::from_le_bytes);
            if let Some(at) = at.filter(|_| timed) {
                took(now.saturating_sub(at));
            }
            back += 1;
        }
        self.under_way = self.under_way.saturating_sub(back);
        back as u64
    }

    fn send(&mut self) -> u64 {
        let mut ring = self.port.tx(0);
        let most = match self.most {
            0 => BATCH,
            most => most - self.under_way.min(most),
        };
        if self.most > 0 && most > 0 {
            let now = self.begin.elapsed().as_nanos() as u64;
            self.packet[TIME..TIME + 8].copy_from_slice(&now.to_le_bytes());
        }
        let mut sent = 0;
        for mut slot in ring.batch(most) {
            slot.write(&self.packet);
            sent += 1;
        }
        ring.sync();
        self.under_way += sent;
        sent as u64
    }

    /// Packets that nothing brings back are lost, and others take their place.
    fn wait(&mut self) -> io::Result<()> {
        let interest = if self.most > 0 { Interest::Rx } else { Interest::Both };
        if !self.port.wait(interest, Some(NAP)).map_err(io::Error::other)? {
            self.under_way = 0;
        }
        Ok(())
    }

    /// Sends a packet now and then, until one comes back.
    fn await_answer(&mut self) -> io::Result<()> {
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE {
            let mut ring = self.port.tx(0);
            ring.push(&self.packet);
            ring.sync();
            self.port.wait_rx(Some(NAP)).map_err(io::Error::other)?;
            if self.receive(|_| ()) > 0 {
                return Ok(());
            }
        }
        Err(io::Error::other("nothing sends packets back; a message of the program may be above"))
    }
}

/// The reflector that is Ringway's own client.
pub fn forward(cpu: Option<usize>, at: &str) -> io::Result<()> {
    let port = Port::open(at).map_err(io::Error::other)?;
    cpu.map_or(Ok(()), cpu::pin)?;
    let step = |port: &mut Port| {
        let (mut to, mut from) = port.tx_and_rx(0, 0);
        reflect(&mut from, &mut to)
    };
    // Where there is no room for what has come, it waits for that.
    let wait = |port: &mut Port| {
        let interest = if port.rx(0).available() > 0 { Interest::Tx } else { Interest::Rx };
        port.wait(interest, Some(NAP)).map(drop).map_err(io::Error::other)
    };
    turn(port, 0, step, wait)
}

fn reflect(from: &mut RxRing<'_>, to: &mut TxRing<'_>) -> u64 {
    from.sync();
    let room = to.space().min(from.available());
    let mut moved = 0;
    for (frame, mut slot) in from.batch(room).zip(to.batch(room)) {
        let mut addresses = [0; 12];
        frame.copy_to(&mut addresses);
        addresses.rotate_left(6);
        frame.forward(&mut slot);
        slot.write_at(0, &addresses);
        moved += 1;
    }
    to.sync();
    moved
}
