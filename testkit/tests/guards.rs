//! The guards undo what they made, and the snapshot sees what is left.

use std::process::Command;
use std::time::Duration;

use ringway_testkit::{Netns, Proc, Snapshot, skip_without_root, unique_name};

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

#[test]
fn a_process_ends_with_its_guard() {
    let mut command = Command::new("sh");
    command.args(["-c", "echo ready; exec sleep 1000"]);
    let child = Proc::spawn(command);
    child.wait_for("ready", Duration::from_secs(10));
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
