//! The guards undo what they made, and the snapshot sees what is left.

use std::process::Command;
use std::time::Duration;

use ringway_testkit::{Netns, NicState, Proc, Snapshot, skip_without_root, unique_name};

#[test]
fn namespaces_and_pairs_vanish() {
    if skip_without_root("namespaces_and_pairs_vanish") {
        return;
    }
    let before = Snapshot::take();
    let name = unique_name("tk");
    let netns = Netns::new("tkn");
    let netns_name = &netns.name().unwrap().to_string();
    let pair = Netns::root().veth(&netns, &name, "inside");
    netns.run("ip link show inside");
    assert!(
        netns
            .enter(|| std::fs::read_to_string("/proc/thread-self/net/dev").unwrap())
            .contains("inside")
    );

    // Other programs may come and go meanwhile: only what this test made counts.
    let left_of_ours = || {
        let mut left = before.diff(&Snapshot::take());
        left.retain(|thing| thing.contains(&name) || thing.contains(netns_name));
        left.len()
    };
    assert_eq!(left_of_ours(), 2);
    pair.delete();
    drop(netns);
    assert_eq!(left_of_ours(), 0);
}

/// Each kind of change shows, and nothing does when it is undone.
#[test]
fn the_state_of_an_interface_shows_what_was_changed() {
    if skip_without_root("the_state_of_an_interface_shows_what_was_changed") {
        return;
    }
    let netns = Netns::quiet("tkn");
    let _pair = netns.veth_queues(&netns, "n0", "n1", 2);
    let before = NicState::take(&netns, "n0");
    for (change, undo, shown) in [
        ("ip link set n0 mtu 1400", "ip link set n0 mtu 1500", "mtu 1400"),
        ("ip link set n0 promisc on", "ip link set n0 promisc off", "promiscuity 1"),
        ("ip link add v0 type veth peer name v1", "ip link del v0", "links beside it: v0"),
        ("ip addr add 10.1.1.1/24 dev n0", "ip addr flush dev n0", "10.1.1.1/24"),
        ("ethtool -K n0 tx off", "ethtool -K n0 tx on", "+ offloads: tx-checksumming: off"),
        ("ethtool -L n0 rx 1", "ethtool -L n0 rx 2", "channels: RX:\t\t1"),
        ("tc qdisc add dev n0 clsact", "tc qdisc del dev n0 clsact", "qdiscs: qdisc clsact"),
        (
            "echo 20000 > /sys/class/net/n0/gro_flush_timeout",
            "echo 0 > /sys/class/net/n0/gro_flush_timeout",
            "gro_flush_timeout:20000",
        ),
        (
            "echo 1 > /sys/class/net/n0/queues/rx-1/rps_cpus",
            "echo 0 > /sys/class/net/n0/queues/rx-1/rps_cpus",
            "rx-1/rps_cpus",
        ),
        (
            "sysctl -qw net.ipv4.conf.n0.accept_local=1",
            "sysctl -qw net.ipv4.conf.n0.accept_local=0",
            "n0/accept_local:1",
        ),
    ] {
        netns.run(change);
        let diff = before.diff(&NicState::take(&netns, "n0"));
        assert!(diff.contains(shown), "{change}: {diff}");
        netns.run(undo);
        before.assert_restored(&netns);
    }
}

#[test]
fn a_process_ends_with_its_guard() {
    let mut command = Command::new("sh");
    command.args(["-c", "echo ready; exec sleep 1000"]);
    let child = Proc::spawn(command);
    child.wait_for("ready", Duration::from_secs(30));
    let pid = child.pid();
    drop(child);
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
}

#[test]
fn output_and_status_come_back() {
    let mut command = Command::new("sh");
    command.args(["-c", "echo out; echo err >&2; exit 3"]);
    let (status, output) = Proc::spawn(command).wait();
    assert_eq!(status.code(), Some(3));
    assert!(output.contains("out") && output.contains("err"), "{output}");
}
