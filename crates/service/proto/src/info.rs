//! What there is and what it has counted, for display.

use serde::{Deserialize, Serialize};

use crate::{
    daemon::Durations,
    grant::PortKind,
    nic_mode::NicMode,
    switch::{
        Declared, DeclaredFor, FloodLimit, Forwarding, Lossless, MirrorDirection, MirrorTotals,
        Multicast, MulticastRouter, PortTotals, RateLimit, SourceAddresses, Vlan,
    },
    version::Shown,
};

/// A region, for display.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegionInfo {
    /// Id of the region.
    pub mem_id: u16,
    /// The user whose it is.
    pub uid: u32,
    /// Ports that use it.
    pub ports: u32,
    /// Its size; most of it may never have been touched.
    pub bytes: u64,
    /// Buffers.
    pub bufs: u32,
    /// Buffers that no ring and no program has.
    pub free_bufs: u32,
    /// Bytes of the rings and buffers that were ever in use at once: what counts for `memory_per_user`.
    pub asked: u64,
}

/// Where a region is among all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegionPosition {
    /// The user whose it is.
    pub uid: u32,
    /// Its id.
    pub mem_id: u16,
}

/// A bridge, for display.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BridgeInfo {
    /// The switch.
    pub name: String,
    /// How it forwards.
    pub forwarding: Forwarding,
    /// What becomes of frames for groups of IP.
    pub multicast: Multicast,
    /// In the order of their indices.
    pub ports: Vec<BridgePortInfo>,
    /// The user whose it is: the one who made it to stay, or has the first of its ports.
    pub owner: Option<u32>,
    /// What the daemon's configuration has to do with it.
    pub declared: Declared,
    /// The file and the line that declare it, if it is declared.
    pub declared_at: Option<String>,
    /// Each program's port that joins it may send with one source address only.
    pub one_address: bool,
    /// How long rounds of its worker took in which there was work, over all ports: of one round in 64.
    pub rounds: Durations,
    /// Its mirrors.
    #[serde(with = "Shown::<7>", default)]
    pub mirrors: Vec<SwitchMirrorInfo>,
}

/// A mirror of a switch, for display. Ports have their full names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchMirrorInfo {
    /// Its name.
    pub name: String,
    /// The ports that are mirrored; `None`: all.
    pub from: Option<Vec<String>>,
    /// What of them is mirrored.
    pub direction: MirrorDirection,
    /// The port that gets the copies.
    pub to: String,
    /// The user whose that port is to be.
    pub user: u32,
    /// Which frames are mirrored, if not all.
    pub filter: Option<String>,
    /// The user that has set it.
    pub uid: u32,
    /// Those of its ports that are not there. Without `to`, nothing is mirrored.
    pub absent: Vec<String>,
    /// Ports of its names that other users have, and that it leaves out.
    pub foreign: Vec<String>,
    /// What the daemon's configuration has to do with it.
    pub declared: Declared,
    /// What has become of the copies.
    pub totals: MirrorTotals,
}

/// How an interface is attached to a bridge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttachmentInfo {
    /// With the host's stack behind it, as another port.
    pub stack: bool,
    /// The mode that was asked for.
    pub mode: Option<NicMode>,
}

/// A port of a bridge, for display.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BridgePortInfo {
    /// Its full name, the switch's included.
    pub name: String,
    /// Index within the switch.
    pub index: u32,
    /// What it has counted since it was attached.
    pub totals: PortTotals,
    /// How it takes part in VLANs.
    pub vlan: Vlan,
    /// The source addresses that it may send with.
    pub sources: SourceAddresses,
    /// `Some`: senders wait for it.
    pub lossless: Option<Lossless>,
    /// The link-local groups that it passes on; see [`PortSettings`](crate::PortSettings).
    pub group_forward: u16,
    /// Nothing passes between it and other isolated ports.
    pub isolated: bool,
    /// Buffers change hands between it and other such ports of its region.
    pub swap_buffers: bool,
    /// The filter of what it may send, if not all.
    pub filter_in: Option<String>,
    /// The same of what it gets.
    pub filter_out: Option<String>,
    /// How many addresses the switch may know behind it, if not as many as it has places.
    pub max_addresses: Option<u16>,
    /// How much it may send, if not as much as it likes.
    pub rate: Option<RateLimit>,
    /// How many frames it may send in a second that are flooded, if not as many as it likes.
    pub storm: Option<u32>,
    /// The same for frames to all alone, beside that limit.
    #[serde(with = "Shown::<7>", default)]
    pub storm_broadcast: Option<FloodLimit>,
    /// For frames to other groups.
    #[serde(with = "Shown::<7>", default)]
    pub storm_multicast: Option<FloodLimit>,
    /// For frames to addresses that the switch does not know.
    #[serde(with = "Shown::<7>", default)]
    pub storm_unknown: Option<FloodLimit>,
    /// Whether the port always has a router for groups behind it, or has one while queries come by it.
    #[serde(with = "Shown::<7>", default)]
    pub multicast_router: MulticastRouter,
    /// The lossless port that what it has sent waits for.
    pub waits_for: Option<String>,
    /// It is blocked: what had left the switch by this port came back by it.
    pub loops_with: Option<String>,
    /// For interfaces: the mode, and why a better one was refused. For ports that are not there: why.
    pub mode: Option<String>,
    /// It is not there: an interface is to come, or to come back, or no program has it open.
    pub absent: bool,
    /// The user whose it is.
    pub uid: u32,
    /// For interfaces and persistent ports: how they were attached, or are to be.
    pub attachment: Option<AttachmentInfo>,
    /// What the daemon's configuration has to do with it.
    pub declared: Declared,
    /// Whose programs may open it, as the daemon's configuration declares.
    #[serde(with = "Shown::<7>", default)]
    pub declared_for: DeclaredFor,
    /// For interfaces, and the stacks behind them: what the interface is called now. The port keeps the name by which
    /// the interface was attached.
    #[serde(with = "Shown::<7>", default)]
    pub interface: Option<String>,
    /// For interfaces: the number by which the kernel knows their network namespace (`SO_NETNS_COOKIE`), if it is another
    /// one than the daemon's.
    #[serde(with = "Shown::<7>", default)]
    pub netns: Option<u64>,
    /// The file and the line that declare it, if it is declared.
    #[serde(with = "Shown::<7>", default)]
    pub declared_at: Option<String>,
}

