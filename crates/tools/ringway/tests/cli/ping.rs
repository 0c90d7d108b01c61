//! `ping` and `pong`.

use crate::home::{Home, LIMIT, find, finish};
use ringway_testkit::{Netns, Proc, skip_without_root};
use rustix::process::Signal;
use serde_json::Value;
use std::net::UdpSocket;

fn interrupt(proc: Proc) -> Vec<Value> {
    proc.signal(Signal::INT);
    finish(proc)
}

/// The summary of a `ping` whose every ping was answered once, in order.
fn assert_all_answered(printed: &[Value], pings: u64) {
    let summary = find(printed, "summary");
    assert_eq!((&summary["sent"], &summary["answered"]), (&pings.into(), &pings.into()));
    for fault in ["lost", "late", "duplicated", "reordered", "corrupt", "waiting"] {
        assert_eq!(summary[fault], 0, "{summary}");
    }
    let times = &summary["rtt_ns"];
    let times = ["min", "p50", "p90", "p99", "p99.9", "p99.99", "max"]
        .map(|name| times[name].as_u64().unwrap_or_else(|| panic!("{name}: {times}")));
    assert!(times[0] > 0 && times.is_sorted(), "{times:?}");
}

#[test]
fn round_trips_of_a_pipe_sleeping_and_polling() {
    let home = Home::new();
    let pong = home.open(&["pong", "p}0"]);
    for (options, pings) in [
        (&["--count", "2k"][..], 2000),
        (&["--count", "2k", "--poll"], 2000),
        (&["--count", "300", "--rate", "10k", "--size", "60-1514"], 300),
        (&["--count", "10", "--src", "fd00::1", "--dst", "fd00::2"], 10),
    ] {
        let ping = ["ping", "p{0", "--timeout", "30s"];
        assert_all_answered(&home.json(&[&ping[..], options].concat()), pings);
    }
    let printed = interrupt(pong);
    assert_eq!(find(&printed, "summary")["packets"], 4310);
    assert_eq!(find(&printed, "ignored")["ignored"], 0);
    home.is_left_clean();
}

/// The first ping of a switch goes to all; the others go where the first answer came from.
#[test]
fn only_the_first_ping_goes_to_all_unless_all_do() {
    let home = Home::new();
    let pongs = ["vale0:b", "vale0:c"].map(|port| home.open(&["pong", port]));
    let printed = home.json(&["ping", "vale0:a", "-n", "100", "--timeout", "30s"]);
    let summary = find(&printed, "summary");
    assert_eq!(summary["answered"], 100);
    assert!(summary["duplicated"].as_u64() <= Some(1), "{summary}");
    let answered = pongs.map(|pong| find(&interrupt(pong), "summary")["packets"].as_u64());
    let all: u64 = answered.iter().flatten().sum();
    assert!((100..=101).contains(&all), "{answered:?}");

    let pongs = ["vale0:b", "vale0:c"].map(|port| home.open(&["pong", port, "--count", "100"]));
    let ping = ["ping", "vale0:a", "-n", "100", "--timeout", "30s"];
    home.json(&[&ping[..], &["--dst-mac", "ff:ff:ff:ff:ff:ff"]].concat());
    pongs.into_iter().for_each(|pong| drop(finish(pong)));
    home.is_left_clean();
}

#[test]
fn what_is_not_answered_is_lost_and_what_is_no_ping_is_dropped() {
    let home = Home::new();
    // Nobody takes the pings, or somebody does and says nothing.
    let said = home.failure(&["ping", "p{0", "--count", "3", "--timeout", "10ms"]);
    assert!(
        said.contains("p{0: none of 3 pings was answered in time; start `ringway pong`"),
        "{said}"
    );
    // There are no times of them, which is not zero.
    let ping = ["ping", "p{0", "--count", "1", "--timeout", "1500ms"];
    let text = String::from_utf8(home.run(&ping).stdout).unwrap();
    assert!(text.contains("min -, median -, 99% -, max -") && !text.contains("0.000 us"), "{text}");
    let json = String::from_utf8(home.run(&[&ping[..], &["--json"]].concat()).stdout).unwrap();
    let printed: Vec<Value> = crate::home::lines(&json);
    for kind in ["round_trips", "summary"] {
        assert_eq!(find(&printed, kind)["rtt_ns"], Value::Null, "{json}");
    }
    let pong = home.open(&["pong", "vale0:b"]);
    home.json(&["gen", "vale0:a", "--count", "50"]);
    pong.signal(Signal::INT);
    let printed = finish(pong);
    assert_eq!(find(&printed, "summary")["packets"], 0);
    assert_eq!(find(&printed, "ignored")["ignored"], 50);
    home.is_left_clean();
}

