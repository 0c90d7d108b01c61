//! Network interfaces: Ringway and its peers on veth pairs between two network namespaces.
//!
//! Every contestant does the same work on the same stage ([`stage`]), in processes of its own: the
//! own ones play a [`part`] through Ringway ([`ringway`]) or AF_PACKET ([`tpacket2`], [`tpacket3`]);
//! AF_XDP's is a program in C on libxdp (bench/c/xsk.c), DPDK's are testpmds ([`peer`]). Where packets
//! come from elsewhere, they all get them from the same [`generator`], on an AF_XDP socket of its own.
//!
//! What is sent and forwarded is counted by the kernel, at the interface where it arrives; what is
//! received, by the contestant. One CPU has the contestant, the other one the sender, whose system
//! calls do most of a veth pair's work.

mod generator;
mod packet;
mod part;
mod peer;
mod ringway;
pub mod stage;
pub mod table;
mod tpacket2;
mod tpacket3;
mod tpacket4;

use std::path::PathBuf;
use std::time::{Duration, Instant};
use std::{io, thread};

use self::peer::{Mode, Peer, Pmd};
use self::stage::Stage;
use crate::bench::Bench;
use crate::c_program::{self, Through};
use crate::containers;
use crate::extent::Extent;
use crate::figure::{Figure, Spent};
use crate::netns::Netns;
use crate::open_vswitch::{self, Ports};
use crate::pcap::{self, Library};
use crate::pfring;
use crate::record::{Contestant, Payload, Road, Subject, Unit};
use crate::roles::{self, Count, Held, Role, Seat};
use crate::study::Study;
use crate::testpmd::Testpmd;
use crate::usage::Usage;

pub use packet::packet;
pub use part::{Part, play};

/// Ethernet frames of these lengths, without the frame check sequence.
const SIZES: [usize; 2] = [64, 1500];

/// A port that takes nothing of what is sent to queue 0.
const OTHER_QUEUE: &str = "near0~1";

/// A port that takes what [`stage::TC_FILTER`] selects: nothing of what is sent.
const FILTER: &str = "near0@filter=udp dst port 53";

/// A device of libpcap by which a program looks at an interface, and takes nothing.
const LISTEN: &str = "netmap:near0/rt";

/// What contestants are to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Workload {
    /// Send; the peer drops in its kernel.
    Tx,
    /// Receive and drop.
    Rx,
    /// Send what one interface receives through another one.
    Forward,
    /// One process sends and waits for what another one sends back.
    PingPong { in_flight: usize },
    /// Leave packets to the kernel.
    Pass,
    /// Count packets by libpcap or PF_RING, and leave them to the kernel.
    Listen,
}

/// One line of the table: a contestant at its work.
#[derive(Clone, Copy, Debug)]
pub struct Race {
    study: Study,
    workload: Workload,
    contestant: Contestant,
    size: usize,
    /// Packets that are sent at once, if it matters.
    batch: Option<usize>,
    payload: Payload,
    /// Packets that a peer handles at once, where that was searched.
    burst: Option<usize>,
}

impl Race {
    /// One of [`Study::Batch`]: it sends.
    pub fn in_batches(contestant: Contestant, batch: usize) -> Race {
        Race { study: Study::Batch, batch: Some(batch), ..Race::of_size(contestant, 60) }
    }

    /// One of [`Study::FrameSize`]: it sends.
    pub fn of_size(contestant: Contestant, size: usize) -> Race {
        Race {
            study: Study::FrameSize,
            workload: Workload::Tx,
            contestant,
            size,
            batch: None,
            payload: Payload::Touched,
            burst: None,
        }
    }
}

