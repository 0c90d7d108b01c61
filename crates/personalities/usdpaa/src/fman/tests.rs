//! Interfaces on ports of a registry in this process: where frames go, and that every buffer comes back.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::Ordering::Relaxed},
    time::Duration,
};

use ringway::Port;
use ringway_doc::fairness::BusyPipe;
use ringway_qbman::{Entry, Frame, Notifier, Schedule, manager};
use rustix::event::{PollFd, PollFlags, poll};

use super::{Distributor, Interface, POOLS, interfaces_mut, poll as poll_interfaces};
use crate::{
    dma, memory,
    netcfg::policy::{Policy, Step},
    ports::{MacType, Place},
};

const LIMIT: Duration = Duration::from_secs(60);
const NO_CONFIRM: u64 = 0x8000_0000 << 32;
/// Of the only distribution: IPv4, by addresses.
const HASHED: u32 = 0x1400;
const DEFAULT: u32 = 0x1300;

/// Buffers, and queues of an interface's. Pools are the process's: one test at a time has them.
struct World {
    map: &'static dma::Map,
    memory: u64,
    free: [usize; POOLS.len()],
    _turn: MutexGuard<'static, ()>,
}

impl World {
    fn new(counts: [usize; POOLS.len()]) -> World {
        static TURN: Mutex<()> = Mutex::new(());
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let map = dma::create(0, None, 1 << 20).unwrap();
        let memory = map.address() as u64;
        let mut next = memory + 0x1000;
        for ((pool, size), count) in POOLS.into_iter().zip(counts) {
            let mut left = [0; 64];
            while manager().pools.acquire_up_to(pool, &mut left) > 0 {}
            for _ in 0..count {
                manager().pools.release(pool, &[next]).unwrap();
                next += u64::from(size);
            }
        }
        World { map, memory, free: counts, _turn: turn }
    }

    /// Every buffer is back.
    fn assert_whole(&self) {
        for ((pool, _), count) in POOLS.into_iter().zip(self.free) {
            assert_eq!(manager().pools.free(pool), count, "pool {pool}");
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.map.destroy();
    }
}

fn queue(fqid: u32, channel: u16, context_a: u64) {
    let settings = |settings: &mut ringway_qbman::Settings| {
        settings.channel = channel;
        settings.context_a = context_a;
    };
    manager().init(fqid, Schedule::Scheduled, settings).unwrap();
}

fn remove(queues: impl IntoIterator<Item = u32>) {
    queues.into_iter().for_each(|fqid| manager().shut_down(fqid, |_| {}).unwrap());
}

/// Waits for frames of a channel.
fn take(channel: u16, count: usize) -> Vec<Entry> {
    let notifier = Arc::new(Notifier::new().unwrap());
    let mut found = Vec::new();
    while found.len() < count {
        let mut entries = [Entry::default(); 16];
        let taken = manager().drain(channel, &mut entries);
        found.extend_from_slice(&entries[..taken]);
        if taken == 0 && manager().arm(channel, &notifier) {
            let fd = notifier.fd();
            let limit = rustix::event::Timespec { tv_sec: LIMIT.as_secs() as i64, tv_nsec: 0 };
            assert_eq!(
                poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&limit)),
                Ok(1),
                "nothing comes"
            );
            notifier.clear();
        }
    }
    found
}

fn place(number: u8) -> Place {
    Place { fman: 0, mac_type: MacType::OneGigabit, number }
}

fn interface(number: u8, port: Option<&str>) -> Arc<Interface> {
    let port = port.map(|port| ringway_doc::open(port).unwrap());
    let interface = Interface::over(place(number), number, port).unwrap();
    let key = ["ipv4.src", "ipv4.dst"].map(String::from).to_vec();
    let step = Step { key, base: HASHED, count: 1, ..Step::default() };
    let policy = Policy { steps: vec![step], default: DEFAULT, ..Policy::default() };
    interface.set_distributor(Distributor::new(&policy));
    interface.set_receives(true);
    interface
}

/// An IPv4 frame of that length, told apart by `number`.
fn ipv4(length: usize, number: u8) -> Vec<u8> {
    let mut frame = vec![number; length];
    frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
    frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 2]);
    frame[12..15].copy_from_slice(&[8, 0, 0x45]);
    frame
}

fn send(port: &mut Port, frames: &[Vec<u8>]) {
    for frame in frames {
        assert!(port.tx(0).push(frame));
    }
    port.tx(0).sync();
}

