//! Fast packet I/O for ordinary programs: netmap's ports and rings, on stock Linux.
//!
//! A [`Port`] has transmit and receive rings in shared memory. Fill slots of a [`TxRing`],
//! empty slots of an [`RxRing`], and `sync` once for many packets; wait when there is nothing
//! to do. The first port that is opened starts a private `ringwayd`, unless a system's is there;
//! it leaves with the last.
//!
//! ```
//! use ringway::Port;
//!
//! # fn main() -> Result<(), ringway::Error> {
//! # use ringway_doc as Port;
//! let mut a = Port::open("vale0:a")?; // a switch and two ports on it
//! let mut b = Port::open("vale0:b")?;
//!
//! let mut tx = a.tx(0);
//! tx.push(b"\xff\xff\xff\xff\xff\xff\x02\0\0\0\0\x01\x88\xb5 hello, everybody");
//! tx.sync();
//!
//! b.wait_rx(None)?;
//! for frame in b.rx(0).batch(64) {
//!     assert!(frame.to_vec().ends_with(b"everybody"));
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Names of ports: `vale<switch>:<port>` is a port of a software switch, `NAME{ID` and
//! `NAME}ID` are the two ends of a pipe, `netmap:IFACE` is a network interface; see
//! [`PortSpec`].
//!
//! # Memory
//!
//! Slots name buffers of a region, and every program with a port of the same region can write to
//! them at any time. So this interface copies bytes out and in, and lends no slices of shared
//! memory; [`RxFrame::as_ptr`] is for programs that know of no other writer. Between
//! two ports of one region a frame moves [without copying](RxFrame::forward).
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod action;
mod address;
mod asked_twice;
#[cfg(feature = "async")]
mod async_port;
mod batch;
mod binding;
mod buffers;
mod clock;
mod close_barrier;
mod control;
mod driver;
mod environment;
mod error;
mod extra_bufs;
#[cfg(feature = "files")]
mod file_spec;
#[cfg(feature = "files")]
mod files;
mod filter;
mod flows;
mod forward;
mod link_removal;
mod liveness;
mod local_filter;
mod monitors;
mod open_options;
mod own_options;
mod pages;
mod pollable;
mod port;
mod reopen;
mod reports;
mod retry;
mod rx;
mod session;
mod settings;
mod slot;
mod slots;
mod spec;
mod spec_options;
mod turns;
mod tx;
mod vale;
mod verbose;
mod wait;
mod waiting;

pub use action::Action;
pub use address::ethernet_address;
#[cfg(feature = "async")]
pub use async_port::AsyncPort;
pub use binding::Stats;
pub use buffers::Buffers;
pub use clock::tai_ahead;
pub use control::Control;
pub use error::Error;
#[cfg(feature = "files")]
pub use file_spec::{FileSpec, Replay, Rotation};
pub use filter::Filter;
pub use flows::{
    Cluster, ClusterType, ClusterTypeError, Flow, FlowError, FlowHash, Fragment, HASHED_BYTES,
    Headers, Network, PARSED_BYTES, Protocol, Tunnel, flow_hash,
};
pub use open_options::{OpenOptions, TakenFrames};
pub use own_options::OwnOptions;
pub use pollable::PollablePort;
pub use port::Port;
pub use reopen::{Reopening, patience};
pub use reports::{
    ActionInfo, AddressInfo, AttachmentInfo, BridgeInfo, BridgePortInfo, DaemonInfo, Declared,
    DeclaredFor, DeviceCounter, Durations, Event, EventKind, EventPage, FilterInfo, GroupInfo,
    KernelCounters, Level, MirrorTotals, NameConflict, PortDrops, PortInfo, PortKind, PortTotals,
    RegionInfo, RingInfo, Steered, SwitchMirrorInfo,
};
pub use rx::{Forwarded, RxBatch, RxFrame, RxRing};
pub use settings::{
    Cause, Ebpf, FloodLimit, Forwarding, Insn, Lossless, MirrorDirection, Monitor, Multicast,
    MulticastRouter, NicMode, Polling, PortSettings, PortShape, RateLimit, Registration,
    RingSelection, SourceAddresses, SwitchMirror, Timestamps, Vlan, mac_text, parse_mac,
    parse_vids,
};
pub use slot::{NS_BUF_CHANGED, NS_INDIRECT, NS_MOREFRAG, NS_REPORT, Recorded, Slot};
pub use slots::Slots;
pub use spec::PortSpec;
pub use turns::Turns;
pub use tx::{TxBatch, TxRing, TxSlot};
pub use vale::ValePlace;
pub use wait::{Interest, PortWaiter};
pub use waiting::{Armed, Prepared, Sleeper, Sources, Waiter, Woken, prepare};

// For Ringway's own libraries and programs: it changes with any version (docs/stability.md).
#[doc(hidden)]
pub use binding::{Binding, BoundRing};
#[doc(hidden)]
pub use close_barrier::CloseBarrier;
#[doc(hidden)]
pub use environment::{add_environment, mode_of_environment};
#[doc(hidden)]
pub use monitors::Ask;
#[doc(hidden)]
pub use open_options::check_options;
#[doc(hidden)]
pub use ringway_ipc::{
    Answer, HeaderLen, Index, Page, RingTexts, SocketPath, SwitchFound, connect_remedy,
    daemon_binary, leave_shared_folder, leave_user_folder, shared_folder, sweep_ring_texts,
    user_folder,
};
#[doc(hidden)]
pub use ringway_kring::BusyPoll;
#[doc(hidden)]
pub use ringway_proto::{Connector, Transport, is_printable, printable};
#[doc(hidden)]
pub use session::Session;
#[doc(hidden)]
pub use verbose::{explain, is_verbose, tell_switch_owner};

/// The Rust programs of the guide compile.
#[cfg(doctest)]
#[doc = include_str!("../../../../docs/guide/programs.md")]
struct Guide;
