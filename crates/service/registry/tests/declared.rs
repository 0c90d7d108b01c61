//! Switches that the operator declares: how their ports take part, and what a reading leaves as it is.

mod common;

use std::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
    time::Instant,
};

use common::{World, all};
use libc::EBUSY;
use ringway_abi::Dir;
use ringway_proto::{
    AddressInfo, BridgeInfo, BridgePortInfo, Forwarding, Multicast, PortSettings, Reply, Request,
    SwitchPosition, Vlan,
};
use ringway_registry::{
    Change, DeclaredInterface, DeclaredPort, DeclaredSwitch, Handle, LastingAddress,
    LastingSettings, Outcome,
};
use ringway_testkit::skip_without_root;

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
        mirrors: Vec::new(),
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
    DeclaredPort { settings, interface: None, for_user_alone: false, place: String::new() }
}

fn declare(w: &mut World, switches: &[DeclaredSwitch]) -> Vec<String> {
    let Outcome { failed, .. } = w.registry.declare(switches, Instant::now());
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

/// The addresses that a switch has learned.
fn learned(w: &mut World, bridge: &str) -> Vec<AddressInfo> {
    match w.ask(Request::SwitchAddresses { bridge: bridge.into(), from: 0 }) {
        Ok(Reply::SwitchAddresses { addresses, .. }) => addresses,
        other => panic!("{other:?}"),
    }
}

/// Has a port send to all, and waits until the switch knows its address.
fn send(w: &mut World, handle: Handle, bridge: &str) -> Vec<AddressInfo> {
    let frame = [&[0xff; 6][..], &[2, 0, 0, 0, 0, 1, 0x88, 0xb5], &[0; 46]].concat();
    let tx = w.ring(handle, Dir::Tx);
    let slot = tx.ring().slot(0);
    tx.ring().buf(slot.buf_idx).unwrap().write(0, &frame);
    tx.ring().set_slot(0, slot.buf_idx, frame.len() as u16, 0);
    tx.csb().app.publish(1, 1);
    // Each question wakes the worker.
    loop {
        let known = learned(w, bridge);
        if !known.is_empty() {
            return known;
        }
    }
}

/// Only what differs is changed.
#[test]
fn what_stays_as_it_is_keeps_what_was_learned() {
    let mut w = World::new();
    w.caller.uid = 0;
    let wanted = [switch("vale0", vec![port("vale0:a", 10)])];
    assert_eq!(declare(&mut w, &wanted), [""; 0]);
    let handle = open(&mut w, 0, "vale0:a").unwrap();
    let is_known = |w: &mut World| learned(w, "vale0").iter().any(|it| it.mac[5] == 1);
    assert_eq!(send(&mut w, handle, "vale0").len(), 1);
    assert_eq!(declare(&mut w, &wanted), [""; 0]);
    assert!(is_known(&mut w), "a reading that changes nothing");
    let forward = |forwarding| Request::SwitchForward { bridge: "vale0".into(), forwarding };
    w.ask(forward(Forwarding::default())).unwrap();
    assert!(is_known(&mut w), "a command that changes nothing");
    assert_eq!(declare(&mut w, &[]), [""; 0]);
    w.close([handle]);
    w.assert_empty();
}

/// Ports change places between VLANs: nothing passes while some are as before, and some as they are to be.
#[test]
fn a_reading_is_one_step_for_frames() {
    let mut w = World::new();
    w.caller.uid = 0;
    let wanted = |a, b| {
        let ports = [("vale0:a", a), ("vale0:b", b)].map(|(name, vlan)| {
            let mut port = port(name, vlan);
            port.settings.isolated = false;
            port
        });
        [switch("vale0", ports.into())]
    };
    let [before, after] = [wanted(10, 20), wanted(20, 10)];
    assert_eq!(declare(&mut w, &before), [""; 0]);
    let [a, b] = ["vale0:a", "vale0:b"].map(|name| open(&mut w, 0, name).unwrap());
    let (tx, rx) = (w.ring(a, Dir::Tx), w.ring(b, Dir::Rx));
    for at in 0..tx.ring().num_slots() {
        let slot = tx.ring().slot(at);
        tx.ring().buf(slot.buf_idx).unwrap().write(0, &[0xff; 64]);
        tx.ring().set_slot(at, slot.buf_idx, 64, 0);
    }
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        // It always has something to send.
        scope.spawn(|| {
            while !is_done.load(Relaxed) {
                let tail = tx.hwtail();
                tx.csb().app.publish(tail, tail);
            }
        });
        for _ in 0..200 {
            for wanted in [&after, &before] {
                assert_eq!(declare(&mut w, wanted), [""; 0]);
            }
        }
        is_done.store(true, Relaxed);
    });
    assert_eq!(rx.hwtail(), 0, "frames of another VLAN");
    assert!(shown(&mut w, "vale0:a").totals.sent_packets > 0);
    drop((tx, rx));
    w.close([a, b]);
}

