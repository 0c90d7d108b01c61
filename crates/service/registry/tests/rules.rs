//! The rules of registration, memory, bridges and pipes, each by its number.

mod common;

use common::{World, all, select, shaped};
use libc::{EBUSY, EEXIST, EINVAL, ENOENT, ENOMEM, ENXIO};
use ringway_abi::Dir;
use ringway_errno::errno;
use ringway_filter::Insn;
use ringway_proto::{
    Extmem, Filter, FloodLimit, Flow, Forwarding, Grant, Lossless, Options, PortSettings,
    PortShape, RateLimit, Registration, Reply, Request, RingBackend, RingSelection, SwitchPosition,
};
use ringway_region::Sizes;
use ringway_registry::{Caller, Registry, Settings};
use ringway_testkit::skip_without_root;

fn exclusive() -> Registration {
    Registration { exclusive: true, ..all() }
}

fn rings(grant: &Grant) -> [Vec<u16>; 2] {
    [Dir::Tx, Dir::Rx]
        .map(|dir| grant.rings.iter().filter(|r| r.dir == dir).map(|r| r.index).collect())
}

// --- LIFE --------------------------------------------------------------------------------

#[test]
fn s_life_2_a_handle_binds_once_and_a_refusal_leaves_it_usable() {
    let mut w = World::new();
    let handle = w.registry.open();
    let wrong = select(RingSelection::Other(0));
    assert_eq!(w.register_on(handle, "vale0:a", wrong).unwrap_err(), EINVAL);
    assert_eq!((w.ports().len(), w.regions().len()), (0, 0), "a refused request changes nothing");
    w.register_on(handle, "vale0:a", all()).unwrap();
    assert_eq!(w.register_on(handle, "vale0:b", all()).unwrap_err(), EBUSY);
    w.registry.close(handle);
    w.assert_empty();
}

#[test]
fn s_ctrl_10_a_registration_is_undone() {
    let mut w = World::new();
    let handle = w.registry.open();
    let undo = |w: &mut World| w.registry.call(handle, &w.caller, Request::Unregister);
    assert_eq!(errno(undo(&mut w).unwrap_err().cause), ENXIO, "there is nothing to undo");
    w.register_on(handle, "vale0:a", exclusive()).unwrap();
    undo(&mut w).unwrap();
    assert_eq!((w.ports().len(), w.regions().len()), (0, 0));
    w.register_on(handle, "vale0:b", all()).unwrap();
    w.registry.close(handle);
    w.assert_empty();
}

#[test]
fn s_life_7_the_last_user_takes_the_port_with_it() {
    let mut w = World::new();
    let (one, two) = (w.open("vale0:a").0, w.open("vale0:a").0);
    w.registry.close(one);
    assert_eq!(w.ports()[0].users, 1);
    w.registry.close(two);
    w.assert_empty();
}

// --- REG ---------------------------------------------------------------------------------

#[test]
fn s_reg_1_order_of_checks() {
    let mut w = World::new();
    let (bound, _) = w.open("vale0:a");
    let everything_wrong = Registration { mem_id: 77, ..select(RingSelection::Other(99)) };
    assert_eq!(w.register_on(bound, "val", everything_wrong).unwrap_err(), EBUSY);
    let handle = w.registry.open();
    assert_eq!(w.register_on(handle, "val", everything_wrong).unwrap_err(), EINVAL, "mem_id");
    let lookup = select(RingSelection::Other(99));
    assert_eq!(w.register_on(handle, "val", lookup).unwrap_err(), ENOMEM, "name");
    let (_keep, _) = w.register("vale0:b", exclusive()).unwrap();
    let rings = Registration { rings: RingSelection::One(5), ..exclusive() };
    assert_eq!(w.register_on(handle, "vale0:b", rings).unwrap_err(), EINVAL, "rings");
    assert_eq!(w.register_on(handle, "vale0:b", exclusive()).unwrap_err(), EBUSY);
}

#[test]
fn s_reg_2_what_a_name_stands_for() {
    let mut w = World::new();
    for (name, errno) in [
        ("", ENXIO),
        ("no-such-if", ENXIO),
        ("value", ENOMEM),
        ("vale0", ENOMEM),
        ("{1", EINVAL),
        ("vale0:a{", EINVAL),
    ] {
        assert_eq!(w.register(name, all()).unwrap_err(), errno, "{name:?}");
    }
    assert_eq!(w.register("vale0:a", select(RingSelection::PipeEnd)).unwrap_err(), EINVAL);
    w.assert_empty();
}

#[test]
fn s_reg_4_ring_selection() {
    let mut w = World::new();
    let (_keep, _) = w.register("vale0:a", shaped([3, 2], [64, 64])).unwrap();
    let list = |n: u16| (0..n).collect::<Vec<_>>();
    for (which, [without_tx, without_rx], expected) in [
        (RingSelection::All, [false, false], Ok([list(3), list(2)])),
        (RingSelection::All, [false, true], Ok([list(3), vec![]])),
        (RingSelection::All, [true, false], Ok([vec![], list(2)])),
        (RingSelection::All, [true, true], Ok([vec![], vec![]])),
        (RingSelection::One(1), [false, false], Ok([vec![1], vec![1]])),
        (RingSelection::One(2), [false, false], Ok([vec![2], vec![0]])),
        (RingSelection::One(3), [false, false], Err(EINVAL)),
        (RingSelection::Host, [false, false], Err(EINVAL)),
        (RingSelection::AllAndHost, [false, false], Err(EINVAL)),
        (RingSelection::OneHost(0), [false, false], Err(EINVAL)),
        (RingSelection::Other(0), [false, false], Err(EINVAL)),
        (RingSelection::Other(9), [false, false], Err(EINVAL)),
    ] {
        let reg = Registration { without_tx, without_rx, ..select(which) };
        let got = w.register("vale0:a", reg);
        let chosen = got.as_ref().map(|(_, grant)| rings(grant)).map_err(|errno| *errno);
        assert_eq!(chosen, expected, "{reg:?}");
        if let Ok((handle, grant)) = got {
            assert_eq!((grant.registration.tx_rings, grant.registration.rx_rings), (3, 2));
            let out = grant.registration;
            assert_eq!(
                (out.rings, out.without_tx, out.without_rx),
                (which, without_tx, without_rx)
            );
            w.registry.close(handle);
        }
    }
}

