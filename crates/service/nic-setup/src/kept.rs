//! What is kept from one daemon to the next, by a [`Keeper`]: the links by which programs of switches are attached to
//! interfaces, and what holds these interfaces promiscuous. So the programs go on between interfaces, and network cards
//! go on receiving for all addresses.
//!
//! ```text
//!   attach --> keep ...... the daemon ends, the keeper has the link: its program forwards what it knows
//!                             |
//!            the next daemon: take_over --> attaches its own, behind --> end_those_before
//! ```
//!
//! The program of the daemon before is asked first as long as its link is there, and passes nothing on. So the next
//! one takes effect on all interfaces at once, when the links before have ended.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::sys;

/// A process that keeps descriptors while there is no daemon.
pub trait Keeper: Send + Sync {
    /// Has copies of these until it is told to [forget](Self::forget) that name.
    fn keep(&self, name: &str, fds: &[BorrowedFd<'_>]);
    fn forget(&self, name: &str);
    /// How many descriptors it keeps; `None`: it does not say.
    fn limit(&self) -> Option<usize>;
    /// It has no room for those of another interface. Told once, until there is room again.
    fn is_full(&self, limit: usize);
}

/// With what the names begin that a keeper has.
pub const NAME: &str = "path-";

static KEEPER: OnceLock<Arc<dyn Keeper>> = OnceLock::new();
static STATE: Mutex<State> =
    Mutex::new(State { before: Vec::new(), own: 0, names: 0, was_full: false });

struct State {
    /// Those of the daemon before, with their names.
    before: Vec<(String, OwnedFd)>,
    /// How many the next daemon would get of this one.
    own: usize,
    /// How many names this daemon has given.
    names: u64,
    was_full: bool,
}

/// What the next daemon gets of an interface, until this is dropped.
pub(crate) struct Kept {
    name: String,
    fds: usize,
}

/// From now on, and for good, `keeper` keeps what belongs to the programs of switches.
pub fn use_keeper(keeper: Arc<dyn Keeper>) {
    // It is named once.
    let _ = KEEPER.set(keeper);
}

/// What a keeper had of the daemon before.
pub fn take_over(fds: Vec<(String, OwnedFd)>) {
    state().before = fds;
}

/// The programs of the daemon before see nothing from now on, and it holds no interface promiscuous.
pub fn end_those_before() {
    let before = std::mem::take(&mut state().before);
    for (name, fd) in before {
        // Refused for what is no link, and when the interface has gone.
        let _ = sys::link_detach(fd.as_fd());
        forget(&name);
    }
}

/// Whether the next daemon would get anything of this one.
pub fn are_any() -> bool {
    state().own > 0
}

/// The kernel's ids of the programs of the daemon before.
pub(crate) fn programs_before() -> Vec<u32> {
    state().before.iter().filter_map(|(_, fd)| sys::link_program(fd.as_fd()).ok()).collect()
}

/// Has these kept, which belong to one interface: all of them, or none.
pub(crate) fn keep(fds: &[BorrowedFd<'_>]) -> Option<Kept> {
    let keeper = KEEPER.get()?;
    let mut state = state();
    // Until they have ended, those of the daemon before take room, too.
    let wanted = state.before.len() + state.own + fds.len();
    if let Some(limit) = keeper.limit().filter(|&limit| wanted > limit) {
        if !std::mem::replace(&mut state.was_full, true) {
            keeper.is_full(limit);
        }
        return None;
    }
    state.was_full = false;
    state.own += fds.len();
    state.names += 1;
    // No other has it: none of this daemon's, and none of one before that may still be kept.
    let name = format!("{NAME}{}-{}", process::id(), state.names);
    drop(state);
    keeper.keep(&name, fds);
    Some(Kept { name, fds: fds.len() })
}

impl Drop for Kept {
    fn drop(&mut self) {
        state().own -= self.fds;
        forget(&self.name);
    }
}

fn forget(name: &str) {
    if let Some(keeper) = KEEPER.get() {
        keeper.forget(name);
    }
}

fn state() -> MutexGuard<'static, State> {
    // What is there is whole: a panic leaves nothing behind.
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}
