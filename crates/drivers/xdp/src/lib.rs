//! AF_XDP's data path, as thin as it can be: the kernel's own road between a NIC and user memory.
//!
//! No privilege is needed for what is here (see `Documentation/networking/af_xdp.rst` for the words):
//! a process that holds a bound socket's descriptor, the [`RingSizes`] and the memory maps the rings
//! ([`Rings`]), moves descriptors and kicks the kernel ([`kick_tx`]). What takes privileges, from the
//! XDP program to the socket's binding, is in `ringway-nic-setup`.
//!
//! Three users stand on that:
//! - [`XdpTx`] and [`XdpRx`] run a client's netmap rings, with the region's buffers as the UMEM.
//! - [`FrameQueue`] receives and sends with memory of its own, and keeps account of every buffer.
//! - [`NicPort`] makes a NIC a port of a bridge, by a `FrameQueue` a queue.
//!
//! A queue is unbound some 20 ms after the socket's descriptor **and** every mapping of its rings have
//! gone.
//!
//! | file | idea |
//! | --- | --- |
//! | `socket.rs` | a bound socket, as it is handed over |
//! | `rings.rs`, `kick.rs`, `stat.rs` | the kernel's rings, its kick, its counters |
//! | `ring.rs`, `ring/` | netmap rings on them |
//! | `frames.rs` | whole frames, in memory in chunks |
//! | `bridge.rs` | the port of a bridge |
//! | `partial_csum.rs` | checksums that the other end of a veth pair left undone |
//! | `fake.rs` | the kernel's side, for tests |
//! | `sys/` | the memory of rings and chunks |
#![deny(unsafe_code)]

mod bridge;
#[cfg(feature = "fake-kernel")]
pub mod fake;
mod frame_memory;
mod frames;
mod kick;
mod loss;
mod partial_csum;
mod ring;
mod rings;
mod socket;
mod stat;
mod sys;

pub use bridge::{NicPort, NicPortConfig};
pub use frame_memory::FrameMemory;
pub use frames::{FrameCounters, FrameQueue, RxFrame};
pub use kick::{KickOutcome, is_bound, kick_rx, kick_tx};
pub use ring::{XdpRx, XdpTx};
pub use rings::{Consumer, Desc, MAX_FRAGS, Producer, RingSizes, Rings};
pub use socket::{XskSocket, can_be_mapped};
pub use stat::{Lost, Statistics, is_zero_copy, statistics};
pub use sys::{Ring, TimeFlag, Umem};

/// Where in a chunk the kernel puts a received frame, in bytes. A constant of every driver and
/// mode (`XDP_PACKET_HEADROOM`), so the largest frame is the chunk less this.
pub const RX_HEADROOM: u32 = 256;

/// The shortest frame that the kernel sends: an Ethernet header.
const SHORTEST: u32 = ringway_switch_port::SHORTEST as u32;

/// Bytes of a VLAN tag, which come on top of the longest frame that an MTU allows.
pub const VLAN_TAG: u32 = 4;
