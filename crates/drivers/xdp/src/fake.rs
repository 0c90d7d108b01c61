//! The kernel's side of an AF_XDP socket's rings, played by a test.
//!
//! What [`XdpTx`] and [`XdpRx`] do is repeatable then, to the instruction, and needs neither an
//! interface nor privileges. In place of the socket there is a memfd, in which the rings lie where
//! the kernel's would be mapped.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use ringway_region::Layout;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::net::xdp::{
    XDP_PGOFF_RX_RING, XDP_PGOFF_TX_RING, XDP_UMEM_PGOFF_COMPLETION_RING, XDP_UMEM_PGOFF_FILL_RING,
    XdpRingOffset,
};

use crate::rings::{Consumer, Desc, Producer};
use crate::sys::{Entry, Ring};
use crate::{RX_HEADROOM, RingSizes, Rings, XdpRx, XdpTx};

/// Each index on a cache line of its own, then the flags, then the entries.
const OFFSETS: XdpRingOffset =
    XdpRingOffset { producer: 0, consumer: 64, desc: 192, flags: Some(128) };

/// An interface that takes every frame, and gives what it is told to. It never asks for a kick.
pub struct FakeKernel {
    memory: Arc<OwnedFd>,
    sizes: RingSizes,
    fill: Consumer<u64>,
    completion: Producer<u64>,
    rx: Producer<Desc>,
    tx: Consumer<Desc>,
}

impl FakeKernel {
    /// Four empty rings.
    ///
    /// # Errors
    /// Those of `memfd_create(2)` and `mmap(2)`; EINVAL when a size is no power of two.
    pub fn new(sizes: RingSizes) -> io::Result<FakeKernel> {
        let memory = Arc::new(memfd_create("fake-xdp-rings", MemfdFlags::CLOEXEC)?);
        let entries = u64::from(sizes.completion) * size_of::<u64>() as u64;
        // Sparse: the other rings are mapped at lower offsets.
        ftruncate(&memory, XDP_UMEM_PGOFF_COMPLETION_RING + OFFSETS.desc + entries)?;
        let fill = map(&memory, sizes.fill, XDP_UMEM_PGOFF_FILL_RING)?;
        let completion = map(&memory, sizes.completion, XDP_UMEM_PGOFF_COMPLETION_RING)?;
        let rx = map(&memory, sizes.rx, XDP_PGOFF_RX_RING)?;
        let tx = map(&memory, sizes.tx, XDP_PGOFF_TX_RING)?;
        Ok(FakeKernel {
            memory,
            sizes,
            fill: Consumer::new(fill),
            completion: Producer::new(completion),
            rx: Producer::new(rx),
            tx: Consumer::new(tx),
        })
    }

    /// What stands for the socket: the rings are in it, each at its offset (`XDP_PGOFF_RX_RING`, ...). Any process
    /// that has a socket can write to these.
    pub fn memory(&self) -> BorrowedFd<'_> {
        self.memory.as_fd()
    }

    /// All four rings, as [`Rings::map`] has a socket's.
    ///
    /// # Errors
    /// As there.
    pub fn rings(&self) -> rustix::io::Result<Rings> {
        let RingSizes { fill, completion, rx, tx } = self.sizes;
        Ok(Rings {
            fill: Producer::new(map(&self.memory, fill, XDP_UMEM_PGOFF_FILL_RING)?),
            completion: Consumer::new(map(
                &self.memory,
                completion,
                XDP_UMEM_PGOFF_COMPLETION_RING,
            )?),
            rx: Consumer::new(map(&self.memory, rx, XDP_PGOFF_RX_RING)?),
            tx: Producer::new(map(&self.memory, tx, XDP_PGOFF_TX_RING)?),
        })
    }

    /// The driver of a tx ring in a region of this layout.
    ///
    /// # Errors
    /// As for [`XdpTx::new`].
    pub fn tx(&self, layout: &Layout) -> rustix::io::Result<XdpTx> {
        let completion = map(&self.memory, self.sizes.completion, XDP_UMEM_PGOFF_COMPLETION_RING)?;
        let tx = map(&self.memory, self.sizes.tx, XDP_PGOFF_TX_RING)?;
        XdpTx::over(self.memory.clone(), completion, tx, layout)
    }

    /// The driver of an rx ring in a region of this layout.
    ///
    /// # Errors
    /// As for [`XdpRx::new`].
    pub fn rx(&self, layout: &Layout) -> rustix::io::Result<XdpRx> {
        let rx = map(&self.memory, self.sizes.rx, XDP_PGOFF_RX_RING)?;
        let fill = map(&self.memory, self.sizes.fill, XDP_UMEM_PGOFF_FILL_RING)?;
        XdpRx::over(self.memory.clone(), rx, fill, layout)
    }

    /// Takes all frames off the TX ring, and completes them; returns how many.
    pub fn send(&mut self) -> u32 {
        self.send_up_to(u32::MAX)
    }

    /// The same of so many at most.
    pub fn send_up_to(&mut self, most: u32) -> u32 {
        let frames = self.tx.available(most);
        let frames = self.completion.free(frames);
        for i in 0..frames {
            self.completion.write(i, self.tx.read(i).address);
        }
        self.tx.release(frames);
        self.completion.submit(frames);
        frames
    }

    /// Receives up to `frames` frames of `length` bytes, as far as there are chunks; returns how
    /// many. What is in the chunks stays.
    pub fn receive(&mut self, frames: u32, length: u32) -> u32 {
        let frames = self.fill.available(frames);
        let frames = self.rx.free(frames);
        for i in 0..frames {
            // A client may have written any.
            let address = self.fill.read(i).wrapping_add(RX_HEADROOM.into());
            self.rx.write(i, Desc { address, length, options: 0 });
        }
        self.fill.release(frames);
        self.rx.submit(frames);
        frames
    }
}

fn map<T: Entry>(memory: &OwnedFd, size: u32, page_offset: u64) -> rustix::io::Result<Ring<T>> {
    // A file, unlike a socket, has no pages beyond its end: the last ring's entries reach it.
    Ring::map(memory.as_fd(), &OFFSETS, size, page_offset)
}
