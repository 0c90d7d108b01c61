//! Tests that take turns.

use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

static TURN: RwLock<()> = RwLock::new(());

/// A snapshot sees the whole machine: no other test that takes turns runs for as long as the result lives.
pub fn one_at_a_time() -> RwLockWriteGuard<'static, ()> {
    TURN.write().unwrap_or_else(|e| e.into_inner())
}

/// For a test that takes no snapshot, and must not be seen by one.
pub fn beside_others() -> RwLockReadGuard<'static, ()> {
    TURN.read().unwrap_or_else(|e| e.into_inner())
}
