//! How much a port may send, and how much of that is flooded: by a clock that the test moves.

mod common;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use common::{BROADCAST, Client, bytes, header, mac};
use ringway_vale::{
    Clock, FloodLimit, Forwarding, Lossless, Micros, PortConfig, RateLimit, SteppedBridge, Totals,
};

/// Bytes of a frame.
const LENGTH: usize = 100;

struct World {
    bridge: SteppedBridge,
    clients: Vec<Client>,
}

impl World {
    /// Three ports, by that clock. All know where the others are.
    fn new(configs: [PortConfig; 3], fine: fn() -> Micros) -> World {
        let clock = Clock::new(|| 0).with_fine(fine);
        let mut bridge = SteppedBridge::new(&Forwarding::default(), clock).unwrap();
        // A port that others wait for is soon full.
        let slots = |config: &PortConfig| if config.lossless.is_some() { 64 } else { 2048 };
        let client = |config: &PortConfig| Client::new([1, 1], [2048, slots(config)], 0);
        let clients: Vec<_> = configs.iter().map(client).collect();
        for (client, config) in clients.iter().zip(configs) {
            bridge.attach(Box::new(client.port()), config).unwrap();
        }
        World { bridge, clients }
    }

    /// So many frames of that length, each with its number.
    fn send(&mut self, from: usize, to: [u8; 6], frames: u8, length: usize) {
        for number in 0..frames {
            let mut frame = header(to, mac(from as u8)).to_vec();
            frame.push(number);
            frame.resize(length, 0);
            self.clients[from].fill(0, &frame, length as u16, 0, None);
        }
        self.clients[from].tx_sync(0);
        while self.bridge.round() {}
    }

    /// Many, in which those that wait are looked at.
    fn rounds(&mut self) {
        for _ in 0..100 {
            self.bridge.round();
        }
    }

    /// The numbers of the frames that came.
    fn got(&mut self, at: usize) -> Vec<u8> {
        let frames = bytes(self.clients[at].receive(0, usize::MAX));
        while self.bridge.round() {}
        frames.iter().map(|frame| frame[14]).collect()
    }

    fn totals(&mut self, port: u8) -> Totals {
        self.bridge.totals(port).unwrap()
    }
}

fn with_rate(bits_per_second: u64, burst_bytes: u64) -> PortConfig {
    let rate = Some(RateLimit { bits_per_second, burst_bytes });
    PortConfig { rate, ..PortConfig::default() }
}

fn with_storm(frames: u32) -> PortConfig {
    PortConfig { storm: Some(frames), ..PortConfig::default() }
}

fn plain() -> PortConfig {
    PortConfig::default()
}

/// Every frame that was sent has come or is counted.
#[test]
fn a_port_sends_a_burst_and_then_its_rate() {
    static NOW: AtomicU64 = AtomicU64::new(0);
    let mut world =
        World::new([with_rate(8_000_000, 1000), plain(), plain()], || NOW.load(Relaxed));
    let mut come = 0;
    for (now, expected) in [(0, 10), (0, 0), (99, 0), (100, 1), (650, 5), (1_000_000, 10)] {
        NOW.store(now, Relaxed);
        world.send(0, BROADCAST, 20, LENGTH);
        let got = world.got(1);
        assert_eq!(got, (0..expected).collect::<Vec<_>>(), "at {now}");
        assert_eq!(world.got(2), got);
        come += got.len() as u64;
    }
    let totals = world.totals(0);
    assert_eq!((totals.sent_packets, totals.drops.over_rate), (120, 120 - come));
    assert_eq!(totals.sent_bytes, 120 * LENGTH as u64, "also of what is dropped");
    assert_eq!(world.totals(1).received_packets, come);
    // Others send as much as they like, and so does it when it is told so.
    world.send(1, BROADCAST, 50, LENGTH);
    assert_eq!(world.got(2).len(), 50);
    assert!(world.bridge.configure(0, plain()));
    world.send(0, BROADCAST, 50, LENGTH);
    assert_eq!(world.got(1).len(), 50);
}

/// A setting of something else does not fill the bucket.
#[test]
fn what_is_spent_stays_spent() {
    let mut world = World::new([with_rate(8_000_000, 1000), plain(), plain()], || 5);
    world.send(0, BROADCAST, 10, LENGTH);
    assert_eq!(world.got(1).len(), 10);
    assert!(world.bridge.configure(0, PortConfig { isolated: true, ..with_rate(8_000_000, 1000) }));
    world.send(0, BROADCAST, 10, LENGTH);
    assert_eq!(world.got(1).len(), 0);
    assert!(world.bridge.configure(0, with_rate(8_000_000, 500)));
    world.send(0, BROADCAST, 10, LENGTH);
    assert_eq!(world.got(1).len(), 5);
}

