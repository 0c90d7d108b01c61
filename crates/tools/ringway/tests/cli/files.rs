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
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// No command writes over the file that it reads, by whichever name: all these refuse it, and
/// leave it as it is.
#[test]
fn no_command_writes_over_a_file_that_it_reads() {
    let home = Home::new();
    let (path, _) = named(&home, "in.pcap");
    home.json(&["gen", &format!("file:{path}@write"), "--count", "20"]);
    let [hard, symbolic] = ["hard.pcap", "symbolic.pcap"].map(|name| named(&home, name).0);
    fs::hard_link(&path, &hard).unwrap();
    std::os::unix::fs::symlink(&path, &symbolic).unwrap();
    let before = fs::read(&path).unwrap();
    for out in [&path, &hard, &symbolic] {
        let (read, write) = (&*format!("file:{path}"), &*format!("file:{out}@write"));
        let plain = &*format!("file:{out}");
        let commands: [(&str, &[&str]); 17] = [
            ("ringway", &["gen", write, "--pcap", &path]),
            ("ringway", &["gen", plain, "--pcap", &path]),
            ("ringway", &["replay", write, &path]),
            ("ringway", &["replay", plain, &path]),
            ("ringway", &["replay", write, &path, &path, "--order", "time"]),
            ("ringway", &["recv", read, "-w", out, "--overwrite"]),
            ("ringway", &["capture", read, "-w", out, "--overwrite"]),
            ("ringway", &["capture", read, read, "-w", out, "--overwrite"]),
            ("ringway", &["bridge", read, write]),
            ("ringway", &["bridge", write, read]),
            ("ringway", &["shape", read, write]),
            ("ringway", &["shape", write, read]),
            ("ringway", &["lb", read, "--to", write]),
            ("ringway", &["lb", read, "--to", write, "--to", write]),
            ("nmreplay", &["-f", &path, "-i", write]),
            ("bridge", &["-i", read, "-i", write]),
            ("dedup", &["-i", read, "-i", write]),
        ];
        for (program, args) in commands {
            let output = home.tool(program, args).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(!output.status.success(), "{program} {args:?} does it");
            assert!(said.contains("this command has the file open already"), "{args:?}: {said}");
            assert!(fs::read(&path).unwrap() == before, "{program} {args:?}: {said}");
        }
    }
}

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
    assert_eq!(find(&lines, "drops")["not_written"], 100);
    home.is_left_clean();
}

#[test]
fn a_file_on_a_full_disk_is_readable_as_far_as_it_goes() {
    if skip_without_root("a_file_on_a_full_disk_is_readable_as_far_as_it_goes") {
        return;
    }
    let home = Home::new();
    let small = home.dir.join("small");
    fs::create_dir(&small).unwrap();
    // Written in small pieces, and in a large piece that the disk has no room for as a whole.
    for (name, rate) in [("slow.pcapng", "--rate 500k"), ("fast.pcapng", ""), ("fast.pcap", "")] {
        let (copy, port) = named(&home, name);
        let script = format!(
            "mount -t tmpfs -o size=1M none {0} && ! '{1}' gen 'file:{0}/{name}' -n 50000 --json \
             {rate} && cp {0}/{name} {2}",
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
        let drops = find(&crate::home::lines(&text), "drops").clone();
        let kept = 50_000 - drops["not_written"].as_u64().unwrap();
        assert_eq!(drops["ring_full"], 0);
        assert!(said.contains(&format!("the file has {kept} packets")), "{said}");
        let read = home.json(&["recv", &port, "--verify"]);
        assert_eq!(verified(&read), [kept, 0], "{name} {rate}");
        assert!(frames(&independently(&copy)) as u64 == kept);
        // What it has no room for is less than a page and a packet.
        assert!(fs::metadata(&copy).unwrap().len() > (1 << 20) - 4096 - 128, "{name} {rate}");
    }
    home.is_left_clean();
}

/// What others have written to standard output is theirs.
#[test]
fn a_write_that_fails_shortens_nothing_behind_standard_output() {
    let home = Home::new();
    let (_, port) = named(&home, "in.pcapng");
    home.json(&["gen", &port, "--count", "20000"]);
    let all = home.dir.join("all.pcapng");
    // Of 512 bytes, as the shell counts them.
    const MOST_BLOCKS: u64 = 2000;
    for redirection in [">", ">>"] {
        let script = format!(
            "trap '' XFSZ; ulimit -f {MOST_BLOCKS}; \
             {{ head -c 500000 /dev/zero; exec '{}' capture '{port}' -w -; }} {redirection} '{}'",
            env!("CARGO_BIN_EXE_ringway"),
            all.display()
        );
        let mut command = Command::new("dash");
        command.args(["-c", &script]).env("RINGWAY_DIR", &home.dir);
        let output = command.env_remove("RINGWAY_SOCKET").output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains("File too large"), "{said}");
        assert!(said.contains("in the middle of a block"), "{said}");
        assert_eq!(fs::metadata(&all).unwrap().len(), MOST_BLOCKS * 512, "{redirection}");
        fs::remove_file(&all).unwrap();
    }
    home.is_left_clean();
}

