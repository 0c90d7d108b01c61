//! A daemon that is short of threads, of descriptors or of addresses in the middle of its life: it refuses
//! requests with what to do about it, other programs' ports stay, and with enough of it all works as before.

use std::{collections::BTreeMap, process::Command, time::Duration};

use ringway_testkit::{Proc, skip_without_root};
use ringway_tests::{
    Home, as_nobody, one_at_a_time,
    resources::{descriptors, kilobytes, wait_asleep},
    until,
};

const LIMIT: Duration = Duration::from_secs(60);
/// More descriptors than any request takes.
const MANY: u64 = 60;
/// Room for what the daemon needs for itself, and not for a region.
const LITTLE: u64 = 8 << 20;

/// The private daemon of an ordinary user, whom the kernel holds to the limits, and a program that has a port.
struct World {
    home: Home,
    program: Proc,
    daemon: u32,
}

impl World {
    fn new() -> World {
        let home = Home::new();
        home.give_to_nobody();
        let program = Proc::spawn(as_nobody(home.traffic(&["hold", "vale0:a"])));
        program.wait_for("open", LIMIT);
        let daemon = home.daemon();
        let world = World { home, program, daemon };
        // Whatever is opened once is open after this.
        world.open("valenew:p").expect("nothing is short yet");
        world
    }

    /// Opens a port in a program of its own, and closes it again; or what that is told.
    fn open(&self, port: &str) -> Result<(), String> {
        let close = as_nobody(self.home.traffic(&["close", port]));
        let (status, said) = Proc::spawn(close).wait();
        if status.success() { Ok(()) } else { Err(said) }
    }

    /// Does `f` while the daemon has no more than that of something, as prlimit(1) calls it.
    fn short_of<T>(&self, resource: &str, current: u64, f: impl FnOnce() -> T) -> T {
        let before = self.prlimit(&format!("--output=SOFT --noheadings --{resource}"));
        self.prlimit(&format!("--{resource}={current}:"));
        let result = f();
        self.prlimit(&format!("--{resource}={}:", before.trim()));
        result
    }

    /// By the daemon's user, who may without privileges.
    fn prlimit(&self, options: &str) -> String {
        let mut prlimit = Command::new("prlimit");
        prlimit.arg(format!("--pid={}", self.daemon)).args(options.split(' '));
        let (status, said) = Proc::spawn(as_nobody(prlimit)).wait();
        assert!(status.success(), "prlimit {options}: {said}");
        said
    }

    /// All is as before, and the daemon is the same.
    fn assert_as_before(&mut self, descriptors_before: &BTreeMap<String, usize>) {
        self.open("valenew:p").expect("there is enough again");
        assert_eq!(self.home.daemon(), self.daemon, "{}", self.home.log());
        assert!(self.program.is_running(), "{}", self.program.output());
        // Some that were closed by then may have been open yet.
        until("all is closed that was opened", || {
            let now = descriptors(self.daemon);
            let is_known = |(kind, count)| descriptors_before.get(kind).is_some_and(|n| count <= n);
            match now.iter().all(is_known) {
                true => Ok(()),
                false => Err(format!("{now:?}, and before {descriptors_before:?}")),
            }
        });
        let log = self.home.log();
        assert!(!log.contains("panicked"), "{log}");
    }
}

#[test]
fn short_of_everything() {
    if skip_without_root("short_of_everything") {
        return;
    }
    let _turn = one_at_a_time();
    let mut world = World::new();
    wait_asleep(world.daemon);
    let before = descriptors(world.daemon);

    // Threads. A new switch is one; what a switch serves that is there takes none, and closing what clients have
    // sent waits until there is one.
    world.short_of("nproc", 0, || {
        let said = world.open("valenew:p").expect_err("there is no thread");
        for words in ["valenew", "cannot start a worker", "limit of tasks"] {
            assert!(said.contains(words), "{words}: {said}");
        }
        for port in ["vale0:b", "q{1"].repeat(10) {
            world.open(port).unwrap_or_else(|said| panic!("{port}: {said}"));
        }
    });
    world.assert_as_before(&before);

    // Descriptors: all that are free but so many.
    let last = || {
        let fds = std::fs::read_dir(format!("/proc/{}/fd", world.daemon)).expect("it runs");
        let numbers = fds.flatten().filter_map(|fd| fd.file_name().to_str()?.parse().ok());
        numbers.max().unwrap_or(0u64)
    };
    let mut refused = 0;
    for more in (0..MANY).step_by(3) {
        let outcome = world.short_of("nofile", last() + 1 + more, || world.open("valenew:p"));
        if let Err(said) = outcome {
            assert!(said.starts_with("error ") && said.trim().len() > 20, "{more}: {said}");
            refused += 1;
        }
    }
    assert!(refused > 0);
    world.assert_as_before(&before);

    // Addresses.
    let used = kilobytes(&format!("/proc/{}/status", world.daemon), "VmSize:") << 10;
    let said = world.short_of("as", used + LITTLE, || world.open("valenew:p"));
    let said = said.expect_err("there is no room for a region");
    assert!(said.starts_with("error ") && said.trim().len() > 20, "{said}");
    world.assert_as_before(&before);
    world.program.kill();
}
