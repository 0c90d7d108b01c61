//! `libusdpaa`: USDPAA, for programs that were written for the queue and buffer managers of an SoC. The managers are
//! `ringway-qbman`; the interfaces are Ringway's ports.
//!
//! ```text
//!   program --> api/: arguments, results, callbacks --> ringway-qbman: frame queues, channels, portals, pools
//!                 fsl_usd.h   portals of threads            ^
//!                 fsl_qman.h  frame queues, groups          | frames, buffers
//!                 fsl_bman.h  pools of buffers              v
//!                 dma_mem.h   memory with addresses     interfaces (fman): a worker for each --> Ringway's ports
//! ```
#![allow(non_camel_case_types)]

mod abi;
mod api;
mod argument;
mod buffers;
mod dma;
mod fman;
mod handles;
mod memory;
mod message;
mod netcfg;
mod poll;
mod ports;
mod print;
mod rejected;
mod settings;
#[cfg(feature = "stepped")]
pub mod stepped;
mod thread;

/// The pools of portals that there are, as masks of static dequeues say it: 0x8000 >> n, for 1 to 15.
const POOL_MASK: u32 = 0x7fff;
