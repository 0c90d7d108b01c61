//! `doctor IF --try`: frames are really sent, and what the way loses is what it says.

use crate::home::{Home, find, lines, sentence};
use ringway_testkit::{Netns, NicState, VethPair, bpf_object, skip_without_root};
use serde_json::Value;
use std::{fs, os::unix::fs::PermissionsExt, process::Output};

/// Drops what has 512 bytes, and nothing else.
const DROP: &str = "
    #include <net/ringway_xdp.h>
    SEC(\"xdp\") int drop(struct xdp_md *ctx) {
        return ctx->data_end - ctx->data == 512 ? XDP_DROP : XDP_PASS;
    }
";

struct Way {
    home: Home,
    near: Netns,
    far: Netns,
    _pair: VethPair,
}

impl Way {
    fn new() -> Way {
        let [near, far] = [(); 2].map(|()| Netns::quiet("doc"));
        let pair = near.veth(&far, "vd0", "vd1");
        Way { home: Home::new(), near, far, _pair: pair }
    }

    fn peer(&self) -> String {
        format!("{}:vd1", self.far.name().unwrap())
    }

    fn doctor(&self, more: &[&str]) -> Output {
        let peer = self.peer();
        let args = [&["doctor", "vd0", "--try", "--peer", &peer], more].concat();
        self.home.command_in(&self.near, &args).output().unwrap()
    }

    /// The trials of all modes; and the error, if there is one.
    fn trials(&self) -> (Vec<Value>, Option<Value>) {
        let output = self.doctor(&["--json"]);
        let [said, aside] =
            [&output.stdout, &output.stderr].map(|text| String::from_utf8(text.clone()).unwrap());
        let mut trials = lines(&said);
        trials.retain(|line| line["type"] == "trial");
        let modes: Vec<_> = trials.iter().map(|trial| trial["mode"].as_str().unwrap()).collect();
        assert_eq!(modes, ["zerocopy", "copy", "generic", "packet"], "{said}{aside}");
        let error = (!output.status.success()).then(|| find(&lines(&aside), "error").clone());
        assert_eq!(output.status.code(), Some(i32::from(error.is_some())), "{aside}");
        (trials, error)
    }
}

/// The sizes that were lost in a direction of a trial: of others every frame has come.
fn lost(trial: &Value, direction: usize) -> Vec<u64> {
    let mut lost = Vec::new();
    for size in trial["directions"][direction]["sizes"].as_array().unwrap() {
        assert_eq!(size["damaged"], 0, "{trial}");
        match size["arrived"].as_u64().unwrap() {
            0 => lost.push(size["size"].as_u64().unwrap()),
            arrived => assert_eq!(size["sent"], arrived, "{trial}"),
        }
    }
    lost
}

fn sizes(trial: &Value) -> Vec<u64> {
    let sizes = trial["directions"][0]["sizes"].as_array().unwrap();
    sizes.iter().map(|size| size["size"].as_u64().unwrap()).collect()
}

/// What a program that opens a port is told of the directory of its daemon, `doctor` tells before.
#[test]
fn directories_that_no_daemon_can_have_are_told() {
    let home = Home::new();
    let inside = |name: &str| home.dir.join(name);
    fs::create_dir(inside("open")).unwrap();
    fs::set_permissions(inside("open"), fs::Permissions::from_mode(0o777)).unwrap();
    fs::write(inside("file"), "").unwrap();
    let long = "x".repeat(100);
    for (place, problem) in [
        ("open", "can be entered by others (mode 777); take their rights away"),
        ("file", "is not a directory"),
        ("no/parent", "cannot be created"),
        (&long, "is too long for the path of a socket"),
    ] {
        for args in [&["doctor"][..], &["gen", "vale0:a", "--count", "1"]] {
            let mut command = home.command(args);
            let said = sentence(command.env("RINGWAY_DIR", inside(place)).output().unwrap());
            let said = said.replace(": take", "; take");
            assert!(said.contains(place) && said.contains(problem), "{args:?}: {said}");
            assert!(said.contains("RINGWAY_DIR"), "{args:?}: {said}");
        }
        assert!(!inside(&long).exists());
    }
    let mut fresh = home.command(&["doctor"]);
    assert!(fresh.env("RINGWAY_DIR", inside("fresh")).output().unwrap().status.success());
    assert!(!inside("fresh").exists(), "doctor leaves nothing");
}

#[test]
fn all_frames_arrive_on_a_good_way() {
    if skip_without_root("doctor::all_frames_arrive_on_a_good_way") {
        return;
    }
    let way = Way::new();
    let before = [(&way.near, "vd0"), (&way.far, "vd1")].map(|(at, name)| NicState::take(at, name));
    let (trials, error) = way.trials();
    assert_eq!(error, None, "{trials:?}");
    // A veth pair has no zero-copy.
    assert!(trials[0]["refused"].as_str().unwrap().contains("zerocopy"), "{}", trials[0]);
    for trial in &trials[1..] {
        assert_eq!(trial["refused"], Value::Null, "{trial}");
        assert_eq!(
            sizes(trial),
            [60, 64, 128, 256, 512, 1000, 1024, 1280, 1400, 1500, 1514],
            "{trial}"
        );
        assert!(lost(trial, 0).is_empty() && lost(trial, 1).is_empty(), "{trial}");
        let ways = [("vd0".to_string(), way.peer()), (way.peer(), "vd0".to_string())];
        for (direction, (from, to)) in ways.iter().enumerate() {
            let direction = &trial["directions"][direction];
            assert_eq!((&direction["from"], &direction["to"]), (&from[..].into(), &to[..].into()));
        }
    }
    way.home.is_left_clean();
    before[0].assert_restored(&way.near);
    before[1].assert_restored(&way.far);
}