/// All of them, those of a workload one after the other.
pub fn races(extent: Extent) -> Vec<Race> {
    let sizes = if extent == Extent::Quick { &SIZES[..1] } else { &SIZES[..] };
    use Contestant::*;
    let receivers = [
        Ringway,
        TpacketV4,
        AfXdp,
        AfXdpTuned,
        DpdkAfXdp,
        DpdkAfXdpTuned,
        DpdkAfPacket,
        TpacketV2,
        TpacketV3,
    ];
    let movers =
        [Ringway, AfXdp, AfXdpTuned, DpdkAfXdp, DpdkAfXdpTuned, DpdkAfPacket, TpacketV2, TpacketV3];
    let mut forwarders =
        [&movers[..], &[RingwaySwitch, LinuxBridge, RingwayPcap, SystemPcap]].concat();
    forwarders.extend(open_vswitch::is_there().then_some(OpenVswitch));
    // Its program sends back, and pings come from Ringway's client.
    let players = [&movers[..], &[TpacketV4]].concat();
    // The tuning is about receiving.
    let senders = [Ringway, TpacketV4, AfXdp, DpdkAfXdp, DpdkAfPacket, TpacketV2, TpacketV3];
    // Neither testpmd nor the programs of AF_PACKET V4's authors touch payload.
    let touching = [Ringway, AfXdp, AfXdpTuned, TpacketV2, TpacketV3];
    let writing = [Ringway, AfXdp, TpacketV2, TpacketV3];
    use Payload::*;
    let workloads: [(Workload, Payload, &[Contestant]); 9] = [
        (Workload::Tx, Touched, &writing),
        (Workload::Tx, Untouched, &senders),
        (Workload::Rx, Touched, &touching),
        (Workload::Rx, Untouched, &receivers),
        (Workload::Forward, Untouched, &forwarders),
        (Workload::PingPong { in_flight: 1 }, Untouched, &players),
        (Workload::PingPong { in_flight: 64 }, Untouched, &players),
        (Workload::Pass, Untouched, &[RingwayQueue, RingwayFilter, NoProgram, Tc]),
        (Workload::Listen, Touched, &[Ringway, PfRing, SystemPcap]),
    ];
    let mut races = Vec::new();
    for (workload, payload, contestants) in workloads {
        for &size in sizes {
            let study = match workload {
                Workload::Forward => Study::Forwarding,
                _ => Study::Interfaces,
            };
            races.extend(contestants.iter().map(|&contestant| Race {
                study,
                workload,
                contestant,
                size,
                batch: None,
                payload,
                burst: None,
            }));
        }
    }
    races
}

/// How a contestant is run.
enum Way {
    Part(&'static str),
    /// `bench/c/xsk.c`.
    Xsk,
    /// `bench/c/pcap_bridge.c`.
    PcapBridge(Through),
    Testpmd(Pmd),
    /// `examples/c/tpacket4.c`.
    Tpacket4,
    /// `examples/c/pfring.c`.
    PfRing,
    /// The kernel alone.
    Kernel,
}

fn way(contestant: Contestant) -> Way {
    match contestant {
        Contestant::TpacketV4 => Way::Tpacket4,
        Contestant::PfRing => Way::PfRing,
        Contestant::RingwaySwitch => Way::Kernel,
        Contestant::RingwayPcap => Way::PcapBridge(Through::Pcap),
        Contestant::SystemPcap => Way::PcapBridge(Through::Nothing),
        contestant if contestant.is_ringway() => Way::Part("ringway"),
        Contestant::AfXdp | Contestant::AfXdpTuned => Way::Xsk,
        Contestant::TpacketV2 => Way::Part("tpacket2"),
        Contestant::TpacketV3 => Way::Part("tpacket3"),
        Contestant::DpdkAfXdp | Contestant::DpdkAfXdpTuned => Way::Testpmd(Pmd::AfXdp),
        Contestant::DpdkAfPacket => Way::Testpmd(Pmd::AfPacket),
        _ => Way::Kernel,
    }
}

/// Whether the interfaces are set up for a contestant by [`Stage::tune`].
fn is_tuned(contestant: Contestant) -> bool {
    matches!(contestant, Contestant::AfXdpTuned | Contestant::DpdkAfXdpTuned)
}

/// A contestant's processes and what else takes part, ready to start.
struct Cast {
    /// The contestant's own, then the sender.
    roles: Vec<Role>,
    /// How many of the roles are the contestant's.
    own: usize,
    testpmds: Vec<Testpmd>,
    /// What has the interfaces on a switch.
    _joined: Vec<Held>,
}

/// What was seen of a cast at one moment.
struct Look {
    at: Instant,
    /// Packets that the interface had received at which the kernel counts.
    arrived: u64,
    /// Packets a second that the first testpmd received since it was last looked at.
    rate: f64,
    testpmds: Usage,
}

impl Race {
    pub fn subject(&self) -> Subject {
        let (experiment, unit, in_flight) = match self.workload {
            Workload::Tx => (Road::VethTx, Unit::Mpps, None),
            Workload::Rx => (Road::VethRx, Unit::Mpps, None),
            Workload::Forward => (Road::VethForward, Unit::Mpps, None),
            Workload::PingPong { in_flight } => (Road::VethPingPong, Unit::Kpps, Some(in_flight)),
            Workload::Pass => (Road::VethPass, Unit::Mpps, None),
            Workload::Listen => (Road::VethPcap, Unit::Mpps, None),
        };
        Subject {
            size: Some(self.size),
            batch: self.batch,
            payload: Some(self.payload),
            in_flight,
            settings: self.settings(),
            ..Subject::new(self.study, experiment, self.contestant, unit)
        }
    }

