//! Any descriptors of AF_PACKET V4, and any slots of the port's rings: moving packets comes to an end, and touches nothing
//! but the program's frames and the region's buffers.
//!
//! The input is a list of records of 24 bytes: what is done, where, and the two words of a descriptor.
#![no_main]

#[path = "slots/guard.rs"]
mod guard;

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use ringway_abi::Dir;
use ringway_kring::Kring;
use ringway_region::{Layout, Region, RingInit, Sizes};
use ringway_tpacket4::stepped::Queues;

use crate::guard::Guard;

/// Records looked at, so that an input ends soon.
const LONGEST: usize = 256;
const SLOTS: u32 = 16;
const DESCS: usize = 32;
/// Pages of frames: AddressSanitizer guards what is around them.
const PAGES: usize = 8;
const KERNEL: u64 = 0x80 << 56;

struct Record {
    what: u8,
    at: usize,
    flags: u16,
    words: [u64; 2],
}

impl Record {
    fn read(bytes: &[u8; 24]) -> Record {
        let word = |at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().unwrap());
        let flags = u16::from_le_bytes([bytes[2], bytes[3]]);
        Record { what: bytes[0], at: bytes[1].into(), flags, words: [word(8), word(16)] }
    }
}

/// A region with a tx and an rx ring; buffers 0 and 1 are nobody's.
fn rings() -> (Guard, Arc<Region>, [Kring; 2]) {
    let sizes = Sizes {
        if_size: 1024,
        if_num: 1,
        ring_size: 256 + 16 * SLOTS,
        ring_num: 2,
        buf_size: 2048,
        buf_num: 2 + 2 * SLOTS,
    };
    let region = Arc::new(Region::create(1, Layout::new(&sizes, 0).unwrap()).unwrap());
    let ring = |object: u32, dir| {
        let first = 2 + SLOTS * object;
        let bufs: Vec<u32> = (first..first + SLOTS).collect();
        let init = RingInit { dir, ringid: 0, num_slots: SLOTS };
        Kring::create(&region, object, &init, &bufs).unwrap()
    };
    let rings = [ring(0, Dir::Tx), ring(1, Dir::Rx)];
    (Guard::new(&region, 0, 2), region, rings)
}

fn run(bytes: &[u8]) {
    let (_guard, _region, [tx, rx]) = rings();
    let mut queues = Queues::new(DESCS, PAGES);
    for record in bytes.as_chunks().0.iter().take(LONGEST).map(Record::read) {
        let Record { what, at, flags, words: [first, second] } = record;
        match what % 8 {
            // As they are, or such as are more often good.
            0 => queues.write(at, at / 2, [first, second]),
            1 | 2 => {
                let good = second & 0x0700_07ff_0000_07ff | KERNEL;
                queues.write(at, at / 2, [first % (2 * PAGES as u64 + 1), good]);
            }
            3 => {
                let slot = at as u32 % SLOTS;
                rx.ring().set_slot(slot, first as u32, second as u16, flags);
            }
            // What the port's side does.
            4 => rx.ring().set_tail(first as u32 % (SLOTS + 2)),
            5 => tx.ring().set_tail(second as u32 % (SLOTS + 2)),
            6 => drop(queues.receive(rx.ring())),
            _ => drop(queues.send(tx.ring(), || ())),
        }
    }
    queues.receive(rx.ring());
    queues.send(tx.ring(), || ());
}

fuzz_target!(|bytes: &[u8]| run(bytes));
