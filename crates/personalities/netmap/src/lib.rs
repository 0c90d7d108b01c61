//! netmap for unmodified programs, without the kernel module: a `Personality` of the preload library.
//!
//! The descriptor that `open("/dev/netmap")` returns is a connection to the daemon, so it survives
//! `dup`, `fork`, `exec` and `SCM_RIGHTS` by itself. What `interpose` keeps beside it, for as long as
//! this process has it, is a `NetmapFd`: the binding that was registered on it, if any.
//!
//! ```text
//!  ioctl  --> personality: a sync? --> binding: its rings' drivers       (worker: waits for a switch)
//!                          a request? --> request: to the daemon and back
//!  poll   --> ready: syncs, and tells what there is
//! ```
#![deny(unsafe_code)]

mod csb;
mod kloop;
mod module_parameters;
mod netmap_fd;
mod personality;
mod ready;
mod request;
mod stream;
mod sys;
mod worker;

use ringway_interpose::uaccess as user;

pub use personality::NETMAP;
