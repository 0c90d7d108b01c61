//! One interface in the hands of several users: each has queues of his own.

use std::time::Duration;

use ringway_testkit::{Netns, Proc, Snapshot, skip_without_root};
use ringway_tests::{GROUP, Home, as_nobody, ends, inside, one_at_a_time, until};
use rustix::process::Signal;

const LIMIT: Duration = Duration::from_secs(30);

/// Whether a process has the link of a BPF program among its descriptors.
fn holds_a_program(process: &Proc) -> bool {
    let fds = std::fs::read_dir(format!("/proc/{}/fd", process.pid())).expect("it runs");
    let links = fds.flatten().filter_map(|fd| std::fs::read_link(fd.path()).ok());
    links.into_iter().any(|link| link.to_string_lossy().contains("bpf_link"))
}

#[test]
fn users_have_queues_of_one_interface_at_once() {
    if skip_without_root("users_have_queues_of_one_interface_at_once") {
        return;
    }
    let _turn = one_at_a_time();
    let before = Snapshot::take();
    let home = Home::new();
    let (a, b) = (Netns::quiet("rwu"), Netns::quiet("rwu"));
    let wire = a.veth_queues(&b, "n0", "n1", 4);
    let users = "nic_users = ['65534']\n";
    let daemon = home.system_daemon_with(GROUP, 0o660, users, |daemon| inside(&a, daemon));
    let as_me = |args: &[&str]| Proc::spawn(inside(&a, home.system_traffic(args)));
    let as_them = |args: &[&str]| Proc::spawn(inside(&a, as_nobody(home.system_traffic(args))));

    for _ in 0..2 {
        let mine = as_me(&["receive", "netmap:n0-0", "1"]);
        let theirs = as_them(&["receive", "netmap:n0-1", "2"]);
        let also_mine = as_me(&["hold", "netmap:n0-3"]);
        also_mine.wait_for("open", LIMIT);
        // What goes out by a queue of the one end comes in by the same of the other.
        let senders = [["send", "netmap:n1-0", "1"], ["send", "netmap:n1-1", "2"]]
            .map(|args| Proc::spawn(inside(&b, home.traffic(&args))));
        mine.wait_for("going", LIMIT);
        theirs.wait_for("going", LIMIT);

        // Who has the link of the XDP program could detach it, under the others.
        assert!(holds_a_program(&mine) && !holds_a_program(&theirs));

        for taken in ["netmap:n0", "netmap:n0-0", "netmap:n0-3"] {
            let (status, output) = as_them(&["hold", taken]).wait();
            assert!(!status.success() && output.contains("error 16"), "{taken}: {output}");
            assert!(output.contains("another user's"), "{taken}: {output}");
        }

        // Who goes takes nothing of the others' along.
        mine.signal(Signal::KILL);
        assert!(ends(mine.pid(), LIMIT));
        let (_, output) = mine.wait();
        assert!(!output.contains("wrong") && !output.contains("error"), "{output}");
        // Not even its queue is kept from others.
        let taken = as_them(&["hold", "netmap:n0-0"]);
        taken.wait_for("open", LIMIT);
        taken.kill();
        let again = as_me(&["receive", "netmap:n0-0", "1"]);
        again.wait_for("going", LIMIT);

        for process in senders.into_iter().chain([theirs, also_mine, again]) {
            process.signal(Signal::KILL);
            assert!(ends(process.pid(), LIMIT));
            let (_, output) = process.wait();
            assert!(!output.contains("wrong") && !output.contains("error"), "{output}");
        }
        home.assert_left();
        until("the interface is as it was", || match a.run("ip -d link show n0") {
            link if link.contains("prog/xdp") => Err(link),
            _ => Ok(()),
        });
    }
    // When the daemon dies, root's programs go on, and the others learn of it.
    let mine = as_me(&["receive", "netmap:n0-0", "1"]);
    let theirs = as_them(&["receive", "netmap:n0-1", "2"]);
    let senders = [["send", "netmap:n1-0", "1"], ["send", "netmap:n1-1", "2"]]
        .map(|args| Proc::spawn(inside(&b, home.traffic(&args))));
    theirs.wait_for("going", LIMIT);
    mine.wait_for("open", LIMIT);
    daemon.signal(Signal::KILL);
    let (status, output) = theirs.wait();
    assert!(!status.success() && output.contains("ringwayd"), "{output}");
    mine.wait_for("going", LIMIT);
    for process in senders.into_iter().chain([mine]) {
        process.signal(Signal::KILL);
        assert!(ends(process.pid(), LIMIT));
    }
    home.assert_left();
    drop((wire, a, b));
    before.assert_clean();
}

