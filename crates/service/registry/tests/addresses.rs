//! Which address is behind which port of a switch: told to those whose switch it is.

mod common;

use common::{World, all};
use ringway_proto::{
    AddressInfo, Cause, Error, Forwarding, Lossless, PortSettings, Reply, Request, SourceAddresses,
    Vlan,
};
use ringway_registry::{Caller, Handle};
use std::time::Instant;

const ALICE: u32 = 8;
const BOB: u32 = 9;
const MALLORY: u32 = 7;

fn addresses(w: &mut World, uid: u32, bridge: &str) -> Result<Vec<AddressInfo>, Error> {
    let mut caller = Caller::myself();
    caller.uid = uid;
    let handle = w.registry.open();
    let request = Request::SwitchAddresses { bridge: bridge.into(), from: 0 };
    let answer = w.registry.call(handle, &caller, request);
    w.registry.close(handle);
    match answer?.0 {
        Reply::SwitchAddresses { addresses, next: None } => Ok(addresses),
        other => panic!("{other:?}"),
    }
}

fn open(w: &mut World, uid: u32, name: &str) -> Handle {
    w.caller.uid = uid;
    w.register(name, all()).expect("a port").0
}

#[test]
fn those_who_have_a_part_in_a_switch_see_its_addresses() {
    let mut w = World::new();
    w.caller.uid = ALICE;
    w.ask(Request::SwitchNew { bridge: "vale0".into(), one_address: false }).unwrap();
    let bobs = open(&mut w, BOB, "vale0:b");
    for uid in [ALICE, BOB, 0] {
        assert_eq!(addresses(&mut w, uid, "vale0").unwrap(), []);
    }
    let refused = addresses(&mut w, MALLORY, "vale0").unwrap_err();
    assert_eq!((refused.cause, &refused.port[..]), (Cause::Denied, "vale0"));
    assert!(!refused.remedy.is_empty());
    assert_eq!(addresses(&mut w, 0, "vale1").unwrap_err().cause, Cause::NotFound);
    assert!(addresses(&mut w, 0, "nonsense").is_err());
    w.close([bobs]);
    assert_eq!(addresses(&mut w, BOB, "vale0").unwrap_err().cause, Cause::Denied);
    w.caller.uid = ALICE;
    w.ask(Request::SwitchDelete { bridge: "vale0".into() }).unwrap();
    w.assert_empty();
}

#[test]
fn what_is_configured_has_no_age() {
    let mut w = World::new();
    let handle = open(&mut w, ALICE, "vale0:a");
    let mac = [2, 0, 0, 0, 0, 1];
    let forward = |w: &mut World, forwarding| {
        w.ask(Request::SwitchForward { bridge: "vale0".into(), forwarding }).unwrap();
        addresses(w, ALICE, "vale0").unwrap()
    };
    let fixed = Forwarding::Static { addresses: vec![(mac, "a".into())], flood_unknown: true };
    let known =
        AddressInfo { mac, vlan: 0, port: "vale0:a".into(), age_seconds: None, absent: false };
    assert_eq!(forward(&mut w, fixed), [known]);
    assert_eq!(forward(&mut w, Forwarding::Flood), []);
    w.close([handle]);
    w.assert_empty();
}

fn as_user(w: &mut World, uid: u32, request: Request) -> Result<(), Error> {
    let mut caller = Caller::myself();
    caller.uid = uid;
    let handle = w.registry.open();
    let answer = w.registry.call(handle, &caller, request);
    w.registry.close(handle);
    assert_eq!(w.registry.disagreements(), [""; 0]);
    answer.map(drop)
}

fn add(w: &mut World, uid: u32, number: u16, vlan: u16, port: &str) -> Result<(), Error> {
    let [high, low] = number.to_be_bytes();
    let (mac, port) = ([2, 0, 0, 0, high, low], port.into());
    as_user(w, uid, Request::SwitchAddressAdd { bridge: "vale0".into(), mac, vlan, port })
}

fn delete(w: &mut World, uid: u32, number: u8) -> Result<(), Error> {
    let (bridge, mac) = ("vale0".into(), [2, 0, 0, 0, 0, number]);
    as_user(w, uid, Request::SwitchAddressDelete { bridge, mac, vlan: 0 })
}

