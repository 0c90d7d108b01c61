//! Ports beside which a program in the kernel forwards: what the worker tells the program, what it leaves to
//! it, and what it counts of it. The maps are files here, which the test reads and writes as the program does.

mod common;

use std::{
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use common::{BROADCAST, Client, barrier, bytes, header, mac};
use ringway_abi::Dir;
use ringway_fastpath::{FastPath, Maps, PORTS, SETS, VLAN_WORDS};
use ringway_filter::{Insn, Program};
use ringway_kring::{Doorbell, Kring};
use ringway_mirror::{Mirror, MirrorMode, Mirrors};
use ringway_region::RingInit;
use ringway_switch_port::{
    Backpressure, Burst, Configure, Delivered, Drops, Frame, KernelWay, Mirrored, PacketIo,
    PortMirrors, Unsent, Wake,
};
use ringway_vale::{
    Bridge, ByWorker, FloodLimit, Forwarding, MirrorSources, PortConfig, PortCounters, PortFilter,
    RateLimit, RingPort, SourceAddresses, SwitchMirror, Totals, Vlan,
};
use rustix::{
    fs::{MemfdFlags, ftruncate, memfd_create},
    io::{pread, pwrite},
};

/// A port of rings that an interface would be, by its way in the kernel.
struct Attached {
    rings: RingPort,
    way: KernelWay,
    /// So many packets of what was delivered wait for the kernel.
    waiting: Arc<AtomicU64>,
}

impl PacketIo for Attached {
    fn tx_rings(&self) -> usize {
        self.rings.tx_rings()
    }

    fn rx_rings(&self) -> usize {
        self.rings.rx_rings()
    }

    fn receives(&self) -> bool {
        self.rings.receives()
    }

    fn collect<'a>(&'a mut self, ring: usize, burst: &mut Burst<'a>, drops: &mut Drops) -> u32 {
        self.rings.collect(ring, burst, drops)
    }

    fn release(&mut self, ring: usize) {
        self.rings.release(ring);
    }

    fn deliver(
        &mut self,
        ring: usize,
        frames: &[Frame],
        burst: &Burst<'_>,
        drops: &mut Drops,
    ) -> Delivered {
        self.rings.deliver(ring, frames, burst, drops)
    }

    fn unsent(&mut self, _: &mut Drops) -> Unsent {
        let packets = self.waiting.load(Relaxed);
        let waiting = Delivered { packets, bytes: 60 * packets };
        Unsent { refused: Delivered::default(), waiting }
    }

    fn flush(&mut self, idle: bool) {
        self.rings.flush(idle);
    }

    fn complete(&mut self, idle: bool) {
        self.rings.complete(idle);
    }
}

impl Wake for Attached {
    fn arm(&mut self) {
        self.rings.arm();
    }

    fn doorbell(&self) -> BorrowedFd<'_> {
        self.rings.doorbell()
    }

    fn is_edge_triggered(&self) -> bool {
        true
    }

    fn drain(&self) {}
}

impl Backpressure for Attached {}
impl Mirrored for Attached {}

impl Configure for Attached {
    fn kernel_way(&self) -> Option<KernelWay> {
        Some(self.way)
    }
}

const CPUS: usize = 2;

/// Fields that the program counts of a port.
const FIELDS: usize = 8;

struct World {
    bridge: Bridge,
    clients: Vec<Client>,
    counters: Vec<Arc<PortCounters>>,
    waiting: Arc<AtomicU64>,
    begun: OwnedFd,
    ports: OwnedFd,
    vlans: OwnedFd,
    settings: OwnedFd,
    counts: OwnedFd,
    policing: OwnedFd,
}

