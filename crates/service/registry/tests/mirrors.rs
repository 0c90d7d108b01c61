//! Mirrors of a switch: whose ports they show, whose port gets the copies, and what they wait for.

mod common;

use common::{World, all};
use ringway_proto::{
    BridgeInfo, Cause, Declared, Error, Filter, Insn, MirrorDirection, Multicast, Reply, Request,
    SwitchMirror, SwitchMirrorInfo, SwitchPosition,
};
use ringway_registry::{Caller, Change, DeclaredSwitch, Handle, LastingMirror, Outcome};
use std::{slice::from_ref, time::Instant};

const ALICE: u32 = 8;
const BOB: u32 = 9;

fn as_user(w: &mut World, uid: u32, request: Request) -> Result<Reply, Error> {
    let mut caller = Caller::myself();
    caller.uid = uid;
    let handle = w.registry.open();
    let answer = w.registry.call(handle, &caller, request);
    w.registry.close(handle);
    assert_eq!(w.registry.disagreements(), [""; 0]);
    answer.map(|(reply, _)| reply)
}

fn mirror(name: &str, from: &[&str], to: &str) -> SwitchMirror {
    SwitchMirror {
        name: name.into(),
        from: Some(from.iter().map(|port| port.to_string()).collect()),
        direction: MirrorDirection::Both,
        to: to.into(),
        user: None,
        filter: None,
    }
}

fn add(w: &mut World, uid: u32, mirror: SwitchMirror) -> Result<(), Error> {
    let mirror = Box::new(mirror);
    as_user(w, uid, Request::SwitchMirrorAdd { bridge: "vale0".into(), mirror }).map(drop)
}

fn refused(w: &mut World, uid: u32, mirror: SwitchMirror) -> Cause {
    let error = add(w, uid, mirror).unwrap_err();
    assert!(!error.port.is_empty() && !error.remedy.is_empty() || error.cause == Cause::Invalid);
    error.cause
}

fn delete(w: &mut World, uid: u32, mirror: &str) -> Result<(), Error> {
    let (bridge, mirror) = ("vale0".into(), mirror.into());
    as_user(w, uid, Request::SwitchMirrorDelete { bridge, mirror }).map(drop)
}

fn open(w: &mut World, uid: u32, name: &str) -> Handle {
    w.caller.uid = uid;
    w.register(name, all()).expect("a port").0
}

fn switch(w: &mut World) -> BridgeInfo {
    let mut from = SwitchPosition::default();
    let mut found: Option<BridgeInfo> = None;
    loop {
        match as_user(w, 0, Request::Switches { from }).unwrap() {
            Reply::Switches { mut switches, next } => {
                let page = switches.remove(0);
                match &mut found {
                    None => found = Some(page),
                    Some(found) => found.mirrors.extend(page.mirrors),
                }
                match next {
                    Some(next) => from = next,
                    None => return found.unwrap(),
                }
            }
            other => panic!("{other:?}"),
        }
    }
}

fn shown(w: &mut World) -> Vec<SwitchMirrorInfo> {
    switch(w).mirrors
}

fn make(w: &mut World, uid: u32) {
    w.caller.uid = uid;
    w.ask(Request::SwitchNew { bridge: "vale0".into(), one_address: false }).unwrap();
}

fn drop_switch(w: &mut World) {
    w.caller.uid = 0;
    w.ask(Request::SwitchDelete { bridge: "vale0".into() }).unwrap();
    w.assert_empty();
}

/// Ports may be there before the mirror, come after it, go and come back.
#[test]
fn ports_are_waited_for() {
    let mut w = World::new();
    make(&mut w, 0);
    let a = open(&mut w, 0, "vale0:a");
    add(&mut w, 0, mirror("m", &["a", "vale0:b"], "c")).unwrap();
    let [it] = &shown(&mut w)[..] else { panic!("one") };
    assert_eq!(it.from, Some(vec!["vale0:a".into(), "vale0:b".into()]));
    assert_eq!((&it.to[..], it.user, it.uid), ("vale0:c", 0, 0));
    assert_eq!(it.absent, ["vale0:b", "vale0:c"]);
    let c = open(&mut w, 0, "vale0:c");
    assert_eq!(shown(&mut w)[0].absent, ["vale0:b"]);
    w.close([a]);
    assert_eq!(shown(&mut w)[0].absent, ["vale0:a", "vale0:b"]);
    let a = open(&mut w, 0, "vale0:a");
    assert_eq!(shown(&mut w)[0].absent, ["vale0:b"]);

    // The same again is no error, and another of that name is.
    add(&mut w, 0, mirror("m", &["b", "a", "a"], "c")).unwrap();
    assert_eq!(refused(&mut w, 0, mirror("m", &["a"], "c")), Cause::Exists);
    let lasting = w.registry.lasting().expect("it has changed");
    assert_eq!(lasting.switches[0].mirrors.len(), 1);
    delete(&mut w, 0, "m").unwrap();
    assert_eq!(delete(&mut w, 0, "m").unwrap_err().cause, Cause::NotFound);
    w.close([a, c]);
    drop_switch(&mut w);
}