    /// Which process has which CPU. A veth pair's receiver is served by the sender's system calls.
    pub fn cpus(&self, [zero, one]: [usize; 2]) -> String {
        let shared = if zero == one { ", which both share" } else { "" };
        match (way(self.contestant), self.workload) {
            (Way::Kernel, _) => format!("sender {zero}, and the kernel's work for it"),
            (Way::Tpacket4 | Way::PfRing, Workload::Tx) => "any".into(),
            (Way::Tpacket4, Workload::PingPong { .. }) => format!("pings {zero}, contestant any"),
            (Way::Tpacket4, _) => format!("sender {zero}, contestant any"),
            (_, Workload::Tx) => format!("contestant {one}"),
            (_, Workload::PingPong { .. }) => format!("contestant {zero} and {one}{shared}"),
            _ => format!("sender {zero}, contestant {one}{shared}"),
        }
    }

    fn settings(&self) -> Option<String> {
        let settings = match self.contestant {
            Contestant::Ringway if self.workload == Workload::Listen => {
                format!("libpcap: {LISTEN}, filter `{}`", pcap::FILTER)
            }
            Contestant::RingwayPcap | Contestant::SystemPcap
                if self.workload == Workload::Forward =>
            {
                "bench/c/pcap_bridge.c: pcap_dispatch, pcap_inject, immediate mode".into()
            }
            Contestant::PfRing | Contestant::SystemPcap => {
                format!("near0, filter `{}`", pcap::FILTER)
            }
            Contestant::Ringway => "defaults".into(),
            Contestant::RingwayQueue => format!("netmap:{OTHER_QUEUE}, packets come by queue 0"),
            Contestant::RingwayFilter => format!("netmap:{FILTER}"),
            Contestant::AfXdp | Contestant::AfXdpTuned => {
                format!(
                    "libxdp (bench/c/xsk.c): copy mode, native XDP, need-wakeup, rings of 2048, \
                     chunks of 4096, batch {}",
                    self.at_once()
                )
            }
            Contestant::TpacketV4 if self.in_flight().is_some() => {
                "examples/c/tpacket4.c l2fwd, PACKET_ZEROCOPY on queue 0; pings by Ringway's client"
                    .into()
            }
            Contestant::TpacketV4 => "PACKET_ZEROCOPY on queue 0, batch 64, rings of 4096".into(),
            Contestant::TpacketV2 => {
                "rings of 2048 frames, send by PACKET_TX_RING, qdisc bypass, batch 256".into()
            }
            Contestant::TpacketV3 => {
                "32 blocks of 128 KiB, timeout 1 ms, send by sendmmsg, qdisc bypass, batch 256"
                    .into()
            }
            Contestant::DpdkAfXdp | Contestant::DpdkAfXdpTuned => {
                Pmd::AfXdp.settings(self.in_flight().or(self.burst))
            }
            Contestant::DpdkAfPacket => Pmd::AfPacket.settings(self.in_flight().or(self.burst)),
            Contestant::Tc => stage::TC_FILTER.into(),
            Contestant::OpenVswitch => Ports::AfXdp.settings().into(),
            _ => return None,
        };
        Some(match is_tuned(self.contestant) {
            true => format!("{settings}; {}", stage::TUNING),
            false => settings,
        })
    }

