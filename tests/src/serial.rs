//! Tests that take turns.

use std::sync::{Mutex, MutexGuard};

/// A snapshot sees the whole machine: one test at a time, for as long as the result lives.
pub fn one_at_a_time() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(|e| e.into_inner())
}
