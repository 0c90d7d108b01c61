//! Drivers that need nothing but rings: no kernel, no privileges, no system call but to
//! wake somebody who sleeps.
//!
//! | driver | its rings |
//! | --- | --- |
//! | [`Null`] | swallow what is sent, and deliver nothing |
//! | [`PipeTx`], [`PipeRx`] | are each other's: slots pass between two rings of one region |
//! | [`Monitor`] | are filled by whoever moves the packets of another port |
//! | [`Served`] | are worked on by somebody else: a bridge worker in the daemon |

mod monitor;
mod null;
mod pipe;
mod served;

pub use monitor::Monitor;
pub use null::Null;
pub use pipe::{PipeRx, PipeTx};
pub use served::Served;
