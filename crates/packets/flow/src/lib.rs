//! Flows: packets between the same two ends.
//!
//! [`Flow`] names some, as a user writes them: `udp dst port 53`. [`flow_hash`] gives the packets of
//! one flow a number in common, in both directions. [`Cluster`] shares packets out as PF_RING does, by
//! what [`Headers`] reads.
#![forbid(unsafe_code)]

mod cluster;
mod expression;
mod hash;
mod headers;

pub use cluster::{Cluster, ClusterType, ClusterTypeError};
pub use expression::{Flow, FlowError, Protocol};
pub use hash::{FlowHash, HASHED_BYTES, flow_hash};
pub use headers::{Fragment, Headers, Network, PARSED_BYTES, Tunnel};
