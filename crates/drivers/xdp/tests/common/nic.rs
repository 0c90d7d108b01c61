//! A NIC as the owner of a netmap port has it: two rings in a region, and their drivers.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, atomic::Ordering::Relaxed};
use std::time::{Duration, Instant};

use ringway_abi::{Dir, NS_MOREFRAG};
use ringway_kring::{Kring, Outcome};
use ringway_nic_setup::{Interface, Mode, XdpProgram, Xsk, XskConfig, in_netns};
use ringway_region::{Layout, Region, RingInit, Sizes};
use ringway_testkit::{Netns, frame, take_frames};
use ringway_xdp::{FrameMemory, MAX_FRAGS, RX_HEADROOM, RingSizes, XdpRx, XdpTx};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{Wire, attach};

pub const SLOTS: u32 = 256;

/// A region that four NICs fit.
pub fn region() -> Arc<Region> {
    let sizes = Sizes {
        if_size: 1024,
        if_num: 2,
        ring_size: 4608,
        ring_num: 8,
        buf_size: 2048,
        buf_num: 2 + 8 * SLOTS,
    };
    let layout = Layout::new(&sizes, RX_HEADROOM).unwrap();
    Arc::new(Region::create(1, layout).unwrap())
}

/// The two rings of a NIC, opened by one process.
pub struct Rings {
    pub tx: Kring,
    pub rx: Kring,
    pub tx_driver: XdpTx,
    pub rx_driver: XdpRx,
}

/// A NIC in netmap mode. NIC `number` of a region has the ring objects and the buffers that go with
/// the number.
pub struct Nic {
    pub rings: Rings,
    pub region: Arc<Region>,
    pub number: u32,
    frags: bool,
    socket: Arc<OwnedFd>,
    _program: XdpProgram,
}

pub const SIZES: RingSizes = RingSizes { fill: SLOTS, completion: SLOTS, rx: SLOTS, tx: SLOTS };

/// Spare buffers of a ring: as many as there is room for.
pub const SPARES: u32 = 16;

/// Buffers that [the socket of one](Nic::reaching_some) reaches.
pub const REACH: u32 = 2 + 2 * SLOTS + 2 * SPARES;

/// A ring is made with this buffer and those that follow, one a slot.
pub fn first_buffer(number: u32, dir: Dir) -> u32 {
    2 + SLOTS * (2 * number + u32::from(dir == Dir::Rx))
}

/// One at each end of a wire.
pub fn nics(wire: &Wire) -> [Nic; 2] {
    [Nic::new(&wire.a, "a0", &region(), 0), Nic::new(&wire.b, "b0", &region(), 0)]
}

/// Waits until one can be read; panics after half a minute, which only a bug takes.
pub fn wait<const N: usize>(nics: [&Nic; N]) {
    let mut fds = nics.map(|nic| PollFd::from_borrowed_fd(nic.as_fd(), PollFlags::IN));
    let limit = Timespec { tv_sec: 30, tv_nsec: 0 };
    assert!(poll(&mut fds, Some(&limit)).unwrap() > 0, "nothing arrives");
}

impl Nic {
    /// With packets of several buffers.
    pub fn new(netns: &Netns, name: &str, region: &Arc<Region>, number: u32) -> Nic {
        Nic::open(netns, name, region, number, true, None, |_| {})
    }

    /// The first of a region, whose socket reaches as many buffers as its rings have and [`SPARES`] more for each.
    /// `prepare`: what becomes of its rx ring before the kernel gets any buffer.
    #[allow(dead_code)] // Not in every test.
    pub fn reaching_some(
        netns: &Netns,
        name: &str,
        region: &Arc<Region>,
        prepare: impl FnOnce(&Kring),
    ) -> Nic {
        Nic::open(netns, name, region, 0, true, Some(REACH), prepare)
    }

    /// As where the kernel has no packets of several buffers.
    pub fn without_frags(netns: &Netns, name: &str, region: &Arc<Region>, number: u32) -> Nic {
        Nic::open(netns, name, region, number, false, None, |_| {})
    }

    fn open(
        netns: &Netns,
        name: &str,
        region: &Arc<Region>,
        number: u32,
        frags: bool,
        reach: Option<u32>,
        prepare: impl FnOnce(&Kring),
    ) -> Nic {
        let mut program = attach(netns, name).unwrap();
        let xsk = in_netns(netns.fd().as_fd(), || {
            let config = XskConfig {
                interface: &Interface::by_name(name).unwrap(),
                queue: 0,
                memory: match reach {
                    Some(reach) => FrameMemory::of_buffers(region, reach),
                    None => FrameMemory::of_region(region),
                },
                chunk_size: 2048,
                sizes: SIZES,
                frags,
                modes: Mode::preference(program.mode()),
            };
            Xsk::open(&config).unwrap()
        })
        .unwrap();
        program.set_queue(0, &xsk.socket).unwrap();
        let make = |dir| {
            let object = 2 * number + u32::from(dir == Dir::Rx);
            let first = first_buffer(number, dir);
            let bufs: Vec<u32> = (first..first + SLOTS).collect();
            let init = RingInit { dir, ringid: 0, num_slots: SLOTS };
            Kring::create(region, object, &init, &bufs).unwrap()
        };
        let krings = [make(Dir::Tx), make(Dir::Rx)];
        if let Some(reach) = reach {
            let mut spares = reach - 2 * SPARES..reach;
            for kring in &krings {
                let places = kring.ring().spares().count() as u32;
                assert_eq!(places, SPARES);
                kring
                    .ring()
                    .spares()
                    .zip(&mut spares)
                    .for_each(|(place, i)| place.store(i, Relaxed));
                kring.owner().spares.store(places, Relaxed);
                kring.owner().in_umem.store(reach, Relaxed);
            }
        }
        prepare(&krings[1]);
        let socket = Arc::new(xsk.socket.fd);
        assert_eq!(xsk.socket.frags, frags);
        let rings = Rings::open(region, number, &socket, frags);
        let region = region.clone();
        let nic = Nic { rings, region, number, frags, socket, _program: program };
        nic.rings.sync_rx();
        nic
    }

