//! An interface in packet mode at each end of a wire: two rings in a region, and their drivers.

#![allow(dead_code, reason = "each test binary uses its own part")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use ringway_abi::{Dir, NS_MOREFRAG};
use ringway_kring::{Kring, Outcome};
use ringway_nic_setup::{RxSocket, Source, TxSocket};
use ringway_packet::{PacketRx, PacketTx};
use ringway_region::{Layout, Region, RingInit, Sizes, Timestamps};
use ringway_testkit::{Netns, VethPair, take_frames};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

pub const SLOTS: u32 = 256;
const HEADROOM: u32 = 256;
/// Bytes of a frame that a slot holds.
pub const ROOM: usize = 2048 - HEADROOM as usize;
/// Frames with this mark are not received.
pub const IGNORED: u32 = 0x1234_5678;

/// `a0` in one namespace, `b0` in the other; nothing but the tests sends on them.
pub struct Wire {
    pub pair: VethPair,
    pub a: Netns,
    pub b: Netns,
}

impl Wire {
    pub fn new(queues: u32, mtu: u32) -> Wire {
        let (a, b) = (Netns::quiet("pa"), Netns::quiet("pb"));
        let pair = a.veth_queues(&b, "a0", "b0", queues);
        a.run(&format!("ip link set a0 mtu {mtu}"));
        b.run(&format!("ip link set b0 mtu {mtu}"));
        Wire { pair, a, b }
    }

    pub fn ports(&self) -> [Port; 2] {
        [Port::new(&self.a, "a0", 0, 1), Port::new(&self.b, "b0", 0, 1)]
    }
}

pub struct Port {
    pub tx: Kring,
    pub rx: Kring,
    tx_driver: PacketTx,
    pub rx_driver: PacketRx,
    pub socket: RxSocket,
}

impl Port {
    /// Receives by one queue, and sends.
    pub fn new(netns: &Netns, name: &str, queue: u32, queues: u32) -> Port {
        let sizes = Sizes {
            if_size: 1024,
            if_num: 2,
            ring_size: 4608,
            ring_num: 2,
            buf_size: 2048,
            buf_num: 2 + 2 * SLOTS,
        };
        let region = Region::create(1, Layout::new(&sizes, HEADROOM).unwrap()).unwrap();
        let (region, layout) = (Arc::new(region), *Layout::new(&sizes, HEADROOM).as_ref().unwrap());
        let make = |dir| {
            let object = u32::from(dir == Dir::Rx);
            let first = 2 + SLOTS * object;
            let bufs: Vec<u32> = (first..first + SLOTS).collect();
            let init = RingInit { dir, ringid: 0, num_slots: SLOTS };
            Kring::create(&region, object, &init, &bufs).unwrap()
        };
        let ifindex = netns.run(&format!("cat /sys/class/net/{name}/ifindex"));
        let ifindex = ifindex.trim().parse().unwrap();
        let source = Source {
            interface: name,
            ifindex,
            queue,
            queues,
            ignored_mark: IGNORED,
            hardware_time: false,
        };
        let (socket, sender) = netns
            .enter(|| (RxSocket::open(&source).unwrap(), TxSocket::open(name, ifindex).unwrap()));
        socket.listen(true).unwrap();
        let fd = Arc::new(socket.fd.try_clone().unwrap());
        let rx_driver = PacketRx::new(fd, socket.geometry, &layout).unwrap();
        let tx_driver = PacketTx::new(Arc::new(sender.fd), &layout);
        Port { tx: make(Dir::Tx), rx: make(Dir::Rx), tx_driver, rx_driver, socket }
    }

    /// With times in front of frames.
    pub fn with_timestamps(self, timestamps: Option<Timestamps>) -> Port {
        Port { rx_driver: self.rx_driver.with_timestamps(timestamps), ..self }
    }

    pub fn sync_tx(&self) {
        assert_eq!(self.tx.sync(&self.tx_driver), Outcome::Done);
    }

    /// Slots that the program may fill.
    pub fn room(&self) -> u32 {
        let ring = self.tx.ring();
        ring.distance(ring.head(), ring.tail())
    }

    /// Fills slots: bytes, the length that the slot is to say, and its flags.
    pub fn fill(&self, slots: &[(&[u8], u16, u16)]) {
        let ring = self.tx.ring();
        let mut at = ring.head();
        for (bytes, length, flags) in slots {
            let slot = ring.slot(at);
            ring.buf(slot.buf_idx).unwrap().write(0, bytes);
            ring.set_slot(at, slot.buf_idx, *length, *flags);
            at = ring.next(at);
        }
        ring.set_head(at);
        ring.set_cur(at);
    }

    /// Sends a frame, in as many slots as it takes.
    pub fn send(&self, frame: &[u8]) {
        let pieces: Vec<_> = frame.chunks(ROOM).collect();
        let flags = |i| if i + 1 < pieces.len() { NS_MOREFRAG } else { 0 };
        let slot = |(i, piece): (usize, &&'_ [u8])| (pieces[i], piece.len() as u16, flags(i));
        self.fill(&pieces.iter().enumerate().map(slot).collect::<Vec<_>>());
        self.sync_tx();
    }

    /// Takes what has arrived, and releases it at the next sync.
    pub fn receive(&self) -> Vec<Vec<u8>> {
        assert_eq!(self.rx.sync(&self.rx_driver), Outcome::Done);
        take_frames(&self.rx)
    }

    /// Receives until there are that many frames; panics after half a minute, which only a bug takes.
    pub fn receive_all(&self, count: usize) -> Vec<Vec<u8>> {
        let deadline = Instant::now() + Duration::from_secs(30);
        let mut frames = self.receive();
        while frames.len() < count {
            assert!(Instant::now() < deadline, "only {} frames arrive", frames.len());
            let limit = Timespec { tv_sec: 30, tv_nsec: 0 };
            poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&limit)).unwrap();
            frames.extend(self.receive());
        }
        frames
    }
}
