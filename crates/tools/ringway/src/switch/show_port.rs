//! `ringway switch port NAME` without a setting: how the port takes part.

use crate::endpoint::Mac;
use crate::error::{Error, Result};
use crate::output::Output;
use ringway::{BridgePortInfo, Control, Lossless, RateLimit, SourceAddresses, Vlan};
use serde::Serialize;
use std::fmt;

use super::{choose, port_name::check_name};

/// How a port of a switch takes part.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "type", rename = "switch_port_settings")]
pub struct Settings<'a> {
    port: &'a str,
    index: u32,
    /// For an interface: how it is driven, and why not better.
    mode: Option<&'a str>,
    /// For an interface, or the stack behind one: what the interface is called now.
    interface: Option<&'a str>,
    /// For an access port.
    access: Option<u16>,
    /// For a trunk.
    trunk: Option<Vec<u16>>,
    native: Option<u16>,
    /// The addresses that it may send with; none: any, or the first in use.
    addresses: Option<Vec<String>>,
    one_address: bool,
    /// The filter of what it may send, and of what it gets, if not all.
    filter_in: Option<&'a str>,
    filter_out: Option<&'a str>,
    /// How many addresses the switch may know behind it, if not as many as it can.
    max_addresses: Option<u16>,
    isolated: bool,
    swap_buffers: bool,
    /// How much it may send, if not as much as it likes.
    rate_bits_per_second: Option<u64>,
    burst_bytes: Option<u64>,
    /// How much of that may be flooded.
    storm_frames_per_second: Option<u32>,
    /// The same of each kind.
    storm_broadcast_frames_per_second: Option<u32>,
    storm_broadcast_burst_frames: Option<u32>,
    storm_multicast_frames_per_second: Option<u32>,
    storm_multicast_burst_frames: Option<u32>,
    storm_unknown_frames_per_second: Option<u32>,
    storm_unknown_burst_frames: Option<u32>,
    lossless_ms: Option<u32>,
    group_forward: u16,
    /// Whether it gets all groups where the switch snoops: `always`, or `auto`.
    multicast_router: &'static str,
    waits_for: Option<&'a str>,
    loops_with: Option<&'a str>,
    #[serde(skip)]
    text: String,
}

impl fmt::Display for Settings<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

pub fn show(control: &Control, name: &str) -> Result<()> {
    let switches = control.switches()?;
    let port = switches.iter().flat_map(|switch| &switch.ports).find(|port| port.name == name);
    let Some(port) = port else {
        check_name(control, name)?;
        return Err(Error::NoPort {
            port: name.into(),
            problem: "there is no such port; `ringway switch list` shows those there are",
        });
    };
    Output::chosen().write(&settings(port))
}

fn settings(port: &BridgePortInfo) -> Settings<'_> {
    let (access, trunk, native) = match &port.vlan {
        Vlan::Unaware => (None, None, None),
        Vlan::Access(vid) => (Some(*vid), None, None),
        Vlan::Trunk { allowed, native } => (None, Some(allowed.iter().copied().collect()), *native),
    };
    let (addresses, one_address) = match &port.sources {
        SourceAddresses::Any => (None, false),
        SourceAddresses::One => (None, true),
        SourceAddresses::Only(macs) => {
            (Some(macs.iter().map(|mac| Mac(*mac).to_string()).collect()), false)
        }
    };
    let part = choose::part(port);
    let part = if part.is_empty() { "as all ports are at first".into() } else { part };
    let [broadcast, multicast, unknown] =
        [port.storm_broadcast, port.storm_multicast, port.storm_unknown]
            .map(|limit| (limit.map(|it| it.frames_per_second), limit.map(|it| it.burst_frames)));
    let mode = port.mode.as_ref().map(|mode| format!("; {mode}")).unwrap_or_default();
    Settings {
        port: &port.name,
        index: port.index,
        mode: port.mode.as_deref(),
        interface: port.interface.as_deref(),
        access,
        trunk,
        native,
        addresses,
        one_address,
        filter_in: port.filter_in.as_deref(),
        filter_out: port.filter_out.as_deref(),
        max_addresses: port.max_addresses,
        isolated: port.isolated,
        swap_buffers: port.swap_buffers,
        rate_bits_per_second: port.rate.map(|RateLimit { bits_per_second, .. }| bits_per_second),
        burst_bytes: port.rate.map(|RateLimit { burst_bytes, .. }| burst_bytes),
        storm_frames_per_second: port.storm,
        storm_broadcast_frames_per_second: broadcast.0,
        storm_broadcast_burst_frames: broadcast.1,
        storm_multicast_frames_per_second: multicast.0,
        storm_multicast_burst_frames: multicast.1,
        storm_unknown_frames_per_second: unknown.0,
        storm_unknown_burst_frames: unknown.1,
        lossless_ms: port.lossless.map(|Lossless { patience_ms }| patience_ms),
        group_forward: port.group_forward,
        multicast_router: port.multicast_router.name(),
        waits_for: port.waits_for.as_deref(),
        loops_with: port.loops_with.as_deref(),
        text: format!("{}: {part}{mode}", port.name),
    }
}
