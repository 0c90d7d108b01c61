//! What a member of the socket's group can do to others: attacks, each as a program of its own, which the
//! binary `attacker` runs until it is killed. Each is one round of something that is done again and
//! again, and takes the daemon's refusals as they come.

mod interfaces;
mod machines;
mod memory;
mod ports;
mod socket;

use std::{cell::RefCell, path::PathBuf, time::Duration};

use ringway::{Control, Error, OpenOptions, Port};

use crate::Random;

pub use socket::{connections, garbage, slow_to_close, unread_answers};

/// What an attacker has.
pub struct Attacker {
    /// The switch that its neighbours use.
    pub switch: String,
    /// An interface that it may open.
    pub interface: String,
    /// The daemon's socket.
    pub socket: PathBuf,
    pub random: RefCell<Random>,
}

impl Attacker {
    /// A port of the neighbours' switch; its name has room for 7 characters.
    fn port(&self, name: impl std::fmt::Display) -> String {
        format!("{}:attacker{name}", self.switch)
    }

    fn below(&self, limit: u64) -> u64 {
        self.random.borrow_mut().below(limit)
    }

    /// Waits until the daemon has closed all that was closed: else rounds would pile up there, and be
    /// refused.
    fn settle(&self) -> Result<(), Error> {
        Control::connect()?.ports().map(drop)
    }
}

/// Opens as many of these as there are to be had; says how many, and why no more.
fn as_many(options: &OpenOptions, names: impl Iterator<Item = String>) -> (Vec<Port>, String) {
    let mut ports = Vec::new();
    for name in names {
        match options.open(&name) {
            Ok(port) => ports.push(port),
            Err(error) => {
                let got = format!("{} ports, then {error}", ports.len());
                return (ports, got);
            }
        }
    }
    let got = format!("all {} ports", ports.len());
    (ports, got)
}

/// One way to do harm.
pub struct Attack {
    /// The name by which it is run.
    pub name: &'static str,
    /// What it tries.
    pub tries: &'static str,
    /// Capabilities that the program has: to hold up calls of its own, for which a file system of its own
    /// would do as well.
    pub capabilities: &'static str,
    /// How long bystanders' traffic may stop on a quiet machine, if it is less than with other attacks.
    pub bound: Option<Duration>,
    /// One round; says what it got.
    pub run: fn(&Attacker) -> Result<String, Error>,
}

const fn attack(
    name: &'static str,
    tries: &'static str,
    run: fn(&Attacker) -> Result<String, Error>,
) -> Attack {
    Attack { name, tries, capabilities: "", bound: None, run }
}

/// One that has a switch's worker do as much as it can.
const fn work(
    name: &'static str,
    tries: &'static str,
    run: fn(&Attacker) -> Result<String, Error>,
) -> Attack {
    Attack { bound: Some(WORKER_BOUND), ..attack(name, tries, run) }
}

/// As long as a switch's worker may keep one port waiting for all the others.
pub const WORKER_BOUND: Duration = Duration::from_millis(50);

/// For it, the switch is to ask hosts for their groups.
pub const LEAVES: &str = "leaves";

/// All of them.
pub const ATTACKS: &[Attack] = &[
    attack("garbage", "random messages with random descriptors", socket::garbage_round),
    attack("connections", "connections, hundreds at a time", socket::connections_round),
    attack("unread", "questions whose answers are not read", socket::unread_round),
    attack("untaken", "descriptors that are not taken", socket::untaken_round),
    attack("linger", "descriptors that take an hour to close", socket::linger_round),
    attack("scribble-tx", "random bytes all over a sender's region", ports::scribble_tx),
    attack("scribble-rx", "random bytes all over a receiver's region", ports::scribble_rx),
    Attack {
        name: "stuck-write",
        tries: "a write into a region that never ends",
        capabilities: "+sys_ptrace",
        bound: None,
        run: memory::stuck_write,
    },
    attack("extra-buffers", "regions with extra buffers, kept", memory::extra_buffers),
    attack("holes", "holes in a region that is in use", memory::holes),
    attack("kept", "all descriptors of ports that have gone, kept", memory::kept),
    attack("full-rings", "full rings to many receivers, closed", ports::full_rings),
    attack("stuck-lossless", "a lossless port that takes nothing", ports::stuck_lossless),
    attack("addresses", "frames from ever new addresses", ports::addresses),
    work("work-of-one", "every header, length and chain from one port", ports::work_of_one),
    work("work-of-many", "the same from as many ports as there may be", ports::work_of_many),
    work(LEAVES, "groups that all ports leave at once, where a switch asks", ports::leaves),
    work("machines", "machines that write anything into their queues", machines::machines),
    attack("places", "ports of a switch, and switches, till the daemon has no more", ports::places),
    attack("pipes", "as many pipes as there are to be had", ports::pipes),
    attack("made-up", "interfaces that are not there", interfaces::made_up),
    attack("filters", "filters with hundreds of branches", interfaces::filters),
    attack("queues", "sockets of an interface, kept", interfaces::queues),
    attack("churn", "ports of an interface in any order, as it comes and goes", interfaces::churn),
];

/// The attack of that name.
pub fn find(name: &str) -> Option<&'static Attack> {
    ATTACKS.iter().find(|attack| attack.name == name)
}
