//! Kernels before 6.6, which have no tcx.

use std::{net::UdpSocket, process::Command, time::Duration};

use ringway_testkit::{Netns, NicState, Proc, Snapshot, forbid_tcx, skip_without_root};
use ringway_tests::{GROUP, Home, assert_connected, ends, inside, one_at_a_time, until};
use rustix::process::{Pid, Signal, kill_process};

const LIMIT: Duration = Duration::from_secs(60);

/// The host's stack is behind a program, in each mode, by filters that nobody leaves behind, whoever is killed first.
#[test]
fn without_tcx_the_host_rings_work_and_nothing_stays() {
    if skip_without_root("without_tcx_the_host_rings_work_and_nothing_stays") {
        return;
    }
    let _turn = one_at_a_time();
    let before = Snapshot::take();
    let (a, b) = (Netns::quiet("rwk"), Netns::quiet("rwk"));
    let pair = a.veth(&b, "n0", "n1");
    for (netns, name, address) in [(&a, "n0", "10.7.0.1"), (&b, "n1", "10.7.0.2")] {
        netns.run(&format!("ip addr add {address}/24 dev {name} && ip link set {name} up"));
    }
    let untouched = NicState::take(&a, "n0");
    for system in [false, true] {
        let home = Home::new();
        for (mode, daemon_first) in
            ["copy", "generic", "packet"].into_iter().flat_map(|mode| [(mode, false), (mode, true)])
        {
            let what = format!("{mode}, system: {system}, daemon first: {daemon_first}");
            let daemon = system.then(|| {
                home.system_daemon_with(GROUP, 0o660, "", |daemon| {
                    let mut daemon = inside(&a, daemon);
                    forbid_tcx(&mut daemon);
                    daemon
                })
            });
            let nic = format!("netmap:n0@mode={mode}");
            let args = ["join", &nic, "netmap:n0^"];
            let program = if system { home.system_traffic(&args) } else { home.traffic(&args) };
            let mut program = inside(&a, program);
            // It starts a private daemon, which has what it has.
            forbid_tcx(&mut program);
            let program = Proc::spawn(program);
            program.wait_for("joined", LIMIT);
            assert!(a.run("tc filter show dev n0 egress").contains("ringway_slot"), "{what}");
            if daemon_first {
                let pid = daemon.as_ref().map_or_else(|| home.daemon(), Proc::pid);
                let daemon = Pid::from_raw(pid as i32).expect("a pid");
                kill_process(daemon, Signal::KILL).expect("it runs");
                assert!(ends(pid, LIMIT), "{what}");
                a.ping("-c 3 -i 0.05 -w 30 10.7.0.2");
            } else {
                assert_connected(&a, &b, "10.7.0.2");
            }
            program.kill();
            untouched.assert_restored(&a);
            a.ping("-c 1 -w 30 10.7.0.2");
            match daemon {
                Some(daemon) => {
                    daemon.signal(Signal::TERM);
                    assert_eq!(daemon.wait().0.success(), !daemon_first, "{what}");
                }
                // A socket that is left behind is not in the way of the next daemon.
                None if daemon_first => {}
                None => home.assert_left(),
            }
        }
    }
    pair.delete();
    drop((a, b));
    before.assert_clean();
}

/// A filter takes some of what an interface receives, changes while the port is open, and leaves nothing behind,
/// whichever process is killed first: with filters of the qdisc, and with tcx.
#[test]
fn a_filter_beside_the_traffic_control_leaves_nothing() {
    if skip_without_root("a_filter_beside_the_traffic_control_leaves_nothing") {
        return;
    }
    let _turn = one_at_a_time();
    let before = Snapshot::take();
    let (a, b) = (Netns::quiet("rwk"), Netns::quiet("rwk"));
    let pair = a.veth(&b, "n0", "n1");
    for (netns, name, address) in [(&a, "n0", "10.7.0.1"), (&b, "n1", "10.7.0.2")] {
        netns.run(&format!("ip addr add {address}/24 dev {name} && ip link set {name} up"));
    }
    let untouched = NicState::take(&a, "n0");
    let there = b.enter(|| UdpSocket::bind("10.7.0.2:0").unwrap());
    for (system, tcx, daemon_first) in [false, true].into_iter().flat_map(|system| {
        [false, true].into_iter().flat_map(move |tcx| [(system, tcx, false), (system, tcx, true)])
    }) {
        let what = format!("system: {system}, tcx: {tcx}, daemon first: {daemon_first}");
        let home = Home::new();
        home.install(&[("ringway", "ringway-cli")]);
        let within = |command: Command| {
            let mut command = inside(&a, command);
            if !tcx {
                forbid_tcx(&mut command);
            }
            command
        };
        let daemon = system.then(|| home.system_daemon_with(GROUP, 0o660, "", within));
        let ringway = |args: &[&str]| {
            let program = home.bin().join("ringway");
            let mut command =
                if system { home.system_command(program) } else { home.command(program) };
            command.args(args);
            Proc::spawn(within(command))
        };
        let receiver = ringway(&["recv", "netmap:n0", "--filter", "udp dst port 53"]);
        receiver.wait_for("n0 is open", LIMIT);
        let (status, ports) = ringway(&["ports"]).wait();
        assert!(
            status.success() && ports.contains("packet; not zerocopy or copy"),
            "{what}: {ports}"
        );
        let slots = a.run("tc filter show dev n0 ingress");
        assert_eq!(slots.contains("ringway_slot"), !tcx, "{what}");
        a.ping("-c 2 -i 0.05 -w 30 10.7.0.2");
        // What the first does not match, and the second does: it is received, and so changed.
        let set = ["filter", "set", "netmap:n0", "udp dst port 54"];
        let (status, said) = ringway(&set).wait();
        assert!(status.success(), "{what}: {said}");
        let killed = || {
            let pid = daemon.as_ref().map_or_else(|| home.daemon(), Proc::pid);
            kill_process(Pid::from_raw(pid as i32).expect("a pid"), Signal::KILL).expect("it runs");
            assert!(ends(pid, LIMIT), "{what}");
        };
        if daemon_first {
            killed();
        }
        until("what the second filter takes is received", || {
            there.send_to(&[0; 20], "10.7.0.1:54").unwrap();
            let output = receiver.output();
            let mut rates = output.lines().filter(|line| line.contains(" pps "));
            match rates.any(|line| !line.contains(" 0.000 pps ")) {
                true => Ok(()),
                false => Err(output),
            }
        });
        a.ping("-c 2 -i 0.05 -w 30 10.7.0.2");
        receiver.kill();
        if !daemon_first {
            killed();
        }
        untouched.assert_restored(&a);
        until("the pair has gone", || match a.run("ip link") {
            links if links.contains("rwrecv") => Err(links),
            _ => Ok(()),
        });
        a.ping("-c 1 -w 30 10.7.0.2");
        if let Some(daemon) = daemon {
            daemon.wait();
        }
    }
    pair.delete();
    drop((a, b));
    before.assert_clean();
}
