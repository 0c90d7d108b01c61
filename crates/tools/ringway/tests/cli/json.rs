//! `--json`: every command takes it, and prints nothing but lines that `ringway schema` describes. Fields stay:
//! `json-fields.txt` has those that these runs print, and `RINGWAY_UPDATE_JSON=1` adds new ones to it (docs/stability.md).
#![allow(clippy::disallowed_methods, reason = "tests are told by variables what to do")]

use crate::files::named;
use crate::home::{Home, LIMIT, find, finish, lines};
use ringway_testkit::{Netns, bpf_object, check_json_line, skip_without_root};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};

/// The names of all commands, as `--help` tells them, with those of their own commands behind them.
fn commands(home: &Home, path: &[&str]) -> Vec<String> {
    let output = home.run(&[path, &["--help"]].concat());
    let help = String::from_utf8(output.stdout).unwrap();
    let Some((_, list)) = help.split_once("\nCommands:\n") else {
        return vec![path.join(" ")];
    };
    let list = list.lines().take_while(|line| !line.is_empty());
    // What is explained is further right.
    let names = list.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let names = names.filter(|name| !name.is_empty() && *name != "help");
    names.flat_map(|name| commands(home, &[path, &[name]].concat())).collect()
}

/// What one command has printed: all lines are objects with a type.
struct Printed {
    results: Vec<Value>,
    aside: Vec<Value>,
}

fn printed(what: &[&str], output: &Output) -> Printed {
    let [results, aside] = [&output.stdout, &output.stderr].map(|bytes| {
        let objects = lines(std::str::from_utf8(bytes).unwrap());
        assert!(objects.iter().all(|object| object["type"].is_string()), "{what:?}: {objects:?}");
        objects
    });
    assert!(
        aside.iter().all(|o| o["type"] == "note" || o["type"] == "error"),
        "{what:?}: {aside:?}"
    );
    Printed { results, aside }
}

/// The names of the fields of an object, and of those in it, each behind the type that it belongs to.
fn fields(path: &str, value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            let path = object.get("type").and_then(Value::as_str).unwrap_or(path);
            for (name, value) in object {
                let name = format!("{path}.{name}");
                fields(&name, value, found);
                found.insert(name);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| fields(path, item, found)),
        _ => {}
    }
}

/// No field has gone that is written down.
fn fields_are_kept(found: &BTreeSet<String>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/json-fields.txt");
    let text = std::fs::read_to_string(&path).expect("the list of fields is there");
    let mut kept: BTreeSet<String> = text.lines().map(str::to_owned).collect();
    let gone: Vec<_> = kept.difference(found).collect();
    assert!(
        gone.is_empty(),
        "fields that --json had: {gone:?}. Scripts use them: docs/stability.md says when they may go. If they are to, \
         take them out of {}",
        path.display()
    );
    if std::env::var_os("RINGWAY_UPDATE_JSON").is_some() {
        // Rates are printed each second: what takes less has none.
        kept.extend(found.iter().filter(|field| !field.starts_with("rate.")).cloned());
        let lines: String = kept.iter().map(|field| format!("{field}\n")).collect();
        std::fs::write(&path, lines).expect("the list is written");
    }
}

/// Runs commands, and notes their names, and the fields that they print.
struct Runs {
    done: Vec<String>,
    fields: BTreeSet<String>,
}

impl Runs {
    fn note(&mut self, args: &[&str]) {
        let with_own = ["switch", "filter", "action", "queue", "vm"].contains(&args[0]);
        let words = match args {
            ["switch", "fdb" | "mdb", ..] | ["switch", "mirror", "add" | "del" | "show", ..] => 3,
            _ if with_own => 2,
            _ => 1,
        };
        self.done.push(args[..words].join(" "));
    }

    /// One that succeeds.
    fn run(&mut self, mut command: Command, args: &[&str]) -> Printed {
        self.note(args);
        let output = command.args(args).arg("--json").output().unwrap();
        let printed = printed(args, &output);
        assert!(output.status.success(), "{args:?}: {:?}", printed.aside);
        for object in printed.results.iter().chain(&printed.aside) {
            fields("", object, &mut self.fields);
        }
        printed
    }

    /// One that changes something.
    fn changes(&mut self, command: Command, args: &[&str]) -> Value {
        let printed = self.run(command, args);
        let done = find(&printed.results, "done");
        let words = if ["fdb", "mirror"].contains(&args[1]) { 3 } else { 2 };
        assert_eq!(done["action"], args[..words].join(" "));
        assert_eq!(done["of"], args[words]);
        done["now"].clone()
    }
}

