//! vhost-user: the network card of a virtual machine as a port's rings.
//!
//! A machine's monitor (QEMU, Cloud Hypervisor), or a program with a driver of its own (DPDK's
//! virtio-user), connects to a Unix socket, hands over the machine's memory, and says where in it the
//! card's virtqueues are. A [`Connection`] obeys its messages, and copies frames between the
//! virtqueues and the slots of a port's rings.
//!
//! ```text
//!   guest  -- sending queue -->  send     -- tx slots -->  port
//!          <- receiving queue -- receive  <- rx slots --
//! ```
//!
//! # Trust
//!
//! Guest and monitor are hostile. The process that has a connection has nothing that is not the
//! machine's own, but for its port: what they do to it they do to themselves.
//!
//! - A descriptor is read once, and what was read is checked. Chains and tables have an end; a queue that is used as no guest may is not touched any more, until it is set
//!   up anew ([`Fault`]).
//! - Memory is where the front end says, or nowhere. A file that becomes shorter is found out
//!   ([`End::MemoryLost`]), if the process has a [`LostPages`].
//! - A header is checked before it goes on, either way: what it asks for stays, the rest is zero, and
//!   what cannot be is refused, and counted with its sender. Before the guest gets it, it is compared
//!   with its frame, too; what the guest sends is compared by its receivers.
//!
//! # What it does
//!
//! Split and packed rings, indirect descriptors, event index, mergeable buffers, several pairs of
//! queues; checksums, TCP and UDP segmentation both ways, each frame whole, or finished here where
//! the guest does not take it so; the log of dirty pages for live migration.
//!
//! Messages and rings are read by code of our own, and not by rust-vmm's crates: `vhost` 0.18 ends the
//! connection at a message that QEMU sends for each card with several queues, and has none of the
//! messages for MTU and announcement; `virtio-queue` 0.18 has no packed rings.
//!
//! | file | idea |
//! | --- | --- |
//! | `connection.rs` | the messages, and the turns in between |
//! | `message.rs`, `device.rs`, `features.rs` | what the front end says, and sets up by it |
//! | `memory.rs`, `log.rs` | the guest's memory, and which pages of it were written |
//! | `queue.rs` | a virtqueue; `split.rs`, `packed.rs` its two layouts, `chain.rs` what they have in common |
//! | `outbound.rs`, `inbound.rs` | frames from and to the machine |
//! | `steering.rs` | which queue a frame goes to |
//! | `guest.rs` | the other side, for tests |
#![deny(unsafe_code)]

mod chain;
mod connection;
mod device;
mod features;
#[cfg(feature = "guest")]
pub mod guest;
mod inbound;
mod log;
mod memory;
mod message;
mod moved;
mod outbound;
mod packed;
mod queue;
mod resume;
mod split;
mod steering;
mod sys;

pub use chain::Fault;
pub use connection::{Connection, End, PortRing};
pub use device::MAX_PAIRS;
pub use features::Features;
pub use moved::Moved;
/// What a process with a [`Connection`] needs, so that a file that becomes shorter does not end it.
pub use ringway_region::LostPages;

/// Bytes of the virtio-net header of a port whose machine makes [use of offloads](Features::has_offloads).
pub const HEADER_LEN: usize = ringway_vnet::Header::LONG;