#[test]
fn s_reg_5_exclusivity_is_per_ring_and_direction() {
    let mut w = World::new();
    let one = |id, exclusive| Registration {
        rings: RingSelection::One(id),
        exclusive,
        ..shaped([2, 2], [64, 64])
    };
    let (zero, _) = w.register("vale0:a", one(0, true)).unwrap();
    assert_eq!(w.register("vale0:a", one(0, false)).unwrap_err(), EBUSY);
    assert_eq!(w.register("vale0:a", all()).unwrap_err(), EBUSY);
    let tx = Registration { without_rx: true, ..one(1, true) };
    let (tx, _) = w.register("vale0:a", tx).unwrap();
    let rx = Registration { without_tx: true, ..one(1, true) };
    let (rx, _) = w.register("vale0:a", rx).unwrap();
    w.close([zero, tx]);
    let (plain, _) = w.register("vale0:a", one(0, false)).unwrap();
    assert_eq!(w.register("vale0:a", one(0, true)).unwrap_err(), EBUSY);
    w.close([plain, rx]);
    w.assert_empty();
}

#[test]
fn s_reg_5_the_ends_of_a_pipe_are_independent() {
    let mut w = World::new();
    let (_master, _) = w.register("p{1", exclusive()).unwrap();
    let (_slave, _) = w.register("p}1", exclusive()).unwrap();
    assert_eq!(w.register("p{1", all()).unwrap_err(), EBUSY);
    assert_eq!(w.register("p}1", exclusive()).unwrap_err(), EBUSY);
}

#[test]
fn s_reg_7_outputs() {
    let mut w = World::new();
    let (_h, grant) = w.register("vale0:a", shaped([2, 3], [128, 256])).unwrap();
    let reg = grant.registration;
    assert_eq!((reg.tx_rings, reg.rx_rings), (2, 3));
    assert_eq!((reg.tx_slots, reg.rx_slots), (128, 256));
    assert_eq!((reg.host_tx_rings, reg.host_rx_rings), (0, 0));
    assert_eq!(reg.mem_id, grant.mem_id);
    assert!(grant.netif_offset < grant.layout.rings.offset);
    // S-REG-8: counts matter only to the request that makes the port.
    let (_h, again) = w.register("vale0:a", shaped([1, 1], [8, 8])).unwrap();
    assert_eq!(again.registration.rx_slots, 256);
}

// --- MEM ---------------------------------------------------------------------------------

#[test]
fn s_mem_2_ids_and_lifetime_of_regions() {
    let mut w = World::new();
    let (a, first) = w.open("vale0:a");
    let (b, second) = w.open("vale0:b");
    assert!(first.mem_id > 1 && second.mem_id > first.mem_id);
    w.registry.close(a);
    let (c, third) = w.open("vale0:c");
    assert!(third.mem_id > second.mem_id, "ids grow from the last one");
    w.close([b, c]);
    w.assert_empty();
}

#[test]
fn s_mem_3_a_given_region() {
    let mut w = World::new();
    assert_eq!(w.register("vale0:a", Registration { mem_id: 9, ..all() }).unwrap_err(), EINVAL);
    let (_a, a) = w.open("vale0:a");
    let there = Registration { mem_id: a.mem_id, ..shaped([1, 1], [64, 64]) };
    let (_b, b) = w.register("vale0:b", there).unwrap();
    assert_eq!(b.mem_id, a.mem_id);
    let (_c, c) = w.open("vale0:c");
    let elsewhere = Registration { mem_id: c.mem_id, ..all() };
    let (_a, again) = w.register("vale0:a", elsewhere).unwrap();
    assert_eq!(again.mem_id, a.mem_id, "ignored for a port in use");
}

#[test]
fn s_mem_3_regions_of_other_users_do_not_exist() {
    let mut w = World::new();
    let (_a, a) = w.open("vale0:a");
    w.caller.uid += 1;
    let there = Registration { mem_id: a.mem_id, ..all() };
    assert_eq!(w.register("vale0:b", there).unwrap_err(), EINVAL);
    assert_eq!(w.register("vale0:a", all()).unwrap_err(), EBUSY);
}

#[test]
fn s_mem_9_extra_buffers_are_counted_and_come_back() {
    let mut w = World::new();
    let (_keep, grant) = w.open("vale0:a");
    let free = |w: &mut World| w.regions()[0].free_bufs;
    let before = free(&mut w);
    let extra = Registration { extra_bufs: 7, ..all() };
    let (seven, got) = w.register("vale0:a", extra).unwrap();
    assert_eq!((got.registration.extra_bufs, free(&mut w)), (7, before - 7));
    let greedy = Registration { extra_bufs: u32::MAX, ..all() };
    let (rest, got) = w.register("vale0:a", greedy).unwrap();
    assert_eq!((got.registration.extra_bufs, free(&mut w)), (before - 7, 0));
    w.close([seven, rest]);
    assert_eq!(free(&mut w), before);
    assert_eq!(grant.registration.extra_bufs, 0);
}

