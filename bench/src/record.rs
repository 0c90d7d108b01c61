//! What a run of the benchmark leaves behind: one record per experiment, beside the machine.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fmt, fs, io};

use serde::{Deserialize, Serialize, Serializer};

use crate::figure::Percentiles;
use crate::machine::Machine;
use crate::origin::Origin;
use crate::study::{self, Description, Study};

/// Whose code moved the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Contestant {
    Ringway,
    /// Ringway on ports that swap buffers.
    RingwaySwaps,
    /// A program of netmap's API in C, which knows nothing of Ringway, under the preload library.
    #[serde(rename = "c-preload")]
    CPreload,
    /// The same program, linked with the library.
    #[serde(rename = "c-linked")]
    CLinked,
    /// A program of libpcap on Ringway's library.
    RingwayPcap,
    /// A switch of Ringway's that the interfaces are attached to.
    RingwaySwitch,
    /// Ringway on one queue, while packets come by another one.
    RingwayQueue,
    /// Ringway with a filter that does not match.
    RingwayFilter,
    /// A program of AF_PACKET V4 on Ringway, in zero-copy mode.
    #[serde(rename = "tpacket-v4")]
    TpacketV4,
    Dpdk,
    /// With the best of the settings that were tried on this machine.
    DpdkTuned,
    /// A program in C on libxdp.
    AfXdp,
    /// The same, on interfaces set up for it.
    AfXdpTuned,
    /// testpmd with `net_af_xdp`.
    DpdkAfXdp,
    DpdkAfXdpTuned,
    /// testpmd with `net_af_packet`.
    DpdkAfPacket,
    #[serde(rename = "tpacket-v2")]
    TpacketV2,
    #[serde(rename = "tpacket-v3")]
    TpacketV3,
    /// A program of PF_RING.
    PfRing,
    /// A program of USDPAA.
    Usdpaa,
    /// A program of the system's libpcap.
    SystemPcap,
    /// The kernel's bridge.
    LinuxBridge,
    /// Open vSwitch's datapath in userspace.
    OpenVswitch,
    /// A UDP socket.
    Udp,
    /// The kernel's device for programs in an interface's place.
    Tap,
    /// No library in between.
    Plain,
    /// The kernel, with nothing on the interface.
    NoProgram,
    /// The kernel, with a filter of `tc`.
    Tc,
}

impl Contestant {
    pub fn is_ringway(self) -> bool {
        use Contestant::*;
        matches!(self, Ringway | RingwaySwaps | CPreload | CLinked | RingwaySwitch | RingwayPcap)
            || matches!(self, RingwayQueue | RingwayFilter | TpacketV4 | PfRing | Usdpaa)
    }
}

impl fmt::Display for Contestant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Contestant::Ringway => "Ringway",
            Contestant::RingwaySwaps => "Ringway, buffers swapped",
            Contestant::CPreload => "C program, preload",
            Contestant::CLinked => "C program, linked",
            Contestant::RingwayPcap => "Ringway's libpcap",
            Contestant::RingwaySwitch => "Ringway's switch",
            Contestant::RingwayQueue => "Ringway, one queue",
            Contestant::RingwayFilter => "Ringway, filter",
            Contestant::TpacketV4 => "TPACKET_V4 on Ringway",
            Contestant::Dpdk => "DPDK",
            Contestant::DpdkTuned => "DPDK, tuned",
            Contestant::AfXdp => "AF_XDP",
            Contestant::AfXdpTuned => "AF_XDP, tuned",
            Contestant::DpdkAfXdp => "DPDK af_xdp",
            Contestant::DpdkAfXdpTuned => "DPDK af_xdp, tuned",
            Contestant::DpdkAfPacket => "DPDK af_packet",
            Contestant::TpacketV2 => "TPACKET_V2",
            Contestant::TpacketV3 => "TPACKET_V3",
            Contestant::PfRing => "PF_RING on Ringway",
            Contestant::Usdpaa => "USDPAA on Ringway",
            Contestant::SystemPcap => "system's libpcap",
            Contestant::LinuxBridge => "Linux bridge",
            Contestant::OpenVswitch => "Open vSwitch",
            Contestant::Udp => "UDP socket",
            Contestant::Tap => "TAP device",
            Contestant::Plain => "no library",
            Contestant::NoProgram => "no program",
            Contestant::Tc => "tc",
        })
    }
}

