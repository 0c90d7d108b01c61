//! What clients share with the daemon to wake it, and to be woken, is of no use against others: it
//! carries nothing, blocks none, and makes no idle daemon work (trust rule 5).

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use ringway::Control;
use ringway_testkit::{Proc, skip_without_root};
use ringway_tests::{GROUP, Home, NOBODY, Pair, isolated_with_system};
use rustix::time::{ClockId, clock_gettime};

/// Longer than a test takes; then it hangs.
const LIMIT: Duration = Duration::from_secs(300);
/// As long as a bystander waits at most: far less than the hour that the hostile client can take from others,
/// where it can, and far more than a busy machine takes.
const PATIENCE: Duration = Duration::from_secs(10);
/// Processor time that passes while an idle daemon is watched.
const WATCHED: Duration = Duration::from_millis(500);
/// Hundredths of a second that an idle daemon may work meanwhile; a daemon that spins works for 25 and more.
const IDLE_TICKS: u64 = 4;

/// The hostile client, as an ordinary user.
fn misuse(home: &Home, args: &[&str]) -> Proc {
    let mut command = home.system_command("python3");
    command.env("RINGWAY_SOCKET", home.system_socket());
    command.arg("-B").arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("python/misuse.py"));
    command.args([NOBODY, GROUP].map(|id| id.to_string())).args(args);
    Proc::spawn(command)
}

/// Hundredths of a second that a process has worked.
fn ticks(pid: u32) -> u64 {
    ticks_of(Path::new(&format!("/proc/{pid}")))
}

fn ticks_of(task: &Path) -> u64 {
    let stat = fs::read_to_string(task.join("stat")).expect("it runs");
    let (_, behind_name) = stat.rsplit_once(')').expect("a name in parentheses");
    let fields = behind_name.split_whitespace().skip(11).take(2);
    fields.map(|field| field.parse::<u64>().expect("a number")).sum()
}

/// Hundredths of a second that a worker has worked.
fn worker_ticks(pid: u32, switch: &str) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("it runs");
    let named =
        |path: &Path| fs::read_to_string(path.join("comm")).is_ok_and(|comm| comm.trim() == switch);
    let mut paths = tasks.map_while(Result::ok).map(|task| task.path());
    ticks_of(&paths.find(|path| named(path)).expect("a worker of that name"))
}

/// While this process works for [`WATCHED`], the daemon does next to nothing.
fn assert_idle(daemon: &Proc) {
    let spent = || Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).expect("positive");
    let (before, end) = (ticks(daemon.pid()), spent() + WATCHED);
    while spent() < end {
        std::hint::spin_loop();
    }
    let worked = ticks(daemon.pid()) - before;
    assert!(worked <= IDLE_TICKS, "an idle daemon worked for {worked} hundredths of a second");
}

/// A switch's neighbours, and clients that ask the daemon, do not notice what a hostile client does with
/// its descriptors; the daemon is idle afterwards, and when it has gone.
fn bystanders_notice_nothing(test: &str, what: &[&str]) {
    if skip_without_root(test) {
        return;
    }
    isolated_with_system(test, LIMIT, |home| {
        let daemon = home.system_daemon(GROUP, 0o660);
        let control = Control::connect().expect("the daemon answers");
        let mut pair = Pair::open("valew:a", "valew:b", 1).expect("a switch");
        let (mut slowest_frame, mut slowest_answer) = (Duration::ZERO, Duration::ZERO);
        let mut look = || {
            let begin = Instant::now();
            pair.exchange_some(1).expect("the daemon serves");
            slowest_frame = slowest_frame.max(begin.elapsed());
            let begin = Instant::now();
            control.ports().expect("the daemon answers");
            slowest_answer = slowest_answer.max(begin.elapsed());
        };
        look();
        let mut hostile = misuse(home, &[&[what[0], "valew:hostile"], &what[1..]].concat());
        let mut hostile = loop {
            look();
            let said = hostile.output();
            assert!(!said.contains("Traceback"), "{said}");
            if said.contains("done") {
                println!("{said}");
                break hostile;
            }
            assert!(hostile.is_running(), "it ended: {said}");
        };
        (0..100).for_each(|_| look());
        assert!(hostile.is_running(), "{}", hostile.output());
        assert_idle(&daemon);
        hostile.kill();
        (0..100).for_each(|_| look());
        assert_idle(&daemon);
        println!("slowest exchange: {slowest_frame:?}; slowest answer: {slowest_answer:?}");
        assert!(slowest_frame < PATIENCE, "frames waited: {slowest_frame:?}");
        assert!(slowest_answer < PATIENCE, "a request waited: {slowest_answer:?}");
    });
}

#[test]
fn doorbells_carry_nothing_that_takes_long_to_close() {
    bystanders_notice_nothing("doorbells_carry_nothing_that_takes_long_to_close", &["carry"]);
}

#[test]
fn doorbells_are_not_shut_down() {
    bystanders_notice_nothing("doorbells_are_not_shut_down", &["shut"]);
}

#[test]
fn full_doorbells_block_their_owner_alone() {
    bystanders_notice_nothing("full_doorbells_block_their_owner_alone", &["fill"]);
}

/// A client listens to its doorbells in ten thousand places, so that to wake it takes milliseconds: that time
/// is not the worker's.
#[test]
fn doorbells_that_take_long_to_ring() {
    const TEST: &str = "doorbells_that_take_long_to_ring";
    const ROUNDS: u64 = 500;
    if skip_without_root(TEST) {
        return;
    }
    isolated_with_system(TEST, LIMIT, |home| {
        let daemon = home.system_daemon(GROUP, 0o660);
        let _pair = Pair::open("valew:a", "valew:b", 1).expect("a switch");
        let mut hostile = misuse(home, &["crowd", "valew:hostile", &ROUNDS.to_string()]);
        let begin = Instant::now();
        while !hostile.output().contains("done") {
            assert!(hostile.is_running(), "{}", hostile.output());
            std::thread::yield_now();
        }
        let (all, worked) = (ticks(daemon.pid()), worker_ticks(daemon.pid(), "valew"));
        println!("{ROUNDS} wakes: worker {worked}, daemon {all} ticks, {:?}", begin.elapsed());
        assert!(worked < ROUNDS / 20, "the worker has worked for {worked} hundredths of a second");
    });
}

#[test]
fn random_calls_on_all_descriptors() {
    bystanders_notice_nothing("random_calls_on_all_descriptors", &["random", "20000"]);
}
