//! An experiment, and how one run of it goes.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::bench::Bench;
use crate::c_program::{self, Through};
use crate::cgroup::Cgroup;
use crate::containers;
use crate::dpdk::Link;
use crate::extent::BATCH;
use crate::figure::Figure;
use crate::idle;
use crate::l2fwd;
use crate::latency;
use crate::machines::Machines;
use crate::memory;
use crate::nic::Race;
use crate::opening;
use crate::pcap::Library;
use crate::pfring;
use crate::record::{Contestant, Payload, Road, Subject};
use crate::roles::{self, Count, Role, Seat};
use crate::scratch::is_interrupted;
use crate::selected;
use crate::target::Target;
use crate::tcpdump;
use crate::tpacket4;
use crate::traffic;
use crate::usdpaa;
use crate::waiting;

/// How to run an experiment once.
pub enum Way {
    Pipe,
    Vale,
    /// A C program at each end.
    CPipe(Through),
    CVale(Through),
    ForeignPoll(Through),
    Pcap,
    Tpacket4,
    Pfring,
    Usdpaa,
    Null(Through),
    /// The first port of a user, or one more.
    Opening {
        first: bool,
    },
    GracePeriods,
    OpenMany,
    Memory,
    Idle,
    IdleAttached,
    Latency,
    Containers,
    Machines(Machines),
    Dpdk(Link),
    Nic(Race),
    Selected,
    L2fwd,
    Waiting,
    Tcpdump,
}

/// One line of the table.
pub struct Experiment {
    pub subject: Subject,
    pub target: Option<Target>,
    pub way: Way,
}

impl Experiment {
    /// Whether it takes root.
    pub fn needs_root(&self) -> bool {
        self.is_race()
            || matches!(self.way, Way::Opening { .. } | Way::Containers | Way::Idle)
            || matches!(
                self.way,
                Way::Selected | Way::Tcpdump | Way::Waiting | Way::Memory | Way::IdleAttached
            )
            || matches!(self.subject.experiment, Road::VethLatency | Road::HostLatency)
            || self.subject.share.is_some()
    }

    /// Whether it is one contestant's turn on a network interface.
    pub fn is_race(&self) -> bool {
        matches!(self.way, Way::Nic(_))
    }

    /// Whether DPDK takes part.
    pub fn is_dpdk(&self) -> bool {
        use Contestant::*;
        let contestant = self.subject.contestant;
        matches!(self.way, Way::Machines(_))
            || matches!(contestant, Dpdk | DpdkTuned | DpdkAfXdp | DpdkAfXdpTuned | DpdkAfPacket)
    }

    pub fn set(&mut self, link: Link) {
        self.subject.settings = Some(link.settings());
        self.way = Way::Dpdk(link);
    }

    /// Finds the settings that are best for a peer on this machine, each tried for `counting`.
    pub fn tune(&mut self, bench: &Bench, counting: Duration) {
        let times = [counting / 2, counting];
        match (&self.way, self.subject.contestant) {
            (Way::Dpdk(link), Contestant::DpdkTuned) => {
                let measure = |link: &Link| self.measure_link(link, bench, times[0], times[1]);
                if let Some(best) = self.best_of(link.candidates(), measure) {
                    self.set(best);
                }
            }
            (Way::Machines(machines), _) => {
                let measure = |one: &Machines| self.machines_once(one, bench, times);
                if let Some(best) = self.best_of(machines.candidates(), measure) {
                    self.subject.settings = Some(best.settings());
                    self.way = Way::Machines(best);
                }
            }
            (Way::Nic(race), _) => {
                let measure = |race: &Race| race.once(bench, times).map(|figure| figure.value);
                if let Some(best) = self.best_of(race.candidates(), measure) {
                    self.subject.settings = best.subject().settings;
                    self.way = Way::Nic(best);
                }
            }
            _ => {}
        }
    }

    /// The settings with the highest rate; nothing where none works, or there are none.
    fn best_of<T>(&self, all: Vec<T>, measure: impl Fn(&T) -> io::Result<f64>) -> Option<T> {
        if !all.is_empty() {
            eprintln!("{}: {} settings are tried", self.subject, all.len());
        }
        let mut best = None;
        let mut most = 0.0;
        for settings in all {
            if is_interrupted() {
                break;
            }
            // Settings that DPDK refuses, or with which it gets stuck, are not the best.
            let rate = measure(&settings).unwrap_or(0.0);
            if rate > most {
                (best, most) = (Some(settings), rate);
            }
        }
        best
    }

