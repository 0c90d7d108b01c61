//! What a switch needs of a port, and nothing of the switch: so a driver can be a port without
//! knowing who forwards its packets.
//!
//! A [`Port`] is all of these traits together:
//!
//! | trait | what it answers |
//! | --- | --- |
//! | [`PacketIo`] | which packets the port has sent, and what it takes in |
//! | [`Backpressure`] | whether it has room, and whether its senders can wait for that |
//! | [`Configure`] | settings that change while it runs |
//! | [`Mirrored`] | the monitors that are shown its packets |
//! | [`Wake`] | what the worker sleeps on |
//!
//! A port that has none of the last but one, or cannot wait, implements the trait with nothing in it.
//!
//! Packets travel in a [`Burst`]: pieces of the sender's memory, read where they are, and copied once,
//! into the receiver's. Nothing that a piece holds is believed: the bytes that a switch decides by are
//! read once, and the receiver gets those (see [`Frame::header`]).
//!
//! | file | idea |
//! | --- | --- |
//! | `frame.rs` | a packet on its way, and the packets of one look |
//! | `port.rs` | the traits |
//! | `counters.rs` | what a port counts |
//! | `wake_source.rs` | what wakes the worker for a port that the kernel serves |
//! | `under_test.rs` | a port as its tests use it |
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
#![forbid(unsafe_code)]

mod copies;
mod counters;
mod frame;
mod port;
#[cfg(feature = "under-test")]
pub mod under_test;
mod wake_source;

pub use copies::CopyMirrors;
pub use counters::{Delivered, Drops, Unsent};
pub use frame::{
    Burst, Frame, FrameStatus, HEADER, Piece, SHORTEST, Source, TxSlots, is_group, is_no_source,
    link_local,
};
pub use port::{
    Backpressure, Configure, KernelWay, Mirrored, PacketIo, Port, PortIndex, PortMirrors, Room,
    Wake, wrapped,
};
pub use ringway_mirror::Shown;
pub use wake_source::{StallReason, TxStall, WakeSource};
