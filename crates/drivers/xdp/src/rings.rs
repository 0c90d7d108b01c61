//! The four rings, mapped from a socket's descriptor in any process.
//!
//! Each ring is a power-of-two array with two free-running 32-bit indices in shared memory, one
//! written by us and one by the kernel:
//!
//! ```text
//!            we produce                              we consume
//!   FILL  u64 chunk address  --> kernel       kernel --> RX          Desc, a received frame
//!   TX    Desc, a frame      --> kernel       kernel --> COMPLETION  u64 address of a sent frame
//! ```
//!
//! Rules that this file keeps:
//! - The indices are read with acquire and published with release, once a batch; in between the
//!   views work on cached copies.
//! - Any process that holds the descriptor can write the indices and the entries. So a distance
//!   between indices is clamped to the ring's size, positions are masked, and an address that comes
//!   out of a ring is the caller's to check.
//! - One view of each ring is in use at a time, over all processes. A process that takes over makes a new
//!   one, or calls `resync`. Two at once would mix up entries, and no more: what is reached is
//!   masked into the mapping whatever the indices say.

use std::borrow::Borrow;
use std::marker::PhantomData;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{Ordering, fence};

use rustix::net::sockopt::xdp_mmap_offsets;
use rustix::net::xdp::{
    XDP_PGOFF_RX_RING, XDP_PGOFF_TX_RING, XDP_UMEM_PGOFF_COMPLETION_RING, XDP_UMEM_PGOFF_FILL_RING,
    XdpRingFlags,
};

use crate::sys::{Entry, Ring};

/// A frame on the RX or TX ring (`struct xdp_desc`).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Desc {
    /// Bytes from the start of the memory to the frame.
    pub address: u64,
    /// Bytes.
    pub length: u32,
    /// Flags (`XDP_PKT_CONTD`); the others are 0.
    pub options: u32,
}
const _: () = assert!(size_of::<Desc>() == 16);

impl Desc {
    const CONTD: u32 = 1;

    /// Whether the packet goes on in the next descriptor.
    #[inline]
    pub fn goes_on(&self) -> bool {
        self.options & Desc::CONTD != 0
    }

    /// The same, as a part of a packet that goes on in the next.
    #[inline]
    pub fn going_on(self) -> Desc {
        Desc { options: self.options | Desc::CONTD, ..self }
    }
}

/// Descriptors that a packet to be sent may have at most where the kernel copies: those of one with more are all
/// invalid. In zero-copy mode a driver may take fewer, and a packet with more stays on the ring for good, with all
/// behind it.
pub const MAX_FRAGS: u32 = 18;

/// Entries of each ring, powers of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingSizes {
    pub fill: u32,
    pub completion: u32,
    pub rx: u32,
    pub tx: u32,
}

impl Default for RingSizes {
    /// 2048 each: smaller and larger ones were measured to be no faster.
    fn default() -> RingSizes {
        RingSizes { fill: 2048, completion: 2048, rx: 2048, tx: 2048 }
    }
}

/// A socket's four rings. Dropping it unmaps them; until then they keep the socket bound.
pub struct Rings {
    /// Chunks for the kernel to receive into.
    pub fill: Producer<u64>,
    /// Addresses of consumed TX descriptors, in any order, bad ones included.
    pub completion: Consumer<u64>,
    /// Received frames.
    pub rx: Consumer<Desc>,
    /// Frames to send.
    pub tx: Producer<Desc>,
}

impl Rings {
    /// Maps the rings of the AF_XDP socket `fd`, whose rings have `sizes`. Needs no privilege.
    ///
    /// Errors: EINVAL when `sizes` is not what the socket was opened with (as far as the kernel
    /// notices: too large) or not powers of two; EOPNOTSUPP before kernel 5.4; those of `mmap(2)`.
    pub fn map(fd: BorrowedFd<'_>, sizes: &RingSizes) -> rustix::io::Result<Rings> {
        let (completion, tx) = map_tx(fd, sizes)?;
        let (rx, fill) = map_rx(fd, sizes)?;
        Ok(Rings {
            fill: Producer::new(fill),
            completion: Consumer::new(completion),
            rx: Consumer::new(rx),
            tx: Producer::new(tx),
        })
    }

