//! Krings: the sync protocol that every ring of every driver speaks.
//!
//! Two parties exchange ring state through two cache lines, each with one writer: the
//! [`AppLine`] of the program (`head`, `cur`) and the [`ServiceLine`] of whoever moves the
//! packets (`hwcur`, `hwtail`). `ring->head/cur/tail` is the program's private view; a
//! [`Kring`] reconciles it with the lines exactly when netmap would do so in a system call.
//!
//! A party that finds nothing to do [arms](AppLine::arm) its wait, looks once more, and
//! sleeps on a [`Doorbell`]. The other rings the doorbell only for a wait that it has not answered
//! yet. `csb.rs` holds that protocol, and `waiter.rs` the one way to sleep by it, alone, so that the
//! code that ships is the code that the model checker runs.
#![deny(unsafe_code)]
#![deny(missing_docs)]

mod csb;
mod feed;
mod mailbox;
mod waiter;

#[cfg(not(loom))]
mod allowance;
#[cfg(not(loom))]
mod busy_poll;
#[cfg(not(loom))]
mod csb_mode;
#[cfg(not(loom))]
mod cursor;
#[cfg(not(loom))]
mod doorbell;
#[cfg(not(loom))]
mod driver;
#[cfg(not(loom))]
mod keeper;
#[cfg(not(loom))]
mod kring;
#[cfg(not(loom))]
mod lock;
#[cfg(not(loom))]
mod longest_taken;
#[cfg(not(loom))]
mod offsets;
#[cfg(not(loom))]
mod owner;
#[cfg(not(loom))]
mod sync;
#[cfg(not(loom))]
mod sys;
#[cfg(not(loom))]
mod thread;
#[cfg(not(loom))]
mod view;
#[cfg(not(loom))]
mod yielding;

pub use csb::{AppLine, Csb, ServiceLine};
pub use feed::{Feed, TryLock, Turn, before_reuse};
pub use mailbox::{Mailbox, Notify};
pub use waiter::{Armed, Prepared, Waiter, prepare};

#[cfg(not(loom))]
pub use allowance::SignalAllowance;
#[cfg(not(loom))]
pub use busy_poll::BusyPoll;
#[cfg(not(loom))]
pub use csb_mode::{CsbMode, Running};
#[cfg(not(loom))]
pub use cursor::{Cursors, Window};
#[cfg(not(loom))]
pub use doorbell::{Doorbell, slow_doorbells};
#[cfg(not(loom))]
pub use driver::{Accepted, Driver, Outcome};
#[cfg(not(loom))]
pub use keeper::keep_doorbells;
#[cfg(not(loom))]
pub use kring::Kring;
#[cfg(not(loom))]
pub use lock::Guard;
#[cfg(not(loom))]
pub use longest_taken::LongestTaken;
#[cfg(not(loom))]
pub use offsets::Offsets;
#[cfg(not(loom))]
pub use owner::{Counters, MoreCounters, Owner};
#[cfg(not(loom))]
pub use sync::BadIndex;
#[cfg(not(loom))]
pub use sys::epoch;
#[cfg(not(loom))]
pub use thread::identify_thread;
#[cfg(not(loom))]
pub use view::View;
#[cfg(not(loom))]
pub use waiter::{Sleeper, Sources, Woken};
#[cfg(not(loom))]
pub use yielding::{Looking, Yielding};
