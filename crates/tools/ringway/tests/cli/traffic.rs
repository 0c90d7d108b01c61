//! `gen`, `recv` and `bridge`.

use crate::control::daemon;
use crate::home::{Home, LIMIT, find, finish, lines};
use ringway_testkit::{Netns, Proc, skip_without_root};
use rustix::process::{Signal, kill_process};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output};

/// Fewer than a ring has slots: a receiver that is not scheduled in time loses none of them.
const FIT: &str = "1000";

#[test]
fn a_pipe_carries_every_frame_in_order_and_unharmed() {
    let home = Home::new();
    let receiver = home.open(&["recv", "p}0", "--count", "5000", "--verify"]);
    let sent = home.json(&["gen", "p{0", "--count", "5000", "--size", "60-1514"]);
    let received = finish(receiver);
    let (sent, got) = (find(&sent, "summary"), find(&received, "summary"));
    assert_eq!((&sent["packets"], &got["packets"]), (&5000.into(), &5000.into()));
    assert_eq!(sent["bytes"], got["bytes"]);
    let verified = find(&received, "verify");
    assert_eq!((&verified["good"], &verified["missing"]), (&5000.into(), &0.into()));
    home.is_left_clean();
}

#[test]
fn a_switch_floods_to_all_receivers() {
    let home = Home::new();
    let open = |port| home.open(&["recv", port, "--count", FIT, "--verify"]);
    let receivers = [open("vale0:b"), open("vale0:c")];
    home.json(&["gen", "vale0:a", "--count", FIT]);
    for receiver in receivers {
        let received = finish(receiver);
        assert_eq!(find(&received, "verify")["good"], 1000);
        assert_eq!(find(&received, "drops")["ring_full"], 0);
    }
    home.is_left_clean();
}

#[test]
fn monitors_see_what_a_receiver_does() {
    let home = Home::new();
    let receiver = home.open(&["recv", "vale0:b"]);
    let open = |port| home.open(&["recv", port, "--count", FIT, "--verify"]);
    let monitors = [open("vale0:b/r"), open("vale0:b/rt"), open("vale0:b/z")];
    let late = home.open(&["recv", "vale0:b/r"]);
    home.json(&["gen", "vale0:a", "--count", FIT]);
    for monitor in monitors {
        assert_eq!(find(&finish(monitor), "verify")["good"], 1000);
    }
    receiver.signal(Signal::INT);
    assert_eq!(find(&finish(receiver), "summary")["packets"], 1000);
    let (status, output) = late.wait();
    assert!(!status.success() && output.contains("has been closed"), "{output}");
    home.is_left_clean();
}

/// Sends frames through a bridge, which is then interrupted; returns what the bridge printed.
fn bridged(home: &Home, ends: [&str; 4]) -> Vec<serde_json::Value> {
    let [source, a, b, sink] = ends;
    let receiver = home.open(&["recv", sink, "--count", FIT, "--verify"]);
    let bridge = home.start(&["bridge", a, b]);
    bridge.wait_for("zero_copy", LIMIT);
    home.json(&["gen", source, "--count", FIT, "--size", "60-1514"]);
    assert_eq!(find(&finish(receiver), "verify")["good"], 1000);
    bridge.signal(Signal::INT);
    let printed = finish(bridge);
    let summary = find(&printed, "summary");
    assert_eq!(
        (&summary["label"], &summary["packets"]),
        (&format!("{a} -> {b}").into(), &1000.into())
    );
    home.is_left_clean();
    printed
}

#[test]
fn a_bridge_between_pipes_copies_nothing() {
    let printed = bridged(&Home::new(), ["p{0", "p}0", "p{1", "p}1"]);
    assert_eq!(find(&printed, "bridge")["zero_copy"], true);
}

#[test]
fn a_bridge_between_regions_copies() {
    let printed = bridged(&Home::new(), ["p{0", "p}0", "vale0:a", "vale0:b"]);
    assert_eq!(find(&printed, "bridge")["zero_copy"], false);
}