fn receive(port: &mut Port, count: usize) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    while found.len() < count {
        assert!(port.wait_rx(Some(LIMIT)).unwrap(), "{} of {count} have come", found.len());
        found.extend(port.rx(0).batch(count).map(|frame| frame.to_vec()));
    }
    found
}

/// Frames go from an interface's receiving side to its transmitting side without a CPU of the program's.
#[test]
fn a_short_circuit_sends_back_what_comes() {
    for (number, [ours, theirs]) in [["valeU1:a", "valeU1:b"], ["u1{1", "u1}1"]].iter().enumerate()
    {
        let world = World::new([8, 8, 100]);
        let interface = interface(number as u8, Some(ours));
        queue(HASHED, interface.numbers.channel, NO_CONFIRM);
        let mut peer = ringway_doc::open(theirs).unwrap();
        for round in 0..10 {
            let frames: Vec<_> = (0..50).map(|n| ipv4(60 + 30 * n as usize, n + round)).collect();
            send(&mut peer, &frames);
            assert_eq!(receive(&mut peer, frames.len()), frames);
        }
        interface.stop();
        assert_eq!(interface.counters.received.load(Relaxed), 500);
        assert_eq!(interface.counters.transmitted.load(Relaxed), 500);
        remove([HASHED]);
        world.assert_whole();
    }
}

#[test]
fn frames_find_their_queues_or_are_counted() {
    let world = World::new([0, 2, 3]);
    let interface = interface(2, Some("u2{1"));
    let mut peer = ringway_doc::open("u2}1").unwrap();
    let counters = &interface.counters;
    // No queue is in service.
    send(&mut peer, &[ipv4(60, 1)]);
    // The second is malformed, the third no IPv4, the fourth needs more buffers than there are, and the last finds none.
    let mut malformed = ipv4(60, 2);
    malformed[14] = 0x55;
    let mut other = ipv4(800, 3);
    other[12] = 9;
    while counters.rejected.load(Relaxed) < 1 {
        std::thread::yield_now();
    }
    const CHANNEL: u16 = 0xf0;
    for fqid in [HASHED, DEFAULT, interface.numbers.rx_error] {
        queue(fqid, CHANNEL, 0);
    }
    send(
        &mut peer,
        &[ipv4(400, 1), malformed, other, ipv4(1800, 4), ipv4(1000, 5), ipv4(700, 6), ipv4(60, 7)],
    );
    let mut taken = take(CHANNEL, 5);
    while counters.no_buffer.load(Relaxed) < 2 {
        std::thread::yield_now();
    }
    taken.sort_by_key(|entry| entry.frame.length());
    let seen: Vec<_> = taken
        .iter()
        .map(|e| (e.frame.length(), e.queue, e.frame.pool(), e.frame.offset()))
        .collect();
    let error = interface.numbers.rx_error;
    let expected = [
        (60, error, 8, 64),
        (400, HASHED, 8, 64),
        (700, HASHED, 9, 64),
        (800, DEFAULT, 9, 64),
        (1000, HASHED, 9, 64),
    ];
    assert_eq!(seen, expected);
    let maps = memory::maps();
    let first = taken.iter().find(|entry| entry.frame.length() == 1000).unwrap().frame;
    let mut bytes = vec![0; 1000];
    maps.at(first.address() + 64, 1000).unwrap().copy_to(1000, &mut bytes);
    assert_eq!(bytes, ipv4(1000, 5));
    assert_eq!(counters.no_buffer.load(Relaxed), 2);
    assert_eq!(counters.rejected.load(Relaxed), 1);
    for entry in &taken {
        manager().pools.release(entry.frame.pool(), &[entry.frame.address()]).unwrap();
    }
    interface.stop();
    remove([HASHED, DEFAULT, error]);
    world.assert_whole();
}

