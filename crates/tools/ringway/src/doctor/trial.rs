//! `ringway doctor IF --try`: sends frames through an interface in each mode that it can have, and says
//! which of them arrive.
//!
//! The interface is opened as any program opens it; at the other end a port in packet mode, which
//! changes least there, sends and receives. What is lost is lost by the interface's mode, or on the
//! way. Frames have an EtherType for experiments, a number of this run, and a sequence number; all
//! others are passed over.

mod passage;
pub mod report;

use crate::error::{Error, Result};
use crate::interface_use::InterfaceUse;
use crate::losses::Losses;
use crate::namespace::Namespace;
use crate::opening::{self, Stops};
use crate::output::Output;
use crate::run_loop::{self, RunLoop};
use crate::sys;
use passage::{ETHERNET_HEADER, Frames, LONGEST, Passage, SHORTEST};
use report::{Trial, Trials};
use ringway::{Control, NicMode, OpenOptions, Port, PortInfo};
use std::collections::BTreeSet;

#[derive(clap::Args)]
pub struct Args {
    /// Send frames through the interface in each mode, to the peer and back, and say which arrive
    #[arg(long = "try", requires = "interface")]
    is_wanted: bool,

    /// For --try: the interface at the other end of its cable or veth pair, IF or NETNS:IF
    #[arg(long, value_name = "IF", requires = "is_wanted")]
    peer: Option<String>,

    /// For --try: take interfaces although they have addresses, routes, or your own connection
    #[arg(long, requires = "is_wanted")]
    force: bool,
}

/// Lengths of frames, besides the longest that the MTU allows and those around the end of a buffer.
const SIZES: [usize; 11] = [SHORTEST, 64, 128, 256, 512, 1000, 1024, 1280, 1400, 1500, 1514];

/// One end of the way.
struct End {
    namespace: Namespace,
    interface: String,
    /// As the user has written it.
    name: String,
}

impl Args {
    pub fn is_wanted(&self) -> bool {
        self.is_wanted
    }

    /// Tries the modes of `interface`, and fails if something does not arrive.
    pub fn run(&self, interface: &str) -> Result<()> {
        let Some(peer) = &self.peer else {
            return Err(Error::Value(format!(
                "{interface}: --try needs the interface at the other end, which may be in another network \
                 namespace; name it with --peer IF or --peer NETNS:IF (`ip link add {interface}p type veth \
                 peer name {interface}q` makes a pair)"
            )));
        };
        let near = End::of(interface);
        let far = match peer.split_once(':') {
            Some((netns, at)) => {
                let namespace = Namespace::Named(netns.into());
                End { namespace, interface: at.into(), name: peer.clone() }
            }
            None => End::of(peer),
        };
        if near.name == far.name {
            return Err(Error::Value(format!(
                "{interface}: it cannot be its own peer; name the interface at the other end"
            )));
        }
        near.check(self.force)?;
        far.check(self.force)?;
        let attempt = Attempt {
            control: Control::connect()?,
            run_loop: RunLoop::begin(&run_loop::Args::default())?,
            ends: [near, far],
            force: self.force,
        };
        let mut trials = Vec::new();
        for (at, mode) in NicMode::ALL.into_iter().enumerate() {
            // The user has ended it: half of a trial says nothing.
            let Some(trial) = attempt.mode(at as u32, mode)? else { break };
            trials.push(trial);
        }
        let trials = Trials(trials);
        Output::chosen().write_all(&trials.0, || trials.to_string())?;
        trials.verdict()
    }
}

impl End {
    fn of(interface: &str) -> End {
        let (interface, name) = (interface.to_string(), interface.to_string());
        End { namespace: Namespace::Own, interface, name }
    }

    /// Refuses an interface that is not there, cannot receive, or is used.
    fn check(&self, force: bool) -> Result<()> {
        let End { interface, name, .. } = self;
        self.namespace.enter(|| {
            if matches!(InterfaceUse::of(interface), Ok(None)) {
                return Err(Error::NoPort {
                    port: name.clone(),
                    problem: "there is no such interface in its network namespace; `ip link` shows those \
                              there are",
                });
            }
            if let Ok(false) = sys::is_up(interface) {
                return Err(Error::Value(format!(
                    "{name}: the interface is down, so nothing would arrive; `ip link set {interface} up`"
                )));
            }
            opening::check_idle(interface, opening::Args { force }).map(Stops::tell)
        })?
    }

