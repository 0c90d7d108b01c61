//! What a user may choose for a switch and its ports, and what the ports count.

use std::{collections::BTreeSet, fmt, net::IpAddr};

use crate::{
    filter::Filter,
    version::{self, Needed, Shown},
};
use serde::{Deserialize, Serialize, Serializer};

/// An Ethernet address.
pub type Mac = [u8; 6];

/// Reads an address as people write it, `02:00:00:00:00:01`.
pub fn parse_mac(text: &str) -> Option<Mac> {
    let mut mac = [0; 6];
    let mut parts = text.split(':');
    for byte in &mut mac {
        let part =
            parts.next().filter(|part| (1..=2).contains(&part.len()) && !part.starts_with('+'))?;
        *byte = u8::from_str_radix(part, 16).ok()?;
    }
    parts.next().is_none().then_some(mac)
}

/// An address as people read it, and [`parse_mac`] does.
pub fn mac_text(mac: Mac) -> impl fmt::Display {
    fmt::from_fn(move |f| {
        let [a, b, c, d, e, g] = mac;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    })
}

/// Reads numbers of VLANs as people write them, `10,20-29`. An error says what is wrong.
pub fn parse_vids(text: &str) -> Result<BTreeSet<u16>, String> {
    let number = |text: &str| {
        text.parse::<u16>().map_err(|_| format!("`{text}` is no VLAN: 10 or 20-29, with commas"))
    };
    let mut all = BTreeSet::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (number(first)?, number(last)?);
        if last < first {
            return Err(format!("`{part}` ends before it begins: write {last}-{first}"));
        }
        all.extend(first..=last);
    }
    Ok(all)
}

/// A forwarding function with the names of ports. `vale0:a` may be written as `a`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Forwarding {
    /// By the addresses that it has seen as sources.
    Learning {
        /// Seconds after which an address is forgotten.
        ageing_seconds: u32,
    },
    /// By a table, and it learns nothing.
    Static {
        /// Each address and its port.
        addresses: Vec<(Mac, String)>,
        /// Whether frames to other addresses go to all ports; else they are dropped.
        flood_unknown: bool,
    },
    /// By the flow that a frame belongs to.
    Hash {
        /// The ports among which the flows are divided.
        over: Vec<String>,
        /// Where frames from these ports go; `None`: nowhere.
        back: Option<String>,
    },
    /// To all ports but the sender.
    Flood,
}

/// Learning, and addresses age after five minutes.
impl Default for Forwarding {
    fn default() -> Self {
        Forwarding::Learning { ageing_seconds: 300 }
    }
}

/// What becomes of frames for groups of IP, on a switch that learns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Multicast {
    /// They go to all ports.
    #[default]
    Flood,
    /// IGMP and MLD snooping: they go to the ports behind which a group has members, and to routers, where hosts
    /// are asked for their groups.
    Snooping,
    /// The same, and the switch asks hosts for their groups, where no other does.
    Querier,
}

impl Multicast {
    /// As users write it.
    pub fn name(self) -> &'static str {
        match self {
            Multicast::Flood => "flood",
            Multicast::Snooping => "snooping",
            Multicast::Querier => "querier",
        }
    }

    /// Whether it is the default.
    pub fn is_flood(&self) -> bool {
        *self == Multicast::Flood
    }
}

/// Whether a router for groups of IP is behind a port of a switch that snoops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MulticastRouter {
    /// If queries come by the port, as long as they do.
    #[default]
    Auto,
    /// Always: the port gets all groups, and what hosts say of theirs.
    Always,
}

impl MulticastRouter {
    /// As users write it.
    pub fn name(self) -> &'static str {
        match self {
            MulticastRouter::Auto => "auto",
            MulticastRouter::Always => "always",
        }
    }

    /// Whether it is the default.
    pub fn is_auto(&self) -> bool {
        *self == MulticastRouter::Auto
    }
}

