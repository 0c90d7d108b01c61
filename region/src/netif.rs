//! A `netmap_if` in shared memory.

use std::{
    mem::{offset_of, size_of},
    ptr::NonNull,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
};

use ringway_abi::netmap_if;

use crate::region::Region;

/// Which rings of the port a registration sees: ring objects, `None` where it sees none.
/// Host counts are those of the port, at least 1 (S-NIFP-1).
#[derive(Clone, Debug, Default)]
pub struct RingOffsets {
    pub tx: Vec<Option<u32>>,
    pub rx: Vec<Option<u32>>,
    pub host_tx: Vec<Option<u32>>,
    pub host_rx: Vec<Option<u32>>,
}

/// One registration's `netmap_if`.
#[derive(Debug)]
pub struct NetifView {
    base: NonNull<u8>,
    object: u32,
    region: Arc<Region>,
}

// SAFETY: a pointer into a mapping that the `Arc` keeps alive.
unsafe impl Send for NetifView {}

impl NetifView {
    /// The interface in object `object` of the interface pool.
    pub fn new(region: &Arc<Region>, object: u32) -> Option<NetifView> {
        Some(NetifView { base: region.if_object(object)?, object, region: region.clone() })
    }

    /// Whether an interface with `rings` ring offsets fits an interface object.
    pub fn fits(region: &Region, rings: usize) -> bool {
        size_of::<netmap_if>() + 8 * rings <= region.layout().ifs.size as usize
    }

    /// Byte offset of the `netmap_if` within the region.
    pub fn offset(&self) -> u64 {
        self.region.layout().ifs.object(self.object).unwrap_or(0)
    }

    /// Object index within the interface pool.
    pub fn object(&self) -> u32 {
        self.object
    }

    /// Writes the interface (S-NIFP-1..3). The caller has checked that it [`fits`].
    ///
    /// [`fits`]: NetifView::fits
    pub fn init(&self, name: &str, flags: u32, rings: &RingOffsets) {
        let mut ni_name = [0u8; 16];
        let n = name.len().min(15);
        ni_name[..n].copy_from_slice(&name.as_bytes()[..n]);
        let header = netmap_if {
            ni_name,
            ni_version: 0,
            ni_flags: flags,
            ni_tx_rings: rings.tx.len() as u32,
            ni_rx_rings: rings.rx.len() as u32,
            ni_bufs_head: 0,
            ni_host_tx_rings: rings.host_tx.len() as u32,
            ni_host_rx_rings: rings.host_rx.len() as u32,
            ni_spare1: [0; 3],
        };
        let layout = self.region.layout();
        let all = [&rings.tx, &rings.host_tx, &rings.rx, &rings.host_rx].into_iter().flatten();
        let room = (layout.ifs.size as usize - size_of::<netmap_if>()) / 8;
        // SAFETY: the object holds a netmap_if and `room` offsets, 64-byte aligned, and
        // nobody else uses an interface that is being made.
        unsafe {
            self.base.cast::<netmap_if>().write(header);
            let offsets = self.base.add(size_of::<netmap_if>()).cast::<i64>();
            for (i, object) in all.take(room).enumerate() {
                let at = object.and_then(|o| layout.rings.object(o));
                offsets.add(i).write(at.map_or(0, |at| at as i64 - self.offset() as i64));
            }
        }
    }

    /// Head of the list of extra buffers; written by the program, so any value at all.
    pub fn bufs_head(&self) -> u32 {
        self.bufs_head_field().load(Relaxed)
    }

    /// Sets the head of the list of extra buffers.
    pub fn set_bufs_head(&self, index: u32) {
        self.bufs_head_field().store(index, Relaxed);
    }

    fn bufs_head_field(&self) -> &AtomicU32 {
        let at = offset_of!(netmap_if, ni_bufs_head);
        // SAFETY: an aligned 32-bit field of the netmap_if at `base`.
        unsafe { AtomicU32::from_ptr(self.base.add(at).cast().as_ptr()) }
    }
}
