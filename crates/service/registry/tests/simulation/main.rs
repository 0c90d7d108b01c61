//! Random histories of clients, interfaces and failures, with a kernel that is simulated: the books agree after
//! each step, nothing is left at the end, and the same seed gives the same history.

mod history;
mod random;
mod requests;

use std::{os::unix::net::UnixDatagram, process::Command, sync::Arc};

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
    let number = |name: &str, or: u64| {
        std::env::var(name).ok().map_or(or, |text| text.parse().expect("a number"))
    };
    let (first, count) = (number("RINGWAY_SEED", 1), number("RINGWAY_HISTORIES", 20));
    let steps = number("RINGWAY_STEPS", 500);
    for seed in first..first + count {
        let unkind = match seed % 3 {
            0 => Unkindness { operations: 0, panics: 0 },
            1 => Unkindness { operations: 10, panics: 0 },
            _ => Unkindness { operations: 30, panics: 40 },
        };
        let live = || {
            let mut history = History::new(seed, unkind, &kernel);
            eprintln!("seed {seed}, {unkind:?}");
            for _ in 0..steps {
                history.step();
            }
            if std::env::var("RINGWAY_OUT").is_ok() {
                eprintln!("{:#?}", history.outcomes);
            }
            let trace = history.trace();
            history.end();
            trace
        };
        let (one, other) = (live(), live());
        if one.0 != other.0 {
            let differs = one.1.iter().zip(&other.1).find(|(one, other)| one != other);
            panic!("seed {seed} has two histories: {differs:#?}");
        }
    }
}
