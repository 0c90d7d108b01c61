//! What users cost in descriptors, and that there is an end to it. One test: it counts those of the
//! whole process.

mod common;

use std::{
    thread,
    time::{Duration, Instant},
};

use common::{RX, World, ZERO_COPY, all, monitor, select, shaped};
use libc::EMFILE;
use ringway_errno::errno;
use ringway_proto::{Registration, Request, RingSelection};
use ringway_region::Sizes;
use ringway_registry::{Handle, Registry, Settings};
use ringway_testkit::{Netns, is_root};

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("/proc is mounted").count()
}

/// The book says as many as there are.
#[track_caller]
fn assert_counted(w: &World, before: usize, what: &str) {
    let counted = w.registry.descriptors(w.caller.uid);
    assert_eq!(counted, open_descriptors() - before, "{what}");
}

/// As [`assert_counted`], when the threads have ended that free memory, and close its descriptors.
#[track_caller]
fn await_counted(w: &World, before: usize, what: &str) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while w.registry.descriptors(w.caller.uid) < open_descriptors() - before
        && Instant::now() < deadline
    {
        thread::yield_now();
    }
    assert_counted(w, before, what);
}

fn ports_of_all_kinds(w: &mut World, before: usize) {
    w.ask(Request::SwitchNew { bridge: "vale0".into(), one_address: false }).unwrap();
    assert_counted(w, before, "a bridge that stays");
    let mut held: Vec<Handle> = Vec::new();
    let null = Registration {
        rings: RingSelection::Null { sink: false },
        mem_id: 1,
        ..shaped([2, 2], [16, 16])
    };
    for (name, reg) in [
        ("vale0:a", all()),
        ("vale0:a", all()),
        ("vale0:b", shaped([4, 7], [64, 64])),
        ("vale0:a{1", all()),
        ("own{x", shaped([3, 3], [64, 64])),
        ("vale0:a", monitor(RX)),
        ("vale0:a", monitor(ZERO_COPY)),
        ("null", null),
    ] {
        held.push(w.register(name, reg).unwrap().0);
        assert_counted(w, before, name);
    }
    if is_root() {
        let here = Netns::root();
        here.run(
            "ip link add nic0 numtxqueues 3 numrxqueues 3 type veth peer name nic1 && \
             ip link set nic0 up && ip link set nic1 up",
        );
        for reg in
            [all(), select(RingSelection::AllAndHost), Registration { host_rx_rings: 2, ..all() }]
        {
            let handle = w.register("nic0", reg).unwrap().0;
            // One that stays where it is needs no descriptor of its namespace.
            assert!(w.registry.descriptors(w.caller.uid) - (open_descriptors() - before) <= 1);
            held.push(handle);
        }
        held.drain(..).for_each(|handle| w.registry.close(handle));
        await_counted(w, before, "all is closed");
        w.newif("per0").unwrap();
        assert_counted(w, before, "per0");
        let stack = w.register("per0", select(RingSelection::AllAndHost)).unwrap().0;
        assert_counted(w, before, "per0 with its stack");
        w.registry.close(stack);
        for how in [false, true] {
            w.attach_as("vale0:nic0", how).unwrap();
            assert_counted(w, before, if how { "vale0:nic0 with its stack" } else { "vale0:nic0" });
            w.detach("vale0:nic0").unwrap();
        }
        w.attach_as("vale0:per0", true).unwrap();
        assert!(w.registry.descriptors(w.caller.uid) >= open_descriptors() - before);
        w.detach("vale0:per0").unwrap();
        w.delif("per0").unwrap();
    }
    held.drain(..).for_each(|handle| w.registry.close(handle));
    w.ask(Request::SwitchDelete { bridge: "vale0".into() }).unwrap();
    assert_eq!(w.registry.descriptors(w.caller.uid), 0);
    assert_counted(w, before, "nothing");
}

fn who_has_too_many() {
    let settings = Settings { descriptors_per_user: 20, ..Settings::default() };
    let mut w = World { registry: Registry::new(settings), ..World::new() };
    let me = w.caller.uid;
    let connections: Vec<_> = (0..8).map(|_| w.registry.admit(me).unwrap()).collect();
    let other = w.registry.admit(me + 1).unwrap();
    // Two doorbells, the worker's, and the region.
    let (first, _) = w.open("vale0:a");
    let (second, _) = w.open("vale0:b");
    assert_eq!(w.registry.descriptors(me), 16);
    let refused = w.register("vale0:c", shaped([2, 2], [64, 64])).unwrap_err();
    assert_eq!((refused, w.registry.descriptors(me)), (EMFILE, 16), "and nothing is left of it");
    let (third, _) = w.open("vale0:c");
    let error = w.registry.admit(me).unwrap_err();
    assert_eq!(errno(error.cause), EMFILE);
    assert!(error.to_string().contains("descriptors_per_user"), "{error}");
    assert_eq!(w.register("vale0:d", all()).unwrap_err(), EMFILE);
    let bridge = || Request::SwitchNew { bridge: "vale1".into(), one_address: false };
    assert_eq!(w.ask(bridge()).unwrap_err(), EMFILE);
    // Others do not notice.
    let mine = std::mem::replace(&mut w.caller.uid, me + 1);
    let (theirs, _) = w.open("vale0:d");
    w.ask(bridge()).unwrap();
    w.ask(Request::SwitchDelete { bridge: "vale1".into() }).unwrap();
    w.caller.uid = mine;
    connections.into_iter().chain([other, first, second, third, theirs]).for_each(|handle| {
        w.registry.close(handle);
    });
    assert_eq!([me, me + 1].map(|uid| w.registry.descriptors(uid)), [0, 0]);
    w.assert_empty();
}

#[test]
fn users_and_their_descriptors() {
    // Small: a large one is freed some time after.
    let global_region = Sizes { buf_num: 20_000, ..Sizes::GLOBAL };
    let settings = Settings { global_region, ..Settings::default() };
    let mut w = World { registry: Registry::new(settings), ..World::new() };
    w.registry.events().expect("an epoll");
    let before = open_descriptors();
    ports_of_all_kinds(&mut w, before);
    drop(w);
    who_has_too_many();
}
