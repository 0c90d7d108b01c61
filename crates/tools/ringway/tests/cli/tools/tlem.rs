//! `tlem`.

use super::run;
use crate::home::{Home, LIMIT, find, finish};
use ringway_testkit::{Folder, Netns, Proc, install, skip_without_root};
use rustix::process::Signal;
use std::fs::Permissions;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;

#[test]
fn packets_cross_in_order_and_are_lost_in_one_direction() {
    let home = Home::new();
    let args = ["-i", "netmap:p}0", "-i", "netmap:p{1", "-D", "2m", "-L", "none", "-L", "1"];
    let tlem = Proc::spawn(home.tool("tlem", &args));
    tlem.wait_for("Ready to go", LIMIT);
    let receiver = home.open(&["recv", "p}1", "--verify", "--count", "300"]);
    home.json(&["gen", "p{0", "--count", "300", "--size", "60-1514"]);
    let lines = finish(receiver);
    let verified = find(&lines, "verify");
    assert_eq!([&verified["good"], &verified["reordered"]], [300, 0]);
    home.json(&["gen", "p}1", "--count", "100"]);
    tlem.signal(Signal::INT);
    let (status, said) = tlem.wait();
    assert_eq!(status.code(), Some(0), "{said}");
    let last = said.lines().last().unwrap();
    assert!(last.contains("] 300 -> 300 maxq 0 round "), "{last}");
    assert!(
        last.contains(" drop 0/0, 100 <- 0 maxq 0 round ") && last.ends_with(" drop 0/100"),
        "{last}"
    );
    home.is_left_clean();
}

#[test]
fn bad_usage_is_explained() {
    let home = Home::new();
    for (args, told) in [
        (&["-i", "vale0:a"][..], "give -i twice"),
        (&["-i", "vale0:a", "-i", "vale0:b", "-B", "fast"], "-B fast"),
        (&["-a"], "with -s"),
        (&["-i", "vale0:a", "-i", "vale0:b", "-G", "10.0.0.1"], "give -r"),
    ] {
        let (status, printed, said) = run(home.tool("tlem", args));
        assert_eq!((status, printed), (Some(1), String::new()));
        assert!(said.contains(told) && said.contains("usage: tlem"), "{said}");
    }
    home.is_left_clean();
}

/// The first process of a session, between two pipes.
fn begin(home: &Home, file: &str, args: &[&str]) -> Proc {
    let args = [&["-s", file, "-i", "netmap:p}0", "-i", "netmap:p{1"], args].concat();
    let tlem = Proc::spawn(home.tool("tlem", &args));
    tlem.wait_for("Ready to go", LIMIT);
    tlem
}

/// A later one, which must succeed.
fn later(home: &Home, file: &str, args: &[&str]) {
    let (status, _, said) = run(home.tool("tlem", &[&["-s", file], args].concat()));
    assert_eq!((status, said), (Some(0), String::new()), "{args:?}");
}

fn session(home: &Home) -> String {
    home.dir.join("session").to_str().unwrap().into()
}

#[test]
fn a_session_is_changed_and_ended_by_later_processes() {
    let home = Home::new();
    let file = session(&home);
    let tlem = begin(&home, &file, &["-L", "1"]);
    home.json(&["gen", "p{0", "--count", "100"]);
    tlem.wait_for("] 100 -> 0 maxq", LIMIT);
    later(&home, &file, &["-L", "none"]);
    let receiver = home.open(&["recv", "p}1", "--verify", "--count", "200"]);
    home.json(&["gen", "p{0", "--count", "200"]);
    assert_eq!(find(&finish(receiver), "verify")["good"], 200);
    let (status, _, said) = run(home.tool("tlem", &["-s", &file, "-D", "1m"]));
    assert_eq!(status, Some(1));
    assert!(said.contains("greatest delay") && said.contains("begin another with -M"), "{said}");
    later(&home, &file, &["-a"]);
    assert!(!std::fs::exists(&file).unwrap(), "the session has ended");
    let (status, said) = tlem.wait();
    assert_eq!(status.code(), Some(0), "{said}");
    let last = said.lines().last().unwrap();
    assert!(last.contains("] 300 -> 200 maxq") && last.contains(" drop 0/100, 0 <- "), "{last}");
    let (status, _, said) = run(home.tool("tlem", &["-s", &file, "-a"]));
    assert_eq!(status, Some(1));
    assert!(said.contains("no session is running there"), "{said}");
    home.is_left_clean();
}

#[test]
fn packets_on_their_way_stay_there_when_the_link_changes() {
    let home = Home::new();
    let file = session(&home);
    let tlem = begin(&home, &file, &["-D", "1", "-B", "10m", "-Q", "1m"]);
    let receiver = home.open(&["recv", "p}1", "--verify", "--count", "400"]);
    // One stream: its second half comes when the link is another.
    let sender = home.open(&["gen", "p{0", "--count", "400", "--rate", "400"]);
    // Each is in a status line of its own second.
    tlem.wait_for(" <- 0 maxq", LIMIT);
    later(&home, &file, &["-D", "none", "-B", "5m", "-Q", "none", "-R", "none"]);
    finish(sender);
    let lines = finish(receiver);
    let verified = find(&lines, "verify");
    assert_eq!([&verified["good"], &verified["reordered"]], [400, 0], "{verified}");
    later(&home, &file, &["-a"]);
    assert_eq!(tlem.wait().0.code(), Some(0));
    home.is_left_clean();
}

