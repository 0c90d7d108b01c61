//! Which interface a name means: the one that has it now, where the program is.

use std::time::Duration;

use ringway::{Control, Error, Port};
use ringway_testkit::{Netns, skip_without_root};
use ringway_tests::{isolated, until};

const LIMIT: Duration = Duration::from_secs(30);

fn open(netns: &Netns, spec: &str) -> Result<Port, Error> {
    netns.enter(|| Port::open(spec))
}

/// What one port sends the other receives, and nothing else.
fn assert_joined(from: &mut Port, to: &mut Port, tag: u8) {
    let frame = [&[0xff; 6][..], &[2, 0, 0, 0, 0, 1, 0x88, 0xb5], &[tag; 46]].concat();
    let mut tx = from.tx(0);
    assert!(tx.push(&frame));
    tx.sync();
    assert!(to.wait_rx(Some(LIMIT)).unwrap(), "{tag} arrives");
    let received: Vec<_> = to.rx(0).batch(64).map(|frame| frame.to_vec()).collect();
    assert_eq!(received, [frame]);
}

fn shown() -> Vec<String> {
    let mut names: Vec<_> =
        Control::connect().unwrap().ports().unwrap().into_iter().map(|port| port.name).collect();
    names.sort();
    names
}

/// Two interfaces change their names while programs have them: the programs go on, and whoever
/// opens a name gets the interface that has it.
#[test]
fn interfaces_are_renamed() {
    if skip_without_root("interfaces_are_renamed") {
        return;
    }
    isolated("interfaces_are_renamed", |home| {
        let (a, b) = (Netns::quiet("rwr"), Netns::quiet("rwr"));
        let pairs = [a.veth(&b, "n0", "m0"), a.veth(&b, "n1", "m1")];
        let (mut first, mut second) =
            (open(&a, "netmap:n0").unwrap(), open(&a, "netmap:n1").unwrap());
        let mut pipe = open(&a, "netmap:n0{1").unwrap();
        // Each namespace may have pipes of that name.
        let ports = Control::connect().unwrap().ports().unwrap();
        let netns = |name: &str| ports.iter().find(|port| port.name == name).unwrap().netns;
        assert!(netns("n0").is_some());
        assert_eq!(["n0{1", "n0}1"].map(netns), [netns("n0"); 2]);
        let [mut zero, mut one] = ["m0", "m1"].map(|name| open(&b, name).unwrap());
        a.run(
            "ip link set n0 down && ip link set n1 down &&
             ip link set n0 name was0 && ip link set n1 name n0 && ip link set was0 name n1 &&
             ip link set n0 up && ip link set n1 up",
        );
        assert_eq!(shown(), ["m0", "m1", "n0", "n1", "n1{1", "n1}1"]);
        // What is named is the port that has the interface already.
        let mut now_one = open(&a, "netmap:n0").unwrap();
        let mut now_zero = open(&a, "netmap:n1").unwrap();
        assert_joined(&mut now_one, &mut one, 1);
        assert_joined(&mut now_zero, &mut zero, 2);
        assert_joined(&mut zero, &mut first, 3);
        assert_joined(&mut one, &mut second, 4);
        assert_joined(&mut pipe, &mut open(&a, "netmap:n1}1").unwrap(), 5);
        drop((first, second, now_one, now_zero, pipe));
        // The end of a pipe is not waited for, and its interface's port stays as long as it does.
        until("the ports have gone", || match shown() {
            shown if shown == ["m0", "m1"] => Ok(()),
            shown => Err(format!("{shown:?}")),
        });
        drop((zero, one, pairs));
        home.assert_left();
    });
}

/// A port whose interface has another name now does not keep the old one from a new interface.
#[test]
fn a_name_is_free_again() {
    if skip_without_root("a_name_is_free_again") {
        return;
    }
    isolated("a_name_is_free_again", |home| {
        home.install(&[("ringway", "ringway-cli")]);
        let (a, b) = (Netns::quiet("rwr"), Netns::quiet("rwr"));
        let _pairs = [a.veth(&b, "n0", "m0")];
        let control = Control::connect().unwrap();
        a.enter(|| control.switch_attach("vale0", "n0", false)).unwrap();
        let busy = open(&a, "netmap:n0").unwrap_err();
        assert_eq!(ringway_errno::errno(busy.cause()), 16, "{busy}");
        a.run("ip link set n0 down && ip link set n0 name old && ip link set old up");
        let _second = a.veth(&b, "n0", "m1");
        let mut port = open(&a, "netmap:n0").unwrap();
        assert_joined(&mut port, &mut open(&b, "netmap:m1").unwrap(), 1);
        // It is on its switch by the name that it had, and its present one is told.
        let on_switch = |name: &str| {
            let switches = control.switches().unwrap();
            let mut ports = switches.into_iter().flat_map(|switch| switch.ports);
            ports.find(|port| port.name == name).expect("it is there").interface
        };
        until("its new name is told", || match on_switch("vale0:n0") {
            Some(name) if name == "old" => Ok(()),
            name => Err(format!("{name:?}")),
        });
        let tells = |args: &[&str]| {
            let output = home.command(home.bin().join("ringway")).args(args).output().unwrap();
            format!(
                "{}{}",
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            )
        };
        let now = "its interface is called old now";
        for args in [
            &["switch", "list"][..],
            &["switch", "port", "vale0:n0"],
            &["switch", "stats"],
            &["switch", "save"],
            &["ports"],
        ] {
            let told = tells(args);
            assert!(told.contains("n0") && told.contains(now), "{args:?}: {told}");
        }
        let told = tells(&["ports", "--json"]);
        assert!(told.contains(r#""interface":"old""#), "{told}");
        a.run("ip link set old down && ip link set old name older && ip link set older up");
        until("so is the next", || match on_switch("vale0:n0") {
            Some(name) if name == "older" => Ok(()),
            name => Err(format!("{name:?}")),
        });
        a.run("ip link set older down && ip link set older name old && ip link set old up");
        let mut member = Port::open("vale0:x").unwrap();
        assert_joined(&mut open(&b, "netmap:m0").unwrap(), &mut member, 2);
        assert_eq!(ringway_errno::errno(open(&a, "netmap:old").unwrap_err().cause()), 16);
        a.enter(|| control.switch_detach("vale0", "n0")).unwrap();
        drop(open(&a, "netmap:old").unwrap());
        drop((port, member, control));
        home.assert_left();
    });
}

/// Hosts have interfaces of one name, and pipes on these: each has its own.
#[test]
fn pipes_of_interfaces_of_one_name() {
    if skip_without_root("pipes_of_interfaces_of_one_name") {
        return;
    }
    isolated("pipes_of_interfaces_of_one_name", |home| {
        let (a, b) = (Netns::quiet("rwr"), Netns::quiet("rwr"));
        let _pair = a.veth(&b, "n0", "n0");
        let ends = |netns: &Netns| ["n0{1", "n0}1"].map(|end| open(netns, end).unwrap());
        let ([mut left, mut right], [mut other_left, mut other_right]) = (ends(&a), ends(&b));
        assert_joined(&mut left, &mut right, 1);
        assert_joined(&mut other_left, &mut other_right, 2);
        assert_joined(&mut right, &mut left, 3);
        drop((left, right, other_left, other_right));
        // Where there is no such interface, a name is just a name, wherever it is said.
        let elsewhere = Netns::quiet("rwr");
        let mut cookie = open(&elsewhere, "word{1").unwrap();
        assert_joined(&mut cookie, &mut open(&a, "word}1").unwrap(), 4);
        drop(cookie);
        home.assert_left();
    });
}
