//! Polling (S-VALE-19): when a bridge's worker does not sleep. Where it may run tells.

mod common;

use std::fs;

use common::World;
use libc::EFAULT;
use ringway_proto::{Polling, Request};
use ringway_testkit::{Netns, skip_unless, skip_without_root};

/// The processors that the worker of that bridge may run on.
fn cpus_of(bridge: &str) -> String {
    let tasks = fs::read_dir("/proc/self/task").unwrap().map_while(Result::ok);
    let named = |path: &std::path::PathBuf| {
        fs::read_to_string(path.join("comm")).is_ok_and(|name| name.trim_end() == bridge)
    };
    let task = tasks.map(|task| task.path()).find(named).expect("it has the bridge's name");
    let status = fs::read_to_string(task.join("status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    line.expect("the kernel tells").trim().into()
}

fn poll(w: &mut World, name: &str, enable: bool, cpu: u32) -> Result<(), i32> {
    let polling = Polling::OneCpu { cpu, count: 1 };
    w.ask(Request::SwitchPoll { name: name.into(), enable, polling }).map(drop)
}

/// Waits until the worker may run on those processors only: that a link has a carrier is told some
/// time after.
fn until_on(w: &mut World, bridge: &str, cpus: &str) {
    while cpus_of(bridge) != cpus {
        w.registry.handle_events();
        std::thread::yield_now();
    }
}

/// Interfaces `pol0` and `pol1`, on a bridge, in this thread's namespace, and the processors that its
/// worker has. `None` where nothing can be polled.
fn world(test: &str, bridge: &str) -> Option<(World, Netns, String)> {
    if skip_without_root(test) {
        return None;
    }
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    if skip_unless(cpus > 1, test, "needs a second processor") {
        return None;
    }
    let (mut w, here) = (World::new(), Netns::root());
    for n in 0..2 {
        here.run(&format!(
            "ip link add pol{n} type veth peer name far{n} && ip link set pol{n} up && \
             ip link set far{n} up"
        ));
        w.attach(&format!("{bridge}:pol{n}")).unwrap();
    }
    let all = cpus_of(bridge);
    assert_ne!(all, "0");
    Some((w, here, all))
}

#[test]
fn s_vale_19_two_on_one_bridge() {
    let Some((mut w, _here, all)) = world("s_vale_19_two_on_one_bridge", "valep") else { return };
    for n in 0..2 {
        poll(&mut w, &format!("valep:pol{n}"), true, 0).unwrap();
        until_on(&mut w, "valep", "0");
    }
    assert_eq!(poll(&mut w, "valep:pol0", true, 0).unwrap_err(), EFAULT);
    poll(&mut w, "valep:pol0", false, 0).unwrap();
    assert_eq!(poll(&mut w, "valep:pol0", false, 0).unwrap_err(), EFAULT);
    // The other is polled.
    until_on(&mut w, "valep", "0");
    poll(&mut w, "valep:pol1", false, 0).unwrap();
    assert_eq!(cpus_of("valep"), all);
}

/// Nothing can come from an interface that is down, or has gone.
#[test]
fn who_is_down_is_not_polled() {
    let Some((mut w, here, all)) = world("who_is_down_is_not_polled", "valeq") else { return };
    for n in 0..2 {
        poll(&mut w, &format!("valeq:pol{n}"), true, 0).unwrap();
        until_on(&mut w, "valeq", "0");
    }
    here.run("ip link set pol0 down");
    w.registry.handle_events();
    // The other is up.
    until_on(&mut w, "valeq", "0");
    here.run("ip link set pol1 down");
    w.registry.handle_events();
    assert_eq!(cpus_of("valeq"), all);
    here.run("ip link set pol0 up");
    until_on(&mut w, "valeq", "0");
    here.run("ip link del pol0");
    w.registry.handle_events();
    assert_eq!(cpus_of("valeq"), all);
    w.attach("valeq:far1").unwrap();
    here.run("ip link set far1 down");
    poll(&mut w, "valeq:far1", true, 0).unwrap();
    assert_eq!(cpus_of("valeq"), all);
}
