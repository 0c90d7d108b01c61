//! How a port takes part in its bridge.

use serde::{Deserialize, Serialize};

/// Settings of a port of a bridge, given when it is attached and changed while it runs. The
/// default is a port as netmap's VALE has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PortConfig {
    /// Bytes of virtio-net header in front of every frame: 0, 10 or 12 (S-VHDR-1).
    pub header_len: u8,
}
