//! `libringway_pcap.so`: libpcap, for programs that capture from and send to Ringway's ports.
//!
//! It has all of libpcap's functions. A device whose name is a port's (`vale0:a`, `netmap:eth0`,
//! `netmap:x{1`) is Ringway's; every other device, capture files, and the compiler of filters are the system's
//! libpcap, to which they are passed on, in the same process.
//!
//! ```text
//!   program --> api/: whose is the handle? (handles.rs) --ours----> handle.rs: ringway-live-capture
//!                                                       --theirs--> system.rs: the system's libpcap
//! ```
//!
//! It is preloaded by `ringway run`, or found by the loader in the place of the system's.
#![allow(non_camel_case_types)]

mod abi;
mod api;
mod data;
mod dlopen;
mod handle;
mod handles;
mod shadow;
mod system;
mod text;
