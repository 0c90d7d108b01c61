//! `bridge`.

use super::{run, shape};
use crate::home::{Home, LIMIT, find, finish};
use ringway_testkit::{Netns, Proc, skip_without_root};
use rustix::process::Signal;
use std::os::unix::fs::symlink;

/// Fewer than a ring has slots.
const FIT: &str = "1000";

/// Sends frames through a bridge, and ends it; returns what it said, digits as `N`.
fn bridged(home: &Home, args: &[&str], source: &str, sink: &str) -> String {
    let receiver = home.open(&["recv", sink, "--count", FIT, "--verify"]);
    let bridge = Proc::spawn(home.tool("bridge", args));
    bridge.wait_for("Ready to go", LIMIT);
    home.json(&["gen", source, "--count", FIT, "--size", "60-1514"]);
    assert_eq!(find(&finish(receiver), "verify")["good"], 1000);
    bridge.signal(Signal::INT);
    let (status, said) = bridge.wait();
    assert_eq!(status.code(), Some(0), "{said}");
    home.is_left_clean();
    shape(&said)
}

#[test]
fn ports_of_one_region_exchange_buffers() {
    let said =
        bridged(&Home::new(), &["-w", "0", "-i", "netmap:p}0", "-i", "netmap:p{1"], "p{0", "p}1");
    let lines: Vec<_> = said.lines().collect();
    assert_eq!(
        lines[..3],
        [
            "N.N main [N] ------- zerocopy supported",
            "N.N main [N] Wait N secs for link to come up...",
            "N.N main [N] Ready to go, p}N NxN/N <-> p{N NxN/N.",
        ]
    );
}

#[test]
fn copying_where_asked_or_needed() {
    let asked = bridged(&Home::new(), &["-w0", "-c", "netmap:p}0", "netmap:p{1"], "p{0", "p}1");
    assert!(asked.contains("------- zerocopy NOT supported"), "{asked}");
    let args = ["-vw0", "netmap:p}0", "vale0:a", "16"];
    let needed = bridged(&Home::new(), &args, "p{0", "vale0:b");
    assert!(needed.contains("------- zerocopy NOT supported"), "{needed}");
    assert!(needed.contains("process_rings [N] netmap:p}N: moved N slots"), "{needed}");
}

#[test]
fn one_port_alone_can_send_everything_back() {
    let home = Home::new();
    let bridge = Proc::spawn(home.tool("bridge", &["-L", "-w", "0", "netmap:p}0"]));
    bridge.wait_for("Ready to go", LIMIT);
    let receiver = home.open(&["recv", "p{0", "--count", FIT, "--verify"]);
    home.json(&["gen", "p{0", "--count", FIT]);
    assert_eq!(find(&finish(receiver), "verify")["good"], 1000);
    bridge.signal(Signal::TERM);
    assert_eq!(bridge.wait().0.code(), Some(0));
    home.is_left_clean();
}

#[test]
fn an_interface_alone_is_bridged_with_the_host() {
    if skip_without_root("cli::tools::bridge") {
        return;
    }
    let home = Home::new();
    let [near, far] = [(); 2].map(|()| Netns::quiet("br"));
    let _pair = near.veth(&far, "br0", "br1");
    near.run("ip addr add 10.99.0.1/24 dev br0");
    far.run("ip addr add 10.99.0.2/24 dev br1");
    let link = home.dir.join("bridge");
    symlink(env!("CARGO_BIN_EXE_ringway"), &link).unwrap();
    let mut command = near.command(link.to_str().unwrap());
    command.args(["-w0", "netmap:br0"]);
    command.env("RINGWAY_DIR", &home.dir).env_remove("RINGWAY_SOCKET");
    let bridge = Proc::spawn(command);
    let said = bridge.wait_for("Ready to go", LIMIT);
    assert!(said.contains("------- zerocopy supported"), "{said}");
    near.ping("-c 3 -i 0.2 -w 30 10.99.0.2");
    bridge.signal(Signal::INT);
    assert_eq!(bridge.wait().0.code(), Some(0));
    // The interface is the host's again, perhaps not at once.
    near.run("ping -c 20 -i 0.2 -w 20 10.99.0.2 | grep -q 'bytes from'");
    home.is_left_clean();
}

#[test]
fn silence_is_said_to_be_silence() {
    let home = Home::new();
    let bridge = Proc::spawn(home.tool("bridge", &["-w0", "netmap:p}0", "netmap:p{1"]));
    bridge.wait_for("poll timeout", LIMIT);
    bridge.signal(Signal::INT);
    assert_eq!(bridge.wait().0.code(), Some(0));
}

#[test]
fn odd_values_are_replaced_and_bad_usage_explained() {
    let home = Home::new();
    let bridge = home.tool("bridge", &["-b", "9000", "-w", "101", "netmap:nosuch0", "netmap:p{0"]);
    let (status, printed, said) = run(bridge);
    assert_eq!((status, printed), (Some(1), String::new()));
    assert!(said.contains("invalid burst 9000, set to 1024"), "{said}");
    assert!(said.contains("invalid wait_time 101, set to 4"), "{said}");
    assert!(said.contains("nosuch0"), "{said}");
    for args in [&["-h"][..], &[], &["-x", "a"]] {
        let (status, _, said) = run(home.tool("bridge", args));
        assert_eq!(status, Some(1));
        assert!(said.contains("usage: bridge [-v] [-i ifa]"), "{said}");
    }
    home.is_left_clean();
}