#[test]
fn s_mem_11_port_info() {
    let mut w = World::new();
    let mut info =
        |name: &str, mem_id| match w.ask(Request::PortGeometry { name: name.into(), mem_id })? {
            Reply::PortGeometry(info) => Ok(info),
            other => panic!("{other:?}"),
        };
    let vale = info("vale0:a", 0).unwrap();
    assert_eq!((vale.tx_slots, vale.rx_rings, vale.memsize), (1024, 1, 42_369_024));
    assert_eq!(info("x{1", 0).unwrap().tx_rings, 1);
    assert_eq!(info("no-such-if", 0), Err(ENXIO));
    assert_eq!(info("", 9), Err(EINVAL));
    assert_eq!(info("", 0).unwrap().mem_id, 1);
    assert_eq!(info("", 0).unwrap().memsize, 343_019_520);
    w.assert_empty();
}

#[test]
fn s_mem_12_pools_info() {
    let mut w = World::new();
    let (_h, grant) = w.open("vale0:a");
    let pools = match w.ask(Request::Pools { name: "vale0:a".into(), mem_id: 0 }) {
        Ok(Reply::Pools(pools)) => pools,
        other => panic!("{other:?}"),
    };
    assert_eq!((pools.mem_id, pools.memsize), (grant.mem_id, grant.layout.memsize()));
    assert_eq!(pools.bufs.offset, grant.layout.bufs.offset);
    assert_eq!((pools.ifs.total, pools.bufs.total), (12, 20_482));
    assert_eq!(w.ask(Request::Pools { name: String::new(), mem_id: 0 }).unwrap_err(), ENXIO);
}

// --- NULL --------------------------------------------------------------------------------

#[test]
fn s_null_1_null_ports() {
    let mut w = World::new();
    let null = |mem_id, rings, slots| Registration {
        rings: RingSelection::Null { sink: false },
        mem_id,
        ..shaped(rings, slots)
    };
    assert_eq!(w.register("any", null(0, [1, 1], [64, 64])).unwrap_err(), EINVAL);
    assert_eq!(w.register("any", null(9, [1, 1], [64, 64])).unwrap_err(), EINVAL);
    let (a, one) = w.register("any", null(1, [2, 1], [64, 32])).unwrap();
    let (b, two) = w.register("any", null(1, [0, 0], [0, 0])).unwrap();
    assert_eq!(rings(&one), [vec![0, 1], vec![0]]);
    assert_eq!(rings(&two), [Vec::<u16>::new(), Vec::new()]);
    assert!(one.rings.iter().all(|r| matches!(r.link, RingBackend::Null)));
    assert_eq!(w.ports().len(), 2, "each bind makes a port");
    w.close([a, b]);
    w.assert_empty();
}

// --- VALE --------------------------------------------------------------------------------

#[test]
fn s_vale_1_names() {
    let mut w = World::new();
    for (bad, errno) in [
        ("val", ENOMEM),
        ("vale-1:a", ENOMEM),
        ("vale01234567890a:x", EINVAL),
        ("vale0:0123456789abcdef", EINVAL),
    ] {
        assert_eq!(w.register(bad, all()).unwrap_err(), errno, "{bad}");
        assert_eq!(w.detach(bad).unwrap_err(), ENXIO, "{bad}");
    }
    for good in ["vale:a", "vale_A9:b", "vale0123456789a:0123456789abcde"] {
        w.open(good);
    }
}

#[test]
fn s_vale_2_limits() {
    let mut w = World::new();
    let handles: Vec<_> = (0..8).map(|n| w.open(&format!("vale{n}:a")).0).collect();
    assert_eq!(w.register("vale8:a", all()).unwrap_err(), ENOMEM);
    w.registry.close(handles[3]);
    w.open("vale8:a");
    let small = Registration { mem_id: 0, ..shaped([1, 1], [1, 1]) };
    for n in 1..252 {
        w.register(&format!("vale0:p{n}"), small).unwrap();
    }
    assert_eq!(w.register("vale0:full", small).unwrap_err(), ENOMEM);
}

#[test]
fn s_vale_3_shape_of_a_new_port() {
    let mut w = World::new();
    for (n, (asked, slots, made)) in
        [([0, 0], [0, 0], ([1, 1], [1024, 1024])), ([17, 99], [1, 9999], ([16, 16], [1, 4096]))]
            .into_iter()
            .enumerate()
    {
        let (_h, grant) = w.register(&format!("vale0:p{n}"), shaped(asked, slots)).unwrap();
        let reg = grant.registration;
        assert_eq!(([reg.tx_rings, reg.rx_rings], [reg.tx_slots, reg.rx_slots]), made);
    }
}

#[test]
fn s_vale_4_an_interface_must_be_attached_first() {
    let mut w = World::new();
    assert_eq!(w.register("vale0:lo", all()).unwrap_err(), EINVAL);
    assert_eq!(w.detach("vale0:lo").unwrap_err(), ENXIO);
    w.assert_empty();
}

#[test]
fn s_vale_12_persistent_ports() {
    if skip_without_root("s_vale_12_persistent_ports") {
        return;
    }
    let mut w = World::new();
    for bad in ["valex", "0123456789abcdef", ""] {
        assert_eq!(w.newif(bad).unwrap_err(), EINVAL, "{bad}");
    }
    assert_eq!(w.newif("lo").unwrap_err(), EEXIST);
    let shape = PortShape { mem_id: 9, ..Default::default() };
    let wrong = Request::NewInterface { name: "per0".into(), shape };
    assert_eq!(w.ask(wrong).unwrap_err(), EINVAL);
    let made = w.newif("per0").unwrap();
    assert_eq!((made.tx_slots, made.rx_rings), (1024, 1));
    assert_eq!(w.newif("per0").unwrap_err(), EEXIST);
    let (open, grant) = w.open("per0");
    assert_eq!(grant.mem_id, made.mem_id);
    w.registry.close(open);
    assert!(w.registry.keeps_something());
    w.delif("per0").unwrap();
    w.assert_empty();
}

