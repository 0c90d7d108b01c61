//! Random writes of hostile clients over their own rings, control blocks and buffers, as fast as memory
//! takes them, while workers and drivers use these: nothing crashes, none of a neighbour's packets is lost
//! or wrong, and no sync takes long (trust rules 1 and 2).
//!
//! RINGWAY_WRITES is how many writes there are to be.
#![allow(clippy::disallowed_methods, reason = "tests are told by variables what to do")]

use std::{
    env,
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

use ringway::Port;
use ringway_abi::Dir;
use ringway_region::{Layout, Mapping};
use ringway_registry::{LocalRegistry, Settings};
use ringway_testkit::{Netns, is_root, isolate_thread, skip_without_root};
use ringway_tests::{Pair, Random, until};

/// Writes, unless RINGWAY_WRITES says otherwise: of all hostile ports together.
const WRITES: u64 = 4_000_000;
/// Writes between two uses of the rings.
const BETWEEN: usize = 64;
/// Far longer than a sync takes, also one that waits for a worker which its own program has misled.
const LONG: Duration = Duration::from_secs(30);
/// Bytes of a ring's header, of a slot, and of a control block.
const HEADER: u64 = 256;
const SLOT: u64 = 16;
const BLOCK: u64 = 512;

/// What is hostile: ports of a switch, whose other side is a worker, and ports whose drivers are in the
/// program itself.
const HOSTILE: [&[&str]; 3] = [&["valew:h1", "valew:h2"], &["w{1", "w}1"], &["netmap:n0"]];

/// A program that writes into the memory of its port.
struct Writer {
    ports: Vec<Port>,
    memory: Mapping,
    layout: Layout,
    /// Its rings: objects, and slots of each.
    rings: Vec<(u32, u32)>,
    random: Random,
}

impl Writer {
    fn new(ports: Vec<Port>, seed: u64) -> Writer {
        let region = ports[0].binding().region().clone();
        let layout = *region.layout();
        let memory = Mapping::open(region.memfd(), layout.total() as usize).expect("it is ours");
        let mine = ports.iter().filter(|p| p.binding().region().mem_id() == region.mem_id());
        let krings = mine.flat_map(|p| p.binding().all_rings().map(|ring| ring.kring()));
        let rings = krings.map(|kring| (kring.object(), kring.ring().num_slots())).collect();
        Writer { ports, memory, layout, rings, random: Random::new(seed) }
    }

    /// Any number; more often one that could be right.
    fn number(&mut self, slots: u32) -> u32 {
        let below = match self.random.below(5) {
            0 => return self.random.draw() as u32,
            1 => return 0,
            2 => u64::from(slots) + 2,
            3 => u64::from(self.layout.bufs.total) + 2,
            _ => 4096,
        };
        self.random.below(below) as u32
    }

    /// Where something stands that matters.
    fn place(&mut self) -> (u64, u32) {
        let (object, slots) = self.rings[self.random.below(self.rings.len() as u64) as usize];
        let ring = self.layout.rings.object(object).expect("it is in the region");
        let block = self.layout.block(object).expect("the same");
        let shadow = self.layout.shadow(object).expect("the same");
        let place = match self.random.below(16) {
            0..3 => ring + 4 * self.random.below(HEADER / 4),
            3..9 => ring + HEADER + 4 * self.random.below(u64::from(slots) * SLOT / 4),
            9..13 => block + 4 * self.random.below(BLOCK / 4),
            13 => shadow + 4 * self.random.below(slots.into()),
            14 => {
                let buf = self.random.below(self.layout.bufs.total.into()) as u32;
                self.layout.bufs.object(buf).expect("there are so many") + 4 * self.random.below(16)
            }
            _ => 4 * self.random.below(self.layout.total() / 4),
        };
        (place, slots)
    }

    fn write(&mut self) {
        let (place, slots) = self.place();
        let bytes = self.number(slots).to_ne_bytes();
        let word = &self.memory.bytes()[place as usize..][..4];
        word.iter().zip(bytes).for_each(|(to, byte)| to.store(byte, Relaxed));
    }

    /// Uses all rings; how long the longest call took.
    fn sync(&mut self) -> Duration {
        let mut longest = Duration::ZERO;
        for port in &mut self.ports {
            for dir in [Dir::Tx, Dir::Rx] {
                let begin = Instant::now();
                match dir {
                    Dir::Tx => (0..port.tx_rings()).for_each(|ring| port.tx(ring).sync()),
                    Dir::Rx => (0..port.rx_rings()).for_each(|ring| _ = port.rx(ring).sync()),
                }
                longest = longest.max(begin.elapsed());
            }
        }
        longest
    }
}

#[test]
fn random_writes_harm_no_neighbour() {
    let writes = env::var("RINGWAY_WRITES").map_or(WRITES, |text| text.parse().expect("a number"));
    let seed = Random::seeded().draw();
    if is_root() {
        isolate_thread();
        Netns::root().run("ip link add n0 up type veth peer name n1 && ip link set n1 up");
    }
    let registry = LocalRegistry::new(Settings::default());
    let open = |name: &&str| Port::options().over(registry.clone()).open(name);
    let mut pairs = [["valew:a", "valew:b"], ["p{1", "p}1"]].map(|names| {
        let [one, other] = names.each_ref().map(|name| open(name).expect("it is free"));
        Pair::of([one, other], 1)
    });
    // The switch knows them before the hostile come: what is flooded could come back as a forgery.
    pairs.iter_mut().for_each(|pair| pair.exchange_some(1000).expect("it is served"));

    let stop = AtomicBool::new(false);
    let [written, longest]: [[AtomicU64; HOSTILE.len()]; 2] = Default::default();
    // The fewest of those that write at all.
    let least = || {
        let kinds = if is_root() { written.len() } else { written.len() - 1 };
        written[..kinds].iter().map(|count| count.load(Relaxed)).min().unwrap_or(0)
    };
    thread::scope(|scope| {
        for (kind, names) in HOSTILE.iter().enumerate() {
            if names[0].starts_with("netmap") && skip_without_root(names[0]) {
                continue;
            }
            let ports = names.iter().map(|name| open(name).unwrap_or_else(|e| panic!("{e}")));
            let mut writer = Writer::new(ports.collect(), seed ^ kind as u64);
            let (written, longest, stop) = (&written[kind], &longest[kind], &stop);
            scope.spawn(move || {
                while !stop.load(Relaxed) {
                    (0..BETWEEN).for_each(|_| writer.write());
                    longest.fetch_max(writer.sync().as_micros() as u64, Relaxed);
                    written.fetch_add(BETWEEN as u64, Relaxed);
                }
            });
        }
        let _stop = ringway_tests::OnDrop(|| stop.store(true, Relaxed));
        while least() < writes / HOSTILE.len() as u64 {
            let before = least();
            pairs.iter_mut().for_each(|pair| pair.exchange_some(64).expect("it is served"));
            until("they write", || match least() {
                now if now > before => Ok(()),
                now => Err(format!("{now} writes")),
            });
        }
    });
    let longest = longest.map(|micros| Duration::from_micros(micros.into_inner()));
    println!("writes: {written:?}; the longest syncs: {longest:?}");
    assert!(longest.iter().all(|time| *time < LONG), "a sync took {longest:?}");
    pairs.iter_mut().for_each(|pair| pair.exchange_some(1000).expect("it is served"));
    drop(pairs);
    if is_root() {
        Netns::root().run("ip link del n0");
    }
}
