//! Persistent ports: on two bridges, and with the host's stack behind them.

mod common;

use common::{World, all, one_at_a_time, select, shaped};
use libc::{EBUSY, EEXIST, EINVAL, ENXIO, EPERM};
use ringway_abi::Dir;
use ringway_proto::{
    BridgePortInfo, Grant, Lossless, PortSettings, PortShape, Registration, Reply, Request,
    RingBackend, RingSelection, Vlan,
};
use ringway_registry::{Netns, Settings};
use ringway_testkit::skip_without_root;

/// The rings that a grant has, host rings after the others: tx, rx.
fn rings(grant: &Grant) -> [Vec<u16>; 2] {
    [Dir::Tx, Dir::Rx]
        .map(|dir| grant.rings.iter().filter(|r| r.dir == dir).map(|r| r.index).collect())
}

fn device_exists(name: &str) -> bool {
    std::fs::read_to_string("/proc/thread-self/net/dev").unwrap().contains(name)
}

#[test]
fn s_scen_5_on_two_bridges() {
    if skip_without_root("s_scen_5_on_two_bridges") {
        return;
    }
    let _turn = one_at_a_time();
    let mut w = World::new();
    for _ in 0..2 {
        assert!(!device_exists("per0"));
        w.newif("per0").unwrap();
        assert!(device_exists("per0"));
        assert_eq!(w.newif("per0").unwrap_err(), EEXIST);
        w.attach("vale1:per0").unwrap();
        assert_eq!(w.attach("vale1:per0").unwrap_err(), EBUSY);
        assert_eq!(w.delif("per0").unwrap_err(), EBUSY);
        w.attach("vale2:per0").unwrap();
        assert_eq!(w.attach("vale2:per0").unwrap_err(), EBUSY);
        assert_eq!(w.attach("vale3:per0").unwrap_err(), EBUSY);
        assert_eq!(w.newif("per0").unwrap_err(), EEXIST);
        for name in ["per0", "vale1:per0", "vale2:per0"] {
            assert_eq!(w.register(name, all()).unwrap_err(), EBUSY, "a bridge has it");
        }
        assert_eq!(w.delif("per0").unwrap_err(), EBUSY);
        assert_eq!(w.detach("vale1:per0").unwrap_err(), EBUSY, "in reverse order");
        w.detach("vale2:per0").unwrap();
        assert_eq!(w.detach("vale2:per0").unwrap_err(), ENXIO);
        assert_eq!(w.delif("per0").unwrap_err(), EBUSY);
        w.detach("vale1:per0").unwrap();
        w.delif("per0").unwrap();
        w.assert_empty();
    }
}

#[test]
fn s_vale_14_who_is_bound_joins_no_second_bridge() {
    if skip_without_root("s_vale_14_who_is_bound_joins_no_second_bridge") {
        return;
    }
    let _turn = one_at_a_time();
    let mut w = World::new();
    w.newif("per0").unwrap();
    let (open, _) = w.open("per0");
    assert_eq!(w.attach("vale1:per0").unwrap_err(), EBUSY);
    w.registry.close(open);
    w.attach("vale1:per0").unwrap();
    let (open, _) = w.open("vale1:per0");
    assert_eq!(w.attach("vale2:per0").unwrap_err(), EBUSY);
    w.registry.close(open);
    w.attach("vale2:per0").unwrap();
}

/// S-VALE-16: with the host stack as a second port.
#[test]
fn s_vale_16_the_stack_on_a_bridge() {
    if skip_without_root("s_vale_16_the_stack_on_a_bridge") {
        return;
    }
    let _turn = one_at_a_time();
    let mut w = World::new();
    w.newif("per0").unwrap();
    w.attach_as("vale1:per0", true).unwrap();
    assert_eq!(w.list("vale1:per0^", 0, 0).unwrap().2, 1);
    assert_eq!(w.register("vale1:per0^", all()).unwrap_err(), EBUSY);
    assert_eq!(w.detach("vale1:per0^").unwrap_err(), EBUSY);
    assert_eq!(
        w.register("per0", select(RingSelection::Host)).unwrap_err(),
        EBUSY,
        "the bridge has the stack"
    );
    assert_eq!(w.attach_as("vale2:per0", true).unwrap_err(), EBUSY);
    assert_eq!(w.list("vale2:per0", 0, 0).unwrap_err(), libc::ENOENT);
    w.attach("vale2:per0").unwrap();
    w.detach("vale2:per0").unwrap();
    w.detach("vale1:per0").unwrap();
    assert_eq!(w.list("vale1:per0^", 0, 0).unwrap_err(), libc::ENOENT);
    w.attach_as("vale1:per0", true).unwrap();
    w.detach("vale1:per0").unwrap();
    w.delif("per0").unwrap();
    w.assert_empty();
}