#[test]
fn a_bridge_forwards_both_ways() {
    let home = Home::new();
    let bridge = home.start(&["bridge", "p}0", "p{1"]);
    bridge.wait_for("zero_copy", LIMIT);
    let receiver = home.open(&["recv", "p{0", "--count", "3000", "--verify"]);
    home.json(&["gen", "p}1", "--count", "3000"]);
    assert_eq!(find(&finish(receiver), "verify")["good"], 3000);
    bridge.signal(Signal::INT);
    let printed = finish(bridge);
    let back =
        printed.iter().find(|line| line["label"] == "p{1 -> p}0" && line["type"] == "summary");
    assert_eq!(back.unwrap()["packets"], 3000);
    home.is_left_clean();
}

/// A monitor sends nothing. What the other port receives meanwhile has nowhere to go, and stops neither
/// command.
#[test]
fn what_a_monitor_sees_is_moved_one_way() {
    for command in ["bridge", "shape"] {
        let home = Home::new();
        let watched = home.open(&["recv", "vale0:m"]);
        let sink = home.open(&["recv", "vale1:b", "--count", "2000", "--idle", "30s"]);
        let mover = home.start(&[command, "vale0:m/rt", "vale1:a"]);
        mover.wait_for(if command == "bridge" { "zero_copy" } else { "seed" }, LIMIT);
        home.json(&["gen", "vale1:c", "--count", FIT]);
        home.json(&["gen", "vale0:c", "--count", FIT]);
        assert_eq!(find(&finish(sink), "summary")["packets"], 2000, "{command}");
        mover.signal(Signal::INT);
        let printed = finish(mover);
        let summary = |label: &str| {
            let is_it =
                |line: &&serde_json::Value| line["type"] == "summary" && line["label"] == label;
            printed.iter().find(is_it).unwrap()["packets"].clone()
        };
        assert_eq!(summary("vale0:m/rt -> vale1:a"), 1000, "{command}");
        assert_eq!(summary("vale1:a -> vale0:m/rt"), 0, "{command}");
        watched.signal(Signal::INT);
        assert_eq!(find(&finish(watched), "summary")["packets"], 1000);
        home.is_left_clean();
    }
}

/// A port that only receives sends nothing, and the other way round: there is nothing that these could do.
#[test]
fn flags_against_what_a_command_does_are_refused() {
    let home = Home::new();
    let held = home.open(&["recv", "vale0:m"]);
    let file = home.dir.join("frames.pcap");
    fs::write(&file, capture(&[60])).unwrap();
    let file = file.to_str().unwrap();
    let existing = format!("file:{file}");
    for (args, part) in [
        (&["gen", "vale0:a/R"][..], "leave /R out"),
        (&["gen", "vale0:m/rt"], "a monitor cannot send"),
        (&["replay", "vale0:a/R", file], "leave /R out"),
        (&["recv", "vale0:a/T"], "leave /T out"),
        (&["recv", "vale0:a/RT"], "leave one of them out"),
        (&["capture", "vale0:a/T", "--print"], "leave /T out"),
        (&["lb", "vale0:a/T", "--to", "2"], "leave /T out"),
        (&["lb", "vale0:a", "--to", "vale0:b/R", "x{1"], "leave /R out"),
        (&["lb", "vale0:a", "--to", "x{0/R", "x{1"], "leave /R out"),
        (&["ping", "vale0:a/R"], "leave /R, /r, /t and /z out"),
        (&["ping", "vale0:a/T"], "leave /T out"),
        (&["pong", "vale0:a/R"], "leave /R, /r, /t and /z out"),
        (&["pong", "vale0:m/rt"], "leave /R, /r, /t and /z out"),
        (&["gen", "netmap:q0~1"], "write -N"),
        (&["ping", "netmap:q0~1"], "write -N"),
        (&["pong", "netmap:q0~1@mode=copy"], "write -N"),
        (&["ping", &existing], "name another port"),
        (&["bridge", "vale0:a/T", "vale0:b/T"], "neither receives anything"),
        (&["bridge", "vale0:m/rt", "vale0:b/R"], "neither sends anything"),
        (&["shape", "vale0:a/R", "vale0:b/R"], "neither sends anything"),
        (&["bridge", "vale0:m/rt", &existing], "let a file that is there be replaced with @write"),
    ] {
        let said = home.failure(args);
        assert!(said.contains(part), "{args:?}: {said}");
    }
    for (name, args) in [
        ("pkt-gen", &["-i", "vale0:a/R", "-f", "tx"][..]),
        ("pkt-gen", &["-i", "vale0:a/T", "-f", "rx"]),
        ("pkt-gen", &["-i", "vale0:a/R", "-f", "ping"]),
        ("pkt-gen", &["-i", "vale0:a/T", "-f", "pong", "-p", "2"]),
        ("bridge", &["-i", "vale0:a/T", "-i", "vale0:b/T"]),
        ("bridge", &["-L", "-i", "vale0:a/R"]),
    ] {
        let output = home.tool(name, args).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains("out"), "{name} {args:?}: {said}");
    }
    assert_eq!(fs::read(file).unwrap(), capture(&[60]), "it is not written to");
    held.signal(Signal::INT);
    finish(held);
    home.is_left_clean();
}