#[test]
fn s_vale_13_an_attached_persistent_port_has_both_names() {
    if skip_without_root("s_vale_13_an_attached_persistent_port_has_both_names") {
        return;
    }
    let mut w = World::new();
    w.newif("per0").unwrap();
    w.attach("vale1:per0").unwrap();
    let (a, one) = w.open("vale1:per0");
    let (b, two) = w.open("per0");
    assert_eq!(one.mem_id, two.mem_id);
    w.close([a, b]);
    w.detach("vale1:per0").unwrap();
    w.delif("per0").unwrap();
    w.assert_empty();
}

#[test]
fn s_vale_14_15_what_is_in_use_stays() {
    if skip_without_root("s_vale_14_15_what_is_in_use_stays") {
        return;
    }
    let mut w = World::new();
    assert_eq!(w.delif("per0").unwrap_err(), ENXIO);
    assert_eq!(w.delif("lo").unwrap_err(), EINVAL);
    w.newif("per0").unwrap();
    let (open, _) = w.open("per0");
    assert_eq!(w.delif("per0").unwrap_err(), EBUSY);
    w.registry.close(open);
    w.attach("vale1:per0").unwrap();
    assert_eq!(w.attach("vale1:per0").unwrap_err(), EBUSY);
    assert_eq!(w.delif("per0").unwrap_err(), EBUSY);
    w.detach("vale1:per0").unwrap();
    let (_pipe, _) = w.open("parent{1");
    assert_eq!(w.delif("parent").unwrap_err(), EINVAL);
    w.delif("per0").unwrap();
    assert_eq!(w.delif("per0").unwrap_err(), ENXIO);
}

#[test]
fn s_vale_16_17_attach_and_detach() {
    if skip_without_root("s_vale_16_17_attach_and_detach") {
        return;
    }
    let mut w = World::new();
    assert_eq!(w.attach("per0").unwrap_err(), EINVAL);
    // The personality makes netmap's EINVAL of it.
    assert_eq!(w.attach("vale1:no-such-if").unwrap_err(), ENXIO);
    assert_eq!(w.detach("per0").unwrap_err(), EINVAL);
    assert_eq!(w.detach("vale1:per0").unwrap_err(), ENXIO);
    let (_a, _) = w.open("vale1:a");
    assert_eq!(w.detach("vale1:a").unwrap_err(), EBUSY);
    w.newif("per0").unwrap();
    assert_eq!(w.attach("vale1:per0").unwrap(), 1);
    let (_open, _) = w.open("per0");
    assert_eq!(w.detach("vale1:per0").unwrap(), 1, "also while bound");
    assert_eq!(w.detach("vale1:per0").unwrap_err(), ENXIO);
}

#[test]
fn s_vale_18_list() {
    let mut w = World::new();
    assert_eq!(w.list("", 0, 0).unwrap_err(), ENOENT);
    for name in ["vale0:a", "vale0:b", "vale1:c"] {
        w.open(name);
    }
    let (mut bridge, mut port, mut seen) = (0, 0, Vec::new());
    while let Ok((name, b, p)) = w.list("", bridge, port) {
        seen.push(name);
        (bridge, port) = (b, p + 1);
    }
    assert_eq!(seen, ["vale0:a", "vale0:b", "vale1:c"]);
    assert_eq!(w.list("vale0:b", 0, 0).unwrap().2, 1);
    assert_eq!(w.list("vale0:x", 0, 0).unwrap().2, 255);
    assert_eq!(w.list("vale7:x", 0, 0).unwrap_err(), ENOENT);
    assert_eq!(w.list("vale0", 0, 0).unwrap_err(), ENOENT);
    assert_eq!(w.list("eth", 0, 0).unwrap_err(), EINVAL);
}

// --- PIPE --------------------------------------------------------------------------------

#[test]
fn s_pipe_1_names_and_modes() {
    let mut w = World::new();
    let handle = w.registry.open();
    for which in [
        RingSelection::Host,
        RingSelection::AllAndHost,
        RingSelection::OneHost(0),
        RingSelection::Other(0),
    ] {
        assert_eq!(w.register_on(handle, "x{1", select(which)).unwrap_err(), EINVAL);
    }
    w.register_on(handle, "x{some id", all()).unwrap();
    w.registry.close(handle);
    w.assert_empty();
}

#[test]
fn s_pipe_2_parents() {
    let mut w = World::new();
    let (pipe, _) = w.open("vale0:a{1");
    assert_eq!(w.ports().iter().filter(|p| p.name == "vale0:a").count(), 1);
    w.registry.close(pipe);
    w.assert_empty();
    assert_eq!(w.register("x", all()).unwrap_err(), ENXIO);
    let (one, _) = w.open("x{1");
    let (two, _) = w.open("x{2");
    w.registry.close(one);
    w.registry.close(two);
    w.assert_empty();
}

#[test]
fn s_pipe_3_no_more_than_memory_permits() {
    let mut w = World::new();
    let (_parent, _) = w.open("vale0:a");
    let tiny = shaped([1, 1], [4, 4]);
    let mut made = 0;
    let errno = loop {
        match w.register(&format!("vale0:a{{{made}"), tiny) {
            Ok(_) => made += 1,
            Err(errno) => break errno,
        }
    };
    assert!((1..=64).contains(&made), "{made}");
    assert!(errno == ENOMEM || made == 64 && errno == EINVAL);
}

