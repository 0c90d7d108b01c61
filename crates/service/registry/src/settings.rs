//! What an operator may choose.

use std::sync::Arc;

use ringway_region::{Layout, LayoutError, Sizes};

use crate::accounts::Accounts;

/// What an operator may choose.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Bridges at most; each is a thread.
    pub max_bridges: usize,
    /// Bridges that each user may have; root has no such limit.
    pub switches_per_user: usize,
    /// Ports that each user may have on a bridge, but for the user who made it to stay, and for root.
    pub switch_ports_per_user: usize,
    /// Bytes that the settings of one user's ports and mirrors may take in the file of a [`Lasting`](crate::Lasting). All
    /// users together have eight times as many, and so has root.
    pub kept_bytes_per_user: usize,
    /// Users whose ports may be lossless, besides root; without it, all.
    pub lossless_users: Option<Vec<u32>>,
    /// Who shares what each user may have.
    pub accounts: Arc<Accounts>,
    /// Whether receive rings are stamped with the time at every sync (S-SYNC-10).
    pub timestamps: bool,
    /// Slots of the rings of NICs.
    pub nic_slots: u32,
    /// The global region of each user (S-MEM-7).
    pub global_region: Sizes,
    /// Bytes of rings and buffers that one user may ask for, in all of his regions together. The regions
    /// may have four times as many.
    pub memory_per_user: u64,
    /// Descriptors of this process that one user takes up at most.
    pub descriptors_per_user: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            max_bridges: 64,
            switches_per_user: usize::MAX,
            switch_ports_per_user: usize::MAX,
            kept_bytes_per_user: usize::MAX,
            lossless_users: None,
            accounts: Arc::default(),
            timestamps: true,
            nic_slots: 1024,
            global_region: Sizes::GLOBAL,
            memory_per_user: 4 << 30,
            descriptors_per_user: usize::MAX,
        }
    }
}

impl Settings {
    /// The layout of such a global region, if there can be one.
    pub fn check(&self) -> Result<Layout, LayoutError> {
        Layout::new(&self.global_region, ringway_xdp::RX_HEADROOM)
    }
}
