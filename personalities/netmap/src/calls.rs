//! The functions that programs call: C's edge. Each finds out whether the descriptor is
//! netmap's, and calls the next library's function if it is not.

mod descriptors;
mod epoll;
mod ioctl;
mod memory;
mod messages;
mod waiting;

pub use memory::MmapArgs;