#[test]
fn every_command_prints_objects() {
    let home = Home::new();
    let mut runs = Runs { done: Vec::new(), fields: BTreeSet::new() };
    let plain = || home.command(&[]);
    let ((path, from), (_, to)) = (named(&home, "in.pcap"), named(&home, "out.pcap"));
    let (other, to) = (named(&home, "other.pcapng").0, format!("{to}@write"));
    let receiver = home.open(&["recv", "vale0:b"]);
    runs.run(plain(), &["gen", &from, "--count", "20"]);
    runs.run(plain(), &["replay", &to, &path, "--speed", "0"]);
    runs.run(plain(), &["recv", &from, "--verify", "--print"]);
    runs.run(plain(), &["capture", &from, "-w", &other]);
    runs.run(plain(), &["bridge", &from, &to]);
    runs.run(plain(), &["lb", &from, "--to", "2"]);
    runs.run(plain(), &["shape", &from, &to, "--loss", "10%"]);
    let pong = home.open(&["pong", "p}0"]);
    runs.run(plain(), &["ping", "p{0", "--count", "3"]);
    pong.signal(Signal::INT);
    finish(pong);
    runs.note(&["pong"]);
    runs.run(plain(), &["ports", "--rings"]);
    runs.run(plain(), &["top", "--interval", "10ms"]);
    runs.run(plain(), &["filter", "show"]);
    runs.run(plain(), &["action", "show"]);
    runs.run(plain(), &["metrics"]);
    // The fields of what it describes are not its own.
    let schema = home.json(&["schema"]);
    let schema = find(&schema, "schema");
    runs.note(&["schema"]);
    assert_eq!(schema["schema"]["$id"], format!("urn:ringway:output:{}", schema["format"]));
    let logged = runs.run(plain(), &["log"]);
    assert_eq!(find(&logged.results, "event")["kind"], "daemon-start");
    runs.run(plain(), &["doctor"]);
    let now = runs.changes(plain(), &["switch", "new", "vale1"]);
    assert_eq!((&now["type"], &now["name"]), (&"switch".into(), &"vale1".into()));
    let now = runs.changes(plain(), &["switch", "forward", "vale1", "flood"]);
    assert_eq!(now["forwarding"], "flood");
    let now = runs.changes(plain(), &["switch", "port", "vale0:b", "--access", "10"]);
    assert_eq!(now["ports"][0]["part"], "VLAN 10");
    runs.run(plain(), &["switch", "list"]);
    runs.run(plain(), &["switch", "save"]);
    runs.run(plain(), &["switch", "stats"]);
    let vlans = runs.run(plain(), &["switch", "vlan"]);
    let of_it = find(&vlans.results, "port_vlans")["vlans"].clone();
    assert_eq!(of_it[0], json!({ "vlan": 10, "flags": ["PVID", "Egress Untagged"] }));
    runs.run(plain(), &["switch", "fdb", "show", "vale0"]);
    assert_eq!(runs.changes(plain(), &["switch", "forward", "vale0", "learning"])["name"], "vale0");
    let add = ["switch", "fdb", "add", "vale0", "02:00:00:00:00:01", "b", "--vlan", "10"];
    let now = runs.changes(plain(), &add);
    assert_eq!((&now["port"], &now["static"]), (&"vale0:b".into(), &true.into()));
    let del = ["switch", "fdb", "del", "vale0", "02:00:00:00:00:01", "--vlan", "10"];
    assert_eq!(runs.changes(plain(), &del), Value::Null);
    assert_eq!(runs.changes(plain(), &["switch", "fdb", "flush", "vale0"]), Value::Null);
    let now = runs.changes(plain(), &["switch", "multicast", "vale0", "snooping"]);
    assert_eq!(now["multicast"], "snooping");
    assert_eq!(runs.run(plain(), &["switch", "mdb", "show", "vale0"]).results, [] as [Value; 0]);
    let mirror = ["switch", "mirror", "vale0", "b", "c", "--to", "probe{1", "--duration", "10ms"];
    let mirrored = runs.run(plain(), &mirror);
    assert!(find(&mirrored.aside, "note")["text"].as_str().unwrap().contains("vale0:c"));
    let add = ["switch", "mirror", "add", "vale0", "span", "--from", "b,c", "--to", "probe"];
    let now = runs.changes(plain(), &[&add[..], &["--filter", "ip"]].concat());
    assert_eq!((&now["name"], &now["to"]), (&"span".into(), &"vale0:probe".into()));
    assert_eq!(now["absent"], json!(["vale0:c", "vale0:probe"]));
    let shown = runs.run(plain(), &["switch", "mirror", "show", "vale0"]);
    assert_eq!(*find(&shown.results, "mirror"), now);
    runs.run(plain(), &["switch", "list"]);
    runs.run(plain(), &["switch", "save", "vale0"]);
    let del = ["switch", "mirror", "del", "vale0", "span"];
    assert_eq!(runs.changes(plain(), &del), Value::Null);
    let socket = home.dir.join("vm.sock").display().to_string();
    let vm = ["vm", "attach", "vale0", "vm", "--socket", &socket, "--duration", "10ms"];
    assert_eq!(find(&runs.run(plain(), &vm).results, "summary")["label"], "vm -> vale0");
    assert_eq!(runs.changes(plain(), &["switch", "delete", "vale1"]), Value::Null);
    receiver.signal(Signal::INT);
    finish(receiver);
    home.is_left_clean();
    // These fail here, the first for there is no such interface, the second in the place of `ringway`.
    for args in [
        &["steer", "nosuch0", "--queue", "0", "--json"][..],
        &["run", "--json", "--", "/nonexistent"],
    ] {
        let output = home.run(args);
        assert!(!output.status.success());
        fields("", find(&printed(args, &output).aside, "error"), &mut runs.fields);
        runs.note(args);
    }
    on_interfaces(&home, &mut runs);
    let mut wanted = commands(&home, &[]);
    assert!(wanted.contains(&"switch new".into()), "{wanted:?}");
    wanted.retain(|name| !runs.done.contains(name));
    assert!(wanted.is_empty(), "not run here: {wanted:?}");
    home.is_left_clean();
}

