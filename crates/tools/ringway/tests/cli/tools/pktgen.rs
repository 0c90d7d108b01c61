//! `pkt-gen`.

use super::{run, shape};
use crate::home::{Home, LIMIT, find, finish};
use ringway_testkit::{Netns, Proc, is_root, skip_without_root};
use rustix::process::Signal;
use std::net::UdpSocket;
use std::os::unix::fs::symlink;

const ZERO_MAC: &str = "00:00:00:00:00:00";

/// Starts a tool that receives, and waits until it is ready.
fn listen(home: &Home, args: &[&str]) -> Proc {
    let proc = Proc::spawn(home.tool("pkt-gen", args));
    proc.wait_for("Ready...", LIMIT);
    proc
}

/// Waits for the end of a tool that must succeed.
fn success(proc: Proc) -> String {
    let (status, text) = proc.wait();
    assert_eq!(status.code(), Some(0), "{text}");
    text
}

fn interrupt(proc: Proc) -> String {
    proc.signal(Signal::INT);
    success(proc)
}

#[test]
fn tx_and_rx_tell_what_the_original_tells() {
    let home = Home::new();
    let receiver = listen(&home, &["-i", "netmap:p}0", "-w", "0", "-n", "1000"]);
    let (status, printed, said) =
        run(home.tool("pkt-gen", &["-i", "p{0", "-f", "tx", "-n", "1000", "-w0", "-l", "100"]));
    assert_eq!(status, Some(0), "{said}");
    let lines: Vec<_> = printed.lines().collect();
    assert_eq!(lines[0], "Sending on p{0: 1 queues, 1 threads and 1 cpus.");
    assert_eq!(lines[1], format!("10.0.0.1 -> 10.1.0.1 ({ZERO_MAC} -> ff:ff:ff:ff:ff:ff)"));
    assert!(lines[2].starts_with("Sent 1000 packets 100000 bytes "), "{printed}");
    assert_eq!(shape(lines[2]), "Sent N packets N bytes N events N bytes each in N.N seconds.");
    assert!(lines[2].contains(" 100 bytes each in "), "{printed}");
    let unit =
        |text: &str| ["K", "M", "G"].iter().fold(text.into(), |t: String, u| t.replace(u, ""));
    assert_eq!(
        unit(&shape(lines[3])),
        "Speed: N.N pps Bandwidth: N.N bps (raw N.N bps). Average batch: N.N pkts"
    );
    assert_eq!(lines.len(), 4);
    let last = said.lines().last().unwrap();
    assert_eq!(
        unit(&shape(last)),
        "N.N main_thread [N] N.N pps (N.N pkts N.N bps in N usec) N.N avg_batch N min_space"
    );
    assert!(last.ends_with(" 0 min_space") || last.ends_with(" 99999 min_space"), "{last}");

    let text = success(receiver);
    assert!(text.contains("Receiving from netmap:p}0: 1 queues, 1 threads and 1 cpus."), "{text}");
    assert!(text.contains("\nReceived 1000 packets 100000 bytes "), "{text}");
    home.is_left_clean();
}

