//! Regions: the shared memory in which interfaces, rings, krings and buffers live.
//!
//! A [`Region`] is one sealed memfd. A process that maps it can write all of it, so a region is a
//! trust domain: programs that share one trust each other, and nobody else can see it.
//!
//! ```text
//!  0            if pool   | netmap_if and its ring offsets          \
//!               ring pool | netmap_ring and its slots                | what the netmap API
//!               buf pool  | buffers of one size, 2048 by default    /  calls the memory
//!  memsize      control   | one block per ring of the ring pool:    \
//!                         |   the kring (cursors, kicks, counters)   | Ringway's own
//!               shadow    | one 32-bit word per slot of each ring   /
//! ```
//!
//! # Rules of shared memory
//!
//! This crate is the only one that touches region memory. Everything that goes through it
//! follows four rules, and so must every caller:
//!
//! 1. No Rust reference to memory that somebody else may write: raw pointers and atomics.
//! 2. A field is read once into a local; the local is validated; only the local is used.
//! 3. An index is checked here, against a bound kept in private memory, never against a
//!    bound that stands in the region.
//! 4. What a wrong value costs is a wrong value: never an access outside the mapping.
//!
//! `mapping.rs`, `shared.rs` and `buf.rs` make them so: a map, typed views of it, and buffers. With
//! `region.rs`, which finds buffers, `holders.rs`, `lost_pages.rs` and `huge_pages.rs`, which ask the kernel
//! for what no crate does, they are the only unsafe code here; callers need none.
#![deny(unsafe_code)]
#![deny(missing_docs)]

mod buf;
mod extra_bufs;
mod holders;
mod huge_pages;
mod layout;
mod lost_pages;
mod mapping;
mod netif;
mod pool;
mod region;
mod ring;
mod shared;
mod timestamps;

pub use buf::Buf;
pub use extra_bufs::{ExtraBufs, next_extra_buf};
pub use holders::HolderProbe;
pub use huge_pages::collapse;
pub use layout::{
    LAYOUT_VERSION, Layout, LayoutError, MAX_BUFS, MAX_IF_SIZE, MAX_RINGS, PoolShape, Sizes,
};
pub use lost_pages::{GuardedRange, LostPages};
pub use mapping::Mapping;
pub use netif::{NetifView, RingOffsets};
pub use pool::{Pool, Span};
pub use region::{BLOCK_SIZE, Bufs, Error, Region};
pub use ring::{MAX_SPARES, RingInit, RingView, Slot, SlotWords};
pub use shared::{Shared, View};
pub use timestamps::{Recorded, Timestamps};
