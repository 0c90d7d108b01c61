//! AF_XDP, as thin as it can be: the kernel's own road between a NIC and user memory.
//!
//! The work is split by privilege, because the kernel allows it (see `Documentation/networking/
//! af_xdp.rst` for the words):
//!
//! 1. **A privileged process sets up**: it looks at the interface ([`Interface`]), attaches the XDP
//!    program ([`XdpProgram`]), opens a socket on a queue with a memory of its own choice as UMEM
//!    ([`Xsk`]), and points the program at the socket ([`XdpProgram::set_queue`]).
//! 2. **Any process runs**: whoever holds the socket's descriptor, the [`RingSizes`] and the memory
//!    maps the four rings ([`Rings`]), moves descriptors and kicks the kernel ([`kick_tx`]). No
//!    privilege is needed.
//!
//! Three users stand on that:
//! - [`XdpTx`] and [`XdpRx`] run a client's netmap rings, with the region's buffers as the UMEM.
//! - [`FrameQueue`] is both halves in one process, with memory of its own: it receives, sends and
//!   keeps account of every buffer.
//! - [`NicPort`] makes a NIC a port of a bridge, by a `FrameQueue` a queue.
//!
//! A host's stack is reached like a NIC: [`PrivatePair`] makes an interface whose other end is ours,
//! [`HostEnd`] and [`EgressRedirect`] connect such a pair with a NIC.
//!
//! Who holds what, and what goes when it goes:
//!
//! | held | effect of its last holder's end |
//! | --- | --- |
//! | the program's link ([`XdpProgram::link_fd`]) | the program detaches, the stack gets every frame |
//! | the diversion's link ([`EgressRedirect::link_fd`]) | what the stack sends goes out again |
//! | the withholding's link ([`IngressDrop::link_fd`]) | the stack gets every frame |
//! | the socket's descriptor **and** every mapping of its rings | the queue is unbound, some 20 ms later |
//!
//! Nothing is attached by netlink, so nothing stays behind after a crash.

mod attached;
mod bridge;
mod btf;
mod error;
#[cfg(feature = "fake-kernel")]
pub mod fake;
mod filter;
mod frames;
mod generate;
mod genl;
mod host;
mod iface;
mod ingress_drop;
mod kick;
mod netns;
mod object;
mod offload;
mod pair;
mod partial_csum;
mod program;
mod promisc;
mod ring;
mod rings;
mod rtnl;
mod setup;
mod socket;
mod stat;
mod sys;
mod tags;
mod timestamps;
mod umem;
mod watch;

pub use attached::AttachedProgram;
pub use bridge::NicPort;
pub use error::Error;
pub use filter::{Filter, FilterCounters};
pub use frames::{FrameCounters, FrameQueue, RxFrame};
pub use host::{EgressRedirect, HostEnd, InjectMark};
pub use iface::{Interface, longest_frame};
pub use ingress_drop::{INJECTED, IngressDrop};
pub use kick::{KickOutcome, kick_rx, kick_tx};
pub use netns::in_netns;
pub use pair::{OuterEnd, PairConfig, PrivatePair};
pub use program::{AttachMode, QUEUES, XdpProgram};
pub use promisc::Promiscuous;
pub use ring::{XdpRx, XdpTx};
pub use rings::{Consumer, Desc, MAX_FRAGS, Producer, Ring, RingSizes, Rings};
pub use setup::{Missing, device_privileges, privileges};
pub use socket::{Mode, Xsk, XskConfig, takes_chunks_of};
pub use stat::{Lost, Statistics, is_zero_copy, statistics};
pub use umem::Umem;
pub use watch::{Link, LinkNews, LinkState, LinkWatch};

/// Where in a chunk the kernel puts a received frame, in bytes. A constant of every driver and
/// mode (`XDP_PACKET_HEADROOM`), so the largest frame is the chunk less this.
pub const RX_HEADROOM: u32 = 256;
