//! Kernels without calls that doorbells are quicker with, and sandboxes that refuse these; and kernels before 6.6,
//! which have no tcx.

use std::{process::Command, time::Duration};

use ringway_testkit::{Netns, NicState, Proc, Snapshot, forbid_tcx, skip_without_root};
use ringway_tests::{
    GROUP, Home, assert_connected,
    c::{Language::C11, Library::Preloaded, succeed},
    compile, inside, one_at_a_time,
};
use rustix::process::{Pid, Signal, kill_process};

const LIMIT: Duration = Duration::from_secs(60);
/// Of waiting, for a receiver.
const SECONDS: u64 = 2;

/// What one process lacks: a call, and the error number that it has instead.
type Lack = Option<(&'static str, i32)>;

/// What the daemon lacks, and the receiver.
const CASES: [(Lack, Lack); 6] = [
    // Another user has taken all of fs.aio-max-nr; there is no CONFIG_AIO; Linux 5.7.
    (Some(("io_setup", libc::EAGAIN)), None),
    (Some(("io_setup", libc::ENOSYS)), None),
    (Some(("preadv2", libc::EOPNOTSUPP)), None),
    (None, Some(("preadv2", libc::EOPNOTSUPP))),
    (None, Some(("preadv2", libc::EPERM))),
    (Some(("io_setup", libc::EAGAIN)), Some(("preadv2", libc::ENOSYS))),
];

/// What the children that were waited for have taken of the processor.
fn taken() -> Duration {
    // SAFETY: numbers, which may all be zero.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: room for the answer.
    assert_eq!(unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage) }, 0);
    let time = |time: libc::timeval| {
        Duration::from_secs(time.tv_sec as u64) + Duration::from_micros(time.tv_usec as u64)
    };
    time(usage.ru_utime) + time(usage.ru_stime)
}

/// Packets come, whatever is missing, and a receiver that waits sleeps.
#[test]
fn what_is_missing_costs_no_processor() {
    let home = Home::new();
    home.install(&[("ringway", "ringway-cli")]);
    let without = compile(&home, "tests/c/without.c", C11, Preloaded);
    let lacking = |lack: Lack, program: &str, args: &[&str]| {
        let mut command = match lack {
            None => home.command(home.bin().join(program)),
            Some((call, error)) => {
                let mut command = home.command(&without);
                command.args([call, &error.to_string()]).arg(home.bin().join(program));
                command
            }
        };
        command.args(args);
        command
    };
    for (daemon, receiver) in CASES {
        // It starts the daemon, which lacks what it lacks.
        let holder = Proc::spawn(lacking(daemon, "traffic", &["hold", "hold{1"]));
        holder.wait_for("open", LIMIT);
        let log = home.log();
        let is_slower = daemon.is_some();
        assert_eq!(log.contains("25 microseconds longer"), is_slower, "{daemon:?}: {log}");
        for (to, from) in [("p{0", "p}0"), ("vale0:a", "vale0:b")] {
            let time = format!("{SECONDS}s");
            let receiving =
                lacking(receiver, "ringway", &["recv", from, "--duration", &time, "--json"]);
            let receiving = Proc::spawn(receiving);
            receiving.wait_for(r#""type":"open""#, LIMIT);
            let mut sender: Command = home.command(home.bin().join("ringway"));
            sender.args(["gen", to, "--count", "5", "--rate", "10"]);
            succeed(sender);
            let before = taken();
            let (status, said) = receiving.wait();
            let taken = taken() - before;
            assert!(status.success(), "{daemon:?} {receiver:?}: {said}");
            let all = said.lines().any(|line| {
                line.contains(r#""type":"summary""#) && line.contains(r#""packets":5,"#)
            });
            assert!(all, "{daemon:?} {receiver:?}: {said}");
            let most = Duration::from_secs(SECONDS) / 5;
            assert!(taken < most, "{daemon:?} {receiver:?}, {from}: {taken:?} of {SECONDS} s");
        }
        drop(holder);
        home.assert_left();
        let _ = std::fs::remove_file(home.run().join("ringwayd.log"));
    }
}

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
