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
mod forward;
mod link_removal;
mod liveness;
mod local_filter;
mod monitors;
mod open_options;
mod own_options;
mod pollable;
mod port;
mod reopen;
mod retry;
mod rx;
mod session;
mod slots;
mod spec;
mod spec_options;
mod turns;
mod tx;
mod vale;
mod verbose;
mod wait;

pub use action::Action;
pub use address::ethernet_address;
#[cfg(feature = "async")]
pub use async_port::AsyncPort;
pub use binding::{Binding, BoundRing, Stats};
pub use buffers::Buffers;
pub use clock::tai_ahead;
pub use close_barrier::CloseBarrier;
pub use control::Control;
pub use environment::{add_environment, mode_of_environment};
pub use error::Error;
#[cfg(feature = "files")]
pub use file_spec::FileSpec;
pub use filter::Filter;
pub use monitors::Ask;
pub use open_options::{OpenOptions, TakenFrames, check_options};
pub use own_options::OwnOptions;
pub use pollable::PollablePort;
pub use port::Port;
pub use ringway_abi::{NS_BUF_CHANGED, NS_INDIRECT, NS_MOREFRAG, NS_REPORT};
pub use ringway_flow::{
    Cluster, ClusterType, ClusterTypeError, Flow, FlowError, FlowHash, HASHED_BYTES, Headers,
    PARSED_BYTES, flow_hash,
};
pub use ringway_ipc::{
    Answer, HeaderLen, Index, Page, SocketPath, SwitchFound, connect_remedy, daemon_binary,
    leave_shared_folder, leave_user_folder, shared_folder, user_folder,
};

pub use reopen::{Reopening, patience};
pub use ringway_kring::{Armed, BusyPoll, Prepared, Sleeper, Sources, Waiter, Woken, prepare};
pub use ringway_proto::{
    ActionInfo, AddressInfo, AttachmentInfo, BridgeInfo, BridgePortInfo, Cause, Connector,
    DaemonInfo, Declared, DeviceCounter, Durations, Ebpf, Event, EventKind, EventPage, FilterInfo,
    Forwarding, KernelCounters, Level, Lossless, NameConflict, NicMode, Polling, PortDrops,
    PortInfo, PortKind, PortSettings, PortShape, PortTotals, RateLimit, RegionInfo, Registration,
    RingInfo, RingSelection, SourceAddresses, Steered, Timestamps, Transport, Vlan, is_printable,
    mac_text, parse_mac, parse_vids, printable,
};
pub use ringway_region::{Recorded, Slot};
pub use rx::{Forwarded, RxBatch, RxFrame, RxRing};
pub use session::Session;
pub use slots::Slots;
pub use spec::PortSpec;
pub use turns::Turns;
pub use tx::{TxBatch, TxRing, TxSlot};
pub use vale::ValePlace;
pub use verbose::{explain, is_verbose, tell_switch_owner};
pub use wait::{Interest, PortWaiter};

/// The Rust programs of the guide compile.
#[cfg(doctest)]
#[doc = include_str!("../../../../docs/guide/programs.md")]
struct Guide;