fn on_interfaces(home: &Home, runs: &mut Runs) {
    if skip_without_root("cli::json::on_interfaces") {
        for skipped in [
            "switch attach",
            "switch detach",
            "filter set",
            "filter clear",
            "action set",
            "action clear",
            "queue add",
            "queue remove",
        ] {
            runs.done.push(skipped.into());
        }
        return;
    }
    let [near, far] = [(); 2].map(|()| Netns::quiet("js"));
    let _pair = near.veth_queues(&far, "js0", "js1", 2);
    let within = || home.command_in(&near, &[]);
    let now = runs.changes(within(), &["switch", "attach", "vale0", "js0"]);
    assert!(now["ports"][0]["mode"].is_string(), "{now}");
    assert_eq!(runs.changes(within(), &["switch", "detach", "vale0", "js0"]), Value::Null);
    let receiver =
        ringway_testkit::Proc::spawn(home.command_in(&near, &["recv", "netmap:js0", "--json"]));
    receiver.wait_for(r#""type":"open""#, LIMIT);
    let now = runs.changes(within(), &["filter", "set", "netmap:js0", "udp", "port", "53"]);
    assert_eq!((&now[0]["type"], &now[0]["text"]), (&"filter".into(), &"udp port 53".into()));
    assert_eq!(runs.changes(within(), &["filter", "clear", "netmap:js0"]), Value::from([0; 0]));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/c/xdp_action.c");
    let object = bpf_object(&home.dir, &source);
    let object = object.to_str().unwrap();
    let now = runs.changes(within(), &["action", "set", "netmap:js0", object]);
    assert_eq!((&now[0]["type"], &now[0]["dropped"]), (&"action".into(), &0.into()));
    assert_eq!(runs.changes(within(), &["action", "clear", "netmap:js0"]), Value::from([0; 0]));
    let now = runs.changes(within(), &["queue", "remove", "netmap:js0", "0"]);
    assert_eq!((&now["name"], &now["queues"]), (&"js0".into(), &Value::from([1])));
    let now = runs.changes(within(), &["queue", "add", "netmap:js0", "0"]);
    assert_eq!(now["queues"], Value::from([0, 1]));
    receiver.signal(Signal::INT);
    finish(receiver);
    fields_are_kept(&runs.fields);
}

/// What other tests hold every line against refuses a field too many, a field too few, and a value of another kind.
#[test]
fn the_schema_tells_what_is_no_line() {
    let note = json!({ "type": "note", "text": "" });
    let open = json!({ "type": "open", "port": "vale0:a", "kind": "", "region": 1, "tx_rings": 1, "rx_rings": 1 });
    for line in [note, open] {
        check_json_line(&line).unwrap();
        for (name, value) in line.as_object().unwrap() {
            let with = |value: Option<Value>| {
                let mut line = line.clone();
                let fields = line.as_object_mut().unwrap();
                fields.remove(name);
                fields.extend(value.map(|value| (name.clone(), value)));
                check_json_line(&line)
            };
            with(Some(value.clone())).unwrap();
            with(None).unwrap_err();
            with(Some(json!([]))).unwrap_err();
        }
        let mut more = line;
        more["more"] = json!(1);
        check_json_line(&more).unwrap_err();
    }
}

/// For an editor, or another program, as it is.
#[test]
fn the_schema_is_printed_as_it_is_kept() {
    let output = Home::new().run(&["schema"]);
    let kept = include_str!("../../ringway-output.schema.json");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), kept);
}

