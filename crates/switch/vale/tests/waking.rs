//! Who sleeps is woken when there is something for it, and only by an event: the bridge's
//! worker by a sender, a receiver by the worker.

mod common;

use std::{
    sync::{
        Arc, Barrier,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
};

use common::{BROADCAST, Client, header, listen, mac, until_asleep};
use ringway_kring::Doorbell;
use ringway_region::Region;
use ringway_switch_port::{
    Backpressure, Burst, Configure, Delivered, Drops, Frame, Mirrored, PacketIo, Wake,
};
use ringway_vale::{Bridge, PortConfig, RingPort};
use rustix::fd::{AsFd, BorrowedFd};

/// Waits on `client`'s doorbell for a frame, as a program does.
fn await_frame(client: &Client) -> Vec<u8> {
    loop {
        if let Some(frame) = client.receive(0, 1).pop() {
            return frame.into_iter().next().unwrap().0;
        }
        client.rx_bell.drain();
        client.rx[0].csb().app.arm();
        let news = client.rx[0].hwtail() != client.rx[0].ring().head();
        if !news {
            listen(&client.rx_bell);
        }
    }
}

#[test]
fn one_packet_wakes_worker_and_receiver() {
    let bridge = Bridge::start("vale-sleepy").unwrap();
    let [a, b] = [(); 2].map(|()| Client::new([1, 1], [64, 64], 0));
    a.attach(&bridge);
    b.attach(&bridge);
    for n in 0..200 {
        until_asleep("vale-sleepy");
        b.rx_bell.drain();
        b.rx[0].csb().app.arm();
        a.send(&header(BROADCAST, mac(n)));
        a.drained(0);
        listen(&b.rx_bell);
        assert_eq!(await_frame(&b), header(BROADCAST, mac(n)));
    }
}

#[test]
fn ping_pong_between_sleepers() {
    const ROUNDS: u16 = 3000;
    let bridge = Bridge::start("vale-pingpong").unwrap();
    let [a, b] = [(); 2].map(|()| Client::new([1, 1], [16, 16], 0));
    a.attach(&bridge);
    b.attach(&bridge);
    let frame = |n: u16| [&header(BROADCAST, mac(1))[..], &n.to_le_bytes()].concat();
    thread::scope(|s| {
        s.spawn(|| {
            for n in 0..ROUNDS {
                assert_eq!(await_frame(&b), frame(2 * n));
                b.send(&frame(2 * n + 1));
                b.drained(0);
            }
        });
        for n in 0..ROUNDS {
            a.send(&frame(2 * n));
            a.drained(0);
            assert_eq!(await_frame(&a), frame(2 * n + 1));
        }
    });
}

/// A port that always has something to send, to itself: the bridge is never idle.
struct Torrent {
    region: Arc<Region>,
    doorbell: Doorbell,
    running: Arc<Barrier>,
    begun: AtomicBool,
}

impl PacketIo for Torrent {
    fn collect<'a>(&'a mut self, _: usize, burst: &mut Burst<'a>, _: &mut Drops) -> u32 {
        if !self.begun.swap(true, Relaxed) {
            self.running.wait();
        }
        burst.push(self.region.buf(2).unwrap(), 60);
        burst.end_frame();
        1
    }

    fn release(&mut self, _: usize) {}

    fn tx_rings(&self) -> usize {
        1
    }

    fn receives(&self) -> bool {
        false
    }

    fn deliver(&mut self, _: usize, _: &[Frame], _: &Burst<'_>, _: &mut Drops) -> Delivered {
        unreachable!("it does not receive")
    }

    fn flush(&mut self, _: bool) {}
}

impl Backpressure for Torrent {}

impl Configure for Torrent {}

impl Mirrored for Torrent {}

impl Wake for Torrent {
    fn arm(&mut self) {}

    fn doorbell(&self) -> BorrowedFd<'_> {
        self.doorbell.as_fd()
    }

    fn drain(&self) {}
}