/// A mirror of a switch: one of its ports gets copies of what others send and receive, and nothing else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchMirror {
    /// By which it is shown and deleted: of letters, digits and `-_.`, 31 at most.
    pub name: String,
    /// The ports that are mirrored, but for `to`; `None`: all. They may come and go.
    pub from: Option<Vec<String>>,
    /// What of them is mirrored.
    pub direction: MirrorDirection,
    /// The port that gets the copies, as long as it is there.
    pub to: String,
    /// The user whose that port is to be; `None`: the caller.
    pub user: Option<u32>,
    /// Which frames are mirrored; `None`: all. It takes no samples.
    pub filter: Option<Filter>,
}

/// What a mirror copies of a port's frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MirrorDirection {
    /// What it sends into the switch.
    Sent,
    /// What it receives from the switch.
    Received,
    /// Both.
    #[default]
    Both,
}

impl MirrorDirection {
    /// As users write it.
    pub fn name(self) -> &'static str {
        match self {
            MirrorDirection::Sent => "sent",
            MirrorDirection::Received => "received",
            MirrorDirection::Both => "both",
        }
    }

    /// Whether it is the default.
    pub fn is_both(&self) -> bool {
        *self == MirrorDirection::Both
    }
}

/// What has become of a mirror's copies since it was set, or the daemon was started. Those that its port was given, and
/// those that were lost on the way there, by reason, are counted at that port, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MirrorTotals {
    /// Copies that its port was given.
    pub copied_packets: u64,
    /// Bytes of these.
    pub copied_bytes: u64,
    /// Its port had no room.
    pub ring_full: u64,
    /// They did not fit the port.
    pub too_long: u64,
    /// The filter of its port does not match them.
    pub denied: u64,
    /// A free slot of its port names no buffer.
    pub bad_slot: u64,
    /// What their virtio-net headers ask for cannot be done.
    pub bad_offload: u64,
    /// Its port receives nothing: no program reads there, the link is down, or the port is blocked.
    pub no_destination: u64,
}

impl MirrorTotals {
    /// What was lost, by the names of the fields.
    pub fn drops(&self) -> [(&'static str, u64); 6] {
        let &MirrorTotals {
            copied_packets: _,
            copied_bytes: _,
            ring_full,
            too_long,
            denied,
            bad_slot,
            bad_offload,
            no_destination,
        } = self;
        [
            ("ring_full", ring_full),
            ("too_long", too_long),
            ("denied", denied),
            ("bad_slot", bad_slot),
            ("bad_offload", bad_offload),
            ("no_destination", no_destination),
        ]
    }
}

/// What is to change about a port of a bridge; `None` stays.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortSettings {
    /// How it takes part in VLANs.
    pub vlan: Option<Vlan>,
    /// The source addresses that it may send with.
    pub sources: Option<SourceAddresses>,
    /// `Some(None)`: the port loses packets again when it is full.
    pub lossless: Option<Option<Lossless>>,
    /// Of the group addresses 01:80:c2:00:00:00 to 0f, which a switch keeps to the link on which they
    /// came, those that an interface passes on to other interfaces: a bit for each, as in Linux's
    /// `group_fwd_mask`.
    pub group_forward: Option<u16>,
    /// Whether nothing is to pass between it and other ports that are isolated: all of them reach the ports
    /// that are not, such as a router's.
    pub isolated: Option<bool>,
    /// Whether buffers are to change hands between it and other such ports of its region, in place of being copied.
    pub swap_buffers: Option<bool>,
    /// The frames that it may send; `Some(None)`: all. Others are dropped. The filter is of the frame as the port sends
    /// it, without a virtio-net header; it takes no samples.
    pub filter_in: Option<Option<Filter>>,
    /// The frames that it gets, the same.
    pub filter_out: Option<Option<Filter>>,
    /// How many addresses the switch may know behind it; `Some(None)`: as many as it has places. What it sends with
    /// others is dropped. Where the switch learns.
    pub max_addresses: Option<Option<u16>>,
    /// How much it may send; `Some(None)`: as much as it likes. What is more is dropped. Not for a port that is
    /// lossless.
    pub rate: Option<Option<RateLimit>>,
    /// How many frames that it sends may be flooded in a second, and at once: to all, to groups, and to addresses that
    /// the switch does not know; `Some(None)`: as many as it likes. What is more is dropped.
    pub storm: Option<Option<u32>>,
    /// The same for frames to all alone, beside that limit.
    #[serde(with = "Needed::<7>", default)]
    pub storm_broadcast: Option<Option<FloodLimit>>,
    /// For frames to other groups.
    #[serde(with = "Needed::<7>", default)]
    pub storm_multicast: Option<Option<FloodLimit>>,
    /// For frames to addresses that the switch does not know.
    #[serde(with = "Needed::<7>", default)]
    pub storm_unknown: Option<Option<FloodLimit>>,
    /// Whether a router for groups is behind it.
    #[serde(with = "Needed::<7>", default)]
    pub multicast_router: Option<MulticastRouter>,
    /// The port takes part again, if it was blocked because it is one end of a loop.
    pub unblock: bool,
}