#[test]
fn a_failure_is_an_object_too() {
    let home = Home::new();
    let error = |args: &[&str], status: i32| {
        let output = home.run(args);
        assert_eq!(output.status.code(), Some(status), "{output:?}");
        find(&printed(args, &output).aside, "error").clone()
    };
    let absent = error(&["switch", "delete", "vale7", "--json"], 1);
    assert_eq!((&absent["cause"], &absent["port"]), (&"not_found".into(), &"vale7".into()));
    assert!(absent["problem"].as_str().unwrap().contains("no such switch"), "{absent}");
    assert!(absent["text"].as_str().unwrap().starts_with("vale7: "), "{absent}");
    let name = error(&["--json", "recv", "value:a"], 1);
    assert_eq!((&name["cause"], &name["port"]), (&"invalid".into(), &"value:a".into()));
    let file = error(&["recv", "file:/nonexistent/x.pcap", "--json"], 1);
    assert_eq!((&file["cause"], &file["errno"]), (&"system".into(), &2.into()));
    assert_eq!(file["remedy"], "check the path and its permissions");
    let usage = error(&["switch", "attach", "vale0", "--json"], 2);
    assert_eq!(usage["cause"], "usage");
    assert!(usage["problem"].as_str().unwrap().contains("<INTERFACES>"), "{usage}");
}

/// What is recorded on standard output is alone there, and how the run goes is told in objects.
#[test]
fn results_beside_data_are_objects_on_standard_error() {
    let home = Home::new();
    let (_, from) = named(&home, "in.pcap");
    home.json(&["gen", &from, "--count", "20"]);
    let output = home.run(&["capture", &from, "-w", "-", "--json"]);
    let told = lines(std::str::from_utf8(&output.stderr).unwrap());
    assert_eq!(find(&told, "summary")["packets"], 20);
}

/// Ports and interfaces that are not there fail alike in every command.
#[test]
fn what_is_not_there_is_no_port() {
    if skip_without_root("json::what_is_not_there_is_no_port") {
        return;
    }
    let home = Home::new();
    for (args, port) in [
        (&["switch", "port", "vale3:a"][..], "vale3:a"),
        (&["switch", "detach", "vale3", "a"], "vale3:a"),
        (&["switch", "attach", "vale3", "nosuch0"], "nosuch0"),
        (&["recv", "nosuch0"], "nosuch0"),
        (&["doctor", "nosuch0"], "nosuch0"),
    ] {
        let args = [args, &["--json"]].concat();
        let aside = printed(&args, &home.run(&args)).aside;
        let error = find(&aside, "error");
        assert_eq!([&error["cause"], &error["port"]], ["no_port", port], "{args:?}");
    }
}

/// The stack behind an interface is told apart from it, and that nothing comes by it alone is said.
#[test]
fn host_rings_have_their_own_name() {
    if skip_without_root("json::host_rings_have_their_own_name") {
        return;
    }
    let home = Home::new();
    let netns = Netns::quiet("host");
    netns
        .run("ip link add vh0 type veth peer name vh1 && ip link set vh0 up && ip link set vh1 up");
    let run = |args: &[&str]| {
        let args = [args, &["--duration", "10ms", "--json"]].concat();
        let output = home.command_in(&netns, &args).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        printed(&args, &output)
    };
    let ports = |lines: &[Value], kind: &str| {
        let lines = lines.iter().filter(|line| line["type"] == kind);
        lines.map(|line| line["port"].as_str().unwrap().to_string()).collect::<Vec<_>>()
    };
    let says_so = |run: &Printed| {
        run.aside.iter().any(|line| line["text"].as_str().unwrap().contains("open netmap:vh0*"))
    };
    let both = run(&["bridge", "netmap:vh0"]);
    for kind in ["open", "drops"] {
        assert_eq!(ports(&both.results, kind), ["vh0", "vh0^"], "{kind}");
    }
    let alone = run(&["recv", "netmap:vh0^"]);
    assert_eq!(ports(&alone.results, "open"), ["vh0^"]);
    assert!(says_so(&alone) && !says_so(&both), "{:?}", alone.aside);
}