/// Lets a torrent loose on the bridge; its packet is in a buffer of `source`. Returns its place.
fn torrent(bridge: &Bridge, source: &Client) -> u8 {
    source.region.buf(2).unwrap().write(0, &header(mac(9), mac(9)));
    let running = Arc::new(Barrier::new(2));
    let torrent = Torrent {
        region: source.region.clone(),
        doorbell: Doorbell::new().unwrap(),
        running: running.clone(),
        begun: AtomicBool::new(false),
    };
    let place = bridge.attach(Box::new(torrent), PortConfig::default(), Arc::default()).unwrap();
    running.wait();
    place
}

/// One packet in a quarter-full ring does not wait until the bridge has nothing else to do.
#[test]
fn a_receiver_is_woken_although_others_keep_the_bridge_busy() {
    let bridge = Bridge::start("vale-torrent").unwrap();
    let [a, b, source] = [(); 3].map(|()| Client::new([1, 1], [1024, 1024], 0));
    a.attach(&bridge);
    b.attach(&bridge);
    let place = torrent(&bridge, &source);
    for n in 0..100 {
        b.rx_bell.drain();
        b.rx[0].csb().app.arm();
        a.send(&header(BROADCAST, mac(n)));
        listen(&b.rx_bell);
        assert_eq!(await_frame(&b), header(BROADCAST, mac(n)));
    }
    // Nor is it kept from letting a port go by what that still sends.
    bridge.detach(place);
}

/// Who has sent and waits until all is taken is woken at once, and then all has arrived.
#[test]
fn s_vale_5_what_is_taken_has_arrived() {
    let bridge = Bridge::start("vale-arrived").unwrap();
    let [a, b, source] = [(); 3].map(|()| Client::new([1, 1], [1024, 1024], 0));
    a.attach(&bridge);
    b.attach(&bridge);
    for busy in [false, true] {
        if busy {
            torrent(&bridge, &source);
        }
        for n in 0..200 {
            for k in 0..=n % 5 {
                a.fill(0, &header(BROADCAST, mac(k)), 14, 0, None);
            }
            a.tx_sync(0);
            a.drained(0);
            assert_eq!(b.receive(0, usize::MAX).len(), usize::from(n % 5) + 1);
        }
    }
}

/// A port that has done something in every round.
struct Restless(RingPort);

impl PacketIo for Restless {
    fn collect<'a>(&'a mut self, ring: usize, burst: &mut Burst<'a>, drops: &mut Drops) -> u32 {
        self.0.collect(ring, burst, drops).max(1)
    }

    fn release(&mut self, ring: usize) {
        self.0.release(ring)
    }

    fn tx_rings(&self) -> usize {
        self.0.tx_rings()
    }

    fn receives(&self) -> bool {
        self.0.receives()
    }

    fn deliver(
        &mut self,
        ring: usize,
        f: &[Frame],
        burst: &Burst<'_>,
        drops: &mut Drops,
    ) -> Delivered {
        self.0.deliver(ring, f, burst, drops)
    }

    fn flush(&mut self, idle: bool) {
        self.0.flush(idle)
    }

    fn complete(&mut self, idle: bool) {
        self.0.complete(idle)
    }
}

impl Backpressure for Restless {}

impl Configure for Restless {}

impl Mirrored for Restless {}

impl Wake for Restless {
    fn arm(&mut self) {
        self.0.arm()
    }

    fn doorbell(&self) -> BorrowedFd<'_> {
        self.0.doorbell()
    }

    fn is_edge_triggered(&self) -> bool {
        self.0.is_edge_triggered()
    }

    fn drain(&self) {
        self.0.drain()
    }
}

/// One thread of a program sends without a pause, another waits for an answer now and then.
#[test]
fn a_receiver_is_woken_although_its_own_port_is_busy() {
    let bridge = Bridge::start("vale-restless").unwrap();
    let [a, b] = [(); 2].map(|()| Client::new([1, 1], [1024, 1024], 0));
    a.attach(&bridge);
    bridge.attach(Box::new(Restless(b.port())), PortConfig::default(), Arc::default()).unwrap();
    for n in 0..100 {
        b.rx_bell.drain();
        b.rx[0].csb().app.arm();
        a.send(&header(BROADCAST, mac(n)));
        listen(&b.rx_bell);
        assert_eq!(await_frame(&b), header(BROADCAST, mac(n)));
    }
}