fn flush(w: &mut World, uid: u32, port: Option<&str>, added: bool) -> Result<(), Error> {
    let (bridge, port) = ("vale0".into(), port.map(String::from));
    as_user(w, uid, Request::SwitchAddressesFlush { bridge, port, vlan: None, added })
}

/// All of them, static ones last.
fn known(w: &mut World) -> Vec<(u8, String, bool)> {
    let mut caller = Caller::myself();
    caller.uid = 0;
    let (mut all, mut page) = (Vec::new(), Some(0));
    while let Some(from) = page {
        let handle = w.registry.open();
        let request = Request::SwitchAddresses { bridge: "vale0".into(), from };
        let answer = w.registry.call(handle, &caller, request);
        w.registry.close(handle);
        let Ok((Reply::SwitchAddresses { addresses, next }, _)) = answer else { panic!("always") };
        all.extend(addresses.into_iter().map(|it| (it.mac[5], it.port, it.absent)));
        page = next;
    }
    all
}

#[test]
fn static_addresses_are_their_switchs_owners() {
    let mut w = World::new();
    w.caller.uid = ALICE;
    w.ask(Request::SwitchNew { bridge: "vale0".into(), one_address: false }).unwrap();
    let [a, b] = ["vale0:a", "vale0:b"].map(|name| open(&mut w, BOB, name));
    for uid in [BOB, MALLORY] {
        assert_eq!(add(&mut w, uid, 1, 0, "a").unwrap_err().cause, Cause::Busy);
        assert_eq!(delete(&mut w, uid, 1).unwrap_err().cause, Cause::Busy);
        assert_eq!(flush(&mut w, uid, None, true).unwrap_err().cause, Cause::Busy);
    }
    add(&mut w, ALICE, 1, 0, "a").unwrap();
    add(&mut w, ALICE, 1, 0, "vale0:a").expect("it is there");
    add(&mut w, 0, 2, 0, "b").unwrap();
    assert_eq!(add(&mut w, ALICE, 1, 0, "b").unwrap_err().cause, Cause::Exists);
    let of = |number, port: &str, absent| (number, port.to_owned(), absent);
    assert_eq!(known(&mut w), [of(1, "vale0:a", false), of(2, "vale0:b", false)]);

    // It waits for its port.
    w.close([a]);
    assert_eq!(known(&mut w), [of(1, "vale0:a", true), of(2, "vale0:b", false)]);
    assert_eq!(flush(&mut w, ALICE, Some("nosuch"), true).unwrap_err().cause, Cause::NoPort);
    flush(&mut w, ALICE, None, false).unwrap();
    flush(&mut w, ALICE, Some("b"), true).unwrap();
    assert_eq!(known(&mut w), [of(1, "vale0:a", true)]);
    let a = open(&mut w, BOB, "vale0:a");
    assert_eq!(known(&mut w), [of(1, "vale0:a", false)]);
    delete(&mut w, ALICE, 1).unwrap();
    assert_eq!(delete(&mut w, ALICE, 1).unwrap_err().cause, Cause::NotFound);
    w.close([a, b]);
    w.caller.uid = ALICE;
    w.ask(Request::SwitchDelete { bridge: "vale0".into() }).unwrap();
    w.assert_empty();
}

