//! What is measured: the experiments, in the order of the table.

use crate::c_program::Through;
use crate::containers;
use crate::dpdk::{self, Link};
use crate::experiment::{Experiment, Way};
use crate::extent::{BATCH, Extent};
use crate::l2fwd;
use crate::machines::UNTUNED;
use crate::nic::{self, Race};
use crate::open_vswitch::{self, Ports};
use crate::pcap;
use crate::record::{Contestant, Payload, Road, Subject, Unit};
use crate::selected;
use crate::study::Study;
use crate::target::Target;
use crate::tcpdump;
use crate::waiting;

/// The points of the curves.
struct Points {
    /// Those of netmap's figure 7.
    batches: &'static [usize],
    /// Sizes beside multiples of a cache line among them; then packets in several slots.
    sizes: &'static [usize],
    /// Percent of one processor.
    shares: &'static [u32],
    /// Ports that are open on a switch.
    ports: &'static [usize],
    receivers: &'static [usize],
    senders: &'static [usize],
    switches: &'static [usize],
    /// Interfaces that are attached to a switch.
    attached: &'static [usize],
}

impl Extent {
    fn points(self) -> Points {
        match self {
            Extent::Whole => Points {
                batches: &[1, 2, 4, 8, 16, 32, 64, 128, 256],
                sizes: &[
                    60, 64, 65, 128, 129, 192, 256, 257, 512, 513, 1024, 1025, 1514, 4096, 16384,
                    65536,
                ],
                shares: &[10, 25, 50, 100, 150, 200],
                ports: &[2, 16, 64, 250],
                receivers: &[1, 2, 4, 8, 16],
                senders: &[1, 2, 4, 8],
                switches: &[1, 2, 4, 8, 16],
                attached: &[1, 16, 64],
            },
            Extent::Quick => Points {
                batches: &[1, 256],
                sizes: &[60, 1514, 65536],
                shares: &[25, 200],
                ports: &[2, 250],
                receivers: &[1, 4],
                senders: &[1, 4],
                switches: &[1, 4],
                attached: &[1],
            },
        }
    }
}

/// The whole plan, in the order of the table. Both memif, as it comes and tuned, are what others are compared
/// with.
pub fn experiments(extent: Extent) -> Vec<Experiment> {
    let points = extent.points();
    let mut plan = Vec::new();
    for payload in [Payload::Touched, Payload::Untouched] {
        for batch in [1, 8, 64, 256] {
            plan.push(pipe(payload, batch));
        }
    }
    plan.extend(c_programs(Road::Pipe));
    for payload in [Payload::Touched, Payload::Untouched] {
        for receivers in [1, 3] {
            for size in [60, 508, 1514] {
                plan.push(vale(payload, receivers, size));
            }
        }
    }
    plan.extend([508, 1514].map(swapping));
    plan.extend(c_programs(Road::Vale));
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
    plan.extend(each(l2fwd::subjects(extent), || Way::L2fwd));
    for (contestant, through) in
        [(Contestant::CPreload, Through::Preload), (Contestant::CLinked, Through::Linked)]
    {
        plan.push(null(contestant, through));
    }
    for (contestant, through) in [
        (Contestant::CPreload, Through::Preload),
        (Contestant::CLinked, Through::Linked),
        (Contestant::Plain, Through::Nothing),
    ] {
        let unit = Unit::Nanoseconds;
        let subject = Subject::new(Study::Paths, Road::ForeignPoll, contestant, unit);
        plan.push(Experiment { subject, target: None, way: Way::ForeignPoll(through) });
    }
    plan.push(peer(Road::Memif, Contestant::Dpdk, dpdk::MEMIF_DEFAULT, 64));
    for size in [64, 508, 1514] {
        plan.push(peer(Road::Memif, Contestant::DpdkTuned, dpdk::MEMIF_TUNED, size));
    }
    plan.push(peer(Road::VhostUser, Contestant::DpdkTuned, dpdk::VHOST_USER, 64));
    plan.extend(batches(points.batches));
    plan.extend(sizes(points.sizes));
    plan.extend(shares(points.shares));
    plan.extend(round_trips());
    plan.extend(each(waiting::subjects(extent), || Way::Waiting));
    plan.extend(many_ports(points.ports, points.receivers));
    plan.extend(many_processes(&points));
    plan.extend(attached(points.attached));
    plan.extend(memory());
    plan.push(opening(Road::OpenFirst, Way::Opening { first: true }, Some(20.0)));
    plan.push(opening(Road::OpenNext, Way::Opening { first: false }, Some(20.0)));
    plan.push(opening(Road::GracePeriods, Way::GracePeriods, None));
    plan.extend(between_containers());
    plan.extend(between_machines());
    plan.extend(nic::races(extent).into_iter().map(race));
    plan.extend(each(tcpdump::subjects(), || Way::Tcpdump));
    plan.extend(each(selected::subjects(), || Way::Selected));
    plan
}

