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
//! Each idea is a book, a type that has its state and what changes it. The registry has the books, and
//! does what takes several of them: a port that comes or goes, a binding, a request begun and ended.
//!
//! | book | of what |
//! | --- | --- |
//! | `Handles` | open handles, and their bindings |
//! | `Ports` | ports, their names, whose they are; what a port is, its kind tells (`kinds`) |
//! | `Regions` | regions, their objects, what users may have of memory, what comes back |
//! | `Bridges` | switches, their ports and settings, who may change them |
//! | `Watches` | network interfaces that ports are tied to |
//! | [`Deferred`] | work that takes long, for requests and for what is closed |
//! | `Leftovers` | rings that a switch still reads although their port has gone |
//! | [`Expected`] | what a daemon before this one had, or what is declared, and is not there yet |
//! | `KeptSockets`, `Steerings`, `Notices` | sockets that programs keep, flows that are steered, what an operator is told |
//! | `NameConflicts` | names that users asked for, and others have |
//!
//! What is slow is a step of a `transaction`, or of one of several that a request consists of. What is looked up
//! for a request is a piece of [`Work`] after which the request is begun again.
//!
//! What work has made is closed off the loop, too, unless a transaction is committed with it. `recover` makes the
//! books agree after a panic, and `check` tells whether they do, for the simulation (`tests/simulation`).
//!
//! A function takes the books that it needs; one that takes the whole registry changes ports of other kinds,
//! or lets them go.
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
mod actions;
mod added_queues;
mod answer;
mod arrivals;
mod bind_reply;
mod bridged_nic;
mod bridges;
mod caller;
mod charge;
#[cfg(feature = "faults")]
mod check;
#[cfg(not(feature = "faults"))]
mod clock;
#[cfg(feature = "faults")]
pub mod clock;
mod compact;
mod conflicts;
mod declared;
mod deferred;
mod descriptors;
mod device_losses;
mod draining;
mod drop_watch;
mod expected;
mod fast_switch;
#[cfg(not(feature = "faults"))]
mod fault;
#[cfg(feature = "faults")]
pub mod fault;
mod free_memory;
mod handles;
mod header;
mod host;
mod host_rings;
mod info;
mod interfaces;
mod kept_sockets;
mod keys;
mod kinds;
mod lasting;
mod lasting_state;
mod link_events;
mod local;
mod lookups;
mod lost_ports;
mod lost_regions;
mod mode_select;
mod name;
mod netif;
mod netns;
mod nic_mode;
mod notices;
mod offsets;
mod options;
mod page;
mod polling;
mod port;
mod ports;
mod queues;
mod receive_watch;
mod reclaim;
mod recover;
mod regions;
mod register;
mod registry;
mod reserved;
mod retired;
mod ring_info;
mod rx_redirect;
mod selection;
mod settings;
mod setup_error;
mod shared_nic;
mod steer;
mod steering;
mod subject;
mod switch_config;
mod switch_ports;
mod switches;
mod taken_names;
mod transaction;
mod waiting;

pub use accounts::{Accounts, UidRange};
pub use caller::Caller;
pub use declared::{
    Change, DeclaredInterface, DeclaredPort, DeclaredSwitch, Outcome, changes, idle_addresses,
    renamed_interfaces, why_not_attached,
};
pub use deferred::{Deferred, Done, Progress, Step, Work};
pub use drop_watch::DropWatch;
pub use expected::{Due, Expected};
pub use handles::Handle;
pub use lasting::{
    Lasting, LastingAddress, LastingAttachment, LastingDevice, LastingMirror, LastingNetns,
    LastingPort, LastingSettings, LastingSwitch,
};
pub use local::LocalRegistry;
pub use lost_regions::LostRegion;
pub use name::{IFNAMSIZ, NOT_IN_NAMES, PortName};
pub use netns::{Netns, OnDemand, OtherNetns, SocketThere};
pub use notices::Notice;
pub use receive_watch::{Looked, ReceiveWatch};
pub use registry::Registry;
pub use reserved::{NamePattern, Reserved, for_others};
pub use ringway_kring::{keep_doorbells, slow_doorbells};
pub use ringway_vale::confine_workers;
pub use settings::Settings;
pub use steering::Janitor;
pub use subject::Subject;