/// What waits for a lossless port is looked at again and again, and paid for once, when it goes on.
#[test]
fn what_waits_is_paid_for_once() {
    let slow = PortConfig { lossless: Some(Lossless::default()), ..plain() };
    let mut world = World::new([with_rate(8_000_000, 900 * LENGTH as u64), slow, plain()], || 5);
    world.send(1, BROADCAST, 1, LENGTH);
    let mut got = 0;
    for _ in 0..10 {
        // The receiver frees less than is sent: each burst ends with some that wait.
        world.send(0, mac(1), 120, LENGTH);
        world.rounds();
        got += bytes(world.clients[1].receive(0, 50)).len();
        world.rounds();
    }
    for _ in 0..20 {
        got += world.got(1).len();
        world.rounds();
    }
    assert_eq!((got, world.totals(0).drops.over_rate), (900, 300));
}

#[test]
fn floods_are_held_and_what_is_known_passes() {
    static NOW: AtomicU64 = AtomicU64::new(0);
    let mut world = World::new([with_storm(10), plain(), plain()], || NOW.load(Relaxed));
    world.send(1, BROADCAST, 1, LENGTH);
    world.got(2);
    world.send(0, BROADCAST, 50, LENGTH);
    assert_eq!([world.got(1).len(), world.got(2).len()], [10, 10]);
    world.send(0, mac(1), 50, LENGTH);
    assert_eq!([world.got(1).len(), world.got(2).len()], [50, 0]);
    // Frames to unknown addresses and to groups count against the same limit.
    NOW.store(300_001, Relaxed);
    world.send(0, mac(99), 2, LENGTH);
    world.send(0, [1, 0, 0x5e, 0, 0, 1], 2, LENGTH);
    assert_eq!([world.got(1).len(), world.got(2).len()], [3, 3]);
    let totals = world.totals(0);
    assert_eq!((totals.sent_packets, totals.drops.storm), (104, 41));
    // Others may flood.
    world.send(1, BROADCAST, 50, LENGTH);
    assert_eq!(world.got(2).len(), 50);
}

/// Broadcasts, multicasts, and what is for unknown addresses: each kind has a limit of its own, beside that of all. What
/// passes is what the frames behind it find, in their order.
#[test]
fn each_kind_of_flood_is_held_by_itself() {
    let limit = |frames| Some(FloodLimit { frames_per_second: 1, burst_frames: frames });
    let config = PortConfig { storm_kinds: [limit(5), None, limit(7)], ..with_storm(30) };
    let mut world = World::new([config, plain(), plain()], || 0);
    world.send(1, BROADCAST, 1, LENGTH);
    world.got(2);
    let group = [1, 0, 0x5e, 0, 0, 1];
    for number in 0..40u8 {
        for to in [BROADCAST, group, mac(99), mac(1)] {
            let mut frame = header(to, mac(0)).to_vec();
            frame.push(number);
            frame.resize(LENGTH, 0);
            world.clients[0].fill(0, &frame, LENGTH as u16, 0, None);
        }
    }
    world.clients[0].tx_sync(0);
    while world.bridge.round() {}
    let got = world.got(2);
    assert!(got.is_sorted(), "{got:?}");
    // Of 12 that pass the limits of their kinds, and 18 groups.
    assert_eq!((got.len(), world.got(1).len()), (30, 30 + 40));
    let drops = world.totals(0).drops;
    assert_eq!([drops.storm_broadcast, drops.storm_multicast, drops.storm_unknown], [35, 0, 33]);
    assert_eq!((drops.storm, world.totals(0).sent_packets), (22, 160));
    // One setting leaves what is spent of the others.
    let config = PortConfig { storm_kinds: [limit(5), limit(3), limit(7)], ..plain() };
    assert!(world.bridge.configure(0, config));
    for to in [BROADCAST, group, mac(99)] {
        world.send(0, to, 10, LENGTH);
    }
    assert_eq!(world.got(2).len(), 3);
    let drops = world.totals(0).drops;
    assert_eq!([drops.storm_broadcast, drops.storm_multicast, drops.storm_unknown], [45, 7, 43]);
}

/// Where floods go in steps, for a receiver makes senders wait, each counts once.
#[test]
fn floods_that_wait_are_counted_once() {
    let slow = PortConfig { lossless: Some(Lossless::default()), ..plain() };
    let mut world = World::new([with_storm(1200), slow, plain()], || 0);
    let mut got = [0, 0];
    for round in 0..40 {
        if round < 8 {
            world.send(0, BROADCAST, 200, LENGTH);
        }
        world.rounds();
        got[0] += world.got(1).len();
        got[1] += world.got(2).len();
    }
    assert_eq!(got, [1200; 2]);
    assert_eq!(world.totals(0).drops.storm, 400);
}