/// How a port takes part in VLANs. Numbers are 1 to 4094.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Vlan {
    /// It is not told about VLANs, and passes everything on: tagged frames of all VLANs as they
    /// are; its untagged frames go between the ports of this kind only.
    #[default]
    Unaware,
    /// It is in this one VLAN, and knows nothing of tags: it neither sends nor receives any.
    Access(u16),
    /// It is in all of these, and its frames are tagged; but those of the native VLAN are not.
    /// Without one it neither sends nor receives untagged frames.
    Trunk {
        /// The VLANs that it is in.
        allowed: BTreeSet<u16>,
        /// The one whose frames are not tagged.
        native: Option<u16>,
    },
}

/// Which source addresses a port may send with. What it sends with another one is dropped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceAddresses {
    /// Any: an address is learned where it was last seen.
    #[default]
    Any,
    /// The first address that it sends from, as long as a program has it open.
    One,
    /// These.
    Only(Vec<Mac>),
}

/// How long others wait for a lossless port that frees nothing, before it loses packets as others
/// do, until it frees something.
///
/// The program behind the port may slow down all who send to it, flooding included, to a packet in so
/// much time: make ports lossless that belong to somebody trusted with that.
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

/// How much a port may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateLimit {
    /// Bits of frames, without CRC. A frame that is to be cut up counts with the headers of its segments.
    pub bits_per_second: u64,
    /// Bytes that it may send at once after it was silent. A longer frame passes when all of it is left.
    pub burst_bytes: u64,
}

impl RateLimit {
    /// The least burst where nothing is said of it: about the longest frame of a stack.
    const LEAST_BURST: u64 = 64 << 10;

    /// With a burst of a quarter of a second, which is longer than TCP waits at least before it sends again what was
    /// lost at once; and of 64 KiB at least.
    pub fn new(bits_per_second: u64) -> RateLimit {
        RateLimit { bits_per_second, burst_bytes: (bits_per_second / 32).max(Self::LEAST_BURST) }
    }
}

/// How many frames of a kind a port may send that are flooded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FloodLimit {
    /// In a second.
    pub frames_per_second: u32,
    /// At once, after there were none for a while.
    pub burst_frames: u32,
}

impl FloodLimit {
    /// With a burst of a second of them.
    pub fn new(frames_per_second: u32) -> FloodLimit {
        FloodLimit { frames_per_second, burst_frames: frames_per_second }
    }
}

