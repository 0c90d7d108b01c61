//! The netmap ABI: the exact shapes that programs and Ringway exchange.
//!
//! Everything here is layout and number, nothing is behaviour. The two structures that
//! live in shared memory, [`netmap_ring`] and [`netmap_if`], are never borrowed as Rust
//! references: `ringway-region` reads and writes them field by field through the
//! offsets that this crate fixes.
//!
//! ```text
//!  region (one memfd)
//!  +----------------------+ 0
//!  | netmap_if, ring_ofs[]|---- ring_ofs[i], relative to the netmap_if
//!  +----------------------+                    |
//!  | netmap_ring, slot[]  | <------------------+
//!  | ...                  |---- buf_ofs, relative to the ring
//!  +----------------------+                    |
//!  | buffer 0, 1 reserved | <------------------+
//!  | buffer 2, 3, ...     |      address = ring + buf_ofs + buf_idx * nr_buf_size
//!  +----------------------+ nr_memsize
//! ```
//!
//! The names are the original's, so that a reader of `net/netmap.h` finds them.
#![forbid(unsafe_code)]
#![deny(missing_docs)]
#![allow(non_camel_case_types)]

mod layout;
mod legacy;
mod numbers;
mod request;
mod ring;

pub use legacy::*;
pub use numbers::*;
pub use request::*;
pub use ring::*;
