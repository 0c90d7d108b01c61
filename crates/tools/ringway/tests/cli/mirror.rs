//! `ringway switch mirror`: copies of what passes ports of a switch, which come and go.

use crate::files::named;
use crate::home::{Home, LIMIT, find, finish, lines};
use ringway_testkit::{Netns, Proc, skip_without_root};
use rustix::process::Signal;

/// Fewer than a ring has slots: a receiver that is not scheduled in time loses none of them.
const FIT: &str = "500";

#[test]
fn ports_are_mirrored_whenever_they_are_there() {
    let home = Home::new();
    let mirror = home.start(&["switch", "mirror", "vale0", "b", "c", "--to", "probe{1"]);
    for name in ["vale0:b", "vale0:c"] {
        mirror.wait_for(
            &format!("{name}: there is no such port yet; it is mirrored as soon as there is"),
            LIMIT,
        );
    }
    for round in 1..=2 {
        let receivers = ["vale0:b", "vale0:c"].map(|name| home.open(&["recv", name]));
        until_said(&mirror, r#"/rt","kind""#, 2 * round);
        // Both receive what is flooded, and the probe has it twice.
        let probe = home.open(&["recv", "probe}1", "--count", "1000"]);
        home.json(&["gen", "vale0:a", "--count", FIT]);
        assert_eq!(find(&finish(probe), "summary")["packets"], 1000);
        for receiver in receivers {
            receiver.signal(Signal::INT);
            assert_eq!(find(&finish(receiver), "summary")["packets"], 500);
        }
        until_said(&mirror, "/rt has gone", 2 * round);
    }
    mirror.signal(Signal::INT);
    let (status, printed) = mirror.wait();
    assert!(status.success(), "{printed}");
    // What it notes goes to the same place here.
    let results: Vec<_> = printed.lines().filter(|line| line.starts_with('{')).collect();
    let results = lines(&results.join("\n"));
    let summary = find(&results, "summary");
    assert_eq!(
        (&summary["label"], &summary["packets"], &summary["drops"]),
        (&"vale0 -> probe{1".into(), &2000.into(), &0.into())
    );
    home.is_left_clean();
}

/// Waits until it has said so as often.
fn until_said(proc: &ringway_testkit::Proc, text: &str, times: usize) {
    let deadline = std::time::Instant::now() + LIMIT;
    while proc.output().matches(text).count() < times {
        assert!(std::time::Instant::now() < deadline, "{text}: {}", proc.output());
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

#[test]
fn what_is_sent_and_matches_one_in_so_many() {
    let home = Home::new();
    let receiver = home.open(&["recv", "vale0:b"]);
    let sender = home.open(&["recv", "vale0:a"]);
    let mirror = home.start(&[
        "switch",
        "mirror",
        "vale0",
        "vale0:a",
        "--direction",
        "received",
        "--filter",
        "udp dst port 2000",
        "--sample",
        "10",
        "--to",
        "vale1:probe",
    ]);
    mirror.wait_for(r#""port":"vale0:a/r""#, LIMIT);
    let probe = home.open(&["recv", "vale1:other", "--count", "50"]);
    let to = |port: &str| ["gen", "vale0:c", "--count", FIT, "--dst", port].map(String::from);
    for port in ["10.1.0.1:2000", "10.1.0.1:2001"] {
        let args = to(port);
        home.json(&args.iter().map(String::as_str).collect::<Vec<_>>());
    }
    assert_eq!(find(&finish(probe), "summary")["packets"], 50);
    mirror.signal(Signal::INT);
    let (_, printed) = mirror.wait();
    assert!(printed.contains("ringway switch forward vale1 flood"), "{printed}");
    assert!(printed.contains(r#""packets":50,"#), "{printed}");
    for proc in [receiver, sender] {
        proc.signal(Signal::INT);
        finish(proc);
    }
    home.is_left_clean();
}

/// Interfaces that are detached, and such that are deleted, are mirrored again when they are back.
#[test]
fn interfaces_are_mirrored_whenever_they_are_attached() {
    if skip_without_root("cli::mirror::interfaces_are_mirrored_whenever_they_are_attached") {
        return;
    }
    let home = Home::new();
    let [near, far] = [(); 2].map(|()| Netns::quiet("mi"));
    let other = far.name().expect("it has a name");
    let ringway = |args: &[&str]| home.command_in(&near, args);
    let does = |args: &[&str]| {
        let output = ringway(args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
    };
    let connect = || {
        near.run(&format!("ip link add mi0 type veth peer name mi1 netns {other}"));
        near.run("ip link set mi0 up");
        far.run("ip link set mi1 up");
    };
    connect();
    does(&["switch", "new", "vale0"]);
    let args =
        ["switch", "mirror", "vale0", "mi0", "--direction", "sent", "--to", "probe{1", "--json"];
    let mirror = Proc::spawn(ringway(&args));
    mirror.wait_for("vale0:mi0: ", LIMIT);
    for round in 1..=3 {
        if round == 3 {
            // It takes its port along.
            near.run("ip link del mi0");
            until_said(&mirror, "/t has gone", 2);
            connect();
        }
        does(&["switch", "attach", "vale0", "mi0"]);
        until_said(&mirror, r#""port":"vale0:mi0/t""#, round);
        let mut probe = ringway(&["recv", "probe}1", "--count", "100", "--json"]);
        probe.env("RINGWAY_DIR", &home.dir);
        let probe = Proc::spawn(probe);
        probe.wait_for(r#""type":"open""#, LIMIT);
        let sender = Home::new();
        let args = ["gen", "netmap:mi1", "--count", "100", "--json"];
        let sent = sender.command_in(&far, &args).output().unwrap();
        assert!(sent.status.success(), "{sent:?}");
        assert_eq!(find(&finish(probe), "summary")["packets"], 100);
        sender.is_left_clean();
        if round == 1 {
            does(&["switch", "detach", "vale0", "mi0"]);
            until_said(&mirror, "/t has gone", 1);
        }
    }
    mirror.signal(Signal::INT);
    let (status, printed) = mirror.wait();
    assert!(status.success(), "{printed}");
    assert_eq!(find(&lines(&printed), "summary")["packets"], 300);
    does(&["switch", "delete", "vale0"]);
    home.is_left_clean();
}

#[test]
fn what_is_mirrored_is_recorded() {
    let home = Home::new();
    let (_, port) = named(&home, "seen.pcapng");
    let receiver = home.open(&["recv", "vale0:b"]);
    let mirror = home.start(&["switch", "mirror", "vale0", "b", "--to", &port]);
    mirror.wait_for(r#""port":"vale0:b/rt""#, LIMIT);
    home.json(&["gen", "vale0:a", "--count", FIT]);
    receiver.signal(Signal::INT);
    assert_eq!(find(&finish(receiver), "summary")["packets"], 500);
    mirror.wait_for("/rt has gone", LIMIT);
    mirror.signal(Signal::INT);
    let (status, printed) = mirror.wait();
    assert!(status.success(), "{printed}");
    assert_eq!(find(&lines(&printed), "summary")["packets"], 500);
    assert_eq!(find(&home.json(&["recv", &port, "--verify"]), "verify")["good"], 500);
    home.is_left_clean();
}

#[test]
fn copies_do_not_go_into_the_switch_that_is_mirrored() {
    let home = Home::new();
    let said = home.failure(&["switch", "mirror", "vale0", "a", "--to", "vale0:probe"]);
    assert!(
        said.contains("`ringway switch mirror add vale0 NAME --from a --to vale0:probe`"),
        "{said}"
    );
}

/// Two sources of one port would show each frame twice.
#[test]
fn a_port_is_mirrored_once() {
    let home = Home::new();
    for again in ["a", "vale0:a"] {
        let args = ["switch", "mirror", "vale0", "a", "b", again, "--to", "file:seen.pcap"];
        let said = home.failure(&args);
        assert!(said.contains("vale0:a: the port is named twice"), "{said}");
    }
}