#[test]
fn a_killed_server_is_succeeded_and_an_interrupted_one_leaves_nothing() {
    let home = Home::new();
    let file = session(&home);
    begin(&home, &file, &[]).kill();
    assert!(std::fs::exists(&file).unwrap());
    let next = begin(&home, &file, &["-L", "0.5"]);
    later(&home, &file, &["-L", "0.1", "-i", "netmap:p}0", "-i", "netmap:p{1"]);
    next.signal(Signal::INT);
    assert_eq!(next.wait().0.code(), Some(0));
    let left: Vec<_> = std::fs::read_dir(&home.dir).unwrap().flatten().collect();
    let left: Vec<_> = left.iter().map(|entry| entry.file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().starts_with("session")), "{left:?}");
    home.is_left_clean();
}

#[test]
fn hostile_requests_are_refused_and_the_session_goes_on() {
    let home = Home::new();
    let file = session(&home);
    let tlem = begin(&home, &file, &[]);
    for (request, told) in [
        (&b""[..], "tlem: refused: the request is incomplete"),
        (b"-L\x001", "incomplete"),
        (b"GET / HTTP/1.1\r\n\r\n\0", "not an option"),
        (b"-L\0fast\0", "-L fast: not understood"),
        (b"-M\x001\0", "-M: is said when a session begins"),
        (b"\xff\xfe\0", "not an option"),
        (&[b'v'; 1 << 17], ""),
    ] {
        let mut stream = UnixStream::connect(&file).unwrap();
        // The server reads no more than it needs to refuse it.
        let _ = stream.write_all(request).and_then(|()| stream.shutdown(Shutdown::Write));
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        assert!(answer.contains(told), "{request:?}: {answer}");
    }
    // One that goes before it is answered.
    drop(UnixStream::connect(&file).unwrap());
    let long = "x".repeat(1 << 16);
    let (status, _, said) = run(home.tool("tlem", &["-s", &file, "-v", "-C0", "-L", &long]));
    assert_eq!(status, Some(1));
    assert!(said.contains("too long; shorten them"), "{said}");
    later(&home, &file, &["-L", "1"]);
    home.json(&["gen", "p{0", "--count", "100"]);
    later(&home, &file, &["-a"]);
    let (_, said) = tlem.wait();
    assert!(said.lines().last().unwrap().contains(" drop 0/100, "), "{said}");
    home.is_left_clean();
}

/// Where every user may make files.
#[test]
fn users_have_no_part_in_each_others_sessions() {
    if skip_without_root("cli::tlem::users_have_no_part_in_each_others_sessions") {
        return;
    }
    let home = Home::new();
    let folder = Folder::new();
    let shared = folder.path().join("shared");
    std::fs::create_dir(&shared).unwrap();
    std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    std::fs::set_permissions(&shared, Permissions::from_mode(0o1777)).unwrap();
    let file = shared.join("session");
    let file = file.to_str().unwrap();
    let tlem = begin(&home, file, &["-L", "1"]);
    // A program of its own place, which another user can reach.
    let program = folder.path().join("tlem");
    install([env!("CARGO_BIN_EXE_ringway")], &program);
    for args in [&["-a"][..], &["-L", "none"]] {
        let mut other = Command::new(&program);
        other.args(["-s", file]).args(args).uid(65534).gid(65534).current_dir("/");
        let (status, _, said) = run(other);
        assert_eq!(status, Some(1));
        assert!(said.contains("name a file in a directory of your own"), "{said}");
    }
    // What another user has put there first is no session of ours.
    std::os::unix::fs::chown(file, Some(65534), None).unwrap();
    let (status, _, said) = run(home.tool("tlem", &["-s", file, "-a"]));
    assert_eq!(status, Some(1));
    assert!(said.contains("belongs to another user; name a file"), "{said}");
    std::os::unix::fs::chown(file, Some(0), None).unwrap();
    later(&home, file, &["-a"]);
    assert_eq!(tlem.wait().0.code(), Some(0));
    home.is_left_clean();
}

