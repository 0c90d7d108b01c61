//! A client that receives from an interface in packet mode: out of blocks that a kernel has filled. A file is the
//! kernel here.

use std::{
    fs::File,
    io,
    os::{fd::OwnedFd, unix::fs::FileExt},
    sync::Arc,
};

use ringway_kring::{Kring, Outcome};
use ringway_packet::{Geometry, PacketRx};
use rustix::fs::{MemfdFlags, memfd_create};

use crate::{
    cases::{LENGTH, PACKETS, SLOTS, rings, take},
    counted,
};

const GEOMETRY: Geometry = Geometry { block_size: 64 << 10, blocks: 4 };

/// Of `tpacket_block_desc` and `tpacket3_hdr`: status, frames and first; the length of both.
const STATUS: u64 = 8;
const HEADER: u32 = 48;
/// From a header to its frame: behind the `sockaddr_ll` and the virtio-net header.
const FRAME: u32 = 96;
const STRIDE: u32 = 160;
const USER: u32 = 1;

/// With `batch` frames in a block.
pub fn receive(batch: u32) {
    let file = memfd_create("blocks", MemfdFlags::CLOEXEC).expect("a file of memory");
    let file = File::from(file);
    file.set_len(u64::from(GEOMETRY.block_size * GEOMETRY.blocks)).expect("its length");
    let socket: OwnedFd = file.try_clone().expect("the same file").into();
    let [_, rx] = rings(0);
    let driver = PacketRx::new(Arc::new(socket), GEOMETRY, rx.ring().region().layout());
    let driver = driver.expect("it is as long as a ring");
    let sync = |rx: &Kring| assert_eq!(rx.sync(&driver), Outcome::Done);
    for turn in 0..(SLOTS + PACKETS) / batch {
        fill(&file, turn % GEOMETRY.blocks, batch).expect("a block");
        let step = || {
            sync(&rx);
            assert_eq!(take(&rx), batch);
        };
        if turn < SLOTS / batch { step() } else { counted(step) }
    }
}

/// Fills a block, and hands it over.
fn fill(file: &File, block: u32, frames: u32) -> io::Result<()> {
    let start = u64::from(block * GEOMETRY.block_size);
    let mut bytes = vec![0; (HEADER + frames * STRIDE) as usize];
    let mut put = |at: u32, word: u32| {
        bytes[at as usize..at as usize + 4].copy_from_slice(&word.to_ne_bytes());
    };
    put(12, frames);
    put(16, HEADER);
    for frame in 0..frames {
        let header = HEADER + frame * STRIDE;
        put(header, if frame + 1 < frames { STRIDE } else { 0 });
        put(header + 12, LENGTH.into());
        put(header + 16, LENGTH.into());
        put(header + 20, USER);
        put(header + 24, FRAME);
    }
    file.write_all_at(&bytes, start)?;
    // Last, as the kernel does.
    file.write_all_at(&USER.to_ne_bytes(), start + STATUS)
}
