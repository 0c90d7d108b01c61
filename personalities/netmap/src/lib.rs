//! `libringway_netmap.so`: netmap for unmodified programs, without the kernel module.
//!
//! Preloaded, or linked before libc, it takes the place of the libc functions through which a
//! program speaks to `/dev/netmap`. The descriptor that `open` returns is a connection to the
//! daemon, so it survives `dup`, `fork`, `exec` and `SCM_RIGHTS` by itself; what this library
//! adds is kept beside it, in a table indexed by descriptor.
//!
//! ```text
//!  open, ioctl, mmap, poll, ...        (exported by `calls/`)
//!        |
//!   table: what is this descriptor? -- not ours --> the next library's function
//!        | ours
//!   netmap fd: binding, mappings, wait
//! ```
//!
//! A call on a foreign descriptor costs one look into the table.

mod calls;
mod csb;
mod exit;
mod fork;
mod guest;
mod kloop;
mod map;
mod netmap_fd;
mod next;
mod probe;
mod ready;
mod request;
mod sets;
mod table;
mod user;
mod wait;
mod worker;