#[test]
fn s_pipe_4_counts_describe_the_master() {
    let mut w = World::new();
    let (_s, slave) = w.register("x}1", shaped([2, 1], [64, 128])).unwrap();
    let (_m, master) = w.open("x{1");
    assert_eq!((master.registration.tx_rings, master.registration.rx_rings), (2, 1));
    assert_eq!((slave.registration.tx_rings, slave.registration.rx_rings), (1, 2));
    assert_eq!((master.registration.tx_slots, slave.registration.tx_slots), (64, 128));
    // S-PIPE-6: each end's rings name the other's as their peers.
    for (mine, theirs) in [(&master, &slave), (&slave, &master)] {
        for ring in &mine.rings {
            let RingBackend::Pipe { object, num_slots, .. } = ring.link else { panic!("{ring:?}") };
            let peer = theirs.rings.iter().find(|r| r.object == object).unwrap();
            assert_ne!(peer.dir, ring.dir);
            assert_eq!((peer.index, peer.num_slots), (ring.index, num_slots));
        }
    }
}

/// Where nothing has the parent's name, the memory is made for what the pipe asks for.
#[test]
fn s_pipe_4_a_pipe_alone_has_the_slots_that_it_asks_for() {
    let mut w = World::new();
    let (_s, slave) = w.register("x}1", shaped([1, 1], [4096, 300])).unwrap();
    let [tx, rx] = [slave.registration.tx_slots, slave.registration.rx_slots];
    assert_eq!([tx, rx], [300, 4096]);
    // One in that memory may have as many.
    let near = Registration { mem_id: slave.mem_id, ..shaped([1, 1], [4096, 256]) };
    assert_eq!(w.register("y{1", near).unwrap().1.mem_id, slave.mem_id);
    // Where memory is made for the default, there is no room for them.
    let (_p, plain) = w.open("z{1");
    let near = Registration { mem_id: plain.mem_id, ..shaped([1, 1], [4096, 256]) };
    assert_eq!(w.register("z{2", near).unwrap_err(), ENOMEM);
}

#[test]
fn s_pipe_5_memory_is_the_parents() {
    let mut w = World::new();
    let (_parent, vale) = w.open("vale0:a");
    let before = w.regions()[0].free_bufs;
    let extra = Registration { extra_bufs: 5, ..all() };
    let (pipe, grant) = w.register("vale0:a{1", extra).unwrap();
    assert_eq!((grant.mem_id, grant.registration.extra_bufs), (vale.mem_id, 5));
    assert_eq!(grant.registration.tx_slots, 1024, "the parent's");
    w.registry.close(pipe);
    assert_eq!(w.regions()[0].free_bufs, before);
}

#[test]
fn s_pipe_8_one_end_keeps_the_pair() {
    let mut w = World::new();
    let (master, _) = w.open("x{1");
    let (slave, _) = w.open("x}1");
    w.registry.close(master);
    assert_eq!(w.ports().len(), 2);
    let (master, _) = w.open("x{1");
    w.registry.close(slave);
    w.registry.close(master);
    w.assert_empty();
}

// --- Between users -----------------------------------------------------------------------

#[test]
fn a_bridge_is_deleted_by_who_made_it() {
    let mut w = World::new();
    let new = |bridge: &str| Request::SwitchNew { bridge: bridge.into(), one_address: false };
    let delete = |bridge: &str| Request::SwitchDelete { bridge: bridge.into() };
    let root = w.caller.uid;
    w.caller.uid = 1000;
    w.ask(new("vale3")).unwrap();
    w.caller.uid = 1001;
    assert_eq!(w.ask(delete("vale3")).unwrap_err(), EBUSY);
    w.caller.uid = 1000;
    w.ask(delete("vale3")).unwrap();
    w.caller.uid = root;
    w.assert_empty();
}

#[test]
fn a_bridge_with_ports_of_others_is_nobodys_to_make() {
    let mut w = World::new();
    let new = || Request::SwitchNew { bridge: "vale3".into(), one_address: false };
    let flood = || Request::SwitchForward { bridge: "vale3".into(), forwarding: Forwarding::Flood };
    w.caller.uid = 1000;
    let (a, _) = w.open("vale3:a");
    w.caller.uid = 1001;
    assert_eq!(w.ask(new()).unwrap_err(), EBUSY);
    assert_eq!(w.ask(flood()).unwrap_err(), EBUSY);
    w.caller.uid = 1000;
    w.ask(new()).unwrap();
    w.close([a]);
    w.caller.uid = 1001;
    assert_eq!(w.ask(flood()).unwrap_err(), EBUSY);
}

/// What one user chose for a bridge, others have not agreed to: unless it was made to stay, or is
/// as new.
#[test]
fn a_bridge_that_was_changed_for_one_user_is_that_users() {
    let mut w = World::new();
    let settings =
        || PortSettings { lossless: Some(Some(Lossless::default())), ..PortSettings::default() };
    let port = || Request::SwitchPort { name: "vale3:a".into(), settings: settings() };
    let flood = || Request::SwitchForward { bridge: "vale3".into(), forwarding: Forwarding::Flood };
    let new = || Request::SwitchNew { bridge: "vale3".into(), one_address: false };
    let attach = || Request::SwitchAttach {
        name: "vale3:lo".into(),
        stack: false,
        all_rings: true,
        mem_id: 0,
        mode: None,
    };
    for change in [port(), flood()] {
        w.caller.uid = 1000;
        let (a, _) = w.open("vale3:a");
        w.ask(change).unwrap();
        w.caller.uid = 1001;
        assert_eq!(w.register("vale3:b", all()).unwrap_err(), EBUSY);
        assert_eq!(w.ask(attach()).unwrap_err(), EBUSY);
        w.caller.uid = 1000;
        let (b, _) = w.open("vale3:b");
        w.caller.uid = 0;
        let (c, _) = w.open("vale3:c");
        w.close([a, b, c]);
        // It has gone with its ports, and is as new.
        w.caller.uid = 1001;
        let (b, _) = w.open("vale3:b");
        w.caller.uid = 1002;
        let (c, _) = w.open("vale3:c");
        w.caller.uid = 0;
        w.ask(flood()).unwrap();
        w.caller.uid = 1003;
        let (d, _) = w.open("vale3:d");
        w.close([b, c, d]);
    }
    w.caller.uid = 1000;
    let (a, _) = w.open("vale3:a");
    w.ask(port()).unwrap();
    w.ask(new()).unwrap();
    w.caller.uid = 1001;
    let (b, _) = w.open("vale3:b");
    w.close([a, b]);
}

