//! How a port takes part in its bridge.

use serde::{Deserialize, Serialize};

/// Settings of a port of a bridge, given when it is attached and changed while it runs. The
/// default is a port as netmap's VALE has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PortConfig {
    /// Bytes of virtio-net header in front of every frame: 0, 10 or 12 (S-VHDR-1).
    pub header_len: u8,
    /// Bytes of the longest frame that the port gets without such a header, if the sender's
    /// header says how to make several of a longer one. Others are as long as they are.
    pub max_frame: u32,
}

impl Default for PortConfig {
    fn default() -> Self {
        PortConfig { header_len: 0, max_frame: 1514 }
    }
}