/// Packets dropped, by reason, since the port was attached. The place is the port itself:
/// the sender for the first six, `spoofed`, `bad_source`, `over_rate` and the four of storms, the receiver for the last two but for
/// what an interface could not take in, and either for `vlan`, `denied`, and `too_short` at an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortDrops {
    /// The destination is the sender itself, has gone, or there is no other port.
    pub no_destination: u64,
    /// A slot named a buffer that does not exist: the first slot of a packet loses the packet, a
    /// later one arrives empty (S-VALE-9). Also packets of too many slots.
    pub bad_slot: u64,
    /// Shorter than an Ethernet header.
    pub too_short: u64,
    /// The indices of a ring were outside it, or a receiver claimed to have released what it did not
    /// have.
    pub bad_index: u64,
    /// The bridge's forwarding function dropped it.
    pub filtered: u64,
    /// The virtio-net header asked for what cannot be done to the frame behind it.
    pub bad_offload: u64,
    /// Of a VLAN that the port may not send to, or not receive; or with a broken tag.
    pub vlan: u64,
    /// Its source address is none that the port may send with.
    pub spoofed: u64,
    /// A network interface has received it with a source address that is a group's, or zero. In messages of version 6 it
    /// is among `filtered`.
    #[serde(with = "Shown::<7>", default)]
    pub bad_source: u64,
    /// More than the port may send.
    pub over_rate: u64,
    /// The filter of the port that sent it, or of the port that it was for, does not match it.
    pub denied: u64,
    /// It would have been flooded, and the port may not flood more. In messages of version 6 it has those of each kind,
    /// too.
    pub storm: u64,
    /// It is for all, and the port may not flood more of such frames.
    #[serde(with = "Shown::<7>", default)]
    pub storm_broadcast: u64,
    /// The same, and it is for another group.
    #[serde(with = "Shown::<7>", default)]
    pub storm_multicast: u64,
    /// The same, and it is for an address that the switch does not know.
    #[serde(with = "Shown::<7>", default)]
    pub storm_unknown: u64,
    /// The receiver had no free slot; or the kernel none for what a network interface received, or was to send: the
    /// link is down, too.
    pub ring_full: u64,
    /// A slot of the packet was longer than its buffer; or the packet did not fit the NIC, or a
    /// piece of it the receiver's buffer (S-SYNC-9).
    pub too_long: u64,
}

impl PortDrops {
    /// All of them, by the names of the fields: a new one does not compile without its place here.
    pub fn reasons(&self) -> [(&'static str, u64); 17] {
        let &PortDrops {
            no_destination,
            bad_slot,
            too_short,
            bad_index,
            filtered,
            bad_offload,
            vlan,
            spoofed,
            bad_source,
            over_rate,
            denied,
            storm,
            storm_broadcast,
            storm_multicast,
            storm_unknown,
            ring_full,
            too_long,
        } = self;
        [
            ("no_destination", no_destination),
            ("bad_slot", bad_slot),
            ("too_short", too_short),
            ("bad_index", bad_index),
            ("filtered", filtered),
            ("bad_offload", bad_offload),
            ("vlan", vlan),
            ("spoofed", spoofed),
            ("bad_source", bad_source),
            ("over_rate", over_rate),
            ("denied", denied),
            ("storm", storm),
            ("storm_broadcast", storm_broadcast),
            ("storm_multicast", storm_multicast),
            ("storm_unknown", storm_unknown),
            ("ring_full", ring_full),
            ("too_long", too_long),
        ]
    }

    /// As messages of the version at hand have them: an older version counts frames under a reason that it knows.
    fn told<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut drops = *self;
        if version::spoken() < 7 {
            drops.filtered = drops.filtered.saturating_add(drops.bad_source);
            for kind in [drops.storm_broadcast, drops.storm_multicast, drops.storm_unknown] {
                drops.storm = drops.storm.saturating_add(kind);
            }
        }
        drops.serialize(to)
    }
}

/// Whether the daemon's configuration declares something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Declared {
    /// No: it was set up by hand.
    #[default]
    No,
    /// As it is.
    Yes,
    /// Otherwise than it is: it has been changed by hand since the configuration was read.
    Changed,
}

/// Whose programs may open a port, as the daemon's configuration declares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Option<u32>", into = "Option<u32>")]
pub enum DeclaredFor {
    /// The daemon does not tell: it speaks a version older than 7.
    #[default]
    Untold,
    /// Those of any user that may have the name, or nothing is declared of it.
    Anyone,
    /// Those of this user alone, and of root.
    User(u32),
}