#[test]
fn persistent_ports_are_as_many_as_bridges_may_be() {
    if skip_without_root("persistent_ports_are_as_many_as_bridges_may_be") {
        return;
    }
    let mut w = World::new();
    let names: Vec<_> = (0..8).map(|n| format!("per{n}")).collect();
    for name in &names {
        w.newif(name).unwrap();
    }
    assert_eq!(w.newif("per8").unwrap_err(), ENOMEM);
    for name in names {
        w.ask(Request::DeleteInterface { name }).unwrap();
    }
    w.assert_empty();
}

/// What is asked for counts, not what there is room for: a default port is in a region of 40 MiB, and
/// has two rings of 1024 buffers of 2 KiB.
#[test]
fn a_user_is_charged_for_what_is_asked_for() {
    let settings = Settings { memory_per_user: 100 << 20, ..Settings::default() };
    let mut w = World { registry: Registry::new(settings), caller: Caller::myself() };
    let large = Registration { extra_bufs: 60_000, ..all() };
    assert_eq!(w.register("vale0:a", large).unwrap_err(), ENOMEM, "117 MiB of extra buffers");
    assert_eq!(w.register("vale0:a", shaped([8, 8], [4096; 2])).unwrap_err(), ENOMEM, "128 MiB");
    w.assert_empty();
    let (one, _) = w.register("vale0:a", shaped([4, 4], [4096; 2])).unwrap();
    let (two, _) = w.register("vale0:b", Registration { extra_bufs: 10_000, ..all() }).unwrap();
    assert_eq!(w.register("vale0:c", shaped([1, 1], [4096; 2])).unwrap_err(), ENOMEM);
    // What has been given back may still be in memory, as long as the region is there.
    let again = Registration { extra_bufs: 10_000, ..all() };
    w.close([one]);
    let (three, _) = w.register("vale0:c", again).unwrap();
    w.close([two, three]);
    w.assert_empty();
}

/// A program can write to all of its region, so regions without use have an end, too.
#[test]
fn a_users_regions_are_no_larger_than_four_times_that() {
    let settings = Settings { memory_per_user: 100 << 20, ..Settings::default() };
    let mut w = World { registry: Registry::new(settings), caller: Caller::myself() };
    let names = |i: u32| format!("vale0:{i}");
    let ports: Vec<_> = (0..9).map(|i| w.open(&names(i)).0).collect();
    assert_eq!(w.register("vale0:9", all()).unwrap_err(), ENOMEM);
    w.registry.close(ports[0]);
    w.open("vale0:9");
}

/// As many as a switch has room for (S-VALE-2), with the memory that a user has by default.
#[test]
fn a_user_has_a_whole_switch_of_default_ports() {
    let mut w = World::new();
    let opened: Vec<_> = (0..252).map(|i| w.open(&format!("vale0:p{i}")).0).collect();
    assert_eq!(w.register("vale0:more", all()).unwrap_err(), ENOMEM, "the switch is full");
    opened.into_iter().for_each(|handle| w.registry.close(handle));
    w.assert_empty();
}

/// What `lb -i vale0:in -p 9` opens: a direction of a pipe has two rings, and a region of a VALE port
/// 20 (S-MEM-8).
#[test]
fn s_mem_8_a_pipe_for_one_direction_has_two_rings() {
    let mut w = World::new();
    let sends = Registration { without_rx: true, ..exclusive() };
    let (parent, _) = w.open("vale0:in");
    let mut pipes: Vec<_> =
        (0..9).map(|i| w.register(&format!("vale0:in{{{i}"), sends).unwrap().0).collect();
    assert_eq!(w.register("vale0:in{9", sends).unwrap_err(), ENOMEM);
    // Their receivers find their rings there.
    let receives = Registration { without_tx: true, ..all() };
    let (receiver, grant) = w.register("vale0:in}0", receives).unwrap();
    assert_eq!(rings(&grant), [vec![], vec![0]]);
    // The other direction has none left.
    assert_eq!(w.register("vale0:in}1", all()).unwrap_err(), ENOMEM);
    w.close([pipes.pop().unwrap()]);
    let (both, grant) = w.register("vale0:in}1", all()).unwrap();
    assert_eq!(rings(&grant), [vec![0], vec![0]]);
    w.close([parent, receiver, both]);
    pipes.into_iter().for_each(|pipe| w.registry.close(pipe));
    w.assert_empty();
}

/// What `lb -i netmap:v1 -p 64` opens, in a region of the default size (S-PIPE-3).
#[test]
fn s_pipe_3_the_default_region_holds_as_many_pipes_as_a_parent_has() {
    let mut w = World::new();
    let sends = Registration { without_rx: true, mem_id: 1, ..all() };
    let pipes: Vec<_> = (0..64).map(|i| w.register(&format!("p{{{i}"), sends).unwrap().0).collect();
    assert_eq!(w.register("p{64", sends).unwrap_err(), EINVAL, "more than a parent has");
    pipes.into_iter().for_each(|pipe| w.registry.close(pipe));
    w.assert_empty();
}

