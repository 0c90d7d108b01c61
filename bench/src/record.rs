//! What a run of the benchmark leaves behind: one record per experiment, beside the machine.

use std::path::Path;
use std::{fmt, fs, io};

use serde::{Serialize, Serializer};

use crate::machine::Machine;

/// Whose code moved the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Contestant {
    Ringway,
    /// Ringway on one queue, while packets come by another one.
    RingwayQueue,
    /// Ringway with a filter that does not match.
    RingwayFilter,
    /// A program of AF_PACKET V4 on Ringway, in zero-copy mode.
    #[serde(rename = "tpacket-v4")]
    TpacketV4,
    Dpdk,
    /// A plain program on AF_XDP sockets.
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
    /// A program of the system's libpcap.
    SystemPcap,
    /// The kernel's bridge.
    LinuxBridge,
    /// The kernel, with nothing on the interface.
    NoProgram,
    /// The kernel, with a filter of `tc`.
    Tc,
}

impl Contestant {
    pub fn is_ringway(self) -> bool {
        use Contestant::*;
        matches!(self, Ringway | RingwayQueue | RingwayFilter | TpacketV4 | PfRing)
    }
}

impl fmt::Display for Contestant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Contestant::Ringway => "Ringway",
            Contestant::RingwayQueue => "Ringway, one queue",
            Contestant::RingwayFilter => "Ringway, filter",
            Contestant::TpacketV4 => "TPACKET_V4 on Ringway",
            Contestant::Dpdk => "DPDK",
            Contestant::AfXdp => "AF_XDP",
            Contestant::AfXdpTuned => "AF_XDP, tuned",
            Contestant::DpdkAfXdp => "DPDK af_xdp",
            Contestant::DpdkAfXdpTuned => "DPDK af_xdp, tuned",
            Contestant::DpdkAfPacket => "DPDK af_packet",
            Contestant::TpacketV2 => "TPACKET_V2",
            Contestant::TpacketV3 => "TPACKET_V3",
            Contestant::PfRing => "PF_RING on Ringway",
            Contestant::SystemPcap => "system's libpcap",
            Contestant::LinuxBridge => "Linux bridge",
            Contestant::NoProgram => "no program",
            Contestant::Tc => "tc",
        })
    }
}

/// The path the packets took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
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
    VethPcap,
    ContainersTcp,
    ContainersTcpStreams,
    ContainersUdp,
    ContainersVxlan,
    ContainersProgram,
    ContainersPing,
    HostTcpOut,
    HostTcpIn,
    HostPing,
    OpenFirst,
    OpenNext,
    GracePeriods,
}

/// What a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
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
}

impl Unit {
    /// Packets a second that one of a rate's units stands for.
    pub fn packets(self) -> f64 {
        match self {
            Unit::Mpps => 1e6,
            Unit::Kpps => 1e3,
            Unit::CyclesPerPacket | Unit::Milliseconds => f64::NAN,
            Unit::Microseconds | Unit::Gigabits => f64::NAN,
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
        })
    }
}

/// Whether the sender writes and the receiver reads every byte of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Payload {
    Touched,
    Untouched,
}

/// What an experiment is, in the words of the result file. Fields that do not apply are left out.
#[derive(Clone, Debug, Serialize)]
pub struct Subject {
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
    /// Packets that are under way at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<usize>,
    /// How a peer was tuned, in its own options.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settings: Option<String>,
}