/// What a name ends with gives no right: no program's port and no persistent one is called as a stack.
#[test]
fn names_of_stacks_give_no_rights() {
    let mut w = World::new();
    assert_eq!(w.register("vale1:db^", all()).unwrap_err(), EINVAL);
    for name in ["per0^", "per0*", "per0@1"] {
        assert_eq!(w.newif(name).unwrap_err(), EINVAL, "{name}");
    }
    w.assert_empty();
}

#[test]
fn s_reg_4_host_rings() {
    if skip_without_root("s_reg_4_host_rings") {
        return;
    }
    let _turn = one_at_a_time();
    let mut w = World::new();
    w.newif("per0").unwrap();
    let expected = [
        (RingSelection::All, [vec![0], vec![0]]),
        (RingSelection::Host, [vec![1], vec![1]]),
        (RingSelection::AllAndHost, [vec![0, 1], vec![0, 1]]),
        (RingSelection::One(0), [vec![0], vec![0]]),
        (RingSelection::OneHost(0), [vec![1], vec![1]]),
    ];
    for (which, selected) in expected {
        let (open, grant) = w.register("per0", select(which)).unwrap();
        assert_eq!(rings(&grant), selected);
        let out = grant.registration;
        assert_eq!((out.tx_rings, out.rx_rings), (1, 1));
        assert_eq!((out.host_tx_rings, out.host_rx_rings), (1, 1));
        assert!(grant.rings.iter().all(|r| matches!(r.link, RingBackend::Served { .. })));
        w.registry.close(open);
    }
    for beyond in [RingSelection::OneHost(1), RingSelection::One(1)] {
        assert_eq!(w.register("per0", select(beyond)).unwrap_err(), EINVAL);
    }
    // S-REG-5: the host rings and the others do not conflict.
    let exclusive = |rings| Registration { exclusive: true, ..select(rings) };
    let (sw, _) = w.register("per0", exclusive(RingSelection::Host)).unwrap();
    let (nic, _) = w.register("per0", exclusive(RingSelection::All)).unwrap();
    assert_eq!(w.register("per0", select(RingSelection::AllAndHost)).unwrap_err(), EBUSY);
    w.close([sw, nic]);
    // Ephemeral ports have none.
    for none in [RingSelection::Host, RingSelection::AllAndHost, RingSelection::OneHost(0)] {
        assert_eq!(w.register("vale0:a", select(none)).unwrap_err(), EINVAL);
    }
    let info = Request::PortGeometry { name: "per0".into(), mem_id: 0 };
    let Ok(Reply::PortGeometry(info)) = w.ask(info) else { panic!("there is such a port") };
    assert_eq!((info.host_tx_rings, info.host_rx_rings), (1, 1));
    w.delif("per0").unwrap();
    w.assert_empty();
}

/// A name belongs to a user and to a network namespace; the right to make interfaces does not come
/// with the socket.
#[test]
fn s_vale_12_where_and_for_whom() {
    if skip_without_root("s_vale_12_where_and_for_whom") {
        return;
    }
    let _turn = one_at_a_time();
    let (mut w, elsewhere) = (World::new(), ringway_testkit::Netns::new("rp"));
    w.newif("per0").unwrap();
    w.caller.netns = Netns::other(elsewhere.fd());
    assert_eq!(w.delif("per0").unwrap_err(), ENXIO);
    w.newif("per0").unwrap();
    assert!(elsewhere.run("ip -br link").contains("per0"));
    w.delif("per0").unwrap();
    assert!(!elsewhere.run("ip -br link").contains("per0"));
    w.caller.netns = Netns::Own;
    w.delif("per0").unwrap();
    // Names of pipes, and what the kernel would take for a wish that it chooses.
    for name in ["per0{0", "per0}0", "per%d"] {
        assert_eq!(w.newif(name).unwrap_err(), EINVAL, "{name}");
    }
    w.caller.may_use_nics = false;
    assert_eq!(w.newif("per0").unwrap_err(), EPERM);
    // A grant by name is for what is there, and for the user's own part of it.
    w.caller.granted = vec!["per0".into(), "lo".into()];
    assert_eq!(w.newif("per0").unwrap_err(), EPERM);
    let steer = Request::Steer { interface: "lo".into(), queue: 0, flows: Vec::new() };
    assert_eq!(w.ask(steer).unwrap_err(), EPERM);
    w.assert_empty();
}

