//! A hostile program: a region with the rings of a port, of a pipe and of monitors, and no respect.

use std::sync::{Arc, atomic::AtomicBool};

use ringway_abi::Dir;
use ringway_kring::{Doorbell, Kring, Offsets};
use ringway_mirror::{Mirror, MirrorMode, Mirrors};
use ringway_region::{Layout, Region, RingInit, Sizes};
use ringway_ring::{Monitor, PipeRx, PipeTx, WorkerServed};
use ringway_switch_port::PortMirrors;
use ringway_vale::{RingPort, RxSide, TxSide};

use crate::{Record, guard::Guard, scribble};

/// Direction and slots of each ring: those of the port, of both ends of a pipe, and of monitors that
/// take buffers and that get copies.
const RINGS: [(Dir, u32); 8] = [
    (Dir::Tx, 80),
    (Dir::Tx, 16),
    (Dir::Rx, 80),
    (Dir::Rx, 16),
    (Dir::Tx, 32),
    (Dir::Rx, 32),
    (Dir::Rx, 16),
    (Dir::Rx, 24),
];
/// Slots of the port's transmit rings.
pub const SENT: u32 = RINGS[0].1 + RINGS[1].1;
/// Bytes of a buffer: the least, and such as hold the longest slot, among them.
const SIZES: [u32; 4] = [256, 2048, 64, 65536];
const PIPE: [usize; 2] = [4, 5];
const TAKES: usize = 6;
const COPIES: usize = 7;

/// A region with `rings`, whose buffers are of `buf_size` bytes. The first that is no ring's is
/// returned too.
pub fn region(rings: &[(Dir, u32)], buf_size: u32) -> (Arc<Region>, Vec<Kring>, u32) {
    let most = rings.iter().map(|(_, slots)| *slots).max().unwrap_or(0);
    let total: u32 = rings.iter().map(|(_, slots)| *slots).sum();
    let sizes = Sizes {
        if_size: 1024,
        if_num: 1,
        ring_size: 256 + 16 * most,
        ring_num: rings.len() as u32,
        buf_size,
        buf_num: 2 + total + 8,
    };
    let region = Arc::new(Region::create(2, Layout::new(&sizes, 0).unwrap()).unwrap());
    let mut next = 2;
    let krings = (0..).zip(rings).map(|(object, &(dir, num_slots))| {
        let bufs: Vec<u32> = (next..next + num_slots).collect();
        next += num_slots;
        let init = RingInit { dir, ringid: object as u16, num_slots };
        Kring::create(&region, object, &init, &bufs).unwrap()
    });
    let krings = krings.collect();
    (region, krings, next)
}

pub fn mac(port: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, port]
}

pub struct Program {
    /// Buffers 0 and 1 are nobody's.
    _guard: Guard,
    region: Arc<Region>,
    rings: Vec<Kring>,
    doorbell: Arc<Doorbell>,
}

impl Program {
    /// With buffers of the size that `which` chooses; `own` is its address.
    pub fn new(which: u8, own: u8) -> Program {
        let (region, rings, _) = region(&RINGS, SIZES[usize::from(which) % SIZES.len()]);
        // What a frame may begin with: addresses, a tag, IPv4, TCP.
        let mut frame = [0; 64];
        frame[..6].copy_from_slice(&mac(2));
        frame[6..12].copy_from_slice(&mac(own));
        frame[12..20].copy_from_slice(&[0x81, 0, 0, 7, 8, 0, 0x45, 0]);
        (frame[27], frame[50]) = (6, 0x50);
        for slot in 0..RINGS[0].1 {
            let ring = rings[0].ring();
            ring.buf(ring.slot(slot).buf_idx).unwrap().write(0, &frame);
        }
        let _guard = Guard::new(&region, 0, 2);
        Program { _guard, region, rings, doorbell: Arc::new(Doorbell::new().unwrap()) }
    }

