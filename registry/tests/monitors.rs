//! The rules of monitors (S-MON), as far as they are the registry's.

mod common;

use common::{World, all, shaped};
use libc::{EBUSY, EINVAL, ENOMEM, ENXIO, EOPNOTSUPP};
use ringway_abi::*;
use ringway_mirror::MirrorMode;
use ringway_proto::{Grant, MirrorGrant, Offsets, Options, PortKind, Reply, Request, RingBackend};
use ringway_registry::Handle;
use ringway_testkit::skip_without_root;

fn with(flags: u64) -> nmreq_register {
    nmreq_register { nr_flags: flags, ..all() }
}

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
        for flags in [NR_MONITOR_TX, NR_MONITOR_RX, NR_ZCOPY_MON] {
            assert_eq!(w.register(name, with(flags)).unwrap_err(), errno, "{name}");
        }
    }
    assert_eq!(w.ports().len(), 0, "what came into being for the look has gone");
    let (_master, _) = w.open("x{1");
    assert_eq!(w.register("x}1", with(NR_MONITOR_RX)).unwrap_err(), EINVAL, "the other end");
    w.register("x{1", with(NR_MONITOR_RX)).unwrap();
}

#[test]
fn s_mon_1_any_name_and_exclusive_use() {
    if skip_without_root("s_mon_1_any_name_and_exclusive_use") {
        return;
    }
    let mut w = World::new();
    w.newif("per").unwrap();
    assert_eq!(w.register("per", with(NR_MONITOR_RX)).unwrap_err(), EINVAL, "nobody has it open");
    w.attach("vale3:per").unwrap();
    w.register("vale3:per", with(NR_EXCLUSIVE)).unwrap();
    w.register("per", with(NR_MONITOR_RX)).unwrap();
    w.register("vale3:per", with(NR_MONITOR_TX | NR_EXCLUSIVE)).unwrap();
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
    assert_eq!(w.register("vale0:a", with(NR_MONITOR_RX)).unwrap_err(), EBUSY);
    w.caller.uid = 0;
    w.register("vale0:a", with(NR_MONITOR_RX)).unwrap();
    // Root's other ports are no business of those who feed the monitor.
    let shared = nmreq_register { nr_mem_id: 1, ..with(NR_MONITOR_RX) };
    assert_eq!(w.register("vale0:a", shared).unwrap_err(), EINVAL);
    w.register("vale0:b", all()).unwrap();
    w.register("vale0:b", shared).unwrap();
}

#[test]
fn s_mon_2_rings_and_slots() {
    let mut w = World::new();
    let (_target, _) = w.register("vale0:a", shaped([2, 3], [64, 128])).unwrap();
    let (_, grant) = w.register("vale0:a", with(NR_MONITOR_RX)).unwrap();
    assert_eq!((grant.reg.nr_tx_rings, grant.reg.nr_rx_rings), (1, 3));
    assert_eq!((grant.reg.nr_tx_slots, grant.reg.nr_rx_slots), (64, 128));
    assert_eq!((grant.reg.nr_host_tx_rings, grant.reg.nr_host_rx_rings), (0, 0));
    assert!(grant.rings.iter().all(|r| matches!(r.link, RingBackend::Monitor { served: true })));

    let asked = nmreq_register { nr_flags: NR_MONITOR_RX, ..shaped([7, 7], [8, 5000]) };
    let (_, grant) = w.register("vale0:a", asked).unwrap();
    assert_eq!((grant.reg.nr_tx_rings, grant.reg.nr_rx_rings), (1, 3));
    assert_eq!((grant.reg.nr_tx_slots, grant.reg.nr_rx_slots), (8, 4096));

    let one = |id| nmreq_register {
        nr_mode: NR_REG_ONE_NIC,
        nr_ringid: id,
        nr_flags: NR_MONITOR_RX,
        ..all()
    };
    assert_eq!(rings(&w.register("vale0:a", one(2)).unwrap().1), [vec![0], vec![2]]);
    assert_eq!(w.register("vale0:a", one(3)).unwrap_err(), EINVAL);
    let sw = nmreq_register { nr_mode: NR_REG_SW, nr_flags: NR_MONITOR_RX, ..all() };
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
    let mode = |nr_mode, flags| nmreq_register { nr_mode, ..with(flags) };
    let (target, grant) = w.register("per", mode(NR_REG_NIC_SW, 0)).unwrap();
    assert_eq!(rings(&grant), [vec![0, 1], vec![0, 1]]);
    for flags in [NR_MONITOR_RX, NR_ZCOPY_MON] {
        let (all, grant) = w.register("per", mode(NR_REG_NIC_SW, flags)).unwrap();
        assert_eq!((grant.reg.nr_host_tx_rings, grant.reg.nr_host_rx_rings), (1, 1));
        assert_eq!(rings(&grant), [vec![0, 1], vec![0, 1]]);
        let (host, grant) = w.register("per", mode(NR_REG_SW, flags)).unwrap();
        assert_eq!(rings(&grant), [vec![1], vec![1]]);
        let (nic, grant) = w.register("per", with(flags)).unwrap();
        assert_eq!(rings(&grant), [vec![0], vec![0]]);
        w.close([all, host, nic]);
    }
    let (monitor, _) = w.register("per", mode(NR_REG_NIC_SW, NR_ZCOPY_MON)).unwrap();
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
    let (_, monitor) = w.register("vale0:a", with(NR_MONITOR_TX)).unwrap();
    assert_eq!(monitor.reg.nr_memsize, 8_478_720);
    assert_ne!(monitor.mem_id, target.mem_id);
}

