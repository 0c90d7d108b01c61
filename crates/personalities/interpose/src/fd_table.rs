//! What a number of a descriptor stands for: a table that every call reads, without a lock.
//!
//! An [`Object`] is what one open descriptor is in this process. Its numbers and its mappings [hold](Held) it, and
//! the calls in progress [use](InUse) it; when the last of all these has gone, it is [ended](Object) once, and is put to
//! use again for another descriptor. It is never freed, so a reader that lost a race against `close` still reads an
//! object; [`Slot::get`] then notices that the slot has changed.
//!
//! A child of `fork` has the numbers and mappings of its parent, but none of the calls of its other threads: so the two
//! are counted apart.
//!
//! ```text
//!   slot:   empty -> object -> empty -> ...     a swap each; the thread that swapped an object out
//!                                               gives up the use that the slot had
//!   object: spare -> taken -> live -> ending -> spare
//!                      |        | counts > 0 |
//!                      |        `------------' the last user, by one compare-and-swap
//!                      `--- written by the thread that took it, seen by no other thread
//! ```
//!
//! This is all there is to it, so that `tests/loom.rs` runs the code that ships.

mod nesting;
mod object;
mod slot;

pub use object::{Content, End, Held, InUse, Object, Objects};
pub use slot::{Found, Slot};

#[cfg(not(loom))]
use std::sync::atomic;

#[cfg(loom)]
use loom::sync::atomic;
