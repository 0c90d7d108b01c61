//! Switches that the operator declares: how their ports take part, and what a reading leaves as it is.

mod common;

use std::time::Instant;

use common::{World, all};
use libc::EBUSY;
use ringway_proto::{
    BridgeInfo, BridgePortInfo, Forwarding, Multicast, Reply, Request, SwitchPosition, Vlan,
};
use ringway_registry::{DeclaredPort, DeclaredSwitch, Handle, LastingSettings};

const ALICE: u32 = 8;
/// Of a unit with `DynamicUser=yes`: no file can name it.
const DYNAMIC: u32 = 61500;

/// Such a switch of root's.
fn switch(name: &str, ports: Vec<DeclaredPort>) -> DeclaredSwitch {
    DeclaredSwitch {
        name: name.into(),
        owner: 0,
        one_address: false,
        forwarding: Forwarding::default(),
        multicast: Multicast::Flood,
        ports,
        addresses: Vec::new(),
        place: String::new(),
    }
}

/// A program's port in a VLAN, of the switch's owner.
fn port(name: &str, vlan: u16) -> DeclaredPort {
    let settings = LastingSettings {
        name: name.into(),
        vlan: Vlan::Access(vlan),
        isolated: true,
        ..LastingSettings::unset(false)
    };
    DeclaredPort { settings, interface: None, for_user_alone: false }
}

fn declare(w: &mut World, switches: &[DeclaredSwitch]) -> Vec<String> {
    let (_, failed) = w.registry.declare(switches, Instant::now());
    failed.iter().map(ToString::to_string).collect()
}

fn open(w: &mut World, uid: u32, name: &str) -> Result<Handle, i32> {
    w.caller.uid = uid;
    let opened = w.register(name, all()).map(|(handle, _)| handle);
    w.caller.uid = 0;
    opened
}

fn switches(w: &mut World) -> Vec<BridgeInfo> {
    match w.ask(Request::Switches { from: SwitchPosition::default() }) {
        Ok(Reply::Switches { switches, next: None }) => switches,
        other => panic!("{other:?}"),
    }
}

fn shown(w: &mut World, name: &str) -> BridgePortInfo {
    let all = switches(w).into_iter().flat_map(|switch| switch.ports);
    all.into_iter().find(|port| port.name == name).expect("it is there")
}

/// A machine's process has a number that is drawn when it starts.
#[test]
fn what_is_declared_is_for_each_user_that_may_have_the_name() {
    let mut w = World::new();
    w.caller.uid = 0;
    assert_eq!(declare(&mut w, &[switch("vale0", vec![port("vale0:vm1", 10)])]), [""; 0]);
    for uid in [DYNAMIC, ALICE, 0] {
        let handle = open(&mut w, uid, "vale0:vm1").unwrap();
        let shown = shown(&mut w, "vale0:vm1");
        assert_eq!((shown.vlan, shown.isolated, shown.uid), (Vlan::Access(10), true, uid));
        w.close([handle]);
    }
    assert_eq!(declare(&mut w, &[]), [""; 0]);
    w.assert_empty();
}

#[test]
fn a_port_that_is_declared_for_a_user_is_that_users() {
    let mut w = World::new();
    w.caller.uid = 0;
    let mut of_alice = port("vale0:a", 10);
    (of_alice.settings.uid, of_alice.for_user_alone) = (ALICE, true);
    let wanted = [switch("vale0", vec![of_alice])];
    let before = open(&mut w, DYNAMIC, "vale0:a").unwrap();
    // The port that is open stays, with what is declared, and the operator is told.
    let failed = declare(&mut w, &wanted);
    assert!(failed.len() == 1 && failed[0].contains("for user 8"), "{failed:?}");
    assert_eq!(shown(&mut w, "vale0:a").vlan, Vlan::Access(10));
    w.close([before]);
    assert_eq!(open(&mut w, DYNAMIC, "vale0:a").unwrap_err(), EBUSY);
    for uid in [ALICE, 0] {
        let handle = open(&mut w, uid, "vale0:a").unwrap();
        assert_eq!(shown(&mut w, "vale0:a").vlan, Vlan::Access(10));
        w.close([handle]);
    }
}