/// What no buffer holds comes in several, and goes out of them again.
#[test]
fn long_frames_are_scattered() {
    let world = World::new([0, 1, 12]);
    let interface = interface(5, Some("u5{1"));
    let mut peer = ringway_doc::open("u5}1").unwrap();
    let counters = &interface.counters;
    queue(HASHED, interface.numbers.channel, NO_CONFIRM);
    for length in [1664, 1665, 1728, 1729, 2000, 9000] {
        let frame = ipv4(length, length as u8);
        let parts: Vec<&[u8]> = frame.chunks(peer.max_frame()).collect();
        let mut tx = peer.tx(0);
        for (n, (part, mut slot)) in parts.iter().zip(tx.batch(parts.len())).enumerate() {
            assert!(slot.write_part(part, n + 1 < parts.len()));
        }
        tx.sync();
        assert_eq!(receive(&mut peer, parts.len()).concat(), frame);
    }
    // More buffers than there are: those that were taken are back.
    let parts = vec![[8; 2000]; 11];
    let mut tx = peer.tx(0);
    for (n, (part, mut slot)) in parts.iter().zip(tx.batch(11)).enumerate() {
        assert!(slot.write_part(part, n < 10));
    }
    tx.sync();
    while counters.no_buffer.load(Relaxed) < 1 {
        std::thread::yield_now();
    }
    interface.stop();
    assert_eq!(counters.received.load(Relaxed), 6);
    remove([HASHED]);
    world.assert_whole();
}

/// What is sent is confirmed unless its queue says otherwise; what cannot be sent comes back.
#[test]
fn frames_for_transmission_come_back_or_go() {
    let world = World::new([0, 0, 4]);
    let interface = interface(3, Some("u3{1"));
    let mut peer = ringway_doc::open("u3}1").unwrap();
    let numbers = interface.numbers;
    const CHANNEL: u16 = 0xf1;
    let (confirmed, silent) = (0x1500, 0x1501);
    queue(confirmed, numbers.channel, 0);
    queue(silent, numbers.channel, NO_CONFIRM);
    queue(numbers.tx_confirm, CHANNEL, 0);
    queue(numbers.tx_error, CHANNEL, 0);
    let mut buffers = [0; 3];
    manager().pools.acquire(9, &mut buffers).unwrap();
    let write = |address: u64, bytes: &[u8]| {
        memory::maps().at(address, bytes.len() as u32).unwrap().write(0, bytes);
    };
    write(buffers[0] + 64, &ipv4(100, 1));
    let frame = Frame::contiguous(9, buffers[0], 64, 100);
    manager().enqueue(confirmed, frame).unwrap();
    assert_eq!(receive(&mut peer, 1), [ipv4(100, 1)]);
    let back = take(CHANNEL, 1);
    assert_eq!((back[0].queue, back[0].frame), (numbers.tx_confirm, frame));

    // A table of two parts in the third buffer, for a frame longer than a slot.
    let whole = ipv4(3000, 2);
    write(buffers[0] + 100, &whole[..1500]);
    write(buffers[1], &whole[1500..]);
    let entry = |address: u64, offset: u16, length: u32, last: bool| {
        let mut entry = address.to_be_bytes().to_vec();
        entry.extend((length | u32::from(last) << 30).to_le_bytes());
        entry.extend([0, 9, offset as u8, (offset >> 8) as u8]);
        entry
    };
    let table = [entry(buffers[0], 100, 1500, false), entry(buffers[1], 0, 1500, true)].concat();
    write(buffers[2] + 32, &table);
    let gathered =
        Frame { shape: 4 << 29 | 32 << 20 | 3000, ..Frame::contiguous(9, buffers[2], 0, 0) };
    manager().enqueue(silent, gathered).unwrap();
    assert_eq!(receive(&mut peer, 2).concat(), whole);

    // None of these is one: beyond memory, of an unknown form, empty, a table without end.
    let bad = [
        Frame::contiguous(9, 0x10, 64, 100),
        Frame { shape: 1 << 29 | 60, ..frame },
        Frame::contiguous(9, world.memory, 0, 0),
        Frame { shape: 4 << 29 | 100, ..Frame::contiguous(9, world.memory + 0x200, 0, 0) },
        Frame { shape: 2 << 29 | 0x1fff_ffff, ..frame },
    ];
    for frame in bad {
        manager().enqueue(silent, frame).unwrap();
        let back = take(CHANNEL, 1);
        assert_eq!((back[0].queue, back[0].frame), (numbers.tx_error, frame));
    }
    assert_eq!(interface.counters.unsendable.load(Relaxed), bad.len() as u64);
    interface.stop();
    remove([confirmed, silent, numbers.tx_confirm, numbers.tx_error]);
    world.assert_whole();
}

/// Counts the frames of a channel, and gives their buffers back.
fn drain(channel: u16, busy: &mut BusyPipe) {
    let mut entries = [Entry::default(); 3];
    let taken = manager().drain(channel, &mut entries);
    for Entry { frame, .. } in &entries[..taken] {
        busy.count(frame.length() as usize);
        manager().pools.release(frame.pool(), &[frame.address()]).unwrap();
    }
}

