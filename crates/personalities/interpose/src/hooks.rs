//! The functions that programs call instead of libc's: C's edge. Each finds out whether the descriptor
//! is a personality's, and calls the next library's function if it is not.
//!
//! They have no names that a linker knows: the preload library gives them those, in an object file of
//! its own. So nothing that is linked into that library meets a hook by calling libc's function.

mod attributes;
mod descriptors;
mod epoll;
mod interfaces;
mod io;
mod ioctl;
mod memory;
mod messages;
pub(crate) mod netlink;
mod sockets;
mod waiting;

pub use attributes::*;
pub use descriptors::*;
pub use epoll::*;
pub use interfaces::{if_indextoname, if_nametoindex};
pub use io::*;
pub use ioctl::*;
pub(crate) use memory::MmapArgs;
pub use memory::{mmap, mmap64, mprotect, mremap, munmap};
pub use messages::*;
pub use sockets::*;
pub use waiting::{__poll_chk, __ppoll_chk, poll, ppoll, pselect, select};