    /// Which process has which CPU.
    pub fn cpus(&self, bench: &Bench) -> String {
        let [zero, one] = [bench.cpu(0), bench.cpu(1)];
        let shared = if zero == one { ", which all share" } else { "" };
        match &self.way {
            Way::Nic(race) => race.cpus([zero, one]),
            Way::Tcpdump => tcpdump::cpus([zero, one]),
            Way::Waiting => waiting::cpus([zero, one]),
            Way::Selected => selected::cpus([zero, one]),
            Way::L2fwd => l2fwd::cpus(bench, &self.subject),
            Way::Dpdk(_) | Way::Pipe | Way::CPipe(_) => {
                format!("sender {zero}, receiver {one}{shared}")
            }
            Way::Vale | Way::CVale(_) | Way::Pcap if self.subject.experiment != Road::PcapPipe => {
                match bench.on_switch().map(|seat| seat.cpu) {
                    [Some(sender), Some(receiver)] => {
                        let several = self.subject.receivers.unwrap_or(1) > 1;
                        let several = if several { "s" } else { "" };
                        format!(
                            "sender {sender}, receiver{several} {receiver}; the switch's worker any"
                        )
                    }
                    _ => "any".into(),
                }
            }
            Way::Vale | Way::CVale(_) | Way::Pcap => {
                format!("sender {zero}, receiver {one}{shared}")
            }
            Way::Null(_) | Way::ForeignPoll(_) => format!("the program {zero}"),
            Way::Pfring | Way::Tpacket4 | Way::Usdpaa => {
                "the sender has one, the program any".to_owned()
            }
            Way::Latency if self.subject.spins == Some(true) => {
                format!("pinger {zero}, its answerer {one}{shared}; the switch's worker any")
            }
            Way::Opening { .. } | Way::GracePeriods | Way::OpenMany | Way::Idle => "any".into(),
            Way::Memory | Way::IdleAttached => "any".into(),
            Way::Latency | Way::Containers => "any".into(),
            Way::Machines(_) => "see the settings".into(),
        }
    }

    /// Runs the experiment once; returns the figure in its unit.
    pub fn once(&self, bench: &Bench) -> io::Result<Figure> {
        let subject = &self.subject;
        let figure = match &self.way {
            Way::Nic(race) => return race.once(bench, [bench.warm_up, bench.counting]),
            Way::Selected => return selected::once(bench, subject.experiment, subject.contestant),
            Way::Waiting => return waiting::once(bench, subject),
            Way::L2fwd => return l2fwd::once(bench, subject),
            Way::Pipe => return self.pipe_once(bench),
            Way::Vale => return self.vale_once(bench),
            Way::CPipe(through) => {
                return self.c_once(
                    bench,
                    *through,
                    ["netmap:bench}1", "netmap:bench{1"],
                    [Seat::on(bench.cpu(1)), Seat::on(bench.cpu(0))],
                );
            }
            Way::CVale(through) => {
                let [sends, receives] = bench.on_switch();
                let ports = ["valebench:crx", "valebench:ctx"];
                return self.c_once(bench, *through, ports, [receives, sends]);
            }
            Way::ForeignPoll(through) => self.foreign_poll_once(bench, *through),
            Way::Pcap => self.pcap_once(bench),
            Way::Tpacket4 => tpacket4::once(bench, subject.experiment, &self.traffic()),
            Way::Pfring => pfring::once(bench, subject.experiment, &self.traffic()),
            Way::Usdpaa => usdpaa::once(bench, &self.traffic()),
            Way::Null(through) => self.null_once(bench, *through),
            Way::Opening { first } => opening::once(bench, *first),
            Way::GracePeriods => opening::grace_periods(),
            Way::OpenMany => opening::many(bench, subject.ports.unwrap_or(1)),
            Way::Tcpdump => tcpdump::once(bench, subject.experiment, subject.contestant),
            Way::Memory => memory::once(bench, subject.experiment, subject.ports.unwrap_or(1)),
            Way::Idle => idle::once(bench, subject.ports.unwrap_or(1)),
            Way::IdleAttached => idle::attached(bench, subject.ports.unwrap_or(1)),
            Way::Latency => {
                return latency::once(bench, subject);
            }
            Way::Containers => containers::once(bench, subject.experiment, subject.contestant),
            Way::Machines(machines) => {
                self.machines_once(machines, bench, [bench.warm_up, bench.counting])
            }
            Way::Dpdk(link) => self.measure_link(link, bench, bench.warm_up, bench.counting),
        };
        figure.map(Figure::from)
    }