/// The path the packets took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Road {
    Pipe,
    Vale,
    Null,
    Memif,
    VhostUser,
    VethTx,
    VethRx,
    VethForward,
    VethPingPong,
    VethPass,
    PcapPipe,
    PcapVale,
    Tpacket4PipeRx,
    Tpacket4PipeTx,
    Tpacket4ValeRx,
    Tpacket4ValeTx,
    PfringPipe,
    PfringPipeParsed,
    PfringPipeCluster,
    PfringVale,
    PfringValeParsed,
    UsdpaaVale,
    PipeL2fwd,
    ValeL2fwd,
    VethPcap,
    PipeTcpdump,
    VethTcpdump,
    SelectedTaken,
    SelectedPing,
    SelectedRate,
    ContainersTcp,
    ContainersTcpStreams,
    ContainersUdp,
    ContainersVxlan,
    ContainersProgram,
    ContainersPing,
    Machines,
    MachineToProgram,
    HostTcpOut,
    HostTcpIn,
    HostPing,
    OpenFirst,
    OpenNext,
    GracePeriods,
    ForeignPoll,
    PipeLatency,
    ValeLatency,
    LoopbackLatency,
    VethLatency,
    HostLatency,
    PipeWaiting,
    ValeWaiting,
    VethWaiting,
    Idle,
    IdleAttached,
    OpenMany,
    MemoryPipe,
    MemoryVale,
    MemoryVeth,
}

impl Road {
    pub fn name(self) -> &'static str {
        match self {
            Road::Pipe => "pipe",
            Road::Vale => "vale",
            Road::Null => "null",
            Road::Memif => "memif",
            Road::VhostUser => "vhost-user",
            Road::VethTx => "veth tx",
            Road::VethRx => "veth rx",
            Road::VethForward => "veth forward",
            Road::VethPingPong => "veth ping-pong",
            Road::VethPass => "veth pass to kernel",
            Road::PcapPipe => "libpcap pipe",
            Road::PcapVale => "libpcap vale",
            Road::Tpacket4PipeRx => "tpacket4 pipe rxdrop",
            Road::Tpacket4PipeTx => "tpacket4 pipe txpush",
            Road::Tpacket4ValeRx => "tpacket4 vale rxdrop",
            Road::Tpacket4ValeTx => "tpacket4 vale txpush",
            Road::PfringPipe => "pf_ring pipe short",
            Road::PfringPipeParsed => "pf_ring pipe parsed",
            Road::PfringPipeCluster => "pf_ring pipe cluster of 4",
            Road::PfringVale => "pf_ring vale short",
            Road::PfringValeParsed => "pf_ring vale parsed",
            Road::UsdpaaVale => "usdpaa vale reflector",
            Road::PipeL2fwd => "pipe l2fwd",
            Road::ValeL2fwd => "vale l2fwd",
            Road::VethPcap => "veth libpcap",
            Road::PipeTcpdump => "pipe tcpdump",
            Road::VethTcpdump => "veth tcpdump",
            Road::SelectedTaken => "veth selected flows taken",
            Road::SelectedPing => "veth ping beside selected flows",
            Road::SelectedRate => "veth datagrams beside selected flows",
            Road::ContainersTcp => "containers TCP",
            Road::ContainersTcpStreams => "containers TCP, 8 streams",
            Road::ContainersUdp => "containers UDP",
            Road::ContainersVxlan => "containers TCP through VXLAN",
            Road::ContainersProgram => "containers TCP through a program",
            Road::ContainersPing => "containers ping",
            Road::Machines => "machine to machine",
            Road::MachineToProgram => "machine to program",
            Road::HostTcpOut => "host to container TCP",
            Road::HostTcpIn => "container to host TCP",
            Road::HostPing => "host to container ping",
            Road::OpenFirst => "open veth, first port",
            Road::OpenNext => "open veth again",
            Road::GracePeriods => "two RCU grace periods",
            Road::ForeignPoll => "poll of another program's descriptor",
            Road::PipeLatency => "pipe round trip",
            Road::ValeLatency => "vale round trip",
            Road::LoopbackLatency => "loopback round trip",
            Road::VethLatency => "veth round trip",
            Road::HostLatency => "host's stack round trip",
            Road::PipeWaiting => "pipe waiting",
            Road::ValeWaiting => "vale waiting",
            Road::VethWaiting => "veth waiting",
            Road::Idle => "idle",
            Road::IdleAttached => "idle, attached interfaces,",
            Road::MemoryPipe => "memory of a pipe,",
            Road::MemoryVale => "memory of a port of a switch,",
            Road::MemoryVeth => "memory of a port of an interface,",
            Road::OpenMany => "open and close a port of a switch",
        }
    }

    /// Whether it has contestants that are not Ringway's.
    fn has_peers(self) -> bool {
        use Road::*;
        let on_interfaces =
            matches!(self, VethTx | VethRx | VethForward | VethPingPong | VethPass | VethPcap);
        on_interfaces
            || matches!(self, SelectedTaken | SelectedPing | SelectedRate | PipeL2fwd | ValeL2fwd)
            || matches!(
                self,
                PipeTcpdump
                    | VethTcpdump
                    | VethLatency
                    | HostLatency
                    | PipeWaiting
                    | ValeWaiting
                    | VethWaiting
            )
            || matches!(self, ContainersTcp | ContainersTcpStreams | ContainersUdp)
            || matches!(self, ContainersVxlan | ContainersProgram | ContainersPing)
            || matches!(self, HostTcpOut | HostTcpIn | HostPing | Machines)
    }
}

