//! The one way to skip: a test that cannot run here says so, and the summary counts it.
//!
//! The test harness knows only passed and failed. So a skip is printed, and appended as a line
//! `test<TAB>reason` to the file that `RINGWAY_SKIPPED` names. `scripts/test` prints that file at the
//! end, and fails where root has skipped anything.

use std::fs::OpenOptions;
use std::io::Write;

/// Whether this process runs as uid 0.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// True when the test named `test` must return at once because it needs root and has none.
pub fn skip_without_root(test: &str) -> bool {
    skip_unless(is_root(), test, "needs root")
}

/// True when the test named `test` must return at once: what it needs, as `reason` says, is not
/// `there`.
pub fn skip_unless(there: bool, test: &str, reason: &str) -> bool {
    if !there {
        skip(test, reason);
    }
    !there
}

/// Notes that `test`, or a part of it, does not run, and why.
pub fn skip(test: &str, reason: &str) {
    println!("{test}: skipped: {reason}");
    let Some(path) = std::env::var_os("RINGWAY_SKIPPED") else { return };
    let line = format!("{test}\t{reason}\n");
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)
        .and_then(|mut file| file.write_all(line.as_bytes()))
        .unwrap_or_else(|e| panic!("cannot write {path:?} (RINGWAY_SKIPPED): {e}"));
}
