//! What outlives the registry: all that users have set up to stay, as plain data.
//!
//! A daemon keeps it in a file, and the next one [restores](Registry::restore) it. It is what users
//! asked for, never how far that got: regions, rings and what ports have counted are made anew.

use std::os::fd::OwnedFd;

use ringway_nic_setup::DeviceSettings;
use ringway_proto::{
    Filter, FloodLimit, Forwarding, Lossless, MirrorDirection, Multicast, MulticastRouter, NicMode,
    PortSettings, PortShape, RateLimit, SourceAddresses, Vlan,
};
use serde::{Deserialize, Serialize};

use crate::{
    compact::{self, filter_bytes, mirror_bytes, port_bytes},
    declared::DeclaredSwitch,
    netns::Netns,
};

/// All of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Lasting {
    /// Persistent ports.
    pub ports: Vec<LastingPort>,
    /// Switches that were made to stay, or that something stays on.
    pub switches: Vec<LastingSwitch>,
    /// What stays on switches, in the order in which it can be attached.
    pub attached: Vec<LastingAttachment>,
}

/// A persistent port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LastingPort {
    pub name: String,
    pub uid: u32,
    #[serde(default)]
    pub netns: LastingNetns,
    pub shape: PortShape,
    /// What its device was set to when that was last looked at.
    #[serde(default)]
    pub device: Option<LastingDevice>,
}

/// What the device of a persistent port is set to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LastingDevice {
    pub mac: [u8; 6],
    pub mtu: u32,
}

impl LastingDevice {
    /// MTUs that a veth pair can have.
    const MTUS: std::ops::RangeInclusive<u32> = 68..=65535;

    /// Whether a device can be set so: it comes from a file.
    pub(crate) fn is_possible(&self) -> bool {
        let group = self.mac.first().is_none_or(|first| first & 1 != 0);
        !group && self.mac != [0; 6] && Self::MTUS.contains(&self.mtu)
    }
}

impl From<DeviceSettings> for LastingDevice {
    fn from(DeviceSettings { mac, mtu }: DeviceSettings) -> LastingDevice {
        LastingDevice { mac, mtu }
    }
}

/// A switch, with its settings and those of its ports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LastingSwitch {
    pub name: String,
    /// The user who made it to stay.
    pub keeper: Option<u32>,
    #[serde(default)]
    pub one_address: bool,
    /// The user who configured it while no user kept it.
    pub configured_by: Option<u32>,
    #[serde(default)]
    pub forwarding: Forwarding,
    #[serde(default, skip_serializing_if = "Multicast::is_flood")]
    pub multicast: Multicast,
    #[serde(default)]
    pub settings: Vec<LastingSettings>,
    /// Addresses that were added to those that it learns.
    #[serde(default)]
    pub addresses: Vec<LastingAddress>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mirrors: Vec<LastingMirror>,
    /// What the operator has declared of it.
    #[serde(default)]
    pub declared: Option<DeclaredSwitch>,
}

/// A mirror of a switch. Ports have their full names, `vale0:a`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LastingMirror {
    pub name: String,
    /// The user that has set it.
    pub uid: u32,
    /// The ports that it shows; `None`: all.
    #[serde(default)]
    pub from: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "MirrorDirection::is_both")]
    pub direction: MirrorDirection,
    /// The port that gets the copies, and the user whose it is to be.
    pub to: String,
    pub to_uid: u32,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "compact::filter")]
    pub filter: Option<Filter>,
}

/// An address, and the port of a switch that it is behind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LastingAddress {
    pub mac: [u8; 6],
    /// The VLAN that it is in; 0: none.
    #[serde(default)]
    pub vlan: u16,
    /// The port's full name, `vale0:a`.
    pub port: String,
}

