//! A `netmap_if` in shared memory.

use std::{
    iter,
    mem::{offset_of, size_of},
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed},
    },
};

use ringway_abi::netmap_if;

use crate::{
    region::Region,
    shared::{ArrayView, View},
};

/// Which rings of the port a registration sees: ring objects, `None` where it sees none.
/// Host counts are those of the port, at least 1 (S-NIFP-1).
#[derive(Clone, Debug, Default)]
pub struct RingOffsets {
    /// Those to send by.
    pub tx: Vec<Option<u32>>,
    /// Those to receive from.
    pub rx: Vec<Option<u32>>,
    /// Those to send to the host by.
    pub host_tx: Vec<Option<u32>>,
    /// Those to receive from the host.
    pub host_rx: Vec<Option<u32>>,
}

/// A `netmap_if`, as it stands in memory.
#[repr(C)]
struct Head {
    name: [AtomicU8; 16],
    version: AtomicU32,
    flags: AtomicU32,
    tx_rings: AtomicU32,
    rx_rings: AtomicU32,
    bufs_head: AtomicU32,
    host_tx_rings: AtomicU32,
    host_rx_rings: AtomicU32,
    spare: [AtomicU32; 3],
}
crate::shared_struct!(Head {
    name,
    version,
    flags,
    tx_rings,
    rx_rings,
    bufs_head,
    host_tx_rings,
    host_rx_rings,
    spare
});

const _: () = {
    assert!(size_of::<Head>() == size_of::<netmap_if>());
    assert!(offset_of!(Head, flags) == offset_of!(netmap_if, ni_flags));
    assert!(offset_of!(Head, tx_rings) == offset_of!(netmap_if, ni_tx_rings));
    assert!(offset_of!(Head, rx_rings) == offset_of!(netmap_if, ni_rx_rings));
    assert!(offset_of!(Head, bufs_head) == offset_of!(netmap_if, ni_bufs_head));
    assert!(offset_of!(Head, host_tx_rings) == offset_of!(netmap_if, ni_host_tx_rings));
    assert!(offset_of!(Head, host_rx_rings) == offset_of!(netmap_if, ni_host_rx_rings));
};

/// One registration's `netmap_if`.
#[derive(Debug)]
pub struct NetifView {
    head: View<Head>,
    /// Where its rings are: as many as there is room for.
    offsets: ArrayView<AtomicU64>,
    object: u32,
}

impl NetifView {
    /// The interface in object `object` of the interface pool.
    pub fn new(region: &Arc<Region>, object: u32) -> Option<NetifView> {
        let ifs = &region.layout().ifs;
        let at = ifs.object(object)?;
        let room = ifs.size.checked_sub(size_of::<Head>() as u32)? / 8;
        let offsets = ArrayView::new(region, at + size_of::<Head>() as u64, room)?;
        Some(NetifView { head: View::new(region, at)?, offsets, object })
    }

    /// Whether an interface with `rings` ring offsets fits an interface object.
    pub fn fits(region: &Region, rings: usize) -> bool {
        u32::try_from(rings).is_ok_and(|rings| Self::size_with(rings) <= region.layout().ifs.size)
    }

    /// Bytes of an interface object that has `rings` ring offsets.
    pub const fn size_with(rings: u32) -> u32 {
        rings.saturating_mul(8).saturating_add(size_of::<netmap_if>() as u32)
    }

    /// Byte offset of the `netmap_if` within the region.
    pub fn offset(&self) -> u64 {
        self.head.region().layout().ifs.object(self.object).unwrap_or(0)
    }

    /// Object index within the interface pool.
    pub fn object(&self) -> u32 {
        self.object
    }

    /// Writes the interface (S-NIFP-1, S-NIFP-2, S-NIFP-3). The caller has checked that it [`fits`].
    ///
    /// [`fits`]: NetifView::fits
    pub fn init(&self, name: &str, flags: u32, rings: &RingOffsets) {
        // One byte stays 0: it ends the name.
        let name = name.bytes().take(15).chain(iter::repeat(0));
        self.head.name.iter().zip(name).for_each(|(to, byte)| to.store(byte, Relaxed));
        self.head.flags.store(flags, Relaxed);
        let counts = [
            (&self.head.version, 0),
            (&self.head.tx_rings, rings.tx.len()),
            (&self.head.rx_rings, rings.rx.len()),
            (&self.head.bufs_head, 0),
            (&self.head.host_tx_rings, rings.host_tx.len()),
            (&self.head.host_rx_rings, rings.host_rx.len()),
        ];
        counts.iter().for_each(|(field, count)| field.store(*count as u32, Relaxed));
        self.head.spare.iter().for_each(|field| field.store(0, Relaxed));

        let layout = self.head.region().layout();
        let all = [&rings.tx, &rings.host_tx, &rings.rx, &rings.host_rx].into_iter().flatten();
        for (offset, object) in self.offsets.iter().zip(all) {
            let at = object.and_then(|object| layout.rings.object(object));
            offset.store(at.map_or(0, |at| at.wrapping_sub(self.offset())), Relaxed);
        }
    }

    /// Head of the list of extra buffers; written by the program, so any value at all.
    pub fn bufs_head(&self) -> u32 {
        self.head.bufs_head.load(Relaxed)
    }

    /// Sets the head of the list of extra buffers.
    pub fn set_bufs_head(&self, index: u32) {
        self.head.bufs_head.store(index, Relaxed);
    }
}