impl World {
    /// Ports with these ways, or none.
    fn new(name: &str, ways: &[Option<KernelWay>]) -> World {
        let map = |bytes: usize| {
            let file = memfd_create("map", MemfdFlags::CLOEXEC).unwrap();
            ftruncate(&file, bytes as u64).unwrap();
            file
        };
        let [table, seen, begun] = [SETS * 64, SETS * 16, PORTS * 64].map(map);
        let [ports, settings, counts] = [PORTS * 64, 64, PORTS * CPUS * 64].map(map);
        let filters = map(PORTS * 4 * 512);
        let [policing, vlans] = [128, 8 * VLAN_WORDS].map(|bytes| map(PORTS * bytes));
        let maps = Maps {
            table: table.as_fd(),
            seen: seen.as_fd(),
            ports: ports.as_fd(),
            vlans: vlans.as_fd(),
            settings: settings.as_fd(),
            begun: begun.as_fd(),
            counts: counts.as_fd(),
            policing: policing.as_fd(),
            filters: Some(filters.as_fd()),
        };
        let fast = FastPath::new(maps, CPUS, [1, 2]).unwrap();
        let mut world = World {
            bridge: Bridge::start(name).unwrap(),
            clients: Vec::new(),
            counters: Vec::new(),
            waiting: Arc::default(),
            begun,
            ports,
            vlans,
            settings,
            counts,
            policing,
        };
        world.bridge.share_table(Arc::new(fast));
        ways.iter().for_each(|way| world.attach(*way));
        world
    }

    fn attach(&mut self, way: Option<KernelWay>) {
        let client = Client::new([1, 1], [64, 64], 0);
        let (rings, counters) = (client.port(), Arc::new(PortCounters::default()));
        let config = config(way);
        let place = match way {
            Some(way) => {
                let port = Attached { rings, way, waiting: self.waiting.clone() };
                self.bridge.attach(Box::new(port), config, counters.clone())
            }
            None => self.bridge.attach(Box::new(rings), config, counters.clone()),
        };
        assert_eq!(place.map(usize::from), Some(self.clients.len()));
        self.clients.push(client);
        self.counters.push(counters);
    }

    fn by_worker(&self) -> Vec<Option<ByWorker>> {
        barrier(&self.bridge);
        self.counters.iter().map(|counters| counters.state().by_worker).collect()
    }

    /// Flags, interface, VLAN, longest frame, and the port beside, as the program reads them.
    fn told(&self, port: u64) -> [u32; 5] {
        barrier(&self.bridge);
        let mut words = [0; 20];
        assert_eq!(pread(&self.ports, &mut words, 64 * port + 8), Ok(20));
        std::array::from_fn(|i| u32::from_ne_bytes(words[4 * i..][..4].try_into().unwrap()))
    }

    /// The VLANs in which a port's frames are tagged, as the program reads them.
    fn tagged(&self, port: u64) -> Vec<u16> {
        barrier(&self.bridge);
        let mut words = [0; 8 * VLAN_WORDS];
        assert_eq!(pread(&self.vlans, &mut words, 512 * port), Ok(512));
        let word = |at: usize| u64::from_ne_bytes(words[8 * at..][..8].try_into().unwrap());
        let bit = |vid: &u16| word(usize::from(*vid) / 64) >> (vid % 64) & 1 != 0;
        (0..4096).filter(bit).collect()
    }

    /// Ageing, and whether tags are looked at.
    fn rules(&self) -> (u32, bool) {
        barrier(&self.bridge);
        let mut words = [0; 8];
        assert_eq!(pread(&self.settings, &mut words, 16), Ok(8));
        let [flags, ageing] = [0, 4].map(|at| words[at..at + 4].try_into().unwrap());
        (u32::from_ne_bytes(ageing), u32::from_ne_bytes(flags) == 1)
    }

    /// The program has counted so much of a port, on one processor.
    fn count(&self, port: usize, cpu: usize, fields: [u64; FIELDS]) {
        let bytes: Vec<u8> = fields.iter().flat_map(|field| field.to_ne_bytes()).collect();
        let at = ((port * CPUS + cpu) * 64) as u64;
        assert_eq!(pwrite(&self.counts, &bytes, at), Ok(bytes.len()));
    }

    /// What the program is told of a port's limit, and what it has counted and spent.
    fn policing(&self, port: u64) -> [u64; 5] {
        barrier(&self.bridge);
        let mut words = [0; 40];
        assert_eq!(pread(&self.policing, &mut words, 128 * port), Ok(40));
        std::array::from_fn(|i| u64::from_ne_bytes(words[8 * i..][..8].try_into().unwrap()))
    }

    /// Which ports receive a frame that port `from` sends.
    fn send(&self, from: usize, dst: [u8; 6]) -> Vec<usize> {
        let frame = [&header(dst, mac(from as u8 + 1))[..], &[0; 46]].concat();
        self.clients[from].send(&frame);
        self.clients[from].drained(0);
        barrier(&self.bridge);
        let got = |to: &usize| !bytes(self.clients[*to].receive(0, usize::MAX)).is_empty();
        (0..self.clients.len()).filter(got).collect()
    }
}

