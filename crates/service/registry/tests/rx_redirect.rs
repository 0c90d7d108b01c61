//! Who may choose which frames a NIC's port gets.

mod common;

use std::process::Command;

use common::{World, all, one_at_a_time, select};
use ringway_proto::{
    Action, Cause, Ebpf, Filter, NicMode, Options, PortInfo, Registration, Reply, Request,
    RingSelection, RxSelector,
};
use ringway_registry::Caller;
use ringway_testkit::skip_without_root;

/// Another user.
const SOMEBODY: u32 = 12345;

fn everything() -> Filter {
    let insns = ringway_filter::Program::everything().insns().to_vec();
    Filter { text: "everything".into(), insns, one_in: 1 }
}

fn set(filter: Option<Filter>) -> Request {
    Request::SetFilter { name: "n0".into(), rings: RxSelector::Queues, filter }
}

/// A program that leaves all to the port, and may redirect to those.
fn pass(redirects: &[&str]) -> Action {
    let insn = |code, immediate| Ebpf { code, registers: 0, offset: 0, immediate };
    let redirects = redirects.iter().map(|name| name.to_string()).collect();
    Action { text: "pass".into(), insns: vec![insn(0xb7, 2), insn(0x95, 0)], redirects }
}

fn act(action: Option<Action>) -> Request {
    Request::SetAction { name: "n0".into(), rings: RxSelector::Queues, action }
}

fn ports(world: &mut World) -> Vec<PortInfo> {
    match world.ask(Request::Ports { from: 0 }) {
        Ok(Reply::Ports { ports, .. }) => ports,
        other => panic!("{other:?}"),
    }
}

/// A world of its own, with an interface in it.
fn world() -> World {
    let world = World::new();
    let link = "link add n0 numrxqueues 4 numtxqueues 4 up type veth peer name n1";
    assert!(Command::new("ip").args(link.split(' ')).status().unwrap().success());
    world
}

#[test]
fn a_filter_is_its_users_own() {
    if skip_without_root("a_filter_is_its_users_own") {
        return;
    }
    let _turn = one_at_a_time();
    let mut world = world();
    let refused = world.ask(set(Some(everything())));
    assert_eq!(refused.err(), Some(libc::ENXIO), "nobody has it open");
    let handle = world.registry.open();
    let grant = world.register_on(handle, "n0", all()).unwrap();
    assert_eq!(grant.rings.len(), 8);
    world.ask(set(Some(everything()))).unwrap();
    assert_eq!(ports(&mut world)[0].filters[0].queues, [0, 1, 2, 3]);

    world.caller.uid = SOMEBODY;
    for request in [
        set(None),
        set(Some(everything())),
        Request::RedirectQueues { name: "n0".into(), queues: vec![0], to_program: false },
    ] {
        assert_eq!(world.ask(request).err(), Some(libc::ENXIO), "it is not theirs");
    }
    world.caller = Caller::myself();
    assert_eq!(ports(&mut world)[0].filters[0].text, "everything");
    assert_eq!(ports(&mut world)[0].queues, [0, 1, 2, 3]);
}

#[test]
fn a_filter_goes_with_the_last_user_of_its_ring() {
    if skip_without_root("a_filter_goes_with_the_last_user_of_its_ring") {
        return;
    }
    let _turn = one_at_a_time();
    let mut world = world();
    let one = |ring| Registration {
        rings: RingSelection::One(ring),
        without_tx: true,
        ..Default::default()
    };
    let [a, b] = [1, 2].map(|ring| {
        let handle = world.registry.open();
        world.register_on(handle, "n0", one(ring)).unwrap();
        handle
    });
    world.ask(set(Some(everything()))).unwrap();
    world
        .ask(Request::RedirectQueues { name: "n0".into(), queues: vec![1], to_program: false })
        .unwrap();
    assert_eq!(ports(&mut world)[0].queues, [2]);
    assert_eq!(ports(&mut world)[0].filters[0].queues, [1, 2]);
    world.registry.close(a);
    assert_eq!(ports(&mut world)[0].filters[0].queues, [2]);
    let again = world.registry.open();
    world.register_on(again, "n0", one(1)).unwrap();
    assert_eq!(ports(&mut world)[0].queues, [1, 2], "what was withheld is forgotten");
    assert_eq!(ports(&mut world)[0].filters[0].queues, [2]);
    world.registry.close(b);
    assert!(ports(&mut world)[0].filters.is_empty());
}

