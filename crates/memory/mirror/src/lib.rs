//! Mirrors: what a ring carries is put into the rings of its monitors (S-MON).
//!
//! What moves the packets of a ring feeds its mirrors too: the worker of a bridge, or the
//! process that syncs a pipe's or an interface's ring. A mirror *copies* packets when they are
//! sent or arrive, or it *swaps* buffers with slots that their owner has done with, which are
//! then free, and stay free with another buffer in them.
//!
//! ```text
//!   copy    ring |..pppp....|        swap    ring |..pppp....|   ring |..xxxx....|
//!                   ||||                             ><><      ->
//!   monitor's rx |..pppp....|        monitor's rx |..xxxx....|        |..pppp....|
//! ```
//!
//! A mirror never waits, and costs the ring that it is on nothing but time: a monitor that has no
//! room loses the oldest packets of the batch (S-MON-6).
//!
//! Each packet comes with its time, in the slot's `ptr` (`time.rs`).
//!
//! The ring that is mirrored, and the monitor's, belong to the same user; a swap stays within
//! one region. What is read from either is bounded here, whatever it is.
#![forbid(unsafe_code)]

mod mirrors;
mod slots;
mod time;

pub use mirrors::{Mirror, MirrorMode, Mirrors, Shown};
pub use time::{TimeSource, has_times};

#[cfg(test)]
mod tests;