/// Frames longer than a buffer, and those that end where it ends.
#[test]
fn longer_frames_are_tried_where_the_mtu_allows_them() {
    if skip_without_root("doctor::longer_frames_are_tried_where_the_mtu_allows_them") {
        return;
    }
    let way = Way::new();
    way.near.run("ip link set vd0 mtu 3000");
    way.far.run("ip link set vd1 mtu 3000");
    let (trials, error) = way.trials();
    assert_eq!(error, None, "{trials:?}");
    for trial in &trials[1..] {
        assert!(sizes(trial).ends_with(&[1514, 1791, 1792, 1793, 3014]), "{trial}");
    }
}

#[test]
fn what_a_smaller_mtu_at_the_peer_loses_is_named() {
    if skip_without_root("doctor::what_a_smaller_mtu_at_the_peer_loses_is_named") {
        return;
    }
    let way = Way::new();
    way.far.run("ip link set vd1 mtu 1000");
    let (trials, error) = way.trials();
    for trial in &trials[1..] {
        // To the peer the kernel allows for a VLAN tag besides; from it, it allows for none.
        let too_long = [1024, 1280, 1400, 1500, 1514];
        assert_eq!([lost(trial, 0), lost(trial, 1)], [too_long, too_long], "{trial}");
        assert_eq!(
            (&trial["ends"][0]["mtu"], &trial["ends"][1]["mtu"]),
            (&1500.into(), &1000.into())
        );
    }
    let error = error.unwrap();
    assert_eq!((&error["cause"], &error["port"]), (&"not_arrived".into(), &"vd0".into()));
    assert!(
        error["problem"].as_str().unwrap().ends_with("in mode copy, generic, packet"),
        "{error}"
    );
    assert!(error["remedy"].as_str().unwrap().contains("of 1000: make them the same"), "{error}");
}

#[test]
fn what_a_program_at_the_peer_drops_is_named() {
    if skip_without_root("doctor::what_a_program_at_the_peer_drops_is_named") {
        return;
    }
    let way = Way::new();
    let source = way.home.dir.join("drop.c");
    std::fs::write(&source, DROP).unwrap();
    let object = bpf_object(&way.home.dir, &source);
    way.far.run(&format!("ip link set dev vd1 xdpgeneric obj {} sec xdp", object.display()));
    let (trials, error) = way.trials();
    for trial in &trials[1..] {
        assert_eq!([lost(trial, 0), lost(trial, 1)], [vec![512], vec![]], "{trial}");
    }
    assert!(error.unwrap()["remedy"].as_str().unwrap().contains("XDP programs at vd0 and"));
    // For people as well.
    let output = way.doctor(&[]);
    let text = String::from_utf8(output.stdout).unwrap();
    let row = |mode: &str| text.lines().find(|line| line.starts_with(mode)).unwrap();
    for mode in ["copy", "generic", "packet"] {
        let cells: Vec<_> = row(mode).split("  ").filter(|cell| !cell.is_empty()).collect();
        assert_eq!(
            cells.iter().map(|cell| cell.trim()).collect::<Vec<_>>(),
            [mode, "lost: 512", "all arrive"]
        );
    }
}

#[test]
fn what_is_used_is_refused() {
    if skip_without_root("doctor::what_is_used_is_refused") {
        return;
    }
    let way = Way::new();
    let refused = |more: &[&str]| {
        let output = way.doctor(more);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    way.far.run("ip addr add 10.77.0.2/24 dev vd1");
    let text = refused(&[]);
    assert!(text.contains("vd1: this would stop the address 10.77.0.2/24; "), "{text}");
    assert!(text.contains("--force takes it all the same"), "{text}");
    let output = way.doctor(&["--force"]);
    assert!(output.status.success(), "{output:?}");
    way.far.run("ip addr flush dev vd1");
    way.near.run("ip addr add 10.77.0.1/24 dev vd0");
    assert!(refused(&[]).contains("vd0: this would stop the address 10.77.0.1/24; "));
    way.near.run("ip addr flush dev vd0");
    way.far.run("ip link set vd1 down");
    assert!(refused(&[]).contains("the interface is down"));

    let fails = |args: &[&str]| {
        let args = [&["doctor", "vd0", "--try"], args].concat();
        let output = way.home.command_in(&way.near, &args).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(fails(&[]).contains("name it with --peer IF"));
    assert!(fails(&["--peer", "vd0"]).contains("it cannot be its own peer"));
    assert!(fails(&["--peer", "nosuch0"]).contains("there is no such interface"));
    assert!(fails(&["--peer", "no-such-netns:vd1"]).contains("no such network namespace"));
    way.home.is_left_clean();
}