#[test]
fn queues_are_redirected_together_or_not_at_all() {
    if skip_without_root("queues_are_redirected_together_or_not_at_all") {
        return;
    }
    let _turn = one_at_a_time();
    let mut world = world();
    let [one, other] = [1, 2].map(|ring| Registration {
        rings: RingSelection::One(ring),
        without_tx: true,
        ..Default::default()
    });
    for registration in [one, other] {
        let handle = world.registry.open();
        world.register_on(handle, "n0", registration).unwrap();
    }
    let mut redirect = |queues: &[u16], to_program| {
        let queues = queues.into();
        let done = world.ask(Request::RedirectQueues { name: "n0".into(), queues, to_program });
        (done.err(), ports(&mut world)[0].queues.clone())
    };
    // No program has queue 0, and there is no queue 99.
    for absent in [&[1, 0][..], &[0, 1], &[1, 2, 99]] {
        assert_eq!(redirect(absent, false), (Some(libc::EINVAL), vec![1, 2]), "{absent:?}");
    }
    assert_eq!(redirect(&[2, 1, 2], false), (None, vec![]));
    assert_eq!(redirect(&[1, 3], true), (Some(libc::EINVAL), vec![]));
    assert_eq!(redirect(&[], true), (None, vec![]));
    assert_eq!(redirect(&[1, 2], true), (None, vec![1, 2]));
}

#[test]
fn a_filter_that_is_none_is_refused_and_changes_nothing() {
    if skip_without_root("a_filter_that_is_none_is_refused_and_changes_nothing") {
        return;
    }
    let _turn = one_at_a_time();
    let mut world = world();
    let handle = world.registry.open();
    world.register_on(handle, "n0", all()).unwrap();
    world.ask(set(Some(everything()))).unwrap();
    let mut bad = everything();
    bad.insns[0].code = 0xffff;
    let long = Filter { text: "x".repeat(5000), ..everything() };
    for filter in [bad, Filter::default(), long] {
        assert_eq!(world.ask(set(Some(filter))).err(), Some(libc::EINVAL));
    }
    assert_eq!(ports(&mut world)[0].filters[0].text, "everything");
}

/// A filter that a registration asks for, and how many of what matches.
fn taking(text: &str, one_in: u32) -> Options {
    let insns = ringway_filter::compile(text).unwrap().insns().to_vec();
    Options { filter: Some(Filter { text: text.into(), insns, one_in }), ..in_copy_mode() }
}

fn acting(text: &str, verdict: i32) -> Options {
    let mut action = pass(&[]);
    (action.text, action.insns[0].immediate) = (text.into(), verdict);
    Options { action: Some(action), ..in_copy_mode() }
}

