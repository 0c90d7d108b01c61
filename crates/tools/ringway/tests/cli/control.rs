//! `switch`, `ports`, and what every command says when it fails.

use crate::home::{Home, LIMIT, find, finish, lines, sentence};
use ringway_testkit::{Folder, Netns, Proc, install, skip_unless, skip_without_root};
use rustix::process::{Pid, Signal, kill_process};
use std::{fs, process::Command, time::Instant};

#[test]
fn a_switch_stays_until_it_is_deleted() {
    let home = Home::new();
    assert!(home.json(&["switch", "list"]).is_empty());
    assert!(home.run(&["switch", "new", "vale0"]).status.success());
    let listed = home.json(&["switch", "list"]);
    assert_eq!(find(&listed, "switch")["name"], "vale0");
    assert!(home.json(&["switch", "stats", "vale0"]).is_empty());
    assert!(home.failure(&["switch", "new", "vale0"]).contains("vale0: there is such a switch"));
    assert!(home.run(&["switch", "delete", "vale0"]).status.success());
    home.is_left_clean();
    assert!(home.failure(&["switch", "delete", "vale0"]).contains("vale0: there is no such"));
    assert!(home.failure(&["switch", "stats", "vale0"]).contains("vale0: there is no such"));
    home.is_left_clean();
}