/// What a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum Unit {
    /// Millions of packets received in a second; with several receivers, by each of them (mean).
    #[serde(rename = "Mpps")]
    Mpps,
    /// Thousands of packets received in a second.
    #[serde(rename = "Kpps")]
    Kpps,
    /// Ticks of the time-stamp counter for each packet.
    #[serde(rename = "cycles/packet")]
    CyclesPerPacket,
    #[serde(rename = "ms")]
    Milliseconds,
    /// Of a round trip.
    #[serde(rename = "us")]
    Microseconds,
    /// Thousands of millions of bits received in a second.
    #[serde(rename = "Gbit/s")]
    Gigabits,
    /// Of one processor's time.
    #[serde(rename = "%")]
    Percent,
    /// Of a call.
    #[serde(rename = "ns")]
    Nanoseconds,
    #[serde(rename = "KiB")]
    Kibibytes,
    /// System calls of a receiver for so many packets.
    #[serde(rename = "calls/1000 packets")]
    CallsPerThousand,
}

impl Unit {
    /// Packets a second that one of a rate's units stands for.
    pub fn packets(self) -> f64 {
        match self {
            Unit::Mpps => 1e6,
            Unit::Kpps => 1e3,
            Unit::CyclesPerPacket | Unit::Milliseconds => f64::NAN,
            Unit::Microseconds | Unit::Gigabits => f64::NAN,
            Unit::Percent | Unit::Nanoseconds | Unit::CallsPerThousand | Unit::Kibibytes => {
                f64::NAN
            }
        }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unit::Mpps => "Mpps",
            Unit::Kpps => "Kpps",
            Unit::CyclesPerPacket => "cycles/packet",
            Unit::Milliseconds => "ms",
            Unit::Microseconds => "us",
            Unit::Gigabits => "Gbit/s",
            Unit::Percent => "%",
            Unit::Nanoseconds => "ns",
            Unit::Kibibytes => "KiB",
            Unit::CallsPerThousand => "calls/1000 packets",
        })
    }
}

/// Whether the sender writes and the receiver reads every byte of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Payload {
    Touched,
    Untouched,
}

/// What an experiment is, in the words of the result file. Fields that do not apply are left out.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Subject {
    pub study: Study,
    pub experiment: Road,
    pub contestant: Contestant,
    pub unit: Unit,
    /// Bytes in a packet, without the frame check sequence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<usize>,
    /// Packets in a sync, or in a burst.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Payload>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receivers: Option<usize>,
    /// Ports that send to one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub senders: Option<usize>,
    /// Switches, with a sender and a receiver each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub switches: Option<usize>,
    /// Packets that are under way at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<usize>,
    /// Percent of one processor that all processes get together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<u32>,
    /// Packets that are sent in a second, where that is held to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<u64>,
    /// Packets a second of other ports meanwhile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<u64>,
    /// Ports that are open on the switch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ports: Option<usize>,
    /// Whether a process that waits polls, in place of sleeping.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spins: Option<bool>,
    /// How a contestant was set, in its own options.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settings: Option<String>,
}

impl Subject {
    pub fn new(study: Study, experiment: Road, contestant: Contestant, unit: Unit) -> Subject {
        Subject {
            study,
            experiment,
            contestant,
            unit,
            size: None,
            batch: None,
            payload: None,
            receivers: None,
            senders: None,
            switches: None,
            in_flight: None,
            share: None,
            rate: None,
            load: None,
            ports: None,
            spins: None,
            settings: None,
        }
    }
}

