//! Any bytes, anywhere in the memory of a network interface's rings: the region's, and the kernel's, which
//! every process with the socket can write to. The drivers come to an end, and touch nothing that is not
//! the region's.
//!
//! The input is a list of records of 16 bytes, as for `slots`. What the kernel does is among them.
#![no_main]

#[path = "slots/guard.rs"]
mod guard;
#[path = "slots/scribble.rs"]
mod scribble;

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use ringway_abi::{Dir, NS_MOREFRAG};
use ringway_kring::Kring;
use ringway_region::{Layout, Region, RingInit, Sizes};
use ringway_xdp::{MAX_FRAGS, RX_HEADROOM, RingSizes, XdpRx, XdpTx, fake::FakeKernel};
use rustix::net::xdp::{
    XDP_PGOFF_RX_RING, XDP_PGOFF_TX_RING, XDP_UMEM_PGOFF_COMPLETION_RING, XDP_UMEM_PGOFF_FILL_RING,
};

use crate::guard::Guard;

/// Records looked at, so that an input ends soon.
const LONGEST: usize = 256;
const SLOTS: u32 = 32;
/// The kernel's rings, of other sizes than the program's.
const SIZES: RingSizes = RingSizes { fill: 64, completion: 16, rx: 16, tx: 8 };
const KERNEL: [u64; 4] = [
    XDP_PGOFF_RX_RING,
    XDP_PGOFF_TX_RING,
    XDP_UMEM_PGOFF_FILL_RING,
    XDP_UMEM_PGOFF_COMPLETION_RING,
];
/// Bytes of the indices in front of such a ring's entries, and of the smallest with its entries.
const INDICES: u64 = 192;
const KERNEL_RING: u64 = INDICES + 8 * 16;

#[derive(Clone, Copy)]
struct Record {
    what: u8,
    ring: u8,
    at: u8,
    number: u32,
    word: u64,
}

impl Record {
    fn read(bytes: &[u8; 16]) -> Record {
        let [what, ring, at, _, a, b, c, d, word @ ..] = *bytes;
        let (number, word) = (u32::from_le_bytes([a, b, c, d]), u64::from_le_bytes(word));
        Record { what, ring, at, number, word }
    }
}

struct Nic {
    /// Buffers 0 and 1 are nobody's.
    _guard: Guard,
    region: Arc<Region>,
    /// Transmit, receive.
    rings: [Kring; 2],
    tx: XdpTx,
    rx: XdpRx,
    kernel: FakeKernel,
}

impl Nic {
    fn new(frags: bool) -> Nic {
        let sizes = Sizes {
            if_size: 1024,
            if_num: 1,
            ring_size: 256 + 16 * SLOTS,
            ring_num: 2,
            buf_size: 2048,
            buf_num: 2 + 2 * SLOTS + 8,
        };
        let layout = Layout::new(&sizes, RX_HEADROOM).unwrap();
        let region = Arc::new(Region::create(1, layout).unwrap());
        let ring = |object: u32, dir| {
            let first = 2 + SLOTS * object;
            let bufs: Vec<u32> = (first..first + SLOTS).collect();
            let init = RingInit { dir, ringid: 0, num_slots: SLOTS };
            Kring::create(&region, object, &init, &bufs).unwrap()
        };
        let rings = [ring(0, Dir::Tx), ring(1, Dir::Rx)];
        let kernel = FakeKernel::new(SIZES).unwrap();
        let (tx, rx) = (kernel.tx(&layout).unwrap(), kernel.rx(&layout).unwrap());
        let (tx, rx) = if frags { (tx.with_frags(MAX_FRAGS), rx.with_frags()) } else { (tx, rx) };
        Nic { _guard: Guard::new(&region, 0, 2), region, rings, tx, rx, kernel }
    }

    fn ring(&self, record: &Record) -> &Kring {
        &self.rings[usize::from(record.ring) % 2]
    }

    /// Writes eight bytes anywhere but into the buffers.
    fn scribble(&self, record: &Record) {
        scribble::scribble(&self.region, record.number, record.word);
    }

    /// Writes eight bytes into a ring of the kernel's.
    fn scribble_kernel(&self, record: &Record) {
        let ring = KERNEL[usize::from(record.ring) % KERNEL.len()];
        // Indices come more often than by chance.
        let at = match record.at {
            0..128 => 64 * u64::from(record.at & 1),
            _ => 8 * (u64::from(record.number) % (KERNEL_RING / 8)),
        };
        rustix::io::pwrite(self.kernel.memory(), &record.word.to_le_bytes(), ring + at).unwrap();
    }

    fn set_slot(&self, record: &Record) {
        let Record { at, number, word, .. } = *record;
        scribble::set_slot(&self.region, self.ring(record), at, number, word);
    }

    fn publish(&self, record: &Record) {
        let ring = self.ring(record);
        ring.csb().app.publish(record.number, record.word as u32);
        ring.ring().set_head(record.number);
        ring.ring().set_cur(record.word as u32);
    }

    /// Sends, or releases, so many slots, as an honest program would: each with so many bytes.
    fn send(&self, record: &Record) {
        let kring = self.ring(record);
        let (ring, mut at) = (kring.ring(), kring.bounded(kring.csb().app.head()));
        for i in 0..u32::from(record.at) % ring.num_slots() {
            if kring.dir() == Dir::Tx {
                let more = (record.word >> (i % 64) & 1) as u16 * NS_MOREFRAG;
                ring.set_slot(at, ring.slot(at).buf_idx, record.number as u16, more);
            }
            at = ring.next(at);
        }
        kring.csb().app.publish(at, at);
        ring.set_head(at);
        ring.set_cur(at);
    }

    fn sync(&self, dir: Dir) {
        match dir {
            Dir::Tx => self.rings[0].sync(&self.tx),
            Dir::Rx => self.rings[1].sync(&self.rx),
        };
    }
}

fn run(bytes: &[u8]) {
    let mut records = bytes.as_chunks().0.iter().take(LONGEST).map(Record::read);
    let Some(first) = records.next() else { return };
    let mut nic = Nic::new(first.what & 1 != 0);
    for record in records {
        match record.what % 16 {
            0 => nic.scribble(&record),
            1 => nic.set_slot(&record),
            2 => nic.publish(&record),
            3..6 => nic.send(&record),
            6..8 => nic.sync(Dir::Tx),
            8..10 => nic.sync(Dir::Rx),
            10 => drop(nic.kernel.send()),
            11..13 => drop(nic.kernel.receive(record.at.into(), record.number % 4096)),
            _ => nic.scribble_kernel(&record),
        }
    }
    nic.sync(Dir::Tx);
    nic.sync(Dir::Rx);
}

fuzz_target!(|bytes: &[u8]| run(bytes));
