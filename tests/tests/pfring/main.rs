//! Programs of PF_RING on Ringway's ports and on interfaces: what they receive, and what they send.

mod cluster;

use std::{collections::BTreeSet, fs, path::Path, process::Command, time::Duration};

use ringway::{Control, Interest, Port};
use ringway_testkit::{Netns, PacketSocket, Proc, json_lines, skip_without_root};
use ringway_tests::{
    Home,
    c::{Language::*, link, loads_from, project, succeed},
    capture, inside, isolated,
    source::Source,
    until,
};
use rustix::process::Signal;

const LIMIT: Duration = Duration::from_secs(60);

fn install(home: &Home) {
    home.install(&[("ringway", "ringway-cli"), ("libpfring.so", "ringway-libpfring")]);
}

fn build(home: &Home, name: &str) -> String {
    let source = format!("tests/c/{name}.c");
    link(home, &source, C11, &["-lpfring", "-lpthread"]).display().to_string()
}

/// A line of a shell, in the home's environment.
fn run(home: &Home, netns: Option<&Netns>, line: &str) -> Proc {
    let mut shell = home.command("sh");
    shell.args(["-c", &format!("exec {line}")]);
    Proc::spawn(match netns {
        Some(netns) => inside(netns, shell),
        None => shell,
    })
}

/// What a program has printed that has done all that it should.
fn succeeds(program: Proc) -> String {
    let (status, said) = program.wait();
    let bad: Vec<&str> = said.lines().filter(|line| line.starts_with("not ok")).collect();
    assert!(status.success() && bad.is_empty(), "{status}: {bad:?}\n{said}");
    said
}

/// A break outside of a call that receives is lost, by the interface's rule: so there are as many as it takes.
fn ends_by_signal(mut program: Proc) -> String {
    until("the program ends", || match program.is_running() {
        true => {
            program.signal(Signal::TERM);
            Err(program.output())
        }
        false => Ok(()),
    });
    succeeds(program)
}