/// Settings of a port of a switch, which it has again when that user opens or attaches it again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LastingSettings {
    /// The port's full name, `vale0:a`.
    pub name: String,
    pub uid: u32,
    #[serde(default)]
    pub group_forward: u16,
    #[serde(default)]
    pub isolated: bool,
    #[serde(default)]
    pub swap_buffers: bool,
    #[serde(default, with = "compact::filter")]
    pub filter_in: Option<Filter>,
    #[serde(default, with = "compact::filter")]
    pub filter_out: Option<Filter>,
    #[serde(default)]
    pub max_addresses: Option<u16>,
    #[serde(default)]
    pub rate: Option<RateLimit>,
    #[serde(default)]
    pub storm: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storm_broadcast: Option<FloodLimit>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storm_multicast: Option<FloodLimit>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storm_unknown: Option<FloodLimit>,
    #[serde(default, skip_serializing_if = "MulticastRouter::is_auto")]
    pub multicast_router: MulticastRouter,
    #[serde(default, with = "compact::vlan")]
    pub vlan: Vlan,
    #[serde(default)]
    pub sources: SourceAddresses,
    pub lossless: Option<Lossless>,
}

impl LastingSettings {
    /// Those of a port of which nobody has chosen anything; `one_address`: its switch is for programs that
    /// send with one.
    pub fn unset(one_address: bool) -> LastingSettings {
        LastingSettings {
            name: String::new(),
            uid: 0,
            group_forward: 0,
            isolated: false,
            swap_buffers: false,
            filter_in: None,
            filter_out: None,
            max_addresses: None,
            rate: None,
            storm: None,
            storm_broadcast: None,
            storm_multicast: None,
            storm_unknown: None,
            multicast_router: MulticastRouter::Auto,
            vlan: Vlan::default(),
            sources: if one_address { SourceAddresses::One } else { SourceAddresses::Any },
            lossless: None,
        }
    }

    /// Whether they are the same, whosever they are.
    pub(crate) fn is_like(&self, other: &LastingSettings) -> bool {
        self.wanted() == other.wanted()
    }

    /// The same as a user asks for it.
    pub(crate) fn wanted(&self) -> PortSettings {
        let LastingSettings { name: _, uid: _, vlan, sources, lossless, .. } = self;
        let LastingSettings { filter_in, filter_out, max_addresses, rate, storm, .. } = self;
        PortSettings {
            vlan: Some(vlan.clone()),
            sources: Some(sources.clone()),
            lossless: Some(*lossless),
            group_forward: Some(self.group_forward),
            isolated: Some(self.isolated),
            swap_buffers: Some(self.swap_buffers),
            filter_in: Some(filter_in.clone()),
            filter_out: Some(filter_out.clone()),
            max_addresses: Some(*max_addresses),
            rate: Some(*rate),
            storm: Some(*storm),
            storm_broadcast: Some(self.storm_broadcast),
            storm_multicast: Some(self.storm_multicast),
            storm_unknown: Some(self.storm_unknown),
            multicast_router: Some(self.multicast_router),
            unblock: false,
        }
    }

    /// What takes back all that is as it was `declared`, to what it is `unset`: the rest was chosen since.
    pub(crate) fn resets(
        &self,
        declared: &LastingSettings,
        unset: &LastingSettings,
    ) -> PortSettings {
        fn reset<T: PartialEq>(now: Option<T>, then: Option<T>, unset: Option<T>) -> Option<T> {
            unset.filter(|_| now == then)
        }
        let (now, then, unset) = (self.wanted(), declared.wanted(), unset.wanted());
        PortSettings {
            vlan: reset(now.vlan, then.vlan, unset.vlan),
            sources: reset(now.sources, then.sources, unset.sources),
            lossless: reset(now.lossless, then.lossless, unset.lossless),
            group_forward: reset(now.group_forward, then.group_forward, unset.group_forward),
            isolated: reset(now.isolated, then.isolated, unset.isolated),
            swap_buffers: reset(now.swap_buffers, then.swap_buffers, unset.swap_buffers),
            filter_in: reset(now.filter_in, then.filter_in, unset.filter_in),
            filter_out: reset(now.filter_out, then.filter_out, unset.filter_out),
            max_addresses: reset(now.max_addresses, then.max_addresses, unset.max_addresses),
            rate: reset(now.rate, then.rate, unset.rate),
            storm: reset(now.storm, then.storm, unset.storm),
            storm_broadcast: reset(
                now.storm_broadcast,
                then.storm_broadcast,
                unset.storm_broadcast,
            ),
            storm_multicast: reset(
                now.storm_multicast,
                then.storm_multicast,
                unset.storm_multicast,
            ),
            storm_unknown: reset(now.storm_unknown, then.storm_unknown, unset.storm_unknown),
            multicast_router: reset(
                now.multicast_router,
                then.multicast_router,
                unset.multicast_router,
            ),
            unblock: false,
        }
    }
}