/// Two users who name each other have a pipe between them, through which one sends what the other
/// receives; who names somebody else has another one.
#[test]
fn users_have_a_pipe_between_them() {
    if skip_without_root("users_have_a_pipe_between_them") {
        return;
    }
    let home = Home::new();
    let daemon = home.system_daemon(GROUP, 0o660);
    let stranger = Proc::spawn(home.system_traffic(&["hold", "p}1@user=1"]));
    stranger.wait_for("open", LIMIT);
    let receiver = Proc::spawn(as_nobody(home.system_traffic(&["receive", "p}1@user=root", "1"])));
    let sender = Proc::spawn(home.system_traffic(&["send", "p{1@user=nobody", "1"]));
    receiver.wait_for("going", LIMIT);
    sender.wait_for("going", LIMIT);
    drop((sender, receiver, stranger));
    daemon.kill();
}

/// What directs an interface's frames goes with the last queue, although another user still has the
/// stack behind it: what he sends there arrives without the mark that it needed before, and whoever
/// opens a queue next decides on the mode.
#[test]
fn the_last_queue_takes_the_mode_along() {
    if skip_without_root("the_last_queue_takes_the_mode_along") {
        return;
    }
    let _turn = one_at_a_time();
    let before = Snapshot::take();
    let home = Home::new();
    let (a, b) = (Netns::quiet("rwu"), Netns::quiet("rwu"));
    let wire = a.veth(&b, "n0", "n1");
    let users = "nic_users = ['65534']\n";
    let daemon = home.system_daemon_with(GROUP, 0o660, users, |daemon| inside(&a, daemon));
    let traffic = |args: &[&str]| {
        let mut command = home.system_command(home.bin().join("traffic"));
        command.args(args);
        command
    };
    let hears_numbered_frames = || {
        let mut tcpdump = a.command("tcpdump");
        tcpdump.args(["-n", "-i", "n0", "-c", "5", "ether", "proto", "0x88b5"]);
        let tcpdump = Proc::spawn(tcpdump);
        assert!(ends(tcpdump.pid(), LIMIT), "{}", tcpdump.output());
        let (status, output) = tcpdump.wait();
        assert!(status.success(), "{output}");
    };
    let stack = Proc::spawn(inside(&a, traffic(&["send", "netmap:n0^", "1"])));
    hears_numbered_frames();
    for mode in ["generic", "packet", "copy"] {
        let port = format!("netmap:n0@mode={mode}");
        until(&format!("{mode} mode can be had"), || {
            let theirs = Proc::spawn(inside(&a, as_nobody(traffic(&["hold", &port]))));
            theirs.wait_for("o", LIMIT);
            if theirs.output().contains("open") { Ok(theirs) } else { Err(theirs.output()) }
        })
        .kill();
        until("the interface is the stack's", || match a.run("ip -d link show n0") {
            link if link.contains("prog/xdp") => Err(link),
            _ => Ok(()),
        });
        hears_numbered_frames();
    }
    stack.kill();
    daemon.kill();
    drop((wire, a, b));
    before.assert_clean();
}

/// A user of another's daemon is told what that daemon grants, and not what this process could do.
#[test]
fn doctor_says_what_the_daemon_grants() {
    if skip_without_root("doctor_says_what_the_daemon_grants") {
        return;
    }
    let home = Home::new();
    home.install(&[("ringway", "ringway-cli")]);
    let said = |more| {
        let daemon = home.system_daemon_with(GROUP, 0o660, more, |daemon| daemon);
        let mut doctor = home.system_command(home.bin().join("ringway"));
        doctor.arg("doctor");
        let output = as_nobody(doctor).output().expect("setpriv is there");
        daemon.signal(Signal::TERM);
        assert!(ends(daemon.pid(), LIMIT));
        String::from_utf8(output.stdout).expect("text")
    };
    let granted = said("nic_users = ['65534']\n");
    assert!(granted.contains("ok      interfaces      the daemon opens them for you"), "{granted}");
    let refused = said("");
    assert!(refused.contains("missing interfaces "), "{refused}");
    assert!(refused.contains("-> ask its operator to add you to nic_users"), "{refused}");
    for text in [granted, refused] {
        assert!(!text.contains("join the group") && !text.contains("AF_XDP"), "{text}");
    }
}