/// Programs that share a ring share its frames: the second cannot take them from the first by what it asks for.
#[test]
fn a_registration_leaves_the_rules_of_rings_that_others_have() {
    if skip_without_root("a_registration_leaves_the_rules_of_rings_that_others_have") {
        return;
    }
    let _turn = one_at_a_time();
    let mut world = world();
    let host = select(RingSelection::Host);
    let both = select(RingSelection::AllAndHost);
    let queue = select(RingSelection::One(1));
    let cases = [
        // What the first has, what the second asks for, and what the second hears if it cannot have that.
        (all(), in_copy_mode(), all(), taking("udp", 1), Some("in use without a filter")),
        (all(), in_copy_mode(), queue, taking("udp", 1), Some("without a filter")),
        (queue, in_copy_mode(), all(), taking("udp", 1), Some("without a filter")),
        (all(), in_copy_mode(), all(), taking("", 10), Some("in use without a filter")),
        (all(), taking("udp", 1), all(), taking("icmp", 1), Some("with the filter `udp`;")),
        (all(), taking("udp", 1), all(), taking("udp", 2), Some("with the filter `udp`;")),
        (all(), taking("udp", 9), all(), taking("udp", 1), Some("`udp`, one in 9 of what")),
        (all(), taking("", 9), all(), taking("udp", 1), Some("a sample of one in 9 frames")),
        (all(), taking("udp", 1), all(), in_copy_mode(), None),
        (all(), taking("udp", 1), all(), taking("udp", 1), None),
        (all(), taking("udp", 1), queue, taking("udp", 0), None),
        (queue, taking("udp", 1), all(), taking("udp", 1), None),
        (host, taking("udp", 1), host, taking("icmp", 1), Some("filter `udp`;")),
        (host, in_copy_mode(), host, taking("icmp", 1), Some("without a filter")),
        (host, taking("udp", 1), both, taking("udp", 1), None),
        (host, taking("udp", 1), both, taking("icmp", 1), Some("filter `udp`;")),
        (host, taking("udp", 1), all(), taking("icmp", 1), None),
        (all(), in_copy_mode(), all(), acting("b", 2), Some("in use without an action program")),
        (all(), acting("a", 2), all(), acting("b", 1), Some("with the action program `a`;")),
        (all(), acting("a", 2), all(), acting("b", 2), None),
        (all(), acting("a", 2), all(), in_copy_mode(), None),
    ];
    for (had, has, wanted, asks, expected) in cases {
        let case = format!("{:?} {:?}, then {:?} {:?}", had.rings, has, wanted.rings, asks);
        let [first, second] = [(); 2].map(|()| world.registry.open());
        world.register_with(first, "n0", had, has).unwrap_or_else(|e| panic!("{case}: {e}"));
        let rules = |world: &mut World| {
            let port = ports(world).remove(0);
            let filters = port.filters.iter().map(|it| (it.text.clone(), it.one_in, it.host));
            let actions = port.actions.iter().map(|it| it.text.clone());
            (filters.collect::<Vec<_>>(), actions.collect::<Vec<_>>())
        };
        let before = rules(&mut world);
        let request =
            Request::Register { name: "n0".into(), registration: wanted, options: Box::new(asks) };
        let answer = world.registry.call(second, &world.caller, request);
        let after = rules(&mut world);
        match (answer, expected) {
            (Ok(_), None) => {}
            (Err(error), Some(expected)) => {
                assert_eq!(error.cause, Cause::Busy, "{case}: {error:?}");
                assert!(error.to_string().contains(expected), "{case}: {error}");
            }
            (answer, _) => panic!("{case}: {:?}", answer.map(drop)),
        }
        // Rings that the first does not have may have other rules.
        assert!(before.0.iter().all(|filter| after.0.contains(filter)), "{case}: {after:?}");
        assert_eq!(before.1, after.1, "{case}");
        world.close([first, second]);
        assert!(ports(&mut world).is_empty(), "{case}");
    }
}

/// Packet mode has no action programs.
fn in_copy_mode() -> Options {
    Options { mode: Some(NicMode::Copy), ..Options::default() }
}

