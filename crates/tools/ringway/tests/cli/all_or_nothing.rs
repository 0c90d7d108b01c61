//! A command about several things does all of it, or nothing.

use crate::home::{Home, LIMIT, find, finish, lines, sentence};
use ringway_testkit::{Netns, Proc, skip_without_root};
use rustix::process::Signal;
use serde_json::Value;
use std::process::Command;

/// `ringway` in a network namespace with two veth pairs, of two queues each.
struct Wired {
    home: Home,
    near: Netns,
    _far: Netns,
}

impl Wired {
    fn new() -> Wired {
        let [near, far] = [(); 2].map(|()| Netns::quiet("aon"));
        for [here, there] in [["vc0", "vf0"], ["vc1", "vf1"]] {
            // Both go with their namespaces.
            std::mem::forget(near.veth_queues(&far, here, there, 2));
        }
        Wired { home: Home::new(), near, _far: far }
    }

    fn command(&self, args: &[&str]) -> Command {
        self.home.command_in(&self.near, args)
    }

    fn json(&self, args: &[&str]) -> Vec<Value> {
        let output = self.command(&[args, &["--json"]].concat()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        lines(&String::from_utf8(output.stdout).unwrap())
    }

    fn does(&self, args: &[&str]) {
        let output = self.command(args).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }

    /// What a command says that fails.
    fn failure(&self, args: &[&str]) -> String {
        sentence(self.command(args).output().unwrap())
    }

    /// A receiver, when its port is open.
    fn receiver(&self, port: &str, more: &[&str]) -> Proc {
        let proc = Proc::spawn(self.command(&[&["recv", port, "--json"], more].concat()));
        proc.wait_for(r#""type":"open""#, LIMIT);
        proc
    }

    fn end(self, receiver: Proc) {
        receiver.signal(Signal::INT);
        finish(receiver);
        self.home.is_left_clean();
    }
}

#[test]
fn queues_are_removed_together_or_not_at_all() {
    if skip_without_root("cli::all_or_nothing::queues_are_removed_together") {
        return;
    }
    let wired = Wired::new();
    let receiver = wired.receiver("netmap:vc0", &[]);
    let queues = || find(&wired.json(&["ports"]), "port")["queues"].clone();
    assert_eq!(queues(), Value::from(vec![0, 1]));
    for absent in [&["0", "99"], &["99", "0"]] {
        let said = wired.failure(&[&["queue", "remove", "netmap:vc0"][..], absent].concat());
        assert!(said.contains("vc0") && said.contains("queue 99"), "{said}");
        assert_eq!(queues(), Value::from(vec![0, 1]), "{absent:?}");
    }
    wired.does(&["queue", "remove", "netmap:vc0", "0", "1"]);
    assert_eq!(queues(), Value::from(Vec::<u32>::new()));
    let said = wired.failure(&["queue", "add", "netmap:vc0", "1", "7"]);
    assert!(said.contains("queue 7"), "{said}");
    assert_eq!(queues(), Value::from(Vec::<u32>::new()));
    wired.end(receiver);
}

#[test]
fn ports_are_detached_together_or_not_at_all() {
    if skip_without_root("cli::all_or_nothing::ports_are_detached_together") {
        return;
    }
    let wired = Wired::new();
    let receiver = wired.receiver("vale0:program", &[]);
    wired.does(&["switch", "attach", "vale0", "vc0", "vc1"]);
    let ports = || {
        let listed = wired.json(&["switch", "list"]);
        let switch = find(&listed, "switch")["ports"].as_array().unwrap().clone();
        let names = switch.iter().map(|port| port["name"].as_str().unwrap().to_string());
        names.collect::<Vec<_>>()
    };
    let all = ["vale0:program", "vale0:vc0", "vale0:vc1"];
    assert_eq!(ports(), all);
    for (with, part) in [
        (["vc1", "nosuch"], "vale0:nosuch: there is no such port"),
        // It is there, and cannot be detached.
        (["vc1", "program"], "vale0:program: lives as long as a program has it open"),
        (["program", "vc0"], "vale0:program: lives"),
    ] {
        let said = wired.failure(&[&["switch", "detach", "vale0"][..], &with].concat());
        assert!(said.contains(part), "{said}");
        assert_eq!(ports(), all, "{with:?}");
    }
    // A port that is named twice is detached once.
    wired.does(&["switch", "detach", "vale0", "vc1", "vc0", "vc1"]);
    assert_eq!(ports(), ["vale0:program"]);
    wired.end(receiver);
}

/// A filter is shown by the name of its port's queue, too.
#[test]
fn the_filters_of_a_queue_are_shown() {
    if skip_without_root("cli::all_or_nothing::the_filters_of_a_queue_are_shown") {
        return;
    }
    let wired = Wired::new();
    let receiver = wired.receiver("netmap:vc0", &[]);
    wired.does(&["filter", "set", "netmap:vc0-1", "udp"]);
    for (port, shown) in [("netmap:vc0", 1), ("vc0-1", 1), ("netmap:vc0-1", 1), ("netmap:vc0-0", 0)]
    {
        let filters = wired.json(&["filter", "show", port]);
        assert_eq!(filters.len(), shown, "{port}: {filters:?}");
        assert!(
            filters.iter().all(|filter| filter["queues"] == Value::from(vec![1])),
            "{filters:?}"
        );
    }
    let said = wired.failure(&["filter", "show", "netmap:vc1-0"]);
    assert!(said.contains("no such port is open"), "{said}");
    wired.end(receiver);
}
