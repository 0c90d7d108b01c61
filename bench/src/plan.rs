//! What is measured, and how one run of it goes.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::c_program;
use crate::containers;
use crate::dpdk::{self, Link};
use crate::figure::Figure;
use crate::nic::{self, Race};
use crate::opening;
use crate::pcap::{self, Library};
use crate::pfring;
use crate::record::{Contestant, Payload, Road, Subject, Unit};
use crate::roles::{self, Count, Role, Seat};
use crate::scratch::Scratch;
use crate::target::Target;
use crate::tpacket4;
use crate::traffic;
use crate::usdpaa;

/// Packets in a sync where the experiment is not about the batch.
const BATCH: usize = 256;

/// How to run an experiment once.
enum Way {
    Pipe,
    Vale,
    Pcap,
    Tpacket4,
    Pfring,
    Usdpaa,
    Null,
    /// The first port of a user, or one more.
    Opening {
        first: bool,
    },
    GracePeriods,
    Containers,
    Dpdk(Link),
    Nic(Race),
}

/// One line of the table.
pub struct Experiment {
    pub subject: Subject,
    pub target: Option<Target>,
    way: Way,
}

/// What every run of every experiment shares.
pub struct Bench {
    pub scratch: Scratch,
    /// Folder of the private daemon that serves the experiments, and nobody else.
    pub daemon: PathBuf,
    /// CPUs to put processes on; one is used twice when there are too few.
    pub cpus: Vec<usize>,
    pub warm_up: Duration,
    pub counting: Duration,
}

impl Bench {
    /// The CPU for the experiment's n-th process.
    pub fn cpu(&self, process: usize) -> usize {
        self.cpus[process % self.cpus.len()]
    }
}

/// The whole plan, in the order of the table. Both memif, as it comes and tuned, are what others are compared
/// with.
pub fn experiments() -> Vec<Experiment> {
    let mut plan = Vec::new();
    for payload in [Payload::Untouched, Payload::Touched] {
        for batch in [1, 8, 64, 256] {
            plan.push(pipe(payload, batch));
        }
    }
    for receivers in [1, 3] {
        for size in [60, 508, 1514] {
            plan.push(vale(receivers, size));
        }
    }
    plan.push(libpcap(Road::PcapPipe));
    plan.push(libpcap(Road::PcapVale));
    for road in
        [Road::Tpacket4PipeRx, Road::Tpacket4PipeTx, Road::Tpacket4ValeRx, Road::Tpacket4ValeTx]
    {
        plan.push(tpacket4(road));
    }
    for (road, mpps) in [
        (Road::PfringPipe, Some(10.0)),
        (Road::PfringPipeParsed, Some(5.0)),
        (Road::PfringPipeCluster, None),
        (Road::PfringVale, Some(10.0)),
        (Road::PfringValeParsed, Some(5.0)),
    ] {
        plan.push(pf_ring(road, mpps));
    }
    plan.push(usdpaa_reflector());
    plan.push(null());
    plan.push(opening(Road::OpenFirst, Way::Opening { first: true }, Some(20.0)));
    plan.push(opening(Road::OpenNext, Way::Opening { first: false }, Some(20.0)));
    plan.push(opening(Road::GracePeriods, Way::GracePeriods, None));
    plan.extend(between_containers());
    plan.push(peer(Road::Memif, dpdk::MEMIF_DEFAULT));
    plan.push(peer(Road::Memif, dpdk::MEMIF_TUNED));
    plan.push(peer(Road::VhostUser, dpdk::VHOST_USER));
    plan.extend(nic::races().into_iter().map(race));
    plan
}

fn ringway(experiment: Road, unit: Unit) -> Subject {
    Subject {
        experiment,
        contestant: Contestant::Ringway,
        unit,
        size: None,
        batch: Some(BATCH),
        payload: None,
        receivers: None,
        in_flight: None,
        settings: None,
    }
}

fn pipe(payload: Payload, batch: usize) -> Experiment {
    let target = match (payload, batch) {
        (Payload::Untouched, 256) => Some(Target::mpps(150.0)),
        (Payload::Untouched, 1) => Some(Target::mpps(25.0)),
        (Payload::Touched, 256) => Some(Target::mpps(80.0).and_memif_times(3.0)),
        _ => None,
    };
    let subject = Subject {
        size: Some(64),
        batch: Some(batch),
        payload: Some(payload),
        ..ringway(Road::Pipe, Unit::Mpps)
    };
    Experiment { subject, target, way: Way::Pipe }
}