fn config(way: Option<KernelWay>) -> PortConfig {
    PortConfig { is_interface: way.is_some(), ..PortConfig::default() }
}

/// Of so many instructions: all frames match it.
fn filter(length: usize) -> Option<Arc<PortFilter>> {
    let insn = |code| Insn { code, jt: 0, jf: 0, k: 1 };
    let insns = [vec![insn(0); length - 1], vec![insn(6)]].concat();
    let program = Program::new(insns).unwrap();
    Some(Arc::new(PortFilter { text: String::new(), program }))
}

const NONE: u32 = u32::MAX;
const TAKES_PART: u32 = 1;
const IS_STACK: u32 = 2;
const IS_ISOLATED: u32 = 4;
const IS_POLICED: u32 = 8;

const NIC: Option<KernelWay> = Some(KernelWay::Interface(3));
const STACK: Option<KernelWay> = Some(KernelWay::Stack(3));
const OTHER: Option<KernelWay> = Some(KernelWay::Interface(5));

fn monitor(mode: MirrorMode, client: &Client) -> Vec<Mirrors> {
    let init = RingInit { dir: Dir::Rx, ringid: 0, num_slots: 64 };
    let bufs: Vec<u32> = (66..130).collect();
    let ring = Kring::create(&client.region, 1, &init, &bufs).unwrap();
    vec![std::iter::once(Mirror::new(ring, Arc::new(Doorbell::new().unwrap()), mode)).collect()]
}

/// A trunk's VLANs are a bit each, and gone when they are another's.
#[test]
fn a_port_takes_part_in_its_vlans() {
    let world = World::new("vale-trunk", &[NIC, OTHER]);
    let with = |vlan| PortConfig { vlan, ..config(NIC) };
    let all: Vec<u16> = (1..=4094).collect();
    assert_eq!(world.tagged(0), all, "an unaware port passes all on");
    let allowed = [1, 63, 64, 100, 4094, 4095, 0];
    let trunk = Vlan::Trunk { allowed: allowed.into(), native: Some(7) };
    assert!(world.bridge.configure(0, with(trunk)));
    assert_eq!(world.tagged(0), [1, 63, 64, 100, 4094]);
    assert_eq!((world.tagged(1), world.told(0)[2]), (all, 7));
    assert!(world.bridge.configure(0, with(Vlan::Access(5))));
    assert_eq!((world.tagged(0), world.told(0)[2]), (vec![], 5));
}

