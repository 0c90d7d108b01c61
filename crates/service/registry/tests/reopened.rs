//! What users have chosen for a program's port, when it is opened again: it would be in another network without.

mod common;

use std::time::Instant;

use common::{World, all, select};
use libc::{EBUSY, EINVAL};
use ringway_proto::{
    BridgePortInfo, Forwarding, PortSettings, Reply, Request, RingSelection, SwitchPosition, Vlan,
};
use ringway_registry::{Handle, Lasting};

const ALICE: u32 = 8;
const BOB: u32 = 9;

fn open(w: &mut World, uid: u32, name: &str) -> Handle {
    w.caller.uid = uid;
    w.open(name).0
}

fn shown(w: &mut World, name: &str) -> BridgePortInfo {
    let Ok(Reply::Switches { switches, next: None }) =
        w.ask(Request::Switches { from: SwitchPosition::default() })
    else {
        panic!("always")
    };
    let mut ports = switches.into_iter().flat_map(|switch| switch.ports);
    ports.find(|port| port.name == name).expect("it is there")
}

/// Root puts a port into a VLAN.
fn choose(w: &mut World, name: &str) {
    let settings = PortSettings {
        vlan: Some(Vlan::Access(10)),
        isolated: Some(true),
        max_addresses: Some(Some(7)),
        ..PortSettings::default()
    };
    w.caller.uid = 0;
    w.ask(Request::SwitchPort { name: name.into(), settings }).unwrap();
}

fn is_chosen(w: &mut World, name: &str) -> bool {
    let port = shown(w, name);
    let chosen = (Vlan::Access(10), true);
    (port.vlan, port.isolated) == chosen
}

#[test]
fn a_port_that_its_user_opens_again_has_its_settings() {
    let mut w = World::new();
    w.caller.uid = 0;
    w.ask(Request::SwitchNew { bridge: "vale0".into(), one_address: false }).unwrap();
    let first = open(&mut w, ALICE, "vale0:vm1");
    choose(&mut w, "vale0:vm1");
    w.close([first]);
    // Another user's is another port, and does not end that.
    let others = open(&mut w, BOB, "vale0:vm1");
    assert!(!is_chosen(&mut w, "vale0:vm1"));
    let saved = w.registry.lasting().expect("it has changed");
    w.close([others]);
    let again = open(&mut w, ALICE, "vale0:vm1");
    assert!(is_chosen(&mut w, "vale0:vm1"));
    w.close([again]);
    let mut second = World::new();
    assert_eq!(second.registry.restore(saved, Instant::now()), [""; 0]);
    let again = open(&mut second, ALICE, "vale0:vm1");
    assert!(is_chosen(&mut second, "vale0:vm1"));
    second.close([again]);

    // A limit for a port that may stay away does not hold the switch to learning.
    w.caller.uid = 0;
    let forwarding = Forwarding::Flood;
    w.ask(Request::SwitchForward { bridge: "vale0".into(), forwarding }).unwrap();
    let again = open(&mut w, ALICE, "vale0:vm1");
    assert!(is_chosen(&mut w, "vale0:vm1"));
    assert_eq!(shown(&mut w, "vale0:vm1").max_addresses, None);
    w.close([again]);
    // They go with the switch.
    w.caller.uid = 0;
    w.ask(Request::SwitchDelete { bridge: "vale0".into() }).unwrap();
    let again = open(&mut w, ALICE, "vale0:vm1");
    assert!(!is_chosen(&mut w, "vale0:vm1"));
    w.close([again]);
    w.caller.uid = 0;
    w.assert_empty();
}