    /// The bridge's side of the port.
    pub fn port(&self) -> Box<RingPort> {
        let tx =
            self.rings[..2].iter().map(|ring| TxSide::new(ring.clone(), self.doorbell.clone()));
        let rx =
            self.rings[2..4].iter().map(|ring| RxSide::new(ring.clone(), self.doorbell.clone()));
        let receives = Arc::new(AtomicBool::new(true));
        Box::new(RingPort::new(tx.collect(), rx.collect(), self.doorbell.clone(), receives))
    }

    pub fn data_size(&self) -> u32 {
        self.region.layout().data_size()
    }

    fn ring(&self, record: &Record) -> &Kring {
        &self.rings[usize::from(record.ring) % self.rings.len()]
    }

    /// Writes eight bytes anywhere but into the buffers.
    pub fn scribble(&self, record: &Record) {
        scribble::scribble(&self.region, record.number, record.word);
    }

    pub fn set_slot(&self, record: &Record) {
        let Record { at, number, word, .. } = *record;
        scribble::set_slot(&self.region, self.ring(record), at, number, word);
    }

    /// Writes eight bytes into a slot's buffer.
    pub fn set_bytes(&self, record: &Record) {
        let ring = self.ring(record).ring();
        if let Some(buf) = ring.buf(ring.slot(u32::from(record.at) % ring.num_slots()).buf_idx) {
            buf.write(record.number as usize % 128, &record.word.to_le_bytes());
        }
    }

    /// Says anything of its cursors.
    pub fn publish(&self, record: &Record) {
        let ring = self.ring(record);
        ring.csb().app.publish(record.number, record.word as u32);
        ring.ring().set_head(record.number);
        ring.ring().set_cur(record.word as u32);
    }

    /// Sends, or releases, so many slots, as an honest program would: each with so many bytes.
    pub fn send(&self, record: &Record) {
        let kring = self.ring(record);
        let (ring, mut at) = (kring.ring(), kring.bounded(kring.csb().app.head()));
        for i in 0..u32::from(record.at) % ring.num_slots() {
            if kring.dir() == Dir::Tx {
                let more = (record.word >> (i % 64) & 1) as u16 * ringway_abi::NS_MOREFRAG;
                ring.set_slot(at, ring.slot(at).buf_idx, record.number as u16, more);
            }
            at = ring.next(at);
        }
        kring.csb().app.publish(at, at);
        ring.set_head(at);
        ring.set_cur(at);
    }

    /// Syncs a ring with its driver.
    pub fn sync(&self, record: &Record) {
        let doorbell = || self.doorbell.clone();
        let [tx, rx] = PIPE.map(|at| self.rings[at].clone());
        let ring = self.ring(record);
        match usize::from(record.ring) % self.rings.len() {
            4 => ring.sync(&PipeTx { peer: rx, receiver: doorbell() }),
            5 => ring.sync(&PipeRx { peer: tx, sender: doorbell() }),
            TAKES | COPIES => ring.sync(&Monitor),
            _ => ring.sync(&WorkerServed::new(doorbell())),
        };
    }

    /// Monitors of all rings of the port, or some.
    pub fn mirrors(&self, record: &Record) -> PortMirrors {
        let (mask, max) = (u64::MAX >> (record.word & 63), record.number % (self.data_size() + 1));
        let mirrors = |shift: i32, takes: MirrorMode, copies: MirrorMode| {
            let mirror = |bit: u8, place: usize, way: MirrorMode| {
                let mirror = Mirror::new(self.rings[place].clone(), self.doorbell.clone(), way);
                let offsets = [Offsets { mask, max, gap: 0 }, Offsets::default()];
                (record.at >> shift & bit != 0).then(|| mirror.with_offsets(offsets))
            };
            let both = [mirror(1, TAKES, takes), mirror(2, COPIES, copies)];
            Mirrors::from_iter(both.into_iter().flatten())
        };
        let tx = |ring| mirrors(2 * ring, MirrorMode::SwapSent, MirrorMode::CopySent);
        let rx = |ring| mirrors(4 + 2 * ring, MirrorMode::SwapReceived, MirrorMode::CopyReceived);
        PortMirrors { tx: vec![tx(0), tx(1)], rx: vec![rx(0), rx(1)] }
    }
}