#[test]
fn s_reg_7_zero_copy_is_both_ways_and_in_the_targets_region() {
    let mut w = World::new();
    let (_, target) = w.open("vale0:a");
    for flags in [NR_ZCOPY_MON, NR_ZCOPY_MON | NR_MONITOR_RX] {
        let reg = nmreq_register { nr_mem_id: 1, ..with(flags) };
        let (_, monitor) = w.register("vale0:a", reg).unwrap();
        assert_eq!(monitor.mem_id, target.mem_id, "S-MEM-3: the id is ignored");
        assert_eq!(monitor.reg.nr_flags, NR_ZCOPY_MON | NR_MONITOR_RX | NR_MONITOR_TX);
    }
    assert_eq!(w.register("vale0:a", with(NR_MONITOR_TX)).unwrap().1.reg.nr_flags, NR_MONITOR_TX);
}

#[test]
fn s_off_1_copies_have_offsets() {
    let mut w = World::new();
    let open = |w: &mut World, flags, max| {
        let handle = w.registry.open();
        let offsets = Some(Offsets { max, bits: 16, ..Default::default() });
        let options = Options { offsets, ..Default::default() };
        let request =
            Request::Register { name: "x{1".into(), reg: with(flags), options: Box::new(options) };
        let result = w.registry.call(handle, &w.caller, request);
        result.map(|_| handle).map_err(|error| (error.errno, error.options.offsets))
    };
    let target = open(&mut w, 0, 100).unwrap();
    open(&mut w, NR_MONITOR_TX, 200).unwrap();
    let refused = (EOPNOTSUPP, Some(EOPNOTSUPP));
    assert_eq!(open(&mut w, NR_ZCOPY_MON, 100).unwrap_err(), refused);
    let offsets = w.mirrors(target, Dir::Tx)[0].offsets;
    assert_eq!(offsets.map(|offsets| (offsets.mask, offsets.max)), [(0xffff, 100), (0xffff, 200)]);
}

#[test]
fn who_feeds_whom_at_a_pipe() {
    let mut w = World::new();
    let (master, _) = w.open("x{1");
    let (slave, _) = w.open("x}1");
    let (r, _) = w.register("x}1", with(NR_MONITOR_RX)).unwrap();
    let (t, _) = w.register("x{1", with(NR_MONITOR_TX)).unwrap();
    let (first, _) = w.register("x}1", with(NR_ZCOPY_MON)).unwrap();
    let (second, _) = w.register("x}1", with(NR_ZCOPY_MON)).unwrap();
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
    let one = nmreq_register { nr_mode: NR_REG_ONE_NIC, nr_ringid: 1, ..with(NR_MONITOR_TX) };
    w.register("x{1", one).unwrap();
    assert_eq!(w.ways(target, Dir::Tx), []);
    let none = with(NR_MONITOR_TX | NR_TX_RINGS_ONLY);
    w.register("x{1", none).unwrap();
    assert_eq!(w.ways(target, Dir::Tx), []);
    w.register("x{1", with(NR_MONITOR_TX)).unwrap();
    assert_eq!(w.ways(target, Dir::Tx), [MirrorMode::CopySent]);
}

#[test]
fn more_monitors_than_there_can_be() {
    let mut w = World::new();
    let (target, _) = w.register("x{1", shaped([1, 1], [16, 16])).unwrap();
    let handles: Vec<_> =
        (0..60).map(|_| w.register("x{1", with(NR_MONITOR_TX)).unwrap().0).collect();
    assert_eq!(w.register("x{1", with(NR_MONITOR_TX)).unwrap_err(), ENOMEM);
    assert_eq!(w.mirrors(target, Dir::Tx).len(), 60);
    handles.into_iter().for_each(|handle| w.registry.close(handle));
    w.registry.close(target);
    w.assert_empty();
}