/// Each reason why the worker forwards for a port, alone, and gone again.
#[test]
fn a_port_says_why_the_worker_forwards() {
    let world = World::new("vale-why", &[NIC, OTHER, None]);
    assert_eq!(world.by_worker(), [None; 3]);
    let plain = config(NIC);
    let trunk = |native| Vlan::Trunk { allowed: [5].into(), native };
    for (config, why) in [
        (PortConfig { is_down: true, ..plain.clone() }, Some(ByWorker::NoLink)),
        (
            PortConfig { lossless: Some(Default::default()), ..plain.clone() },
            Some(ByWorker::Lossless),
        ),
        (PortConfig { vlan: trunk(None), ..plain.clone() }, None),
        (PortConfig { vlan: trunk(Some(7)), ..plain.clone() }, None),
        (PortConfig { isolated: true, ..plain.clone() }, None),
        (PortConfig { filter_in: filter(64), ..plain.clone() }, None),
        (PortConfig { filter_in: filter(65), ..plain.clone() }, Some(ByWorker::Filtered)),
        (PortConfig { filter_out: filter(65), ..plain.clone() }, Some(ByWorker::Filtered)),
    ] {
        assert!(world.bridge.configure(0, config.clone()));
        assert_eq!(world.by_worker(), [why, None, None], "{config:?}");
        assert_eq!(world.told(0)[0] & TAKES_PART != 0, why.is_none());
        assert!(world.bridge.configure(0, plain.clone()));
        assert_eq!(world.by_worker(), [None; 3]);
    }
    let watched = Client::new([1, 1], [64, 64], 0);
    let sent = PortMirrors { tx: monitor(MirrorMode::CopySent, &watched), rx: vec![] };
    let received = PortMirrors { tx: vec![], rx: monitor(MirrorMode::CopyReceived, &watched) };
    for mirrors in [sent, received] {
        world.bridge.set_mirrors(1, mirrors);
        assert_eq!(world.by_worker(), [None, Some(ByWorker::Monitored), None]);
        world.bridge.set_mirrors(1, PortMirrors::default());
        assert_eq!(world.by_worker(), [None; 3]);
    }
    let (mirrored, gets) = (Some(ByWorker::Mirrored), Some(ByWorker::MirrorPort));
    let some = |port| MirrorSources::Ports(vec![port]);
    for (from, to, expected) in [
        (some(0), 2, [mirrored, None, None]),
        (MirrorSources::All, 2, [mirrored, mirrored, None]),
        (some(2), 1, [None, gets, None]),
        (MirrorSources::All, 1, [mirrored, gets, None]),
    ] {
        let (filter, counters) = (None, Arc::default());
        let mirror = SwitchMirror { from, sent: true, received: false, to, filter, counters };
        world.bridge.set_switch_mirrors(vec![mirror]);
        assert_eq!(world.by_worker(), expected);
        assert_eq!(
            [0, 1].map(|port| world.told(port)[0] == 0),
            [0, 1].map(|i| expected[i].is_some())
        );
        world.bridge.set_switch_mirrors(Vec::new());
        assert_eq!(world.by_worker(), [None; 3]);
    }
    world.bridge.set_forwarding(&Forwarding::Flood);
    let all = Some(ByWorker::Forwarding);
    assert_eq!(world.by_worker(), [all, all, None]);
    assert_eq!((world.told(0)[0], world.told(1)[0]), (0, 0));
    world.bridge.set_forwarding(&Forwarding::Learning { ageing_seconds: 77 });
    assert_eq!(world.by_worker(), [None; 3]);
    assert_eq!(world.rules(), (77, false));
}

/// The program is told what it may do for each port.
#[test]
fn the_program_knows_the_ports() {
    let mut world = World::new("vale-told", &[NIC, STACK, OTHER, None]);
    assert_eq!(world.told(0), [TAKES_PART, 3, 0, 1514, 1]);
    assert_eq!(world.told(1), [TAKES_PART | IS_STACK, 3, 0, 1514, 0]);
    assert_eq!(world.told(2), [TAKES_PART, 5, 0, 1514, NONE], "its stack is no port");
    assert_eq!(world.told(3)[0], 0);
    assert_eq!(world.rules(), (300, false));

    // What passes between an interface and its stack has to be allowed to.
    let with = |isolated, max_frame| PortConfig { isolated, max_frame, ..config(NIC) };
    world.bridge.configure(0, with(true, 9000));
    assert_eq!(world.told(0), [TAKES_PART | IS_ISOLATED, 3, 0, 9000, 1]);
    world.bridge.configure(1, with(true, 1514));
    assert_eq!([world.told(0)[4], world.told(1)[4]], [NONE; 2], "both are isolated");
    world.bridge.configure(0, config(NIC));
    assert_eq!([world.told(0)[4], world.told(1)[4]], [1, 0]);
    let bound = PortConfig { sources: SourceAddresses::One, ..config(NIC) };
    for place in [0, 1] {
        world.bridge.configure(place, bound.clone());
        assert_eq!([world.told(0)[4], world.told(1)[4]], [NONE; 2], "a port is bound");
        assert_eq!(world.told(place.into())[0] & TAKES_PART, TAKES_PART);
        world.bridge.configure(place, config(NIC));
        assert_eq!([world.told(0)[4], world.told(1)[4]], [1, 0]);
    }
    let access = PortConfig { vlan: Vlan::Access(7), ..PortConfig::default() };
    world.bridge.configure(3, access.clone());
    assert_eq!((world.told(0), world.rules()), ([TAKES_PART, 3, 0, 1514, NONE], (300, true)));
    world.bridge.configure(2, access);
    assert_eq!(world.told(2), [TAKES_PART, 5, 7, 1514, NONE]);

    world.bridge.detach(2);
    assert_eq!(world.told(2)[0], 0);
    drop(std::mem::replace(&mut world.bridge, Bridge::start("vale-next").unwrap()));
    assert_eq!([0, 1, 2, 3].map(|port| world.told(port)[0]), [0; 4], "the switch has gone");
}