/// A sender that has room in its ring for longer than the test may take is told soon that nothing can be sent.
#[test]
fn a_slow_sender_is_told_what_has_ended() {
    if skip_without_root("cli::traffic::a_slow_sender_is_told_what_has_ended") {
        return;
    }
    let home = Home::new();
    let file = home.dir.join("frames.pcap");
    fs::write(&file, capture(&[60])).unwrap();
    let file = file.to_str().unwrap();
    for args in [
        &["gen", "netmap:ss0", "--rate", "1"][..],
        &["replay", "netmap:ss0", file, "--loop", "0", "--rate", "1"],
    ] {
        let [near, far] = [(); 2].map(|()| Netns::quiet("sls"));
        let _pair = near.veth(&far, "ss0", "ss1");
        let sender = Proc::spawn(home.command_in(&near, &[args, &["--json"]].concat()));
        sender.wait_for(r#""type":"rate""#, LIMIT);
        near.run("ip link del ss0");
        sender.wait_for("the network interface has gone", LIMIT);
        let (status, output) = sender.wait();
        assert!(!status.success(), "{output}");
    }
    for (name, args, begun) in [
        ("pkt-gen", &["-i", "netmap:ss0", "-f", "tx", "-R", "1", "-w", "0"][..], "1.000 pkts"),
        ("nmreplay", &["-i", "netmap:ss0", "-f", file, "-B", "1k", "-w", "0"], "status"),
    ] {
        let [near, far] = [(); 2].map(|()| Netns::quiet("sls"));
        let _pair = near.veth(&far, "ss0", "ss1");
        let tool = home.dir.join(name);
        symlink(env!("CARGO_BIN_EXE_ringway"), &tool).unwrap();
        let sender = Proc::spawn(home.program_in(&near, tool.to_str().unwrap(), args));
        sender.wait_for(begun, LIMIT);
        near.run("ip link del ss0");
        sender.wait_for("the network interface has gone", LIMIT);
        sender.wait();
    }
    let sender = home.open(&["gen", "vale0:a", "--rate", "1"]);
    kill_process(daemon(&home), Signal::KILL).unwrap();
    sender.wait_for("ringwayd has ended", LIMIT);
    sender.signal(Signal::INT);
    finish(sender);
    home.is_left_clean();
}

#[test]
fn a_limited_sender_is_never_faster_than_asked() {
    let home = Home::new();
    let receiver = home.open(&["recv", "p}0", "--count", "100", "--verify"]);
    let sent = home.json(&["gen", "p{0", "-n", "100", "--rate", "1k", "--burst", "10"]);
    finish(receiver);
    let summary = find(&sent, "summary");
    assert_eq!(summary["packets"], 100);
    // One burst in advance and 10 ms of catching up come off the 100 ms.
    assert!(summary["seconds"].as_f64().unwrap() >= 0.08, "{summary}");
    home.is_left_clean();
}

/// A pcap file of Ethernet frames with the given lengths.
pub fn capture(lengths: &[u32]) -> Vec<u8> {
    let mut file = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0];
    let words = |file: &mut Vec<u8>, words: [u32; 4]| {
        words.iter().for_each(|word| file.extend(word.to_le_bytes()));
    };
    words(&mut file, [0, 0, 65535, 1]);
    for length in lengths {
        words(&mut file, [0, 0, *length, *length]);
        file.extend(vec![0xff; *length as usize]);
    }
    file
}

