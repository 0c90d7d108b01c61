//! How a port takes part in its bridge.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    access::PortFilter,
    bucket::{FloodLimit, RateLimit},
    sources::SourceAddresses,
    vlan::Vlan,
};

/// Settings of a port of a bridge, given when it is attached and changed while it runs. The
/// default is a port as netmap's VALE has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortConfig {
    /// Bytes of virtio-net header in front of every frame: 0, 10 or 12 (S-VHDR-1).
    pub header_len: u8,
    /// Bytes of the longest frame that the port gets without such a header, if the sender's
    /// header says how to make several of a longer one. Others are as long as they are, but for an
    /// interface's, which drops longer ones.
    pub max_frame: u32,
    /// The VLANs that it is in.
    pub vlan: Vlan,
    /// The source addresses that it may send with.
    pub sources: SourceAddresses,
    /// The frames that it may send, and those that it gets: all, or what a filter matches. The worker sees to that for
    /// all ports.
    pub filter_in: Option<Arc<PortFilter>>,
    pub filter_out: Option<Arc<PortFilter>>,
    /// How many addresses may be known behind it, where the switch learns. What it sends with others is dropped.
    pub max_addresses: Option<u16>,
    /// How much it may send. The default is as much as it likes.
    pub rate: Option<RateLimit>,
    /// How many of the frames that it sends may be flooded, a second, and at once: to all, to groups, and to
    /// addresses that are not known.
    pub storm: Option<u32>,
    /// The same of each kind of them (see the module `storm`), beside that.
    pub storm_kinds: [Option<FloodLimit>; 3],
    /// Whether those who send to the port wait when its ring is full, in place of the port losing
    /// packets. A NIC cannot make others wait, nor wait itself.
    pub lossless: Option<Lossless>,
    /// Whether other machines, and other switches, may be behind it: it is a network interface.
    pub is_interface: bool,
    /// Whether what leaves by it may come back by another port although it is no network interface: behind
    /// it is the host's stack, which may be a bridge, or another switch.
    pub leads_on: bool,
    /// Which of the group addresses 01:80:c2:00:00:00 to 0f such a port passes on to others of its kind: a bit
    /// for each. A bridge keeps them to the link on which they came (IEEE 802.1D, 7.12.6); `1 << 1`
    /// and the like are as in Linux's `group_fwd_mask`.
    pub group_forward: u16,
    /// Whether a router for groups is behind it, whether it asks or not: the port gets all groups, and what hosts say of
    /// theirs, where the switch snoops.
    pub multicast_router: bool,
    /// Whether nothing passes between it and other ports of which this is true.
    pub isolated: bool,
    /// Whether buffers change hands between it and other such ports whose rings are in the same region: a long packet of
    /// one slot that goes to no other port is not copied then.
    pub swap_buffers: bool,
    /// How often it was told to go on although it was blocked.
    pub unblocked: u32,
    /// It is a network interface without a link, or the stack behind an interface that is set down: what is for it is
    /// counted as lost, not left to the kernel.
    pub is_down: bool,
}

impl Default for PortConfig {
    fn default() -> Self {
        PortConfig {
            header_len: 0,
            max_frame: 1514,
            vlan: Vlan::Unaware,
            sources: SourceAddresses::Any,
            filter_in: None,
            filter_out: None,
            max_addresses: None,
            rate: None,
            storm: None,
            storm_kinds: [None; 3],
            lossless: None,
            is_interface: false,
            leads_on: false,
            group_forward: 0,
            multicast_router: false,
            isolated: false,
            swap_buffers: false,
            unblocked: 0,
            is_down: false,
        }
    }
}

impl PortConfig {
    /// Whether there may be a loop behind the port.
    pub(crate) fn may_loop(&self) -> bool {
        self.is_interface || self.leads_on
    }
}

/// How long others wait for a lossless port that frees nothing, before it loses packets as others
/// do, until it frees something.
///
/// The program that serves the port may slow down all that send to it, flooding included, to a packet in so
/// much time: make ports lossless whose owner is trusted with that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Lossless {
    /// Milliseconds. The default is a second: longer than a program that lives stands still, for a
    /// page from a slow disk or a busy processor, and too short for connections through the
    /// senders to break.
    pub patience_ms: u32,
}

impl Default for Lossless {
    fn default() -> Self {
        Lossless { patience_ms: 1000 }
    }
}
