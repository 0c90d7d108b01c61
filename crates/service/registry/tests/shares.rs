//! What one user can take of what all have in common (trust rule 6): neither alone, nor by the ids
//! of a container.

mod common;

use std::sync::Arc;

use common::{World, all};
use ringway_filter::Insn;
use ringway_proto::{Filter, Lossless, PortSettings, Request, Vlan};
use ringway_registry::{Accounts, Caller, Handle, Registry, Settings, UidRange};

const ENOMEM: i32 = 12;
const MALLORY: u32 = 7;
const ALICE: u32 = 8;
/// The first id of a range that is Mallory's.
const CONTAINER: u32 = 100_000;

/// Users have two switches of eight, and three ports of a switch.
fn world() -> World {
    let accounts =
        Accounts::new(vec![UidRange { first: CONTAINER, count: 65_536, owner: MALLORY }]);
    let mut world = World::new();
    world.registry = Registry::new(Settings {
        max_bridges: 8,
        switches_per_user: 2,
        switch_ports_per_user: 3,
        kept_bytes_per_user: 2 << 20,
        descriptors_per_user: 100,
        accounts: Arc::new(accounts),
        ..Settings::default()
    });
    world
}

fn open(w: &mut World, uid: u32, name: &str) -> Result<Handle, i32> {
    w.caller = Caller::myself();
    w.caller.uid = uid;
    w.register(name, all()).map(|(handle, _)| handle)
}

#[test]
fn a_user_has_a_share_of_the_switches() {
    let mut w = world();
    let mut handles = vec![
        open(&mut w, MALLORY, "vale1:a").unwrap(),
        open(&mut w, CONTAINER + 5, "vale2:a").unwrap(),
    ];
    for uid in [MALLORY, CONTAINER, CONTAINER + 65_535] {
        assert_eq!(open(&mut w, uid, "vale3:a").unwrap_err(), ENOMEM, "{uid}");
        let new = Request::SwitchNew { bridge: "vale3".into(), one_address: false };
        assert_eq!(w.ask(new).unwrap_err(), ENOMEM, "{uid}");
    }
    // It says why, and what to do about it.
    let handle = w.registry.open();
    let name = "vale3:a".into();
    let register = Request::Register { name, registration: all(), options: Default::default() };
    let said = w.registry.call(handle, &w.caller, register).unwrap_err().to_string();
    assert!(said.contains("switches_per_user") && said.contains("user 7"), "{said}");
    handles.push(handle);
    // Others have theirs; a port on a switch that is there is none.
    handles.push(open(&mut w, MALLORY, "vale1:b").unwrap());
    handles.push(open(&mut w, ALICE, "vale4:a").unwrap());
    handles.push(open(&mut w, ALICE, "vale5:a").unwrap());
    // Root has no share, but the total has an end.
    for n in 0..4 {
        handles.push(open(&mut w, 0, &format!("vale1{n}:a")).unwrap());
    }
    assert_eq!(open(&mut w, 0, "vale20:a").unwrap_err(), ENOMEM);
    handles.into_iter().for_each(|handle| w.registry.close(handle));
    w.assert_empty();
}

/// A user's filters, on switches of its own, opened and closed: they are kept for when a port is opened again.
#[test]
fn a_user_has_a_share_of_what_is_kept_of_ports() {
    let mut w = world();
    let insns = [Insn { code: 0, jt: 0, jf: 0, k: 0 }; 1023].into_iter();
    let insns = insns.chain([Insn { code: 6, jt: 0, jf: 0, k: 1 }]).collect();
    let filter = Filter { text: "\u{1}".repeat(Filter::MAX_TEXT), insns, one_in: 1 };
    let settings = PortSettings {
        vlan: Some(Vlan::Trunk { allowed: (1..=4094).collect(), native: None }),
        filter_in: Some(Some(filter.clone())),
        filter_out: Some(Some(filter)),
        ..PortSettings::default()
    };
    let set = |w: &mut World, uid: u32, name: &str, settings: &PortSettings| {
        let handle = open(w, uid, name).unwrap();
        let (name, settings) = (name.into(), settings.clone());
        let request = Request::SwitchPort { name, settings };
        let answer = w.registry.open();
        let said = w.registry.call(answer, &w.caller, request).map(drop);
        w.registry.close(answer);
        w.registry.close(handle);
        said.map_err(|error| error.to_string())
    };
    // The switches stay, so that closed ports are remembered.
    for (uid, bridge) in [(MALLORY, "vale1"), (ALICE, "vale2"), (0, "vale3")] {
        w.caller.uid = uid;
        w.ask(Request::SwitchNew { bridge: bridge.into(), one_address: false }).unwrap();
    }
    let refused =
        (0..100).find_map(|n| set(&mut w, MALLORY, &format!("vale1:{n}"), &settings).err());
    let said = refused.expect("an end");
    assert!(said.contains("user 7") && said.contains("--no-filter-in"), "{said}");
    assert!(serde_json::to_vec(&w.registry.lasting()).unwrap().len() < 3 << 20);
    // By no other name, and no other id.
    assert!(set(&mut w, MALLORY, "vale1:x", &settings).is_err());
    // What is less is no harm, and makes room.
    let none = PortSettings {
        vlan: Some(Vlan::Unaware),
        filter_in: Some(None),
        filter_out: Some(None),
        ..PortSettings::default()
    };
    set(&mut w, MALLORY, "vale1:0", &none).unwrap();
    set(&mut w, MALLORY, "vale1:0", &settings).unwrap();
    // Others have theirs, and root has more.
    set(&mut w, ALICE, "vale2:a", &settings).unwrap();
    for n in 0..100 {
        set(&mut w, 0, &format!("vale3:{n}"), &settings).unwrap();
    }
}