#[test]
fn stats_tell_what_each_port_has_sent_and_received() {
    let home = Home::new();
    let receiver = home.open(&["recv", "vale0:b"]);
    let listed = home.json(&["switch", "list"]);
    assert_eq!(find(&listed, "switch")["ports"][0]["name"], "vale0:b");
    assert_eq!(find(&listed, "switch")["forwarding"], "learning, 300 s");
    let choose = |args: &[&str]| assert!(home.run(args).status.success(), "{args:?}");
    choose(&["switch", "port", "vale0:b", "--trunk", "10,20-22", "--native", "1", "--lossless"]);
    choose(&["switch", "forward", "vale0", "flood"]);
    let listed = home.json(&["switch", "list"]);
    let part = &find(&listed, "switch")["ports"][0]["part"];
    assert_eq!(part, "trunk 10,20-22, native 1; lossless 1000 ms");
    assert_eq!(find(&listed, "switch")["forwarding"], "flood");
    choose(&["switch", "port", "vale0:b", "--isolated"]);
    let shown = String::from_utf8(home.run(&["switch", "port", "vale0:b"]).stdout).unwrap();
    assert_eq!(shown, "vale0:b: trunk 10,20-22, native 1; lossless 1000 ms; isolated\n");
    let shown = home.json(&["switch", "port", "vale0:b"]);
    let shown = find(&shown, "switch_port_settings");
    assert_eq!(shown["trunk"], serde_json::json!([10, 20, 21, 22]));
    assert_eq!([&shown["isolated"], &shown["native"]], [&true.into(), &serde_json::Value::from(1)]);
    choose(&["switch", "port", "vale0:b", "--no-isolated"]);
    let alone = home.run(&["switch", "port", "vale0:b", "--swap-buffers"]);
    assert!(alone.status.success());
    let said = String::from_utf8(alone.stderr).unwrap();
    assert!(said.contains("vale0:b has a region for itself") && said.contains("@1"), "{said}");
    let early = home.open(&["recv", "vale0:early@1"]);
    let alone = home.run(&["switch", "port", "vale0:early", "--swap-buffers"]);
    let said = String::from_utf8(alone.stderr).unwrap();
    assert!(said.contains("no other port is in its region yet"), "{said}");
    early.signal(Signal::INT);
    finish(early);
    let shown = home.json(&["switch", "port", "vale0:b"]);
    assert_eq!(find(&shown, "switch_port_settings")["swap_buffers"], true);
    choose(&["switch", "port", "vale0:b", "--no-swap-buffers"]);
    let limits = ["--rate", "100Mbit/s", "--storm", "1000pps"];
    let said = home.failure(&[&["switch", "port", "vale0:b"][..], &limits].concat());
    assert!(said.contains("--no-rate or --lossy"), "{said}");
    choose(&[&["switch", "port", "vale0:b", "--lossy"][..], &limits].concat());
    let shown = home.json(&["switch", "port", "vale0:b"]);
    let shown = find(&shown, "switch_port_settings");
    let limits =
        ["rate_bits_per_second", "burst_bytes", "storm_frames_per_second"].map(|name| &shown[name]);
    assert_eq!(limits, [100_000_000, 3_125_000, 1000]);
    choose(&["switch", "port", "vale0:b", "--rate", "1Mbps", "--burst", "9kB"]);
    let listed = home.json(&["switch", "list"]);
    let part = &find(&listed, "switch")["ports"][0]["part"];
    let limits = "rate 1.000 Mbit/s, burst 9000 bytes; floods 1000 pps";
    assert_eq!(*part, *format!("trunk 10,20-22, native 1; {limits}"));
    choose(&["switch", "port", "vale0:b", "--no-rate", "--no-storm"]);
    let kinds = ["--storm-broadcast", "100pps", "--storm-broadcast-burst", "500"];
    let more = ["--storm-multicast", "200", "--storm-unknown", "300"];
    choose(&[&["switch", "port", "vale0:b"][..], &kinds, &more].concat());
    let shown = home.json(&["switch", "port", "vale0:b"]);
    let shown = find(&shown, "switch_port_settings");
    let limits = ["broadcast", "multicast", "unknown"].map(|kind| {
        ["frames_per_second", "burst_frames"].map(|name| &shown[format!("storm_{kind}_{name}")])
    });
    assert_eq!(limits, [[100, 500], [200, 200], [300, 300]]);
    let listed = home.json(&["switch", "list"]);
    let part = find(&listed, "switch")["ports"][0]["part"].as_str().unwrap().to_owned();
    assert!(part.contains("broadcasts 100 pps, burst 500 frames; multicasts 200 pps"), "{part}");
    assert!(part.contains("to unknown addresses 300 pps"), "{part}");
    choose(&["switch", "port", "vale0:b", "--no-storm-broadcast", "--no-storm-multicast"]);
    choose(&["switch", "port", "vale0:b", "--no-storm-unknown"]);
    let alone = home.run(&["switch", "port", "vale0:b", "--multicast-router", "always"]);
    assert!(alone.status.success());
    let said = String::from_utf8(alone.stderr).unwrap();
    assert!(said.contains("ringway switch multicast vale0 snooping"), "{said}");
    let shown = home.json(&["switch", "port", "vale0:b"]);
    assert_eq!(find(&shown, "switch_port_settings")["multicast_router"], "always");
    choose(&["switch", "port", "vale0:b", "--multicast-router", "auto"]);
    let zero = home.failure(&[
        "switch",
        "port",
        "vale0:b",
        "--storm-unknown=9",
        "--storm-unknown-burst=0",
    ]);
    assert!(zero.contains("0 flooded frames at once") && zero.contains("from 1 to"), "{zero}");
    for (wrong, remedy) in [("--rate=100", "100Mbit/s"), ("--storm=5Mbps", "1000pps")] {
        let output = home.run(&["switch", "port", "vale0:b", wrong]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(remedy), "{said}");
    }
    assert!(home.failure(&["switch", "port", "vale0:none"]).contains("switch list"));
    choose(&["switch", "port", "vale0:b", "--no-vlan", "--lossy"]);
    home.json(&["gen", "vale0:a", "--count", "100", "--size", "60"]);
    let watch = home.start(&["switch", "stats", "--watch"]);
    watch.wait_for(r#""received_packets":100,"received_bytes":6000"#, LIMIT);
    // Totals at once, and rates beside them from the second look on.
    watch.wait_for(r#""sent_packets_per_s":0.0"#, LIMIT);
    watch.signal(Signal::INT);
    let (status, printed) = watch.wait();
    assert!(status.success());
    let printed = lines(&printed);
    assert!(printed[0].get("interval_s").is_none(), "{}", printed[0]);
    let second = printed.iter().find(|line| line.get("interval_s").is_some()).expect("rates");
    assert!(second["interval_s"].as_f64().unwrap() > 0.0, "{second}");
    assert_eq!(second["received_packets"], 100);
    assert!(!home.run(&["switch", "stats", "--totals"]).status.success(), "without --watch");
    let text = String::from_utf8(home.run(&["switch", "stats"]).stdout).unwrap();
    assert!(text.contains("received packets") && text.contains("vale0:b"), "{text}");
    receiver.signal(Signal::INT);
    finish(receiver);
    home.is_left_clean();
}

#[test]
fn ports_are_listed_while_they_are_open() {
    let home = Home::new();
    let text = String::from_utf8(home.run(&["ports"]).stdout).unwrap();
    assert_eq!(text, "no ports are open\n");
    let receiver = home.open(&["recv", "vale0:b"]);
    let ports = home.json(&["ports"]);
    let port = find(&ports, "port");
    assert_eq!((&port["name"], &port["users"]), (&"vale0:b".into(), &1.into()));
    let text = String::from_utf8(home.run(&["ports"]).stdout).unwrap();
    assert!(text.contains("vale0:b") && text.contains("1/1"), "{text}");
    receiver.signal(Signal::INT);
    finish(receiver);
    home.is_left_clean();
}

#[test]
fn how_full_a_ring_is_is_shown() {
    let home = Home::new();
    // Nothing takes what it sends.
    let sender = home.open(&["gen", "p{0"]);
    let deadline = Instant::now() + LIMIT;
    let ring = loop {
        let rings = home.json(&["ports", "--rings"]);
        let sent =
            rings.into_iter().find(|ring| ring["port"] == "p{0" && ring["receives"] == false);
        let ring = sent.expect("the sender's ring");
        if ring["fill"] == 1023 {
            break ring;
        }
        assert!(Instant::now() < deadline, "{ring}");
    };
    assert_eq!((&ring["fill"], &ring["slots"]), (&1023.into(), &1024.into()));
    let text = String::from_utf8(home.run(&["ports", "--rings"]).stdout).unwrap();
    assert!(text.contains(" 1023/1024 "), "{text}");
    let rows = home.json(&["top", "--interval", "1ms"]);
    let port = rows.iter().find(|row| row["of"] == "port" && row["name"] == "p{0").unwrap();
    assert_eq!(port["fill_percent"], 100.0);
    let text = String::from_utf8(home.run(&["top", "--once", "--interval", "1ms"]).stdout).unwrap();
    assert!(text.contains(" 100% "), "{text}");
    sender.signal(Signal::INT);
    finish(sender);
    home.is_left_clean();
}

#[test]
fn failures_name_the_port_the_cause_and_the_remedy() {
    let home = Home::new();
    for (args, parts) in [
        (&["recv", "value:a"][..], &["value:a", "vale<switch>:<port>"][..]),
        (&["gen", "p{"], &["p{", "<name>{<id>"]),
        (&["recv", "netmap:nosuch0"], &["nosuch0"]),
        (&["switch", "fdb", "vale7"], &["vale7", "no such switch", "ringway switch list"]),
        (&["doctor", "nosuch0"], &["nosuch0", "no such interface", "ip link"]),
        (&["gen", "p{1@conf:slots=4", "--size", "9000"], &["p{1", "9000 bytes", "send shorter"]),
        (&["gen", "p{0", "--count", "5"], &["p{0", "5 packets were not taken", "start a receiver"]),
        (&["gen", "p{0", "-n", "7", "--size", "3000"], &["p{0", "7 packets were not taken"]),
        (&["gen", "p{0", "--pcap", "/nonexistent"], &["/nonexistent", "check the path"]),
        (&["recv", "p}0", "-n", "5", "--idle", "50ms"], &["p}0", "0 of 5", "drops"]),
        (&["recv", "p}0", "--verify", "-d", "50ms"], &["p}0", "no frame of a generator"]),
        (&["bridge", "p{0"], &["p{0", "only a network interface"]),
        (&["bridge", "p{0", "p{0"], &["p{0 and p{0 are one port", "name another port"]),
        (&["switch", "attach", "vale0", "nosuch0"], &["nosuch0"]),
        (&["switch", "new", "bridge0"], &["bridge0"]),
        (&["gen", "vale2:"], &["vale2:", "has no name; write vale0:a, with 1 to 15 bytes"]),
        (&["recv", "vale2:a@conf:slots=99999999"], &["for 99999999 tx slots", "port has 4096"]),
    ] {
        let said = home.failure(args);
        for part in parts {
            assert!(said.contains(part), "{args:?}: `{part}` is not in: {said}");
        }
    }
    home.is_left_clean();
}

#[test]
fn a_wrong_option_is_explained_before_anything_starts() {
    let home = Home::new();
    for args in [
        &["gen", "p{0", "--rate", "fast"][..],
        &["gen", "p{0", "--rate", "100000000000000000000"],
        &["recv", "p}0", "--duration", "ten"],
        &["top", "--interval", "0s"],
        &["shape", "p{0", "p{1", "--delay", "20x"],
        &["gen", "p{0", "--burst", "0"],
        &["gen"],
        &["recv", "p}0", "--count", "many"],
        &["switch"],
    ] {
        assert_eq!(home.run(args).status.code(), Some(2), "{args:?}");
    }
    assert!(!home.dir.join("lock").exists());
}

#[test]
fn a_program_that_cannot_be_run_is_told_by_the_status() {
    let home = Home::new();
    let file = home.dir.join("file");
    fs::write(&file, "").unwrap();
    for (program, status) in [("nosuchprogram", 127), (file.to_str().unwrap(), 126)] {
        let output = home.run(&["run", "--", program]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(status), "{said}");
        assert!(said.contains(program) && said.contains("check its path"), "{said}");
    }
    assert_eq!(home.run(&["run", "--", "sh", "-c", "exit 3"]).status.code(), Some(3));
}

/// The same of an end of a pipe, and a monitor of it is what the note says.
#[test]
fn an_end_of_a_pipe_that_is_shared_is_said_to_be() {
    let home = Home::new();
    let said = |args: &[&str]| {
        let output = home.command(args).output().unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    let first = home.open(&["pong", "q{1"]);
    let sending = said(&["gen", "q{1", "-n", "1"]);
    assert!(sending.contains("q{1: another program has the transmit ring"), "{sending}");
    assert!(sending.contains("open another pipe for each"), "{sending}");
    let receiving = said(&["recv", "q{1", "-d", "50ms"]);
    assert!(receiving.contains("another program receives from this port"), "{receiving}");
    assert!(receiving.contains("a monitor, `ringway recv 'q{1/r'`"), "{receiving}");
    assert_eq!(said(&["recv", "q{1/r", "-d", "50ms"]), "");
    first.signal(Signal::INT);
    finish(first);
    home.is_left_clean();
}

/// Programs that open one port of a switch share its rings: each is told, and the listing shows it.
#[test]
fn a_port_of_a_switch_that_is_shared_is_said_to_be() {
    let home = Home::new();
    let said = |args: &[&str]| {
        let output = home.command(args).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let first = home.open(&["pong", "vale0:a"]);
    assert_eq!(said(&["gen", "vale0:b", "-n", "1"]), "");
    let sending = said(&["gen", "vale0:a", "-n", "1"]);
    assert!(sending.contains("vale0:a: another program has the transmit ring"), "{sending}");
    let receiving = said(&["recv", "vale0:a", "-d", "50ms"]);
    assert!(receiving.contains("another program receives from this port"), "{receiving}");
    let second = home.open(&["pong", "vale0:a"]);
    let rings = home.json(&["ports", "--rings"]);
    let users = |receives: bool| {
        let ring = rings.iter().find(|ring| ring["receives"] == receives).unwrap();
        ring["users"].as_u64()
    };
    assert_eq!([users(true), users(false)], [Some(2); 2]);
    for program in [first, second] {
        program.signal(Signal::INT);
        finish(program);
    }
    home.is_left_clean();
}

/// Nothing can be loaded into it, and nothing would tell that it does without.
#[test]
fn a_program_that_loads_no_libraries_is_refused() {
    let home = Home::new();
    let (source, program) = (home.dir.join("own.c"), home.dir.join("own"));
    fs::write(&source, "int main(void) { return 0; }\n").unwrap();
    let mut compiler = Command::new("cc");
    let built = compiler.arg("-static").arg(&source).arg("-o").arg(&program).status().unwrap();
    assert!(built.success());
    let program = program.to_str().unwrap();
    let output = home.run(&["run", "--", program]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(126), "{said}");
    assert!(said.contains(&format!("{program}: statically linked")), "{said}");
    assert!(said.contains("link it dynamically"), "{said}");
    assert_eq!(home.run(&["run", "--", "env", program]).status.code(), Some(0));
}

/// A switch, or an interface, is no port of a switch.
#[test]
fn a_port_of_a_switch_is_named_with_its_switch() {
    let home = Home::new();
    let port = home.open(&["pong", "vale0:a"]);
    for (args, expected) in [
        (&["vale0"][..], "vale0 is a switch; name one of its ports, as vale0:a"),
        (&["a"], "a: not the name of a port of a switch; write vale0:a"),
        (&["veth-b"], "veth-b: not the name of a port of a switch; write vale0:veth-b"),
        (&["vale0", "--isolated"], "vale0 is a switch; name one of its ports, as vale0:a"),
        (&["a", "--isolated"], "write vale0:a"),
    ] {
        let output = home.run(&[&["switch", "port"], args].concat());
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && said.contains(expected), "{args:?}: {said}");
    }
    port.signal(Signal::INT);
    finish(port);
    home.is_left_clean();
}

/// What means nothing is not taken to mean something else.
#[test]
fn switches_refuse_what_means_nothing() {
    let home = Home::new();
    for (args, parts) in [
        (&["new", "vale0:a"][..], &["vale0:a", "not the name of a switch", "vale0"][..]),
        (&["attach", "vale0:a", "lo"], &["vale0:a", "not the name of a switch"]),
        (&["delete", "switch0"], &["switch0", "not the name of a switch"]),
        (&["forward", "vale0", "learning", "--over", "a"], &["--over is for `hash` alone"]),
        (&["forward", "vale0", "flood", "--ageing", "9"], &["--ageing is for `learning` alone"]),
        (&["forward", "vale0", "hash", "--drop-unknown"], &["--drop-unknown", "`static`"]),
        (
            &["fdb", "vale1", "show", "vale0"],
            &["vale1", "what to do comes first", "fdb show vale1"],
        ),
        (
            &["mdb", "vale1", "show", "vale0"],
            &["vale1", "what to do comes first", "mdb show vale1"],
        ),
        (&["fdb", "--port", "a", "flush", "vale0"], &["options go behind", "fdb show SWITCH"]),
        (&["mdb", "--vlan", "5", "show", "vale0"], &["options go behind", "mdb show SWITCH"]),
    ] {
        let said = home.failure(&[&["switch"], args].concat());
        for part in parts {
            assert!(said.contains(part), "{args:?}: {said}");
        }
    }
    let add = ["mirror", "add", "vale0", "m", "--all", "--to", "b", "--user", "no such user"];
    for (args, part) in [
        (
            &["port", "vale0:a", "--trunk", "20-10"][..],
            "`20-10` ends before it begins: write 10-20",
        ),
        (&["port", "vale0:a", "--access", "10", "--native", "5"], "cannot be used with"),
        (&["port", "vale0:a", "--max-addresses", "99999"], "not a number from 1 to 1024"),
        (&["port", "vale0:a", "--max-addresses", "1025"], "not a number from 1 to 1024"),
        (&["port", "vale0:a", "--access", "5000"], "not a number from 1 to 4094"),
        (&["forward", "vale0", "learning", "--ageing", "99999999999"], "4294967295 is the most"),
        (&add, "there is no user `no such user` here; write a name or a number"),
    ] {
        let output = home.run(&[&["switch"], args].concat());
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(part), "{said}");
    }
    assert!(!home.dir.join("lock").exists());
}

/// A veth has the index of its peer, in the peer's namespace, more often than not.
#[test]
fn doctor_knows_a_veth_with_the_index_of_its_peer() {
    if skip_without_root("cli::control::doctor_knows_a_veth") {
        return;
    }
    let home = Home::new();
    let [near, far] = [(); 2].map(|()| Netns::quiet("dr"));
    let peer = far.name().expect("it has a name");
    near.run(&format!("ip link add dr0 index 77 type veth peer name dr1 index 77 netns {peer}"));
    let mut doctor = near.command(env!("CARGO_BIN_EXE_ringway"));
    let output = doctor.args(["doctor"]).env("RINGWAY_DIR", &home.dir).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("ok      dr0             veth, "), "{said}");
}

/// Where the capabilities are those of a user namespace, no interface can be opened.
#[test]
fn doctor_says_that_a_user_namespace_has_no_bpf() {
    let home = Home::new();
    let mut doctor = Command::new("unshare");
    doctor.args(["-Urn", env!("CARGO_BIN_EXE_ringway"), "doctor"]).env("RINGWAY_DIR", &home.dir);
    let output = doctor.env_remove("RINGWAY_SOCKET").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let test = "doctor_says_that_a_user_namespace_has_no_bpf";
    if skip_unless(!said.is_empty(), test, "user namespaces are not for this user") {
        return;
    }
    assert!(said.contains("missing BPF "), "{said}");
    assert!(said.contains("-> start ringwayd outside of the user namespace"), "{said}");
    // Of all interfaces it has one, which needs no line.
    assert!(!said.contains(" rx and "), "{said}");
}

/// A port of a switch needs no network namespace, nor privileges in one.
#[test]
fn a_switch_port_opens_in_a_user_namespace() {
    let home = Home::new();
    let inside = |args: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["-Ur", env!("CARGO_BIN_EXE_ringway")]).args(args);
        command.env("RINGWAY_DIR", &home.dir).env_remove("RINGWAY_SOCKET");
        command
    };
    let inside_one = Command::new("unshare").args(["-Ur", "true"]).status();
    let test = "a_switch_port_opens_in_a_user_namespace";
    let reason = "user namespaces are not for this user";
    if skip_unless(inside_one.is_ok_and(|done| done.success()), test, reason) {
        return;
    }
    // The one starts the daemon; the other meets it.
    let receiver = Proc::spawn(inside(&["recv", "vale0:b", "--json", "--count", "100"]));
    receiver.wait_for(r#""type":"open""#, LIMIT);
    let sent = inside(&["gen", "vale0:a", "--count", "100"]).output().unwrap();
    assert!(sent.status.success(), "{sent:?}");
    assert_eq!(find(&finish(receiver), "summary")["packets"], 100);
    home.is_left_clean();
}