/// Frames for all pass between an interface and its stack in the kernel: the others get them from the worker.
#[test]
fn what_passes_in_the_kernel_is_not_sent_again() {
    let world = World::new("vale-beside", &[NIC, STACK, OTHER, None]);
    assert_eq!(world.send(0, BROADCAST), [2, 3]);
    assert_eq!(world.send(1, BROADCAST), [2, 3]);
    assert_eq!(world.send(2, BROADCAST), [0, 1, 3]);
    assert_eq!(world.send(3, BROADCAST), [0, 1, 2]);
    // Learned by now: the interface's frames for its stack have passed, too.
    assert_eq!(world.send(0, mac(2)), [0usize; 0]);
    assert_eq!(world.send(2, mac(2)), [1]);
    let drops = |port: usize| world.counters[port].totals().drops;
    assert_eq!([0, 1, 2, 3].map(drops), [Drops::default(); 4]);
    let bound = PortConfig { sources: SourceAddresses::One, ..config(NIC) };
    world.bridge.configure(0, bound);
    assert_eq!(world.send(0, BROADCAST), [1, 2, 3], "the worker sees to it again");
}

/// What the program has counted since the port came is the port's, beside what the worker has.
#[test]
fn what_the_program_counts_is_added() {
    let mut world = World::new("vale-counts", &[NIC]);
    let before = [1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000];
    world.count(1, 0, before);
    world.attach(OTHER);
    world.attach(None);
    world.count(1, 0, std::array::from_fn(|i| before[i] + 1 + i as u64));
    world.count(1, 1, [10, 20, 30, 40, 50, 60, 70, 80]);
    world.count(2, 0, [1; FIELDS]);
    assert_eq!(world.send(1, BROADCAST), [0, 2]);
    world.bridge.count();
    let totals = world.counters[1].totals();
    let drops = Drops { too_long: 55, ring_full: 77, filtered: 88, ..Drops::default() };
    let expected = Totals {
        sent_packets: 11 + 1,
        sent_bytes: 22 + 60,
        received_packets: 33,
        received_bytes: 44,
        known: 1,
        reordered: 66,
        drops,
        ..Totals::default()
    };
    assert_eq!(totals, expected);
    assert_eq!(world.counters[0].totals().received_packets, 1);
    let other = world.counters[2].totals();
    assert_eq!((other.received_packets, other.drops), (1, Drops::default()), "it has no program");
    // The last word of a port that goes has all of it.
    world.count(1, 1, [11, 20, 30, 40, 50, 60, 70, 80]);
    world.bridge.detach(1);
    assert_eq!(world.counters[1].totals().sent_packets, 13);
}