impl Subject {
    /// What is done, whoever does it.
    pub fn course(&self) -> String {
        let mut words = vec![
            match self.experiment {
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
                Road::VethPcap => "veth libpcap",
                Road::ContainersTcp => "containers TCP",
                Road::ContainersTcpStreams => "containers TCP, 8 streams",
                Road::ContainersUdp => "containers UDP",
                Road::ContainersVxlan => "containers TCP through VXLAN",
                Road::ContainersProgram => "containers TCP through a program",
                Road::ContainersPing => "containers ping",
                Road::HostTcpOut => "host to container TCP",
                Road::HostTcpIn => "container to host TCP",
                Road::HostPing => "host to container ping",
                Road::OpenFirst => "open veth, first port",
                Road::OpenNext => "open veth again",
                Road::GracePeriods => "two RCU grace periods",
            }
            .to_owned(),
        ];
        words.extend(self.receivers.map(|receivers| format!("1:{receivers}")));
        words.extend(self.size.map(|size| format!("{size} B")));
        words.extend(self.payload.map(|payload| match payload {
            Payload::Touched => "touched".into(),
            Payload::Untouched => "untouched".into(),
        }));
        words.extend(self.batch.map(|batch| format!("batch {batch}")));
        words.extend(self.in_flight.map(|packets| format!("{packets} in flight")));
        words.join(" ")
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.course())?;
        match self.experiment {
            // The name of the road says who made it.
            Road::Pipe | Road::Vale | Road::Null | Road::Memif | Road::VhostUser => Ok(()),
            Road::PcapPipe | Road::PcapVale => Ok(()),
            Road::Tpacket4PipeRx | Road::Tpacket4PipeTx => Ok(()),
            Road::Tpacket4ValeRx | Road::Tpacket4ValeTx => Ok(()),
            Road::PfringPipe | Road::PfringPipeParsed | Road::PfringPipeCluster => Ok(()),
            Road::PfringVale | Road::PfringValeParsed => Ok(()),
            Road::UsdpaaVale => Ok(()),
            Road::OpenFirst | Road::OpenNext | Road::GracePeriods => Ok(()),
            _ => write!(f, ": {}", self.contestant),
        }
    }
}

/// The figures of one experiment's runs, in its unit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
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

/// One line of the result file.
#[derive(Clone, Debug, Serialize)]
pub struct Record {
    #[serde(flatten)]
    pub subject: Subject,
    #[serde(flatten)]
    pub summary: Summary,
    /// Round trip of a cache line between the two first CPUs, the longest beside any of the runs.
    #[serde(serialize_with = "rounded")]
    pub core_to_core_ns: f64,
    /// CPU time of the contestant for each packet in nanoseconds, over all runs: its own and the kernel's for it.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "rounded_if_any")]
    pub cpu_ns_per_packet: Option<f64>,
    /// The contestant's part of its CPU time outside the kernel, in percent, over all runs.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "rounded_if_any")]
    pub own_percent: Option<f64>,
    /// The same in nanoseconds for each packet.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "rounded_if_any")]
    pub own_ns_per_packet: Option<f64>,
}

/// The whole result file.
#[derive(Debug, Serialize)]
pub struct Report {
    pub machine: Machine,
    pub records: Vec<Record>,
}

impl Report {
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
            experiment: Road::VethPingPong,
            contestant: Contestant::TpacketV3,
            unit: Unit::Kpps,
            size: Some(64),
            batch: None,
            payload: None,
            receivers: None,
            in_flight: Some(1),
            settings: None,
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
    }

    #[test]
    fn a_record_leaves_out_what_does_not_apply() {
        let record = Record {
            subject: Subject {
                experiment: Road::VhostUser,
                contestant: Contestant::Dpdk,
                unit: Unit::Mpps,
                size: Some(64),
                batch: Some(32),
                payload: None,
                receivers: None,
                in_flight: None,
                settings: None,
            },
            summary: Summary { min: 1.0, median: 2.00049, max: 3.0, runs: 5 },
            core_to_core_ns: 50.0,
            cpu_ns_per_packet: None,
            own_percent: None,
            own_ns_per_packet: None,
        };
        assert_eq!(
            serde_json::to_value(record).unwrap(),
            serde_json::json!({
                "experiment": "vhost-user", "contestant": "dpdk", "unit": "Mpps", "size": 64,
                "batch": 32, "min": 1.0, "median": 2.0, "max": 3.0, "runs": 5,
                "core_to_core_ns": 50.0
            })
        );
    }
}