#[test]
fn cores_memory_and_bursts_are_those_asked_for() {
    let home = Home::new();
    let tlem = begin(&home, &session(&home), &["-C", "0", "-H", "-b", "1", "-d", "1m", "-D", "1m"]);
    let status = std::fs::read_to_string(format!("/proc/{}/status", tlem.pid())).unwrap();
    assert!(status.contains("\nCpus_allowed_list:\t0\n"), "{status}");
    let maps = std::fs::read_to_string(format!("/proc/{}/smaps", tlem.pid())).unwrap();
    let is_advised = |line: &&str| line.starts_with("VmFlags:") && line.contains(" hg");
    // A kernel that has none does not know the advice.
    if std::fs::exists("/sys/kernel/mm/transparent_hugepage").unwrap() {
        assert_eq!(maps.lines().filter(is_advised).count(), 2, "one of each direction");
    }
    let receiver = home.open(&["recv", "p}1", "--verify", "--count", "300"]);
    home.json(&["gen", "p{0", "--count", "300"]);
    assert_eq!(find(&finish(receiver), "verify")["good"], 300);
    tlem.signal(Signal::INT);
    assert_eq!(tlem.wait().0.code(), Some(0));
    let (status, _, said) = run(home.tool("tlem", &["-i", "p}0", "-i", "p{1", "-C", "1023"]));
    assert_eq!(status, Some(1));
    assert!(said.contains("none of these cores is here"), "{said}");
    home.is_left_clean();
}

/// Two networks with tlem between them, and behind each a host with an address of another network.
#[test]
fn networks_on_both_sides_ping_each_other_through_route_mode() {
    if skip_without_root("cli::tlem::networks_on_both_sides_ping_each_other_through_route_mode") {
        return;
    }
    let home = Home::new();
    let [left, middle, right] = [(); 3].map(|()| Netns::quiet("tl"));
    let _near = left.veth(&middle, "tl0", "tl1");
    let _far = right.veth(&middle, "tl3", "tl2");
    middle.run("ip addr add 10.98.1.1/24 dev tl1 && ip addr add 10.98.2.1/24 dev tl2");
    left.run("ip addr add 10.98.1.2/24 dev tl0 && ip addr add 10.97.1.1/32 dev tl0");
    left.run("ip route add default via 10.98.1.1");
    right.run("ip addr add 10.98.2.2/24 dev tl3 && ip addr add 10.97.2.1/32 dev tl3");
    right.run("ip route add default via 10.98.2.1");
    // `ip netns exec` runs a program under the name of its file.
    let program = home.dir.join("tlem");
    symlink(env!("CARGO_BIN_EXE_ringway"), &program).unwrap();
    let program = program.to_str().unwrap();
    let ports = ["-i", "netmap:tl1", "-i", "netmap:tl2", "-r"];
    let tlem = |more: &[&str]| home.program_in(&middle, program, &[&ports[..], more].concat());
    let routed = Proc::spawn(tlem(&["-G", "10.98.2.2", "-G", "10.98.1.2"]));
    routed.wait_for("Ready to go", LIMIT);
    let ping = |from: &Netns, args: &str| {
        let text = from.run(&format!("ping -c 3 -i 0.2 -w 30 {args}"));
        assert_eq!(text.matches(" ttl=64 ").count(), 3, "{text}");
    };
    // The first of them waits for both sides' ARP.
    ping(&left, "10.98.2.2");
    ping(&right, "10.98.1.2");
    ping(&left, "10.97.2.1");
    ping(&right, "-I 10.97.2.1 10.97.1.1");
    let known = |netns: &Netns| netns.run("ip neigh show");
    let mac = |name: &str| middle.run(&format!("cat /sys/class/net/{name}/address"));
    assert!(known(&left).contains(mac("tl1").trim()), "{}", known(&left));
    assert!(known(&right).contains(mac("tl2").trim()), "{}", known(&right));
    routed.signal(Signal::INT);
    let (status, said) = routed.wait();
    assert_eq!(status.code(), Some(0), "{said}");
    // Without gateways only the networks of the interfaces are there.
    let routed = Proc::spawn(tlem(&[]));
    routed.wait_for("Ready to go", LIMIT);
    ping(&left, "10.98.2.2");
    let lost = left.try_run("ping -c 1 -W 1 10.97.2.1");
    assert_eq!(lost.status.code(), Some(1));
    routed.signal(Signal::INT);
    let (_, said) = routed.wait();
    let last = said.lines().last().unwrap();
    assert!(!last.contains(" drop 0/0, "), "{last}");
    for (more, told) in [
        (&["-G", "10.99.0.1"][..], "netmap:tl2: the gateway 10.99.0.1 is in no network"),
        (&["-G", "none", "-G", "10.98.1.1"], "netmap:tl1: the gateway 10.98.1.1 is in no network"),
    ] {
        let (status, _, said) = run(tlem(more));
        assert_eq!(status, Some(1));
        assert!(said.contains(told), "{said}");
    }
    middle.run("ip addr del 10.98.2.1/24 dev tl2");
    let (_, _, said) = run(tlem(&[]));
    assert!(said.contains("netmap:tl2: has no IPv4 address to route by; give it one"), "{said}");
    home.is_left_clean();
}

#[test]
fn route_mode_needs_interfaces() {
    let home = Home::new();
    let (status, _, said) = run(home.tool("tlem", &["-i", "vale0:a", "-i", "vale0:b", "-r"]));
    assert_eq!(status, Some(1));
    assert!(said.contains("vale0:a: is no interface") && said.contains("name two"), "{said}");
    home.is_left_clean();
}