    fn open(&self, options: &OpenOptions, force: bool) -> Result<Port> {
        let name = format!("netmap:{}", self.interface);
        let args = opening::Args { force };
        self.namespace.enter(|| opening::open(&options.clone().exclusive(), &name, args))?
    }
}

/// What all modes are tried with.
struct Attempt {
    /// It keeps a private daemon running between two modes.
    control: Control,
    run_loop: RunLoop,
    ends: [End; 2],
    force: bool,
}

impl Attempt {
    /// `None`: the user has ended it. `number`: that of the mode.
    fn mode(&self, number: u32, mode: NicMode) -> Result<Option<Trial>> {
        let [near, far] = &self.ends;
        let mut trial = Trial {
            interface: near.name.clone(),
            peer: far.name.clone(),
            mode: mode.name(),
            refused: None,
            directions: Vec::new(),
            ends: Vec::new(),
        };
        let before = self.ids()?;
        let mut port = match near.open(&Port::options().mode(mode), self.force) {
            Ok(port) => port,
            Err(error @ Error::Ringway(_)) => {
                trial.refused = Some(error.to_string());
                return Ok(Some(trial));
            }
            Err(error) => return Err(error),
        };
        let info = self.info(&port, &before)?;
        let before = self.ids()?;
        let mut peer = far.open(&Port::options().mode(NicMode::Packet), self.force)?;
        let peer_info = self.info(&peer, &before)?;
        let frames = Frames::new(sizes(&info, [&port, &peer]));
        let run = fastrand::u32(..);
        // Either direction has its numbers, so that a frame that comes back by itself is noticed.
        let stream = |direction| run.wrapping_add(4 * number + 2 * direction);
        let names = [&near.name, &far.name];
        for (direction, [from, to]) in [[0, 1], [1, 0]].into_iter().enumerate() {
            let [tx, rx] = match direction {
                0 => [&mut port, &mut peer],
                _ => [&mut peer, &mut port],
            };
            let mut passage = Passage::new(&frames, stream(direction as u32), tx, rx);
            let Some(arrived) = passage.run(&self.run_loop)? else { return Ok(None) };
            trial.directions.push(arrived.between(names[from], names[to]));
        }
        trial.ends = [(near, &info), (far, &peer_info)]
            .map(|(end, info)| report::End {
                port: end.name.clone(),
                mtu: info.mtu,
                losses: Losses::at(info, &self.control),
            })
            .into();
        Ok(Some(trial))
    }

    fn ids(&self) -> Result<BTreeSet<u64>> {
        Ok(self.control.ports()?.iter().map(|port| port.id).collect())
    }

    /// What the daemon says of a port that was opened after those. Ports of two network namespaces may
    /// have one name.
    fn info(&self, port: &Port, before: &BTreeSet<u64>) -> Result<PortInfo> {
        let mut ports = self.control.ports()?.into_iter();
        let is_it = |info: &PortInfo| info.name == port.name() && !before.contains(&info.id);
        ports.find(is_it).ok_or_else(|| ringway::Error::Gone { name: port.name().into() }.into())
    }
}

/// The sizes of frames that an interface with this port can send, in order. A frame may end at the end
/// of a buffer of either port, or a byte before or behind it.
fn sizes(info: &PortInfo, ports: [&Port; 2]) -> Vec<usize> {
    let mtu = info.mtu.map_or(1500, |mtu| mtu as usize);
    let longest = (mtu + ETHERNET_HEADER).min(LONGEST);
    let ends = ports.map(Port::max_frame).into_iter();
    let around = ends.flat_map(|end| [end.saturating_sub(1), end, end + 1]);
    let all: BTreeSet<usize> = SIZES.into_iter().chain(around).chain([longest]).collect();
    all.into_iter().filter(|size| (SHORTEST..=longest).contains(size)).collect()
}
