//! Steering: a receive queue of a NIC for some flows alone, by the NIC's own means.
//!
//! A NIC spreads what it receives over its queues by a hash and a table (RSS). Taking a queue out
//! of the table [isolates](without) it; rules then lead [flows](ringway_flow::Flow) to it. Both are settings of the
//! interface that stay until they are changed back, so what changes them must know how:
//! [`Plan`] tells what will be changed, before it is, and [`Plan::undo`] undoes it, in any process.
//!
//! Everything goes through ethtool's ioctl (`linux/ethtool.h`), in the network namespace of the
//! calling thread, and takes CAP_NET_ADMIN, which the helper may have.
#![deny(unsafe_code)]

mod error;
mod plan;
mod rule;
mod table;

pub use error::Error;
pub(crate) use plan::Step;
pub use plan::{Plan, Steered};
pub use table::without;