/// An interface that is there, and cannot be on a switch, is told from one that is still to come.
#[test]
fn why_a_declared_interface_is_not_attached() {
    if skip_without_root("why_a_declared_interface_is_not_attached") {
        return;
    }
    let mut w = World::new();
    let interface = |name: &str| {
        let settings = LastingSettings { name: name.into(), ..LastingSettings::unset(false) };
        let interface = Some(DeclaredInterface { stack: false, mode: None });
        DeclaredPort { settings, interface, for_user_alone: false, place: String::new() }
    };
    let ports = ["vale0:lo", "vale0:rwnosuch0"].map(interface);
    assert_eq!(declare(&mut w, &[switch("vale0", ports.into())]), [""; 0]);
    let now = Instant::now();
    for _ in 0..2 {
        let due = w.registry.expected().due(now).expect("it is to be attached");
        let handle = w.registry.open();
        let outcome = w.registry.call(handle, &w.caller, due.request.clone()).map(drop);
        assert!(outcome.is_err());
        w.registry.tried_again(&due, outcome, now);
        w.registry.close(handle);
    }
    let why = |w: &mut World, name: &str| shown(w, name).mode.expect("it says why");
    let [lo, missing] = ["vale0:lo", "vale0:rwnosuch0"].map(|name| why(&mut w, name));
    assert!(lo.starts_with("not attached: ") && lo.contains("no Ethernet interface"), "{lo}");
    assert!(missing.starts_with("not there yet: "), "{missing}");
    let lasting = w.registry.lasting().expect("it has changed");
    assert!(lasting.attached.len() == 2 && lasting.attached.iter().all(|it| it.absent));
    declare(&mut w, &[]);
    w.assert_empty();
}

/// Each declared port has its own line, there or not.
#[test]
fn ports_show_where_they_are_declared() {
    let mut w = World::new();
    w.caller.uid = 0;
    let at = |name: &str, place: &str| DeclaredPort { place: place.into(), ..port(name, 10) };
    let ports = vec![at("vale0:a", "f: line 5"), at("vale0:b", "f: line 8"), at("vale0:old", "")];
    let wanted = DeclaredSwitch { place: "f: line 2".into(), ..switch("vale0", ports) };
    assert_eq!(declare(&mut w, &[wanted]), [""; 0]);
    let handles = ["vale0:a", "vale0:other"].map(|name| open(&mut w, 0, name).unwrap());
    for (name, place) in [
        ("vale0:a", Some("f: line 5")),
        ("vale0:b", Some("f: line 8")),
        ("vale0:old", None),
        ("vale0:other", None),
    ] {
        assert_eq!(shown(&mut w, name).declared_at.as_deref(), place, "{name}");
    }
    w.close(handles);
    declare(&mut w, &[]);
    w.assert_empty();
}

/// What a reading takes from a port that a program has open, or may open, is said; once.
#[test]
fn a_port_that_is_declared_no_more_is_told() {
    let mut w = World::new();
    w.caller.uid = 0;
    let mut free = port("vale0:free", 10);
    free.settings = LastingSettings { name: "vale0:free".into(), ..LastingSettings::unset(false) };
    let all = [port("vale0:a", 10), port("vale0:b", 10), port("vale0:c", 10), free];
    assert_eq!(declare(&mut w, &[switch("vale0", all.into())]), [""; 0]);
    let handle = open(&mut w, 0, "vale0:a").unwrap();
    let changes = |w: &mut World, ports: &[DeclaredPort]| {
        let wanted = [switch("vale0", ports.to_vec())];
        w.registry.declare(&wanted, Instant::now()).changes
    };
    // A port is deleted, another renamed; the third had no settings and loses none.
    let release = |name: &str| Change::Release(name.into());
    let now = [port("vale0:c", 10), port("vale0:d", 10)];
    let said = changes(&mut w, &now);
    let settings = Change::Settings("vale0:d".into());
    assert_eq!(said, [settings, release("vale0:a"), release("vale0:b")]);
    assert_eq!(said[1].to_string(), "take the declared settings from vale0:a");
    assert_eq!(shown(&mut w, "vale0:a").vlan, Vlan::Unaware);
    assert_eq!(changes(&mut w, &now), []);
    // Another user is a change, too.
    let mut of_alice = port("vale0:c", 10);
    (of_alice.settings.uid, of_alice.for_user_alone) = (ALICE, true);
    let now = [of_alice, now[1].clone()];
    assert_eq!(changes(&mut w, &now), [Change::Settings("vale0:c".into())]);
    assert_eq!(changes(&mut w, &now), []);
    declare(&mut w, &[]);
    w.close([handle]);
    w.assert_empty();
}

