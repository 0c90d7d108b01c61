//! Shares the packets of one port out over groups of others.
//!
//! ```text
//!   the input's rings --> balancer.rs: one batch --> choose.rs: whose is it? --> output.rs: a ring, or queue.rs before it
//!                                                                                       |
//!                                              the next group <-- onward.rs: what the consumer has released
//! ```
//!
//! Packets are chosen for, up to 64 of them, before any is taken: bundle.rs. A packet goes to one output of the first group.
//! When that output's consumer has released it, it goes on to the next group, so that each group sees all packets. In the
//! input's region nothing is copied: buffers are exchanged. Outputs in other regions get copies; they are in no group but
//! the last.
//!
//! `ringway lb` is one program that does so, and clusters of PF_RING on a port are another.
#![forbid(unsafe_code)]

mod balancer;
mod bundle;
mod choose;
mod onward;
mod output;
mod parcel;
mod queue;

pub use balancer::{Balancer, Received, Share};
pub use choose::{Choice, Choose, LOOKED_AT, scaled};
pub use output::{Counters, Output};
