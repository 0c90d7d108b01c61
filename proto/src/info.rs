//! What there is and what it has counted, for display.

use serde::{Deserialize, Serialize};

use crate::{
    grant::PortKind,
    switch::{Forwarding, Lossless, PortTotals, Vlan},
};

/// A region, for display.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegionInfo {
    pub mem_id: u16,
    pub uid: u32,
    /// Ports that use it.
    pub ports: u32,
    pub bytes: u64,
    /// Buffers, and how many of them are nobody's.
    pub bufs: u32,
    pub free_bufs: u32,
}

/// A bridge, for display.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BridgeInfo {
    pub name: String,
    pub forwarding: Forwarding,
    pub ports: Vec<BridgePortInfo>,
}

/// A port of a bridge, for display.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BridgePortInfo {
    pub name: String,
    pub index: u32,
    pub totals: PortTotals,
    pub vlan: Vlan,
    pub lossless: Option<Lossless>,
    /// For interfaces: the mode, and why a better one was refused.
    pub mode: Option<String>,
}

/// A port, for display.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PortInfo {
    /// Its number, of all ports that there ever were.
    pub id: u64,
    pub name: String,
    pub kind: PortKind,
    pub mem_id: u16,
    /// Bytes of the region's buffers.
    pub buf_size: u32,
    pub uid: u32,
    /// Tx and rx rings.
    pub rings: [u32; 2],
    /// Slots of a tx and of an rx ring.
    pub slots: [u32; 2],
    /// How many handles have it open.
    pub users: u32,
    /// For NICs: the MTU that the interface has now, in bytes.
    pub mtu: Option<u32>,
    /// For NICs: the mode, why a better one was refused, and what is lost because of the MTU.
    pub mode: Option<String>,
    /// For NICs: receive queues whose frames are led to programs, as far as filters let them.
    pub queues: Vec<u32>,
    pub filters: Vec<FilterInfo>,
}

/// A ring and what it has counted since it was made, for display. What programs can write to is told
/// as it stands there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RingInfo {
    /// Whether it receives; else it sends.
    pub receives: bool,
    /// Whether it is a host ring.
    pub host: bool,
    /// Among those of its kind.
    pub index: u16,
    /// How many handles have it.
    pub users: u32,
    pub packets: u64,
    pub bytes: u64,
    pub bad_index: u64,
    /// The next three with the kernel's part.
    pub bad_slot: u64,
    pub too_long: u64,
    pub ring_full: u64,
    pub kicks: u64,
    /// What the kernel has counted on the queue of an interface, where it is an AF_XDP socket's.
    pub kernel: Option<KernelCounters>,
}

/// The counters of an AF_XDP socket, under the kernel's names (`struct xdp_statistics`): of one
/// direction, those of the other are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelCounters {
    pub rx_dropped: u64,
    pub rx_invalid_descs: u64,
    pub tx_invalid_descs: u64,
    pub rx_ring_full: u64,
    pub rx_fill_ring_empty_descs: u64,
    pub tx_ring_empty_descs: u64,
}

/// A filter and what it has counted, for display.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilterInfo {
    pub text: String,
    pub one_in: u32,
    /// Receive queues that it is for.
    pub queues: Vec<u32>,
    /// It is for the host rings: what the stack sends.
    pub host: bool,
    /// Frames that matched.
    pub matched: u64,
    /// Those of them that the program was given.
    pub taken: u64,
    /// Frames that were left to the stack.
    pub passed: u64,
}