#[test]
fn a_receiver_of_ringway_reads_what_is_sent() {
    let home = Home::new();
    let receiver = home.open(&["recv", "p}0", "--count", "500", "--verify"]);
    let args = ["-i", "p{0", "-ftx", "-n500", "-w0", "-l1514", "-s", "10.0.0.1:5-10.0.0.9:9"];
    assert_eq!(run(home.tool("pkt-gen", &args)).0, Some(0));
    receiver.wait_for(r#""type":"summary""#, LIMIT);
    let (_, text) = receiver.wait();
    let json: String =
        text.lines().filter(|line| line.starts_with('{')).collect::<Vec<_>>().join("\n");
    let lines = crate::home::lines(&json);
    // Foreign to `ringway recv`, but whole.
    assert_eq!(find(&lines, "summary")["bytes"], 500 * 1514);
    assert_eq!(find(&lines, "verify")["corrupt"], 0);
    home.is_left_clean();
}

#[test]
fn indirect_packets_are_sent_from_where_they_are() {
    let home = Home::new();
    for (from, more) in [("vale0:a", &["-F", "2"][..]), ("vale0:a", &["-z"]), ("p{0", &[])] {
        let to = if from == "p{0" { "netmap:p}0" } else { "vale0:b" };
        let receiver = listen(&home, &["-i", to, "-w0", "-n", "10", "-X"]);
        let args = ["-i", from, "-f", "tx", "-I", "-n", "10", "-w0", "-l", "64"];
        let (status, printed, said) = run(home.tool("pkt-gen", &[&args, more].concat()));
        assert_eq!(status, Some(0), "{said}");
        assert!(printed.contains("Sent 10 packets 640 bytes"), "{printed}");
        let text = success(receiver);
        assert!(text.contains("Received 10 packets 640 bytes"), "{text}");
        let heads = text.matches("\n    0: ff ff ff ff ff ff 00 00 00 00 00 00 08 00 45 00 ");
        assert_eq!(heads.count(), 10, "{text}");
    }
    home.is_left_clean();
}

#[test]
fn a_packet_of_several_slots_counts_once() {
    let home = Home::new();
    let receiver = listen(&home, &["-i", "netmap:p}0", "-w0", "-n", "10", "-X"]);
    let args = ["-i", "p{0", "-f", "tx", "-n", "10", "-w0", "-l", "300", "-F", "3"];
    let (status, printed, _) = run(home.tool("pkt-gen", &args));
    assert_eq!(status, Some(0));
    assert!(printed.contains("Sent 10 packets 3000 bytes"), "{printed}");
    let text = success(receiver);
    assert!(text.contains("Received 10 packets 3000 bytes"), "{text}");
    // Three slots a packet, and of each seven lines of sixteen bytes.
    let slots = text.lines().filter(|line| line.contains("flags 0x00")).count();
    assert_eq!(slots, 30, "{text}");
    assert!(text.contains("flags 0x0020 len   100]"), "{text}");
    assert!(text.contains("\n    0: ff ff ff ff ff ff 00 00 00 00 00 00 08 00 45 00 "), "{text}");
    home.is_left_clean();
}

#[test]
fn ping_and_pong() {
    let home = Home::new();
    let pong = listen(&home, &["-i", "vale0:b", "-f", "pong"]);
    let ping = ["-i", "vale0:a", "-f", "ping", "-n", "100", "-S", "02:00:00:00:00:01"];
    let (status, printed, said) = run(home.tool("pkt-gen", &ping));
    assert_eq!(
        (status, &printed[..]),
        (Some(0), "Working on vale0:a: 1 queues, 1 threads and 1 cpus.\n")
    );
    let last = said.lines().last().unwrap();
    assert!(last.contains("RTT over 100 packets: min "), "{said}");
    assert_eq!(shape(last), "N.N ping_body [N] RTT over N packets: min N av N ns");
    let text = interrupt(pong);
    assert!(text.contains("\nSent 100 packets 6000 bytes"), "{text}");
    home.is_left_clean();
}

#[test]
fn sequences_are_followed() {
    let home = Home::new();
    let receiver = listen(&home, &["-i", "netmap:p}0", "-f", "rxseq", "-w0"]);
    let send = || {
        let sender = listen(&home, &["-i", "p{0", "-f", "txseq", "-w0", "-n", "1", "-T", "50"]);
        sender.wait_for("main_thread", LIMIT);
        let text = interrupt(sender);
        assert!(text.contains("\nSent "), "{text}");
    };
    send();
    receiver.wait_for("pps", LIMIT);
    assert!(!receiver.output().contains("Sequence"));
    send();
    let text = receiver.wait_for("Sequence OUT OF ORDER: exp ", LIMIT);
    assert!(text.contains(" found 0\n"), "{text}");
    let text = interrupt(receiver);
    assert!(!text.contains("GAP"), "{text}");
}

#[test]
fn silence_ends_a_receiver_that_is_told_so() {
    let home = Home::new();
    let receiver = listen(&home, &["-i", "netmap:p}0", "-w0", "-W"]);
    receiver.wait_for("waiting for initial packets", LIMIT);
    assert_eq!(run(home.tool("pkt-gen", &["-i", "p{0", "-ftx", "-n5", "-w0"])).0, Some(0));
    let text = success(receiver);
    assert!(text.contains("Received 5 packets 300 bytes"), "{text}");
    let receiver = listen(&home, &["-i", "netmap:p}0", "-w0"]);
    assert!(interrupt(receiver).contains("\nReceived nothing.\n"));
    home.is_left_clean();
}

#[test]
fn threads_have_a_ring_each() {
    let home = Home::new();
    let receiver = home.open(&["recv", "vale0:b"]);
    let args =
        ["-i", "vale0:a@conf:rings=2,slots=256", "-ftx", "-p2", "-n500", "-b10", "-R", "100000"];
    let (status, printed, said) = run(home.tool("pkt-gen", &args));
    assert_eq!(status, Some(0), "{said}");
    let first = "Sending on vale0:a@conf:rings=2,slots=256: 2 queues, 2 threads and 1 cpus.";
    assert!(printed.starts_with(first), "{printed}");
    assert!(printed.contains("Sent 500 packets 30000 bytes"), "{printed}");
    receiver.signal(Signal::INT);
    assert_eq!(find(&finish(receiver), "summary")["packets"], 500);
    home.is_left_clean();
}

#[test]
fn a_header_goes_in_front_of_each_packet() {
    let home = Home::new();
    let receiver = listen(&home, &["-i", "vale0:b", "-H", "12", "-n", "10", "-X"]);
    let args = ["-i", "vale0:a", "-f", "tx", "-H", "12", "-n", "10"];
    let (status, printed, said) = run(home.tool("pkt-gen", &args));
    assert_eq!(status, Some(0), "{said}");
    assert!(printed.contains("Sent 10 packets 720 bytes"), "{printed}");
    let text = success(receiver);
    assert!(text.contains("Received 10 packets 720 bytes"), "{text}");
    let start = "\n    0: 00 00 00 00 00 00 00 00 00 00 00 00 ff ff ff ff ";
    assert!(text.contains(start), "{text}");
    home.is_left_clean();
}

#[test]
fn null_takes_everything() {
    let home = Home::new();
    let args = ["-i", "null", "-f", "tx", "-n", "5000", "-w0", "-z", "-Z", "-l", "99", "-l", "60"];
    let (status, printed, _) = run(home.tool("pkt-gen", &args));
    assert_eq!(status, Some(0));
    assert!(printed.starts_with("Sending on null: 0 queues, 1 threads and 1 cpus.\n"), "{printed}");
    assert!(printed.contains("Sent 5000 packets "), "{printed}");
    assert!(!home.dir.join("lock").exists());
}

/// What the original takes, or warns of and goes on; and its reports are for whole intervals.
#[test]
fn odd_values_end_nothing() {
    let home = Home::new();
    let args = ["-i", "null", "-f", "tx", "-n", "5", "-w0", "-H", "12", "-T", "50"];
    let odd = ["-D", "1:2:3:4:5:6", "-F", "99", "-d", "300.1.1.1"];
    let (status, printed, said) = run(home.tool("pkt-gen", &[&args[..], &odd].concat()));
    assert_eq!(status, Some(0), "{said}");
    let flow = "10.0.0.1 -> 300.1.1.1 (00:00:00:00:00:00 -> 01:02:03:04:05:06)\n";
    assert!(printed.contains(flow), "{printed}");
    assert!(printed.contains("Sent 5 packets 360 bytes 1 events 72 bytes each"), "{printed}");
    assert!(said.contains("invalid frags 99 [1..63], ignore"), "{said}");
    assert!(said.contains("300.1.1.1 is no IPv4 address, using 10.1.0.1"), "{said}");
    let report = said.lines().last().unwrap();
    let usec = report.split(" in ").nth(1).and_then(|rest| rest.split(' ').next());
    let usec: u64 = usec.and_then(|usec| usec.parse().ok()).unwrap_or_else(|| panic!("{said}"));
    assert!(usec >= 50_000, "{report}");
}

#[test]
fn exit_statuses() {
    let home = Home::new();
    let (status, printed, said) = run(home.tool("pkt-gen", &["-h"]));
    assert_eq!((status, printed), (Some(0), String::new()));
    assert!(said.starts_with("Usage:\npkt-gen arguments\n"), "{said}");
    for (args, cause) in [
        (&["-q"][..], "invalid option -- 'q'"),
        (&["-f", "tx"], "missing ifname"),
        (&["-i", "x", "-l", "9"], "bad pktsize 9 [16..65536]"),
        (&["-i", "netmap:nosuch0"], "nosuch0"),
        (&["-i", "pcap:nosuch0"], if is_root() { "nosuch0" } else { "packet socket" }),
        (&["-i", "pcap:lo", "-f", "ping"], "for tx and rx only"),
        (&["-i", "null"], "null only takes packets"),
        (&["-i", "p{0", "-f", "tx", "-P", "/nonexistent"], "/nonexistent"),
    ] {
        let (status, _, said) = run(home.tool("pkt-gen", args));
        assert_eq!(status, Some(255), "{args:?}: {said}");
        assert!(said.contains(cause), "{args:?}: {said}");
    }
    home.is_left_clean();
}

#[test]
fn interfaces_have_addresses_and_a_limit() {
    if skip_without_root("cli::tools::pktgen") {
        return;
    }
    let home = Home::new();
    let [near, far] = [(); 2].map(|()| Netns::quiet("pg"));
    let _pair = near.veth(&far, "pg0", "pg1");
    near.run("ip tuntap add mode tap name pgt && ip link set pgt up");
    near.run("ip link set pg0 address 02:00:00:00:00:77");
    let link = home.dir.join("pkt-gen");
    symlink(env!("CARGO_BIN_EXE_ringway"), &link).unwrap();
    let tool = |args: &[&str]| run(home.program_in(&near, link.to_str().unwrap(), args));
    let (status, _, said) = tool(&["-i", "pg0", "-f", "tx", "-l", "1501"]);
    assert_eq!(status, Some(255));
    assert!(said.contains("larger than the interface's MTU, 1500"), "{said}");
    let (status, printed, said) = tool(&["-i", "pg0", "-f", "tx", "-n", "100", "-w0"]);
    assert_eq!(status, Some(0), "{said}");
    assert!(printed.contains("(02:00:00:00:00:77 -> ff:ff:ff:ff:ff:ff)"), "{printed}");
    assert!(printed.contains("Sent 100 packets 6000 bytes"), "{printed}");
    let (status, printed, said) = tool(&["-i", "tap:pgt", "-f", "tx", "-n", "10", "-w0"]);
    assert_eq!(status, Some(0), "{said}");
    assert!(printed.contains("Sent 10 packets 600 bytes"), "{printed}");
    let mut command = far.command(link.to_str().unwrap());
    command.args(["-i", "pcap:pg1", "-n", "20", "-w0", "-W"]);
    let receiver = Proc::spawn(command);
    receiver.wait_for("waiting for initial packets", LIMIT);
    let (status, printed, said) = tool(&["-i", "pcap:pg0", "-f", "tx", "-n", "20", "-w0"]);
    assert_eq!(status, Some(0), "{said}");
    assert!(printed.contains("(02:00:00:00:00:77 -> ff:ff:ff:ff:ff:ff)"), "{printed}");
    assert!(printed.contains("Sent 20 packets 1200 bytes"), "{printed}");
    let text = success(receiver);
    assert!(text.contains("Received 20 packets 1200 bytes"), "{text}");
}

#[test]
fn threads_share_an_interface_and_a_tap_gives_what_the_stack_sends() {
    if skip_without_root("cli::tools::pktgen") {
        return;
    }
    let home = Home::new();
    let [near, far] = [(); 2].map(|()| Netns::quiet("pg"));
    let _pair = near.veth_queues(&far, "pg0", "pg1", 2);
    near.run("ip tuntap add mode tap name pgt && ip link set pgt up");
    near.run("ip addr add 10.9.9.1/24 dev pgt");
    near.run("ip neigh add 10.9.9.2 lladdr 02:00:00:00:00:02 dev pgt");
    let link = home.dir.join("pkt-gen");
    symlink(env!("CARGO_BIN_EXE_ringway"), &link).unwrap();
    let tool = |netns: &Netns, args: &[&str]| {
        Proc::spawn(home.program_in(netns, link.to_str().unwrap(), args))
    };
    // What goes out by a queue of the one end comes in by the same of the other,
    // which holds 256 frames on their way.
    let args = ["-i", "pg1", "-f", "rx", "-p", "2", "-n", "400", "-w0"];
    let receiver = tool(&far, &args);
    receiver.wait_for("Ready...", LIMIT);
    let args = ["-i", "pg0", "-f", "tx", "-p", "2", "-n", "400", "-w0"];
    let text = success(tool(&near, &args));
    assert!(text.contains("Sent 400 packets 24000 bytes"), "{text}");
    let text = success(receiver);
    // The host's ring is one of them.
    assert!(text.contains("3 queues, 2 threads"), "{text}");
    assert!(text.contains("Received 400 packets 24000 bytes"), "{text}");

    let mut receiver = tool(&near, &["-i", "tap:pgt", "-f", "rx", "-n", "3", "-w0"]);
    receiver.wait_for("Ready...", LIMIT);
    // The stack drops what is sent until it has seen that the device has a carrier now.
    near.enter(|| {
        let socket = UdpSocket::bind("10.9.9.1:0").expect("our address");
        while receiver.is_running() {
            let _ = socket.send_to(b"ringway", "10.9.9.2:9");
        }
    });
    let text = success(receiver);
    assert!(text.contains("Received 3 packets"), "{text}");
}