#[test]
fn impossible_mirrors_are_refused() {
    let mut w = World::new();
    make(&mut w, 0);
    let filtered = |insns: Vec<Insn>, one_in| SwitchMirror {
        filter: Some(Filter { text: "x".into(), insns, one_in }),
        ..mirror("m", &["a"], "b")
    };
    let everything = ringway_filter::Program::everything().insns().to_vec();
    let many: Vec<String> = (0..65).map(|n| format!("p{n}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    for wrong in [
        mirror("", &["a"], "b"),
        mirror("two words", &["a"], "b"),
        mirror(&"m".repeat(32), &["a"], "b"),
        mirror("m", &[], "b"),
        mirror("m", &["a", "b"], "b"),
        mirror("m", &["vale1:a"], "b"),
        mirror("m", &["a"], "vale1:b"),
        mirror("m", &["a{1"], "b"),
        mirror("m", &["a"], "sixteen-letters-"),
        mirror("m", &many, "b"),
        filtered(vec![Insn { code: 9, jt: 9, jf: 9, k: 9 }], 1),
        filtered(everything.clone(), 2),
    ] {
        let name = format!("{wrong:?}");
        assert_eq!(refused(&mut w, 0, wrong), Cause::Invalid, "{name}");
    }
    for n in 0..16 {
        add(&mut w, 0, mirror(&format!("m{n}"), &many[..64], "b")).unwrap();
    }
    assert_eq!(refused(&mut w, 0, mirror("m", &["a"], "b")), Cause::NoRoom);
    assert_eq!(shown(&mut w).len(), 16, "on some pages");
    drop_switch(&mut w);
}

/// Root's mirrors show the ports of all users, another user's those of that user; the copies are for the port of
/// one user, also if another user opens it first.
#[test]
fn a_mirror_shows_what_its_user_may_see() {
    let mut w = World::new();
    make(&mut w, ALICE);
    assert_eq!(refused(&mut w, BOB, mirror("m", &["a"], "x")), Cause::Busy);
    let [a, b] = [open(&mut w, ALICE, "vale0:a"), open(&mut w, BOB, "vale0:b")];
    assert_eq!(refused(&mut w, ALICE, mirror("m", &["a", "b"], "x")), Cause::Denied);
    assert_eq!(refused(&mut w, ALICE, mirror("m", &["a"], "b")), Cause::Denied);
    let for_bob = SwitchMirror { user: Some(BOB), ..mirror("m", &["a"], "x") };
    assert_eq!(refused(&mut w, ALICE, for_bob.clone()), Cause::Denied);
    add(&mut w, ALICE, SwitchMirror { from: None, ..mirror("m", &[], "x") }).unwrap();
    add(&mut w, ALICE, mirror("n", &["c"], "x")).unwrap();
    // Another user has the names.
    let [c, x] = [open(&mut w, BOB, "vale0:c"), open(&mut w, BOB, "vale0:x")];
    let all = shown(&mut w);
    assert_eq!(
        (&all[0].foreign[..], &all[1].foreign[..]),
        (&["vale0:x".to_string()][..], &["vale0:c".to_string(), "vale0:x".to_string()][..],)
    );
    // Root says whose the port is.
    assert_eq!(refused(&mut w, 0, mirror("r", &["a"], "x")), Cause::Denied);
    add(&mut w, 0, SwitchMirror { name: "r".into(), ..for_bob }).unwrap();
    assert_eq!(shown(&mut w)[2].foreign, [""; 0]);
    assert_eq!(delete(&mut w, ALICE, "r").unwrap_err().cause, Cause::Denied);
    delete(&mut w, ALICE, "n").unwrap();
    delete(&mut w, 0, "m").unwrap();
    w.close([a, b, c, x]);
    drop_switch(&mut w);
}

fn declared(mirrors: &[LastingMirror]) -> DeclaredSwitch {
    DeclaredSwitch {
        name: "vale0".into(),
        owner: 0,
        one_address: false,
        forwarding: Default::default(),
        multicast: Default::default(),
        ports: Vec::new(),
        addresses: Vec::new(),
        mirrors: mirrors.to_vec(),
        place: "file: line 1".into(),
    }
}

#[test]
fn what_is_declared_is_set_and_the_rest_stays() {
    let mut w = World::new();
    let one = |direction| LastingMirror {
        name: "m".into(),
        uid: 0,
        from: None,
        direction,
        to: "vale0:x".into(),
        to_uid: 0,
        filter: None,
    };
    let (first, second) = (one(MirrorDirection::Both), one(MirrorDirection::Sent));
    let declare = |w: &mut World, mirrors: &[LastingMirror]| {
        let Outcome { changes, failed, .. } =
            w.registry.declare(&[declared(mirrors)], Instant::now());
        assert!(failed.is_empty(), "{failed:?}");
        assert_eq!(w.registry.disagreements(), [""; 0]);
        changes
    };
    assert_eq!(declare(&mut w, from_ref(&first)), [Change::Make("vale0".into())]);
    assert_eq!(declare(&mut w, from_ref(&first)), []);
    add(&mut w, 0, mirror("by-hand", &["a"], "y")).unwrap();
    let names = |w: &mut World| -> Vec<_> {
        let switch = switch(w);
        assert_eq!(switch.declared == Declared::Changed, switch.mirrors.len() != 2);
        switch.mirrors.into_iter().map(|it| (it.name, it.direction, it.declared)).collect()
    };
    let by_hand = ("by-hand".to_string(), MirrorDirection::Both, Declared::No);
    let is = |direction| ("m".to_string(), direction, Declared::Yes);
    assert_eq!(names(&mut w), [is(MirrorDirection::Both), by_hand.clone()]);
    let mirrors = || Change::Mirrors("vale0".into());
    assert_eq!(declare(&mut w, from_ref(&second)), [mirrors()]);
    assert_eq!(names(&mut w), [is(MirrorDirection::Sent), by_hand.clone()]);
    // What was deleted by hand comes back.
    delete(&mut w, 0, "m").unwrap();
    assert_eq!(names(&mut w), from_ref(&by_hand));
    assert_eq!(declare(&mut w, from_ref(&second)), [mirrors()]);
    // The state outlives the registry.
    let lasting = w.registry.lasting().expect("it has changed");
    let mut next = World::new();
    next.registry.restore(lasting, Instant::now());
    assert_eq!(declare(&mut next, from_ref(&second)), []);
    assert_eq!(names(&mut next), [is(MirrorDirection::Sent), by_hand]);
    assert_eq!(declare(&mut next, &[]), [mirrors()]);
    let left = shown(&mut next);
    assert_eq!((left.len(), &left[0].name[..]), (1, "by-hand"));
    let Outcome { changes, .. } = next.registry.declare(&[], Instant::now());
    assert_eq!(changes, [Change::LetGo("vale0".into())]);
    next.assert_empty();
}

/// A switch that no user has made with `switch new` ends with its last port. With the next daemon, mirrors that root had
/// set are there again when any user opens the first port of it, and a user's when that user or root does.
#[test]
fn mirrors_of_switches_of_programs_go_on_with_the_next_daemon() {
    for (by, first, goes_on) in [
        (0, 0, true),
        (0, ALICE, true),
        (0, BOB, true),
        (ALICE, ALICE, true),
        (ALICE, 0, true),
        (ALICE, BOB, false),
    ] {
        let mut w = World::new();
        let a = open(&mut w, ALICE, "vale0:a");
        add(&mut w, by, mirror("m", &["a"], "c")).unwrap();
        let saved = w.registry.lasting().expect("it has changed");
        let mut next = World::new();
        assert_eq!(next.registry.restore(saved, Instant::now()), [""; 0]);
        let again = open(&mut next, first, "vale0:x");
        assert_eq!(shown(&mut next).len(), usize::from(goes_on), "{by} {first}");
        next.close([again]);
        w.close([a]);
        w.assert_empty();
        next.assert_empty();
    }
}

/// No user has the settings of others forgotten by names of ever new switches.
#[test]
fn switches_that_wait_for_programs_are_counted_by_user() {
    let mut saved = None;
    for (uid, count) in [(ALICE, 20), (BOB, 1)] {
        for n in 0..count {
            let mut w = World::new();
            if let Some(saved) = saved.take() {
                let wrong = w.registry.restore(saved, Instant::now());
                assert_eq!(wrong.len(), usize::from(uid == BOB || n > 16), "{uid} {n}: {wrong:?}");
            }
            let port = open(&mut w, uid, &format!("vale{uid}x{n}:a"));
            let (bridge, multicast) = (format!("vale{uid}x{n}"), Multicast::Snooping);
            as_user(&mut w, uid, Request::SwitchMulticast { bridge, multicast }).unwrap();
            saved = w.registry.lasting();
            w.close([port]);
        }
    }
    let names = saved.unwrap().switches.into_iter().map(|it| it.name).collect::<Vec<_>>();
    assert_eq!((names.len(), &names[0][..], &names[1][..]), (17, "vale9x0", "vale8x19"));
}
