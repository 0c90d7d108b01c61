//! A socket's two queues without a socket, a port or a thread: each step is a call. For measurements and fuzzing.

use std::{sync::Arc, sync::atomic::Ordering::*};

use ringway_region::{Buf, Mapping, RingView};

use crate::{
    abi::tpacket_memreg_req,
    area::Area,
    desc::{Desc, DescRing},
    rx::{Found, RxQueue},
    socket::rings_file,
    sys::Words,
    tx::TxQueue,
};

const PAGE: usize = 4096;
const FRAME_SIZE: u32 = 2048;
/// Words of a descriptor.
const WORDS: usize = 2;

/// A page of frames.
#[repr(align(4096))]
struct Page(#[allow(dead_code, reason = "the queues use it by its address")] [u8; PAGE]);

/// Queues, and the memory that a program would have.
pub struct Queues {
    pub(crate) rx: RxQueue,
    pub(crate) tx: TxQueue,
    area: Area,
    /// The receive ring's words, then the transmit ring's.
    pub(crate) words: [Words; 2],
    _frames: Vec<Page>,
}

impl Queues {
    /// Rings of so many descriptors, a power of two, and twice as many frames of 2048 bytes as pages.
    ///
    /// # Panics
    /// Without memory.
    pub fn new(descs: usize, pages: usize) -> Queues {
        let frames: Vec<Page> = (0..pages).map(|_| Page([0; PAGE])).collect();
        let request = tpacket_memreg_req {
            addr: frames.as_ptr() as u64,
            len: (pages * PAGE) as u64,
            frame_size: FRAME_SIZE,
            data_headroom: 0,
        };
        let area = Area::register(&request).expect("memory of ours");
        let bytes = descs * WORDS * size_of::<u64>();
        let file = rings_file(2 * bytes).expect("memory for rings");
        let mapping = Arc::new(Mapping::open(file, 2 * bytes).expect("memory for rings"));
        let words = |ring| Words::new(&mapping, ring * bytes, bytes / 8).expect("it is inside");
        let ring = |ring| DescRing::new(words(ring), 0);
        Queues {
            rx: RxQueue::new(ring(0), area.clone(), 0),
            tx: TxQueue::new(ring(1), area.clone()),
            area,
            words: [words(0), words(1)],
            _frames: frames,
        }
    }

    /// Writes a descriptor as a program does, its two words: into the receive ring, 0, or the transmit ring, 1.
    pub fn write(&self, ring: usize, desc: usize, [first, second]: [u64; 2]) {
        let words = &self.words[ring % 2];
        let pair = words.pair(desc % (words.len() / WORDS));
        pair[0].store(first, Relaxed);
        pair[1].store(second, Release);
    }

    /// Reads it again.
    pub fn read(&self, ring: usize, desc: usize) -> [u64; 2] {
        let words = &self.words[ring % 2];
        words.pair(desc % (words.len() / WORDS)).map(|word| word.load(Acquire))
    }

    /// A frame, whole. `None`: there is none of that number.
    pub fn frame(&self, idx: u64) -> Option<Buf<'_>> {
        self.area.filled(&Desc { idx, len: FRAME_SIZE, offset: 0, error: 0, flags: 0 })
    }

    /// Moves packets out of a ring into frames; whether there were some.
    pub fn receive(&mut self, ring: &RingView) -> bool {
        self.rx.take(ring) == Found::Packets
    }

    /// Moves packets into a ring that `sync` syncs; whether all there were.
    pub fn send(&mut self, ring: &RingView, sync: impl Fn()) -> bool {
        self.tx.fill(ring, sync)
    }
}
