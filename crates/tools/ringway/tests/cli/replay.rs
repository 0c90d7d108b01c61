//! `ringway replay`.

use crate::files::{frames, independently, named};
use crate::home::{Home, LIMIT, find, finish};
use rustix::process::Signal;
use std::fs;
use std::io::Write;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

/// Writes a pcap file of frames with these times, in microseconds, and numbers, which are the last byte of
/// their source addresses.
fn record(path: &str, recorded: &[(u64, u8)]) {
    const ADDRESSES: [u8; 11] = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0];
    let words = |words: &[u32]| -> Vec<u8> { words.iter().flat_map(|w| w.to_le_bytes()).collect() };
    let mut file = words(&[0xa1b2_c3d4, 4 << 16 | 2, 0, 0, 65535, 1]);
    for &(time, number) in recorded {
        let (seconds, micros) = ((time / 1_000_000) as u32, (time % 1_000_000) as u32);
        file.extend(words(&[seconds, micros, 60, 60]));
        let mut frame = [0; 60];
        frame[..11].copy_from_slice(&ADDRESSES);
        frame[11..14].copy_from_slice(&[number, 0x88, 0xb5]);
        file.extend(frame);
    }
    fs::write(path, file).unwrap();
}

/// The times of the frames in a pcap file, in microseconds, and their numbers.
fn recorded(path: &str) -> Vec<(u64, u8)> {
    const NANOSECONDS: u32 = 0xa1b2_3c4d;
    let file = fs::read(path).unwrap();
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
    let mut frames = Vec::new();
    let mut at = 24;
    while at < file.len() {
        let micros = word(at + 4) / if word(0) == NANOSECONDS { 1000 } else { 1 };
        let time = u64::from(word(at)) * 1_000_000 + u64::from(micros);
        frames.push((time, file[at + 16 + 11]));
        at += 16 + word(at + 8) as usize;
    }
    frames
}

/// The numbers of the frames in a file, in their order.
fn numbers(path: &str) -> Vec<u8> {
    let text = independently(path);
    let rows = text.lines().filter_map(|line| line.trim_start().strip_prefix("0x0000:  "));
    rows.map(|row| u8::from_str_radix(&row[27..29], 16).unwrap()).collect()
}

#[test]
fn all_frames_of_a_file_arrive_in_order() {
    let home = Home::new();
    let (path, port) = named(&home, "some.pcapng.zst");
    home.json(&["gen", &port, "--count", "700", "--size", "60-1514"]);
    for (from, to) in [("p{0", "p}0"), ("vale0:a", "vale0:b")] {
        let receiver = home.open(&["recv", to, "--verify", "--count", "700"]);
        let lines = home.json(&["replay", from, &path, "--speed", "1000"]);
        let pacing = find(&lines, "pacing");
        assert_eq!(pacing["frames"], 700);
        let late = ["p50", "p99", "max"].map(|at| pacing["late_ns"][at].as_u64().unwrap());
        assert!(late.is_sorted(), "{pacing}");
        assert_eq!(find(&lines, "summary")["packets"], 700);
        let lines = finish(receiver);
        let verified = find(&lines, "verify");
        assert_eq!([&verified["good"], &verified["reordered"]], [700, 0], "{verified}");
    }
    home.is_left_clean();
}

#[test]
fn no_frame_goes_before_its_time() {
    let home = Home::new();
    let ((path, _), (_, to)) = (named(&home, "slow.pcap"), named(&home, "got.pcap"));
    let frames: Vec<_> = (0..250).map(|n| (1_000_000 + n * 1000, n as u8)).collect();
    record(&path, &frames);
    // By the clock of the one that receives.
    let live = named(&home, "live.pcap").0;
    let receiver = home.open(&["recv", "p}0", "--count", "250", "-w", &live]);
    let begin = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros() as u64;
    home.json(&["replay", "p{0", &path]);
    finish(receiver);
    let arrived = recorded(&live);
    assert_eq!(arrived.len(), frames.len());
    for ((arrived, number), (time, expected)) in arrived.into_iter().zip(frames) {
        assert_eq!(number, expected);
        assert!(arrived - begin >= time - 1_000_000, "{number}: {} us", arrived - begin);
    }
    let seconds = |options: &[&str]| {
        let lines = home.json(&[&["replay", &to, &path], options].concat());
        assert_eq!(find(&lines, "pacing")["frames"], find(&lines, "summary")["packets"]);
        find(&lines, "summary")["seconds"].as_f64().unwrap()
    };
    assert!(seconds(&[]) >= 0.249);
    assert!(seconds(&["--speed", "2", "--loop", "3"]) >= 0.373);
    assert!(seconds(&["--rate", "2k"]) >= 0.124);
    assert!(seconds(&["--rate", "1Mbps", "--count", "100"]) >= 0.047);
    home.is_left_clean();
}