#[test]
fn a_capture_is_sent_once_or_as_often_as_asked() {
    let home = Home::new();
    let file = home.dir.join("three.pcap");
    fs::write(&file, capture(&[60, 100, 1514])).unwrap();
    let file = file.to_str().unwrap();
    for (options, packets, bytes) in [(&[][..], 3, 1674), (&["--count", "7"], 7, 2 * 1674 + 60)] {
        let receiver = home.open(&["recv", "p}0", "--count", &packets.to_string()]);
        home.json(&[&["gen", "p{0", "--pcap", file], options].concat());
        let received = finish(receiver);
        let summary = find(&received, "summary");
        assert_eq!((&summary["packets"], &summary["bytes"]), (&packets.into(), &bytes.into()));
    }
    home.is_left_clean();
}

/// Interrupts a command that nothing else would end.
fn interrupted(proc: Proc) -> Vec<serde_json::Value> {
    proc.signal(Signal::INT);
    finish(proc)
}

#[test]
fn an_interrupted_receiver_tells_its_summary() {
    let home = Home::new();
    let receiver = home.open(&["recv", "p}0", "--count", "5"]);
    home.json(&["gen", "p{0", "--count", "3"]);
    let printed = interrupted(receiver);
    assert_eq!(find(&printed, "summary")["packets"], 3);
    home.is_left_clean();
}

#[test]
fn an_interrupted_sender_says_what_nobody_took() {
    let home = Home::new();
    let printed = interrupted(home.open(&["gen", "p{0"]));
    let (summary, drops) = (find(&printed, "summary"), find(&printed, "drops"));
    assert_eq!(summary["packets"], drops["left"]);
    home.is_left_clean();
}