impl Subject {
    /// What is done, whoever does it.
    pub fn course(&self) -> String {
        let mut words: Vec<String> = self.study.prefix().map(str::to_owned).into_iter().collect();
        words.push(self.experiment.name().to_owned());
        words.extend(self.receivers.map(|receivers| format!("1:{receivers}")));
        words.extend(self.size.map(|size| format!("{size} B")));
        words.extend(self.payload.map(|payload| match payload {
            Payload::Touched => "touched".into(),
            Payload::Untouched => "untouched".into(),
        }));
        words.extend(self.batch.map(|batch| format!("batch {batch}")));
        words.extend(self.in_flight.map(|packets| format!("{packets} in flight")));
        let several = |n: Option<usize>, one: &str, many: &str| {
            n.map(|n| format!("{n} {}", if n == 1 { one } else { many }))
        };
        words.extend(several(self.senders, "sender", "senders"));
        words.extend(several(self.switches, "switch", "switches"));
        words.extend(several(self.ports, "port", "ports"));
        words.extend(self.share.map(|percent| format!("{percent} % of a processor")));
        words.extend(self.rate.map(|rate| format!("{rate} packets/s")));
        words.extend(
            (self.study == Study::Waiting && self.rate.is_none()).then(|| "at full rate".into()),
        );
        words.extend(self.load.map(|rate| format!("beside {rate} packets/s")));
        words.extend(self.spins.map(|spins| if spins { "spinning" } else { "sleeping" }.into()));
        words.join(" ")
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.course())?;
        match (self.experiment, self.contestant) {
            // The name of the road says who made it.
            (Road::Memif | Road::VhostUser, Contestant::Dpdk) => f.write_str(" as it comes"),
            (Road::Memif | Road::VhostUser, _) => f.write_str(" tuned"),
            (road, Contestant::Ringway | Contestant::PfRing) if !road.has_peers() => Ok(()),
            _ => write!(f, ": {}", self.contestant),
        }
    }
}

/// The figures of one experiment's runs, in its unit.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
pub struct Summary {
    #[serde(serialize_with = "rounded")]
    pub min: f64,
    #[serde(serialize_with = "rounded")]
    pub median: f64,
    #[serde(serialize_with = "rounded")]
    pub max: f64,
    pub runs: usize,
}

impl Summary {
    /// Summarises `figures`; nothing when there are none.
    pub fn of(figures: &[f64]) -> Option<Summary> {
        let mut sorted = figures.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        let (low, high) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
        Some(Summary { min, median: (low + high) / 2.0, max, runs: sorted.len() })
    }
}

/// Three decimals say all that a run can know.
fn rounded<S: Serializer>(figure: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((figure * 1000.0).round() / 1000.0)
}

fn rounded_if_any<S: Serializer>(figure: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    match figure {
        Some(figure) => rounded(figure, serializer),
        None => serializer.serialize_none(),
    }
}

/// Runs with the processors near to each other, and the others.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
pub struct Clusters {
    pub near: Summary,
    pub far: Summary,
}

/// One line of the result file.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Record {
    /// By which documents and other programs refer to it. There is one of each.
    pub name: String,
    /// What contestants have in common that are compared.
    pub course: String,
    #[serde(flatten)]
    pub subject: Subject,
    /// Of all runs.
    #[serde(flatten)]
    pub summary: Summary,
    /// Where the distance of the processors changed during the benchmark.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clusters: Option<Clusters>,
    /// Which processes had which CPU, and which shared one.
    pub cpus: String,
    /// Round trip of a cache line between the two first CPUs, the longest beside any of the runs.
    #[serde(serialize_with = "rounded")]
    pub core_to_core_ns: f64,
    /// Ticks of the time-stamp counter that go by for each packet, the median.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "rounded_if_any")]
    pub cycles_per_packet: Option<f64>,
    /// Of single round trips: medians over the runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percentiles: Option<Percentiles>,
    /// Of what was sent, the percent that did not arrive: the median.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "rounded_if_any")]
    pub lost_percent: Option<f64>,
    /// Packets a second that have arrived of the load beside it: the median.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "rounded_if_any")]
    pub load_arrived: Option<f64>,
    /// CPU time of the contestant for each packet in nanoseconds, over all runs: its own and the kernel's for it.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "rounded_if_any")]
    pub cpu_ns_per_packet: Option<f64>,
    /// The contestant's part of its CPU time outside the kernel, in percent, over all runs.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "rounded_if_any")]
    pub own_percent: Option<f64>,
    /// The same in nanoseconds for each packet.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "rounded_if_any")]
    pub own_ns_per_packet: Option<f64>,
    /// Where it was measured by another run than the record's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
}