/// What is left of a switch of Alice's program, with settings of its port and of its own, when the daemon ends under it.
fn alices_switch() -> Lasting {
    let mut w = World::new();
    let first = open(&mut w, ALICE, "vale0:vm1");
    choose(&mut w, "vale0:vm1");
    w.caller.uid = ALICE;
    let forwarding = Forwarding::Learning { ageing_seconds: 9 };
    w.ask(Request::SwitchForward { bridge: "vale0".into(), forwarding }).unwrap();
    let saved = w.registry.lasting().expect("it has changed");
    w.close([first]);
    assert_eq!(w.registry.lasting(), Some(Default::default()), "it has gone with its port");
    saved
}

/// The daemon ends under the programs, which open their ports again.
#[test]
fn a_switch_of_programs_alone_goes_on_with_the_next_daemon() {
    let saved = alices_switch();

    let next = || {
        let mut next = World::new();
        assert_eq!(next.registry.restore(saved.clone(), Instant::now()), [""; 0]);
        next.assert_empty();
        // A registry that ends before the programs are back hands it on.
        assert_eq!(next.registry.lasting().as_ref(), Some(&saved));
        next
    };
    let mut second = next();
    let again = open(&mut second, ALICE, "vale0:vm1");
    assert!(is_chosen(&mut second, "vale0:vm1"));
    second.caller.uid = BOB;
    assert_eq!(second.register("vale0:b", all()).unwrap_err(), EBUSY, "it is Alice's as before");
    second.close([again]);
    assert_eq!(second.registry.lasting(), Some(Default::default()));

    // Another user has the name first: it is a switch as any, but for the port.
    let mut third = next();
    let others = open(&mut third, BOB, "vale0:b");
    let again = open(&mut third, ALICE, "vale0:vm1");
    assert!(is_chosen(&mut third, "vale0:vm1") && !is_chosen(&mut third, "vale0:b"));
    third.close([others, again]);
}

/// What is not a port of theirs leaves the switch waiting for its users' programs.
#[test]
fn a_switch_waits_until_one_of_its_users_opens_a_port() {
    let saved = alices_switch();

    let mut next = World::new();
    assert_eq!(next.registry.restore(saved.clone(), Instant::now()), [""; 0]);
    assert_eq!(next.registry.lasting().as_ref(), Some(&saved));
    for uid in [BOB, ALICE] {
        next.caller.uid = uid;
        for name in ["vale0:zz", "vale0:vm1", "vale0:zz{1"] {
            next.ask(Request::PortGeometry { name: name.into(), mem_id: 0 }).unwrap();
            next.ask(Request::Pools { name: name.into(), mem_id: 0 }).unwrap();
        }
        assert_eq!(next.registry.lasting(), None, "a question makes no switch");
        assert_eq!(next.register("vale0:vm1", select(RingSelection::One(99))).unwrap_err(), EINVAL);
        assert_eq!(next.registry.lasting().as_ref(), Some(&saved));
    }
    for uid in [BOB, 0] {
        let others = open(&mut next, uid, "vale0:b");
        next.close([others]);
        assert_eq!(next.registry.lasting().as_ref(), Some(&saved));
        // Others delete what they have of it.
        let others = open(&mut next, BOB, "vale0:b");
        next.caller.uid = BOB;
        next.ask(Request::SwitchDelete { bridge: "vale0".into() }).unwrap();
        next.close([others]);
        assert_eq!(next.registry.lasting().as_ref(), Some(&saved));
    }
    let again = open(&mut next, ALICE, "vale0:vm1");
    assert!(is_chosen(&mut next, "vale0:vm1"));
    next.close([again]);
    assert_eq!(
        next.registry.lasting(),
        Some(Default::default()),
        "it has gone with its user's port"
    );

    // Root deletes all of it.
    let mut next = World::new();
    assert_eq!(next.registry.restore(saved, Instant::now()), [""; 0]);
    let others = open(&mut next, BOB, "vale0:b");
    next.caller.uid = 0;
    next.ask(Request::SwitchDelete { bridge: "vale0".into() }).unwrap();
    next.close([others]);
    assert_eq!(next.registry.lasting(), Some(Default::default()));
}
