//! A port's ring without a port, and a program's queues beside it, for tests of what moves packets between them.

use std::sync::{Arc, atomic::Ordering::*};

use proptest::prelude::*;
use ringway_abi::Dir;
use ringway_kring::Kring;
use ringway_region::{Layout, Region, RingInit, RingView, Sizes};

use crate::{abi::TP4_DESC_KERNEL, desc::Desc, stepped::Queues, sys::Words};

pub const SLOTS: u32 = 16;
pub const DESCS: u32 = 32;
const PAGES: u32 = 8;
const FRAME_SIZE: usize = 2048;
/// Two a page.
pub const FRAMES: u64 = 2 * PAGES as u64;

/// A ring of a port, and the queues of a program.
pub struct World {
    pub queues: Queues,
    pub region: Arc<Region>,
    kring: Kring,
}

impl World {
    /// A ring for `dir` with buffers of `size` bytes. What is in a buffer, or in a frame, tells which it is.
    pub fn new(dir: Dir, size: u32) -> World {
        let sizes = Sizes {
            if_size: 1024,
            if_num: 1,
            ring_size: 256 + 16 * SLOTS,
            ring_num: 2,
            buf_size: size,
            buf_num: 2 + SLOTS,
        };
        let region = Arc::new(Region::create(1, Layout::new(&sizes, 0).unwrap()).unwrap());
        let bufs: Vec<u32> = (2..2 + SLOTS).collect();
        let init = RingInit { dir, ringid: 0, num_slots: SLOTS };
        let kring = Kring::create(&region, 0, &init, &bufs).unwrap();
        for buf in bufs {
            region.buf(buf).unwrap().write(0, &vec![buf as u8; size as usize]);
        }
        let queues = Queues::new(DESCS as usize, PAGES as usize);
        for idx in 0..FRAMES {
            queues.frame(idx).unwrap().write(0, &[0x80 | idx as u8; FRAME_SIZE]);
        }
        World { queues, region, kring }
    }

    pub fn ring(&self) -> RingView {
        self.kring.ring().clone()
    }

    /// What is in the program's frames.
    pub fn frames(&self) -> Vec<u8> {
        let mut bytes = vec![0; FRAMES as usize * FRAME_SIZE];
        for (idx, bytes) in (0..).zip(bytes.chunks_mut(FRAME_SIZE)) {
            self.queues.frame(idx).unwrap().copy_to(FRAME_SIZE, bytes);
        }
        bytes
    }

    /// All descriptors of a ring of the program's.
    pub fn descs(&self, ring: usize) -> Vec<[u64; 2]> {
        (0..DESCS as usize).map(|at| self.queues.read(ring, at)).collect()
    }
}

/// The program hands descriptors over, from slot `at` of its ring on.
pub fn hand_over(ring: &Words, at: usize, descs: &[Desc]) {
    for (n, desc) in descs.iter().enumerate() {
        let [first, second] = ring.pair(at + n);
        first.store(desc.idx, Relaxed);
        let flags = desc.flags | TP4_DESC_KERNEL;
        second.store(Desc { flags, ..*desc }.second(), Release);
    }
}

/// Any descriptors; most are good.
pub fn any_descs() -> impl Strategy<Value = Vec<Desc>> {
    let idx = prop_oneof![8 => 0..FRAMES, 1 => Just(FRAMES), 1 => Just(u64::MAX)];
    let len = prop_oneof![8 => 1..2049u32, 1 => Just(0), 1 => 2049..70_000u32, 1 => Just(u32::MAX)];
    let offset = prop_oneof![8 => Just(0u16), 1 => 0..300u16, 1 => Just(2048), 1 => any::<u16>()];
    // Those that mean nothing are ignored.
    let flags = prop_oneof![8 => Just(0u8), 2 => Just(1), 1 => any::<u8>()];
    let desc = (idx, len, offset, any::<u8>(), flags)
        .prop_map(|(idx, len, offset, error, flags)| Desc { idx, len, offset, error, flags });
    proptest::collection::vec(desc, 0..=DESCS as usize)
}