#[cfg(test)]
impl Record {
    /// A record with nothing that only some have.
    pub fn plain(name: &str, subject: Subject, summary: Summary) -> Record {
        Record {
            name: name.into(),
            course: name.into(),
            subject,
            summary,
            clusters: None,
            cpus: String::new(),
            core_to_core_ns: 50.0,
            cycles_per_packet: None,
            percentiles: None,
            lost_percent: None,
            load_arrived: None,
            cpu_ns_per_packet: None,
            own_percent: None,
            own_ns_per_packet: None,
            origin: None,
        }
    }
}

/// The whole result file.
#[derive(Debug, Deserialize, Serialize)]
pub struct Report {
    pub machine: Machine,
    /// How it was made: the arguments of the benchmark.
    pub command: String,
    /// Whether the whole was run to its end.
    pub complete: bool,
    /// What its groups of experiments are about.
    #[serde(skip_deserializing)]
    pub studies: BTreeMap<Study, Description>,
    pub records: Vec<Record>,
}

impl Report {
    pub fn new(machine: Machine, command: String, complete: bool, records: Vec<Record>) -> Report {
        let studies = study::ALL.map(|study| (study, study.description())).into();
        Report { machine, command, complete, studies, records }
    }

    /// Reads what [`Report::write`] has written.
    pub fn read(path: &Path) -> io::Result<Report> {
        let of = |error: io::Error| {
            io::Error::new(error.kind(), format!("cannot read {}: {error}", path.display()))
        };
        let text = fs::read_to_string(path).map_err(of)?;
        serde_json::from_str(&text).map_err(|error| of(error.into()))
    }

    /// Writes the report as JSON to `path`, whose folders are made when missing. A reader never
    /// sees half a file: it is written beside its place and moved there.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let partial_csum = path.with_extension("json.part");
        fs::write(&partial_csum, serde_json::to_string_pretty(self)? + "\n")?;
        fs::rename(partial_csum, path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_sorts_and_takes_the_middle() {
        let odd = Summary::of(&[3.0, 1.0, 2.0]).unwrap();
        assert_eq!((odd.min, odd.median, odd.max, odd.runs), (1.0, 2.0, 3.0, 3));
        let even = Summary::of(&[4.0, 1.0, 2.0, 3.0]).unwrap();
        assert_eq!((even.min, even.median, even.max, even.runs), (1.0, 2.5, 4.0, 4));
        assert_eq!(Summary::of(&[]), None);
    }

    #[test]
    fn a_subject_names_who_competes_where_several_do() {
        let rx = Subject {
            size: Some(64),
            in_flight: Some(1),
            ..Subject::new(Study::Interfaces, Road::VethPingPong, Contestant::TpacketV3, Unit::Kpps)
        };
        assert_eq!(rx.to_string(), "veth ping-pong 64 B 1 in flight: TPACKET_V3");
        let pipe = Subject {
            experiment: Road::Pipe,
            contestant: Contestant::Ringway,
            payload: Some(Payload::Touched),
            batch: Some(8),
            in_flight: None,
            ..rx
        };
        assert_eq!(pipe.to_string(), "pipe 64 B touched batch 8");
        let linked = Subject { contestant: Contestant::CLinked, ..pipe };
        assert_eq!(linked.to_string(), "pipe 64 B touched batch 8: C program, linked");
    }

    #[test]
    fn a_record_leaves_out_what_does_not_apply() {
        let subject = Subject {
            size: Some(64),
            batch: Some(32),
            ..Subject::new(Study::Paths, Road::VhostUser, Contestant::Dpdk, Unit::Mpps)
        };
        let summary = Summary { min: 1.0, median: 2.00049, max: 3.0, runs: 5 };
        let record = Record {
            cpus: "sender 0, receiver 1".into(),
            ..Record::plain("vhost-user 64 B batch 32", subject, summary)
        };
        assert_eq!(
            serde_json::to_value(record).unwrap(),
            serde_json::json!({
                "name": "vhost-user 64 B batch 32", "course": "vhost-user 64 B batch 32", "cpus": "sender 0, receiver 1",
                "study": "paths", "experiment": "vhost-user", "contestant": "dpdk", "unit": "Mpps", "size": 64,
                "batch": 32, "min": 1.0, "median": 2.0, "max": 3.0, "runs": 5,
                "core_to_core_ns": 50.0
            })
        );
    }
}
