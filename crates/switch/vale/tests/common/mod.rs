//! The program's side of VALE ports, in the process of the bridge.
#![allow(dead_code)] // Each test uses its own part.

pub mod watched;

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};

use ringway_abi::{Dir, NS_MOREFRAG};
use ringway_kring::{Doorbell, Kring, Offsets, Outcome};
use ringway_region::{Layout, Region, RingInit, Sizes};
use ringway_ring::WorkerServed;
use ringway_vale::{Bridge, PortConfig, PortCounters, RingPort, RxSide, TxSide};
use rustix::event::{PollFd, PollFlags, poll};

/// No port has this place: detaching it does nothing, once the worker is between two rounds.
const NOBODY: u8 = 253;

pub const BUF_SIZE: u32 = 2048;

/// A port as its program has it: a region, rings, doorbells.
pub struct Client {
    pub region: Arc<Region>,
    pub tx: Vec<Kring>,
    pub rx: Vec<Kring>,
    /// What the program sleeps on, for each direction.
    pub tx_bell: Arc<Doorbell>,
    pub rx_bell: Arc<Doorbell>,
    pub worker: Arc<Doorbell>,
    pub receives: Arc<AtomicBool>,
    driver: WorkerServed,
}

/// One received slot: bytes and flags.
pub type Piece = (Vec<u8>, u16);

impl Client {
    /// `rings` and `slots`, tx before rx; `headroom` bytes of each buffer are hidden.
    pub fn new(rings: [u32; 2], slots: [u32; 2], headroom: u32) -> Client {
        Client::with_sizes(rings, slots, Sizes::private(rings, slots, 0, 0), headroom)
    }

    /// With pools of these sizes.
    pub fn with_sizes(rings: [u32; 2], slots: [u32; 2], sizes: Sizes, headroom: u32) -> Client {
        let region = Arc::new(Region::create(2, Layout::new(&sizes, headroom).unwrap()).unwrap());
        Client::in_region(region, 0, rings, slots)
    }

    /// Several in one region, each with one ring each way.
    pub fn neighbours<const N: usize>(slots: [u32; 2]) -> [Client; N] {
        let sizes = Sizes::private([N as u32; 2], slots, 0, 0);
        let region = Arc::new(Region::create(2, Layout::new(&sizes, 0).unwrap()).unwrap());
        std::array::from_fn(|place| Client::in_region(region.clone(), place as u32, [1, 1], slots))
    }

    /// The `place`th of a region whose clients are all alike.
    fn in_region(region: Arc<Region>, place: u32, rings: [u32; 2], slots: [u32; 2]) -> Client {
        let mut next_buf = 2 + place * (rings[0] * slots[0] + rings[1] * slots[1]);
        let object = place * (rings[0] + rings[1]);
        let mut make = |dir, first_object, count, num_slots| -> Vec<Kring> {
            let ring = |i| {
                let bufs: Vec<u32> = (next_buf..next_buf + num_slots).collect();
                next_buf += num_slots;
                let init = RingInit { dir, ringid: i as u16, num_slots };
                Kring::create(&region, first_object + i, &init, &bufs).unwrap()
            };
            (0..count).map(ring).collect()
        };
        let tx = make(Dir::Tx, object, rings[0], slots[0]);
        let rx = make(Dir::Rx, object + rings[0], rings[1], slots[1]);
        let doorbell = || Arc::new(Doorbell::new().unwrap());
        let worker = doorbell();
        Client {
            tx,
            rx,
            tx_bell: doorbell(),
            rx_bell: doorbell(),
            driver: WorkerServed::new(worker.clone()),
            worker,
            receives: Arc::new(AtomicBool::new(true)),
            region,
        }
    }

    /// As it is, but that its bridge sleeps on the doorbell of `other`.
    pub fn with_bell_of(self, other: &Client) -> Client {
        let worker = other.worker.clone();
        Client { driver: WorkerServed::new(worker.clone()), worker, ..self }
    }

    /// The bridge's side of the port.
    pub fn port(&self) -> RingPort {
        let tx = self.tx.iter().map(|k| TxSide::new(k.clone(), self.tx_bell.clone())).collect();
        let rx = self.rx.iter().map(|k| RxSide::new(k.clone(), self.rx_bell.clone())).collect();
        RingPort::new(tx, rx, self.worker.clone(), self.receives.clone())
    }

    /// With offsets, of all tx rings and of all rx rings.
    pub fn attach_with(
        &self,
        bridge: &Bridge,
        [tx, rx]: [Option<Offsets>; 2],
    ) -> (u8, Arc<PortCounters>) {
        let tx_side = |k: &Kring| TxSide::new(k.clone(), self.tx_bell.clone()).with_offsets(tx);
        let rx_side = |k: &Kring| RxSide::new(k.clone(), self.rx_bell.clone()).with_offsets(rx);
        let tx = self.tx.iter().map(tx_side).collect();
        let rx = self.rx.iter().map(rx_side).collect();
        let port = RingPort::new(tx, rx, self.worker.clone(), self.receives.clone());
        let counters = Arc::new(PortCounters::default());
        let index = bridge.attach(Box::new(port), PortConfig::default(), counters.clone());
        (index.unwrap(), counters)
    }

