//! AF_PACKET: netmap rings on interfaces that AF_XDP has no road to.
//!
//! It is netmap's emulated mode (S-EMU-2): slower, on every interface that the kernel has. The sockets,
//! a ring of blocks (TPACKET_V3) for each queue to receive by, are made in `ringway-nic-setup`. A
//! process that holds their descriptors and the region needs no privilege: a [`PacketRx`] copies frames out of the
//! blocks into the buffers of slots, and a [`PacketTx`] sends them from there with one system call for
//! many (`sendmmsg`).
//!
//! A bridge has both in one: [`PacketPort`].
//!
//! ```text
//!   kernel --> | block | block | ... |  --copy-->  rx slots        tx slots  --sendmmsg--> kernel
//! ```
//!
//! An AF_PACKET socket only listens: the stack gets every frame as well. What wants the frames for
//! itself keeps them from the stack by other means, behind the place where the socket listens.
//!
//! # What it costs
//!
//! - The kernel hands over a block when it is full, or has waited for [`PATIENCE_MS`] since its first
//!   frame. So a lone frame is seen up to that much later.
//! - What arrives while all blocks are full is dropped, and counted as `ring_full`.
//! - Which of the interface's queues a frame leaves by is the kernel's choice.
//!
//! # Trust in the holder of a socket
//!
//! A process with such a socket can bind it to, and send through, **any interface of the network namespace**
//! that it was made in. So only users that may use all of them get it.
//!
//! | file | idea |
//! | --- | --- |
//! | `block.rs`, `blocks.rs` | a block of frames, and the ring of them, as they stand in shared memory |
//! | `listener.rs` | frames read in place, beside the stack: for programs that only look |
//! | `rx.rs`, `tx.rs` | the drivers |
//! | `bridge.rs`, `tx_queue.rs` | the port of a bridge, and what it sends |
//! | `patience.rs`, `refusals.rs` | how long a frame waits for room, and why there was none |
//! | `finish.rs` | what the kernel left undone in a frame: tag, checksum, segments |
#![deny(unsafe_code)]

mod block;
mod blocks;
mod bridge;
mod finish;
mod link_watch;
mod listener;
mod patience;
mod refusals;
mod rx;
mod sys;
mod tx;
mod tx_queue;

pub use blocks::Geometry;
pub use bridge::PacketPort;
pub use link_watch::LinkWatch;
pub use listener::{Heard, Listen, Listener, count_drops, take_drops};
/// What a [`PacketPort`] is told.
pub use ringway_switch_port::KernelWay;
pub use rx::PacketRx;
pub use sys::{BATCH, Pieces, socket};
pub use tx::PacketTx;

use std::os::fd::BorrowedFd;

use ringway_kring::{Kring, Offsets};

/// Whether the interface has gone that a socket of ours was bound to: deleted, or moved to another
/// network namespace.
pub fn has_lost_interface(socket: BorrowedFd<'_>) -> bool {
    sys::bound_to(socket).is_ok_and(|address| address.sll_ifindex < 0)
}

/// Milliseconds that the kernel keeps a block that is not full: as few as it can count.
pub const PATIENCE_MS: u32 = 1;

/// The shortest frame that the kernel sends, in bytes: an Ethernet header.
const SHORTEST: u32 = ringway_switch_port::SHORTEST as u32;

/// Slots of a packet at most (`NETMAP_MAX_FRAGS`).
pub const MAX_FRAGS: u32 = 64;

/// Where data begins in the buffers of this ring's slots, as agreed by now: at no more than the size
/// of a buffer.
fn offsets(kring: &Kring, data_size: u32) -> Offsets {
    let agreed = Offsets::of(kring);
    Offsets { max: agreed.max.min(data_size), ..agreed }
}
