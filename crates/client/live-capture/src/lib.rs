//! Capturing: packets of a Ringway port, or of an interface that is listened to beside the stack, with the time at
//! which each came, handed on where they lie.
//!
//! ```text
//!   name.rs: what a name stands for --> opened.rs: live.rs, send.rs --> client: a port, or a monitor of one
//!                                               or tap.rs           --> a packet socket
//! ```
//!
//! `devices.rs` lists the ports that there are, and `namespace.rs` says which of them a name means. `live/reopening.rs` has a port in the mode that suits its filter,
//! `live/run.rs` hands on packets one by one.
//!
//! What the personalities of capturing APIs have in common. The types of a packet's header and of the counters are
//! libpcap's (`abi.rs`), which those APIs share.
#![deny(unsafe_code)]
#![allow(non_camel_case_types)]

pub mod abi;
mod clock;
pub mod devices;
mod filtering;
mod lent;
mod live;
mod losses;
mod metadata;
pub mod name;
pub mod namespace;
mod opened;
mod promiscuous;
mod send;
mod settings;
mod signals;
mod sys;
mod tap;

pub use lent::{Borrowed, Lent};
pub use live::{End, HandingOut, Live, Reading};
pub use losses::Losses;
pub use metadata::{Checksum, Direction, Metadata};
pub use opened::Opened;
pub use promiscuous::Promiscuous;
pub use ringway_packet::socket::driver;
pub use send::SendError;
pub use settings::Settings;
pub use signals::Signals;
pub use sys::poll;
pub use tap::Tap;

#[cfg(test)]
mod tests;
