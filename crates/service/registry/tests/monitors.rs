//! The rules of monitors (S-MON), as far as they are the registry's.

mod common;

use common::{RX, TX, World, ZERO_COPY, all, monitor, shaped};
use libc::{EBUSY, EINVAL, ENOMEM, ENXIO, EOPNOTSUPP};
use ringway_abi::Dir;
use ringway_errno::{errno, status};
use ringway_mirror::MirrorMode;
use ringway_proto::{
    Grant, MirrorGrant, Monitor, Offsets, Options, PortKind, Registration, Reply, Request,
    RingBackend, RingSelection,
};
use ringway_registry::Handle;
use ringway_testkit::skip_without_root;

impl World {
    /// Who monitors ring 0 of what the handle is bound to.
    fn mirrors(&mut self, handle: Handle, dir: Dir) -> Vec<MirrorGrant> {
        let request = Request::Mirrors { dir, index: 0 };
        match self.registry.call(handle, &self.caller, request) {
            Ok((Reply::Mirrors(mirrors), fds)) => {
                let most =
                    mirrors.iter().map(|t| t.doorbell.max(t.memory.map_or(0, |m| m.memfd))).max();
                assert!(fds.len() > most.unwrap_or(0).into() || mirrors.is_empty());
                mirrors
            }
            other => panic!("{other:?}"),
        }
    }

    fn ways(&mut self, handle: Handle, dir: Dir) -> Vec<MirrorMode> {
        self.mirrors(handle, dir).into_iter().map(|mirror| mirror.mode).collect()
    }
}

fn rings(grant: &Grant) -> [Vec<u16>; 2] {
    [Dir::Tx, Dir::Rx]
        .map(|dir| grant.rings.iter().filter(|r| r.dir == dir).map(|r| r.index).collect())
}

#[test]
fn s_mon_1_the_target_must_be_in_netmap_mode() {
    let mut w = World::new();
    for (name, errno) in [
        ("vale0:a", EINVAL),
        ("x{1", EINVAL),
        ("vale0", ENOMEM),
        ("x{", EINVAL),
        ("no-such-if", ENXIO),
    ] {
        for flags in [TX, RX, ZERO_COPY] {
            assert_eq!(w.register(name, monitor(flags)).unwrap_err(), errno, "{name}");
        }
    }
    assert_eq!(w.ports().len(), 0, "what came into being for the look has gone");
    let (_master, _) = w.open("x{1");
    assert_eq!(w.register("x}1", monitor(RX)).unwrap_err(), EINVAL, "the other end");
    w.register("x{1", monitor(RX)).unwrap();
}

#[test]
fn s_mon_1_any_name_and_exclusive_use() {
    if skip_without_root("s_mon_1_any_name_and_exclusive_use") {
        return;
    }
    let mut w = World::new();
    w.newif("per").unwrap();
    assert_eq!(w.register("per", monitor(RX)).unwrap_err(), EINVAL, "nobody has it open");
    w.attach("vale3:per").unwrap();
    w.register("vale3:per", Registration { exclusive: true, ..all() }).unwrap();
    w.register("per", monitor(RX)).unwrap();
    w.register("vale3:per", Registration { exclusive: true, ..monitor(TX) }).unwrap();
    assert_eq!(w.register("per", all()).unwrap_err(), EBUSY);
    let names: Vec<_> = w.ports().into_iter().map(|p| (p.name, p.kind)).collect();
    let monitor = |name: &str| (name.to_string(), PortKind::Monitor);
    assert_eq!(names[1..], [monitor("per/r"), monitor("per/t")]);
}

#[test]
fn s_mon_1_of_ones_own_ports_only() {
    let mut w = World::new();
    w.caller.uid = 1000;
    w.open("vale0:a");
    w.caller.uid = 1001;
    assert_eq!(w.register("vale0:a", monitor(RX)).unwrap_err(), EBUSY);
    w.caller.uid = 0;
    // Root's programs have other users' memory only where they ask for it.
    assert_eq!(w.register("vale0:a", monitor(RX)).unwrap_err(), EBUSY);
    let handle = w.registry.open();
    let of_user = || Options { user: Some(1000), ..Options::default() };
    w.register_with(handle, "vale0:a", monitor(RX), of_user()).unwrap();
    // Root's other ports are no business of those who feed the monitor.
    let shared = Registration { mem_id: 1, ..monitor(RX) };
    let handle = w.registry.open();
    let refused = w.register_with(handle, "vale0:a", shared, of_user()).unwrap_err();
    assert_eq!(refused, EINVAL);
    w.register("vale0:b", all()).unwrap();
    w.register("vale0:b", shared).unwrap();
}