/// A file that is written has the times of the frames that are replayed, and not of the writing.
#[test]
fn frames_keep_their_times_in_a_file() {
    let home = Home::new();
    let (a, b) = (named(&home, "a.pcap").0, named(&home, "b.pcap").0);
    record(&a, &[(5_000_000, 1), (5_000_100, 2), (5_000_400, 3)]);
    record(&b, &[(9_000_000, 11), (9_000_250, 12)]);
    let (got, to) = named(&home, "got.pcap");
    let replayed = |files: &[&str], options: &[&str]| {
        home.json(&[&["replay", &to], files, options].concat());
        recorded(&got)
    };
    let plain = [(5_000_000, 1), (5_000_100, 2), (5_000_400, 3)];
    for options in [&["--speed", "0"][..], &[]] {
        assert_eq!(replayed(&[&a], options), plain, "{options:?}");
    }
    assert_eq!(
        replayed(&[&a], &["--speed", "0.5"]),
        [(5_000_000, 1), (5_000_200, 2), (5_000_800, 3)]
    );
    assert_eq!(
        replayed(&[&a], &["--rate", "10k"]),
        [(5_000_000, 1), (5_000_100, 2), (5_000_200, 3)]
    );
    assert_eq!(
        replayed(&[&a], &["--max-gap", "150us"]),
        [(5_000_000, 1), (5_000_100, 2), (5_000_250, 3)]
    );
    let second = [(9_000_000, 11), (9_000_250, 12)];
    assert_eq!(replayed(&[&a, &b], &["--speed", "0"]), [&plain[..], &second].concat());
    assert_eq!(
        replayed(&[&b, &a], &["--speed", "0", "--order", "time"]),
        [&plain[..], &second].concat()
    );
    assert_eq!(
        replayed(&[&a, &b], &["--speed", "0", "--order", "start"]),
        [(5_000_000, 1), (5_000_000, 11), (5_000_100, 2), (5_000_250, 12), (5_000_400, 3)]
    );
    let round = plain.map(|(time, number)| (time + 400, number));
    assert_eq!(replayed(&[&a], &["--speed", "0", "--loop", "2"]), [&plain[..], &round].concat());
    home.is_left_clean();
}

#[test]
fn several_files_are_one_after_the_other_or_merged() {
    let home = Home::new();
    let (a, b) = (named(&home, "a.pcap").0, named(&home, "b.pcap").0);
    record(&a, &[(5_000_000, 1), (5_000_100, 2), (5_000_400, 3)]);
    record(&b, &[(5_000_050, 11), (5_000_200, 12), (5_000_250, 13)]);
    let (got, to) = named(&home, "got.pcap");
    let replayed = |files: &[&str], options: &[&str]| {
        home.json(&[&["replay", &to], files, &["--speed", "0"], options].concat());
        numbers(&got)
    };
    assert_eq!(replayed(&[&a, &b], &[]), [1, 2, 3, 11, 12, 13]);
    assert_eq!(replayed(&[&a, &b], &["--order", "time"]), [1, 11, 2, 12, 13, 3]);
    assert_eq!(replayed(&[&a, &b], &["--order", "start"]), [1, 11, 2, 12, 13, 3]);
    let later = format!("{b}@offset=60us");
    assert_eq!(replayed(&[&a, &later], &["--order", "start"]), [1, 11, 2, 12, 13, 3]);
    assert_eq!(replayed(&[&a, &later], &["--order", "time"]), [1, 2, 11, 12, 13, 3]);
    let last = format!("{b}@offset=1s");
    assert_eq!(
        replayed(&[&last, &a], &["--order", "time", "--loop", "2"]),
        [1, 2, 3, 11, 12, 13, 1, 2, 3, 11, 12, 13]
    );
    assert_eq!(
        replayed(&[&a, &b], &["--order", "start", "--loop", "2"]),
        [1, 11, 2, 12, 13, 3, 1, 11, 2, 12, 13, 3]
    );
    home.is_left_clean();
}