    /// All bursts that are tried before this machine's best is measured; none where the experiment says how many packets
    /// go at once, or the contestant has no such setting.
    pub fn candidates(&self) -> Vec<Race> {
        use Contestant::*;
        let bursts = match self.contestant {
            AfXdp | AfXdpTuned => [64, 256, 1024],
            DpdkAfXdp | DpdkAfXdpTuned | DpdkAfPacket => [32, 64, 256],
            _ => return Vec::new(),
        };
        let is_said = self.batch.is_some() || self.in_flight().is_some();
        let with = |burst| Race { burst: Some(burst), ..*self };
        if is_said { Vec::new() } else { bursts.map(with).into() }
    }

    /// Runs it once. Half the time tells as much as between processes, and there are many of these.
    pub fn once(&self, bench: &Bench, [warm_up, counting]: [Duration; 2]) -> io::Result<Figure> {
        let (pairs, queues) = match self.workload {
            Workload::Forward => (2, 1),
            Workload::Pass => (1, 2),
            _ => (1, 1),
        };
        let stage = Stage::new(pairs, queues)?;
        if self.is_flooded() {
            stage.hold_back()?;
        }
        if is_tuned(self.contestant) {
            stage.tune()?;
        }
        if self.contestant == Contestant::Tc {
            stage.filter()?;
        }

        let (warm_up, counting) = (warm_up / 2, counting / 2);
        let times = [warm_up, counting];
        let sender = || {
            let far = Seat::on(bench.cpu(0)).inside(&stage.far);
            self.part(bench, far, "generator", "send", &["far0"])
        };
        let of_program = match (way(self.contestant), self.workload) {
            (Way::Tpacket4, Workload::Tx) => Some(tpacket4::txpush(bench, &stage, times)?),
            (Way::Tpacket4, Workload::PingPong { .. }) => {
                let far = Seat::on(bench.cpu(0)).inside(&stage.far);
                let pings = self.part(bench, far, "ringway", "ping", &["far0"])?;
                Some(tpacket4::l2fwd(bench, &stage, pings, times)?)
            }
            (Way::Tpacket4, _) => Some(tpacket4::rxdrop(bench, &stage, sender()?, times)?),
            (Way::PfRing, _) => {
                let near = Seat::on(bench.cpu(1)).inside(&stage.near);
                Some(pfring::listen(bench, near, "near0", sender()?, times)?)
            }
            _ => None,
        };
        if let Some(rate) = of_program {
            return Ok(Figure::from(rate / self.subject().unit.packets()));
        }
        let mut cast = self.cast(bench, &stage)?;
        for (i, testpmd) in cast.testpmds.iter_mut().enumerate().rev() {
            let pings = matches!(self.workload, Workload::PingPong { .. }) && i == 0;
            testpmd.ask(if pings { "start tx_first" } else { "start" })?;
        }
        roles::begin(&mut cast.roles, warm_up)?;
        let before = self.look(&stage, &mut cast)?;
        thread::sleep(counting);
        let after = self.look(&stage, &mut cast)?;
        let counts = roles::end(cast.roles)?;

        let own = &counts[..cast.own];
        let seconds = (after.at - before.at).as_secs_f64();
        let rate = match (self.counter(&stage), own.first()) {
            (Some(_), _) => (after.arrived - before.arrived) as f64 / seconds,
            (None, Some(count)) => count.rate(),
            (None, None) => after.rate,
        };
        let own_usage: Usage = own.iter().map(|count| count.usage).sum();
        let usage = own_usage + (after.testpmds - before.testpmds);
        let seconds = own.first().map_or(seconds, Count::seconds);
        // The kernel's own work is in no process's account.
        let has_processes = cast.own > 0 || !cast.testpmds.is_empty();
        let spent = has_processes.then_some(Spent { usage, packets: rate * seconds });
        let cycles = own
            .first()
            .filter(|_| rate > 0.0)
            .map(|count| count.cycles as f64 / count.seconds() / rate);
        let value = rate / self.subject().unit.packets();
        Ok(Figure { value, spent, cycles, ..Figure::default() })
    }

    /// Whether the packets come from the sender that is the same for all.
    fn is_flooded(&self) -> bool {
        !matches!(self.workload, Workload::Tx | Workload::PingPong { .. })
    }

