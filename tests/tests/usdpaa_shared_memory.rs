//! DMA memory that several processes allocate from: what one of them leaves behind that is killed, and what one writes there.

use std::{
    fs::{self, OpenOptions},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use ringway_testkit::Proc;
use ringway_tests::{
    Home, Random,
    c::{Language::*, link, project},
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

/// The file of a shared map.
fn map_file(name: &str) -> PathBuf {
    let file = ringway::shared_folder().expect("it is ours").join(format!("usdpaa-{name}"));
    ringway::leave_shared_folder();
    file
}

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
    assert!(!map_file(&name).exists());
}

/// Rounds of the program whose memory is scribbled over.
const ROUNDS: u32 = 30_000;

/// Whatever another process writes into the map, and into what says what is taken of it, whenever: a program that has its frames
/// and tables there goes on.
#[test]
fn a_member_scribbles_and_another_goes_on() {
    let home = Home::new();
    home.install(&[("libusdpaa.so", "ringway-usdpaa")]);
    let program = link(&home, "tests/c/usdpaa_scribbled.c", C11, &["-lusdpaa", "-lpthread"]);
    let config = home.path().join("config.xml");
    let port = "<port type='OFFLINE' number='1' policy='hash_ipsec_src_dst_spi_policy5'/>";
    let text = format!("<cfgdata><config><engine name='fm0'>{port}</engine></config></cfgdata>");
    fs::write(&config, text).unwrap();
    let bytes: u64 = 4 << 20;
    let name = format!("s{}", std::process::id());
    let mut command = home.command(&program);
    command.env("RINGWAY_USDPAA_PORTS", "fm0-offline1=");
    command.arg(project().join("dist/usdpaa/usdpaa_policy_hash_ipv4.xml")).arg(&config);
    command.args([&name, &bytes.to_string(), &ROUNDS.to_string()]);
    let victim = Proc::spawn(command);
    victim.wait_for("going", LIMIT);
    let file = OpenOptions::new().write(true).open(map_file(&name)).expect("the map's file");
    let length = file.metadata().unwrap().len();
    let mut random = Random::seeded();
    while !ends(victim.pid(), Duration::ZERO) {
        // Half of it where frames are, half of it where it says what is taken.
        let (from, to) = if random.draw().is_multiple_of(2) { (0, bytes) } else { (bytes, length) };
        let word = match random.draw() % 4 {
            0 => 0,
            1 => u64::MAX,
            2 => random.draw() % 64,
            _ => random.draw(),
        };
        file.write_all_at(&word.to_ne_bytes(), from + random.draw() % (to - from - 8)).unwrap();
    }
    let (status, said) = victim.wait();
    assert!(status.success(), "{status}: {said}");
}
