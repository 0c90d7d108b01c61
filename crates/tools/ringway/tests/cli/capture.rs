//! `ringway capture`.

use crate::files::{frames, independently, named};
use crate::home::{Home, LIMIT, find, finish, lines};
use ringway_testkit::{Netns, Proc, skip_without_root};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify;
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

fn interrupt(proc: Proc) -> Vec<Value> {
    proc.signal(Signal::INT);
    finish(proc)
}

fn number(line: &Value, what: &str) -> u64 {
    line[what].as_u64().unwrap_or_else(|| panic!("no {what} in {line}"))
}

#[test]
fn a_capture_tells_ports_and_directions_apart_and_counts_drops() {
    let home = Home::new();
    let (file, _) = named(&home, "both.pcapng");
    let receiver = home.open(&["recv", "vale0:b"]);
    let capture = home.open(&["capture", "vale0:b/rt", "vale0:c", "-w", &file, "--count", "1000"]);
    capture.wait_for("vale0:c", LIMIT);
    home.json(&["gen", "vale0:a", "--count", "500", "--rate", "100k"]);
    let printed = finish(capture);
    assert_eq!(find(&printed, "summary")["packets"], 1000);
    receiver.signal(Signal::INT);
    finish(receiver);
    let shown = |filter: &str| {
        let mut command = Command::new("tshark");
        let output =
            command.args(["-r", &file, "-Y", filter, "-T", "fields", "-e", "frame.number"]);
        String::from_utf8(output.output().unwrap().stdout).unwrap().lines().count()
    };
    if Command::new("tshark").arg("--version").output().is_ok() {
        assert_eq!(shown("frame.interface_name == \"vale0:b/rt\""), 500);
        assert_eq!(shown("frame.packet_flags_direction == 1"), 1000);
    }
    assert_eq!(frames(&independently(&file)), 1000);
    home.is_left_clean();
}