#[test]
fn files_have_offsets_and_addresses_of_their_own() {
    let home = Home::new();
    let path = named(&home, "a.pcap").0;
    record(&path, &[(0, 1), (10, 2)]);
    let (got, to) = named(&home, "got.pcap");
    let other = format!("{path}@offset=150ms@dst-mac=02:00:00:00:00:07@src-mac=02:00:00:00:00:08");
    let lines = home.json(&["replay", &to, &path, &other]);
    assert!(find(&lines, "summary")["seconds"].as_f64().unwrap() >= 0.15);
    let text = independently(&got);
    assert_eq!(frames(&text), 4);
    assert_eq!(text.matches("0x0000:  0200 0000 0007 0200 0000 0008").count(), 2, "{text}");
    assert_eq!(numbers(&got), [1, 2, 8, 8]);
    home.is_left_clean();
}

#[test]
fn an_interrupted_replay_has_a_summary() {
    let home = Home::new();
    let path = named(&home, "long.pcap").0;
    record(&path, &[(0, 1), (3_600_000_000, 2)]);
    let receiver = home.open(&["recv", "p}0", "--count", "1"]);
    let replay = home.open(&["replay", "p{0", &path]);
    finish(receiver);
    replay.signal(Signal::INT);
    let lines = finish(replay);
    assert_eq!(find(&lines, "summary")["packets"], 1);
    assert_eq!(find(&lines, "pacing")["frames"], 1);
    home.is_left_clean();
}

#[test]
fn what_cannot_be_replayed_is_said() {
    let home = Home::new();
    let path = named(&home, "a.pcap").0;
    let missing = home.failure(&["replay", "p{0", "/nonexistent/x.pcap"]);
    assert!(missing.contains("/nonexistent/x.pcap") && missing.contains("check the path"));
    fs::write(&path, "no capture at all, but long enough to be one").unwrap();
    assert!(home.failure(&["replay", "p{0", &path]).contains("neither a pcap nor a pcapng"));
    home.is_left_clean();
}

#[test]
fn frames_are_taken_from_a_pipe_as_they_come() {
    let home = Home::new();
    let path = named(&home, "a.pcap").0;
    record(&path, &[(0, 1), (10, 2)]);
    let whole = fs::read(&path).unwrap();
    let pipe = named(&home, "pipe").0;
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let receiver = home.open(&["recv", "p}0", "--count", "1"]);
    let replay = home.start(&["replay", "p{0", &pipe]);
    // The first frame goes out while the second has not been written.
    let mut writer = fs::OpenOptions::new().write(true).open(&pipe).unwrap();
    writer.write_all(&whole[..24]).unwrap();
    while rustix::io::ioctl_fionread(&writer).unwrap() > 0 {
        std::thread::yield_now();
    }
    writer.write_all(&whole[24..24 + 76]).unwrap();
    finish(receiver);
    let receiver = home.open(&["recv", "p}0", "--count", "1"]);
    writer.write_all(&whole[24 + 76..]).unwrap();
    drop(writer);
    finish(receiver);
    replay.wait_for("pacing", LIMIT);
    let lines = finish(replay);
    assert_eq!(find(&lines, "summary")["packets"], 2);
    home.is_left_clean();
}

/// A pause of an hour is named, and is a second where that is asked for.
#[test]
fn long_pauses_are_named_and_can_be_capped() {
    let home = Home::new();
    let (path, _) = named(&home, "night.pcap");
    record(&path, &[(0, 1), (3_600_000_000, 2)]);
    let waits = home.start(&["replay", "vale0:a", &path]);
    waits.wait_for("its next frame is due in 3", LIMIT);
    waits.signal(Signal::INT);
    let (_, said) = waits.wait();
    assert!(said.contains(&path) && said.contains("--max-gap"), "{said}");
    for capped in [
        &["replay", "vale0:a", &path, "--max-gap", "10ms"][..],
        &["bridge", &format!("file:{path}@speed=1@max-gap=10ms"), "vale0:a"],
    ] {
        assert_eq!(find(&home.json(capped), "summary")["packets"], 2, "{capped:?}");
    }
    home.is_left_clean();
}

/// Before the first frame, and before anything is read.
#[test]
fn a_pipe_is_not_played_twice() {
    let home = Home::new();
    let fifo = home.dir.join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    for file in ["-", fifo.to_str().unwrap()] {
        let said = home.failure(&["replay", "vale0:a", file, "--loop", "2"]);
        assert!(said.contains("a pipe has no second round; leave --loop out"), "{said}");
    }
}
