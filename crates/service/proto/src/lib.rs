//! What clients and the registry say to each other: requests, replies, grants and errors, as plain
//! data.
//!
//! Nothing here acts. `ringway-ipc` carries it over a Unix socket; a program that has a registry in
//! its own process hands it over as it is.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod action;
mod daemon;
mod error;
mod event;
mod filter;
mod grant;
mod info;
mod nic_mode;
mod options;
mod parameters;
mod pools;
mod printable;
mod registration;
mod request;
mod steering;
mod switch;
mod transport;
mod version;

pub use action::Action;
pub use daemon::{DaemonInfo, Durations};
pub use error::{Cause, Error, Refusal, Refusals, Result};
pub use event::{Event, EventKind, EventPage, Level};
pub use filter::{Filter, RxSelector};
pub use grant::{FdIndex, Grant, MirrorGrant, MirrorMemory, PortKind, RingBackend, RingGrant};
pub use info::{
    ActionInfo, AttachmentInfo, BridgeInfo, BridgePortInfo, DeviceCounter, FilterInfo,
    KernelCounters, NameConflict, PortInfo, RegionInfo, RegionPosition, RingInfo, SwitchMirrorInfo,
};
pub use nic_mode::NicMode;
pub use options::{Extmem, Offsets, OptionStatus, Options, Statuses};
pub use parameters::Parameters;
pub use pools::Pools;
pub use printable::{is_printable, printable};
pub use registration::{Monitor, PortGeometry, PortShape, Registration, RingSelection};
pub use request::{Reply, Request};
pub use ringway_filter::{Ebpf, Insn};
pub use ringway_flow::Flow;
pub use ringway_region::{Layout, PoolShape, Sizes, Span, Timestamps};
pub use steering::Steered;
pub use switch::{
    AddressInfo, Declared, DeclaredFor, FloodLimit, Forwarding, GroupInfo, Lossless, Mac,
    MirrorDirection, MirrorTotals, Multicast, MulticastRouter, Polling, PortDrops, PortSettings,
    PortTotals, RateLimit, SourceAddresses, SwitchMirror, SwitchPosition, Vlan, mac_text,
    parse_mac, parse_vids,
};
pub use transport::{Connector, Transport};
pub use version::{NO_VERSION, Needed, OLDEST, Shown, VERSION, Versions, in_version};