    /// Takes all cursors from shared memory again: for a process that goes on after another (a
    /// parent after fork, a daemon after its client's death) moved them.
    pub fn resync(&mut self) {
        self.fill.resync();
        self.completion.resync();
        self.rx.resync();
        self.tx.resync();
    }
}

/// The COMPLETION and TX rings alone; errors as [`Rings::map`].
pub(crate) fn map_tx(
    fd: BorrowedFd<'_>,
    sizes: &RingSizes,
) -> rustix::io::Result<(Ring<u64>, Ring<Desc>)> {
    let at = xdp_mmap_offsets(fd)?;
    let completion = Ring::map(fd, &at.cr, sizes.completion, XDP_UMEM_PGOFF_COMPLETION_RING)?;
    Ok((completion, Ring::map(fd, &at.tx, sizes.tx, XDP_PGOFF_TX_RING)?))
}

/// The RX and FILL rings alone; errors as [`Rings::map`].
pub(crate) fn map_rx(
    fd: BorrowedFd<'_>,
    sizes: &RingSizes,
) -> rustix::io::Result<(Ring<Desc>, Ring<u64>)> {
    let at = xdp_mmap_offsets(fd)?;
    let fill = Ring::map(fd, &at.fr, sizes.fill, XDP_UMEM_PGOFF_FILL_RING)?;
    Ok((Ring::map(fd, &at.rx, sizes.rx, XDP_PGOFF_RX_RING)?, fill))
}

/// The side of a ring that we fill: FILL and TX. `R` is the ring itself or a reference to one.
pub struct Producer<T, R = Ring<T>> {
    ring: R,
    entries: PhantomData<T>,
    /// Ours: where the next entry goes. Ahead of the shared index by nothing between batches.
    head: u32,
    /// The kernel's, as last seen.
    tail: u32,
}

impl<T: Entry, R: Borrow<Ring<T>>> Producer<T, R> {
    /// A view with its cursors where shared memory has them.
    #[inline]
    pub(crate) fn new(ring: R) -> Producer<T, R> {
        let mut this = Producer { ring, entries: PhantomData, head: 0, tail: 0 };
        this.resync();
        this
    }

    #[inline]
    fn ring(&self) -> &Ring<T> {
        self.ring.borrow()
    }

    /// How many entries may be written now, at most `want`. Looks at the kernel's index only when
    /// the cached one does not give as many.
    #[inline]
    pub fn free(&mut self, want: u32) -> u32 {
        if self.cached_free() < want {
            self.tail = self.ring().consumer().load(Ordering::Acquire);
        }
        self.cached_free().min(want)
    }

    #[inline]
    fn cached_free(&self) -> u32 {
        self.ring().size().saturating_sub(self.head.wrapping_sub(self.tail))
    }

    /// Writes the `i`th entry of the batch, below what [`Producer::free`] gave. The kernel sees it
    /// after [`Producer::submit`].
    #[inline]
    pub fn write(&mut self, i: u32, value: T) {
        self.ring().write(self.head.wrapping_add(i), value);
    }

    /// Gives the first `n` entries written to the kernel.
    #[inline]
    pub fn submit(&mut self, n: u32) {
        self.head = self.head.wrapping_add(n);
        // Release: the entries are visible before the index that covers them.
        self.ring().producer().store(self.head, Ordering::Release);
    }

    /// Entries that the kernel has not consumed yet.
    #[inline]
    pub fn pending(&self) -> u32 {
        let tail = self.ring().consumer().load(Ordering::Acquire);
        self.head.wrapping_sub(tail).min(self.ring().size())
    }

    /// The `i`th of the [`Producer::pending`] entries, oldest first: to recover the buffers of a
    /// ring whose kernel side is at rest.
    pub fn peek_pending(&self, i: u32) -> T {
        let oldest = self.head.wrapping_sub(self.pending());
        self.ring().read(oldest.wrapping_add(i))
    }

    /// Replaces one of them. The kernel's side is at rest, as for [`Producer::peek_pending`].
    pub fn replace_pending(&self, i: u32, value: T) {
        let oldest = self.head.wrapping_sub(self.pending());
        self.ring().write(oldest.wrapping_add(i), value);
    }

    /// How many entries the kernel has consumed so far, modulo 2^32.
    pub(crate) fn consumed(&self) -> u32 {
        self.head.wrapping_sub(self.pending())
    }