/// A device that somebody else has deleted leaves no port behind for ever.
#[test]
fn a_device_that_has_gone() {
    if skip_without_root("a_device_that_has_gone") {
        return;
    }
    let _turn = one_at_a_time();
    let mut w = World::new();
    let here = ringway_testkit::Netns::root();
    w.newif("per0").unwrap();
    w.newif("per1").unwrap();
    w.attach_as("vale1:per0", true).unwrap();
    w.attach("vale2:per0").unwrap();
    here.run("ip link del per0 && ip link del per1");
    w.registry.handle_events();
    assert!(!w.registry.keeps_something());
    w.newif("per0").unwrap();
    assert!(w.registry.keeps_something());
    assert_eq!(w.bridges(), [""; 0], "it is off its bridges");
    assert_eq!(w.ports().len(), 1);
    w.delif("per0").unwrap();
    w.assert_empty();
}

impl World {
    fn bridge_port(&mut self, name: &str) -> Option<BridgePortInfo> {
        let all = Request::Switches { from: Default::default() };
        let Ok(Reply::Switches { switches, .. }) = self.ask(all) else { panic!("always") };
        switches.into_iter().flat_map(|bridge| bridge.ports).find(|port| port.name == name)
    }
}

/// S-MEM-10: what programs have lost comes back with the last of them, and the port keeps its place
/// on the bridge and what was chosen for it.
#[test]
fn s_mem_10_what_was_lost_comes_back() {
    if skip_without_root("s_mem_10_what_was_lost_comes_back") {
        return;
    }
    let _turn = one_at_a_time();
    let mut w = World::new();
    w.newif("per0").unwrap();
    let (first, _) = w.open("vale1:x");
    w.attach("vale1:per0").unwrap();
    w.close([first]);
    let settings = PortSettings {
        vlan: Some(Vlan::Access(7)),
        lossless: Some(Some(Lossless { patience_ms: 77 })),
        ..Default::default()
    };
    w.ask(Request::SwitchPort { name: "vale1:per0".into(), settings }).unwrap();
    let free = |w: &mut World| w.regions()[0].free_bufs;
    let (before, place) = (free(&mut w), w.bridge_port("vale1:per0").unwrap());
    let wanted = Registration { extra_bufs: 10_000, ..all() };
    for _ in 0..3 {
        let (one, grant) = w.register("per0", wanted).unwrap();
        assert_eq!(grant.registration.extra_bufs, 10_000);
        let (other, _) = w.open("per0");
        let (pipe, _) = w.open("per0{1");
        w.lose_buffers(one);
        // Not while anybody uses the region.
        w.close([one, other]);
        assert!(free(&mut w) < before);
        w.close([pipe]);
        assert_eq!(free(&mut w), before);
    }
    let now = w.bridge_port("vale1:per0").unwrap();
    assert_eq!((now.index, now.index), (place.index, 1));
    assert_eq!((now.vlan, now.lossless), (place.vlan, place.lossless));
    w.detach("vale1:per0").unwrap();
    w.delif("per0").unwrap();
    w.assert_empty();
}

