//! Taking the place of libc's calls in a foreign program.
//!
//! A [`Personality`] speaks one foreign API that lives behind descriptors. This crate has what all of
//! them need: the [functions](hooks) that stand in front of libc's, a [table](fd_table) that says what
//! each descriptor of the process is, waiting for descriptors of all kinds together, and what `fork`,
//! `vfork`, `dup`, `close` and the end of the process mean for them.
//!
//! ```text
//!  the program: open, ioctl, mmap, poll, ...
//!        |
//!   preload library: a jump each    (names alone; `preload/`)
//!        |
//!   hooks: what is this descriptor? -- a foreign one --> the next library's function
//!        | a personality's                               (`real_libc`)
//!   Descriptor: ioctl, mapping, look, arm, wait sources, ...
//! ```
//!
//! # Whose functions are called
//!
//! A program may have functions of libc's names itself: a user-level TCP stack has `socket`, `close`,
//! `send` and `recv`. So there are two ways out of this code, and no third:
//!
//! * **For descriptors of the program's own**, the call goes to the [next](real_libc) library in the
//!   loader's order, behind the preload library. It may be another library that takes libc's place;
//!   the program itself is in front of it, and is not found.
//! * **For descriptors of our own**, and for all else that this code and what it is linked with does,
//!   calls are system calls (`raw`): no symbol is looked up. Where code of others calls libc by name
//!   (the standard library drops an `OwnedFd` by `close`), the linker puts a system call in its place.
//!
//! The table, and the count of threads that sleep for a set, are compiled for the model checker.
#![deny(missing_docs)]

pub mod fd_table;
pub mod sleepers;

#[cfg(not(loom))]
mod descriptors;
#[cfg(not(loom))]
mod epoll_sets;
#[cfg(not(loom))]
mod exit;
#[cfg(not(loom))]
mod fork;
#[cfg(not(loom))]
mod helper_thread;
#[cfg(not(loom))]
pub mod hooks;
#[cfg(not(loom))]
mod mapped;
#[cfg(not(loom))]
mod mappings;
#[cfg(not(loom))]
mod numbers;
#[cfg(not(loom))]
mod own_numbers;
#[cfg(not(loom))]
mod personality;
#[cfg(not(loom))]
mod raw;
#[cfg(not(loom))]
pub mod real_libc;
#[cfg(not(loom))]
mod signals;
#[cfg(not(loom))]
pub mod uaccess;
#[cfg(not(loom))]
mod vfork;
#[cfg(not(loom))]
mod wait;

#[cfg(not(loom))]
pub use descriptors::with_descriptor;
#[cfg(not(loom))]
pub use exit::close_at_exit;
pub use fd_table::End;
#[cfg(not(loom))]
pub use fork::generation;
#[cfg(not(loom))]
pub use helper_thread::helper_thread;
#[cfg(not(loom))]
pub use mapped::{FileKind, MappedArea};
#[cfg(not(loom))]
pub use own_numbers::out_of_the_way;
#[cfg(not(loom))]
pub use personality::{
    AfterClose, Descriptor, Interface, InterfaceName, Opened, Personality, SocketOption, Unmapping,
    UserPath, start,
};