#[test]
fn s_mon_2_rings_and_slots() {
    let mut w = World::new();
    let (_target, _) = w.register("vale0:a", shaped([2, 3], [64, 128])).unwrap();
    let (_, grant) = w.register("vale0:a", monitor(RX)).unwrap();
    assert_eq!((grant.registration.tx_rings, grant.registration.rx_rings), (1, 3));
    assert_eq!((grant.registration.tx_slots, grant.registration.rx_slots), (64, 128));
    assert_eq!((grant.registration.host_tx_rings, grant.registration.host_rx_rings), (0, 0));
    assert!(grant.rings.iter().all(|r| matches!(r.link, RingBackend::Monitor { served: true })));

    let asked = Registration { monitor: RX, ..shaped([7, 7], [8, 5000]) };
    let (_, grant) = w.register("vale0:a", asked).unwrap();
    assert_eq!((grant.registration.tx_rings, grant.registration.rx_rings), (1, 3));
    assert_eq!((grant.registration.tx_slots, grant.registration.rx_slots), (8, 4096));

    let one = |id| Registration { rings: RingSelection::One(id), ..monitor(RX) };
    assert_eq!(rings(&w.register("vale0:a", one(2)).unwrap().1), [vec![0], vec![2]]);
    assert_eq!(w.register("vale0:a", one(3)).unwrap_err(), EINVAL);
    let sw = Registration { rings: RingSelection::Host, ..monitor(RX) };
    assert_eq!(w.register("vale0:a", sw).unwrap_err(), EINVAL, "the target has no host rings");
}

/// Those of a persistent port: its device's stack.
#[test]
fn s_mon_2_host_rings() {
    if skip_without_root("s_mon_2_host_rings") {
        return;
    }
    let mut w = World::new();
    w.newif("per").unwrap();
    let mode = |rings, wants| Registration { rings, ..monitor(wants) };
    let (target, grant) =
        w.register("per", mode(RingSelection::AllAndHost, Monitor::default())).unwrap();
    assert_eq!(rings(&grant), [vec![0, 1], vec![0, 1]]);
    for flags in [RX, ZERO_COPY] {
        let (all, grant) = w.register("per", mode(RingSelection::AllAndHost, flags)).unwrap();
        assert_eq!((grant.registration.host_tx_rings, grant.registration.host_rx_rings), (1, 1));
        assert_eq!(rings(&grant), [vec![0, 1], vec![0, 1]]);
        let (host, grant) = w.register("per", mode(RingSelection::Host, flags)).unwrap();
        assert_eq!(rings(&grant), [vec![1], vec![1]]);
        let (nic, grant) = w.register("per", monitor(flags)).unwrap();
        assert_eq!(rings(&grant), [vec![0], vec![0]]);
        w.close([all, host, nic]);
    }
    let (monitor, _) = w.register("per", mode(RingSelection::AllAndHost, ZERO_COPY)).unwrap();
    w.close([target, monitor]);
    let unused = w.regions()[0].free_bufs;
    assert_eq!(unused, w.regions()[0].bufs - 2 * 1024 - 2);
    w.delif("per").unwrap();
    w.assert_empty();
}

#[test]
fn s_mem_7_a_copy_monitor_has_a_region_of_its_own() {
    let mut w = World::new();
    let (_, target) = w.open("vale0:a");
    let (_, monitor) = w.register("vale0:a", monitor(TX)).unwrap();
    assert_eq!(monitor.layout.memsize(), 8_478_720);
    assert_ne!(monitor.mem_id, target.mem_id);
}

#[test]
fn s_reg_7_zero_copy_is_both_ways_and_in_the_targets_region() {
    let mut w = World::new();
    let (_, target) = w.open("vale0:a");
    for flags in [ZERO_COPY, Monitor { rx: true, ..ZERO_COPY }] {
        let reg = Registration { mem_id: 1, ..monitor(flags) };
        let (_, monitor) = w.register("vale0:a", reg).unwrap();
        assert_eq!(monitor.mem_id, target.mem_id, "S-MEM-3: the id is ignored");
        let all = Monitor { tx: true, rx: true, zero_copy: true };
        assert_eq!(monitor.registration.monitor, all);
    }
    assert_eq!(w.register("vale0:a", monitor(TX)).unwrap().1.registration.monitor, TX);
}

