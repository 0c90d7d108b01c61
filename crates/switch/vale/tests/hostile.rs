//! Clients that write random bytes all over their regions, while others use the bridge: the
//! others see right frames of each other, or frames made of the hostile client's own bytes.

mod common;

use std::{
    sync::{
        Barrier,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

use common::{BROADCAST, Client, barrier, header, mac};
use ringway_region::Mapping;
use ringway_vale::{Bridge, PortConfig};

/// Bytes from here on are in the buffers of the hostile sender only, and in all of them.
const HOSTILE: u8 = 0x80;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// Writes random bytes over the client's whole region until `stop`, and claims now and then
/// to have sent or to have released something.
fn scribble(client: &Client, seed: u64, ready: &Barrier, stop: &AtomicBool) {
    let layout = *client.region.layout();
    let map = Mapping::open(client.region.memfd(), layout.total() as usize).unwrap();
    let mut random = Random(seed);
    let buffers = layout.bufs.offset as usize..layout.memsize() as usize;
    let write = |at: usize, byte: u8| {
        let byte = if buffers.contains(&at) { byte | HOSTILE } else { byte };
        map.bytes()[at].store(byte, Relaxed);
    };
    map.bytes()[buffers.clone()].iter().for_each(|byte| byte.store(HOSTILE, Relaxed));
    // Rings and control blocks are small beside the buffers: they get as much attention.
    let places = [0..buffers.start, buffers.clone(), buffers.end..map.bytes().len()];
    ready.wait();
    while !stop.load(Relaxed) {
        for place in &places {
            for _ in 0..64 {
                let at = place.start + random.next() as usize % place.len();
                write(at, random.next() as u8);
            }
        }
        for kring in client.tx.iter().chain(&client.rx) {
            let n = kring.ring().num_slots();
            for _ in 0..8 {
                let (at, total) = (random.next() as u32 % n, u64::from(layout.bufs.total));
                let index = random.next() % (total + 3);
                let len = random.next() as u16 % 2100;
                kring.ring().set_slot(at, index as u32, len, random.next() as u16 & 0x7f);
            }
            let head = random.next() as u32 % (n + n / 8);
            kring.csb().app.publish(head, random.next() as u32);
        }
        client.worker.notify();
        thread::yield_now();
    }
}

fn numbered(dst: [u8; 6], src: [u8; 6], n: u32) -> Vec<u8> {
    let mut frame = header(dst, src).to_vec();
    // Seven bits a byte: all of them are below HOSTILE.
    frame.extend((0..4).map(|i| (n >> (7 * i)) as u8 & 0x7f));
    frame.resize(60 + n as usize % 1400, n as u8 & 0x7f);
    frame
}

/// Sends a frame behind a virtio-net header that asks for nothing.
fn send(client: &Client, header_len: u8, frame: &[u8]) {
    client.send(&[&vec![0; header_len.into()], frame].concat());
}

/// Checks all frames that `client` has received behind such headers; returns how many were from
/// `peer`. Their numbers start from `next`, and go up.
fn check(client: &Client, header_len: u8, own: [u8; 6], peer: [u8; 6], next: &mut u32) -> u32 {
    let mut found = 0;
    for frame in client.receive(0, usize::MAX) {
        let bytes: Vec<u8> = frame.into_iter().flat_map(|(bytes, _)| bytes).collect();
        let (header, bytes) = bytes.split_at(bytes.len().min(header_len.into()));
        if bytes.iter().all(|&b| b >= HOSTILE) {
            continue;
        }
        assert!(header.iter().all(|byte| *byte == 0));
        assert!(bytes.len() >= 60, "neither a right frame nor the hostile client's: {bytes:?}");
        let n = (0..4).map(|i| u32::from(bytes[14 + i]) << (7 * i)).sum();
        assert!(n >= *next, "frame {n} came after frame {}", *next - 1);
        assert_eq!(bytes, numbered(own, peer, n));
        *next = n + 1;
        found += 1;
    }
    found
}

#[test]
fn scribblers_cost_nobody_but_themselves() {
    scribblers_among([0, 0, 0]);
}

/// The same where every packet but those between the honest two gets another virtio-net header.
#[test]
fn s_vhdr_3_scribblers_with_virtio_net_headers() {
    scribblers_among([10, 0, 12]);
}

/// The lengths of virtio-net headers are those of the honest two, of the hostile sender, and of
/// the hostile receiver.
fn scribblers_among([honest, sends, receives]: [u8; 3]) {
    const ROUNDS: u32 = 500;
    const BATCH: u32 = 8;
    const PATIENCE: Duration = Duration::from_secs(60);
    let bridge = Bridge::start("vale-hostile").unwrap();
    let [a, b] = [(); 2].map(|()| Client::new([1, 1], [64, 512], 0));
    // What a hostile client receives, it may send again: so one sends and one receives.
    let sender = Client::new([2, 0], [256, 256], 0);
    let receiver = Client::new([0, 2], [256, 256], 0);
    let attach = |client: &Client, header_len| {
        client.attach_as(&bridge, PortConfig { header_len, ..PortConfig::default() }).1
    };
    attach(&a, honest);
    attach(&b, honest);
    sender.set_receives(false);
    let sender_counters = attach(&sender, sends);
    let receiver_counters = attach(&receiver, receives);

    let (ready, stop) = (Barrier::new(3), AtomicBool::new(false));
    let (mut from_a, mut from_b) = (0, 0);
    thread::scope(|s| {
        s.spawn(|| scribble(&sender, 0x1234_5678_9abc, &ready, &stop));
        s.spawn(|| scribble(&receiver, 0xdead_beef, &ready, &stop));
        ready.wait();
        let exchange = || {
            let (mut next_a, mut next_b) = (0, 0);
            let begun = Instant::now();
            for round in 0u32.. {
                for n in round * BATCH..(round + 1) * BATCH {
                    send(&a, honest, &numbered(mac(2), mac(1), n));
                    send(&b, honest, &numbered(mac(1), mac(2), n));
                }
                a.drained(0);
                b.drained(0);
                barrier(&bridge);
                from_a += check(&b, honest, mac(2), mac(1), &mut next_a);
                from_b += check(&a, honest, mac(1), mac(2), &mut next_b);
                // Long enough for the scribblers to have hit everything that counts.
                let [sender, receiver] =
                    [&sender_counters, &receiver_counters].map(|c| c.totals().drops);
                let hit = sender.bad_slot > 0 && sender.bad_index > 0 && receiver.bad_slot > 0;
                if round >= ROUNDS && (hit || begun.elapsed() > PATIENCE) {
                    break;
                }
            }
        };
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(exchange));
        stop.store(true, Relaxed);
        result.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
    barrier(&bridge);
    let drops = sender_counters.totals().drops;
    assert!(from_a > 0 && from_b > 0, "they talked: {from_a}, {from_b}");
    assert!(drops.bad_slot > 0 && drops.bad_index > 0, "its errors are its own: {drops:?}");
    assert!(receiver_counters.totals().drops.bad_slot > 0);

    // Nothing is left behind: the two are served as ever.
    b.receive(0, usize::MAX);
    let last = numbered(BROADCAST, mac(1), 1);
    send(&a, honest, &last);
    a.drained(0);
    barrier(&bridge);
    let mut received = b.receive(0, usize::MAX).into_iter().map(|f| f[0].0.clone());
    assert!(received.any(|frame| frame[honest.into()..] == last));
}