    /// The interface at which the kernel counts; none where the contestant does.
    fn counter<'a>(&self, stage: &'a Stage) -> Option<(&'a Netns, &'static str)> {
        match self.workload {
            Workload::Tx => Some((&stage.far, "far0")),
            Workload::Forward => Some((&stage.far, "far1")),
            Workload::Pass => Some((&stage.near, "near0")),
            Workload::Rx | Workload::PingPong { .. } | Workload::Listen => None,
        }
    }

    fn look(&self, stage: &Stage, cast: &mut Cast) -> io::Result<Look> {
        let rate = match cast.testpmds.first_mut() {
            Some(first) => first.received()?.rate,
            None => 0.0,
        };
        let mut testpmds = Usage::default();
        for testpmd in &cast.testpmds {
            testpmds = testpmds + testpmd.usage()?;
        }
        let arrived =
            self.counter(stage).map_or(Ok(0), |(netns, interface)| netns.received(interface))?;
        Ok(Look { at: Instant::now(), arrived, rate, testpmds })
    }

    /// Starts everybody, receivers first.
    fn cast(&self, bench: &Bench, stage: &Stage) -> io::Result<Cast> {
        let near = Seat::on(bench.cpu(1)).inside(&stage.near);
        let far = Seat::on(bench.cpu(0)).inside(&stage.far);
        let mut cast = Cast {
            roles: Vec::new(),
            own: 0,
            testpmds: Vec::new(),
            _joined: self.join(bench, stage)?,
        };
        match way(self.contestant) {
            _ if self.workload == Workload::Listen => {
                let (library, device) = match self.contestant {
                    Contestant::SystemPcap => (Library::System, "near0"),
                    _ => (Library::Ringway, LISTEN),
                };
                let mut arguments = library.arguments(device);
                arguments.push("--poll".into());
                let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
                let daemon = bench.scratch.folder("ringwayd-near")?;
                cast.roles.push(Role::start(near, &daemon, &arguments)?);
            }
            way @ (Way::Part(_) | Way::Xsk) => {
                let parts: &[(Seat, &str, &[&str])] = match self.workload {
                    Workload::Tx => &[(near, "send", &["near0"])],
                    Workload::Rx => &[(near, "receive", &["near0"])],
                    Workload::Forward => &[(near, "forward", &["near0", "near1"])],
                    Workload::PingPong { .. } => {
                        &[(far, "ping", &["far0"]), (near, "forward", &["near0"])]
                    }
                    Workload::Pass if self.contestant == Contestant::RingwayFilter => {
                        &[(near, "receive", &[FILTER])]
                    }
                    Workload::Pass | Workload::Listen => &[(near, "receive", &[OTHER_QUEUE])],
                };
                for &(seat, task, interfaces) in parts {
                    cast.roles.push(match way {
                        Way::Part(by) => self.part(bench, seat, by, task, interfaces)?,
                        _ => self.xsk(bench, seat, task, interfaces)?,
                    });
                }
            }
            Way::Testpmd(pmd) => {
                let folder = bench.scratch.folder("dpdk")?;
                let burst = self.in_flight().or(self.burst);
                let peer = Peer { pmd, folder: &folder, size: self.size, burst };
                cast.testpmds = match self.workload {
                    Workload::Tx => vec![peer.start("near", near, &["near0"], Mode::Send)?],
                    Workload::Rx => vec![peer.start("near", near, &["near0"], Mode::Receive)?],
                    Workload::Forward => {
                        vec![peer.start("near", near, &["near0", "near1"], Mode::Forward)?]
                    }
                    Workload::PingPong { .. } => vec![
                        peer.start("far", far, &["far0"], Mode::Forward)?,
                        peer.start("near", near, &["near0"], Mode::Forward)?,
                    ],
                    Workload::Pass | Workload::Listen => Vec::new(),
                };
            }
            Way::PcapBridge(through) => {
                cast.roles.push(self.pcap_bridge(bench, near, through)?);
            }
            Way::Tpacket4 | Way::PfRing | Way::Kernel => {}
        }
        cast.own = cast.roles.len();
        if self.is_flooded() {
            cast.roles.push(self.part(bench, far, "generator", "send", &["far0"])?);
        }
        Ok(cast)
    }

    fn in_flight(&self) -> Option<usize> {
        match self.workload {
            Workload::PingPong { in_flight } => Some(in_flight),
            _ => None,
        }
    }