#[test]
fn a_pipe_that_is_not_read_holds_up_nothing() {
    let home = Home::new();
    let (path, port) = named(&home, "fifo");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let (lines, said) = fails(&home, &port, "1000");
    assert!(said.contains("nothing is read from the pipe"), "{said}");
    assert_eq!(find(&lines, "drops")["not_written"], 1000);
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

/// A pcap file of frames of 74 bytes, of which it has `kept`: one a second, from 1000 s on. A frame
/// for which `port` says 53 is a question to a name server.
fn record(path: &str, kept: u32, ports: &[u16]) {
    let words = |words: &[u32]| -> Vec<u8> { words.iter().flat_map(|w| w.to_le_bytes()).collect() };
    let mut file = words(&[0xa1b2_c3d4, 4 << 16 | 2, 0, 0, 65535, 1]);
    for (second, port) in (1000..).zip(ports) {
        file.extend(words(&[second, 500, kept, 74]));
        let mut frame = [0; 74];
        frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0]);
        frame[14..24].copy_from_slice(&[0x45, 0, 0, 60, 0, 0, 0, 0, 64, 17]);
        frame[36..38].copy_from_slice(&port.to_be_bytes());
        frame[38..40].copy_from_slice(&40u16.to_be_bytes());
        file.extend(&frame[..kept as usize]);
    }
    fs::write(path, file).unwrap();
}

