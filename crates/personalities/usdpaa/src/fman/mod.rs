//! The Frame Manager: interfaces that receive from Ringway's ports into buffers and frame queues, and transmit what
//! programs enqueue.
//!
//! ```text
//!   port's rx ring --> receive.rs: a buffer of the smallest pool that fits, a copy, distribute.rs --> frame queues
//!   port's tx ring <-- transmit.rs: a copy, buffers back to their pools, or confirmed  <-- the interface's channel
//! ```
//!
//! Packets are moved by threads of the program that poll their portals and find nothing there, and while none does, by a
//! thread of the interface's own, which sleeps as long as there is nothing (`worker.rs`).

#[allow(non_camel_case_types)]
pub mod abi;
mod crc64;
mod distribute;
mod interface;
mod parse;
mod receive;
#[cfg(test)]
mod tests;
mod transmit;
mod worker;

pub use distribute::Distributor;
pub use interface::{Counters, Interface, POOLS};
use ringway_qbman::Frame;

use std::sync::{
    Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
    atomic::{AtomicU64, Ordering::Relaxed},
};

/// The interfaces of the process.
static INTERFACES: RwLock<Vec<Arc<Interface>>> = RwLock::new(Vec::new());
/// How often threads of the program have looked for packets themselves.
static POLLS: AtomicU64 = AtomicU64::new(0);

pub fn interfaces() -> RwLockReadGuard<'static, Vec<Arc<Interface>>> {
    INTERFACES.read().unwrap_or_else(PoisonError::into_inner)
}

pub fn interfaces_mut() -> RwLockWriteGuard<'static, Vec<Arc<Interface>>> {
    INTERFACES.write().unwrap_or_else(PoisonError::into_inner)
}

/// A thread of the program polls, and has found nothing: it moves packets. Returns whether there were any.
pub fn poll() -> bool {
    let polls = POLLS.fetch_add(1, Relaxed);
    let Ok(interfaces) = INTERFACES.try_read() else { return false };
    // Interfaces share the pools' buffers: each is the first to have some in its turn.
    let first = polls.checked_rem(interfaces.len() as u64).unwrap_or(0) as usize;
    let (later, sooner) = interfaces.split_at(first);
    let turns = sooner.iter().chain(later).map(|interface| interface.try_turn());
    turns.fold(false, |moved, turn| moved | turn)
}

/// A frame goes nowhere: all its buffers go back to their pools.
pub fn discard(frame: &Frame) {
    transmit::discard(&crate::memory::maps(), frame);
}

/// The program's threads are going to sleep: the interfaces' own threads move packets from now on.
pub fn rely_on_workers() {
    interfaces().iter().for_each(|interface| interface.wake());
}
