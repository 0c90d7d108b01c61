//! What becomes of frames for groups on a switch: its owner's choice, if it learns.

mod common;

use common::{World, all};
use ringway_proto::{
    BridgeInfo, Cause, Error, Forwarding, GroupInfo, Multicast, Reply, Request, SwitchPosition,
};
use ringway_registry::Caller;

const ALICE: u32 = 8;
const MALLORY: u32 = 7;

fn as_user(w: &mut World, uid: u32, request: Request) -> Result<Reply, Error> {
    let mut caller = Caller::myself();
    caller.uid = uid;
    let handle = w.registry.open();
    let answer = w.registry.call(handle, &caller, request);
    w.registry.close(handle);
    assert_eq!(w.registry.disagreements(), [""; 0]);
    answer.map(|(reply, _)| reply)
}

fn choose(w: &mut World, uid: u32, multicast: Multicast) -> Result<(), Error> {
    as_user(w, uid, Request::SwitchMulticast { bridge: "vale0".into(), multicast }).map(drop)
}

fn forward(w: &mut World, forwarding: Forwarding) -> Result<(), Error> {
    as_user(w, ALICE, Request::SwitchForward { bridge: "vale0".into(), forwarding }).map(drop)
}

fn groups(w: &mut World, uid: u32) -> Result<Vec<GroupInfo>, Error> {
    match as_user(w, uid, Request::SwitchGroups { bridge: "vale0".into(), from: 0 })? {
        Reply::SwitchGroups { groups, next: None } => Ok(groups),
        other => panic!("{other:?}"),
    }
}

fn shown(w: &mut World) -> Multicast {
    match as_user(w, 0, Request::Switches { from: SwitchPosition::default() }) {
        Ok(Reply::Switches { switches, .. }) => match &switches[..] {
            [BridgeInfo { multicast, .. }] => *multicast,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn groups_are_their_switchs_owners() {
    let mut w = World::new();
    w.caller.uid = ALICE;
    w.ask(Request::SwitchNew { bridge: "vale0".into(), one_address: false }).unwrap();
    let port = w.register("vale0:a", all()).expect("a port").0;
    assert_eq!(shown(&mut w), Multicast::Flood);
    assert_eq!(choose(&mut w, MALLORY, Multicast::Querier).unwrap_err().cause, Cause::Busy);
    choose(&mut w, ALICE, Multicast::Querier).unwrap();
    assert_eq!(shown(&mut w), Multicast::Querier);
    let refused = groups(&mut w, MALLORY).unwrap_err();
    assert_eq!((refused.cause, refused.remedy.is_empty()), (Cause::Denied, false));
    for uid in [ALICE, 0] {
        groups(&mut w, uid).unwrap();
    }
    let saved = w.registry.lasting().expect("it has changed");
    assert_eq!(saved.switches[0].multicast, Multicast::Querier);

    // A switch without learning does not snoop, and the other way round.
    let refused = forward(&mut w, Forwarding::Flood).unwrap_err();
    assert_eq!((refused.cause, refused.remedy.contains("vale0 flood")), (Cause::Busy, true));
    forward(&mut w, Forwarding::Learning { ageing_seconds: 9 }).unwrap();
    assert_eq!(shown(&mut w), Multicast::Querier);
    choose(&mut w, ALICE, Multicast::Flood).unwrap();
    forward(&mut w, Forwarding::Flood).unwrap();
    for multicast in [Multicast::Snooping, Multicast::Querier] {
        assert_eq!(choose(&mut w, ALICE, multicast).unwrap_err().cause, Cause::Invalid);
    }
    choose(&mut w, ALICE, Multicast::Flood).unwrap();
    assert_eq!(groups(&mut w, ALICE).unwrap(), []);
    w.close([port]);
    w.ask(Request::SwitchDelete { bridge: "vale0".into() }).unwrap();
    assert_eq!(groups(&mut w, ALICE).unwrap_err().cause, Cause::NotFound);
    w.assert_empty();
}
