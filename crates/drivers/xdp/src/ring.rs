//! Netmap rings over AF_XDP: the program's side of a NIC port, without privileges.
//!
//! The UMEM is the region's buffer area, one chunk a buffer, so a netmap buffer index and an XDP
//! address are the same thing in two spellings:
//!
//! ```text
//!   chunk `index`   | 256 bytes headroom | the buffer's data                |
//!                   ^                    ^
//!                   index << shift       index << shift | 256: XDP address of a frame
//! ```
//!
//! A packet that is longer than a buffer is one of several slots, NS_MOREFRAG on all but the last,
//! and of as many descriptors (`XDP_PKT_CONTD`), where the socket takes such ([`crate::XskSocket::frags`]).
//!
//! Nothing is copied, but for rings with offsets (S-OFF) and for [buffers that the kernel does not reach](spares), and buffers
//! may move between the rings of all NICs of a region. Which buffer the kernel has for which slot stands in the ring's
//! shadow words, out of the way of programs.
//!
//! A driver keeps no cursors. Every sync makes its views of the XDP rings from shared memory, two
//! loads each, under the kring's lock: so a child after a fork, or a process that was passed the
//! descriptors, goes on where the last one stopped, and no other process has to be told.

mod rx;
mod spares;
mod tx;

pub use rx::XdpRx;
pub use tx::XdpTx;

use std::sync::atomic::Ordering::Relaxed;

use ringway_kring::{Kring, Offsets};
use ringway_region::Layout;
use rustix::io::Errno;

use crate::RX_HEADROOM;

/// How buffer indices and addresses translate: the same for all rings of a region.
#[derive(Clone, Copy, Debug)]
struct Chunks {
    /// Of the chunk size, a power of two.
    shift: u32,
    /// Bytes of a buffer behind the headroom.
    data_size: u32,
}

impl Chunks {
    /// EINVAL when the region was not laid out for AF_XDP: its buffers are no power of two, or do
    /// not begin where the kernel puts a frame.
    fn new(layout: &Layout) -> rustix::io::Result<Chunks> {
        let size = layout.bufs.size;
        if !size.is_power_of_two() || layout.headroom != RX_HEADROOM {
            return Err(Errno::INVAL);
        }
        Ok(Chunks { shift: size.trailing_zeros(), data_size: layout.data_size() })
    }

    /// Where the chunk of a buffer begins.
    #[inline]
    fn start(self, buffer: u32) -> u64 {
        u64::from(buffer) << self.shift
    }

    /// The chunk that an address is in; a buffer's index if it equals one, for an address may be
    /// anything.
    #[inline]
    fn chunk(self, address: u64) -> u64 {
        address >> self.shift
    }

    /// Bytes from the start of the chunk.
    #[inline]
    fn offset(self, address: u64) -> u64 {
        address & ((1 << self.shift) - 1)
    }
}

impl Chunks {
    /// Where data begins in the buffers of this ring's slots, as agreed by now: at no more than the
    /// size of a buffer. A program that has the ring without knowing of offsets goes by them, too.
    #[inline]
    fn offsets(self, kring: &Kring) -> Offsets {
        let agreed = Offsets::of(kring);
        Offsets { max: agreed.max.min(self.data_size), ..agreed }
    }
}

/// The first slot in `[from, to)` whose shadow word is `wanted`.
fn find(kring: &Kring, from: u32, to: u32, wanted: u64) -> Option<u32> {
    let mut at = from;
    while at != to {
        if u64::from(kring.shadow(at).load(Relaxed)) == wanted {
            return Some(at);
        }
        at = kring.ring().next(at);
    }
    None
}
