//! Flows: packets between the same two ends.
//!
//! [`Flow`] names some, as a user writes them: `udp dst port 53`. [`flow_hash`] gives the packets of
//! one flow a number in common, in both directions.
#![forbid(unsafe_code)]

mod expression;
mod hash;

pub use expression::{Flow, FlowError, Protocol};
pub use hash::{FlowHash, HASHED_BYTES, flow_hash};