    /// The `i`th of the entries that the kernel has consumed, newest first: what was written there last.
    pub fn peek_consumed(&self, i: u32) -> T {
        let oldest = self.head.wrapping_sub(self.pending());
        self.ring().read(oldest.wrapping_sub(1 + i))
    }

    /// Replaces one of them, which only [`Producer::peek_consumed`] reads.
    pub(crate) fn replace_consumed(&self, i: u32, value: T) {
        let oldest = self.head.wrapping_sub(self.pending());
        self.ring().write(oldest.wrapping_sub(1 + i), value);
    }

    /// Whether the kernel waits for a kick; on a TX ring, always so in copy mode.
    ///
    /// Enough for a FILL ring, which is looked at with each batch: drivers set its flag when they have found it empty,
    /// and do not look again, so a fence would close no gap.
    #[inline]
    pub fn needs_wakeup(&self) -> bool {
        self.ring().flags().load(Ordering::Relaxed) & XdpRingFlags::XDP_RING_NEED_WAKEUP.bits() != 0
    }

    /// The same after [`Producer::submit`], where the next look may be late: to be asked once a batch.
    ///
    /// A driver that clears the flag while it is at work sets it before it looks at the ring a last time (mlx5), so
    /// that either it sees the batch or we see the flag. Without a fence this load could be done before the index is
    /// visible, and both would wait. Where the flag is set already, as in copy mode and by most drivers, there is
    /// nothing to miss, and no fence. The kernel has none between its two steps: what it misses by that waits for the
    /// next flush or poll.
    #[inline]
    pub fn needs_kick(&self) -> bool {
        self.needs_wakeup() || {
            fence(Ordering::SeqCst);
            self.needs_wakeup()
        }
    }

    /// Entries in the ring.
    pub fn size(&self) -> u32 {
        self.ring().size()
    }

    /// Takes both cursors from shared memory; entries written and not submitted are forgotten.
    #[inline]
    pub fn resync(&mut self) {
        self.head = self.ring().producer().load(Ordering::Acquire);
        self.tail = self.ring().consumer().load(Ordering::Acquire);
    }
}

/// The side of a ring that we empty: RX and COMPLETION. `R` as in [`Producer`].
pub struct Consumer<T, R = Ring<T>> {
    ring: R,
    entries: PhantomData<T>,
    /// The kernel's, as last seen.
    head: u32,
    /// Ours: the oldest entry not released.
    tail: u32,
}

impl<T: Entry, R: Borrow<Ring<T>>> Consumer<T, R> {
    /// A view with its cursors where shared memory has them.
    #[inline]
    pub(crate) fn new(ring: R) -> Consumer<T, R> {
        let mut this = Consumer { ring, entries: PhantomData, head: 0, tail: 0 };
        this.resync();
        this
    }

    #[inline]
    fn ring(&self) -> &Ring<T> {
        self.ring.borrow()
    }

    /// How many entries can be read now, at most `want`. Looks at the kernel's index only when the
    /// cached one does not give as many.
    #[inline]
    pub fn available(&mut self, want: u32) -> u32 {
        if self.cached_available() < want {
            self.head = self.ring().producer().load(Ordering::Acquire);
        }
        self.cached_available().min(want)
    }

    #[inline]
    fn cached_available(&self) -> u32 {
        self.head.wrapping_sub(self.tail).min(self.ring().size())
    }

    /// The `i`th entry of the batch, below what [`Consumer::available`] gave. A copy: check it, then
    /// use it.
    #[inline]
    pub fn read(&self, i: u32) -> T {
        self.ring().read(self.tail.wrapping_add(i))
    }

    /// Gives the first `n` entries back to the kernel.
    #[inline]
    pub fn release(&mut self, n: u32) {
        self.tail = self.tail.wrapping_add(n);
        // Release: our reads of the entries are done before the kernel may write over them.
        self.ring().consumer().store(self.tail, Ordering::Release);
    }

    /// Entries in the ring.
    pub fn size(&self) -> u32 {
        self.ring().size()
    }

    /// Takes both cursors from shared memory.
    #[inline]
    pub fn resync(&mut self) {
        self.tail = self.ring().consumer().load(Ordering::Acquire);
        self.head = self.ring().producer().load(Ordering::Acquire);
    }
}
