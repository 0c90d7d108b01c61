//! `ringway lb`.

use crate::files::named;
use crate::home::{Home, LIMIT, find, finish, lines};
use ringway_testkit::{Netns, Proc, skip_without_root};
use rustix::process::Signal;
use serde_json::Value;
use std::time::Instant;

/// Starts it, with its ports open.
fn start(home: &Home, args: &[&str]) -> Proc {
    let lb = home.start(&[&["lb"], args].concat());
    // The input is the last that is told of.
    let input = format!(r#""type":"open","port":"{}""#, args[0]);
    lb.wait_for(&input, LIMIT);
    lb
}

fn interrupt(proc: Proc) -> Vec<Value> {
    proc.signal(Signal::INT);
    finish(proc)
}

/// Frames of 200 flows.
fn send(home: &Home, port: &str, count: &str) {
    home.json(&["gen", port, "--count", count, "--src", "10.0.0.1:1000-10.0.0.2:1099"]);
}

fn packets(printed: &[Value]) -> u64 {
    find(printed, "summary")["packets"].as_u64().unwrap()
}

/// Of each output: packets and drops.
fn outputs(printed: &[Value]) -> Vec<[u64; 2]> {
    let outputs = printed.iter().filter(|line| line["type"] == "output");
    outputs.map(|line| [&line["packets"], &line["dropped"]].map(|n| n.as_u64().unwrap())).collect()
}

/// A consumer that is there to stay; it has got `count` when it says so.
fn consumer(home: &Home, port: &str) -> Proc {
    home.open(&["recv", port])
}

/// What a pipe's receive ring has counted.
fn received(rings: &[Value], pipe: &str) -> u64 {
    let ring = rings.iter().find(|line| line["port"] == pipe && line["receives"] == true);
    ring.map_or(0, |ring| ring["packets"].as_u64().unwrap())
}

#[test]
fn flows_are_shared_out_by_every_hash() {
    let home = Home::new();
    for (hash, used) in [("flow", 3), ("5-tuple", 3), ("round-robin", 3), ("2-tuple", 2)] {
        let lb = start(&home, &["in}0", "--to", "3", "--name", "out", "--hash", hash]);
        let consumers = ["out}0", "out}1", "out}2"].map(|pipe| consumer(&home, pipe));
        send(&home, "in{0", "2000");
        let printed = interrupt(lb);
        let shares = outputs(&printed);
        assert_eq!(packets(&printed), 2000);
        assert_eq!(shares.iter().map(|[packets, _]| packets).sum::<u64>(), 2000, "{printed:?}");
        assert_eq!(shares.iter().filter(|[packets, _]| *packets > 0).count(), used, "{hash}");
        for (consumer, [sent, dropped]) in consumers.into_iter().zip(shares) {
            assert_eq!((packets(&interrupt(consumer)), dropped), (sent, 0), "{hash}");
            // Each flow is there ten times.
            assert!(hash == "round-robin" || sent % 10 == 0, "{hash}: {sent}");
        }
    }
    home.is_left_clean();
}

#[test]
fn every_consumer_gets_all_copies() {
    let home = Home::new();
    let lb = start(&home, &["in}0", "--to", "a{0", "b{0", "vale0:c", "--copy", "--queue", "4000"]);
    let consumers = ["a}0", "b}0", "vale0:d"]
        .map(|port| home.open(&["recv", port, "--verify", "--count", "1000"]));
    home.json(&["gen", "in{0", "--count", "1000", "--size", "60-1514"]);
    for consumer in consumers {
        assert_eq!(find(&finish(consumer), "verify")["good"], 1000);
    }
    let printed = interrupt(lb);
    assert_eq!(outputs(&printed), [[1000, 0]; 3]);
    let copied = printed.iter().filter(|line| line["copied"] == true).count();
    assert_eq!(copied, 1, "only the switch's port is in other memory: {printed:?}");
    home.is_left_clean();
}

/// Also where packets are copied, into the memory of another port.
#[test]
fn what_does_not_fit_waits_or_is_dropped_and_counted() {
    let home = Home::new();
    let other_memory = consumer(&home, "vale0:z");
    for (queue, dropped) in [("4000", 0), ("0", 1977)] {
        for (to, other, copied) in [("out{0", "out}0", false), ("vale0:z{0", "vale0:z}0", true)] {
            let lb = start(&home, &["in}0", "--to", to, "--queue", queue]);
            home.json(&["gen", "in{0", "--count", "3000", "--size", "60-1514"]);
            let wanted = (3000 - dropped).to_string();
            let late = home.open(&["recv", other, "--count", &wanted, "--verify"]);
            assert_eq!(find(&finish(late), "verify")["good"], 3000 - dropped);
            let printed = interrupt(lb);
            assert_eq!(find(&printed, "output")["copied"], copied);
            assert_eq!(outputs(&printed), [[3000 - dropped, dropped]]);
        }
    }
    interrupt(other_memory);
    home.is_left_clean();
}

#[test]
fn a_consumer_leaves_and_comes_back() {
    let home = Home::new();
    let lb = start(&home, &["in}0", "--to", "2", "--name", "out", "--queue", "4000"]);
    let [first, second] = ["out}0", "out}1"].map(|pipe| consumer(&home, pipe));
    send(&home, "in{0", "400");
    // That `gen` has ended tells that `lb` has taken them, and not that it has handed them over.
    let deadline = Instant::now() + LIMIT;
    let handed_over = || {
        let rings = home.json(&["ports", "--rings"]);
        ["out}0", "out}1"].map(|pipe| received(&rings, pipe)).iter().sum::<u64>()
    };
    while handed_over() < 400 {
        assert!(Instant::now() < deadline, "{} come", handed_over());
    }
    let before = packets(&interrupt(first));
    // Its flows stay with it, and wait.
    send(&home, "in{0", "400");
    let wanted = before.to_string();
    let again = home.open(&["recv", "out}0", "--count", &wanted]);
    assert_eq!(packets(&finish(again)), before);
    let printed = interrupt(lb);
    assert_eq!(packets(&interrupt(second)), 2 * (400 - before));
    assert_eq!(outputs(&printed), [[2 * before, 0], [2 * (400 - before), 0]]);
    home.is_left_clean();
}

/// As above, but the others have the share of the one that is away.
#[test]
fn the_share_of_an_absent_consumer_goes_to_the_others() {
    let home = Home::new();
    let lb = start(&home, &["in}0", "--to", "2", "--name", "out", "--redistribute"]);
    let first = consumer(&home, "out}0");
    // The daemon is asked from time to time which consumers are open: what is sent before goes to the second, too.
    let mut sent = 0;
    let received = |pipe| received(&home.json(&["ports", "--rings"]), pipe);
    let mut first_gets_all = || {
        let before = received("out}0");
        send(&home, "in{0", "200");
        sent += 200;
        (0..100).any(|_| received("out}0") == before + 200)
    };
    assert!((0..100).any(|_| first_gets_all()));
    let second = consumer(&home, "out}1");
    while received("out}1") == 0 {
        send(&home, "in{0", "200");
        sent += 200;
        assert!(sent < 1_000_000, "the second gets nothing");
    }
    // It hands over what it has taken before it ends.
    let printed = interrupt(lb);
    let got = [first, second].map(|consumer| packets(&interrupt(consumer)));
    assert_eq!(got.iter().sum::<u64>(), sent);
    assert!(outputs(&printed).iter().all(|[_, dropped]| *dropped == 0), "{printed:?}");
    home.is_left_clean();
}

/// Sends until the condition holds, which it must in the end; returns how many frames that took.
fn send_until(mut send: impl FnMut() -> u64, is_so: impl Fn() -> bool) -> u64 {
    let mut sent = 0;
    while !is_so() {
        sent += send();
        assert!(sent < 1_000_000, "it does not become so");
    }
    sent
}

/// The region of a switch's port has room for some pipes only.
#[test]
fn a_switchs_port_has_as_many_pipes_as_are_asked_for() {
    let home = Home::new();
    let lb = start(&home, &["vale7:in", "--to", "64", "--hash", "round-robin"]);
    let consumer = consumer(&home, "vale7:in}63");
    send_until(
        || {
            send(&home, "vale7:out", "64");
            64
        },
        || received(&home.json(&["ports", "--rings"]), "vale7:in}63") > 0,
    );
    interrupt(consumer);
    interrupt(lb);
}

#[test]
fn a_switch_without_other_ports_has_no_consumer() {
    let home = Home::new();
    let lb = start(&home, &["in}0", "--to", "out{0", "vale7:lb", "--redistribute"]);
    let pipe = consumer(&home, "out}0");
    let rings = || home.json(&["ports", "--rings"]);
    // What comes before the daemon was asked may go to the switch. Then everything goes to the pipe.
    let pipe_gets_all = || {
        let before = received(&rings(), "out}0");
        send(&home, "in{0", "200");
        (0..100).any(|_| received(&rings(), "out}0") == before + 200)
    };
    assert!((0..100).any(|_| pipe_gets_all()));
    let other = consumer(&home, "vale7:other");
    let came = || received(&rings(), "vale7:other") > 0;
    send_until(
        || {
            send(&home, "in{0", "200");
            200
        },
        came,
    );
    interrupt(other);
    assert!((0..100).any(|_| pipe_gets_all()), "it has gone again");
    interrupt(pipe);
    interrupt(lb);
    home.is_left_clean();
}

#[test]
fn a_packet_goes_to_the_outputs_of_both_its_addresses() {
    let home = Home::new();
    let lb = start(&home, &["in}0", "--to", "4", "--name", "out", "--hash", "ip-with-dup"]);
    let consumers = ["out}0", "out}1", "out}2", "out}3"].map(|pipe| consumer(&home, pipe));
    // 0x0a000001 and 0x0a000002 go to the second and the third, by their remainders.
    home.json(&["gen", "in{0", "--count", "300", "--src", "10.0.0.1", "--dst", "10.0.0.2"]);
    // Both to the last: once.
    home.json(&["gen", "in{0", "--count", "100", "--src", "10.0.0.3", "--dst", "10.0.0.7"]);
    let printed = interrupt(lb);
    assert_eq!(packets(&printed), 400);
    assert_eq!(outputs(&printed), [[0, 0], [300, 0], [300, 0], [100, 0]]);
    assert_eq!(consumers.map(|consumer| packets(&interrupt(consumer))), [0, 300, 300, 100]);
    home.is_left_clean();
}

#[test]
fn what_cannot_be_is_refused() {
    let home = Home::new();
    for (args, part) in [
        (&["in}0", "--to", "2"][..], "give --name"),
        (&["vale0:a", "--to", "0"], "1 to 64 pipes are possible"),
        (&["vale0:a", "--to", "nonsense"], "nonsense"),
    ] {
        let said = home.failure(&[&["lb"], args].concat());
        assert!(said.contains(part), "{args:?}: {said}");
    }
    let output = home.run(&["lb", "in}0", "--to", "a{0", "--hash", "7-tuple"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("write one of per-flow, round-robin, 2-tuple"), "{said}");
    home.is_left_clean();
}

#[test]
fn an_interface_without_a_link_has_no_consumer() {
    if skip_without_root("cli::lb::an_interface_without_a_link_has_no_consumer") {
        return;
    }
    let [near, far] = [(); 2].map(|()| Netns::quiet("lbl"));
    let _pair = near.veth(&far, "lb2", "lb3");
    let home = Home::new();
    let ringway = |args: &[&str]| home.command_in(&near, &[args, &["--json"]].concat());
    let start = |args: &[&str]| {
        let proc = Proc::spawn(ringway(args));
        proc.wait_for(r#""type":"open""#, LIMIT);
        proc
    };
    let lb = start(&["lb", "in}0", "--to", "out{0", "netmap:lb2", "--redistribute"]);
    lb.wait_for(r#""port":"in}0""#, LIMIT);
    let pipe = start(&["recv", "out}0"]);
    let rings = || {
        lines(&String::from_utf8(ringway(&["ports", "--rings"]).output().unwrap().stdout).unwrap())
    };
    let send = || {
        let args = ["gen", "in{0", "--count", "100", "--src", "10.0.0.1:1000-10.0.0.2:1099"];
        assert!(ringway(&args).output().unwrap().status.success());
    };
    let pipe_gets_all = || {
        let before = received(&rings(), "out}0");
        send();
        (0..100).any(|_| received(&rings(), "out}0") == before + 100)
    };
    far.run("ip link set lb3 down");
    assert!((0..100).any(|_| pipe_gets_all()), "the other end is down");
    far.run("ip link set lb3 up");
    let heard = || far.run("cat /sys/class/net/lb3/statistics/rx_packets").trim() != "0";
    send_until(
        || {
            send();
            100
        },
        heard,
    );
    interrupt(pipe);
    interrupt(lb);
    home.is_left_clean();
}

#[test]
fn frames_of_a_wire_are_shared_out() {
    if skip_without_root("cli::lb::frames_of_a_wire_are_shared_out") {
        return;
    }
    let [near, far] = [(); 2].map(|()| Netns::quiet("lb"));
    let _pair = near.veth(&far, "lb0", "lb1");
    let homes = [Home::new(), Home::new()];
    let ringway = |netns: &Netns, home: &Home, args: &[&str]| {
        home.command_in(netns, &[args, &["--json"]].concat())
    };
    let start = |args: &[&str]| {
        let proc = Proc::spawn(ringway(&near, &homes[0], args));
        proc.wait_for(r#""type":"open""#, LIMIT);
        proc
    };
    let lb = start(&["lb", "netmap:lb0", "--to", "2", "--queue", "2000"]);
    lb.wait_for(r#""port":"lb0""#, LIMIT);
    let consumers = ["lb0}0", "lb0}1"].map(|pipe| start(&["recv", pipe]));
    // A veth pair holds 256: it loses none, whenever the receiver is scheduled.
    let args = ["gen", "netmap:lb1", "--count", "200", "--rate", "20k"];
    let args = [&args[..], &["--src", "10.0.0.1:1000-10.0.0.2:1009"]].concat();
    let sent = ringway(&far, &homes[1], &args).output().unwrap();
    assert!(sent.status.success(), "{sent:?}");
    assert_eq!(packets(&lines(&String::from_utf8(sent.stdout).unwrap())), 200);
    let ports = || ringway(&near, &homes[0], &["ports", "--rings"]).output().unwrap().stdout;
    let taken = || {
        let rings = lines(&String::from_utf8(ports()).unwrap());
        let of = |pipe| received(&rings, pipe);
        of("lb0}0") + of("lb0}1")
    };
    assert!((0..1000).any(|_| taken() == 200), "{}", taken());
    let got = consumers.map(|consumer| packets(&interrupt(consumer)));
    let printed = interrupt(lb);
    assert_eq!(got.iter().sum::<u64>(), 200, "{printed:?}");
    assert!(got.iter().all(|packets| *packets > 0 && packets % 10 == 0), "{got:?}");
    homes.iter().for_each(Home::is_left_clean);
}

/// A stopped command takes nothing: what its input has no room for is lost there.
#[test]
fn what_the_input_loses_is_counted() {
    let home = Home::new();
    let lb = start(&home, &["vale0:in", "--to", "1", "--name", "out"]);
    // What was lost before it has begun is none of its own.
    lb.wait_for(r#""type":"rate""#, LIMIT);
    lb.stop();
    home.json(&["gen", "vale0:a", "--count", "3000"]);
    lb.signal(Signal::CONT);
    let printed = interrupt(lb);
    assert_eq!(find(&printed, "summary")["drops"], 1977, "{printed:?}");
    let drops = find(&printed, "drops");
    assert_eq!((&drops["port"], &drops["ring_full"]), (&"vale0:in".into(), &1977.into()));
    home.is_left_clean();
}

#[test]
fn what_no_consumer_takes_is_told() {
    let home = Home::new();
    let (_, file) = named(&home, "in.pcap");
    home.json(&["gen", &file, "--count", "100", "--size", "3000"]);
    let printed = home.json(&["lb", &file, "--to", "1"]);
    // Frames of two slots.
    assert_eq!(find(&printed, "summary")["bytes"], 300_000);
    let output = find(&printed, "output");
    let counts = ["packets", "dropped", "queued", "left"].map(|what| output[what].as_u64());
    assert_eq!(counts, [100, 0, 0, 100].map(Some));
    let refused = home.failure(&["lb", "vale0:in", "--to", "2", "--name", "a}b"]);
    assert!(refused.contains("without them"), "{refused}");
    let refused = home.failure(&["lb", "vale0:in", "--to", "vale0:in"]);
    assert!(refused.contains("name another output"), "{refused}");
    home.is_left_clean();
}