/// A VALE port that is only the parent of pipes leaves its rings' memory to them, and has none of the
/// packets of its switch.
#[test]
fn s_pipe_2_an_unbound_parent_has_no_rings() {
    let mut w = World::new();
    let sends = Registration { without_rx: true, ..all() };
    let mut pipes: Vec<_> =
        (0..10).map(|i| w.register(&format!("vale0:in{{{i}"), sends).unwrap().0).collect();
    assert_eq!(w.register("vale0:in", all()).unwrap_err(), ENOMEM, "all rings are the pipes'");
    w.close([pipes.pop().unwrap()]);
    for _ in 0..2 {
        let (parent, grant) = w.register("vale0:in", all()).unwrap();
        assert_eq!(rings(&grant), [vec![0], vec![0]]);
        assert_eq!(w.register("vale0:in{9", sends).unwrap_err(), ENOMEM);
        w.close([parent]);
        // Its rings have gone with it.
        let (pipe, _) = w.register("vale0:in{9", sends).unwrap();
        w.close([pipe]);
    }
    pipes.into_iter().for_each(|pipe| w.registry.close(pipe));
    w.assert_empty();
}

/// Zeros stand for defaults.
const DEFAULTS: Sizes =
    Sizes { if_size: 0, if_num: 0, ring_size: 0, ring_num: 0, buf_size: 0, buf_num: 0 };

fn brought(memory: u64, sizes: Sizes, same: Option<(u64, u64, u64)>) -> Extmem {
    Extmem { memory, sizes, mem_id: 0, same, copy_from: None }
}

/// Memory of a program's own with sizes that only a broken or hostile one sends.
#[test]
fn s_ext_2_memory_without_end_is_refused() {
    let mut w = World::new();
    for memsize in [u64::MAX, u64::MAX - 4094, u64::MAX - 8191, 1 << 63, 1 << 62, 1 << 46] {
        let extmem = Some(brought(memsize, DEFAULTS, None));
        let options = Options { extmem, ..Default::default() };
        let request = Request::Register {
            name: "vale0:a".into(),
            registration: all(),
            options: Box::new(options),
        };
        assert_eq!(w.ask(request).unwrap_err(), ENOMEM, "{memsize:#x}");
    }
    w.assert_empty();
}

/// A program whose memory is the beginning of another's only has a region of its own: that of the
/// other would be mapped over what lies behind it.
#[test]
fn s_ext_3_the_same_memory_is_as_long() {
    let mut w = World::new();
    let mut open = |name: &str, memsize| {
        let sizes = Sizes { buf_num: 3000, ..DEFAULTS };
        let extmem = Some(brought(memsize, sizes, Some((1, 2, 3))));
        let options = Options { extmem, ..Default::default() };
        let request = Request::Register {
            name: name.into(),
            registration: all(),
            options: Box::new(options),
        };
        let handle = w.registry.open();
        match w.registry.call(handle, &w.caller, request).unwrap() {
            (Reply::Granted(grant), _) => {
                // A region is filled by whoever made it, once: behind rings and their buffers.
                let from = grant.options.extmem.and_then(|extmem| extmem.copy_from);
                let bufs = grant.layout.bufs;
                let behind = bufs.object(2 + 2 * 1024).filter(|_| name != "vale0:c");
                assert_eq!(from, behind, "{name}");
                grant.mem_id
            }
            other => panic!("{other:?}"),
        }
    };
    let [long, short] = [open("vale0:a", 20 << 20), open("vale0:b", 10 << 20)];
    assert_ne!(long, short);
    assert!([long, short].contains(&open("vale0:c", 10 << 20)));
}

