//! Links that are kept from one daemon to the next, by a [`Keeper`]: the programs of switches go on between them.
//!
//! ```text
//!   attach --> keep ...... the daemon ends, the keeper has the link: its program forwards what it knows
//!                             |
//!            the next daemon: take_over --> attaches its own, behind --> end_those_before
//! ```
//!
//! The program of the daemon before is asked first as long as its link is there, and passes nothing on. So the next
//! one takes effect on all interfaces at once, when the links before have ended.

use std::num::NonZeroU64;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::sys;

/// A process that keeps descriptors while there is no daemon.
pub trait Keeper: Send + Sync {
    /// Has a copy of `link` until it is told to [forget](Self::forget) that name.
    fn keep(&self, name: &str, link: BorrowedFd<'_>);
    fn forget(&self, name: &str);
}

/// With what the names of links begin that a keeper has.
pub const NAME: &str = "path-";

static KEEPER: OnceLock<Arc<dyn Keeper>> = OnceLock::new();

/// Those of the daemon before, with their names.
static BEFORE: Mutex<Vec<(String, OwnedFd)>> = Mutex::new(Vec::new());

/// How many links were handed to the keeper, and how many of those are to be forgotten by now.
static NEXT: AtomicU64 = AtomicU64::new(0);
static FORGOTTEN: AtomicU64 = AtomicU64::new(0);

/// From now on, and for good, `keeper` keeps the links of switches' programs.
pub fn use_keeper(keeper: Arc<dyn Keeper>) {
    // It is named once.
    let _ = KEEPER.set(keeper);
}

/// What a keeper had of the daemon before.
pub fn take_over(links: Vec<(String, OwnedFd)>) {
    *before() = links;
}

/// The programs of the daemon before see nothing from now on.
pub fn end_those_before() {
    for (name, link) in std::mem::take(&mut *before()) {
        // Refused when the interface has gone.
        let _ = sys::link_detach(link.as_fd());
        forget_before(&name);
    }
}

/// Whether the next daemon would get links of this one.
pub fn are_any() -> bool {
    NEXT.load(Relaxed) > FORGOTTEN.load(Relaxed)
}

/// The kernel's ids of the programs of the daemon before.
pub(crate) fn programs_before() -> Vec<u32> {
    before().iter().filter_map(|(_, link)| sys::link_program(link.as_fd()).ok()).collect()
}

/// Has a link kept; the number to [forget] it by.
pub(crate) fn keep(link: BorrowedFd<'_>) -> Option<NonZeroU64> {
    let keeper = KEEPER.get()?;
    let number = NonZeroU64::new(NEXT.fetch_add(1, Relaxed) + 1)?;
    keeper.keep(&name(number), link);
    Some(number)
}

/// The link has ended.
pub(crate) fn forget(number: NonZeroU64) {
    FORGOTTEN.fetch_add(1, Relaxed);
    forget_before(&name(number));
}

/// No other link has it: none of this daemon's, and none of one before that may still be kept.
fn name(number: NonZeroU64) -> String {
    format!("{NAME}{}-{number}", process::id())
}

fn forget_before(name: &str) {
    if let Some(keeper) = KEEPER.get() {
        keeper.forget(name);
    }
}

fn before() -> std::sync::MutexGuard<'static, Vec<(String, OwnedFd)>> {
    // What is there is whole: a panic leaves nothing behind.
    BEFORE.lock().unwrap_or_else(PoisonError::into_inner)
}