#[test]
fn rates_come_every_second() {
    let home = Home::new();
    let receiver = home.open(&["recv", "p}0"]);
    receiver.wait_for(r#""type":"rate""#, LIMIT);
    let printed = interrupted(receiver);
    assert_eq!(find(&printed, "rate")["pps"], 0.0);
    home.is_left_clean();
}

#[test]
fn what_a_switch_drops_is_counted_by_reason() {
    let home = Home::new();
    // Two programs share one port, and nobody else is on the switch.
    let receiver = home.open(&["recv", "vale0:a"]);
    home.json(&["gen", "vale0:a", "--count", FIT]);
    let watch = home.start(&["switch", "stats", "vale0", "--watch"]);
    watch.wait_for(r#""no_destination":1000"#, LIMIT);
    watch.signal(Signal::INT);
    assert!(watch.wait().0.success());
    let text = String::from_utf8(home.run(&["switch", "stats"]).stdout).unwrap();
    assert!(text.contains("1000 no destination"), "{text}");
    let printed = interrupted(receiver);
    assert_eq!(find(&printed, "drops")["no_destination"], 1000);
    assert_eq!(find(&printed, "summary")["packets"], 0);
    home.is_left_clean();
}

/// coreutils' `timeout` sends its signal to its child, and then to the child's process group.
#[test]
fn two_signals_at_once_end_a_command_as_one_does() {
    let home = Home::new();
    let held = home.open(&["recv", "vale0:held"]);
    for _ in 0..100 {
        let receiver = home.open(&["recv", "vale0:a"]);
        receiver.signal(Signal::TERM);
        receiver.signal(Signal::TERM);
        find(&finish(receiver), "summary");
    }
    held.signal(Signal::INT);
    finish(held);
    home.is_left_clean();
}

/// With status 2, also an argument that is not UTF-8.
#[test]
fn what_cannot_be_read_is_refused_with_an_example() {
    let home = Home::new();
    let mut foreign = home.command(&["recv", "vale0:a"]);
    foreign.arg(OsStr::from_bytes(b"\xff"));
    let text = |output: Output| {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        said
    };
    assert!(text(foreign.output().unwrap()).contains("error: "));
    for (args, part) in [
        (&["gen", "vale0:a", "--burst", "x"][..], "write 64"),
        (&["gen", "vale0:a", "--stream", "x"], "write 7"),
        (&["recv", "vale0:a", "--sample", "0"], "write 10"),
        (&["capture", "vale0:a", "--snaplen", "x"], "write 128"),
        (&["capture", "vale0:a", "--files", "0"], "write 10"),
        (&["replay", "vale0:a", "x.pcap", "--loop", "x"], "write 3"),
        (&["shape", "vale0:a", "vale0:b", "--seed", "x"], "write 7"),
        (&["shape", "vale0:a", "vale0:b", "--overhead", "x"], "write 24"),
        (&["switch", "port", "vale0:a", "--access", "0"], "write 10"),
        (&["switch", "port", "vale0:a", "--max-addresses", "x"], "write 4"),
        (&["switch", "fdb", "show", "vale0", "--vlan", "x"], "write 10"),
        (&["queue", "remove", "netmap:x", "y"], "write 1"),
        (&["steer", "x", "udp", "--queue", "y"], "write 4"),
    ] {
        let said = text(home.run(args));
        assert!(said.contains(part), "{args:?}: {said}");
    }
}

/// Each command that sends says that its interface is down.
#[test]
fn an_interface_that_is_down_is_named() {
    if skip_without_root("cli::traffic::an_interface_that_is_down_is_named") {
        return;
    }
    let home = Home::new();
    let [near, far] = [(); 2].map(|()| Netns::quiet("dwn"));
    let _pair = near.veth(&far, "dn0", "dn1");
    near.run("ip link set dn0 down");
    let file = home.dir.join("frames.pcap");
    fs::write(&file, capture(&[60])).unwrap();
    let from = format!("file:{}", file.display());
    for args in [
        &["gen", "netmap:dn0", "--count", "1"][..],
        &["bridge", &from, "netmap:dn0"],
        &["lb", &from, "--to", "netmap:dn0", "p{1"],
        &["switch", "mirror", "vale0", "a", "--to", "netmap:dn0", "--duration", "1ms"],
    ] {
        let output = home.command_in(&near, args).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("dn0: the interface is down"), "{args:?}: {said}");
        assert!(!said.contains("start a receiver"), "{args:?}: {said}");
    }
    home.is_left_clean();
}

/// Ctrl-\ and a terminal that is closed end a run as Ctrl-C does, with its summary; nohup(1) keeps it from the latter.
#[test]
fn a_quit_or_hangup_ends_a_run_with_its_summary_unless_it_is_ignored() {
    let home = Home::new();
    let runs = [
        &["recv", "vale0:b"][..],
        &["capture", "vale0:c", "--print"],
        &["bridge", "vale0:d", "vale1:d"],
        &["lb", "vale0:e", "--to", "2"],
        &["ping", "vale2:f", "--timeout", "1h"],
        &["pong", "vale0:g"],
        &["shape", "vale0:h", "vale1:h"],
        &["gen", "p{0"],
    ];
    let signals = [Signal::HUP, Signal::QUIT].into_iter().cycle();
    for (args, signal) in runs.into_iter().zip(signals) {
        let run = home.open(args);
        run.signal(signal);
        let (status, text) = run.wait();
        assert_eq!(status.signal(), None, "{args:?}: {text}");
        find(&lines(&text), "summary");
    }
    // What is ignored stays so.
    let command = home.command(&["recv", "vale0:b", "--json"]);
    let program = command.get_program().to_owned();
    let mut nohup = Command::new("nohup");
    nohup.arg(program).args(command.get_args()).env("RINGWAY_DIR", &home.dir);
    let run = Proc::spawn(nohup);
    run.wait_for(r#""type":"open""#, LIMIT);
    let status = fs::read_to_string(format!("/proc/{}/status", run.pid())).unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:\t")).unwrap();
    assert_eq!(u64::from_str_radix(ignored, 16).unwrap() & 1, 1, "SIGHUP");
    run.signal(Signal::INT);
    finish(run);
    home.is_left_clean();
}
