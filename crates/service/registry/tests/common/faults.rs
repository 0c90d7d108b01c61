//! Requests that are made to panic at each of their steps, and what the registry holds before and after.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    process::Command,
    sync::{Mutex, MutexGuard, Once},
};

use ringway_proto::{BridgePortInfo, Options, PortInfo, RegionInfo, Registration, Reply, Request};
use ringway_registry::{Handle, fault};

use super::World;

/// Descriptors are counted: one test at a time.
static TURN: Mutex<()> = Mutex::new(());

/// The panics of this test are not shown: each is meant.
pub fn quiet() -> MutexGuard<'static, ()> {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let show = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !info.to_string().contains(fault::FAULT) {
                show(info);
            }
        }));
    });
    TURN.lock().unwrap_or_else(|e| e.into_inner())
}

/// Says to a process that it is to run the test itself: see [`apart`].
const APART: &str = "RINGWAY_TEST_APART";

/// Has a process of its own run this test, and tells whether it has done so: to be called by each test of a
/// program whose tests wait more than they work, so that they wait at the same time.
#[allow(clippy::disallowed_methods, reason = "tests are told by variables what to do")]
pub fn apart(test: &str) -> bool {
    if std::env::var_os(APART).is_some() {
        return false;
    }
    let mut command = Command::new(std::env::current_exe().expect("this program has a path"));
    command.args([test, "--exact", "--nocapture", "--test-threads=1"]).env(APART, "1");
    let output = command.output().expect("it has been started before");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("1 passed"), "{test} is not the name of the test");
    true
}

/// A port, and what it takes of its interface.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PortBook {
    name: String,
    uid: u32,
    users: u32,
    /// The queues whose frames come to programs, with their filters and action programs.
    queues: Vec<u32>,
    filters: Vec<(String, Vec<u32>)>,
    actions: Vec<(String, Vec<u32>)>,
}

/// What the registry holds, and what the process does for it.
#[derive(Debug, PartialEq)]
pub struct Books {
    regions: Vec<RegionInfo>,
    ports: Vec<PortBook>,
    pub switches: Vec<(String, Vec<String>)>,
    handles: usize,
    accounted: usize,
    descriptors: usize,
}

pub fn books(w: &mut World) -> Books {
    let filters =
        |port: &PortInfo| port.filters.iter().map(|f| (f.text.clone(), f.queues.clone())).collect();
    let actions =
        |port: &PortInfo| port.actions.iter().map(|a| (a.text.clone(), a.queues.clone())).collect();
    let mut ports: Vec<_> = w
        .ports()
        .into_iter()
        .map(|p| (filters(&p), actions(&p), p))
        .map(|(filters, actions, p)| PortBook {
            name: p.name,
            uid: p.uid,
            users: p.users,
            queues: p.queues,
            filters,
            actions,
        })
        .collect();
    ports.sort();
    let Ok(Reply::Switches { switches, next: None }) =
        w.ask(Request::Switches { from: Default::default() })
    else {
        panic!("a single page")
    };
    let names = |ports: Vec<BridgePortInfo>| ports.into_iter().map(|p| p.name).collect();
    Books {
        regions: w.regions(),
        ports,
        switches: switches.into_iter().map(|s| (s.name, names(s.ports))).collect(),
        handles: w.registry.handles(),
        accounted: w.registry.descriptors(w.caller.uid),
        descriptors: descriptors(),
    }
}

/// Open ones, but for those of regions: large ones are freed by threads.
fn descriptors() -> usize {
    let all = std::fs::read_dir("/proc/self/fd").unwrap().map_while(Result::ok);
    let is_region = |path: &Path| path.to_string_lossy().starts_with("/memfd:");
    all.filter_map(|fd| std::fs::read_link(fd.path()).ok()).filter(|path| !is_region(path)).count()
}

/// Does `f`, which panics after so many steps, and recovers from that. `Some`: it did not panic.
pub fn fails_after<T>(w: &mut World, steps: u32, f: impl FnOnce(&mut World) -> T) -> Option<T> {
    fault::panic_after(steps);
    let result = catch_unwind(AssertUnwindSafe(|| f(w)));
    if fault::no_panic() {
        return Some(result.unwrap());
    }
    w.registry.recover();
    None
}

/// Asks as above. Whether it was done without a panic.
pub fn asks(w: &mut World, steps: u32, request: Request) -> bool {
    let handle = w.registry.open();
    let done = fails_after(w, steps, |w| w.registry.call(handle, &w.caller, request));
    w.registry.close(handle);
    done.map(|result| drop(result.unwrap())).is_some()
}

pub fn register(name: &str, registration: Registration) -> Request {
    register_with(name, registration, Options::default())
}

pub fn register_with(name: &str, registration: Registration, options: Options) -> Request {
    Request::Register { name: name.into(), registration, options: Box::new(options) }
}

/// Has it panic at each of its steps, until it comes to its end; `undo` is done then. Returns how many
/// there are.
pub fn at_each_step(w: &mut World, request: Request, undo: impl Fn(&mut World)) -> u32 {
    let before = books(w);
    for steps in 0.. {
        let end = asks(w, steps, request.clone());
        // It has panicked when all was done, perhaps.
        undo(w);
        assert_eq!(books(w), before, "{request:?} after {steps} steps");
        if end {
            return steps;
        }
    }
    unreachable!()
}

/// The same of the end of a connection.
pub fn close_at_each_step(w: &mut World, open: impl Fn(&mut World) -> Handle) -> u32 {
    let before = books(w);
    for steps in 0.. {
        let handle = open(w);
        let end = fails_after(w, steps, |w| w.registry.close(handle)).is_some();
        w.registry.close(handle);
        assert_eq!(books(w), before, "closed after {steps} steps");
        if end {
            return steps;
        }
    }
    unreachable!()
}