    /// The rings as another process sees them: by mappings of its own.
    pub fn open_again(&self) -> Rings {
        let memfd = self.region.memfd().try_clone_to_owned().unwrap();
        let region = Arc::new(Region::open(memfd, 1, *self.region.layout()).unwrap());
        let socket = Arc::new(self.socket.try_clone().unwrap());
        Rings::open(&region, self.number, &socket, self.frags)
    }

    /// Reverses the order in which the kernel will use the buffers that it has: all that were posted,
    /// none used yet.
    pub fn reverse_fill(&self, count: u32) {
        let mut fill = ringway_xdp::Rings::map(self.socket.as_fd(), &SIZES).unwrap().fill;
        let posted: Vec<u64> = (0..fill.pending()).map(|i| fill.peek_pending(i)).collect();
        assert_eq!(posted.len() as u32, count);
        for (back, &address) in (1..).zip(&posted) {
            fill.write(0_u32.wrapping_sub(back), address);
        }
    }

    /// The buffers in all slots.
    pub fn buffers(&self) -> Vec<u32> {
        let indices = |kring: &Kring| -> Vec<u32> {
            (0..SLOTS).map(|i| kring.ring().slot(i).buf_idx).collect()
        };
        [indices(&self.rings.tx), indices(&self.rings.rx)].concat()
    }
}

impl AsFd for Nic {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Rings {
    fn open(region: &Arc<Region>, number: u32, socket: &Arc<OwnedFd>, frags: bool) -> Rings {
        let tx_driver = XdpTx::new(socket.clone(), SIZES, region.layout()).unwrap();
        let rx_driver = XdpRx::new(socket.clone(), SIZES, region.layout()).unwrap();
        let open = |object, dir| Kring::open(region, object, dir, SLOTS).unwrap();
        Rings {
            tx: open(2 * number, Dir::Tx),
            rx: open(2 * number + 1, Dir::Rx),
            tx_driver: tx_driver.of_pair().with_frags(if frags { MAX_FRAGS } else { 1 }),
            rx_driver: if frags { rx_driver.with_frags() } else { rx_driver },
        }
    }

    pub fn sync_tx(&self) {
        assert_eq!(self.tx.sync(&self.tx_driver), Outcome::Done);
    }

    pub fn sync_rx(&self) {
        assert_eq!(self.rx.sync(&self.rx_driver), Outcome::Done);
    }

    /// Slots that the program may fill.
    pub fn room(&self) -> u32 {
        let ring = self.tx.ring();
        ring.distance(ring.head(), ring.tail())
    }

    /// Sends frames of these numbers, as many as there is room for; returns how many.
    pub fn send(&self, numbers: std::ops::Range<u32>, length: usize) -> u32 {
        let ring = self.tx.ring();
        let (mut at, tail, mut sent) = (ring.head(), ring.tail(), 0);
        for number in numbers {
            if at == tail {
                break;
            }
            let slot = ring.slot(at);
            ring.buf(slot.buf_idx).unwrap().write(0, &frame(number, length));
            ring.set_slot(at, slot.buf_idx, length as u16, 0);
            at = ring.next(at);
            sent += 1;
        }
        ring.set_head(at);
        ring.set_cur(at);
        self.sync_tx();
        sent
    }

    /// Sends slots as they are: buffer, length and flags.
    pub fn put(&self, slots: &[(u32, u16, u16)]) {
        let ring = self.tx.ring();
        let mut at = ring.head();
        for &(buf, len, flags) in slots {
            ring.set_slot(at, buf, len, flags);
            at = ring.next(at);
        }
        ring.set_head(at);
        ring.set_cur(at);
        self.sync_tx();
    }

    /// Writes `bytes` into the slots at head, `each` in one, joined to one packet if they are more,
    /// and moves head behind them; the next sync sends it.
    pub fn stage(&self, bytes: &[u8], each: usize) {
        let ring = self.tx.ring();
        let mut at = ring.head();
        let mut left = bytes.chunks(each).peekable();
        while let Some(part) = left.next() {
            assert_ne!(at, ring.tail(), "no room");
            let buf = ring.slot(at).buf_idx;
            ring.buf(buf).unwrap().write(0, part);
            let flags = if left.peek().is_some() { NS_MOREFRAG } else { 0 };
            ring.set_slot(at, buf, part.len() as u16, flags);
            at = ring.next(at);
        }
        ring.set_head(at);
        ring.set_cur(at);
    }

    /// Takes what has arrived, packets of several slots joined, and releases it at the next sync.
    pub fn receive(&self) -> Vec<Vec<u8>> {
        self.sync_rx();
        take_frames(&self.rx)
    }

    /// Syncs until every slot sent has completed, which takes as long as the receiver keeps frames;
    /// panics after half a minute, which only a bug takes.
    pub fn finish(&self) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while self.room() != SLOTS - 1 {
            assert!(Instant::now() < deadline, "slots do not come back");
            self.sync_tx();
            std::thread::yield_now();
        }
    }
}
