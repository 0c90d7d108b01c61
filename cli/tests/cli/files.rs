//! Capture files as ports.

use crate::home::{Home, LIMIT, find, finish};
use ringway_testkit::skip_without_root;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify;
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// A file's name in the home, and as a port.
pub fn named(home: &Home, name: &str) -> (String, String) {
    let path = home.dir.join(name).to_str().unwrap().to_owned();
    (path.clone(), format!("file:{path}"))
}

/// What a program that is not ours finds in a file: a line for each frame, with all its bytes.
pub fn independently(file: &str) -> String {
    let mut command = Command::new("tcpdump");
    let output = command.args(["-n", "-t", "-XX", "-r", file]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The same of a file that may end in the middle of a frame, with a pipe from what decompresses it: what
/// there is before that.
fn independently_up_to_the_cut(file: &str) -> String {
    let decompress = match file.rsplit('.').next() {
        Some("gz") => "gzip -dc",
        Some("zst") => "zstd -dcq",
        _ => "cat",
    };
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{decompress} '{file}' | tcpdump -n -t -XX -r -")]);
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}

/// Waits until a file that is being written has so many bytes.
pub fn wait_for_size(path: &str, bytes: u64) {
    let watch = inotify::init(inotify::CreateFlags::CLOEXEC).unwrap();
    inotify::add_watch(&watch, path, inotify::WatchFlags::MODIFY).unwrap();
    let deadline = Instant::now() + LIMIT;
    let mut events = [0; 4096];
    while fs::metadata(path).unwrap().len() < bytes {
        let left = deadline.saturating_duration_since(Instant::now());
        assert!(!left.is_zero(), "{path} does not grow to {bytes} bytes");
        let timeout = Timespec::try_from(left).unwrap();
        let mut fds = [PollFd::new(&watch, PollFlags::IN)];
        if poll(&mut fds, Some(&timeout)).unwrap() > 0 {
            rustix::io::read(&watch, &mut events).unwrap();
        }
    }
}

pub fn frames(text: &str) -> usize {
    text.lines().filter(|line| !line.starts_with(char::is_whitespace)).count()
}

pub fn verified(lines: &[Value]) -> [&Value; 2] {
    let verified = find(lines, "verify");
    [&verified["good"], &verified["missing"]]
}

#[test]
fn every_format_comes_back_as_it_was() {
    let home = Home::new();
    for name in ["a.pcap", "a.pcapng", "a.pcap.gz", "a.pcapng.zst"] {
        let (_, port) = named(&home, name);
        home.json(&["gen", &port, "--count", "3000", "--size", "60-1514"]);
        let read = home.json(&["recv", &port, "--verify"]);
        assert_eq!(verified(&read), [3000, 0], "{name}");
        assert_eq!(find(&read, "open")["kind"], "file");
    }
    home.is_left_clean();
}

#[test]
fn a_file_goes_through_a_switch_into_another_file_unchanged() {
    let home = Home::new();
    let ((sent, from), (got, to)) = (named(&home, "sent.pcap"), named(&home, "got.pcapng"));
    home.json(&["gen", &from, "--count", "1000", "--size", "60-1514"]);
    let recorder = home.start(&["bridge", "vale0:b", &to]);
    recorder.wait_for("zero_copy", LIMIT);
    let replayed = home.json(&["bridge", &from, "vale0:a"]);
    assert_eq!(find(&replayed, "summary")["packets"], 1000);
    // What the switch has delivered is in the file before its recorder ends.
    let deadline = Instant::now() + LIMIT;
    while find(&home.json(&["recv", &format!("file:{got}")]), "summary")["packets"] != 1000 {
        assert!(Instant::now() < deadline, "not everything was recorded");
    }
    recorder.signal(Signal::INT);
    finish(recorder);
    assert_eq!(independently(&got), independently(&sent));
    home.is_left_clean();
}

#[test]
fn a_file_is_played_as_often_as_asked_with_other_addresses() {
    let home = Home::new();
    let ((_, from), (got, to)) = (named(&home, "three.pcap"), named(&home, "nine.pcap"));
    home.json(&["gen", &from, "--count", "3"]);
    let options = "@loop=3@dst-mac=02:00:00:00:00:07@src-mac=02:00:00:00:00:08";
    home.json(&["bridge", &format!("{from}{options}"), &to]);
    let text = independently(&got);
    assert_eq!(frames(&text), 9);
    assert_eq!(text.matches("0x0000:  0200 0000 0007 0200 0000 0008").count(), 9, "{text}");
    home.is_left_clean();
}

/// Up to the last block that is whole; compressed, up to the last that the compressor has given out. At
/// this rate the writer would have to stand still for seconds before a frame is dropped.
#[test]
fn a_capture_that_is_killed_is_readable() {
    let home = Home::new();
    for (name, bytes) in [
        ("killed.pcapng", 100_000),
        ("killed.pcap", 100_000),
        ("killed.pcapng.gz", 30_000),
        ("killed.pcap.zst", 30_000),
    ] {
        let (path, port) = named(&home, name);
        let writer = home.open(&["gen", &port, "--rate", "10k"]);
        wait_for_size(&path, bytes);
        writer.signal(Signal::KILL);
        writer.wait();
        let read = home.json(&["recv", &port, "--verify"]);
        let packets = find(&read, "summary")["packets"].as_u64().unwrap();
        assert!(packets > 100, "{read:?}");
        assert_eq!(verified(&read), [packets, 0]);
        let independently = frames(&independently_up_to_the_cut(&path)) as u64;
        // Other programs that decompress may give up a piece earlier.
        let is_compressed = !name.ends_with(".pcap") && !name.ends_with(".pcapng");
        let is_found =
            independently == packets || is_compressed && (101..packets).contains(&independently);
        assert!(is_found, "{name}: {independently} of {packets}");
    }
    home.is_left_clean();
}

#[test]
fn a_file_that_ends_in_a_block_is_read_up_to_there() {
    let home = Home::new();
    let (path, port) = named(&home, "cut.pcapng");
    home.json(&["gen", &port, "--count", "10"]);
    // The last frame's block lies before that with the counters.
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() - 100]).unwrap();
    let output = home.run(&["recv", &port, "--verify"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("in the middle of a block"), "{said}");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("verified: 9 good, 0 missing"), "{text}");
    home.is_left_clean();
}

