//! `dedup`.

use super::run;
use crate::home::{Home, LIMIT, find, finish};
use ringway_testkit::{Netns, Proc, skip_without_root};
use rustix::process::Signal;
use std::os::unix::fs::symlink;

/// A capture file of 100 frames, which differ.
fn frames(home: &Home) -> String {
    let path = home.dir.join("frames.pcap").to_str().unwrap().to_string();
    home.json(&["gen", &format!("file:{path}@write"), "--count", "100"]);
    path
}

/// Starts `dedup` from `in}0`.
fn start(home: &Home, to: &str, args: &[&str]) -> Proc {
    let args = [&["-i", "netmap:in}0", "-i", to, "-w", "0"], args].concat();
    let dedup = Proc::spawn(home.tool("dedup", &args));
    dedup.wait_for("Ready to go", LIMIT);
    dedup
}

fn end(dedup: Proc) -> String {
    dedup.signal(Signal::INT);
    let (status, text) = dedup.wait();
    assert_eq!(status.code(), Some(0), "{text}");
    text
}

/// Sends the hundred frames three times; `count` of them are to come out.
fn three_times(home: &Home, sink: &str, to: &str, args: &[&str], count: u32) {
    let file = frames(home);
    let receiver = home.open(&["recv", sink, "--count", &count.to_string()]);
    let dedup = start(home, to, args);
    home.json(&["gen", "in{0", "--pcap", &file, "--count", "300"]);
    finish(receiver);
    let text = end(dedup);
    let told = format!("300 packets received, {} duplicates dropped", 300 - count);
    assert!(text.contains(&told), "{told}: {text}");
}

/// Longer than a test takes.
const LONG: &str = "600000000";

#[test]
fn what_is_remembered_does_not_come_out_again() {
    let home = Home::new();
    for more in [&["-F", "100"][..], &["-F", "200", "-c"]] {
        three_times(&home, "out}0", "netmap:out{0", &[&["-W", LONG], more].concat(), 100);
    }
    // A frame is remembered until 99 others have come.
    three_times(&home, "out}0", "netmap:out{0", &["-W", LONG, "-F", "99"], 300);
    three_times(&home, "out}0", "netmap:out{0", &["-W", LONG, "-F", "0"], 300);
    home.is_left_clean();
}

#[test]
fn a_switch_gets_copies() {
    let home = Home::new();
    three_times(&home, "vale0:b", "vale0:a", &["-W", LONG, "-F", "100"], 100);
    home.is_left_clean();
}

/// They come out when their time is over, and not before.
#[test]
fn packets_are_held_back_if_asked_for() {
    let home = Home::new();
    let file = frames(&home);
    let dedup = start(&home, "netmap:out{0", &["-W", LONG, "-F", "60", "-H"]);
    let receiver = home.open(&["recv", "out}0"]);
    home.json(&["gen", "in{0", "--pcap", &file]);
    // Of a hundred sixty are held, and forty have made room for them.
    let received = || {
        let rings = home.json(&["ports", "--rings"]);
        let ring = rings.iter().find(|line| line["port"] == "out}0" && line["receives"] == true);
        ring.unwrap()["packets"].as_u64()
    };
    assert!((0..1000).any(|_| received() == Some(40)), "{:?}", received());
    end(dedup);
    receiver.signal(Signal::INT);
    assert_eq!(find(&finish(receiver), "summary")["packets"], 100, "none is lost at the end");

    let dedup = start(&home, "netmap:out{0", &["-W", "100000", "-F", "200", "-H"]);
    let receiver = home.open(&["recv", "out}0", "--count", "100"]);
    home.json(&["gen", "in{0", "--pcap", &file]);
    finish(receiver);
    end(dedup);
    home.is_left_clean();
}

#[test]
fn duplicates_of_a_wire_stay_behind() {
    if skip_without_root("cli::tools::dedup::duplicates_of_a_wire_stay_behind") {
        return;
    }
    let [near, far] = [(); 2].map(|()| Netns::quiet("dd"));
    let _pair = near.veth(&far, "dd0", "dd1");
    let homes = [Home::new(), Home::new()];
    let file = frames(&homes[1]);
    // `ip netns exec` runs a program under the name of its file.
    let program = homes[0].dir.join("dedup");
    symlink(env!("CARGO_BIN_EXE_ringway"), &program).unwrap();
    let args = ["-i", "netmap:dd0", "-i", "netmap:out{0", "-w0", "-W", LONG, "-F", "100"];
    let dedup = Proc::spawn(homes[0].program_in(&near, program.to_str().unwrap(), &args));
    dedup.wait_for("Ready to go", LIMIT);
    let args = ["recv", "out}0", "--count", "100", "--json"];
    let receiver = Proc::spawn(homes[0].command_in(&near, &args));
    receiver.wait_for(r#""type":"open""#, LIMIT);
    let args = ["gen", "netmap:dd1", "--pcap", &file, "--count", "300", "--rate", "5k"];
    let sent = homes[1].command_in(&far, &args).output().unwrap();
    assert!(sent.status.success(), "{sent:?}");
    finish(receiver);
    dedup.wait_for("poll timeout", LIMIT);
    let text = end(dedup);
    assert!(text.contains("300 packets received, 200 duplicates dropped"), "{text}");
    homes.iter().for_each(Home::is_left_clean);
}

#[test]
fn exit_statuses() {
    let home = Home::new();
    for (args, cause) in [
        (&["-i", "netmap:in}0"][..], "missing interface"),
        (&["-h"], "usage: dedup"),
        (&["-x"], "dedup: invalid option -- 'x'"),
        (&["-i", "nosuch0", "-i", "vale0:a"], "nosuch0"),
        (&["-i", "vale0:a", "-i", "vale0:b", "-F", "1023"], "fifo_size 1023 too large (max 1022)"),
        (&["-i", "vale0:a@conf:rings=2", "-i", "vale0:b"], "too many RX rings (2)"),
    ] {
        let (status, _, said) = run(home.tool("dedup", args));
        assert_eq!(status, Some(1), "{said}");
        assert!(said.contains(cause), "{args:?}: {said}");
    }
    home.is_left_clean();
}