    /// Packets that a program handles at once.
    fn at_once(&self) -> usize {
        self.batch.or(self.burst).unwrap_or(part::BATCH)
    }

    fn part(
        &self,
        bench: &Bench,
        seat: Seat,
        by: &str,
        task: &str,
        interfaces: &[&str],
    ) -> io::Result<Role> {
        // A daemon serves the namespace that it was started in.
        let side = if interfaces[0].starts_with("near") { "near" } else { "far" };
        let daemon: PathBuf = bench.scratch.folder(&format!("ringwayd-{side}"))?;
        let size = format!("--size={}", self.size);
        let in_flight = format!("--in-flight={}", self.in_flight().unwrap_or(1));
        let batch = format!("--batch={}", self.batch.unwrap_or(part::BATCH));
        let untouched: &[&str] = match self.payload {
            Payload::Touched => &[],
            Payload::Untouched => &["--untouched"],
        };
        let arguments = ["nic", by, task, &size, &in_flight, &batch];
        let arguments = [&arguments, untouched, interfaces].concat();
        Role::start(seat, &daemon, &arguments)
    }

    /// The program of libxdp.
    fn xsk(&self, bench: &Bench, seat: Seat, task: &str, interfaces: &[&str]) -> io::Result<Role> {
        let folder = bench.scratch.folder("xsk")?;
        let program = c_program::own(&folder, "xsk", Through::Nothing, &["-lxdp", "-lbpf"])?;
        let size = self.size.to_string();
        let in_flight = self.in_flight().unwrap_or(1).to_string();
        let batch = self.at_once().to_string();
        let payload = if self.payload == Payload::Touched { "touched" } else { "untouched" };
        let arguments = [&[task, &size, &batch, &in_flight, payload], interfaces].concat();
        c_program::role(seat, &folder, &program, Through::Nothing, &arguments)
    }

    fn pcap_bridge(&self, bench: &Bench, seat: Seat, through: Through) -> io::Result<Role> {
        let folder = bench.scratch.folder("pcap")?;
        let program = c_program::own(&folder, "pcap_bridge", Through::Nothing, &["-lpcap"])?;
        let devices: [&str; 2] = match through {
            Through::Pcap => ["netmap:near0", "netmap:near1"],
            _ => ["near0", "near1"],
        };
        let daemon = bench.scratch.folder("ringwayd-near")?;
        c_program::role(seat, &daemon, &program, through, &devices)
    }

    /// Joins the near interfaces where a switch is the contestant, which learns what is behind the second.
    fn join(&self, bench: &Bench, stage: &Stage) -> io::Result<Vec<Held>> {
        let joined = match self.contestant {
            Contestant::RingwaySwitch => {
                let daemon = bench.scratch.folder("ringwayd-near")?;
                vec![containers::join(&stage.near, &daemon, &["join", "near0", "near1"])?]
            }
            Contestant::LinuxBridge => {
                stage.near.run(
                    "ip link add br0 type bridge\nip link set br0 up\n\
                     ip link set near0 master br0\nip link set near1 master br0\n",
                )?;
                vec![]
            }
            Contestant::OpenVswitch => {
                let folder = bench.scratch.folder("open-vswitch")?;
                open_vswitch::join(&stage.near, &folder, Ports::AfXdp, &["near0", "near1"])?
            }
            _ => return Ok(vec![]),
        };
        stage.speak()?;
        Ok(joined)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_race_has_a_line_of_its_own_beside_its_rivals() {
        let subjects: Vec<Subject> = races(Extent::Whole).iter().map(Race::subject).collect();
        let mut lines: Vec<String> = subjects.iter().map(Subject::to_string).collect();
        let courses = subjects.chunk_by(|a, b| a.course() == b.course());
        let mut groups: Vec<String> = courses.map(|group| group[0].course()).collect();
        for names in [&mut lines, &mut groups] {
            let all = names.len();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), all);
        }
    }

    #[test]
    fn settings_name_the_tuning() {
        for race in races(Extent::Whole) {
            let settings = race.subject().settings.unwrap_or_default();
            assert_eq!(settings.contains(stage::TUNING), is_tuned(race.contestant), "{race:?}");
        }
    }
}
