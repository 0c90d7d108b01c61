//! DMA memory that several processes allocate from: what one of them leaves behind that is killed.

use std::{path::Path, process::Command, time::Duration};

use ringway_testkit::Proc;
use ringway_tests::{
    Home, Random,
    c::{Language::*, link},
    ends, kills,
};
use rustix::process::Signal;

const LIMIT: Duration = Duration::from_secs(60);
/// Bytes of the map: more than those have who are killed, 8 places of up to 1600 bytes each, at boundaries of up to 4096.
const BYTES: u32 = 64 << 20;
/// Kills, as a rule.
const KILLS: u32 = 100;
const MEMBERS: usize = 3;
/// The random moment of a kill: any up to this, in microseconds.
const MOMENT: u64 = 3000;

fn member(program: &Path, name: &str, random: &mut Random, times: u32) -> Proc {
    let mut command = Command::new(program);
    command.args([name, &BYTES.to_string(), &random.draw().to_string(), &times.to_string()]);
    Proc::spawn(command)
}

/// Places that one has are no other's, whoever dies in the middle of whatever; and the map goes with the last.
#[test]
fn members_are_killed_and_the_rest_goes_on() {
    let home = Home::new();
    home.install(&[("libusdpaa.so", "ringway-usdpaa")]);
    let program = link(&home, "tests/c/usdpaa_member.c", C11, &["-lusdpaa", "-lpthread"]);
    let name = format!("k{}", std::process::id());
    let mut random = Random::seeded();
    let mut members: Vec<Proc> =
        (0..MEMBERS).map(|_| member(&program, &name, &mut random, 0)).collect();
    for _ in 0..kills(KILLS) {
        let victim = random.draw() as usize % MEMBERS;
        members[victim].wait_for("going", LIMIT);
        std::thread::sleep(Duration::from_micros(random.draw() % MOMENT));
        members[victim].signal(Signal::KILL);
        members[victim] = member(&program, &name, &mut random, 0);
    }
    for member in &members {
        member.wait_for("going", LIMIT);
    }
    // One that comes now does all that it has to, beside them.
    let last = member(&program, &name, &mut random, 2000);
    assert!(ends(last.pid(), LIMIT), "a member hangs: {}", last.output());
    let (status, said) = last.wait();
    assert!(status.success(), "{status}: {said}");
    for member in members {
        assert!(!member.output().contains("not ok"), "{}", member.output());
        member.signal(Signal::KILL);
        member.wait();
    }
    // The next program of the user's takes away what they have left.
    let last = member(&program, "other", &mut random, 1);
    assert!(last.wait().0.success());
    let user = rustix::process::getuid().as_raw();
    assert!(!Path::new(&format!("/dev/shm/ringway-usdpaa-{user}-{name}")).exists());
}
