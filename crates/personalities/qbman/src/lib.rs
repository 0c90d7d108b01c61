//! Queue and buffer managers: frames wait in queues, queues on channels, and threads take them from there in the
//! order of their priority. What the hardware of an SoC does for programs of USDPAA, for any program of Ringway.
//!
//! ```text
//!                        frame queue          channel                        portal (one thread)
//!   enqueue(queue, frame) ---> [f f f] --+--> work queue 0 ...7, strict  --> 16 entries, in turns from its
//!     tail drop, congestion group,       |    or weighted among some         channels; consumed one by one
//!     order restoration: or rejected,    |
//!     as a message to who enqueued       +--> channel of an interface    --> its sender, in batches
//! ```
//!
//! A [`Manager`] holds all of it; [`manager`] is the one of the process. A frame ([`Frame`]) is a buffer's address and what
//! is in it; nothing here reads or writes buffers, and addresses mean whatever the users have agreed on. A buffer's way
//! is: [`Pools::acquire`], a frame in a queue, [`Pools::release`].
//!
//! # For an interface
//!
//! The receiving side takes buffers, fills them, and enqueues frames in batches, from whatever thread:
//!
//! ```
//! # use ringway_qbman::{Manager, Frame, Schedule, Notifier};
//! let manager = Manager::new();
//! # manager.init(0x400, Schedule::Scheduled, |settings| settings.channel = 0x40)?;
//! manager.pools.release(7, &[0x1000, 0x2000])?;
//! let mut buffers = [0; 2];
//! let got = manager.pools.acquire_up_to(7, &mut buffers);
//! let frames = buffers[..got].iter().map(|buffer| (0x400, Frame::contiguous(7, *buffer, 64, 60)));
//! let batch: Vec<_> = frames.collect(); // a worker keeps it and fills it again
//! manager.enqueue_all(&batch, |frame, _queue, _why| {
//!     // Not taken: the buffer is the caller's again.
//!     let _ = manager.pools.release(frame.pool(), &[frame.address()]);
//! });
//! # Ok::<(), ringway_qbman::Error>(())
//! ```
//!
//! The sending side drains a channel of its own, any from [`DIRECT_CHANNELS`], and sleeps on a [`Notifier`]:
//!
//! ```
//! # use ringway_qbman::{Manager, Entry, Notifier};
//! # use std::sync::Arc;
//! # let manager = Manager::new();
//! let notifier = Arc::new(Notifier::new()?); // poll `notifier.fd()` together with the port's descriptor
//! let mut entries = [Entry::default(); 32];
//! let taken = manager.drain(0x40, &mut entries);
//! for entry in &entries[..taken] {
//!     // entry.frame goes out; entry.context_a is its queue's: whether the buffer is released or confirmed
//! }
//! if taken == 0 && manager.arm(0x40, &notifier) {
//!     // Nothing is there: poll. Then:
//!     notifier.clear();
//! }
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! # Files
//!
//! `manager.rs` has the parts together; `queue.rs` is a frame queue, `life.rs` how it comes and goes, `enqueue.rs` the way in,
//! `listing.rs` how queues come onto work queues, `order.rs` order restoration, `congestion.rs` congestion groups; `channel.rs` work queues and their arbitration; `portal.rs`
//! what a thread takes from (`ring.rs` its entries, `take.rs` how they are taken, `entry.rs` what they are), `volatile.rs` what it takes by hand, `message.rs` what it is told; `pools.rs` buffers; `ids.rs` numbers.
//!
//! # Locks
//!
//! One for each order restoration point, queue, channel, and box of messages, taken in this order, for a batch where there
//! is one. None is held while code of others runs.
#![forbid(unsafe_code)]
#![deny(missing_docs)]
#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod channel;
mod congestion;
mod enqueue;
mod entry;
mod error;
mod frame;
mod ids;
mod life;
mod listing;
mod lock;
mod manager;
mod message;
mod notifier;
mod order;
mod pools;
mod portal;
mod queue;
mod ring;
mod table;
mod take;
mod volatile;

pub use channel::{Arbitration, WORK_QUEUES};
pub use congestion::{GROUPS, Group, GroupSettings, Unit};
pub use enqueue::{Command, Consume, Order, OrderKind};
pub use entry::{Entry, Status};
pub use error::{Error, Rejection};
pub use frame::{Format, Frame};
pub use ids::Ids;
pub use life::{Retired, Schedule};
pub use manager::{
    CHANNELS, DIRECT_CHANNELS, Manager, POOL_CHANNELS, PORTALS, Pool, manager, pool_channel,
};
pub use message::{Leftover, Message};
pub use notifier::Notifier;
pub use order::OrderSettings;
pub use pools::{Depletion, MOST_BUFFERS, POOLS, Pools};
pub use portal::Portal;
pub use queue::{LONGEST_QUEUE, Settings, Snapshot, Stage, TailDrop};
pub use ring::RING;
pub use table::QUEUES;
pub use volatile::Volatile;