/// What `z` means beside one direction is netmap's rule, and not what a reader of `/rz` expects.
#[test]
fn a_zero_copy_monitor_of_one_direction_is_told_that_it_gets_both() {
    let home = Home::new();
    let target = home.open(&["recv", "p}0"]);
    for (monitor, is_told) in
        [("p}0/rz", true), ("p}0/zt", true), ("p}0/r", false), ("p}0/z", false)]
    {
        let output = home.run(&["recv", monitor, "-d", "50ms"]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{said}");
        let told = said.contains("gets what is received and what is sent (S-MON-1)");
        assert_eq!(told, is_told, "{monitor}: {said}");
    }
    target.signal(Signal::INT);
    finish(target);
    home.is_left_clean();
}

#[test]
fn an_interface_that_is_down_or_shared_is_said_to_be() {
    if skip_without_root("cli::control::an_interface_that_is_down_or_shared_is_said_to_be") {
        return;
    }
    let home = Home::new();
    let [near, far] = [(); 2].map(|()| Netns::quiet("dn"));
    let _pair = near.veth(&far, "dn-a", "dn1");
    let ringway = |args: &[&str]| home.command_in(&near, args);
    let said = |args: &[&str]| {
        let output = ringway(args).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    assert_eq!(said(&["recv", "netmap:dn-a", "-d", "50ms"]), "");
    near.run("ip link set dn-a down");
    let down = "ringway: dn-a: the interface is down, so nothing arrives or leaves; `ip link set dn-a up`\n";
    assert_eq!(said(&["recv", "netmap:dn-a", "-d", "50ms"]), down);
    assert_eq!(said(&["switch", "attach", "vale0", "dn-a"]), down);
    assert_eq!(said(&["switch", "delete", "vale0"]), "");
    near.run("ip link set dn-a up");
    let first = Proc::spawn(ringway(&["recv", "netmap:dn-a", "--json"]));
    first.wait_for(r#""type":"open""#, LIMIT);
    let shared = said(&["recv", "netmap:dn-a", "-d", "50ms"]);
    assert!(shared.contains("another program receives from this port"), "{shared}");
    assert!(shared.contains("`ringway recv netmap:dn-a/r`"), "{shared}");
    assert!(!shared.contains("its filter"), "{shared}");
    let refused =
        ringway(&["recv", "netmap:dn-a", "--filter", "udp", "-d", "50ms"]).output().unwrap();
    let refused = String::from_utf8(refused.stderr).unwrap();
    assert!(refused.contains("dn-a: in use without a filter; close"), "{refused}");
    first.signal(Signal::INT);
    finish(first);
    let first = Proc::spawn(ringway(&[
        "recv",
        "netmap:dn-a",
        "--filter",
        "udp",
        "--sample",
        "3",
        "--json",
    ]));
    first.wait_for(r#""type":"open""#, LIMIT);
    let joined = said(&["recv", "netmap:dn-a", "-d", "50ms"]);
    assert!(joined.contains("dn-a: its filter `udp`, one in 3 chooses what arrives"), "{joined}");
    let refused = |netns: &Netns, args: &[&str]| {
        let output = home.command_in(netns, args).output().unwrap();
        assert!(!output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    for args in [&["filter", "set", "dn-a", "icmp"][..], &["filter", "clear", "dn-a"]] {
        let elsewhere = refused(&far, args);
        assert!(elsewhere.contains("open in this network namespace"), "{elsewhere}");
        assert!(elsewhere.contains("one has it in another") && elsewhere.contains("ip netns exec"));
    }
    let swapped = refused(&near, &["filter", "set", "icmp", "dn-a"]);
    assert!(swapped.contains("`ringway filter set dn-a icmp`"), "{swapped}");
    first.signal(Signal::INT);
    finish(first);
    home.is_left_clean();
}

#[test]
fn a_missing_daemon_is_said_to_be_missing() {
    let home = Home::new();
    let alone = home.dir.join("ringway");
    install([env!("CARGO_BIN_EXE_ringway")], &alone);
    let mut command = Command::new(&alone);
    command.args(["ports"]).env("RINGWAY_DIR", &home.dir).env("PATH", &home.dir);
    let said = sentence(command.env_remove("RINGWAY_SOCKET").output().unwrap());
    assert!(said.contains("cannot start ringwayd") && said.contains("make build"), "{said}");

    let mut named = home.command(&["ports"]);
    let said = sentence(named.env("RINGWAY_SOCKET", "/nonexistent/socket").output().unwrap());
    assert!(said.contains("cannot reach ringwayd at /nonexistent/socket"), "{said}");
}

/// A private daemon is configured by a file in the user's configuration directory.
/// A program without a daemon beside it says so, and the folder in which it would have started one is gone.
#[test]
fn a_daemon_that_is_not_there_leaves_nothing() {
    let home = Home::new();
    let (alone, session) = (home.dir.join("ringway"), home.dir.join("session"));
    install([env!("CARGO_BIN_EXE_ringway")], &alone);
    fs::create_dir(&session).unwrap();
    let mut command = Command::new(&alone);
    command.args(["recv", "vale0:a"]).env("PATH", &home.dir).env("XDG_RUNTIME_DIR", &session);
    let said = sentence(command.env_remove("RINGWAY_DIR").output().unwrap());
    assert!(said.contains("there is no such program beside"), "{said}");
    assert_eq!(fs::read_dir(&session).unwrap().count(), 0);
}

#[test]
fn a_private_daemon_reads_the_users_configuration() {
    let home = Home::new();
    let folder = Folder::new();
    let config = folder.path().join("ringway/ringwayd.toml");
    fs::create_dir(config.parent().unwrap()).unwrap();
    let with = |args: &[&str]| {
        let mut command = home.command(args);
        command.env("XDG_CONFIG_HOME", folder.path());
        command.output().unwrap()
    };
    fs::write(&config, "max_bridges = 1\n").unwrap();
    assert!(with(&["switch", "new", "vale0"]).status.success());
    let said = sentence(with(&["switch", "new", "vale1"]));
    assert!(said.contains("max_bridges"), "{said}");
    assert!(with(&["switch", "delete", "vale0"]).status.success());
    home.is_left_clean();
    for (text, remedy) in [
        ("timestamps = true\nnic_slts = 5\n", "line 2: unknown field `nic_slts`"),
        ("nic_slots = 1\n", "nic_slots: `1` is not in 3..=8176"),
        ("mode = '0666'\n", "`mode` is for the system daemon"),
    ] {
        fs::write(&config, text).unwrap();
        let said = sentence(with(&["recv", "p}0", "-d", "50ms"]));
        assert!(said.contains(config.to_str().unwrap()) && said.contains(remedy), "{said}");
        assert!(said.contains("remove"), "{said}");
        home.is_left_clean();
    }
}

/// The process that serves `home`.
pub fn daemon(home: &Home) -> Pid {
    let dir = home.dir.to_str().unwrap();
    let serves = |pid: &i32| {
        let command = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        command.contains("ringwayd") && command.contains(dir)
    };
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    Pid::from_raw(pids.into_iter().find(serves).expect("no daemon")).unwrap()
}

/// Totals come first again, because the next daemon counts anew.
#[test]
fn stats_are_watched_although_the_daemon_ends() {
    let home = Home::new();
    let receiver = home.open(&["recv", "vale0:b"]);
    let watch = home.start(&["switch", "stats", "--watch"]);
    watch.wait_for(r#""port":"vale0:b""#, LIMIT);
    kill_process(daemon(&home), Signal::KILL).unwrap();
    watch.wait_for("ringwayd has ended; waiting for a daemon", LIMIT);
    // It starts the next one.
    let other = home.open(&["recv", "vale0:c"]);
    watch.wait_for(r#""port":"vale0:c""#, LIMIT);
    watch.signal(Signal::INT);
    let (status, printed) = watch.wait();
    assert!(status.success(), "{printed}");
    let lines = lines(&printed);
    let behind = lines.iter().skip_while(|line| line["type"] != "note");
    let first = behind.into_iter().find(|line| line["type"] == "switch_port").unwrap();
    assert!(first.get("interval_s").is_none(), "{printed}");
    for receiver in [receiver, other] {
        receiver.signal(Signal::INT);
        let (status, printed) = receiver.wait();
        assert!(status.success(), "{printed}");
    }
    home.is_left_clean();
}

#[test]
fn a_receiver_on_a_switch_notices_that_the_daemon_has_ended() {
    let home = Home::new();
    let receiver = home.open(&["recv", "vale0:b"]);
    kill_process(daemon(&home), Signal::TERM).unwrap();
    receiver.wait_for("vale0:b: ringwayd has ended", LIMIT);
    // The next one is there when the port is open again.
    home.json(&["gen", "vale0:a", "--count", "1"]);
    receiver.signal(Signal::INT);
    let (status, text) = receiver.wait();
    assert_eq!(status.code(), Some(0), "{text}");
    let printed = lines(&text);
    assert!(find(&printed, "note")["text"].as_str().unwrap().contains("is opened again"), "{text}");
    find(&printed, "summary");
    home.is_left_clean();
}

#[test]
fn a_switch_without_ports_is_not_all_switches() {
    let home = Home::new();
    home.json(&["switch", "new", "vale0"]);
    let receiver = home.open(&["recv", "vale1:a"]);
    for command in ["stats", "vlan"] {
        let output = home.run(&["switch", command, "vale0"]);
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "no ports on vale0\n");
    }
    let said = home.failure(&["switch", "attach", "vale0", "eth1", "eth1"]);
    assert!(said.contains("named twice"), "{said}");
    receiver.signal(Signal::INT);
    finish(receiver);
    home.json(&["switch", "delete", "vale0"]);
    home.is_left_clean();
}

/// What is wrong with a name, and what to write.
#[test]
fn errors_say_what_to_write() {
    let home = Home::new();
    let receiver = home.open(&["recv", "vale0:b"]);
    for (args, words) in [
        (&["ports", "vale0:c"][..], "vale0:c: no such port is open; `ringway ports` shows"),
        (
            &["action", "set", "eth0", "/nope.o"],
            "/nope.o: No such file or directory (os error 2); check",
        ),
        (&["shape", "vale0:a", "vale1:a", "--memory", "1000G"], "write 64G or less"),
        (&["gen", "vale0:a", "--size", "15"], "frame size 15 is not possible"),
        (&["recv", "vale0:a\nb"], r"vale0:a\nb"),
        (&["recv", "file:/no/a\nb"], r"/no/a\nb"),
    ] {
        let output = home.run(args);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && said.contains(words), "{args:?}: {said}");
    }
    let one = home.json(&["ports", "vale0:b"]);
    assert!(one.len() == 1 && one[0]["name"] == "vale0:b", "{one:?}");
    let rings = home.json(&["ports", "vale0:b", "--rings"]);
    assert!(!rings.is_empty() && rings.iter().all(|ring| ring["port"] == "vale0:b"), "{rings:?}");
    let mut command = home.command(&["ports"]);
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let said = command.stdout(full).output().unwrap().stderr;
    let said = String::from_utf8(said).unwrap();
    assert!(said.contains("No space left on device") && said.contains("; make room"), "{said}");
    let bytes = std::os::unix::ffi::OsStringExt::from_vec(b"vale0:\xff".to_vec());
    let output = home.command(&["recv"]).arg::<std::ffi::OsString>(bytes).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("tip: names are UTF-8"), "{said}");
    receiver.signal(Signal::INT);
    finish(receiver);
    home.is_left_clean();
}

/// Between two ports of one switch frames go round for ever.
#[test]
fn two_ports_of_one_switch_are_told() {
    let home = Home::new();
    for (args, is_told) in [
        (&["bridge", "vale0:x", "vale0:y"][..], true),
        (&["shape", "vale0:x", "vale0:y"], true),
        (&["lb", "vale0:x", "--to", "vale0:y"], true),
        (&["bridge", "vale0:x", "vale1:x"], false),
        (&["shape", "vale0:x", "vale1:x"], false),
        (&["bridge", "vale0:x", "p{1"], false),
    ] {
        let output = home.run(&[args, &["--duration", "1ms"]].concat());
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{args:?}: {said}");
        assert_eq!(
            said.contains("both are on vale0: what is sent by one"),
            is_told,
            "{args:?}: {said}"
        );
    }
    home.is_left_clean();
}

/// Interfaces of one name in several network namespaces are told apart, and only these.
#[test]
fn interfaces_of_one_name_are_shown_with_their_namespaces() {
    if skip_without_root("cli::control::interfaces_of_one_name_are_shown_with_their_namespaces") {
        return;
    }
    let home = Home::new();
    let both = [(); 2].map(|()| Netns::quiet("nn"));
    let _pair = both[0].veth(&both[1], "nn0", "nn0");
    let inodes = both.each_ref().map(|netns| rustix::fs::fstat(netns.fd()).unwrap().st_ino);
    let open = |netns: &Netns, args: &[&str]| {
        let proc = Proc::spawn(home.command_in(netns, &[args, &["--json"]].concat()));
        proc.wait_for(r#""type":"open""#, LIMIT);
        proc
    };
    let receiver = |netns| open(netns, &["recv", "netmap:nn0", "--filter", "udp"]);
    let ends = |running: Proc| {
        running.signal(Signal::INT);
        finish(running);
    };
    let shown = |args: &[&str]| String::from_utf8(home.run(args).stdout).unwrap();
    let top = ["top", "--once", "--interval", "1ms"];
    let tables = [&["ports"][..], &["ports", "--rings"], &["filter", "show"], &top];
    let said = |name: &str, args: &[&str]| -> Vec<u64> {
        let lines = home.json(args);
        let ours = lines.iter().filter(|line| {
            let port = if line["port"].is_string() { &line["port"] } else { &line["name"] };
            port.as_str().is_some_and(|port| port.split(' ').next() == Some(name))
        });
        let mut netns: Vec<_> =
            ours.map(|line| line["netns"].as_u64().unwrap_or_else(|| panic!("{line}"))).collect();
        netns.sort_unstable();
        netns.dedup();
        netns
    };

    let first = receiver(&both[0]);
    for table in tables {
        let text = shown(table);
        assert!(text.contains("nn0") && !text.contains("netns"), "{table:?}: {text}");
        assert_eq!(said("nn0", table), [inodes[0]], "{table:?}");
    }
    let second = receiver(&both[1]);
    let monitor = open(&both[1], &["recv", "netmap:nn0/r"]);
    let mut sorted = inodes;
    sorted.sort_unstable();
    for table in tables {
        let text = shown(table);
        let heading = text.lines().next().unwrap();
        assert!(heading.split_whitespace().any(|word| word == "netns"), "{table:?}: {text}");
        for inode in inodes {
            let is_its = |line: &str| line.contains("nn0 ") && line.contains(&inode.to_string());
            assert!(text.lines().any(is_its), "{table:?}: {text}");
        }
        assert_eq!(said("nn0", table), sorted, "{table:?}");
    }
    assert_eq!(said("nn0/r", &["ports"]), [inodes[1]]);
    let follow = home.start(&["log", "--follow"]);
    both[1].run("ip link set nn0 down");
    ends(monitor);
    ends(second);
    follow.wait_for(r#""kind":"port-close""#, LIMIT);
    follow.signal(Signal::INT);
    follow.wait();
    let events = home.json(&["log"]);
    for (kind, inode) in [
        ("port-open", inodes[0]),
        ("port-open", inodes[1]),
        ("link-lost", inodes[1]),
        ("port-close", inodes[1]),
    ] {
        let is_it = |event: &serde_json::Value| {
            (&event["kind"], &event["port"], &event["netns"])
                == (&kind.into(), &"nn0".into(), &inode.into())
        };
        assert!(events.iter().any(is_it), "{kind} in {inode}: {events:?}");
    }
    let log = String::from_utf8(home.command_in(&both[1], &["log"]).output().unwrap().stdout);
    let log = log.unwrap();
    let opened: Vec<_> = log.lines().filter(|line| line.contains("nn0: opened by")).collect();
    let [one, other] = &opened[..] else { panic!("{log}") };
    assert!(one.ends_with(&format!("(network namespace {})", inodes[0])), "{log}");
    assert!(!other.contains("network namespace"), "{log}");
    ends(first);
    home.is_left_clean();
}