/// An address that was added by hand stays where the declaration leaves it without effect, and the operator is told.
#[test]
fn addresses_of_another_vlan_are_told() {
    let mut w = World::new();
    w.caller.uid = 0;
    let wanted = |vlan| {
        let mut switch = switch("vale0", vec![port("vale0:a", vlan), port("vale0:b", 10)]);
        let (mac, port) = ([2, 0, 0, 0, 0, 8], "vale0:a".into());
        switch.addresses = vec![LastingAddress { mac, vlan, port }];
        [switch]
    };
    assert_eq!(declare(&mut w, &wanted(10)), [""; 0]);
    let handle = open(&mut w, 0, "vale0:a").unwrap();
    let (mac, port) = ([2, 0, 0, 0, 0, 9], "a".to_owned());
    w.ask(Request::SwitchAddressAdd { bridge: "vale0".into(), mac, vlan: 10, port }).unwrap();
    let idle = |w: &mut World, wanted: &[DeclaredSwitch]| {
        let Outcome { notes: idle, failed, .. } = w.registry.declare(wanted, Instant::now());
        assert!(failed.is_empty(), "{failed:?}");
        idle.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(idle(&mut w, &wanted(10)), [""; 0]);
    let said = "vale0:a: its static address 02:00:00:00:00:09 in VLAN 10 has no effect: the port \
                is not in VLAN 10; delete it: `ringway switch fdb del vale0 02:00:00:00:00:09 \
                --vlan 10`";
    assert_eq!(idle(&mut w, &wanted(20)), [said]);
    assert_eq!(idle(&mut w, &wanted(20)), [said], "it is still there");
    assert_eq!(idle(&mut w, &wanted(10)), [""; 0]);
    declare(&mut w, &[]);
    w.close([handle]);
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

/// A declared port without a program is shown by `ringway switch list`: what cannot be done with it says why.
#[test]
fn a_declared_port_without_a_program_is_no_unknown_one() {
    let mut w = World::new();
    declare(&mut w, &[switch("vale5", vec![port("vale5:probe", 7)])]);
    assert!(shown(&mut w, "vale5:probe").absent);
    let configure = |port: &str| Request::SwitchPort {
        name: port.into(),
        settings: PortSettings { isolated: Some(false), ..PortSettings::default() },
    };
    let add = |port: &str| {
        let (bridge, port) = ("vale5".into(), port.into());
        Request::SwitchAddressAdd { bridge, mac: [2, 0, 0, 0, 0, 1], vlan: 7, port }
    };
    let detach = |port: &str| Request::SwitchDetachAll {
        bridge: "vale5".into(),
        ports: vec![port.strip_prefix("vale5:").unwrap().into()],
    };
    let mut said = |request| {
        let handle = w.registry.open();
        let answer = w.registry.call(handle, &w.caller, request);
        w.registry.close(handle);
        answer.map(drop).unwrap_err().to_string()
    };
    for request in [configure("vale5:probe"), add("vale5:probe")] {
        let text = said(request);
        assert!(text.contains("no program has it open; open it first, or change"), "{text}");
    }
    let text = said(detach("vale5:probe"));
    assert!(text.contains("no program has it open; there is nothing to detach"), "{text}");
    for request in [configure("vale5:none"), add("vale5:none"), detach("vale5:none")] {
        let text = said(request);
        assert!(text.contains("no such port; `ringway switch list` shows"), "{text}");
    }
}