impl DeclaredFor {
    /// The user that alone may open it, and root, where the daemon tells one.
    pub fn user(self) -> Option<u32> {
        match self {
            DeclaredFor::User(uid) => Some(uid),
            DeclaredFor::Anyone | DeclaredFor::Untold => None,
        }
    }
}

impl From<Option<u32>> for DeclaredFor {
    fn from(user: Option<u32>) -> DeclaredFor {
        user.map_or(DeclaredFor::Anyone, DeclaredFor::User)
    }
}

impl From<DeclaredFor> for Option<u32> {
    fn from(declared: DeclaredFor) -> Option<u32> {
        declared.user()
    }
}

/// What went through a port of a bridge, in packets and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortTotals {
    /// From the port into the bridge, also where they were lost.
    pub sent_packets: u64,
    /// Bytes of these.
    pub sent_bytes: u64,
    /// From the bridge to the port.
    pub received_packets: u64,
    /// Bytes of these.
    pub received_bytes: u64,
    /// Addresses that are behind the port by now, as far as they were learned.
    pub known: u64,
    /// Addresses that were behind another port until this one sent with them: a machine has moved,
    /// or the port claims to be its neighbour.
    pub moved: u64,
    /// Packets whose source was not learned, because the port has too many addresses, or it is a static
    /// address of another port.
    pub unlearned: u64,
    /// Packets from the port that may have overtaken earlier ones: the kernel has sent them past the worker,
    /// which had not got through with those.
    pub reordered: u64,
    /// What was dropped, by reason.
    #[serde(serialize_with = "PortDrops::told")]
    pub drops: PortDrops,
}

/// An address, and the port of a switch that it is behind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddressInfo {
    /// The address.
    pub mac: [u8; 6],
    /// The VLAN that it is in; 0: none.
    pub vlan: u16,
    /// Full name of the port.
    pub port: String,
    /// Seconds since it was last seen; `None`: it was not learned, but configured.
    pub age_seconds: Option<u32>,
    /// The port is not there: what is for the address is lost until it is.
    pub absent: bool,
}

/// What a switch that snoops knows of groups. Seconds are those until it is not known any more, unless it is
/// heard again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum GroupInfo {
    /// Hosts are asked for their groups of IPv4, or of IPv6.
    Querier {
        /// Of IPv6.
        ipv6: bool,
        /// The VLAN; 0: none.
        vlan: u16,
        /// As long as it is there.
        seconds: u32,
        /// As long as some hosts may take to answer, and get all groups.
        learning: u32,
    },
    /// Queries come by a port: it gets all groups, and what hosts say of theirs.
    Router {
        /// Of IPv6.
        ipv6: bool,
        /// The VLAN; 0: none.
        vlan: u16,
        /// Full name of the port.
        port: String,
        /// As long as it is known.
        seconds: u32,
    },
    /// A port has joined more groups than are noted, and gets all.
    Full {
        /// Full name of the port.
        port: String,
        /// As long as it does.
        seconds: u32,
    },
    /// A port is in a group.
    Member {
        /// The group.
        group: IpAddr,
        /// The VLAN; 0: none.
        vlan: u16,
        /// Full name of the port.
        port: String,
        /// As long as it is.
        seconds: u32,
    },
}

/// Where a port is among the switches, by index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchPosition {
    /// Index of the switch.
    pub switch: u16,
    /// Index of the port within the switch; 255 if there is no such port.
    pub port: u32,
}

/// Which processors look at an attached interface all the time (S-VALE-19).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Polling {
    /// One processor serves all rings. `count` must be 1.
    OneCpu {
        /// Number of the processor.
        cpu: u32,
        /// How many.
        count: u32,
    },
    /// Processors `first` and following serve the rings with the same numbers.
    Cpus {
        /// Number of the first.
        first: u32,
        /// How many.
        count: u32,
    },
    /// A number that is neither: enabling with this is refused, disabling works.
    Other {
        /// The number.
        mode: u32,
        /// Number of the first processor.
        first: u32,
        /// How many.
        count: u32,
    },
}