/// An interface, or a persistent port, on a switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LastingAttachment {
    /// `vale0:eth7`.
    pub name: String,
    pub uid: u32,
    #[serde(default)]
    pub netns: LastingNetns,
    /// Whether its host stack is on the switch, too.
    #[serde(default)]
    pub stack: bool,
    /// The mode that was asked for.
    pub mode: Option<NicMode>,
    /// The processors on which it is polled.
    pub polling: Option<Vec<usize>>,
    /// It is declared, and was never there.
    #[serde(default)]
    pub never_there: bool,
    /// What the interface is called by now, where that is another name than its port's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renamed: Option<String>,
    /// It is not there by now: it is still to come, or to come back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub absent: bool,
}

impl LastingAttachment {
    /// The name of the interface by now.
    pub(crate) fn interface(&self) -> Option<&str> {
        self.renamed.as_deref().or_else(|| Some(self.name.split_once(':')?.1))
    }
}

/// The network namespace of something that lasts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LastingNetns {
    /// The one that the kernel knows by this number (`SO_NETNS_COOKIE`), as long as the machine runs.
    Cookie(u64),
    /// The kernel does not tell.
    #[default]
    Unknown,
}

impl LastingNetns {
    pub(crate) fn of(netns: &Netns) -> LastingNetns {
        netns.cookie().map_or(LastingNetns::Unknown, LastingNetns::Cookie)
    }

    /// Its number, if it is known to be another one than `other`.
    pub(crate) fn other_than(self, other: LastingNetns) -> Option<u64> {
        match (self, other) {
            (LastingNetns::Cookie(it), LastingNetns::Cookie(other)) if it != other => Some(it),
            _ => None,
        }
    }

    /// The namespace of the daemon that a descriptor leads to, or of the calling thread.
    pub fn of_process(netns: Option<OwnedFd>) -> LastingNetns {
        LastingNetns::of(&netns.map_or(Netns::Own, Netns::other))
    }
}

/// Bytes that a filter takes at most.
fn of_filter(filter: &Filter) -> usize {
    filter_bytes(&filter.text, filter.insns.len())
}

impl LastingSettings {
    /// Bytes that the file has of them at most.
    pub(crate) fn bytes(&self) -> usize {
        let allowed = match &self.vlan {
            Vlan::Trunk { allowed, .. } => allowed.len(),
            _ => 0,
        };
        let sources = match &self.sources {
            SourceAddresses::Only(macs) => macs.len(),
            _ => 0,
        };
        let filters = [&self.filter_in, &self.filter_out].into_iter().flatten();
        port_bytes(allowed, sources, filters.map(of_filter).sum())
    }
}

impl LastingMirror {
    /// Bytes that the file has of it at most.
    pub(crate) fn bytes(&self) -> usize {
        let from = self.from.as_ref().map_or(0, Vec::len);
        mirror_bytes(from, self.filter.as_ref().map_or(0, of_filter))
    }
}

impl LastingSwitch {
    /// Bytes that the file has at most of each user's ports and mirrors.
    pub(crate) fn bytes(&self) -> impl Iterator<Item = (u32, usize)> {
        let settings = self.settings.iter().map(|it| (it.uid, it.bytes()));
        settings.chain(self.mirrors.iter().map(|it| (it.uid, it.bytes())))
    }
}