/// While buffers are few, each ring of a port has some in its turn.
#[test]
fn rings_share_the_buffers() {
    const CHANNEL: u16 = 0xf5;
    let (mut busy, port) = BusyPipe::new("ufair", 3, |name| ringway_doc::open(name).unwrap());
    let _world = World::new([0, 0, 3]);
    let interface = Interface::without_worker(place(6), 6, Some(port)).ok().unwrap();
    let policy = Policy { default: DEFAULT, ..Policy::default() };
    interface.set_distributor(Distributor::new(&policy));
    interface.set_receives(true);
    queue(DEFAULT, CHANNEL, 0);
    while !busy.is_over() {
        interface.try_turn();
        drain(CHANNEL, &mut busy);
        busy.fill();
    }
    busy.assert_fair("usdpaa");
    remove([DEFAULT]);
}

/// While buffers are few, each interface has some in its turn.
#[test]
fn interfaces_share_the_buffers() {
    const CHANNEL: u16 = 0xf6;
    let (mut busy, ports) = BusyPipe::several("ushare", 3, |name| ringway_doc::open(name).unwrap());
    let _world = World::new([0, 0, 3]);
    let policy = Policy { default: DEFAULT, ..Policy::default() };
    for (number, port) in (7..).zip(ports) {
        let interface = Interface::without_worker(place(number), number, Some(port));
        let interface = interface.ok().unwrap();
        interface.set_distributor(Distributor::new(&policy));
        interface.set_receives(true);
        interfaces_mut().push(interface);
    }
    queue(DEFAULT, CHANNEL, 0);
    while !busy.is_over() {
        poll_interfaces();
        drain(CHANNEL, &mut busy);
        busy.fill();
    }
    interfaces_mut().clear();
    busy.assert_fair("usdpaa, several interfaces");
    remove([DEFAULT]);
}

#[test]
fn an_interface_without_a_wire_receives_what_it_sends() {
    let world = World::new([0, 0, 4]);
    let interface = interface(4, None);
    const CHANNEL: u16 = 0xf2;
    queue(HASHED, CHANNEL, 0);
    queue(0x1600, interface.numbers.channel, NO_CONFIRM);
    let mut buffer = [0];
    manager().pools.acquire(9, &mut buffer).unwrap();
    memory::maps().at(buffer[0], 100).unwrap().write(0, &ipv4(100, 9));
    manager().enqueue(0x1600, Frame::contiguous(9, buffer[0], 0, 100)).unwrap();
    let taken = take(CHANNEL, 1)[0].frame;
    assert_eq!((taken.length(), taken.pool()), (100, 9));
    manager().pools.release(9, &[taken.address()]).unwrap();
    interface.stop();
    remove([HASHED, 0x1600]);
    world.assert_whole();
}

/// A program may name what it likes as a buffer: the interface writes to none that the program could not write to.
#[test]
fn buffers_in_read_only_memory_are_none() {
    const SHARED: u32 = 1;
    const NEW: u32 = 2;
    const READONLY: u32 = 8;
    let world = World::new([0, 0, 0]);
    let name = format!("r{}", std::process::id());
    let whole = dma::create(SHARED | NEW, Some(&name), 1 << 16).unwrap();
    let read_only = dma::create(SHARED | READONLY, Some(&name), 1 << 16).unwrap();
    let interface = interface(5, None);
    const CHANNEL: u16 = 0xf3;
    queue(HASHED, CHANNEL, 0);
    queue(0x1600, interface.numbers.channel, NO_CONFIRM);
    memory::maps().at(whole.address() as u64, 100).unwrap().write(0, &ipv4(100, 9));
    // It can be sent from there, in a buffer of no pool that is looked at here.
    let frame = Frame::contiguous(40, read_only.address() as u64, 0, 100);
    let pools = &manager().pools;
    pools.release(9, &[whole.address() as u64 + 0x1000, read_only.address() as u64]).unwrap();
    for _ in 0..2 {
        manager().enqueue(0x1600, frame).unwrap();
    }
    let taken = take(CHANNEL, 1)[0].frame;
    assert_eq!(taken.address(), whole.address() as u64 + 0x1000, "the one that can be written to");
    while interface.counters.no_buffer.load(Relaxed) < 1 {
        std::thread::yield_now();
    }
    interface.stop();
    remove([HASHED, 0x1600]);
    world.assert_whole();
    read_only.destroy();
    whole.destroy();
}