/// Experiments without a target, all of one way.
fn each(subjects: Vec<Subject>, way: fn() -> Way) -> impl Iterator<Item = Experiment> {
    subjects.into_iter().map(move |subject| Experiment { subject, target: None, way: way() })
}

/// Ringway, in batches of [`BATCH`].
fn ringway(experiment: Road, unit: Unit) -> Subject {
    let batch = Some(BATCH);
    Subject { batch, ..Subject::new(Study::Paths, experiment, Contestant::Ringway, unit) }
}

fn pipe(payload: Payload, batch: usize) -> Experiment {
    let target = match (payload, batch) {
        (Payload::Untouched, 256) => Some(Target::mpps(150.0)),
        (Payload::Untouched, 1) => Some(Target::mpps(25.0)),
        (Payload::Touched, 1) => Some(Target::mpps(35.0)),
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

fn vale(payload: Payload, receivers: usize, size: usize) -> Experiment {
    let target = (receivers == 1 && size == 60).then(|| Target::mpps(35.0).and_memif_times(1.4));
    let subject = Subject {
        size: Some(size),
        receivers: Some(receivers),
        payload: Some(payload),
        ..ringway(Road::Vale, Unit::Mpps)
    };
    Experiment { subject, target, way: Way::Vale }
}

/// From one port to another, where buffers change hands.
fn swapping(size: usize) -> Experiment {
    let touched = vale(Payload::Touched, 1, size);
    let subject = Subject { contestant: Contestant::RingwaySwaps, ..touched.subject };
    Experiment { subject, ..touched }
}

/// The loops of netmap's pkt-gen in C beside the client in Rust.
fn c_programs(road: Road) -> impl Iterator<Item = Experiment> {
    let ways = [(Contestant::CPreload, Through::Preload), (Contestant::CLinked, Through::Linked)];
    ways.into_iter().flat_map(move |(contestant, through)| {
        [1, BATCH].map(|batch| {
            let subject = Subject {
                contestant,
                size: Some(if road == Road::Pipe { 64 } else { 60 }),
                batch: Some(batch),
                payload: Some(Payload::Touched),
                receivers: (road == Road::Vale).then_some(1),
                settings: Some("bench/c/netmap.c: poll, slots, ioctl(NIOCTXSYNC)".into()),
                ..ringway(road, Unit::Mpps)
            };
            let way = match road {
                Road::Pipe => Way::CPipe(through),
                _ => Way::CVale(through),
            };
            Experiment { subject, target: None, way }
        })
    })
}

fn libpcap(road: Road) -> Experiment {
    let settings = Some(format!("filter `{}`, a callback that reads all", pcap::FILTER));
    let payload = Some(Payload::Touched);
    let subject = Subject { size: Some(64), payload, settings, ..ringway(road, Unit::Mpps) };
    Experiment { subject, target: Some(Target::mpps(14.0)), way: Way::Pcap }
}

fn tpacket4(road: Road) -> Experiment {
    let payload = Some(Payload::Untouched);
    let subject = Subject { size: Some(60), payload, ..ringway(road, Unit::Mpps) };
    Experiment { subject, target: Some(Target::mpps(12.0)), way: Way::Tpacket4 }
}

fn pf_ring(road: Road, mpps: Option<f64>) -> Experiment {
    let payload = Some(Payload::Touched);
    let subject = Subject { size: Some(60), payload, ..ringway(road, Unit::Mpps) };
    Experiment { subject, target: mpps.map(Target::mpps), way: Way::Pfring }
}

fn usdpaa_reflector() -> Experiment {
    let settings = Some("the sender writes all, the reflector the addresses".into());
    let subject = Subject { size: Some(60), settings, ..ringway(Road::UsdpaaVale, Unit::Mpps) };
    Experiment { subject, target: Some(Target::mpps(5.0)), way: Way::Usdpaa }
}

fn null(contestant: Contestant, through: Through) -> Experiment {
    let payload = Some(Payload::Untouched);
    let subject = Subject { contestant, payload, ..ringway(Road::Null, Unit::CyclesPerPacket) };
    Experiment { subject, target: Some(Target::cycles(20.0)), way: Way::Null(through) }
}

/// Those of [`Study::Batch`]: what the table of paths has as well is told apart by its size.
fn batches(points: &[usize]) -> impl Iterator<Item = Experiment> {
    points.iter().flat_map(|&batch| {
        let of = |road, unit| Subject {
            study: Study::Batch,
            batch: Some(batch),
            size: Some(60),
            payload: Some(Payload::Touched),
            ..ringway(road, unit)
        };
        let null = Subject {
            contestant: Contestant::CLinked,
            payload: Some(Payload::Untouched),
            ..of(Road::Null, Unit::CyclesPerPacket)
        };
        let vale = Subject { ports: Some(2), ..of(Road::Vale, Unit::Mpps) };
        let races = [Contestant::Ringway, Contestant::AfXdp];
        let races = races.map(|contestant| race(Race::in_batches(contestant, batch)));
        let mut all = vec![
            Experiment { subject: null, target: None, way: Way::Null(Through::Linked) },
            Experiment { subject: of(Road::Pipe, Unit::Mpps), target: None, way: Way::Pipe },
            Experiment { subject: vale, target: None, way: Way::Vale },
        ];
        all.extend(races);
        all
    })
}

fn sizes(points: &[usize]) -> impl Iterator<Item = Experiment> {
    points.iter().flat_map(|&size| {
        let of = |road| Subject {
            study: Study::FrameSize,
            size: Some(size),
            payload: Some(Payload::Touched),
            ..ringway(road, Unit::Mpps)
        };
        let mut all = vec![
            Experiment { subject: of(Road::Pipe), target: None, way: Way::Pipe },
            Experiment { subject: of(Road::Vale), target: None, way: Way::Vale },
        ];
        // What an MTU of 1500 lets through.
        if size <= 1514 {
            let races = [Contestant::Ringway, Contestant::AfXdp];
            all.extend(races.map(|contestant| race(Race::of_size(contestant, size))));
        }
        all
    })
}

fn shares(points: &[u32]) -> impl Iterator<Item = Experiment> {
    points.iter().flat_map(|&share| {
        [(Road::Pipe, Way::Pipe), (Road::Vale, Way::Vale)].map(|(road, way)| {
            let subject = Subject {
                study: Study::Share,
                size: Some(60),
                payload: Some(Payload::Touched),
                share: Some(share),
                ..ringway(road, Unit::Mpps)
            };
            Experiment { subject, target: None, way }
        })
    })
}

/// Packets a second beside round trips.
const LOAD: u64 = 500_000;

fn round_trips() -> impl Iterator<Item = Experiment> {
    use Contestant::{Ringway, Tap, Udp};
    let rows = [
        (Road::PipeLatency, Ringway, None),
        (Road::PipeLatency, Ringway, Some(LOAD)),
        (Road::ValeLatency, Ringway, None),
        (Road::ValeLatency, Ringway, Some(LOAD)),
        (Road::VethLatency, Ringway, None),
        (Road::VethLatency, Udp, None),
        (Road::VethLatency, Ringway, Some(LOAD)),
        (Road::HostLatency, Ringway, None),
        (Road::HostLatency, Tap, None),
        (Road::LoopbackLatency, Udp, None),
    ];
    rows.into_iter().flat_map(|(road, contestant, load)| {
        [true, false].map(|spins| {
            let subject = Subject {
                spins: Some(spins),
                load,
                size: Some(60),
                ..Subject::new(Study::Latency, road, contestant, Unit::Microseconds)
            };
            Experiment { subject, target: None, way: Way::Latency }
        })
    })
}

fn many_ports(ports: &[usize], receivers: &[usize]) -> impl Iterator<Item = Experiment> {
    let on_ports = ports.iter().flat_map(|&ports| {
        let of = |study, road, unit| Subject {
            ports: Some(ports),
            ..Subject::new(study, road, Contestant::Ringway, unit)
        };
        let rate = Subject {
            size: Some(60),
            batch: Some(BATCH),
            payload: Some(Payload::Touched),
            ..of(Study::Scaling, Road::Vale, Unit::Mpps)
        };
        let open = of(Study::Scaling, Road::OpenMany, Unit::Milliseconds);
        let idle = of(Study::Idle, Road::Idle, Unit::Percent);
        [
            Experiment { subject: rate, target: None, way: Way::Vale },
            Experiment { subject: open, target: None, way: Way::OpenMany },
            Experiment { subject: idle, target: None, way: Way::Idle },
        ]
    });
    let to_receivers = receivers.iter().map(|&receivers| {
        let subject = Subject {
            study: Study::Scaling,
            size: Some(60),
            receivers: Some(receivers),
            payload: Some(Payload::Touched),
            ..ringway(Road::Vale, Unit::Mpps)
        };
        Experiment { subject, target: None, way: Way::Vale }
    });
    on_ports.chain(to_receivers)
}

/// Several senders to one receiver, and several switches.
fn many_processes(points: &Points) -> Vec<Experiment> {
    let one = Subject {
        study: Study::Scaling,
        size: Some(60),
        payload: Some(Payload::Touched),
        ..ringway(Road::Vale, Unit::Mpps)
    };
    let senders = points.senders.iter();
    let senders = senders.map(|&senders| Subject { senders: Some(senders), ..one.clone() });
    let switches = points.switches.iter();
    let switches = switches.map(|&switches| Subject { switches: Some(switches), ..one.clone() });
    let all = senders.chain(switches);
    all.map(|subject| Experiment { subject, target: None, way: Way::Vale }).collect()
}

/// Interfaces that are attached to a switch, and at rest.
fn attached(points: &[usize]) -> impl Iterator<Item = Experiment> {
    points.iter().map(|&ports| {
        let (road, unit) = (Road::IdleAttached, Unit::Percent);
        let subject = Subject {
            ports: Some(ports),
            ..Subject::new(Study::Idle, road, Contestant::Ringway, unit)
        };
        Experiment { subject, target: None, way: Way::IdleAttached }
    })
}

/// What ports have of memory.
fn memory() -> impl Iterator<Item = Experiment> {
    let rows = [(Road::MemoryPipe, 16), (Road::MemoryVale, 16), (Road::MemoryVeth, 4)];
    rows.into_iter().map(|(road, ports)| {
        let subject = Subject {
            ports: Some(ports),
            ..Subject::new(Study::Memory, road, Contestant::Ringway, Unit::Kibibytes)
        };
        Experiment { subject, target: None, way: Way::Memory }
    })
}

/// How long it takes until a port of an interface with one queue can be used, and what of that the kernel waits for.
fn opening(road: Road, way: Way, at_most: Option<f64>) -> Experiment {
    let subject = Subject::new(Study::Opening, road, Contestant::Ringway, Unit::Milliseconds);
    Experiment { subject, target: at_most.map(Target::milliseconds), way }
}

/// Of containers on AF_XDP sockets, which know nothing of checksums that are left to others.
const NO_OFFLOADS: &str = "; `ethtool -K eth0 tx off` in the containers";

/// What two containers exchange, and the host with one, over a switch, a Linux bridge and Open vSwitch.
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
        let vswitch = containers::vswitch_ports(road).filter(|_| open_vswitch::is_there());
        let vswitch = vswitch.map(|ports| {
            let without = if ports == Ports::AfXdp { NO_OFFLOADS } else { "" };
            (Contestant::OpenVswitch, Some(format!("{}{without}", ports.settings())))
        });
        let two = [Contestant::Ringway, Contestant::LinuxBridge].map(|one| (one, None));
        two.into_iter().chain(vswitch).map(move |(contestant, settings)| {
            let subject = Subject::new(Study::Containers, road, contestant, unit);
            let subject = Subject { size, settings, ..subject };
            Experiment { subject, target: None, way: Way::Containers }
        })
    })
}

