//! Memory with addresses that frames can carry: maps below 2^40, whose addresses for frames are those that the program
//! has. `memory.rs` has what interfaces may use of it.

mod allocator;
mod first_fit;
mod maps;
mod shared;
mod shared_fit;
mod words;

pub use maps::{ALLOC, Map, create, find, find_ref, totals};