/// A port, for display.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PortInfo {
    /// Its number, of all ports that there ever were.
    pub id: u64,
    /// Its full name.
    pub name: String,
    /// What kind of port it is.
    pub kind: PortKind,
    /// Id of the region.
    pub mem_id: u16,
    /// Bytes of the region's buffers.
    pub buf_size: u32,
    /// The user whose it is.
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
    /// For NICs: the filters of the programs that have it open.
    pub filters: Vec<FilterInfo>,
    /// For NICs: the action programs that it has.
    pub actions: Vec<ActionInfo>,
    /// For ports of switches: the user whose the switch is.
    pub switch_owner: Option<u32>,
    /// For NICs: receive queues that the interface has got since the port was opened, or attached. The port has no
    /// rings for them, and what they receive goes to the stack.
    #[serde(with = "Shown::<7>", default)]
    pub added_queues: Vec<u32>,
    /// For NICs: the interface receives frames, and the port, which takes all of them, gets none.
    #[serde(with = "Shown::<7>", default)]
    pub gets_nothing: bool,
    /// For NICs, their pipes and monitors, and persistent ports: the inode number of the interface's network namespace, by which
    /// `ls -i /run/netns` and `lsns -t net` show it. Interfaces of several namespaces may have one name.
    #[serde(with = "Shown::<7>", default)]
    pub netns: Option<u64>,
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
    /// How many slots it has.
    pub slots: u32,
    /// Slots with packets, as of the last sync: sent and not taken yet, or received and not released by
    /// the program. Fewer than it has slots.
    pub fill: u32,
    /// Packets that went through it; where another process takes them, slots: a packet that is longer than a
    /// buffer counts several times.
    pub packets: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Resets because `head` or `cur` were outside the program's slots.
    pub bad_index: u64,
    /// Slots with a buffer or a length that cannot be, with the kernel's part.
    pub bad_slot: u64,
    /// Packets that did not fit, with the kernel's part.
    pub too_long: u64,
    /// Packets for which there was no free slot, with the kernel's part.
    pub ring_full: u64,
    /// Packets that were shorter than an Ethernet header.
    #[serde(with = "Shown::<7>", default)]
    pub too_short: u64,
    /// Packets that asked hardware for what cannot be.
    #[serde(with = "Shown::<7>", default)]
    pub bad_offload: u64,
    /// System calls made to have it served.
    pub kicks: u64,
    /// What the kernel has counted on the queue of an interface, where it is an AF_XDP socket's.
    pub kernel: Option<KernelCounters>,
}

/// The counters of an AF_XDP socket, under the kernel's names (`struct xdp_statistics`): of one
/// direction, those of the other are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelCounters {
    /// Frames dropped for other reasons.
    pub rx_dropped: u64,
    /// Descriptors of the fill ring that were refused.
    pub rx_invalid_descs: u64,
    /// Descriptors of the tx ring that were refused.
    pub tx_invalid_descs: u64,
    /// Frames dropped because the rx ring was full.
    pub rx_ring_full: u64,
    /// Times that no buffer was left to receive into: where the kernel copies, each cost a frame. In zero copy the driver
    /// looks ahead, and none need be lost.
    pub rx_fill_ring_empty_descs: u64,
    /// Times that there was nothing to send.
    pub tx_ring_empty_descs: u64,
}

/// A counter of a network interface, or of its driver, that stands for losses, and has grown since the port was
/// opened, for display. A frame may be in several of them, and among what rings count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceCounter {
    /// The kernel's name of it (`struct rtnl_link_stats64`), or the driver's.
    pub name: String,
    /// It is the driver's (`ethtool -S`); else the interface's, where `rx_dropped` and `tx_dropped` may have
    /// frames that the stack has dropped.
    pub driver: bool,
    /// By how much it has grown.
    pub count: u64,
}

/// A filter and what it has counted, for display.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilterInfo {
    /// As the user wrote it.
    pub text: String,
    /// Of what matches, one in so many.
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

/// An action program and what has become of the frames that it has seen, for display.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionInfo {
    /// What the user calls it.
    pub text: String,
    /// Receive queues that it is for.
    pub queues: Vec<u32>,
    /// The interfaces that it may redirect to.
    pub redirects: Vec<String>,
    /// Frames that were left to the port, whose filter may leave them to the stack.
    pub passed: u64,
    /// Frames that are gone: dropped, aborted, or with a verdict that means nothing.
    pub dropped: u64,
    /// Frames that were sent by the same interface.
    pub sent: u64,
    /// Frames that were left to the stack.
    pub to_stack: u64,
    /// Frames that were sent by the other interfaces.
    pub redirected: u64,
}

/// A name that a user has asked for and could not have, because it is for others, for display.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NameConflict {
    /// The switch or the port.
    pub name: String,
    /// The user who asked.
    pub asked_by: u32,
    /// Whose it is, where it is in use.
    pub owner: Option<u32>,
    /// The pattern that reserves it, where one does.
    pub reserved: Option<String>,
    /// How often.
    pub count: u64,
    /// Seconds since the last time.
    pub seconds_ago: u64,
}
