//! What a number of a descriptor stands for: a table that every call reads, without a lock.
//!
//! An [`Object`] is what one open descriptor is in this process. Its numbers, its mappings and the
//! calls in progress count as users; when the last of them has gone, it is [ended](Object) once, and
//! is put to use again for another descriptor. It is never freed, so a reader that lost a race against
//! `close` still reads an object; [`Slot::get`] then notices that the slot has changed.
//!
//! ```text
//!   slot:   empty -> object -> empty -> ...     a swap each; the thread that swapped an object out
//!                                               gives up the use that the slot had
//!   object: spare -> taken -> live -> ending -> spare
//!                      |        |  uses > 0  |
//!                      |        `------------' the last user, by one compare-and-swap
//!                      `--- written by the thread that took it, seen by no other thread
//! ```
//!
//! This is all there is to it, so that `tests/loom.rs` runs the code that ships.

mod object;
mod slot;

pub use object::{Content, End, InUse, Object, Objects};
pub use slot::{Found, Slot};

#[cfg(not(loom))]
use std::sync::atomic;

#[cfg(loom)]
use loom::sync::atomic;
