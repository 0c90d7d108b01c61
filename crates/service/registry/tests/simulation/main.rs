//! Random histories of clients, interfaces and failures, with a kernel that is simulated: the books agree after
//! each step, nothing is left at the end, and the same seed gives the same history.
//!
//! RINGWAY_SEED is the first seed, RINGWAY_HISTORIES how many there are, at the least, RINGWAY_SECONDS how long
//! others follow, RINGWAY_STEPS how long each is, and RINGWAY_SHOWN how much of one a failure shows.

mod history;
mod random;
mod requests;

use std::{
    collections::BTreeSet,
    os::unix::net::UnixDatagram,
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use history::{History, Unkindness};
use ringway_nic_setup::simulated::Kernel;
use ringway_registry::fault;
use ringway_testkit::{isolate_thread, skip_without_root};
use rustix::net::netdevice::name_to_index;

/// Devices for the indices of simulated ones: AF_PACKET sockets are bound to these.
const DEVICES: usize = 200;

/// The first have names that requests ask for: what no interface is called is refused without a look-up.
fn name(at: usize) -> String {
    format!("n{at}")
}

fn kernel() -> Arc<Kernel> {
    isolate_thread();
    let pair = |at| format!("link add {} type veth peer name {}\\n", name(at), name(at + 1));
    let lines: String = (0..DEVICES).step_by(2).map(pair).collect();
    let script = format!("printf '{lines}' | ip -batch -");
    let made = Command::new("sh").args(["-c", &script]).status().expect("there is a shell");
    assert!(made.success());
    let socket = UnixDatagram::unbound().expect("there are descriptors");
    let index = |at| name_to_index(&socket, &name(at)).expect("it was made");
    Kernel::start((0..DEVICES).map(index)).expect("there are descriptors")
}

#[test]
fn histories() {
    if skip_without_root("histories") {
        return;
    }
    let kernel = kernel();
    // Those panics are meant.
    let show = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !info.to_string().contains(fault::FAULT) {
            show(info);
        }
    }));
    let (first, count) = (number("RINGWAY_SEED", 1), number("RINGWAY_HISTORIES", 120));
    let (steps, shown) = (number("RINGWAY_STEPS", 1500), number("RINGWAY_SHOWN", 60));
    let end = Instant::now() + Duration::from_secs(number("RINGWAY_SECONDS", 0));
    let mut answered = BTreeSet::new();
    let live = |seed| {
        let unkind = match seed % 3 {
            0 => Unkindness { operations: 0, panics: 0 },
            1 => Unkindness { operations: 10, panics: 0 },
            _ => Unkindness { operations: 30, panics: 40 },
        };
        println!("seed {seed}: {unkind:?}");
        let mut history = History::new(seed, unkind, &kernel);
        history.shown = shown as usize;
        (0..steps).for_each(|_| history.step());
        let trace = history.trace();
        (trace, history.end())
    };
    for seed in first.. {
        let (trace, kinds) = live(seed);
        answered.extend(kinds);
        if seed % 10 == 0 {
            let (other, _) = live(seed);
            let differs = trace.iter().zip(&other).find(|(one, other)| one != other);
            assert!(trace == other, "seed {seed} has two histories: {differs:#?}");
        }
        if seed >= first + count - 1 && Instant::now() >= end {
            break;
        }
    }
    // Without these, little is known of the others.
    if count >= 100 {
        let missing: Vec<_> = KINDS.iter().filter(|kind| !answered.contains(**kind)).collect();
        assert!(missing.is_empty(), "never answered: {missing:?}");
    }
}

/// Kinds of requests that histories have answered.
const KINDS: [&str; 31] = [
    "DeleteInterface",
    "Describe",
    "DeviceCounters",
    "HeaderLen",
    "Mirrors",
    "NewInterface",
    "Pools",
    "PortGeometry",
    "Ports",
    "RedirectQueues",
    "Register",
    "Rings",
    "SetAction",
    "SetFilter",
    "SetHeaderLen",
    "Stack",
    "SwitchAddressAdd",
    "SwitchAddressDelete",
    "SwitchAddressesFlush",
    "SwitchAttach",
    "SwitchDelete",
    "SwitchDetach",
    "SwitchForward",
    "SwitchMirrorAdd",
    "SwitchMirrorDelete",
    "SwitchMulticast",
    "SwitchNew",
    "SwitchPoll",
    "SwitchPort",
    "Switches",
    "Unregister",
];

/// A number that the environment gives.
#[allow(clippy::disallowed_methods, reason = "tests are told by variables what to do")]
fn number(name: &str, or: u64) -> u64 {
    std::env::var(name).map_or(or, |text| text.parse().expect("a number"))
}
