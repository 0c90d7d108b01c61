//! What waiting costs: system calls and CPU time for each packet, of a receiver that sleeps when nothing has come, at rates
//! from a packet now and then to as many as its path carries.
//!
//! The sender sends each packet by itself, when it is due. The kernel counts the receiver's calls, which makes these no slower.

use std::io;
use std::thread;
use std::time::Instant;

use crate::bench::Bench;
use crate::c_program::{self, Through};
use crate::datagrams;
use crate::extent::Extent;
use crate::figure::{Figure, Spent};
use crate::nic::stage::Stage;
use crate::paced::SIZE;
use crate::record::{Contestant, Payload, Road, Subject, Unit};
use crate::roles::{self, Role, Seat};
use crate::study::Study;
use crate::sys::Calls;

/// Where the sender's packets go, for a socket.
const SOCKET: &str = "198.18.0.2:9";

/// All of them; none where the kernel does not show its count.
pub fn subjects(extent: Extent) -> Vec<Subject> {
    use Contestant::{CPreload, Ringway, Udp};
    if !Calls::are_countable() {
        return Vec::new();
    }
    // None: as fast as possible.
    let rates: &[Option<u64>] = match extent {
        Extent::Whole => &[Some(1_000), Some(100_000), None],
        Extent::Quick => &[Some(1_000), None],
    };
    let rows = [
        (Road::PipeWaiting, Ringway),
        (Road::PipeWaiting, CPreload),
        (Road::ValeWaiting, Ringway),
        (Road::ValeWaiting, CPreload),
        (Road::VethWaiting, Ringway),
        (Road::VethWaiting, Udp),
    ];
    let subject = |rate: Option<u64>| {
        rows.map(|(road, contestant)| {
            let settings = match contestant {
                CPreload => Some("bench/c/netmap.c: poll, slots".into()),
                Udp => Some(datagrams::settings()),
                _ => None,
            };
            Subject {
                size: Some(SIZE),
                payload: Some(Payload::Touched),
                rate,
                settings,
                ..Subject::new(Study::Waiting, road, contestant, Unit::CallsPerThousand)
            }
        })
    };
    rates.iter().flat_map(|&rate| subject(rate)).collect()
}

/// Which process has which CPU.
pub fn cpus([zero, one]: [usize; 2]) -> String {
    let shared = if zero == one { ", which both share" } else { "" };
    format!("sender {zero}, receiver {one}{shared}; a switch's worker any")
}

/// System calls for a thousand packets.
pub fn once(bench: &Bench, subject: &Subject) -> io::Result<Figure> {
    let [to, from] = match subject.experiment {
        Road::PipeWaiting => ["bench}7", "bench{7"],
        Road::ValeWaiting => ["valebench:wrx", "valebench:wtx"],
        _ => ["netmap:near0", "netmap:far0"],
    };
    let stage = (subject.experiment == Road::VethWaiting).then(|| Stage::new(1, 1)).transpose()?;
    let seats = [Seat::on(bench.cpu(1)), Seat::on(bench.cpu(0))];
    let ([receives, sends], daemons) = match &stage {
        Some(stage) => {
            let [receives, sends] = seats;
            // A daemon serves the namespace that it was started in.
            let daemons = [bench.scratch.folder("near")?, bench.scratch.folder("far")?];
            ([receives.inside(&stage.near), sends.inside(&stage.far)], daemons)
        }
        None => (seats, [bench.daemon.clone(), bench.daemon.clone()]),
    };
    let receiver = match subject.contestant {
        Contestant::CPreload => {
            let folder = bench.scratch.folder("netmap")?;
            let program = c_program::own(&folder, "netmap", Through::Preload, &[])?;
            let port = if to.starts_with("vale") { to.to_owned() } else { format!("netmap:{to}") };
            let size = SIZE.to_string();
            let arguments = ["rx", port.as_str(), &size, "1024", "touched"];
            c_program::role(receives, &daemons[0], &program, Through::Preload, &arguments)?
        }
        Contestant::Udp => {
            if let Some(stage) = &stage {
                stage.near.run(
                    "ip link set near0 address 02:00:00:00:00:00\n\
                     ip addr add 198.18.0.2/24 dev near0\n",
                )?;
            }
            Role::start(receives, &daemons[0], &["datagrams", SOCKET])?
        }
        _ => Role::start(receives, &daemons[0], &["drain", &format!("--at={to}")])?,
    };
    let mut calls = Calls::of(receiver.pid())?;
    let (at, rate) = (format!("--at={from}"), format!("--rate={}", subject.rate.unwrap_or(0)));
    let sender = Role::start(sends, &daemons[1], &["paced", &at, &rate, "--even"])?;
    let mut all = vec![receiver, sender];
    roles::begin(&mut all, bench.warm_up)?;
    let (begin, before) = (Instant::now(), calls.made()?);
    thread::sleep(bench.counting);
    let (took, made) = (begin.elapsed(), calls.made()? - before);
    let counts = roles::end(all)?;
    let count = &counts[0];
    if count.packets == 0 {
        return Err(io::Error::other("nothing has arrived"));
    }
    let spent = Spent { usage: count.usage, packets: count.packets as f64 };
    // Each counts for a time of its own.
    let value = made as f64 * 1000.0 / took.as_secs_f64() / count.rate();
    Ok(Figure { spent: Some(spent), value, ..Figure::from(count) })
}
