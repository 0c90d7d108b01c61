//! Ports beside which a program in the kernel forwards: what the worker tells the program, what it leaves to
//! it, and what it counts of it. The maps are files here, which the test reads and writes as the program does.

mod common;

use std::{
    net::IpAddr,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use common::{BROADCAST, Client, barrier, bytes, header, mac};
use ringway_abi::Dir;
use ringway_fastpath::{FastPath, Maps, PORTS, SETS, VLAN_WORDS};
use ringway_filter::{Insn, Program};
use ringway_kring::{Doorbell, Kring};
use ringway_mirror::{Mirror, MirrorMode, Mirrors};
use ringway_region::RingInit;
use ringway_switch_port::{
    Backpressure, Burst, Configure, Delivered, Drops, Frame, KernelWay, Mirrored, PacketIo, Port,
    PortMirrors, Unsent, Wake,
};
use ringway_vale::{
    Bridge, ByWorker, Clock, FloodLimit, Forwarding, GroupEntry, MirrorSources, Multicast,
    PortConfig, PortCounters, PortFilter, RateLimit, RingPort, SourceAddresses, StaticAddress,
    SteppedBridge, SwitchMirror, Totals, Vlan,
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
    files: Files,
}

/// What the tests look at of what a program shares.
struct Files {
    begun: OwnedFd,
    ports: OwnedFd,
    vlans: OwnedFd,
    settings: OwnedFd,
    counts: OwnedFd,
    policing: OwnedFd,
}

impl Files {
    fn new() -> (FastPath, Files) {
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
        (fast, Files { begun, ports, vlans, settings, counts, policing })
    }

    /// The program has handed so many frames of a port over.
    fn hand_over(&self, port: u64, frames: u64) {
        assert_eq!(pwrite(&self.begun, &frames.to_ne_bytes(), 64 * port), Ok(8));
    }
}

impl World {
    /// Ports with these ways, or none.
    fn new(name: &str, ways: &[Option<KernelWay>]) -> World {
        let (fast, files) = Files::new();
        let mut world = World {
            bridge: Bridge::start(name).unwrap(),
            clients: Vec::new(),
            counters: Vec::new(),
            waiting: Arc::default(),
            files,
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
        assert_eq!(pread(&self.files.ports, &mut words, 64 * port + 8), Ok(20));
        std::array::from_fn(|i| u32::from_ne_bytes(words[4 * i..][..4].try_into().unwrap()))
    }

    /// The VLANs in which a port's frames are tagged, as the program reads them.
    fn tagged(&self, port: u64) -> Vec<u16> {
        barrier(&self.bridge);
        let mut words = [0; 8 * VLAN_WORDS];
        assert_eq!(pread(&self.files.vlans, &mut words, 512 * port), Ok(512));
        let word = |at: usize| u64::from_ne_bytes(words[8 * at..][..8].try_into().unwrap());
        let bit = |vid: &u16| word(usize::from(*vid) / 64) >> (vid % 64) & 1 != 0;
        (0..4096).filter(bit).collect()
    }

    /// Ageing, and whether tags are looked at.
    fn rules(&self) -> (u32, bool) {
        barrier(&self.bridge);
        let mut words = [0; 8];
        assert_eq!(pread(&self.files.settings, &mut words, 16), Ok(8));
        let [flags, ageing] = [0, 4].map(|at| words[at..at + 4].try_into().unwrap());
        (u32::from_ne_bytes(ageing), u32::from_ne_bytes(flags) == 1)
    }

    /// The program has counted so much of a port, on one processor.
    fn count(&self, port: usize, cpu: usize, fields: [u64; FIELDS]) {
        let bytes: Vec<u8> = fields.iter().flat_map(|field| field.to_ne_bytes()).collect();
        let at = ((port * CPUS + cpu) * 64) as u64;
        assert_eq!(pwrite(&self.files.counts, &bytes, at), Ok(bytes.len()));
    }

    /// What the program is told of a port's limit, and what it has counted and spent.
    fn policing(&self, port: u64) -> [u64; 5] {
        barrier(&self.bridge);
        let mut words = [0; 40];
        assert_eq!(pread(&self.files.policing, &mut words, 128 * port), Ok(40));
        std::array::from_fn(|i| u64::from_ne_bytes(words[8 * i..][..8].try_into().unwrap()))
    }

    /// Which ports receive a frame that port `from` sends.
    fn send(&self, from: usize, dst: [u8; 6]) -> Vec<usize> {
        self.send_frame(from, &[&header(dst, mac(from as u8 + 1))[..], &[0; 46]].concat())
    }

    /// The same for this one.
    fn send_frame(&self, from: usize, frame: &[u8]) -> Vec<usize> {
        self.clients[from].send(frame);
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

/// A message of IGMP (RFC 2236, RFC 3376), to this group.
fn igmp(from: usize, to: [u8; 4], mut message: Vec<u8>) -> Vec<u8> {
    let sum = |bytes: &[u8]| {
        let sum = bytes.chunks(2).map(|it| u32::from(it[0]) << 8 | u32::from(it[1])).sum::<u32>();
        let sum = (sum & 0xffff) + (sum >> 16);
        (!((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes()
    };
    let checksum = sum(&message);
    message[2..4].copy_from_slice(&checksum);
    let mut ip = vec![0x46, 0, 0, 24 + message.len() as u8, 0, 0, 0, 0, 1, 2, 0, 0, 10, 0, 0, 9];
    ip.extend([&to[..], &[0x94, 4, 0, 0]].concat());
    let checksum = sum(&ip);
    ip[10..12].copy_from_slice(&checksum);
    let ethernet = header([1, 0, 0x5e, to[1], to[2], to[3]], mac(from as u8 + 1));
    [&ethernet[..12], &[8, 0], &ip, &message].concat()
}

/// Hosts before an interface and the stack behind it hear each other's reports in the kernel. Those of the old versions
/// have others say nothing, so the port beside has joined, too.
#[test]
fn a_report_that_passes_in_the_kernel_joins_both() {
    let world = World::new("vale-reports", &[NIC, STACK, OTHER, None]);
    world.bridge.set_multicast(Multicast::Snooping);
    let all = [224, 0, 0, 1];
    world.send_frame(2, &igmp(2, all, vec![0x11, 10, 0, 0, 0, 0, 0, 0, 1, 100, 0, 0]));
    let members = |last: u8| {
        let ask = world.bridge.groups(0, 100);
        let mut members: Vec<_> = ask()
            .unwrap()
            .0
            .into_iter()
            .filter_map(|entry| match entry {
                GroupEntry::Member { group, port, .. }
                    if group == IpAddr::from([239, 1, 2, last]) =>
                {
                    Some(port)
                }
                _ => None,
            })
            .collect();
        members.sort_unstable();
        members
    };
    for (number, from, kind, expected) in [
        (1, 0, 0x16, vec![0, 1]),
        (2, 1, 0x16, vec![0, 1]),
        (3, 0, 0x12, vec![0, 1]),
        (4, 2, 0x16, vec![2]),
        (5, 3, 0x16, vec![3]),
    ] {
        let group = [239, 1, 2, number];
        world.send_frame(from, &igmp(from, group, [&[kind, 0, 0, 0], &group[..]].concat()));
        assert_eq!(members(number), expected);
    }
    // Of the third version, each says it for itself.
    let record = [&[0x22, 0, 0, 0, 0, 0, 0, 1, 4, 0, 0, 0][..], &[239, 1, 2, 6]].concat();
    world.send_frame(0, &igmp(0, [224, 0, 0, 22], record));
    assert_eq!(members(6), [0]);
    // A port leaves for itself alone.
    let left = [&[0x17, 0, 0, 0], &[239, 1, 2, 1][..]].concat();
    world.send_frame(0, &igmp(0, [224, 0, 0, 2], left));
    assert_eq!(members(1), [0, 1]);
    // What does not pass silences no stack.
    let bound = PortConfig { sources: SourceAddresses::One, ..config(NIC) };
    world.bridge.configure(0, bound);
    let group = [239, 1, 2, 7];
    world.send_frame(0, &igmp(0, group, [&[0x16, 0, 0, 0], &group[..]].concat()));
    assert_eq!(members(7), [0]);
}

/// A bridge whose clock and rounds are the test's: its ports have clients, and ways in the kernel.
struct Stepped {
    bridge: SteppedBridge,
    clients: Vec<Client>,
    millis: Arc<AtomicU64>,
    files: Files,
    /// Frames that the program has handed over, of the first port.
    begun: u64,
}

impl Stepped {
    fn new(ways: &[Option<KernelWay>]) -> Stepped {
        let (fast, files) = Files::new();
        let millis = Arc::new(AtomicU64::new(1000));
        let hand = millis.clone();
        let clock = Clock::new(move || hand.load(Relaxed));
        let mut bridge = SteppedBridge::new(&Forwarding::default(), clock).unwrap();
        bridge.share_table(Arc::new(fast));
        let clients = ways
            .iter()
            .map(|way| {
                let client = Client::new([1, 1], [64, 64], 0);
                let (rings, waiting) = (client.port(), Arc::default());
                let port: Box<dyn Port> = match *way {
                    Some(way) => Box::new(Attached { rings, way, waiting }),
                    None => Box::new(rings),
                };
                bridge.attach(port, config(*way)).unwrap();
                client
            })
            .collect();
        Stepped { bridge, clients, millis, files, begun: 0 }
    }

    /// The program hands so many frames of the first port over.
    fn hand_over(&mut self, frames: u64) {
        self.begun += frames;
        self.files.hand_over(0, self.begun);
    }

    fn pass(&mut self, millis: u64) {
        self.millis.fetch_add(millis, Relaxed);
        self.bridge.flush_idle();
        while self.bridge.round() {}
        self.bridge.flush_idle();
    }

    /// Which ports get a frame that is handed over already.
    fn send(&mut self, from: usize, dst: [u8; 6], src: [u8; 6]) -> Vec<usize> {
        self.clients[from].send(&[&header(dst, src)[..], &[0; 46]].concat());
        self.pass(0);
        self.clients[from].tx_sync(0);
        let got = |to: &usize| !bytes(self.clients[*to].receive(0, usize::MAX)).is_empty();
        (0..self.clients.len()).filter(got).collect()
    }
}

/// The worker has lost frames of an interface, and more come, one in each millisecond: what passes to the stack in the
/// kernel is not sent again for long, also when the two have been apart meanwhile.
#[test]
fn after_losses_the_stack_gets_frames_once() {
    let mut world = Stepped::new(&[NIC, STACK, OTHER]);
    world.hand_over(100_000);
    let broadcast = |world: &mut Stepped| {
        world.hand_over(1);
        let got = world.send(0, BROADCAST, mac(1));
        world.pass(1);
        got
    };
    for _ in 0..10 {
        assert_eq!(broadcast(&mut world), [2]);
    }
    let storm = PortConfig { storm: Some(1_000_000), ..config(NIC) };
    assert!(world.bridge.configure(0, storm));
    assert_eq!(broadcast(&mut world), [1, 2], "the worker sees to it");
    assert!(world.bridge.configure(0, config(NIC)));
    let twice = (0..50).filter(|_| broadcast(&mut world) == [1, 2]).count();
    assert!(twice < 10, "{twice}");
}

/// An address moves to the stack: what the program has handed over before did not pass to it.
#[test]
fn what_has_not_passed_to_the_stack_is_sent() {
    let mut world = Stepped::new(&[NIC, STACK, OTHER]);
    assert_eq!(world.send(2, BROADCAST, mac(9)), [0, 1]);
    world.hand_over(1);
    assert_eq!(world.send(1, BROADCAST, mac(9)), [2], "it is behind the stack now");
    assert_eq!(world.send(0, mac(9), mac(1)), [1]);
    world.hand_over(1);
    assert_eq!(world.send(0, mac(9), mac(1)), [0usize; 0], "it has passed");
    // The same of configured addresses.
    let address = |port| StaticAddress { mac: mac(8), vlan: 0, port };
    world.bridge.set_static_addresses(vec![address(2)]);
    world.hand_over(1);
    world.bridge.set_static_addresses(vec![address(1)]);
    assert_eq!(world.send(0, mac(8), mac(1)), [1]);
    world.hand_over(1);
    assert_eq!(world.send(0, mac(8), mac(1)), [0usize; 0]);
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
        // What the worker did not get was sent as well.
        sent_packets: 11 + 77 + 1,
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
    assert_eq!(world.counters[1].totals().sent_packets, 90);
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
    assert_eq!(pwrite(&world.files.policing, &over, 24), Ok(16));
    // Behind the bytes of both: frames whose source is none.
    let refused = [700u64, 3].map(u64::to_ne_bytes).concat();
    assert_eq!(pwrite(&world.files.policing, &refused, 56), Ok(16));
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
    assert_eq!(pwrite(&world.files.policing, &denied, 40), Ok(16));
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
        assert_eq!(pread(&world.files.ports, &mut number, 0), Ok(8));
        u64::from_ne_bytes(number)
    };
    world.waiting.store(1, Relaxed);
    let since = Instant::now();
    // The program has handed a frame over.
    world.files.hand_over(0, 1);
    assert_eq!(world.send(0, mac(2)), [1]);
    // A frame is kept for an interface that takes nothing for 100 ms, and the flow as long.
    assert!((0..1000).all(|_| drained() == 0 || since.elapsed() >= Duration::from_millis(99)));
    world.waiting.store(0, Relaxed);
    while drained() == 0 {}
    assert_eq!(drained(), 1);
}
