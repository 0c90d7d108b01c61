//! The registry: the book of regions, ports, bridges and which program has what open.
//!
//! It is what netmap's module keeps in the kernel. It knows nothing of sockets: a program
//! may use it in its own process, and `ringwayd` is this library behind a socket. Everything
//! goes through one call, [`Registry::call`]: a [`Request`](ringway_proto::Request), made on a [`Handle`] by a
//! [`Caller`], is answered by a [`Reply`](ringway_proto::Reply) and file descriptors.
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
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::unreachable,
        clippy::todo,
        clippy::unimplemented,
        clippy::string_slice
    )
)]

mod accounts;
mod bind_reply;
mod bridged_nic;
mod bridges;
mod deferred;
mod descriptors;
mod draining;
mod expected;
#[cfg(not(feature = "faults"))]
mod fault;
#[cfg(feature = "faults")]
pub mod fault;
mod handles;
mod header;
mod host;
mod info;
mod interfaces;
mod kept_sockets;
mod kinds;
mod lasting;
mod link_events;
mod local;
mod lost_ports;
mod lost_regions;
mod mode_select;
mod name;
mod netns;
mod nic_mode;
mod notices;
mod options;
mod page;
mod polling;
mod port;
mod ports;
mod queues;
mod reclaim;
mod recover;
mod regions;
mod register;
mod registry;
mod retired;
mod ring_info;
mod rx_redirect;
mod selection;
mod shared_nic;
mod steering;
mod switch_config;
mod switch_ports;
mod switches;

pub use accounts::{Accounts, UidRange};
pub use deferred::{Done, Progress, Step, Subject, Work};
pub use expected::Due;
pub use handles::Handle;
pub use lasting::{
    Lasting, LastingAttachment, LastingNetns, LastingPort, LastingSettings, LastingSwitch,
};
pub use local::LocalRegistry;
pub use lost_regions::LostRegion;
pub use name::PortName;
pub use netns::Netns;
pub use registry::{Caller, Registry, Settings};
pub use ringway_kring::keep_doorbells;
pub use ringway_vale::confine_workers;
pub use steering::Janitor;