    fn machines_once(
        &self,
        machines: &Machines,
        bench: &Bench,
        times: [Duration; 2],
    ) -> io::Result<f64> {
        let Subject { experiment, contestant, size, .. } = self.subject;
        machines.once(bench, experiment, contestant, size.unwrap_or(64), times)
    }

    fn measure_link(
        &self,
        link: &Link,
        bench: &Bench,
        warm_up: Duration,
        counting: Duration,
    ) -> io::Result<f64> {
        let folder = bench.scratch.folder("dpdk")?;
        let size = self.subject.size.unwrap_or(64);
        link.measure(&folder, [bench.cpu(0), bench.cpu(1)], size, warm_up, counting)
    }

    /// What sender and receivers need to know alike.
    fn traffic(&self) -> Vec<String> {
        let number = |n: Option<usize>| n.unwrap_or_default().to_string();
        let mut arguments = vec![
            format!("--size={}", number(self.subject.size)),
            format!("--batch={}", number(self.subject.batch)),
        ];
        if self.subject.payload == Some(Payload::Untouched) {
            arguments.push("--untouched".into());
        }
        if self.subject.contestant == Contestant::RingwaySwaps {
            arguments.push("--swaps".into());
        }
        arguments
    }

    /// The group of processes that has a share of the processors, with a daemon of its own in it.
    fn shared(&self, bench: &Bench) -> io::Result<Option<(Cgroup, PathBuf)>> {
        let Some(share) = self.subject.share else { return Ok(None) };
        Ok(Some((Cgroup::new(Some(share))?, bench.scratch.folder("shared")?)))
    }

    fn pipe_once(&self, bench: &Bench) -> io::Result<Figure> {
        let common = self.traffic();
        let shared = self.shared(bench)?;
        let start = |process, name| {
            let arguments = [vec![name], common.iter().map(String::as_str).collect()].concat();
            start_in(Seat::on(bench.cpu(process)), bench, &shared, &arguments)
        };
        let processes = vec![start(1, "pipe-rx")?, start(0, "pipe-tx")?];
        let counts = roles::run(processes, bench.warm_up, bench.counting)?;
        Ok(Figure::from(&counts[0]))
    }

    /// The rate of each receiver of a switch, on average: with several, every packet goes to all of them. Of several
    /// switches it is the sum.
    fn vale_once(&self, bench: &Bench) -> io::Result<Figure> {
        let common = self.traffic();
        let receivers = self.subject.receivers.unwrap_or(1);
        let [sends, receives] = bench.on_switch();
        let shared = self.shared(bench)?;
        let start = |seat, arguments: &[&str]| {
            let common: Vec<&str> = common.iter().map(String::as_str).collect();
            start_in(seat, bench, &shared, &[arguments, &common].concat())
        };
        let switches = self.subject.switches.unwrap_or(1);
        let mut processes = Vec::new();
        for switch in 0..switches {
            let switch = format!("--switch={switch}");
            for receiver in 0..receivers {
                let index = format!("--index={receiver}");
                processes.push(start(receives, &["vale-rx", &index, &switch])?);
            }
        }
        let receiving = processes.len();
        let to = format!("--receivers={receivers}");
        for switch in 0..switches {
            let switch = format!("--switch={switch}");
            for sender in 0..self.subject.senders.unwrap_or(1) {
                let sender = format!("--sender={sender}");
                processes.push(start(sends, &["vale-tx", &to, &switch, &sender])?);
            }
        }
        let others = self.subject.ports.unwrap_or(0).saturating_sub(processes.len());
        let _others = idle::ports(Seat::default(), &bench.daemon, others)?;
        let counts = roles::run(processes, bench.warm_up, bench.counting)?;
        let (received, sent) = counts.split_at(receiving);
        let rate = |counts: &[Count]| counts.iter().map(Count::mpps).sum::<f64>();
        let value = rate(received) / receivers as f64;
        let figure = Figure { value, ..Figure::from(&counts[0]) };
        Ok(match self.subject.senders {
            Some(_) => figure.of_sent(rate(sent)),
            None => figure,
        })
    }