fn hex(frame: &[u8]) -> String {
    frame.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Each way to receive gives what was sent, whole and in order, with the same headers.
fn assert_received(home: &Home, netns: Option<&Netns>, device: &str, source: &mut Source) {
    let count = build(home, "pfring_count");
    let frames = capture::frames();
    let mut parsed = Vec::new();
    for how in ["loop", "recv", "copy", "long"] {
        let program = run(home, netns, &format!("{count} '{device}' {} {how}", frames.len()));
        program.wait_for("ready", LIMIT);
        source.send(&frames);
        let said = succeeds(program);
        let packets: Vec<&str> =
            said.lines().filter_map(|line| line.strip_prefix("packet ")).collect();
        let sent: Vec<String> = frames
            .iter()
            .map(|frame| format!("{} {} {}", frame.len(), frame.len(), hex(frame)))
            .collect();
        assert_eq!(packets, sent, "{device}, {how}");
        let lines: Vec<String> = said
            .lines()
            .filter_map(|line| line.strip_prefix("parsed "))
            .map(str::to_owned)
            .collect();
        assert!(lines.iter().any(|line| line.contains("[l3_proto=UDP]")), "{said}");
        parsed.push(lines);
        let counted = format!("received {} lost 0", frames.len());
        assert!(said.contains(&counted), "{device}, {how}: {said}");
    }
    assert_eq!(parsed[0], parsed[1]);
    assert_eq!(parsed[1], parsed[2]);

    // A filter, and the end of a wait by a signal.
    let of_icmp: Vec<String> =
        frames.iter().filter(|frame| capture::is_icmp(frame)).map(|frame| hex(frame)).collect();
    let program = run(home, netns, &format!("{count} '{device}' {} recv icmp", of_icmp.len()));
    program.wait_for("ready", LIMIT);
    source.send(&frames);
    let said = succeeds(program);
    let packets: Vec<&str> = said
        .lines()
        .filter(|line| line.starts_with("packet "))
        .filter_map(|line| line.split(' ').next_back())
        .collect();
    assert_eq!(packets, of_icmp, "{device}");
    let program = run(home, netns, &format!("{count} '{device}' 0 recv"));
    program.wait_for("ready", LIMIT);
    ends_by_signal(program);
}

#[test]
fn headers_have_the_layout_of_the_reference() {
    let home = Home::new();
    install(&home);
    for language in [C11, Cpp17] {
        let program = link(&home, "tests/c/pfring_layout.c", language, &["-lpfring"]);
        succeed(Command::new(program));
    }
}

/// As PF_RING's programs do it: open, filter, enable. What the filter leaves to the stack of a veth pair costs it
/// no copy then; without a filter nothing is left.
#[test]
fn a_filter_before_the_ring_is_enabled_chooses_the_mode() {
    if skip_without_root("a_filter_before_the_ring_is_enabled_chooses_the_mode") {
        return;
    }
    isolated("a_filter_before_the_ring_is_enabled_chooses_the_mode", |home| {
        install(home);
        let [a, b] = [(); 2].map(|()| Netns::quiet("rwm"));
        let _pair = a.veth(&b, "n0", "n1");
        let mut source = Source::Stack(PacketSocket::new(&b, "n1"));
        let (count, frames) = (build(home, "pfring_count"), capture::frames());
        let of_icmp = frames.iter().filter(|frame| capture::is_icmp(frame)).count();
        for (filter, mode, wanted) in [("", "copy", frames.len()), ("icmp", "packet", of_icmp)] {
            let line = format!("{count} netmap:n0 {wanted} recv {filter}");
            let program = run(home, Some(&a), &line);
            program.wait_for("ready", LIMIT);
            let ports = Control::connect_running().unwrap().ports().unwrap();
            let port = ports.iter().find(|port| port.name == "n0").unwrap();
            let is = port.mode.as_deref().unwrap_or_default();
            assert_eq!(is.split(';').next(), Some(mode), "{filter}: {is}");
            assert_eq!(port.filters.len(), usize::from(!filter.is_empty()), "{filter}");
            source.send(&frames);
            let said = succeeds(program);
            assert!(said.contains(&format!("received {wanted} lost 0")), "{filter}: {said}");
        }
    });
}

/// An event loop that looks at one packet, or receives it, each time that the descriptor is readable gets them all.
#[test]
fn packets_are_received_one_by_one() {
    if skip_without_root("packets_are_received_one_by_one") {
        return;
    }
    isolated("packets_are_received_one_by_one", |home| {
        install(home);
        let program = build(home, "pfring_singly");
        let netns = Netns::quiet("rws");
        let _pairs = [netns.veth(&netns, "n0", "n1"), netns.veth(&netns, "n2", "n3")];
        for line in [
            "netmap:n0 n1",
            "netmap:n0@mode=copy n1",
            "netmap:n0@mode=packet n1",
            "'netmap:n0;netmap:n2' n1 n3",
            "'netmap:n0@mode=packet;netmap:n2@mode=packet' n1 n3",
            "'netmap:n0;vale0:a;netmap:x{1' n1 vale0:b 'netmap:x}1'",
            "vale0:a vale0:b",
            "'netmap:x{1' 'netmap:x}1'",
        ] {
            succeeds(run(home, Some(&netns), &format!("{program} {line}")));
        }
    });
}

#[test]
fn rings_receive_from_switches_and_pipes() {
    isolated("rings_receive_from_switches_and_pipes", |home| {
        install(home);
        assert_received(home, None, "vale0:a", &mut Source::port("vale0:b"));
        assert_received(home, None, "netmap:x{1", &mut Source::port("x}1"));

        // A capture file, with its own times.
        let (count, frames) = (build(home, "pfring_count"), capture::frames());
        let file = home.path().join("sent.pcap");
        fs::write(&file, capture::file(&frames)).unwrap();
        let line = format!("{count} pcap:{} {} loop", file.display(), frames.len());
        let said = run(home, None, &line).wait().1;
        for frame in &frames {
            assert!(said.contains(&hex(frame)), "{said}");
        }
    });
}

#[test]
fn rings_receive_from_interfaces() {
    if skip_without_root("rings_receive_from_interfaces") {
        return;
    }
    isolated("rings_receive_from_interfaces", |home| {
        install(home);
        let (a, b) = (Netns::quiet("rwf"), Netns::quiet("rwf"));
        let _pair = a.veth(&b, "n0", "n1");
        let mut source = Source::Stack(PacketSocket::new(&b, "n1"));
        for device in ["n0", "netmap:n0", "any", "n0;lo"] {
            assert_received(home, Some(&a), device, &mut source);
        }
    });
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

fn lines(path: &Path, frames: &[Vec<u8>]) {
    let text: String = frames.iter().map(|frame| hex(frame) + "\n").collect();
    fs::write(path, text).unwrap();
}

#[test]
fn rings_send_to_switches_and_pipes() {
    isolated("rings_send_to_switches_and_pipes", |home| {
        install(home);
        let send = build(home, "pfring_send");
        let frames: Vec<Vec<u8>> = (0..200).flat_map(|_| capture::frames()).collect();
        let file = home.path().join("frames");
        for (device, far) in [("vale0:a", "vale0:b"), ("netmap:x{1", "x}1")] {
            // A switch loses what finds no room: so many frames have it.
            let frames = if device.starts_with("vale") { &frames[..100] } else { &frames };
            lines(&file, frames);
            let mut port = Port::open(far).unwrap();
            let program = run(home, None, &format!("{send} '{device}' < {}", file.display()));
            assert!(
                receive(&mut port, frames.len()) == frames,
                "{device}: others, or in another order"
            );
            succeeds(program);
        }
    });
}

#[test]
fn rings_send_to_interfaces() {
    if skip_without_root("rings_send_to_interfaces") {
        return;
    }
    isolated("rings_send_to_interfaces", |home| {
        install(home);
        let (send, count) = (build(home, "pfring_send"), build(home, "pfring_count"));
        let (a, b) = (Netns::quiet("rwf"), Netns::quiet("rwf"));
        let _pair = a.veth(&b, "n0", "n1");
        let frames = capture::frames();
        let file = home.path().join("frames");
        lines(&file, &frames);
        let receiver = run(home, Some(&b), &format!("{count} n1 {} recv", frames.len()));
        receiver.wait_for("ready", LIMIT);
        succeeds(run(home, Some(&a), &format!("{send} n0 < {}", file.display())));
        let said = succeeds(receiver);
        for frame in &frames {
            assert!(said.contains(&hex(frame)), "{said}");
        }
    });
}

/// Programs that are written as the examples of PF_RING compile as those do: with its flags, and without.
#[test]
fn programs_like_the_examples_compile() {
    isolated("programs_like_the_examples_compile", |home| {
        install(home);
        let include = project().join("include");
        let program = home.path().join("example");
        for flags in [&[][..], &["-DHAVE_PF_RING", "-DENABLE_BPF"]] {
            let mut compiler = Command::new("cc");
            compiler.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror"]).args(flags);
            compiler.arg("-I").arg(&include).arg("-I").arg(include.join("pf_ring/lib"));
            compiler.arg(project().join("tests/c/pfring_example.c")).arg("-o").arg(&program);
            compiler.arg("-L").arg(home.bin()).arg("-lpfring");
            compiler.args(loads_from(&home.bin()));
            let output = compiler.output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            for device in ["vale0:a", "none"] {
                succeeds(run(home, None, &format!("{} {device}", program.display())));
            }
        }
    });
}

/// Rules, bounces, files, and calls that make no sense.
#[test]
fn rings_follow_rules() {
    isolated("rings_follow_rules", |home| {
        install(home);
        let rules = build(home, "pfring_rules");
        let said = succeed({
            let mut command = home.command(&rules);
            command.args(["vale0:a", "vale0:b", "vale0:c"]);
            command
        });
        assert!(said.contains("ok - as much as fits"), "{said}");
        assert!(!home.run().join("pf_ring").exists(), "the last ring takes all along");
    });
}

/// Waiting, several threads on a ring, channels, filters by themselves.
#[test]
fn rings_are_waited_for_and_shared_by_threads() {
    isolated("rings_are_waited_for_and_shared_by_threads", |home| {
        install(home);
        let walk = build(home, "pfring_walk");
        succeeds(run(home, None, &format!("{walk} vale0:a vale0:b")));
    });
}

/// Counters are asked for in the handler of a signal, while rules look at packets.
#[test]
fn handlers_of_signals_ask_for_counters() {
    isolated("handlers_of_signals_ask_for_counters", |home| {
        install(home);
        let signals = build(home, "pfring_signals");
        succeeds(run(home, None, &format!("{signals} vale0:a vale0:b")));
    });
}

/// A thread that waits can be cancelled.
#[test]
fn threads_that_wait_are_cancelled() {
    isolated("threads_that_wait_are_cancelled", |home| {
        install(home);
        let cancelled = build(home, "pfring_cancelled");
        succeeds(run(home, None, &format!("{cancelled} vale0:a vale0:b")));
    });
}

#[test]
fn rings_on_interfaces_are_waited_for_and_shared_by_threads() {
    if skip_without_root("rings_on_interfaces_are_waited_for_and_shared_by_threads") {
        return;
    }
    isolated("rings_on_interfaces_are_waited_for_and_shared_by_threads", |home| {
        install(home);
        let netns = Netns::quiet("rwf");
        let _pair = netns.veth(&netns, "n0", "n1");
        let walk = build(home, "pfring_walk");
        succeeds(run(home, Some(&netns), &format!("{walk} n0 n1")));
    });
}

/// On a port that is made for it, a ring holds as many packets as PF_RING's; elsewhere as many as there is room for.
#[test]
fn rings_hold_as_many_packets_as_those_of_the_reference() {
    isolated("rings_hold_as_many_packets_as_those_of_the_reference", |home| {
        install(home);
        let count = build(home, "pfring_count");
        let rx_slots = |device: &str, port: &str| {
            let program = run(home, None, &format!("{count} '{device}' 0 recv"));
            program.wait_for("ready", LIMIT);
            let ports = Control::connect().unwrap().ports().unwrap();
            let slots = ports.iter().find(|open| open.name == port).map(|open| open.slots[1]);
            ends_by_signal(program);
            slots
        };
        for (device, port) in [("vale0:a", "vale0:a"), ("netmap:x{1", "x{1"), ("netmap:y}1", "y}1")]
        {
            assert_eq!(rx_slots(device, port), Some(4096), "{device}");
        }
        let _parent = ringway::Port::open("vale1:p").unwrap();
        assert_eq!(rx_slots("netmap:vale1:p{1", "vale1:p{1"), Some(1024), "its parent's");
    });
}

/// The sender at the other end of a pipe sees that packets were taken, also those that were read last.
#[test]
fn a_ring_that_is_closed_has_taken_what_it_has_read() {
    isolated("a_ring_that_is_closed_has_taken_what_it_has_read", |home| {
        install(home);
        let fork = build(home, "pfring_fork");
        let mut sender = Port::open("x}1").unwrap();
        for counts in ["3 0", "0 3"] {
            let program = run(home, None, &format!("{fork} 'netmap:x{{1' {counts}"));
            program.wait_for("ready", LIMIT);
            (0..3).for_each(|_| assert!(sender.tx(0).push(&[2; 60])));
            sender.tx(0).sync();
            succeeds(program);
            sender.tx(0).sync();
            assert_eq!(sender.tx(0).pending(), 0, "{counts}");
        }
    });
}

/// A child of `fork` goes on with a ring: on a port beside its parent, on an interface in its place.
#[test]
fn children_go_on_with_rings() {
    isolated("children_go_on_with_rings", |home| {
        install(home);
        goes_on(home, None, "vale0:a", [7, 5], &mut Source::port("vale0:b"));
        goes_on(home, None, "netmap:x{1", [7, 5], &mut Source::port("x}1"));
    });
}

#[test]
fn children_go_on_with_rings_on_interfaces() {
    if skip_without_root("children_go_on_with_rings_on_interfaces") {
        return;
    }
    isolated("children_go_on_with_rings_on_interfaces", |home| {
        install(home);
        let (a, b) = (Netns::quiet("rwf"), Netns::quiet("rwf"));
        let _pair = a.veth(&b, "n0", "n1");
        let mut source = Source::Stack(PacketSocket::new(&b, "n1"));
        goes_on(home, Some(&a), "netmap:n0", [7, 5], &mut source);
        goes_on(home, Some(&a), "n0", [12, 0], &mut source);
    });
}

/// The child has the first packets, its parent those behind them.
fn goes_on(
    home: &Home,
    netns: Option<&Netns>,
    device: &str,
    counts: [usize; 2],
    source: &mut Source,
) {
    let fork = build(home, "pfring_fork");
    let [child, parent] = counts;
    let program = run(home, netns, &format!("{fork} '{device}' {child} {parent}"));
    program.wait_for("ready", LIMIT);
    let frame = |len: usize| [vec![0xff; 6], vec![2; len - 6]].concat();
    let frames: Vec<Vec<u8>> = (60..).take(child + parent).map(frame).collect();
    source.send(&frames);
    let said = succeeds(program);
    let received =
        said.lines().filter(|line| line.starts_with("child ") || line.starts_with("parent "));
    let line = |(n, frame): (usize, &Vec<u8>)| {
        format!("{} {}", if n < child { "child" } else { "parent" }, frame.len())
    };
    let sent: Vec<String> = frames.iter().enumerate().map(line).collect();
    assert_eq!(received.collect::<Vec<_>>(), sent, "{device}");
}

/// What `/proc/net/pf_ring` would have is shown, whichever daemon there is, and goes with the ring.
#[test]
fn rings_are_shown_among_the_ports() {
    isolated("rings_are_shown_among_the_ports", |home| {
        install(home);
        let count = build(home, "pfring_count");
        let ports = |json: bool| {
            let mut command = home.command("ringway");
            command.args(["ports", "--pf-ring"]);
            if json {
                command.arg("--json");
            }
            succeed(command)
        };
        assert_eq!(ports(false).trim(), "no rings of PF_RING are open");
        let program = run(home, None, &format!("{count} vale0:a 0 recv"));
        program.wait_for("ready", LIMIT);
        let (pid, said) = (program.pid(), ports(false));
        for line in ["Total rings              : 1", "Appl. Name             : pfring_count"] {
            assert!(said.contains(line), "{said}");
        }
        assert!(said.contains(&format!("{pid}-vale0:a.0")), "{said}");
        let lines = json_lines(&ports(true));
        let mut names = lines.iter().map(|line| &line["fields"]["Appl. Name"]);
        assert!(names.any(|name| name == "pfring_count"), "{lines:?}");
        // What is killed removes nothing itself; the daemon does when it leaves, or the command that looks before.
        let texts = home.run().join("pf_ring");
        program.signal(Signal::KILL);
        program.wait();
        home.assert_left();
        assert!(!texts.exists());
        let program = run(home, None, &format!("{count} vale0:a 0 recv"));
        program.wait_for("ready", LIMIT);
        let stays = Proc::spawn(home.traffic(&["hold", "vale0:b"]));
        stays.wait_for("open", LIMIT);
        program.signal(Signal::KILL);
        program.wait();
        assert!(texts.exists());
        assert_eq!(ports(false).trim(), "no rings of PF_RING are open");
        assert!(!texts.exists());
        drop(stays);
        // What the last ring leaves behind is nothing.
        let program = run(home, None, &format!("{count} vale0:a 0 recv"));
        program.wait_for("ready", LIMIT);
        ends_by_signal(program);
        assert!(!home.run().join("pf_ring").exists());
    });
}

/// PF_RING's library and the preloaded one in one process, on ports of one switch: preloaded, and linked.
#[test]
fn a_process_may_have_two_personalities() {
    isolated("a_process_may_have_two_personalities", |home| {
        install(home);
        let source = "tests/c/two_personalities.c";
        let preloaded = link(home, source, C11, &["-lpfring"]).display().to_string();
        let preload = home.library().display().to_string();
        let linked = link(home, source, C11, &["-lringway_netmap", "-lpfring"]);
        for line in [format!("env LD_PRELOAD={preload} {preloaded}"), linked.display().to_string()]
        {
            succeeds(run(home, None, &format!("{line} vale0:a vale0:b")));
        }
    });
}

/// The library has all functions of PF_RING's, and nothing else.
#[test]
fn all_functions_are_there() {
    let home = Home::new();
    install(&home);
    let mut nm = Command::new("nm");
    nm.args(["-D", "--defined-only"]).arg(home.bin().join("libpfring.so"));
    let symbols = String::from_utf8(nm.output().unwrap().stdout).unwrap();
    let found: BTreeSet<&str> =
        symbols.lines().filter_map(|line| line.split(' ').next_back()).collect();
    let list = fs::read_to_string(project().join("tests/c/pfring_functions.txt")).unwrap();
    assert_eq!(found, list.lines().collect());
    let header = fs::read_to_string(project().join("include/pfring.h")).unwrap();
    for name in list.lines() {
        assert!(header.contains(&format!("{name}(")), "{name}");
    }
}

/// `ringway run` has a program find the library that was built without a path to it.
#[test]
fn programs_find_the_library() {
    isolated("programs_find_the_library", |home| {
        install(home);
        let source = home.path().join("version.c");
        let text = "#include <pfring.h>\nint main(void)\n{ u_int32_t v = 0; pfring_version_noring(&v); \
                    return v != RING_VERSION_NUM; }\n";
        fs::write(&source, text).unwrap();
        let program = home.path().join("version");
        let mut compiler = Command::new("cc");
        compiler.arg("-I").arg(project().join("include")).arg(&source).arg("-o").arg(&program);
        compiler.arg("-L").arg(home.bin()).arg("-lpfring");
        assert!(compiler.status().unwrap().success());
        succeeds(run(home, None, &format!("ringway run -- {}", program.display())));
    });
}
