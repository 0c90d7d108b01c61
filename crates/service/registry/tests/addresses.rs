//! Which address is behind which port of a switch: told to those whose switch it is.

mod common;

use common::{World, all};
use ringway_proto::{AddressInfo, Cause, Error, Forwarding, Reply, Request};
use ringway_registry::{Caller, Handle};

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
    let known = AddressInfo { mac, vlan: 0, port: "vale0:a".into(), age_seconds: None };
    assert_eq!(forward(&mut w, fixed), [known]);
    assert_eq!(forward(&mut w, Forwarding::Flood), []);
    w.close([handle]);
    w.assert_empty();
}