/// What tcpdump says of the frames of a file: their times, and their lengths.
fn times_and_lengths(file: &str) -> Vec<String> {
    let mut command = Command::new("tcpdump");
    let output = command.args(["-n", "-tt", "-e", "-r", file]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines().map(|line| {
        let time = line.split_whitespace().next().unwrap().trim_end_matches("000");
        let length = line.split("length ").nth(1).and_then(|rest| rest.split(':').next());
        format!("{time} {}", length.unwrap())
    });
    lines.collect()
}

#[test]
fn a_filter_works_on_a_file() {
    let home = Home::new();
    let ((path, port), (got, _)) = (named(&home, "all.pcap"), named(&home, "some.pcap"));
    let ports: Vec<u16> = (0..2000).map(|n| if n % 100 == 7 { 53 } else { 99 }).collect();
    record(&path, 74, &ports);
    for name in [format!("{port}@filter=udp port 53"), port.clone()] {
        let options: &[&str] = if name == port { &["--filter", "udp port 53"] } else { &[] };
        let lines = home.json(&[&["capture", &name, "-w", &got, "--overwrite"], options].concat());
        assert_eq!(find(&lines, "summary")["packets"], 20);
        assert_eq!(frames(&independently(&got)), 20);
    }
    let lines = home.json(&["recv", &port, "--filter", "udp port 53", "--sample", "4"]);
    assert_eq!(find(&lines, "summary")["packets"], 5);
    let said = home.failure(&["gen", &format!("{port}@filter=udp@write"), "--count", "1"]);
    assert!(said.contains("a filter is for a file that is read"), "{said}");
    home.is_left_clean();
}

/// By every command that copies, a frame keeps its time, and the length that it had on the wire.
#[test]
fn time_and_length_survive_copying() {
    let home = Home::new();
    let (path, port) = named(&home, "cut.pcap");
    record(&path, 60, &[53; 40]);
    let original = times_and_lengths(&path);
    assert!(original[1].ends_with(" 74"), "{original:?}");
    for ending in [".pcap", ".pcapng"] {
        let named = |name: &str| named(&home, &format!("{name}{ending}"));
        let ((captured, _), (received, _), (bridged, to)) =
            (named("captured"), named("received"), named("bridged"));
        home.json(&["capture", &port, "-w", &captured]);
        home.json(&["recv", &port, "-w", &received]);
        home.json(&["bridge", &port, &to]);
        let (replayed, by_replay) = named("replayed");
        home.json(&["replay", &by_replay, &path, "--speed", "0"]);
        for copy in [captured, received, bridged, replayed] {
            assert_eq!(times_and_lengths(&copy), original, "{copy}");
        }
    }
    let text = String::from_utf8(home.run(&["recv", &port, "-p"]).stdout).unwrap();
    assert!(text.starts_with("00:16:40.000500   74 "), "{text}");
    home.is_left_clean();
}

/// Frames of a monitor have the time at which it saw them, however late they are written.
#[test]
fn a_bridge_from_a_monitor_keeps_its_times() {
    let home = Home::new();
    let (path, to) = named(&home, "seen.pcap");
    let receiver = home.open(&["recv", "vale0:b", "--count", "10"]);
    let bridge = home.open(&["bridge", "vale0:b/r", &to]);
    bridge.signal(Signal::STOP);
    home.json(&["gen", "vale0:a", "--count", "10"]);
    finish(receiver);
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let all_seen = now();
    while now() - all_seen < Duration::from_millis(1) {}
    bridge.signal(Signal::CONT);
    wait_for_size(&path, 24 + 10 * (16 + 60));
    bridge.signal(Signal::INT);
    bridge.wait();
    for line in times_and_lengths(&path) {
        let (time, length) = line.split_once(' ').unwrap();
        assert!(time.parse::<f64>().unwrap() <= all_seen.as_secs_f64(), "{line}");
        assert_eq!(length, "60");
    }
    home.is_left_clean();
}

/// What is damaged is an error that names the byte, for every command that reads; a file that ends
/// early is not.
#[test]
fn damage_in_the_middle_of_a_file_is_an_error() {
    let home = Home::new();
    let (path, port) = named(&home, "damaged.pcap");
    record(&path, 74, &[99; 100]);
    let mut bytes = fs::read(&path).unwrap();
    bytes[24 + 3 * 90 + 8..][..4].copy_from_slice(&10_000_000u32.to_le_bytes());
    fs::write(&path, bytes).unwrap();
    let (_, to) = named(&home, "copy.pcap");
    for command in [
        &["recv", &port][..],
        &["capture", &port, "-w", "/dev/null"],
        &["bridge", &port, &to],
        &["replay", "vale0:a", &path, "--speed", "0"],
        &["gen", "vale0:a", "--pcap", &path],
    ] {
        let output = home.run(command);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{command:?}: {said}");
        assert!(said.contains("byte 294: a record claims to be 10000000"), "{command:?}: {said}");
    }
    home.is_left_clean();
}

/// What `replay` sends, `gen` sends: frames of several slots, and those beside one that no ring can
/// hold; and a file that ends early, up to there.
#[test]
fn gen_sends_what_replay_sends() {
    let home = Home::new();
    let ((path, port), (_, to)) = (named(&home, "long.pcap"), named(&home, "sent.pcap"));
    let words = |words: &[u32]| -> Vec<u8> { words.iter().flat_map(|w| w.to_le_bytes()).collect() };
    let mut file = words(&[0xa1b2_c3d4, 4 << 16 | 2, 0, 0, 262_144, 1]);
    for length in [60, 200_000, 9000, 61] {
        file.extend(words(&[1, 0, length, length]));
        file.extend(vec![7; length as usize]);
    }
    file.extend(words(&[1, 0, 60, 60]));
    fs::write(&path, file).unwrap();
    for command in [&["replay", &to, &path, "--speed", "0"][..], &["gen", &to, "--pcap", &path]] {
        let output = home.run(&[command, &["--json"]].concat());
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{command:?}: {said}");
        let lines = crate::home::lines(&String::from_utf8(output.stdout).unwrap());
        let summary = find(&lines, "summary");
        assert_eq!([&summary["packets"], &summary["drops"]], [3, 1], "{command:?}: {summary}");
        assert!(said.contains("1 frames are too long for its rings"), "{command:?}: {said}");
        assert!(said.contains("ends in the middle of a block"), "{command:?}: {said}");
    }
    let lines = home.json(&["gen", &port, "--size", "1500-5000", "--count", "50"]);
    assert_eq!(find(&lines, "summary")["packets"], 50);
    assert_eq!(verified(&home.json(&["recv", &port, "--verify"])), [50, 0]);
    home.is_left_clean();
}

#[test]
fn a_file_has_no_stack_behind_it() {
    let home = Home::new();
    let (path, port) = named(&home, "in.pcap");
    home.json(&["gen", &port, "--count", "10"]);
    for args in [&["bridge", &port][..], &["bridge", "p{0"]] {
        let refused = home.failure(args);
        assert!(refused.contains("only a network interface has a stack"), "{args:?}: {refused}");
    }
    let refused = home.failure(&["bridge", &port, &port]);
    assert!(refused.contains("neither sends anything"), "{refused}");
    let others = std::fs::read_dir(std::path::Path::new(&path).parent().unwrap()).unwrap();
    let names = others.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert!(!names.into_iter().any(|name| name.ends_with('^')));
    home.is_left_clean();
}

/// A file's buffers are shorter than those of a pipe.
#[test]
fn a_bridge_tells_which_frames_were_too_long() {
    let home = Home::new();
    let (_, port) = named(&home, "out.pcap");
    let bridge = home.start(&["bridge", "p}0", &format!("{port}@write")]);
    bridge.wait_for(r#""type":"bridge""#, LIMIT);
    home.json(&["gen", "p{0", "--count", "100", "--size", "2000"]);
    bridge.signal(Signal::INT);
    let printed = finish(bridge);
    assert_eq!(find(&printed, "summary")["drops"], 100);
    let at_file = printed.iter().filter(|line| line["type"] == "drops").nth(1).unwrap();
    assert_eq!((&at_file["too_long"], &at_file["left"]), (&100.into(), &0.into()));
    home.is_left_clean();
}

/// A misspelt option is no part of the file's name.
#[test]
fn unknown_options_of_files_are_refused() {
    let home = Home::new();
    let file = |name: &str| format!("file:{}", home.dir.join(name).display());
    for args in [["gen", &*file("t.pcap@snaplne=64")], ["recv", &file("t.pcap@foo=1")]] {
        let said = home.failure(&args);
        assert!(said.contains("rotate, files and snaplen"), "{args:?}: {said}");
    }
    assert_eq!(std::fs::read_dir(&home.dir).unwrap().count(), 0);
}

/// A file on standard output has nothing in it that is no part of it.
#[test]
fn no_command_mixes_text_in_a_file_on_standard_output() {
    let home = Home::new();
    let (path, read) = named(&home, "in.pcapng");
    home.json(&["gen", &format!("{read}@write"), "--count", "20"]);
    let expected = independently(&path);
    let (piped, made) = (named(&home, "piped.pcapng").0, named(&home, "made.pcapng").0);
    let commands: [&[&str]; 15] = [
        &["gen", "file:-", "--pcap", &path],
        &["gen", "file:-@write", "--pcap", &path, "--json"],
        &["gen", "file:/dev/stdout", "--pcap", &path],
        &["replay", "file:-", &path],
        &["replay", "file:/dev/fd/1", &path],
        &["bridge", &read, "file:-@write"],
        &["bridge", "file:-@write", &read, "--json"],
        &["bridge", &read, "file:/dev/stdout@write"],
        &["shape", &read, "file:-@write"],
        &["lb", &read, "--to", "file:-@write"],
        &["recv", &read, "-w", "-"],
        &["recv", &read, "-w", "/dev/stdout"],
        &["recv", &read, "-w", "/proc/self/fd/1", "--json"],
        &["capture", &read, "-w", "-"],
        &["capture", &read, "-w", "/dev/stdout"],
    ];
    for args in commands {
        // A pipe, and a file that `>` has made.
        let output = home.command(args).output().unwrap();
        fs::write(&piped, &output.stdout).unwrap();
        let mut command = home.command(args);
        let status = command.stdout(fs::File::create(&made).unwrap()).output().unwrap().status;
        for (file, status) in [(&piped, output.status), (&made, status)] {
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(status.success(), "{args:?}: {said}");
            assert_eq!(independently(file), expected, "{args:?}: {file}");
        }
    }
    // Where results go, if not there.
    let output = home.run(&["recv", &read, "-w", "/dev/stdout"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("20 packets"));
    for file in ["-", "/dev/stdout"] {
        for command in ["recv", "capture"] {
            let said = home.failure(&[command, &read, "--print", "-w", file]);
            assert!(said.contains("both want standard output; write to a file"), "{said}");
        }
        let rotating = ["capture", &read, "-w", file, "--rotate-size", "1M"];
        assert!(home.failure(&rotating).contains("name a file"), "{file}");
    }
}

/// What a recording has not written has a line of its own, so that all that is dropped is said where it was lost.
#[test]
fn what_a_recording_has_not_written_is_told_as_the_files() {
    let home = Home::new();
    let (_, read) = named(&home, "in.pcapng");
    home.json(&["gen", &format!("{read}@write"), "--count", "8"]);
    // Nothing is read from these: the commands give them up.
    let commands = ["recv", "capture"].map(|command| {
        let (fifo, _) = named(&home, command);
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let proc = home.start(&[command, &read, "-w", &fifo]);
        (fifo, proc)
    });
    for (fifo, proc) in commands {
        let (status, text) = proc.wait();
        assert!(!status.success(), "{text}");
        let lines = crate::home::lines(&text);
        let drops: Vec<_> = lines.iter().filter(|line| line["type"] == "drops").collect();
        assert_eq!(find(&lines, "summary")["drops"], 8, "{text}");
        let [at_port, at_file] = drops[..] else { panic!("{text}") };
        assert_eq!((&at_port["ring_full"], &at_port["not_written"]), (&0.into(), &Value::Null));
        assert_eq!((&at_file["port"], &at_file["not_written"]), (&fifo.into(), &8.into()));
    }
    home.is_left_clean();
}

/// A file that is named as it is, and a port where a file is wanted.
#[test]
fn a_file_and_a_port_in_each_others_place_are_told_apart() {
    let home = Home::new();
    let (path, port) = named(&home, "in.pcapng");
    home.json(&["gen", &port, "--count", "1"]);
    for (args, words) in [
        (&["recv", &*path][..], "is a file: as a port, it is file:"),
        (&["recv", "/no/such/x.pcap"], "is named file:/no/such/x.pcap"),
        (&["gen", "x.pcapng.zst", "--count", "1"], "is named file:x.pcapng.zst"),
        (&["recv", "nope.pcap@speed=1"], "is named file:nope.pcap"),
        (&["replay", &path, "vale0:p"], "vale0:p is the name of a port, where a file is wanted"),
        (&["replay", &path, "p{0"], "p{0 is the name of a port, where a file is wanted"),
        (&["gen", "vale0:a", "--pcap", "vale0:p"], "vale0:p is the name of a port"),
    ] {
        let output = home.run(args);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{args:?}: {said}");
        assert!(said.contains(words), "{args:?}: {said}");
    }
    // What is no file's name is not said to be one.
    let output = home.run(&["recv", "nope"]);
    assert!(!String::from_utf8(output.stderr).unwrap().contains("file"));
    home.is_left_clean();
}
