//! Drivers that need nothing but rings: no kernel, no privileges, no system call but to
//! wake somebody who sleeps.
//!
//! | driver | its rings |
//! | --- | --- |
//! | [`Null`] | move nothing |
//! | [`Sink`] | swallow what is sent, and deliver nothing |
//! | [`PipeTx`], [`PipeRx`] | are each other's: slots pass between two rings of one region |
//! | [`Monitor`] | are filled by whoever moves the packets of another port |
//! | [`WorkerServed`] | are worked on by somebody else: a bridge worker in the daemon |
//!
//! [`fetch_indirect`] brings packets into the region that a program has left outside.
#![deny(unsafe_code)]

mod indirect;
mod monitor;
mod null;
mod pipe;
mod served;
mod sys;

pub use indirect::fetch as fetch_indirect;
pub use monitor::Monitor;
pub use null::{Null, Sink};
pub use pipe::{PipeRx, PipeTx};
pub use served::WorkerServed;