#[test]
fn a_capture_goes_into_a_pipe() {
    let home = Home::new();
    let (from, port) = named(&home, "from.pcap");
    home.json(&["gen", &port, "--count", "100"]);
    let output = home.run(&["capture", &port, "-w", "-"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (got, _) = named(&home, "got.pcapng");
    fs::write(&got, output.stdout).unwrap();
    let (got, sent) = (independently(&got), independently(&from));
    assert_eq!(got, sent);
    home.is_left_clean();
}

#[test]
fn frames_of_an_interface_are_recorded() {
    if skip_without_root("cli::capture::frames_of_an_interface_are_recorded") {
        return;
    }
    let [near, far] = [(); 2].map(|()| Netns::quiet("cp"));
    let _pair = near.veth(&far, "cp0", "cp1");
    let homes = [Home::new(), Home::new()];
    for name in ["wire.pcapng", "wire.pcap.gz"] {
        let (file, port) = named(&homes[0], name);
        let args = ["capture", "netmap:cp0", "-w", &file, "--count", "100", "--json"];
        let capture = Proc::spawn(homes[0].command_in(&near, &args));
        capture.wait_for(r#""type":"open""#, LIMIT);
        // A veth pair holds 256.
        let args = ["gen", "netmap:cp1", "--count", "100", "--size", "60-1514", "--json"];
        let sent = homes[1].command_in(&far, &args).output().unwrap();
        assert!(sent.status.success(), "{sent:?}");
        let sent = lines(&String::from_utf8(sent.stdout).unwrap());
        let printed = finish(capture);
        let (summary, drops) = (find(&printed, "summary"), find(&printed, "drops"));
        assert_eq!((number(summary, "packets"), number(drops, "ring_full")), (100, 0));
        assert_eq!(summary["bytes"], find(&sent, "summary")["bytes"]);
        let read = homes[0].json(&["recv", &port, "--verify"]);
        assert_eq!(find(&read, "verify")["good"], 100, "{read:?}");
        if name == "wire.pcapng" {
            assert_eq!(frames(&independently(&file)), 100);
            assert_eq!(interfaces(&file), ["netmap:cp0"]);
        }
    }
    homes.iter().for_each(Home::is_left_clean);
}

/// What ends one port ends the capture of that port: a file that has been read, an interface that has gone.
#[test]
fn a_capture_goes_on_while_one_of_its_ports_does() {
    if skip_without_root("cli::capture::a_capture_goes_on_while_one_of_its_ports_does") {
        return;
    }
    let home = Home::new();
    let [(_, short), (_, long)] = ["short.pcap", "long.pcap"].map(|name| named(&home, name));
    let (file, _) = named(&home, "both.pcap");
    home.json(&["gen", &short, "--count", "100"]);
    home.json(&["gen", &long, "--count", "20000"]);
    let both = home.json(&["capture", &short, &long, "-w", &file]);
    assert_eq!(find(&both, "summary")["packets"], 20_100);
    assert_eq!(frames(&independently(&file)), 20_100);

    let netns = Netns::quiet("ce");
    let peer = netns.name().expect("it has a name");
    netns.run(&format!("ip link add ce0 type veth peer name ce1 netns {peer}"));
    netns.run("ip link set ce0 up");
    let args =
        ["capture", &short, "netmap:ce0", "vale0:live", "-w", &file, "--overwrite", "--json"];
    let capture = Proc::spawn(home.command_in(&netns, &args));
    capture.wait_for(r#""port":"vale0:live""#, LIMIT);
    netns.run("ip link del ce0");
    capture.wait_for("the capture of the other ports goes on", LIMIT);
    home.json(&["gen", "vale0:a", "--count", "100"]);
    capture.signal(Signal::INT);
    let (status, said) = capture.wait();
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.contains(r#""packets":200,"#) && said.contains("ce0"), "{said}");
    home.is_left_clean();
}

/// The names of the interfaces in a file, by a program that is not ours.
fn interfaces(file: &str) -> Vec<String> {
    let mut command = Command::new("tshark");
    let fields = ["-T", "fields", "-e", "frame.interface_name"];
    let Ok(output) = command.args(["-r", file]).args(fields).output() else {
        return vec!["netmap:cp0".into()];
    };
    let mut names: Vec<_> =
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect();
    names.dedup();
    names
}

/// Waits until a file is there, in a folder in which others come and go.
fn wait_for_file(path: &Path) {
    let watch = inotify::init(inotify::CreateFlags::CLOEXEC).unwrap();
    inotify::add_watch(&watch, path.parent().unwrap(), inotify::WatchFlags::CREATE).unwrap();
    let deadline = Instant::now() + LIMIT;
    while !path.exists() {
        let left = deadline.saturating_duration_since(Instant::now());
        assert!(!left.is_zero(), "{} does not come", path.display());
        let timeout = Timespec::try_from(left).unwrap();
        let mut fds = [PollFd::new(&watch, PollFlags::IN)];
        if poll(&mut fds, Some(&timeout)).unwrap() > 0 {
            rustix::io::read(&watch, &mut [0; 4096]).unwrap();
        }
    }
}

/// The files of a rotated capture `ring.pcapng`, by their numbers.
fn kept(home: &Home) -> Vec<u32> {
    let names = fs::read_dir(&home.dir).unwrap().map(|entry| entry.unwrap().file_name());
    let number = |name: String| -> Option<u32> {
        name.strip_prefix("ring_")?.strip_suffix(".pcapng")?.parse().ok()
    };
    let mut kept: Vec<_> = names.filter_map(|name| number(name.into_string().ok()?)).collect();
    kept.sort();
    kept
}

#[test]
fn another_file_is_begun_after_a_time() {
    let home = Home::new();
    let (file, _) = named(&home, "ring.pcapng");
    // A pipe loses nothing.
    let options = ["-w", &file, "--rotate-time", "200ms", "--files", "2"];
    let capture = home.open(&[&["capture", "p}0"][..], &options].concat());
    let sender = home.open(&["gen", "p{0", "--rate", "1k"]);
    wait_for_file(&home.dir.join("ring_00004.pcapng"));
    let sent = number(find(&interrupt(sender), "summary"), "packets");
    let printed = interrupt(capture);
    let summary = find(&printed, "summary");
    assert_eq!([number(summary, "packets"), number(summary, "drops")], [sent, 0]);
    let kept = kept(&home);
    assert!(matches!(kept[..], [a, b] if a >= 3 && b == a + 1), "{kept:?}");
    for number in kept {
        let (path, port) = named(&home, &format!("ring_{number:05}.pcapng"));
        let read = home.json(&["recv", &port, "--verify"]);
        let verified = find(&read, "verify");
        assert!(verified["good"].as_u64() > Some(0) && verified["missing"] == 0, "{verified}");
        assert_eq!(frames(&independently(&path)) as u64, verified["good"].as_u64().unwrap());
    }
    home.is_left_clean();
}

#[test]
fn frames_are_printed_as_recv_prints_them() {
    let home = Home::new();
    let (_, port) = named(&home, "three.pcapng");
    home.json(&["gen", &port, "--count", "3", "--size", "60-62"]);
    let lines_of = |args: &[&str]| -> Vec<String> {
        let output = home.run(args);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
    };
    let expected = lines_of(&["recv", &port, "--print", "-x"]);
    assert_eq!(expected.len(), 3 * 5);
    assert_eq!(lines_of(&["capture", &port, "--print", "-x"]), expected);
    let (_, copy) = named(&home, "copy.pcapng");
    assert_eq!(lines_of(&["capture", &port, "--print", "-w", &copy[5..]]).len(), 3);
    assert_eq!(find(&home.json(&["recv", &copy]), "summary")["packets"], 3);
    let printed = home.json(&["capture", &port, "--print"]);
    assert_eq!(printed.iter().filter(|line| line["type"] == "packet").count(), 3);
    for (args, status) in
        [(&["capture", &port][..], 2), (&["capture", &port, "--print", "-w", "-"], 1)]
    {
        assert_eq!(home.run(args).status.code(), Some(status), "{args:?}");
    }
    home.is_left_clean();
}

#[test]
fn frames_of_several_ports_are_printed_with_their_names() {
    let home = Home::new();
    let capture = Proc::spawn(home.command(&["capture", "p}0", "p}1", "--print", "--count", "5"]));
    capture.wait_for("p}1 is open", LIMIT);
    home.json(&["gen", "p{0", "--count", "2"]);
    home.json(&["gen", "p{1", "--count", "3"]);
    let (status, text) = capture.wait();
    assert!(status.success(), "{text}");
    let of = |port: &str| {
        let lines = text.lines().filter(|line| line.starts_with(port));
        lines.filter(|line| line.ends_with("udp 18 bytes")).count()
    };
    assert_eq!([of("p}0 "), of("p}1 ")], [2, 3], "{text}");
    home.is_left_clean();
}

/// At the generator's full speed: what the disk is too slow for is dropped, and every frame is counted
/// once. RINGWAY_CAPTURE_SECONDS makes it as long as you like.
#[test]
fn what_is_sent_is_written_or_counted_as_dropped() {
    let home = Home::new();
    let (file, _) = named(&home, "all.pcapng");
    let seconds = std::env::var("RINGWAY_CAPTURE_SECONDS").ok();
    let length = match &seconds {
        Some(seconds) => ["--duration".into(), format!("{seconds}s")],
        None => ["--count".into(), "2M".into()],
    };
    let capture = home.open(&["capture", "vale0:b", "-w", &file]);
    let sent = home.json(&["gen", "vale0:a", &length[0], &length[1]]);
    let printed = interrupt(capture);
    let (sent, captured) = (find(&sent, "summary"), find(&printed, "summary"));
    let mut capinfos = Command::new("capinfos");
    let output = capinfos.args(["-T", "-r", "-c", "-M", &file]).output();
    let output = output.expect("capinfos, of the package tshark, runs");
    let said = String::from_utf8(output.stdout).unwrap();
    let written: u64 = said.split_whitespace().last().unwrap().parse().expect(&said);
    let (sent, drops) = (number(sent, "packets"), number(captured, "drops"));
    let bytes = fs::metadata(&file).unwrap().len();
    println!("{sent} packets sent, {written} written in {bytes} bytes, {drops} dropped");
    assert_eq!(sent, written + drops, "{printed:?}");
    assert!(written > 0);
    home.is_left_clean();
}

/// A file that was there stays as it is, unless it is to be replaced.
#[test]
fn a_capture_replaces_no_file_by_itself() {
    let home = Home::new();
    let (file, port) = named(&home, "kept.pcap");
    let (_, from) = named(&home, "from.pcap");
    home.json(&["gen", &from, "--count", "10"]);
    fs::write(&file, "").unwrap();
    home.json(&["capture", &from, "-w", &file]);
    let kept = fs::read(&file).unwrap();
    for command in ["capture", "recv"] {
        let said = home.failure(&[command, &from, "-w", &file]);
        assert!(said.contains("kept.pcap: there is such a file already"), "{said}");
        assert!(said.contains("--overwrite"), "{said}");
        assert_eq!(fs::read(&file).unwrap(), kept);
        home.json(&[command, &from, "-w", &file, "--overwrite"]);
        assert_eq!(find(&home.json(&["recv", &port]), "summary")["packets"], 10, "{command}");
        fs::write(&file, &kept).unwrap();
    }
    let output = home.run(&["capture", &from, "-w", &file, "--json"]);
    let said = lines(std::str::from_utf8(&output.stderr).unwrap());
    assert_eq!(find(&said, "error")["cause"], "exists");
    home.is_left_clean();
}

/// The files in the home whose names begin so.
fn begun_with(home: &Home, start: &str) -> Vec<String> {
    let names = fs::read_dir(&home.dir).unwrap().flatten().map(|entry| entry.file_name());
    let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
    names.retain(|name| name.starts_with(start));
    names.sort();
    names
}

#[test]
fn files_that_rotate_have_the_time_in_their_names_and_replace_none() {
    let home = Home::new();
    let (_, from) = named(&home, "from.pcap");
    home.json(&["gen", &from, "--count", "100"]);
    // A file has 24 bytes in front, and a frame 76.
    let capture = |name: &str, more: &[&str]| {
        let (file, _) = named(&home, name);
        let args = ["capture", &from, "-w", &file, "--rotate-size", "2000"];
        home.run(&[&args, more].concat())
    };
    assert!(capture("day-%%-%j.pcap", &[]).status.success());
    let names = begun_with(&home, "day-%-");
    assert_eq!(names.len(), 4, "{names:?}");
    let (first, day) = (&names[0], &names[0]["day-%-".len()..][..3]);
    assert!(day.parse::<u16>().is_ok_and(|day| (1..=366).contains(&day)), "{names:?}");
    assert_eq!(names[1..], [2, 3, 4].map(|n| format!("day-%-{day}_{n:05}.pcap")), "{first}");
    // The same as a port: `gen` sends as many frames as the capture has taken.
    let (_, port) = named(&home, "day-%%-%j.pcap@rotate=2000");
    home.json(&["gen", &port, "--count", "100"]);
    assert_eq!(begun_with(&home, "day-%-").len(), 8, "none is replaced");
    assert!(capture("day-%%-%j.pcap", &[]).status.success());
    assert_eq!(begun_with(&home, "day-%-").len(), 12, "none is replaced");
    // Without rotation it is a name as others.
    let (plain, _) = named(&home, "plain-%j.pcap");
    home.json(&["capture", &from, "-w", &plain]);
    assert_eq!(begun_with(&home, "plain"), ["plain-%j.pcap"]);
    // Files with numbers pass over what is there, unless it is to be replaced.
    fs::write(home.dir.join("n_00002.pcap"), "mine").unwrap();
    assert!(capture("n.pcap", &["--files", "2"]).status.success());
    assert_eq!(fs::read(home.dir.join("n_00002.pcap")).unwrap(), b"mine");
    assert_eq!(begun_with(&home, "n_"), [2, 4, 5].map(|n| format!("n_{n:05}.pcap")));
    let (_, port) = named(&home, "n.pcap@rotate=2000@files=1");
    home.json(&["gen", &port, "--count", "100"]);
    assert_eq!(begun_with(&home, "n_"), [2, 4, 5, 7].map(|n| format!("n_{n:05}.pcap")));
    assert_eq!(fs::read(home.dir.join("n_00002.pcap")).unwrap(), b"mine");
    fs::remove_file(home.dir.join("n_00007.pcap")).unwrap();
    assert!(capture("n.pcap", &["--overwrite"]).status.success());
    assert_eq!(begun_with(&home, "n_"), [1, 2, 3, 4, 5].map(|n| format!("n_{n:05}.pcap")));
    assert_ne!(fs::read(home.dir.join("n_00002.pcap")).unwrap(), b"mine");
    home.is_left_clean();
}

/// Each frame would have a file of its own; and standard output is one file.
#[test]
fn rotation_needs_files_of_some_size() {
    let home = Home::new();
    let (file, port) = named(&home, "from.pcap");
    home.json(&["gen", &port, "--count", "10"]);
    let (to, _) = named(&home, "to.pcap");
    let refused = home.run(&["capture", &port, "-w", &to, "--rotate-size", "0"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("no size of a file"), "{refused:?}");
    let refused = home.failure(&["capture", &port, "-w", "-", "--rotate-size", "100"]);
    assert!(refused.contains("standard output is one file"), "{refused}");
    // A file is not replaced by itself.
    let refused = home.failure(&["capture", &port, "-w", &file, "--overwrite"]);
    assert!(refused.contains("has the file open already"), "{refused}");
    assert_eq!(frames(&independently(&file)), 10);
    home.is_left_clean();
}

/// A file to write is no port, and what is written behind a port's name is not taken for a part of its name.
#[test]
fn a_file_to_write_is_named_plainly() {
    let home = Home::new();
    let (_, port) = named(&home, "in.pcap");
    home.json(&["gen", &format!("{port}@write"), "--count", "3"]);
    let out = home.dir.join("o.pcap").display().to_string();
    let (options, prefixed) = (format!("{out}@snaplen=20"), format!("file:{out}"));
    for args in [
        ["capture", &*port, "-w", &*options],
        ["capture", &port, "-w", &prefixed],
        ["recv", &port, "-w", &options],
        ["recv", &port, "-w", &prefixed],
        ["gen", "vale0:a", "--pcap", &port],
    ] {
        let output = home.run(&args);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{args:?}");
        assert!(said.contains("takes the plain name of a file; write "), "{args:?}: {said}");
    }
    assert!(!Path::new(&options).exists() && !Path::new(&out).exists());
    home.is_left_clean();
}

/// A capture that has no use is refused with both that there are.
#[test]
fn a_capture_says_what_it_can_be_for() {
    let home = Home::new();
    let output = home.run(&["capture", "vale0:b"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("<--write <FILE>|--print>"), "{said}");
    let output = home.run(&["capture", "vale0:b", "-c", "1", "--print", "--json"]);
    let said = lines(&String::from_utf8(output.stderr).unwrap());
    let remedy = find(&said, "error")["remedy"].as_str().unwrap();
    assert_eq!(remedy, "'-n' or '--count' ends after so many");
}