/// What comes back with `--all` is what was sent, with its addresses exchanged.
#[test]
fn everything_comes_back_if_asked_for() {
    let home = Home::new();
    let pong = home.open(&["pong", "p}0", "--all", "--count", "1000"]);
    let gen_and_recv = |port: &str| {
        let receiver = home.open(&["recv", port, "--count", "1000", "--verify"]);
        (receiver, home.open(&["gen", port, "--count", "1000", "--size", "60-1514"]))
    };
    let (receiver, generator) = gen_and_recv("p{0");
    assert_eq!(find(&finish(receiver), "verify")["good"], 1000);
    finish(generator);
    finish(pong);
    home.is_left_clean();
}

#[test]
fn interrupting_gives_the_summary() {
    let home = Home::new();
    let pong = home.open(&["pong", "p}0"]);
    let ping = home.open(&["ping", "p{0"]);
    ping.wait_for(r#""type":"round_trips""#, LIMIT);
    let printed = interrupt(ping);
    assert!(find(&printed, "summary")["answered"].as_u64().unwrap() > 0);
    interrupt(pong);
    home.is_left_clean();
}

#[test]
fn round_trips_of_a_veth() {
    if skip_without_root("cli::ping::round_trips_of_a_veth") {
        return;
    }
    let [near, far] = [(); 2].map(|()| Netns::quiet("rtt"));
    let _pair = near.veth(&far, "rt0", "rt1");
    // Each end has a daemon of its own, as two machines have.
    let homes = [Home::new(), Home::new()];
    let ringway = |netns: &Netns, home: &Home, args: &[&str]| {
        home.command_in(netns, &[args, &["--json"]].concat())
    };
    let pong = Proc::spawn(ringway(&far, &homes[1], &["pong", "netmap:rt1"]));
    pong.wait_for(r#""type":"open""#, LIMIT);
    for options in [&[][..], &["--poll"]] {
        let args =
            [&["ping", "netmap:rt0", "--count", "500", "--timeout", "30s"], options].concat();
        let output = ringway(&near, &homes[0], &args).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        assert_all_answered(&crate::home::lines(&text), 500);
    }
    interrupt(pong);
    homes.iter().for_each(Home::is_left_clean);
}

/// With a filter `pong` takes the pings alone: the stack receives all else, and all that it sends goes out.
#[test]
fn with_a_filter_the_stack_keeps_the_rest() {
    if skip_without_root("cli::ping::with_a_filter_the_stack_keeps_the_rest") {
        return;
    }
    for mode in ["copy", "generic", "packet"] {
        let [near, far] = [(); 2].map(|()| Netns::quiet("pgf"));
        let _pair = near.veth(&far, "pf0", "pf1");
        near.run("ip addr add 10.1.0.1/24 dev pf0");
        far.run("ip addr add 10.1.0.2/24 dev pf1");
        let homes = [Home::new(), Home::new()];
        let port = format!("netmap:pf1@mode={mode}");
        let pong = ["pong", &port, "--filter", "udp port 7", "--json"];
        let pong = Proc::spawn(homes[1].command_in(&far, &pong));
        pong.wait_for(r#""type":"open""#, LIMIT);
        far.ping("-c 3 -i 0.1 -w 20 10.1.0.1");
        near.ping("-c 3 -i 0.1 -w 20 10.1.0.2");
        // What the filter takes of the stack's frames, pong sends on.
        let receiver = near.enter(|| UdpSocket::bind("10.1.0.1:7")).unwrap();
        receiver.set_read_timeout(Some(LIMIT)).unwrap();
        let sender = far.enter(|| UdpSocket::bind("10.1.0.2:0")).unwrap();
        sender.send_to(b"to port 7", "10.1.0.1:7").unwrap();
        let mut text = [0; 20];
        let (len, _) = receiver.recv_from(&mut text).unwrap();
        assert_eq!(&text[..len], b"to port 7", "{mode}");
        let ping = ["ping", "netmap:pf0", "--count", "100", "--timeout", "30s", "--json"];
        let output = homes[0].command_in(&near, &ping).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        assert_all_answered(&crate::home::lines(&String::from_utf8(output.stdout).unwrap()), 100);
        let printed = interrupt(pong);
        assert_eq!(find(&printed, "summary")["packets"], 100, "{mode}");
        homes.iter().for_each(Home::is_left_clean);
    }
}