/// Runs a generator that cannot write; returns its lines, and its last sentence.
fn fails(home: &Home, port: &str, count: &str) -> (Vec<Value>, String) {
    let output = home.run(&["gen", port, "--count", count, "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    (crate::home::lines(&text), said)
}

#[test]
fn a_full_disk_costs_the_file_alone_and_is_told() {
    let home = Home::new();
    let (lines, said) = fails(&home, "file:/dev/full", "100");
    assert!(
        said.contains("/dev/full: No space left on device") && said.contains("make room"),
        "{said}"
    );
    assert_eq!(find(&lines, "drops")["ring_full"], 100);
    home.is_left_clean();
}

#[test]
fn a_file_on_a_full_disk_is_readable_as_far_as_it_goes() {
    if skip_without_root("a_file_on_a_full_disk_is_readable_as_far_as_it_goes") {
        return;
    }
    let home = Home::new();
    let (copy, port) = named(&home, "copy.pcapng");
    let small = home.dir.join("small");
    fs::create_dir(&small).unwrap();
    let script = format!(
        "mount -t tmpfs -o size=1M none {0} && ! '{1}' gen 'file:{0}/x.pcapng' -n 50000 --json \
         --rate 500k && cp {0}/x.pcapng {2}",
        small.display(),
        env!("CARGO_BIN_EXE_ringway"),
        copy
    );
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", &script]).env("RINGWAY_DIR", &home.dir);
    let output = command.env_remove("RINGWAY_SOCKET").output().unwrap();
    let (text, said) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.contains("make room"), "{text}{said}");
    let lost = find(&crate::home::lines(&text), "drops")["ring_full"].as_u64().unwrap();
    let read = home.json(&["recv", &port, "--verify"]);
    assert_eq!(verified(&read), [50_000 - lost, 0]);
    assert!(frames(&independently(&copy)) as u64 == 50_000 - lost);
    home.is_left_clean();
}

#[test]
fn a_pipe_that_is_not_read_holds_up_nothing() {
    let home = Home::new();
    let (path, port) = named(&home, "fifo");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let (lines, said) = fails(&home, &port, "1000");
    assert!(said.contains("nothing is read from the pipe"), "{said}");
    assert_eq!(find(&lines, "drops")["ring_full"], 1000);
    // The switch goes on for others while one of its frames' ways ends in the pipe.
    let stuck = home.start(&["bridge", "vale0:c", &format!("{port}@write")]);
    stuck.wait_for("zero_copy", LIMIT);
    let receiver = home.open(&["recv", "vale0:b", "--count", "1000", "--verify"]);
    home.json(&["gen", "vale0:a", "--count", "1000"]);
    assert_eq!(find(&finish(receiver), "verify")["good"], 1000);
    stuck.signal(Signal::INT);
    let (status, _) = stuck.wait();
    assert!(!status.success());
    home.is_left_clean();
}

#[test]
fn files_are_rotated_and_only_the_last_are_kept() {
    let home = Home::new();
    let (_, port) = named(&home, "ring.pcapng");
    home.json(&[
        "gen",
        &format!("{port}@rotate=100k@files=3"),
        "--count",
        "5000",
        "--rate",
        "100k",
    ]);
    let mut kept: Vec<_> = fs::read_dir(&home.dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|kind| kind == "pcapng"))
        .collect();
    kept.sort();
    assert_eq!(kept.len(), 3, "{kept:?}");
    for path in &kept {
        // The counters at its end are small.
        assert!(fs::metadata(path).unwrap().len() <= 100_200, "{path:?}");
        assert!(frames(&independently(path.to_str().unwrap())) > 0);
    }
    assert!(!home.dir.join("ring_00001.pcapng").exists());
    home.is_left_clean();
}