#[test]
fn switch_ports_take_what_can_be() {
    use ringway_proto::Vlan;
    let mut world = World::new();
    world.open("vale0:a");
    let mut set = |name: &str, settings| {
        world.ask(Request::SwitchPort { name: name.into(), settings }).map(drop)
    };
    let vlan = |vlan| PortSettings { vlan: Some(vlan), ..Default::default() };
    let lossless = |patience_ms| PortSettings {
        lossless: Some(Some(Lossless { patience_ms })),
        ..Default::default()
    };
    assert_eq!(set("vale0:a", vlan(Vlan::Access(10))), Ok(()));
    assert_eq!(set("vale0:a", lossless(1000)), Ok(()));
    assert_eq!(set("vale0:a", vlan(Vlan::Access(4095))), Err(EINVAL));
    assert_eq!(set("vale0:a", lossless(u32::MAX)), Err(EINVAL));
    let rate = |bits_per_second, burst_bytes| PortSettings {
        rate: Some(Some(RateLimit { bits_per_second, burst_bytes })),
        ..Default::default()
    };
    let storm = |frames| PortSettings { storm: Some(Some(frames)), ..Default::default() };
    assert_eq!(set("vale0:a", rate(8_000, 1514)), Err(EINVAL), "it is lossless");
    let lossy = PortSettings { lossless: Some(None), ..rate(8_000, 1514) };
    assert_eq!(set("vale0:a", lossy), Ok(()), "and not any more");
    assert_eq!(set("vale0:a", lossless(1000)), Err(EINVAL), "it has a rate");
    for (bits, burst) in [(7_999, 1514), (u64::MAX, 1514), (8_000, 1513), (8_000, u64::MAX)] {
        assert_eq!(set("vale0:a", rate(bits, burst)), Err(EINVAL), "{bits} {burst}");
    }
    let most = |count| PortSettings { max_addresses: Some(count), ..Default::default() };
    for count in [0, 1025] {
        assert_eq!(set("vale0:a", most(Some(count))), Err(EINVAL), "{count}");
    }
    assert_eq!(set("vale0:a", most(Some(1024))), Ok(()));
    let insn = |code, k| Insn { code, jt: 0, jf: 0, k };
    let long = |length: usize| [vec![insn(0, 1); length - 1], vec![insn(6, 1)]].concat();
    let filter = |insns, one_in, length| Filter { text: "a".repeat(length), insns, one_in };
    for (filter, expected) in [
        (filter(long(1024), 1, 4096), Ok(())),
        (filter(long(1024), 0, 0), Ok(())),
        (filter(long(1025), 1, 0), Err(EINVAL)),
        (filter(long(1), 2, 0), Err(EINVAL)),
        (filter(long(1), 1, 4097), Err(EINVAL)),
        (filter(vec![], 1, 0), Err(EINVAL)),
        (filter(vec![insn(0, 1)], 1, 0), Err(EINVAL)),
    ] {
        let set_in = PortSettings { filter_in: Some(Some(filter)), ..Default::default() };
        let filter_out = set_in.filter_in.clone();
        let set_out = PortSettings { filter_out, ..Default::default() };
        assert_eq!(set("vale0:a", set_in), expected);
        assert_eq!(set("vale0:a", set_out), expected);
    }
    assert_eq!(set("vale0:a", storm(0)), Err(EINVAL));
    assert_eq!(set("vale0:a", storm(1)), Ok(()));
    let kinds = |frames_per_second, burst_frames| {
        let limit = Some(Some(FloodLimit { frames_per_second, burst_frames }));
        let none = PortSettings::default;
        [
            PortSettings { storm_broadcast: limit, ..none() },
            PortSettings { storm_multicast: limit, ..none() },
            PortSettings { storm_unknown: limit, ..none() },
        ]
    };
    for (frames, burst, expected) in
        [(1, 1, Ok(())), (0, 1, Err(EINVAL)), (1, 0, Err(EINVAL)), (u32::MAX, 1, Err(EINVAL))]
    {
        for settings in kinds(frames, burst) {
            assert_eq!(set("vale0:a", settings), expected, "{frames} {burst}");
        }
    }
    let neither = PortSettings { rate: Some(None), storm: Some(None), ..lossless(1000) };
    assert_eq!(set("vale0:a", neither), Ok(()));
    assert_eq!(set("vale0:b", lossless(1000)), Err(ENXIO));
    assert_eq!(set("vale1:a", lossless(1000)), Err(ENOENT));
    let hash = |over: &str| Forwarding::Hash { over: vec![over.into()], back: None };
    let mut forward = |bridge: &str, forwarding| {
        world.ask(Request::SwitchForward { bridge: bridge.into(), forwarding }).map(drop)
    };
    assert_eq!(forward("vale0", hash("a")), Err(EBUSY), "what is learned of a port has a limit");
    let unlimited = PortSettings { max_addresses: Some(None), ..Default::default() };
    let unlimit = Request::SwitchPort { name: "vale0:a".into(), settings: unlimited };
    world.ask(unlimit).unwrap();
    let mut forward = |bridge: &str, forwarding| {
        world.ask(Request::SwitchForward { bridge: bridge.into(), forwarding }).map(drop)
    };
    assert_eq!(forward("vale0", hash("a")), Ok(()));
    assert_eq!(forward("vale0", hash("vale0:b")), Err(ENXIO));
    assert_eq!(forward("vale9", Forwarding::Flood), Err(ENOENT));
    let limit = PortSettings { max_addresses: Some(Some(4)), ..Default::default() };
    let limit = Request::SwitchPort { name: "vale0:a".into(), settings: limit };
    assert_eq!(world.ask(limit).map(drop), Err(EINVAL), "it does not learn");
}

/// Flows that fall to a port that has gone go to the others.
#[test]
fn flows_are_spread_over_the_ports_that_are_there() {
    const FLOWS: u8 = 32;
    let mut w = World::new();
    let [from, a, b] = ["vale0:in", "vale0:a", "vale0:b"]
        .map(|name| w.register(name, Registration::default()).unwrap().0);
    let over = ["a", "b"].map(String::from).into();
    let forwarding = Forwarding::Hash { over, back: None };
    w.ask(Request::SwitchForward { bridge: "vale0".into(), forwarding }).unwrap();
    w.close([a]);
    let tx = w.ring(from, Dir::Tx);
    for flow in 0..FLOWS {
        let ip = [0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        let head = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
        let frame = [&head[..], &ip, &[1, flow, 0, 9, 0, 26, 0, 0], &[0; 18]].concat();
        let slot = tx.ring().slot(flow.into());
        tx.ring().buf(slot.buf_idx).unwrap().write(0, &frame);
        tx.ring().set_slot(flow.into(), slot.buf_idx, frame.len() as u16, 0);
    }
    tx.csb().app.publish(FLOWS.into(), FLOWS.into());
    let totals = loop {
        // Each question wakes the worker.
        let Ok(Reply::Switches { switches, .. }) =
            w.ask(Request::Switches { from: SwitchPosition::default() })
        else {
            panic!("no switches");
        };
        let of = |name: &str| {
            let ports = switches.iter().flat_map(|switch| &switch.ports);
            ports.clone().find(|port| port.name == name).map(|port| port.totals).unwrap()
        };
        if of("vale0:in").sent_packets == u64::from(FLOWS) {
            break ["vale0:in", "vale0:b"].map(of);
        }
    };
    let [sent, received] = totals;
    assert_eq!((sent.drops.no_destination, received.received_packets), (0, FLOWS.into()));
    w.close([from, b]);
    w.assert_empty();
}

/// A flow has addresses of one version of IP, whatever a request says.
#[test]
fn a_flow_of_two_versions_is_refused() {
    let mut w = World::new();
    let mut flow: Flow = "udp dst host 10.0.0.1".parse().unwrap();
    flow.hosts[0] = Some("::1".parse().unwrap());
    let steer = Request::Steer { interface: "lo".into(), queue: 0, flows: vec![flow] };
    assert_eq!(w.ask(steer).unwrap_err(), EINVAL);
}