    pub fn attach(&self, bridge: &Bridge) -> (u8, Arc<PortCounters>) {
        self.attach_as(bridge, PortConfig::default())
    }

    pub fn attach_as(&self, bridge: &Bridge, config: PortConfig) -> (u8, Arc<PortCounters>) {
        let counters = Arc::new(PortCounters::default());
        (bridge.attach(Box::new(self.port()), config, counters.clone()).unwrap(), counters)
    }

    /// Fills the next free slot; `index` stands in it in place of the slot's own buffer.
    pub fn fill(&self, ring: usize, bytes: &[u8], len: u16, flags: u16, index: Option<u32>) {
        let view = self.tx[ring].ring();
        let at = view.head();
        assert_ne!(at, view.tail(), "the test sends more than the ring holds");
        let own = self.write_next(ring, bytes);
        view.set_slot(at, index.unwrap_or(own), len, flags);
        view.set_head(view.next(at));
        view.set_cur(view.next(at));
    }

    /// Writes into the buffer of the next slot; returns its index.
    pub fn write_next(&self, ring: usize, bytes: &[u8]) -> u32 {
        let view = self.tx[ring].ring();
        // Ring 0 has the first buffers, and so on: what a test put into the slot is undone.
        let own = 2 + ring as u32 * view.num_slots() + view.head();
        view.buf(own).unwrap().write(0, bytes);
        own
    }

    pub fn tx_sync(&self, ring: usize) {
        assert_eq!(self.tx[ring].sync(&self.driver), Outcome::Done);
    }

    /// Sends one frame of one slot.
    pub fn send(&self, frame: &[u8]) {
        self.fill(0, frame, frame.len() as u16, 0, None);
        self.tx_sync(0);
    }

    /// Waits until the bridge has taken everything that was sent on `ring`.
    pub fn drained(&self, ring: usize) {
        let kring = &self.tx[ring];
        let done = || kring.csb().service.hwtail() == kring.ring().prev(kring.ring().head());
        while !done() {
            self.tx_bell.drain();
            kring.csb().app.arm();
            if !done() {
                listen(&self.tx_bell);
            }
        }
        self.tx_sync(ring);
    }

    /// Takes up to `frames` frames from `ring`, and releases their slots.
    pub fn receive(&self, ring: usize, frames: usize) -> Vec<Vec<Piece>> {
        let kring = &self.rx[ring];
        assert_eq!(kring.sync(&self.driver), Outcome::Done);
        let view = kring.ring();
        let (mut at, mut received) = (view.head(), Vec::new());
        while at != view.tail() && received.len() < frames {
            let mut frame = Vec::new();
            loop {
                let slot = view.slot(at);
                let mut bytes = vec![0; slot.len.into()];
                view.buf(slot.buf_idx).unwrap().copy_to(slot.len.into(), &mut bytes);
                frame.push((bytes, slot.flags));
                at = view.next(at);
                if slot.flags & NS_MOREFRAG == 0 {
                    break;
                }
                assert_ne!(at, view.tail(), "half a frame is visible");
            }
            received.push(frame);
        }
        view.set_head(at);
        view.set_cur(at);
        assert_eq!(kring.sync(&self.driver), Outcome::Done);
        received
    }

    pub fn set_receives(&self, receives: bool) {
        self.receives.store(receives, Relaxed);
    }
}

/// The bytes of single-slot frames.
pub fn bytes(frames: Vec<Vec<Piece>>) -> Vec<Vec<u8>> {
    frames.into_iter().map(|f| f.into_iter().flat_map(|(bytes, _)| bytes).collect()).collect()
}

/// Returns when the worker has finished a round and told its counters.
pub fn barrier(bridge: &Bridge) {
    bridge.detach(NOBODY);
}

/// Sleeps until the doorbell is rung.
pub fn listen(doorbell: &Doorbell) {
    let heard = poll(&mut [PollFd::new(doorbell, PollFlags::IN)], None).unwrap();
    assert_eq!(heard, 1);
}

/// Waits until the thread of that name of this process sleeps in the kernel.
pub fn until_asleep(name: &str) {
    let state = |task: std::fs::DirEntry| {
        let stat = std::fs::read_to_string(task.path().join("stat")).ok()?;
        let (head, tail) = stat.rsplit_once(')')?;
        head.ends_with(&format!("({name}")).then(|| tail.trim_start().starts_with('S'))
    };
    loop {
        let mut tasks = std::fs::read_dir("/proc/self/task").unwrap().map_while(Result::ok);
        if tasks.find_map(state).expect("the worker has its bridge's name") {
            return;
        }
        std::thread::yield_now();
    }
}

/// An Ethernet header.
pub fn header(dst: [u8; 6], src: [u8; 6]) -> [u8; 14] {
    let mut bytes = [0; 14];
    bytes[..6].copy_from_slice(&dst);
    bytes[6..12].copy_from_slice(&src);
    bytes[12..].copy_from_slice(&[0x12, 0x34]);
    bytes
}

pub const BROADCAST: [u8; 6] = [0xff; 6];

/// The n-th address.
pub fn mac(n: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, n]
}
