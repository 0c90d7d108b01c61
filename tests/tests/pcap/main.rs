//! Programs of libpcap on Ringway's ports: what they capture, what they send, and what they print.

mod devices;
mod late_filter;
mod leaks;
mod listen;
mod selectable;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use ringway::{Control, Interest, Port};
use ringway_testkit::{Netns, PacketSocket, Proc, skip_without_root};
use ringway_tests::{
    Home,
    c::{Language::C11, link, project},
    capture, frame, inside, isolated,
    source::Source,
    until,
};
use rustix::process::Signal;

const LIMIT: Duration = Duration::from_secs(60);

/// The programs of a home, with libpcap's stand-in.
fn install(home: &Home) {
    home.install(&[("ringway", "ringway-cli"), ("libringway_pcap.so", "ringway-pcap")]);
}

/// `ringway run -- LINE`, by a shell that redirects its output.
fn run(home: &Home, netns: Option<&Netns>, line: &str) -> Proc {
    let mut shell = home.command("sh");
    shell.args(["-c", &format!("cd {} && exec ringway run -- {line}", home.path().display())]);
    Proc::spawn(match netns {
        Some(netns) => inside(netns, shell),
        None => shell,
    })
}

/// What a program prints without us.
fn plain(home: &Home, line: &str) -> String {
    let mut shell = Command::new("sh");
    let output = shell.args(["-c", line]).current_dir(home.path()).output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A capture file of these frames, in the home.
fn file(home: &Home, name: &str, frames: &[Vec<u8>]) -> PathBuf {
    let path = home.path().join(name);
    fs::write(&path, capture::file(frames)).unwrap();
    path
}

/// tcpdump prints of a port what it prints of a file with the same packets; so does what it has written.
fn assert_tcpdump(home: &Home, netns: Option<&Netns>, device: &str, source: &mut Source) {
    let frames = capture::frames();
    file(home, "sent.pcap", &frames);
    let how = "-nn -e -t -vv -XX";
    let said = plain(home, &format!("tcpdump {how} -r sent.pcap 2>/dev/null"));
    let count = frames.len();
    let line = format!("tcpdump {how} -i '{device}' -c {count} > printed");
    let tcpdump = run(home, netns, &line);
    tcpdump.wait_for("listening on", LIMIT);
    source.send(&frames);
    let (status, told) = tcpdump.wait();
    assert!(status.success(), "{device}: {told}");
    assert_eq!(fs::read_to_string(home.path().join("printed")).unwrap(), said, "{device}");
    for line in [format!("{count} packets captured"), "0 packets dropped by kernel".into()] {
        assert!(told.contains(&line), "{device}: {told}");
    }

    let tcpdump = run(home, netns, &format!("tcpdump -i '{device}' -w written -c {count}"));
    tcpdump.wait_for("listening on", LIMIT);
    source.send(&frames);
    let (status, told) = tcpdump.wait();
    assert!(status.success(), "{device}: {told}");
    let written = plain(home, &format!("tcpdump {how} -r written 2>/dev/null"));
    assert_eq!(written, said, "{device}, written");
}

#[test]
fn tcpdump_captures_from_switches_and_pipes() {
    isolated("tcpdump_captures_from_switches_and_pipes", |home| {
        install(home);
        assert_tcpdump(home, None, "vale0:a", &mut Source::port("vale0:b"));
        assert_tcpdump(home, None, "netmap:x{1", &mut Source::port("x}1"));
        assert_tcpdump(home, None, "netmap:x}1", &mut Source::port("x{1"));
    });
}

/// Another program has the port, and gets everything.
#[test]
fn tcpdump_takes_nothing_away() {
    isolated("tcpdump_takes_nothing_away", |home| {
        install(home);
        for (device, held, from) in [
            ("vale1:a", "vale1:a", "vale1:b"),
            ("vale1:a/rt", "vale1:a", "vale1:b"),
            ("netmap:y{1", "y{1", "y}1"),
        ] {
            let mut held = Port::open(held).unwrap();
            let mut source = Source::port(from);
            // A monitor of a pipe is fed by the program that moves its packets.
            let sent = capture::frames();
            let got = std::thread::scope(|scope| {
                let receiver = scope.spawn(|| receive(&mut held, 2 * sent.len()));
                assert_tcpdump(home, None, device, &mut source);
                receiver.join().unwrap()
            });
            assert!(
                got == [&sent[..], &sent[..]].concat(),
                "{device}: others, or in another order"
            );
        }
    });
}

/// Waits for the end of a program; returns what it has printed.
fn succeeds(program: Proc) -> String {
    let (status, said) = program.wait();
    assert!(status.success(), "{said}");
    said
}

/// What a port receives.
fn receive(port: &mut Port, count: usize) -> Vec<Vec<u8>> {
    let mut got = Vec::new();
    while got.len() < count {
        assert!(port.wait(Interest::Rx, Some(LIMIT)).unwrap(), "{} of {count}", got.len());
        got.extend(port.rx(0).batch(usize::MAX).map(|frame| frame.to_vec()));
    }
    got
}

#[test]
fn tcpdump_captures_from_interfaces() {
    if skip_without_root("tcpdump_captures_from_interfaces") {
        return;
    }
    isolated("tcpdump_captures_from_interfaces", |home| {
        install(home);
        let (a, b) = (Netns::quiet("rwp"), Netns::quiet("rwp"));
        let _pair = a.veth(&b, "n0", "n1");
        let mut source = Source::Stack(PacketSocket::new(&b, "n1"));
        for device in ["netmap:n0", "netmap:n0/R", "netmap:n0@mode=packet", "n0"] {
            assert_tcpdump(home, Some(&a), device, &mut source);
        }
        // Attached to a switch: what its far end sends, and what the switch sends there.
        succeeds(run(home, Some(&a), "ringway switch attach vale2 n0"));
        assert_tcpdump(home, Some(&a), "vale2:n0", &mut source);
        assert_tcpdump(home, Some(&a), "vale2:n0", &mut Source::port("vale2:p"));
        succeeds(run(home, Some(&a), "ringway switch delete vale2"));
    });
}

/// What found no room is told, of a port and of a monitor: here 1023 slots have room.
#[test]
fn lost_packets_are_counted() {
    isolated("lost_packets_are_counted", |home| {
        install(home);
        let frame = capture::frames().remove(1);
        let mut source = Source::port("vale1:b");
        let mut held = Port::open("vale1:c").unwrap();
        for device in ["vale1:a", "vale1:c"] {
            let tcpdump = run(home, None, &format!("tcpdump -i {device} -c 1023 -w written"));
            tcpdump.wait_for("listening on", LIMIT);
            tcpdump.stop();
            for _ in 0..10 {
                source.send(&vec![frame.clone(); 500]);
                assert_eq!(receive(&mut held, 500).len(), 500);
            }
            // The worker has told of them when it has told the daemon.
            Control::connect().unwrap().switches().unwrap();
            tcpdump.signal(Signal::CONT);
            let said = succeeds(tcpdump);
            for line in ["1023 packets captured", "5000 packets received", "3977 packets dropped"] {
                assert!(said.contains(line), "{device}: {said}");
            }
        }
    });
}

/// The statistics that a signal ends with, and a filter.
#[test]
fn tcpdump_ends_by_a_signal() {
    isolated("tcpdump_ends_by_a_signal", |home| {
        install(home);
        let tcpdump = run(home, None, "tcpdump -l -nn -i vale0:a icmp");
        tcpdump.wait_for("listening on", LIMIT);
        Source::port("vale0:b").send(&capture::frames());
        tcpdump.wait_for("seq 2,", LIMIT);
        tcpdump.signal(Signal::INT);
        let (status, said) = tcpdump.wait();
        assert!(status.success(), "{said}");
        let of_icmp = capture::frames().iter().filter(|frame| capture::is_icmp(frame)).count();
        assert!(said.contains(&format!("{of_icmp} packets captured")), "{said}");
        assert!(!said.contains("UDP"), "{said}");
    });
}

/// A thread that reads can be cancelled, from a port and from what is beside a stack.
#[test]
fn threads_that_read_are_cancelled() {
    if skip_without_root("threads_that_read_are_cancelled") {
        return;
    }
    isolated("threads_that_read_are_cancelled", |home| {
        install(home);
        let program = link(home, "tests/c/pcap_cancelled.c", C11, &["-lpcap"]);
        let netns = Netns::quiet("rwp");
        let _pair = netns.veth(&netns, "n0", "n1");
        for (device, sender) in [("vale0:a", "vale0:b"), ("netmap:n0/r", "netmap:n1")] {
            let line = format!("{} {device} {sender}", program.display());
            succeeds(run(home, Some(&netns), &line));
        }
    });
}

/// A handler of a signal may jump out of a call that waits, on a port and beside a stack: the next call reads on.
#[test]
fn calls_that_wait_are_jumped_out_of() {
    if skip_without_root("calls_that_wait_are_jumped_out_of") {
        return;
    }
    isolated("calls_that_wait_are_jumped_out_of", |home| {
        install(home);
        let program = link(home, "tests/c/pcap_jumped.c", C11, &["-lpcap"]);
        let netns = Netns::quiet("rwp");
        let _pair = netns.veth(&netns, "n0", "n1");
        for (device, sender) in [("vale0:a", "vale0:b"), ("netmap:n0/r", "netmap:n1")] {
            let line = format!("{} {device} {sender}", program.display());
            succeeds(run(home, Some(&netns), &line));
        }
    });
}

#[test]
fn ports_are_listed_and_missing_ones_explained() {
    isolated("ports_are_listed_and_missing_ones_explained", |home| {
        install(home);
        let list = |home: &Home| run(home, None, "tcpdump -D").wait().1;
        assert!(!list(home).contains("Ringway"));
        assert!(home.daemons().is_empty(), "a list starts no daemon");
        let (_a, _p) = (Port::open("vale0:a").unwrap(), Port::open("x{1").unwrap());
        let listed = list(home);
        for name in ["vale0:a (Ringway", "netmap:x{1 (Ringway", "lo "] {
            assert!(listed.contains(name), "{name}: {listed}");
        }
        let (status, said) = run(home, None, "tcpdump -c 1 -i netmap:nosuch0").wait();
        assert!(!status.success() && said.contains("ip -br link"), "{said}");
    });
}

/// What a user names is used, and nothing in its place.
#[test]
fn the_systems_library_is_the_one_that_is_named() {
    isolated("the_systems_library_is_the_one_that_is_named", |home| {
        install(home);
        let frames = capture::frames();
        file(home, "sent.pcap", &frames);
        let no_library = file(home, "no-library", &[]);
        let own = home.bin().join("libringway_pcap.so");
        for (wrong, why) in [
            (Path::new("missing.so"), "a relative path"),
            (&no_library.with_file_name("missing.so"), "which is no libpcap"),
            (&no_library, "which is no libpcap"),
            (&own, "which is no libpcap"),
        ] {
            let wrong = wrong.display();
            let line = format!("env RINGWAY_LIBPCAP={wrong} tcpdump -nn -r sent.pcap");
            let (status, said) = run(home, None, &line).wait();
            assert!(!status.success(), "{wrong}: {said}");
            let problem = format!("RINGWAY_LIBPCAP names {wrong}, {why}");
            assert!(said.contains(&problem), "{said}");
        }
        let line = "env RINGWAY_LIBPCAP= tcpdump -nn -r sent.pcap --count";
        let said = succeeds(run(home, None, line));
        assert!(said.contains(&format!("{} packets", frames.len())), "{said}");
    });
}

fn exists(path: &Path) -> Result<(), String> {
    if path.exists() { Ok(()) } else { Err(format!("{} is not there", path.display())) }
}

/// A program that runs another after the capture has begun, and one that other programs start.
#[test]
fn children_of_a_capturing_program_do_no_harm() {
    isolated("children_of_a_capturing_program_do_no_harm", |home| {
        install(home);
        // A new file after each packet of a kilobyte: gzip compresses the one before.
        let line = "tcpdump -i vale0:a -U -C 1 -W 3 -z gzip -Z root -w rotated -s 2000";
        let tcpdump = run(home, None, line);
        tcpdump.wait_for("listening on", LIMIT);
        let mut source = Source::port("vale0:b");
        let frames = vec![capture::frames().pop().unwrap(); 200];
        until("a file is compressed", || {
            source.send(&frames);
            exists(&home.path().join("rotated0.gz"))
        });
        tcpdump.signal(Signal::INT);
        let (status, said) = tcpdump.wait();
        assert!(status.success(), "{said}");
    });
}

/// dumpcap captures, and tshark, which has dumpcap capture for it.
fn assert_tshark(home: &Home, netns: Option<&Netns>, device: &str, source: &mut Source) {
    let frames = capture::frames();
    file(home, "sent.pcap", &frames);
    let count = frames.len();
    let print = |name: &str| plain(home, &format!("tcpdump -nn -t -XX -r {name} 2>/dev/null"));

    let dumpcap =
        run(home, netns, &format!("dumpcap -q -P -i '{device}' -c {count} -w written.pcap"));
    dumpcap.wait_for("File:", LIMIT);
    source.send(&frames);
    let told = succeeds(dumpcap);
    assert!(told.contains(&format!("{count}/0")), "{device}: {told}");
    assert_eq!(print("written.pcap"), print("sent.pcap"), "{device}");

    let what = "-n -T fields -e frame.len -e eth.type -e _ws.col.Protocol -e _ws.col.Info -e data";
    let said = plain(home, &format!("tshark {what} -r sent.pcap"));
    let tshark = run(home, netns, &format!("tshark {what} -l -i '{device}' -c {count} > printed"));
    tshark.wait_for("File:", LIMIT);
    source.send(&frames);
    succeeds(tshark);
    assert_eq!(fs::read_to_string(home.path().join("printed")).unwrap(), said, "{device}");
}

#[test]
fn tshark_and_dumpcap_capture() {
    isolated("tshark_and_dumpcap_capture", |home| {
        install(home);
        let mut source = Source::port("vale0:b");
        assert_tshark(home, None, "vale0:a", &mut source);
        assert_tshark(home, None, "netmap:x{1", &mut Source::port("x}1"));
        let held = Port::open("vale0:held").unwrap();
        assert_tshark(home, None, "vale0:held", &mut source);
        drop(held);
        let listed = succeeds(run(home, None, "tshark -D"));
        assert!(listed.contains("vale0:b"), "{listed}");
    });
}

#[test]
fn tshark_and_dumpcap_capture_from_interfaces() {
    if skip_without_root("tshark_and_dumpcap_capture_from_interfaces") {
        return;
    }
    isolated("tshark_and_dumpcap_capture_from_interfaces", |home| {
        install(home);
        let (a, b) = (Netns::quiet("rwp"), Netns::quiet("rwp"));
        let _pair = a.veth(&b, "n0", "n1");
        let mut source = Source::Stack(PacketSocket::new(&b, "n1"));
        for device in ["netmap:n0", "netmap:n0/rt"] {
            assert_tshark(home, Some(&a), device, &mut source);
        }
        succeeds(run(home, Some(&a), "ringway switch attach vale2 n0"));
        assert_tshark(home, Some(&a), "vale2:n0", &mut source);
        succeeds(run(home, Some(&a), "ringway switch delete vale2"));
    });
}

/// Numbered frames of all lengths, so that a missing one, or one out of order, shows.
fn numbered() -> Vec<Vec<u8>> {
    (0..5000)
        .map(|number| {
            let mut bytes = Vec::new();
            frame::build(&mut bytes, frame::BROADCAST, frame::mac(3, 1), 3, number);
            bytes
        })
        .collect()
}

/// What a program sends by libpcap arrives, all of it and in order.
#[test]
fn programs_replay_capture_files() {
    isolated("programs_replay_capture_files", |home| {
        install(home);
        let frames = numbered();
        file(home, "replayed.pcap", &frames);
        // A pipe loses nothing, whoever is faster.
        let mut port = Port::open("x}1").unwrap();
        let replay = run(home, None, "bittwist -i 'netmap:x{1' -m 0 replayed.pcap");
        assert!(receive(&mut port, frames.len()) == frames, "others, or in another order");
        succeeds(replay);
    });
}

/// tcpreplay reads by libpcap, and sends by a socket of its own: to where tcpdump captures.
#[test]
fn tcpreplay_sends_to_a_capture() {
    if skip_without_root("tcpreplay_sends_to_a_capture") {
        return;
    }
    isolated("tcpreplay_sends_to_a_capture", |home| {
        install(home);
        let frames = numbered();
        let sent = file(home, "replayed.pcap", &frames);
        let (a, b) = (Netns::quiet("rwp"), Netns::quiet("rwp"));
        let _pair = a.veth(&b, "n0", "n1");
        // All of it has room, however long tcpdump has to wait for a CPU.
        let line = format!("tcpdump -i netmap:n0/r -B 16384 -c {} -w got", frames.len());
        let tcpdump = run(home, Some(&a), &line);
        tcpdump.wait_for("listening on", LIMIT);
        succeeds(run(home, Some(&b), "tcpreplay --pps 20000 -i n1 replayed.pcap"));
        succeeds(tcpdump);
        let print =
            |path: &Path| plain(home, &format!("tcpdump -t -XX -r {} 2>/dev/null", path.display()));
        assert!(print(&home.path().join("got")) == print(&sent), "others, or in another order");
    });
}

/// A program in Python, which loads libpcap while it runs, sends to a filter of another one.
#[test]
fn scapy_sends_and_sniffs() {
    isolated("scapy_sends_and_sniffs", |home| {
        install(home);
        let script = project().join("tests/python/sniff.py");
        let python =
            |args: &str| run(home, None, &format!("/usr/bin/python3 {} {args}", script.display()));
        let sniffer = python("sniff vale0:a 'udp port 9'");
        sniffer.wait_for("sniffing", LIMIT);
        succeeds(python("send vale0:b"));
        let said = succeeds(sniffer);
        let loads: Vec<&str> = said.lines().filter(|line| line.starts_with("load")).collect();
        assert_eq!(loads, ["load 0", "load 1", "load 2", "load 3", "load 4"], "{said}");
    });
}

/// A program in C calls every function, on an interface and on the same interface as a port.
#[test]
fn every_function_does_what_the_systems_does() {
    if skip_without_root("every_function_does_what_the_systems_does") {
        return;
    }
    isolated("every_function_does_what_the_systems_does", |home| {
        install(home);
        let source = "tests/c/pcap_walk.c";
        let text = fs::read_to_string(project().join(source)).unwrap();
        let mut nm = Command::new("nm");
        nm.args(["-D", "--defined-only"]).arg(home.bin().join("libringway_pcap.so"));
        let symbols = String::from_utf8(nm.output().unwrap().stdout).unwrap();
        let names = symbols.lines().filter_map(|line| line.split(' ').next_back());
        // By which programs find the library.
        let names: Vec<_> = names.filter(|name| *name != "dlopen").collect();
        assert_eq!(names.len(), 98);
        let words: BTreeSet<&str> =
            text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
        for name in names {
            assert!(words.contains(name), "{name}");
        }
        let program = link(home, source, C11, &["-lpcap", "-lpthread"]);
        let program = program.display();
        let netns = Netns::quiet("rwp");
        let _pair = netns.veth(&netns, "n0", "n1");
        let theirs = netns.run(&format!("{program} n0 n1"));
        let ours = run(home, Some(&netns), &format!("{program} netmap:n0 n1 2>/dev/null"));
        let ours = succeeds(ours);
        for (ours, theirs) in ours.lines().zip(theirs.lines()) {
            assert_eq!(ours, theirs);
        }
        assert_eq!(ours.lines().count(), theirs.lines().count());
    });
}

/// Its descriptor is watched, its counters are asked for in the handler of a signal, and another thread sends by it.
#[test]
fn a_handle_is_used_beside_its_reads() {
    isolated("a_handle_is_used_beside_its_reads", |home| {
        install(home);
        let beside = link(home, "tests/c/pcap_beside.c", C11, &["-lpcap", "-pthread"]);
        let line = format!("{} 'netmap:pp{{1' 'netmap:pp}}1'", beside.display());
        succeeds(run(home, None, &line));
    });
}