    /// What a program of netmap's API receives of what another sends.
    fn c_once(
        &self,
        bench: &Bench,
        through: Through,
        ports: [&str; 2],
        seats: [Seat; 2],
    ) -> io::Result<Figure> {
        let program = c_program::own(&bench.scratch.folder("netmap")?, "netmap", through, &[])?;
        let number = |n: Option<usize>| n.unwrap_or_default().to_string();
        let (size, batch) = (number(self.subject.size), number(self.subject.batch));
        let start = |end: usize, does| {
            let batch = if does == "rx" { "1024" } else { &batch };
            let arguments = [does, ports[end], &size, batch, "touched"];
            c_program::role(seats[end], &bench.daemon, &program, through, &arguments)
        };
        let processes = vec![start(0, "rx")?, start(1, "tx")?];
        let counts = roles::run(processes, bench.warm_up, bench.counting)?;
        Ok(Figure::from(&counts[0]))
    }

    /// Nanoseconds of a call that is no business of Ringway's.
    fn foreign_poll_once(&self, bench: &Bench, through: Through) -> io::Result<f64> {
        let folder = bench.scratch.folder("foreign")?;
        let program = c_program::own(&folder, "foreign_poll", through, &[])?;
        let seat = Seat::on(bench.cpu(0));
        let role = c_program::role(seat, &bench.daemon, &program, through, &[])?;
        let counts = roles::run(vec![role], bench.warm_up, bench.counting)?;
        Ok(1e9 / counts[0].rate())
    }

    /// A program of libpcap counts what a pipe or a switch brings it.
    fn pcap_once(&self, bench: &Bench) -> io::Result<f64> {
        let common = self.traffic();
        let (device, sender, seats) = match self.subject.experiment {
            Road::PcapPipe => {
                let seats = [Seat::on(bench.cpu(0)), Seat::on(bench.cpu(1))];
                (traffic::pipe_end(), ["pipe-tx", "--udp=1"], seats)
            }
            _ => (traffic::receiver_port(0), ["vale-tx", "--receivers=1"], bench.on_switch()),
        };
        let mut counter = Library::Ringway.arguments(&device);
        let mut sender = sender.to_vec();
        if self.subject.experiment == Road::PcapVale {
            counter.push("--introduce".into());
            sender.push("--udp=1");
        }
        let counter: Vec<&str> = counter.iter().map(String::as_str).collect();
        sender.extend(common.iter().map(String::as_str));
        let [sends, receives] = seats;
        let start = |seat, arguments: &[&str]| Role::start(seat, &bench.daemon, arguments);
        let processes = vec![start(receives, &counter)?, start(sends, &sender)?];
        let counts = roles::run(processes, bench.warm_up, bench.counting)?;
        Ok(counts[0].mpps())
    }

    /// A C program measures itself: the transmit loop to a null port, which is one of the C tests.
    fn null_once(&self, bench: &Bench, through: Through) -> io::Result<f64> {
        let folder = bench.scratch.folder("null")?;
        let program = c_program::build_through(&folder, "tests/c/null_cycles.c", through, &[])?;
        let batch = self.subject.batch.unwrap_or(BATCH).to_string();
        let seat = Seat::on(bench.cpu(0));
        let output = match through {
            Through::Preload => c_program::run(seat, &bench.daemon, &program, &[&batch])?,
            _ => c_program::run_alone(seat, &bench.daemon, &program, &[&batch])?,
        };
        c_program::number_behind("cycles_per_packet", &output)
    }
}

/// Starts a role of an experiment that has a share of the processors, or all.
fn start_in(
    seat: Seat,
    bench: &Bench,
    shared: &Option<(Cgroup, PathBuf)>,
    arguments: &[&str],
) -> io::Result<Role> {
    match shared {
        Some((group, daemon)) => Role::start(seat.of(group), daemon, arguments),
        None => Role::start(seat, &bench.daemon, arguments),
    }
}