#[test]
fn an_action_program_is_its_users_own() {
    if skip_without_root("an_action_program_is_its_users_own") {
        return;
    }
    let _turn = one_at_a_time();
    let mut world = world();
    assert_eq!(world.ask(act(Some(pass(&[])))).err(), Some(libc::ENXIO), "nobody has it open");
    let one = |ring| Registration {
        rings: RingSelection::One(ring),
        without_tx: true,
        ..Default::default()
    };
    let mine = world.registry.open();
    world.register_with(mine, "n0", one(0), in_copy_mode()).unwrap();
    world.ask(act(Some(pass(&["n1"])))).unwrap();
    world.caller.uid = SOMEBODY;
    for action in [None, Some(pass(&[]))] {
        assert_eq!(world.ask(act(action)).err(), Some(libc::ENXIO), "it is not theirs");
    }
    let theirs = world.registry.open();
    world.register_with(theirs, "n0", one(1), in_copy_mode()).unwrap();
    world.ask(act(Some(pass(&[])))).unwrap();
    let queues = |world: &mut World| -> Vec<Vec<u32>> {
        let ports = ports(world);
        ports.iter().flat_map(|port| &port.actions).map(|action| action.queues.clone()).collect()
    };
    assert_eq!(queues(&mut world), [[0], [1]]);
    world.ask(act(None)).unwrap();
    assert_eq!(queues(&mut world), [[0]]);
    // The filter stays where the action goes, and the other way round.
    world.ask(set(Some(everything()))).unwrap();
    world.ask(act(Some(pass(&[])))).unwrap();
    world.ask(set(None)).unwrap();
    assert_eq!(queues(&mut world), [[0], [1]]);
    world.registry.close(theirs);
    assert_eq!(queues(&mut world), [[0]]);
}

/// Frames are redirected only to interfaces that the user may open.
#[test]
fn nothing_is_redirected_to_interfaces_that_are_not_granted() {
    if skip_without_root("nothing_is_redirected_to_interfaces_that_are_not_granted") {
        return;
    }
    let _turn = one_at_a_time();
    let mut world = world();
    (world.caller.uid, world.caller.may_use_nics) = (SOMEBODY, false);
    world.caller.granted = vec!["n0".into()];
    let handle = world.registry.open();
    world.register_on(handle, "n0", all()).unwrap();
    world.ask(act(Some(pass(&[])))).unwrap();
    world.ask(act(Some(pass(&["n0"])))).unwrap();
    for redirects in [&["n1"][..], &["lo"], &["n0", "n1"], &["nosuch"]] {
        assert_eq!(world.ask(act(Some(pass(redirects)))).err(), Some(libc::EPERM), "{redirects:?}");
    }
    let options = Options { action: Some(pass(&["n1"])), ..Options::default() };
    let again = world.registry.open();
    let refused = world.register_with(again, "n0", all(), options);
    assert_eq!(refused.err(), Some(libc::EPERM), "from the first frame on");
    world.caller.granted.push("n1".into());
    world.ask(act(Some(pass(&["n0", "n1"])))).unwrap();
    assert_eq!(ports(&mut world)[0].actions[0].redirects, ["n0", "n1"]);
    for name in ["nosuch", "", "a/b", "vale0:a"] {
        assert!(world.ask(act(Some(pass(&[name])))).is_err(), "{name:?}");
    }
    assert_eq!(ports(&mut world)[0].actions[0].redirects, ["n0", "n1"]);
}

#[test]
fn an_action_program_that_is_none_is_refused_and_changes_nothing() {
    if skip_without_root("an_action_program_that_is_none_is_refused_and_changes_nothing") {
        return;
    }
    let _turn = one_at_a_time();
    let mut world = world();
    let handle = world.registry.open();
    world.register_on(handle, "n0", all()).unwrap();
    world.ask(act(Some(pass(&[])))).unwrap();
    let none = Action::default();
    let mut map = pass(&[]);
    let load = Ebpf { code: 0x18, registers: 0x10, offset: 0, immediate: 3 };
    map.insns.splice(0..0, [load, Ebpf { code: 0, registers: 0, offset: 0, immediate: 0 }]);
    let long = Action { text: "x".repeat(5000), ..pass(&[]) };
    let many = pass(&["n1"; 17]);
    for action in [none, map, long, many] {
        assert_eq!(world.ask(act(Some(action))).err(), Some(libc::EINVAL));
    }
    assert_eq!(ports(&mut world)[0].actions[0].text, "pass");
}