fn vale(receivers: usize, size: usize) -> Experiment {
    let target = (receivers == 1 && size == 60).then(|| Target::mpps(35.0).and_memif_times(1.4));
    let subject =
        Subject { size: Some(size), receivers: Some(receivers), ..ringway(Road::Vale, Unit::Mpps) };
    Experiment { subject, target, way: Way::Vale }
}

fn libpcap(road: Road) -> Experiment {
    let settings = Some(format!("filter `{}`, a callback that counts", pcap::FILTER));
    let subject = Subject { size: Some(64), settings, ..ringway(road, Unit::Mpps) };
    Experiment { subject, target: Some(Target::mpps(14.0)), way: Way::Pcap }
}

fn tpacket4(road: Road) -> Experiment {
    let subject = Subject { size: Some(60), ..ringway(road, Unit::Mpps) };
    Experiment { subject, target: Some(Target::mpps(12.0)), way: Way::Tpacket4 }
}

fn pf_ring(road: Road, mpps: Option<f64>) -> Experiment {
    let subject = Subject { size: Some(60), ..ringway(road, Unit::Mpps) };
    Experiment { subject, target: mpps.map(Target::mpps), way: Way::Pfring }
}

fn usdpaa_reflector() -> Experiment {
    let subject = Subject { size: Some(60), ..ringway(Road::UsdpaaVale, Unit::Mpps) };
    Experiment { subject, target: Some(Target::mpps(5.0)), way: Way::Usdpaa }
}

fn null() -> Experiment {
    let subject = ringway(Road::Null, Unit::CyclesPerPacket);
    Experiment { subject, target: Some(Target::cycles(20.0)), way: Way::Null }
}

/// How long it takes until a port of an interface with one queue can be used, and what of that the kernel waits for.
fn opening(road: Road, way: Way, at_most: Option<f64>) -> Experiment {
    let subject = Subject { batch: None, ..ringway(road, Unit::Milliseconds) };
    Experiment { subject, target: at_most.map(Target::milliseconds), way }
}

/// What two containers exchange, and the host with one, over a switch and over a Linux bridge.
fn between_containers() -> impl Iterator<Item = Experiment> {
    let roads = [
        (Road::ContainersTcp, Unit::Gigabits, None),
        (Road::ContainersTcpStreams, Unit::Gigabits, None),
        (Road::ContainersUdp, Unit::Mpps, Some(64)),
        (Road::ContainersVxlan, Unit::Gigabits, None),
        (Road::ContainersProgram, Unit::Gigabits, None),
        (Road::ContainersPing, Unit::Microseconds, None),
        (Road::HostTcpOut, Unit::Gigabits, None),
        (Road::HostTcpIn, Unit::Gigabits, None),
        (Road::HostPing, Unit::Microseconds, None),
    ];
    roads.into_iter().flat_map(|(road, unit, size)| {
        [Contestant::Ringway, Contestant::LinuxBridge].map(|contestant| {
            let subject = Subject { contestant, size, batch: None, ..ringway(road, unit) };
            Experiment { subject, target: None, way: Way::Containers }
        })
    })
}

fn peer(experiment: Road, link: Link) -> Experiment {
    let subject = Subject {
        contestant: Contestant::Dpdk,
        size: Some(64),
        batch: Some(link.burst),
        settings: Some(link.settings()),
        ..ringway(experiment, Unit::Mpps)
    };
    Experiment { subject, target: None, way: Way::Dpdk(link) }
}

fn race(race: Race) -> Experiment {
    Experiment { subject: race.subject(), target: None, way: Way::Nic(race) }
}

impl Experiment {
    /// Whether it takes root.
    pub fn needs_root(&self) -> bool {
        self.is_race() || matches!(self.way, Way::Opening { .. } | Way::Containers)
    }

    /// Whether it is one contestant's turn on a network interface.
    pub fn is_race(&self) -> bool {
        matches!(self.way, Way::Nic(_))
    }

