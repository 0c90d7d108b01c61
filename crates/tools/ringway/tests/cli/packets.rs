//! `recv --print` and `recv --write`: what has come, in lines and in files.

use crate::files::{frames, named, verified};
use crate::home::{Home, finish};
use std::fs;
use std::process::Command;

/// What a program that is not ours prints of a file: with the time of each frame.
fn tcpdump(args: &[&str], file: &str) -> Vec<String> {
    let mut command = Command::new("tcpdump");
    let output = command.env("TZ", "UTC").args(["-n"]).args(args).args(["-r", file]).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn a_line_for_each_packet_is_printed_with_the_times_of_the_file() {
    let home = Home::new();
    let (file, port) = named(&home, "three.pcapng");
    home.json(&["gen", &port, "--count", "3", "--size", "60-62"]);
    let output = home.run(&["recv", &port, "--print", "-x"]);
    assert!(output.status.success());
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("is open") && told.contains("3 packets, 183 bytes"), "{told}");
    let text = String::from_utf8(output.stdout).unwrap();
    let (dumped, printed): (Vec<_>, Vec<_>) = text.lines().partition(|l| l.starts_with('\t'));
    let expected = tcpdump(&[], &file);
    assert_eq!(printed.len(), 3);
    for (i, (line, by_tcpdump)) in printed.iter().zip(&expected).enumerate() {
        let time = by_tcpdump.split(' ').next().unwrap();
        let words: Vec<_> = line.split_whitespace().collect();
        assert_eq!([words[0], words[1]], [time, &(60 + i).to_string()], "{line}");
        assert!(line.ends_with(&format!("10.0.0.1:1234 > 10.1.0.1:1234 udp {} bytes", 18 + i)));
    }
    // The bytes, without the letters behind them.
    let digits = |line: &str| line.split("  ").nth(1).unwrap().trim().to_owned();
    let expected = tcpdump(&["-xx"], &file);
    let expected = expected.iter().filter(|line| line.starts_with('\t'));
    let expected: Vec<_> = expected.map(|line| digits(line)).collect();
    assert_eq!(dumped.iter().map(|line| digits(line)).collect::<Vec<_>>(), expected);
    home.is_left_clean();
}

#[test]
fn packets_are_objects_for_machines() {
    let home = Home::new();
    let receiver = home.open(&["recv", "vale0:b", "--print", "-x", "--count", "2"]);
    home.json(&["gen", "vale0:a", "--count", "2", "--size", "60"]);
    let lines = finish(receiver);
    let packets: Vec<_> = lines.iter().filter(|line| line["type"] == "packet").collect();
    assert_eq!(packets.len(), 2);
    let packet = packets[0];
    assert_eq!((&packet["port"], &packet["length"]), (&"vale0:b".into(), &60.into()));
    assert_eq!((&packet["protocol"], &packet["source_port"]), (&"udp".into(), &1234.into()));
    assert_eq!(packet["hex"].as_str().unwrap().len(), 120);
    assert!(packets[0]["time_ns"].as_u64() <= packets[1]["time_ns"].as_u64());
    home.is_left_clean();
}

#[test]
fn what_is_received_is_verified_and_recorded() {
    let home = Home::new();
    for name in ["got.pcapng.zst", "got.pcap"] {
        let (file, port) = named(&home, name);
        // A pipe: its sender waits for a receiver that the machine does not let run.
        let receiver = home.open(&["recv", "p}0", "--verify", "-w", &file, "--count", "3000"]);
        home.json(&["gen", "p{0", "--count", "3000", "--size", "60-1514"]);
        assert_eq!(verified(&finish(receiver)), [3000, 0]);
        assert_eq!(verified(&home.json(&["recv", &port, "--verify"])), [3000, 0], "{name}");
    }
    assert_eq!(tcpdump(&[], home.dir.join("got.pcap").to_str().unwrap()).len(), 3000);
    home.is_left_clean();
}

#[test]
fn a_file_becomes_another_with_the_same_times() {
    let home = Home::new();
    let ((from, port), (to, _)) = (named(&home, "from.pcap"), named(&home, "to.pcapng"));
    home.json(&["gen", &port, "--count", "200", "--rate", "10k"]);
    home.json(&["recv", &port, "-w", &to]);
    let expected = tcpdump(&["-tt", "--nano"], &from);
    assert_eq!(expected.len(), 200);
    assert_eq!(tcpdump(&["-tt", "--nano"], &to), expected);
    home.json(&["capture", &port, "-w", &to, "--overwrite"]);
    assert_eq!(tcpdump(&["-tt", "--nano"], &to), expected);
    home.is_left_clean();
}

#[test]
fn a_recording_on_standard_output_is_alone_there() {
    let home = Home::new();
    let (_, port) = named(&home, "from.pcap");
    home.json(&["gen", &port, "--count", "10"]);
    let output = home.run(&["recv", &port, "-w", "-", "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (got, _) = named(&home, "got.pcapng");
    fs::write(&got, output.stdout).unwrap();
    assert_eq!(frames(&tcpdump(&[], &got).join("\n")), 10);
    let said = home.failure(&["recv", &port, "-w", "-", "--print"]);
    assert!(said.contains("both want standard output"), "{said}");
    home.is_left_clean();
}

#[test]
fn a_full_disk_ends_a_recording_and_is_told() {
    let home = Home::new();
    let receiver = home.open(&["recv", "vale0:b", "-w", "/dev/full"]);
    // It may have ended before the first frame.
    home.run(&["gen", "vale0:a", "--count", "100"]);
    let (status, text) = receiver.wait();
    assert!(!status.success() && text.contains("make room"), "{text}");
    assert!(text.contains(r#""type":"summary""#), "{text}");
    home.is_left_clean();
}
