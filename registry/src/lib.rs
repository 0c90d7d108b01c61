//! The registry: the book of regions, ports, bridges and who has what open.
//!
//! It is what netmap's module keeps in the kernel. It knows nothing of sockets: a program
//! may use it in its own process, and `ringwayd` is this library behind a socket. Everything
//! goes through one call, [`Registry::call`]: a [`Request`], made on a [`Handle`] by a
//! [`Caller`], is answered by a [`Reply`] and file descriptors.
//!
//! ```text
//!  Handle ---- Binding ----> Port ----> Ring, Ring, ...   (krings in a region)
//!  "an fd"     which rings    |    \--> parent or peer    (pipes)
//!                             |
//!                             +-------> Region            (pools, memfd)
//!                             +-------> Bridge            (worker thread)
//! ```
//!
//! A port lives as long as something refers to it; when the last binding goes, its rings
//! return their buffers, and when the last port of a region goes, so does the region.

mod attached;
mod bind_reply;
mod bridged_nic;
mod bridges;
mod descriptors;
mod error;
mod extra_bufs;
mod grant;
mod header;
mod host;
mod info;
mod link_events;
mod mode_select;
mod monitors;
mod name;
mod nic;
mod nic_mode;
mod options;
mod persistent;
mod pipes;
mod polling;
mod port;
mod queues;
mod reclaim;
mod regions;
mod register;
mod registry;
mod request;
mod ring_info;
mod rx_redirect;
mod selection;
mod shared_nic;
mod steering;
mod switches;
mod virtual_ports;

pub use error::{Error, Result};
pub use grant::{FdIndex, Grant, MirrorGrant, MirrorMemory, PortKind, RingBackend, RingGrant};
pub use name::PortName;
pub use nic_mode::NicMode;
pub use options::{Extmem, Offsets, Options, Statuses};
pub use registry::{Caller, Handle, Registry, Settings};
pub use request::{
    BridgeInfo, BridgePortInfo, KernelCounters, PortInfo, RegionInfo, Reply, Request, RingInfo,
};
pub use ringway_region::Timestamps;
pub use ringway_vale::{Lossless, Vlan};
pub use rx_redirect::{Filter, FilterInfo, RxSelector};
pub use steering::Janitor;
pub use switches::{Forwarding, PortSettings};