#[test]
fn a_user_has_a_share_of_a_switchs_ports() {
    let mut w = world();
    let mut handles = vec![open(&mut w, ALICE, "vale1:alice").unwrap()];
    for (n, uid) in [MALLORY, CONTAINER, CONTAINER + 1].into_iter().enumerate() {
        handles.push(open(&mut w, uid, &format!("vale1:{n}")).unwrap());
    }
    assert_eq!(open(&mut w, MALLORY, "vale1:x").unwrap_err(), ENOMEM);
    assert_eq!(open(&mut w, CONTAINER + 2, "vale1:x").unwrap_err(), ENOMEM);
    handles.push(open(&mut w, ALICE, "vale1:y").unwrap());
    // Who has made a switch to stay has all of it.
    w.caller = Caller::myself();
    w.caller.uid = MALLORY;
    w.ask(Request::SwitchNew { bridge: "vale2".into(), one_address: false }).unwrap();
    for n in 0..5 {
        handles.push(open(&mut w, MALLORY, &format!("vale2:{n}")).unwrap());
    }
    handles.into_iter().for_each(|handle| w.registry.close(handle));
}

#[test]
fn the_ids_of_a_container_share_descriptors() {
    let mut w = world();
    let mut admitted = 0;
    while w.registry.admit(CONTAINER + admitted).is_ok() {
        admitted += 1;
        assert!(admitted <= 100, "each id has a share of its own");
    }
    assert!(w.registry.admit(MALLORY).is_err());
    assert!(w.registry.admit(ALICE).is_ok());
}

/// Where the operator says whose ports may be lossless, others' are not: nor by a user who may and has the
/// switch, nor by the ids of a container.
#[test]
fn the_operator_says_whose_ports_may_be_lossless() {
    const BOB: u32 = 9;
    let settings = |users: Option<Vec<u32>>| Settings {
        lossless_users: users,
        accounts: Arc::new(Accounts::new(vec![UidRange {
            first: CONTAINER,
            count: 65_536,
            owner: MALLORY,
        }])),
        ..Settings::default()
    };
    // Who asks, for whose port, and whether it is allowed: for all, for Alice alone, for root alone.
    let cases = [
        (MALLORY, MALLORY, [true, false, false]),
        (CONTAINER, CONTAINER, [true, false, false]),
        (ALICE, ALICE, [true, true, false]),
        (0, 0, [true, true, true]),
        (0, ALICE, [true, true, false]),
        (0, BOB, [true, false, false]),
    ];
    for (n, users) in [None, Some(vec![ALICE]), Some(vec![])].into_iter().enumerate() {
        for (caller, owner, allowed) in cases {
            let mut w = World::new();
            w.registry = Registry::new(settings(users.clone()));
            let handle = open(&mut w, owner, "vale1:a").unwrap();
            let set = |lossless| Request::SwitchPort {
                name: "vale1:a".into(),
                settings: PortSettings { lossless: Some(lossless), ..PortSettings::default() },
            };
            w.caller.uid = caller;
            let asker = w.registry.open();
            let said = w.registry.call(asker, &w.caller, set(Some(Lossless::default())));
            match said {
                Ok(_) => assert!(allowed[n], "{caller} for {owner}, {users:?}"),
                Err(error) => {
                    let said = error.to_string();
                    assert!(!allowed[n], "{caller} for {owner}, {users:?}: {said}");
                    let words = ["vale1:a", "lossless_users", &format!("user {owner}")];
                    assert!(words.iter().all(|word| said.contains(word)), "{said}");
                }
            }
            // Nobody is kept from having it lose again.
            w.ask(set(None)).unwrap();
            [handle, asker].into_iter().for_each(|handle| w.registry.close(handle));
        }
    }
}