/// A region that two ports share has no users when both are closed, and no second bridge has one.
#[test]
fn s_mem_10_two_ports_in_one_region() {
    if skip_without_root("s_mem_10_two_ports_in_one_region") {
        return;
    }
    let _turn = one_at_a_time();
    let mut w = World::new();
    let mem_id = w.newif("per0").unwrap().mem_id;
    let shape = PortShape { mem_id, ..Default::default() };
    w.ask(Request::NewInterface { name: "per1".into(), shape }).unwrap();
    let before = w.regions()[0].free_bufs;
    let wanted = Registration { extra_bufs: 10, ..all() };
    let [(one, _), (two, _)] = ["per0", "per1"].map(|name| w.register(name, wanted).unwrap());
    w.lose_buffers(one);
    w.lose_buffers(two);
    w.close([one]);
    assert!(w.regions()[0].free_bufs < before);
    w.attach("vale1:per0").unwrap();
    w.attach("vale2:per0").unwrap();
    w.close([two]);
    assert!(w.regions()[0].free_bufs < before, "the second bridge has its rings");
    w.detach("vale2:per0").unwrap();
    assert_eq!(w.regions()[0].free_bufs, before);
    w.detach("vale1:per0").unwrap();
    w.delif("per1").unwrap();
    w.delif("per0").unwrap();
    w.assert_empty();
}

/// A port that finds no place on a full bridge stays where it was, whole.
#[test]
fn a_full_bridge() {
    if skip_without_root("a_full_bridge") {
        return;
    }
    let _turn = one_at_a_time();
    const PORTS: usize = 252;
    ringway_testkit::isolate_thread();
    let settings = Settings { memory_per_user: u64::MAX, ..Settings::default() };
    let mut w = World { registry: ringway_registry::Registry::new(settings), ..World::new() };
    w.newif("per0").unwrap();
    let port = |n: usize| format!("vale1:p{n}");
    let small = shaped([1, 1], [16, 16]);
    let handles: Vec<_> = (0..PORTS).map(|n| w.register(&port(n), small).unwrap().0).collect();
    for stack in [false, true] {
        assert_eq!(w.attach_as("vale1:per0", stack).unwrap_err(), libc::ENOMEM);
        assert_eq!(w.detach("vale1:per0").unwrap_err(), ENXIO);
    }
    // Room for the port, but not for its stack.
    w.registry.close(handles[7]);
    assert_eq!(w.attach_as("vale1:per0", true).unwrap_err(), libc::ENOMEM);
    assert_eq!(w.detach("vale1:per0").unwrap_err(), ENXIO);
    let (open, _) = w.open("per0");
    w.close([open]);
    assert_eq!(w.attach("vale1:per0").unwrap(), 7);
    assert_eq!(w.bridge_port("vale1:per0").unwrap().index, 7);
    // On a second bridge, too.
    let one_more = w.register("vale2:p0", small).unwrap().0;
    w.attach("vale2:per0").unwrap();
    w.detach("vale2:per0").unwrap();
    w.detach("vale1:per0").unwrap();
    assert!(w.bridge_port("vale1:per0").is_none());
    w.delif("per0").unwrap();
    handles.into_iter().chain([one_more]).for_each(|handle| w.registry.close(handle));
    w.assert_empty();
}

/// A switch that is deleted lets its persistent ports go, which stay; one whose port another switch uses
/// stays as it was.
#[test]
fn a_deleted_switch_lets_persistent_ports_go() {
    if skip_without_root("a_deleted_switch_lets_persistent_ports_go") {
        return;
    }
    let _turn = one_at_a_time();
    let mut w = World::new();
    let delete =
        |w: &mut World, bridge: &str| w.ask(Request::SwitchDelete { bridge: bridge.into() });
    for name in ["per0", "per1"] {
        w.newif(name).unwrap();
    }
    w.attach("vale1:per0").unwrap();
    w.attach_as("vale1:per1", true).unwrap();
    w.attach("vale2:per0").unwrap();
    assert_eq!(delete(&mut w, "vale1").unwrap_err(), EBUSY, "vale2 uses per0");
    assert_eq!(w.bridges().len(), 2);
    assert!(w.bridge_port("vale1:per1").is_some());
    delete(&mut w, "vale2").unwrap();
    delete(&mut w, "vale1").unwrap();
    assert_eq!(w.bridges(), [""; 0]);
    w.attach("vale3:per0").unwrap();
    delete(&mut w, "vale3").unwrap();
    for name in ["per0", "per1"] {
        w.delif(name).unwrap();
    }
    w.assert_empty();
}