/// What two machines exchange, and one with a program.
fn between_machines() -> impl Iterator<Item = Experiment> {
    let rows = [
        (Road::Machines, Contestant::Ringway, 64),
        (Road::Machines, Contestant::DpdkTuned, 64),
        (Road::Machines, Contestant::Ringway, 1514),
        (Road::Machines, Contestant::DpdkTuned, 1514),
        (Road::MachineToProgram, Contestant::Ringway, 64),
    ];
    rows.into_iter().map(|(road, contestant, size)| {
        let subject = Subject {
            size: Some(size),
            settings: Some(UNTUNED.settings()),
            ..Subject::new(Study::Machines, road, contestant, Unit::Mpps)
        };
        Experiment { subject, target: None, way: Way::Machines(UNTUNED) }
    })
}

fn peer(road: Road, contestant: Contestant, link: Link, size: usize) -> Experiment {
    let mut experiment = Experiment {
        subject: Subject {
            size: Some(size),
            payload: Some(Payload::Untouched),
            ..Subject::new(Study::Paths, road, contestant, Unit::Mpps)
        },
        target: None,
        way: Way::Dpdk(link),
    };
    experiment.set(link);
    experiment
}

fn race(race: Race) -> Experiment {
    Experiment { subject: race.subject(), target: None, way: Way::Nic(race) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_experiment_has_a_name_of_its_own() {
        let mut names: Vec<_> =
            experiments(Extent::Whole).iter().map(|one| one.subject.to_string()).collect();
        let all = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
