//! PF_RING, for programs that capture from and send to Ringway's ports and network interfaces.
//!
//! ```text
//!   program --> api/: arguments, results, errno --> ring.rs --> receive.rs: packets, one by one or to a callback
//!                                                    |            admission.rs: which of them, by parse.rs, rules/
//!                                                    +--> source.rs: a port, or an interface --> ringway-live-capture
//! ```
//!
//! Which of PF_RING's numbers a failure to send has is in error.rs.
//!
//! There is no module in the kernel: what PF_RING's does for each packet is done here, in the program's process.
//! An interface is listened to beside the stack, as PF_RING has it; a port is Ringway's (`vale0:a`, `netmap:eth0`).
#![allow(non_camel_case_types)]
#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests write to the temporary folder")
)]

mod abi;
mod admission;
mod api;
mod argument;
mod bounce;
mod bpf;
mod cluster;
mod describe;
mod device;
mod devices;
mod errno;
mod error;
mod files;
mod hash;
mod interface;
mod name;
mod numbers;
mod parse;
mod print;
mod receive;
mod ring;
mod rule_thread;
mod rules;
mod sampling;
mod send;
mod source;
mod state;
#[cfg(feature = "stepped")]
pub mod stepped;
mod text_thread;
