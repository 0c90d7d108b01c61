//! What becomes of frames for groups on a switch: its owner's choice, if it learns.

mod common;

use common::{World, all, asked::Asked};
use ringway_proto::{
    BridgeInfo, Cause, Error, Forwarding, GroupInfo, Multicast, Reply, Request, SwitchPosition,
};
use ringway_registry::{Caller, Subject};

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

/// Of requests that wait for a switch's worker, the next alone is begun again when it has answered.
#[test]
fn the_next_goes_on_of_those_that_wait_for_a_worker() {
    const REQUESTS: usize = 20;
    const GONE: usize = 7;
    let mut w = World::new();
    w.ask(Request::SwitchNew { bridge: "vale0".into(), one_address: false }).unwrap();
    w.ask(Request::SwitchMulticast { bridge: "vale0".into(), multicast: Multicast::Snooping })
        .unwrap();
    let page = || Request::SwitchGroups { bridge: "vale0".into(), from: 0 };
    let subject = Subject::Switch("vale0".into());
    let mut asked: Vec<_> = (0..REQUESTS).map(|_| Asked::new(&mut w, page())).collect();
    let mut work = asked[0].work(&mut w);
    for later in &mut asked[1..] {
        assert_eq!(later.waits_for(&mut w).as_ref(), Some(&subject));
    }
    while asked.len() > 1 {
        let mut first = asked.remove(0);
        first.progress.put(work.run());
        first.finish(&mut w).unwrap();
        w.registry.close(first.handle);
        if asked.len() == GONE {
            // The next one's client has gone: those behind are told.
            let gone = asked.remove(0);
            w.registry.end(gone.progress);
            w.registry.close(gone.handle);
            assert_eq!(w.registry.deferred().stirred(), std::slice::from_ref(&subject));
        }
        let mut goes_on =
            |asked: &Asked| w.registry.deferred().is_to_go_on(&asked.progress, &subject);
        assert!(goes_on(&asked[0]) && !asked[1..].iter().any(&mut goes_on), "{}", asked.len());
        work = asked[0].work(&mut w);
    }
    asked[0].progress.put(work.run());
    asked[0].finish(&mut w).unwrap();
    w.registry.close(asked[0].handle);
    assert_eq!(w.registry.deferred().stirred(), []);
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
