//! Kernels before 6.6, which have no tcx.

use std::time::Duration;

use ringway_testkit::{Netns, NicState, Proc, Snapshot, forbid_tcx, skip_without_root};
use ringway_tests::{GROUP, Home, assert_connected, inside, one_at_a_time};
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
                let pid = Pid::from_raw(pid as i32).expect("a pid");
                kill_process(pid, Signal::KILL).expect("it runs");
                a.ping("-c 3 -i 0.05 -W 10 10.7.0.2");
            } else {
                assert_connected(&a, &b, "10.7.0.2");
            }
            program.kill();
            untouched.assert_restored(&a);
            a.ping("-c 1 -W 10 10.7.0.2");
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