#[test]
fn what_could_have_no_effect_is_refused() {
    let mut w = World::new();
    let handle = open(&mut w, ALICE, "vale0:a");
    let refused = |w: &mut World, mac: [u8; 6], vlan, port: &str| {
        let (bridge, port) = ("vale0".into(), port.into());
        let request = Request::SwitchAddressAdd { bridge, mac, vlan, port };
        let error = as_user(w, ALICE, request).unwrap_err();
        assert!(!error.remedy.is_empty(), "{error:?}");
        error.cause
    };
    let own = [2, 0, 0, 0, 0, 1];
    assert_eq!(refused(&mut w, [3, 0, 0, 0, 0, 1], 0, "a"), Cause::Invalid);
    assert_eq!(refused(&mut w, [0; 6], 0, "a"), Cause::Invalid);
    assert_eq!(refused(&mut w, own, 4095, "a"), Cause::Invalid);
    assert_eq!(refused(&mut w, own, 7, "a"), Cause::Invalid, "it has no VLANs");
    assert_eq!(refused(&mut w, own, 0, "b"), Cause::NoPort);
    let settings = PortSettings { vlan: Some(Vlan::Access(7)), ..Default::default() };
    w.ask(Request::SwitchPort { name: "vale0:a".into(), settings }).unwrap();
    assert_eq!(refused(&mut w, own, 0, "a"), Cause::Invalid, "it is in VLAN 7");
    assert_eq!(refused(&mut w, own, 8, "a"), Cause::Invalid);
    add(&mut w, ALICE, 1, 7, "a").unwrap();
    let choose = |w: &mut World, settings| {
        as_user(w, ALICE, Request::SwitchPort { name: "vale0:a".into(), settings })
    };
    let vlan = |vlan| PortSettings { vlan: Some(vlan), ..Default::default() };
    let trunk =
        |allowed: &[u16]| Vlan::Trunk { allowed: allowed.iter().copied().collect(), native: None };
    for other in [Vlan::Access(8), Vlan::Unaware, trunk(&[8, 9])] {
        let is_refused = choose(&mut w, vlan(other.clone())).is_err();
        assert!(is_refused, "{other:?}: its address in VLAN 7");
    }
    choose(&mut w, vlan(trunk(&[7, 8]))).unwrap();
    choose(&mut w, vlan(Vlan::Access(7))).unwrap();
    let only =
        |macs| PortSettings { sources: Some(SourceAddresses::Only(macs)), ..Default::default() };
    let waits = |patience_ms| PortSettings {
        lossless: Some(Some(Lossless { patience_ms })),
        ..Default::default()
    };
    for settings in [only(vec![]), only(vec![[1, 0, 0x5e, 0, 0, 1]]), only(vec![[0; 6]]), waits(0)]
    {
        let error = choose(&mut w, settings).unwrap_err();
        assert!(error.cause == Cause::Invalid && !error.remedy.is_empty(), "{error:?}");
    }
    for settings in [only(vec![own]), waits(1)] {
        choose(&mut w, settings).unwrap();
    }

    // While a switch has some, it goes on learning.
    let forward = |w: &mut World, forwarding| {
        as_user(w, ALICE, Request::SwitchForward { bridge: "vale0".into(), forwarding })
    };
    assert_eq!(forward(&mut w, Forwarding::Flood).unwrap_err().cause, Cause::Busy);
    forward(&mut w, Forwarding::Learning { ageing_seconds: 5 }).unwrap();
    assert_eq!(known(&mut w).len(), 1);
    flush(&mut w, ALICE, None, true).unwrap();
    forward(&mut w, Forwarding::Flood).unwrap();
    assert_eq!(refused(&mut w, own, 7, "a"), Cause::Invalid, "it does not learn");
    forward(&mut w, Forwarding::default()).unwrap();

    for number in 0..512 {
        add(&mut w, ALICE, number, 7, "a").unwrap();
    }
    assert_eq!(known(&mut w).len(), 512);
    let error = add(&mut w, ALICE, 512, 7, "a").unwrap_err();
    assert!(error.problem.contains("512"), "{error:?}");
    w.close([handle]);
    w.assert_empty();
}

#[test]
fn static_addresses_outlive_the_registry() {
    let mut w = World::new();
    w.caller.uid = ALICE;
    w.ask(Request::SwitchNew { bridge: "vale0".into(), one_address: false }).unwrap();
    let handle = open(&mut w, ALICE, "vale0:a");
    w.registry.lasting();
    add(&mut w, ALICE, 1, 0, "a").unwrap();
    let saved = w.registry.lasting().expect("it has changed");
    w.close([handle]);
    let mut second = World::new();
    assert_eq!(second.registry.restore(saved.clone(), Instant::now()), [""; 0]);
    assert_eq!(known(&mut second), [(1, "vale0:a".into(), true)]);
    let handle = open(&mut second, ALICE, "vale0:a");
    assert_eq!(known(&mut second), [(1, "vale0:a".into(), false)]);
    second.close([handle]);
    // What no user could have asked for is left out.
    for wrong in [[1, 0, 0, 0, 0, 1], [0; 6]] {
        let mut saved = saved.clone();
        saved.switches[0].addresses[0].mac = wrong;
        assert_eq!(World::new().registry.restore(saved, Instant::now()).len(), 1);
    }
}