    /// Runs the experiment once; returns the figure in its unit.
    pub fn once(&self, bench: &Bench) -> io::Result<Figure> {
        let figure = match &self.way {
            Way::Nic(race) => return race.once(bench),
            Way::Pipe => self.pipe_once(bench),
            Way::Vale => self.vale_once(bench),
            Way::Pcap => self.pcap_once(bench),
            Way::Tpacket4 => tpacket4::once(bench, self.subject.experiment, &self.traffic()),
            Way::Pfring => pfring::once(bench, self.subject.experiment, &self.traffic()),
            Way::Usdpaa => usdpaa::once(bench, &self.traffic()),
            Way::Null => self.null_once(bench),
            Way::Opening { first } => opening::once(bench, *first),
            Way::GracePeriods => opening::grace_periods(),
            Way::Containers => {
                containers::once(bench, self.subject.experiment, self.subject.contestant)
            }
            Way::Dpdk(link) => link.measure(
                &bench.scratch.folder("dpdk")?,
                [bench.cpu(0), bench.cpu(1)],
                self.subject.size.unwrap_or(64),
                bench.warm_up,
                bench.counting,
            ),
        };
        figure.map(Figure::from)
    }

    /// What sender and receivers need to know alike.
    fn traffic(&self) -> [String; 2] {
        let number = |n: Option<usize>| n.unwrap_or_default().to_string();
        [
            format!("--size={}", number(self.subject.size)),
            format!("--batch={}", number(self.subject.batch)),
        ]
    }

    fn pipe_once(&self, bench: &Bench) -> io::Result<f64> {
        let [size, batch] = self.traffic();
        let mut common = vec![size.as_str(), &batch];
        if self.subject.payload == Some(Payload::Touched) {
            common.push("--touch");
        }
        let start = |process, name| {
            let arguments = [&[name], &common[..]].concat();
            Role::start(Seat::on(bench.cpu(process)), &bench.daemon, &arguments)
        };
        let processes = vec![start(1, "pipe-rx")?, start(0, "pipe-tx")?];
        let counts = roles::run(processes, bench.warm_up, bench.counting)?;
        Ok(counts[0].mpps())
    }

    /// The rate of each receiver, on average: with several, every packet goes to all of them.
    ///
    /// All programs share one CPU, so that the switch, which does most of the work, can have the
    /// other: with two CPUs and a program on each, it would have to wait for one of them.
    fn vale_once(&self, bench: &Bench) -> io::Result<f64> {
        let [size, batch] = self.traffic();
        let receivers = self.subject.receivers.unwrap_or(1);
        let start = |arguments: &[&str]| {
            let arguments = [arguments, &[&size, &batch]].concat();
            Role::start(Seat::on(bench.cpu(0)), &bench.daemon, &arguments)
        };
        let mut processes = Vec::new();
        for receiver in 0..receivers {
            processes.push(start(&["vale-rx", &format!("--index={receiver}")])?);
        }
        processes.push(start(&["vale-tx", &format!("--receivers={receivers}")])?);
        let counts = roles::run(processes, bench.warm_up, bench.counting)?;
        Ok(counts[..receivers].iter().map(Count::mpps).sum::<f64>() / receivers as f64)
    }

    /// A program of libpcap counts what a pipe or a switch brings it. As with a switch's other programs, sender and
    /// receiver share a CPU there.
    fn pcap_once(&self, bench: &Bench) -> io::Result<f64> {
        let [size, batch] = self.traffic();
        let (device, sender, seats) = match self.subject.experiment {
            Road::PcapPipe => (traffic::pipe_end(), ["pipe-tx", "--udp=1"], [1, 0]),
            _ => (traffic::receiver_port(0), ["vale-tx", "--receivers=1"], [0, 0]),
        };
        let mut counter = Library::Ringway.arguments(&device);
        let mut sender = sender.to_vec();
        if self.subject.experiment == Road::PcapVale {
            counter.push("--introduce".into());
            sender.push("--udp=1");
        }
        let counter: Vec<&str> = counter.iter().map(String::as_str).collect();
        sender.extend([size.as_str(), &batch]);
        let start = |process, arguments: &[&str]| {
            Role::start(Seat::on(bench.cpu(process)), &bench.daemon, arguments)
        };
        let processes = vec![start(seats[0], &counter)?, start(seats[1], &sender)?];
        let counts = roles::run(processes, bench.warm_up, bench.counting)?;
        Ok(counts[0].mpps())
    }

    /// A C program measures itself: the transmit loop to a null port, which is one of the C tests.
    fn null_once(&self, bench: &Bench) -> io::Result<f64> {
        let program = c_program::build(&bench.scratch.folder("null")?, "tests/c/null_cycles.c")?;
        let batch = self.subject.batch.unwrap_or(BATCH).to_string();
        let seat = Seat::on(bench.cpu(0));
        let output = c_program::run(seat, &bench.daemon, &program, &[&batch])?;
        c_program::number_behind("cycles_per_packet", &output)
    }
}