/// As a user knows it, with the process that has it; and nothing of the name reaches the terminal as it is.
#[test]
fn a_file_is_shown_among_the_ports() {
    let home = Home::new();
    for (name, shown) in [("some.pcapng", "some.pcapng"), ("a\u{1b}[2J{1@b.pcap", "a_[2J_1_b.pcap")]
    {
        let (_, port) = named(&home, name);
        let writer = home.open(&["gen", &port, "--rate", "1k"]);
        let ports = home.json(&["ports"]);
        let shown = format!("file:{shown}@{}.0", writer.pid());
        let port = find(&ports, "port");
        assert_eq!([&port["name"], &port["kind"]], [&shown[..], "file"], "{port}");
        let text = String::from_utf8(home.run(&["ports"]).stdout).unwrap();
        let row: Vec<_> = text.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(row[..2], [&shown[..], "file"], "{text}");
        writer.signal(Signal::INT);
        finish(writer);
    }
    home.is_left_clean();
}

#[test]
fn names_that_make_no_sense_are_refused() {
    let home = Home::new();
    let refused = |args: &[&str], why: &str| {
        let said = home.failure(args);
        assert!(said.contains(why), "{args:?}: {said}");
    };
    refused(&["recv", "file:"], "no file is named");
    refused(&["recv", "file:/nonexistent/x.pcap"], "check the path");
    refused(&["recv", "file:/etc/hostname"], "neither a pcap nor a pcapng");
    refused(&["gen", "file:x.pcap@read"], "takes no frames");
    refused(&["recv", "file:x.pcap@write"], "nothing to receive");
    refused(&["bridge", "vale0:a", "file:-"], "say which");
    let (path, port) = named(&home, "some.pcap");
    home.json(&["gen", &port, "--count", "1"]);
    let output = home.run(&["recv", &path]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        !output.status.success() && said.contains(&format!("as a port, it is {port}")),
        "{said}"
    );
    assert!(!Path::new("x.pcap").exists());
    home.is_left_clean();
}
