//! AF_PACKET V4 for unmodified programs: a `Personality` of the preload library.
//!
//! A packet socket becomes ours when the program asks for TPACKET_V4, or registers memory. Its number is
//! a socket without an address from then on; what `interpose` keeps beside it is a `Socket`. All other packet
//! sockets stay the kernel's.
//!
//! ```text
//!  setsockopt, bind --> options, address --> Socket: memory, rings, the port that it is bound to
//!
//!  port's rx ring --> Receiver: the program's frames, RX descriptors --> program
//!                       moved by the mover, a thread that sleeps on the port, by poll and by the kick
//!  program --> TX descriptors, Transmitter: the port's tx ring
//!                       moved by sendto, which is the kick, and by poll
//! ```
//!
//! # Memory
//!
//! Frames and rings are the program's own memory, where its threads write at any time: descriptors are read
//! once, by atomics, and what was read is validated and used; frames are copied by `ringway_region::Buf`.
#![deny(unsafe_code)]

mod abi;
mod address;
mod area;
mod desc;
mod device;
mod locks;
mod names;
mod options;
mod pause;
mod personality;
mod port;
mod rx;
mod setup;
mod shared;
mod socket;
mod socket_filter;
mod stack;
#[cfg(any(test, feature = "stepped"))]
pub mod stepped;
mod sys;
mod sysfs;
#[cfg(test)]
mod testing;
mod tx;

pub use personality::TPACKET4;