/// The program sees to the rate of a port that it looks after, and the worker to that of no such port; and to floods.
#[test]
fn the_program_polices_its_ports() {
    let world = World::new("vale-policed", &[NIC, STACK, None]);
    // A byte and a half each nanosecond.
    let rate = Some(RateLimit { bits_per_second: 12_000_000_000, burst_bytes: 100 });
    let limited = |rate, storm| PortConfig { rate, storm, ..config(NIC) };
    let policed = |port| world.told(port)[0] & IS_POLICED != 0;
    assert!(world.bridge.configure(0, limited(rate, None)));
    assert_eq!(world.policing(0), [1, 1 << 63, 100, 0, 0]);
    assert_eq!([policed(0), policed(1)], [true, false]);
    assert_eq!(world.by_worker(), [None; 3]);
    assert_eq!(world.told(0)[4], 1, "frames still pass to its stack");
    // Past the program all that it sends goes on.
    for _ in 0..20 {
        assert_eq!(world.send(0, BROADCAST), [2]);
    }
    // Also where the worker forwards: the program drops first.
    world.bridge.set_forwarding(&Forwarding::Flood);
    assert!(policed(0) && world.told(0)[0] & TAKES_PART == 0);
    let bytes_before = world.counters[0].totals().sent_bytes;
    let over = [0u64, 7].map(u64::to_ne_bytes).concat();
    assert_eq!(pwrite(&world.policing, &over, 24), Ok(16));
    // Behind the bytes of both: frames whose source is none.
    let refused = [700u64, 3].map(u64::to_ne_bytes).concat();
    assert_eq!(pwrite(&world.policing, &refused, 56), Ok(16));
    world.bridge.count();
    let totals = world.counters[0].totals();
    assert_eq!((totals.drops.over_rate, totals.sent_packets), (7, 30));
    assert_eq!(totals.drops.bad_source, 3);
    assert_eq!(totals.sent_bytes - bytes_before, 700, "bytes of what is dropped are sent, too");
    assert!(world.bridge.configure(0, config(NIC)));
    assert_eq!(world.policing(0)[..3], [0; 3]);
    assert!(!policed(0));
    world.bridge.set_forwarding(&Forwarding::default());

    // What may be too many is the worker's to count: also what would pass to the stack.
    assert!(world.bridge.configure(0, limited(None, Some(1))));
    assert_eq!(world.told(0)[4], NONE);
    assert_eq!(world.send(0, BROADCAST), [1, 2]);
    assert_eq!(world.send(0, BROADCAST), [0usize; 0]);
    assert_eq!(world.counters[0].totals().drops.storm, 1);
    let once = Some(FloodLimit { frames_per_second: 1, burst_frames: 1 });
    let of_broadcasts = PortConfig { storm_kinds: [once, None, None], ..limited(None, None) };
    assert!(world.bridge.configure(0, of_broadcasts));
    assert_eq!(world.told(0)[4], NONE);
    assert_eq!(world.send(0, BROADCAST), [1, 2]);
    assert_eq!(world.send(0, BROADCAST), [0usize; 0]);
    assert_eq!(world.counters[0].totals().drops.storm_broadcast, 1);
}

/// The program sees to the filters of ports that take part; what it has denied is counted at the port.
#[test]
fn the_program_has_the_filters() {
    const SENT: u32 = 16;
    const RECEIVED: u32 = 32;
    let world = World::new("vale-filters", &[NIC, STACK, OTHER, None]);
    let with = |filter_in: bool, filter_out: bool| PortConfig {
        filter_in: filter(1).filter(|_| filter_in),
        filter_out: filter(2).filter(|_| filter_out),
        ..config(NIC)
    };
    for (config, expected) in [
        (with(true, false), SENT),
        (with(false, true), RECEIVED),
        (with(true, true), SENT | RECEIVED),
        (with(false, false), 0),
    ] {
        world.bridge.configure(0, config.clone());
        assert_eq!(world.told(0)[0] & (SENT | RECEIVED), expected);
        let beside = if expected == 0 { [1, 0] } else { [NONE; 2] };
        assert_eq!([world.told(0)[4], world.told(1)[4]], beside, "the worker sees what is for all");
    }
    // Where the worker forwards, it alone filters.
    world.bridge.configure(0, PortConfig { is_down: true, ..with(true, true) });
    assert_eq!(world.told(0)[0], 0);

    // In bytes: at 40 what it has sent, at 48 what was for it.
    let denied: Vec<u8> = [5u64, 7].iter().flat_map(|count| count.to_ne_bytes()).collect();
    assert_eq!(pwrite(&world.policing, &denied, 40), Ok(16));
    barrier(&world.bridge);
    let Totals { sent_packets, received_packets, drops, .. } = world.counters[0].totals();
    assert_eq!((sent_packets, received_packets, drops.denied), (5, 0, 12));
}

/// A flow does not leave the worker's path while its frames wait for the kernel, which would let the later ones pass them.
#[test]
fn the_program_is_told_when_what_was_delivered_has_left() {
    let world = World::new("vale-order", &[NIC, OTHER]);
    let drained = || {
        barrier(&world.bridge);
        let mut number = [0; 8];
        assert_eq!(pread(&world.ports, &mut number, 0), Ok(8));
        u64::from_ne_bytes(number)
    };
    world.waiting.store(1, Relaxed);
    // The program has handed a frame over.
    assert_eq!(pwrite(&world.begun, &1u64.to_ne_bytes(), 0), Ok(8));
    assert_eq!(world.send(0, mac(2)), [1]);
    assert!((0..1000).all(|_| drained() == 0));
    world.waiting.store(0, Relaxed);
    while drained() == 0 {}
    assert_eq!(drained(), 1);
}
