//! The list of extra buffers: a netif names the first, and each begins with the index of the next
//! (S-MEM-9).

use ringway_region::{NetifView, Region};

use crate::regions::RegionBook;

/// Lists `bufs` from `ni_bufs_head`, each naming the next.
pub(crate) fn chain(netif: &NetifView, region: &Region, bufs: &[u32]) {
    let next = bufs.iter().skip(1).copied().chain([0]);
    for (&buf, next) in bufs.iter().zip(next) {
        if let Some(buf) = region.buf(buf) {
            buf.write(0, &next.to_ne_bytes());
        }
    }
    netif.set_bufs_head(bufs.first().copied().unwrap_or(0));
}

/// Frees what the program left in the list; it ends at anything that is not a taken buffer.
pub(crate) fn unchain(netif: &NetifView, book: &mut RegionBook) {
    let mut at = netif.bufs_head();
    while let Some(next) = book.region.buf(at).and_then(|buf| buf.read::<4>(0)) {
        if !book.give_buf(at) {
            return;
        }
        at = u32::from_ne_bytes(next);
    }
}
