//! Kernels without calls that doorbells are quicker with, and sandboxes that refuse these.

use std::{process::Command, time::Duration};

use ringway_testkit::Proc;
use ringway_tests::{
    Home,
    c::{Language::C11, Library::Preloaded},
    compile,
};

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
        // Both at once: the wait is what takes time, and none of the processor.
        let begin = taken();
        let receivers = [("p{0", "p}0"), ("vale0:a", "vale0:b")].map(|(to, from)| {
            let time = format!("{SECONDS}s");
            let receiving =
                lacking(receiver, "ringway", &["recv", from, "--duration", &time, "--json"]);
            (to, from, Proc::spawn(receiving))
        });
        let mut senders = Vec::new();
        for (to, _, receiving) in &receivers {
            receiving.wait_for(r#""type":"open""#, LIMIT);
            let mut sender: Command = home.command(home.bin().join("ringway"));
            sender.args(["gen", to, "--count", "5", "--rate", "10"]);
            senders.push(Proc::spawn(sender));
        }
        for (_, from, receiving) in receivers {
            let (status, said) = receiving.wait();
            assert!(status.success(), "{daemon:?} {receiver:?}: {said}");
            let all = said.lines().any(|line| {
                line.contains(r#""type":"summary""#) && line.contains(r#""packets":5,"#)
            });
            assert!(all, "{daemon:?} {receiver:?}, {from}: {said}");
        }
        for sender in senders {
            let (status, said) = sender.wait();
            assert!(status.success(), "{said}");
        }
        let (taken, most) = (taken() - begin, Duration::from_secs(SECONDS) / 5);
        assert!(taken < most, "{daemon:?} {receiver:?}: {taken:?} of {SECONDS} s");
        drop(holder);
        home.assert_left();
        let _ = std::fs::remove_file(home.run().join("ringwayd.log"));
    }
}