#[test]
fn s_off_1_copies_have_offsets() {
    let mut w = World::new();
    let open = |w: &mut World, flags, max| {
        let handle = w.registry.open();
        let offsets = Some(Offsets { max, bits: 16, ..Default::default() });
        let options = Options { offsets, ..Default::default() };
        let request = Request::Register {
            name: "x{1".into(),
            registration: monitor(flags),
            options: Box::new(options),
        };
        let result = w.registry.call(handle, &w.caller, request);
        result.map(|_| handle).map_err(|error| (errno(error.cause), status(error.options.offsets)))
    };
    let target = open(&mut w, Monitor::default(), 100).unwrap();
    open(&mut w, TX, 200).unwrap();
    let refused = (EOPNOTSUPP, Some(EOPNOTSUPP));
    assert_eq!(open(&mut w, ZERO_COPY, 100).unwrap_err(), refused);
    let offsets = w.mirrors(target, Dir::Tx)[0].offsets;
    assert_eq!(offsets.map(|offsets| (offsets.mask, offsets.max)), [(0xffff, 100), (0xffff, 200)]);
}

#[test]
fn who_feeds_whom_at_a_pipe() {
    let mut w = World::new();
    let (master, _) = w.open("x{1");
    let (slave, _) = w.open("x}1");
    let (r, _) = w.register("x}1", monitor(RX)).unwrap();
    let (t, _) = w.register("x{1", monitor(TX)).unwrap();
    let (first, _) = w.register("x}1", monitor(ZERO_COPY)).unwrap();
    let (second, _) = w.register("x}1", monitor(ZERO_COPY)).unwrap();
    assert_eq!(w.ways(master, Dir::Tx), [MirrorMode::CopySent, MirrorMode::CopyReceived]);
    assert_eq!(w.ways(slave, Dir::Rx), [MirrorMode::SwapReceived]);
    assert_eq!(w.ways(slave, Dir::Tx), [MirrorMode::SwapSent]);
    assert_eq!(w.ways(master, Dir::Rx), []);
    assert_eq!(w.ways(first, Dir::Rx), [MirrorMode::SwapReleased]);
    assert_eq!(w.ways(second, Dir::Rx), []);
    let to_first = w.mirrors(slave, Dir::Rx)[0].object;
    w.registry.close(first);
    assert_ne!(w.mirrors(slave, Dir::Rx)[0].object, to_first, "the second is the first now");
    w.close([r, second]);
    assert_eq!(w.ways(master, Dir::Tx), [MirrorMode::CopySent]);
    w.registry.close(slave);
    assert_eq!(w.ways(master, Dir::Tx), [MirrorMode::CopySent]);
    w.registry.close(master);
    w.registry.close(t);
    w.assert_empty();
}

#[test]
fn only_bound_rings_are_fed() {
    let mut w = World::new();
    let shape = shaped([2, 2], [64, 64]);
    let (target, _) = w.register("x{1", shape).unwrap();
    let one = Registration { rings: RingSelection::One(1), ..monitor(TX) };
    w.register("x{1", one).unwrap();
    assert_eq!(w.ways(target, Dir::Tx), []);
    let none = Registration { without_rx: true, ..monitor(TX) };
    w.register("x{1", none).unwrap();
    assert_eq!(w.ways(target, Dir::Tx), []);
    w.register("x{1", monitor(TX)).unwrap();
    assert_eq!(w.ways(target, Dir::Tx), [MirrorMode::CopySent]);
}

#[test]
fn more_monitors_than_there_can_be() {
    let mut w = World::new();
    let (target, _) = w.register("x{1", shaped([1, 1], [16, 16])).unwrap();
    let handles: Vec<_> = (0..60).map(|_| w.register("x{1", monitor(TX)).unwrap().0).collect();
    assert_eq!(w.register("x{1", monitor(TX)).unwrap_err(), ENOMEM);
    assert_eq!(w.mirrors(target, Dir::Tx).len(), 60);
    handles.into_iter().for_each(|handle| w.registry.close(handle));
    w.registry.close(target);
    w.assert_empty();
}
