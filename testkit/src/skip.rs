//! Tests that need root say so, and are counted as skipped without it.

use std::fs::OpenOptions;
use std::io::Write;

/// Whether this process runs as uid 0.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// True when the test named `test` must return at once because it needs root and has none.
///
/// The test harness knows only passed and failed. So the skip is printed, and appended as a line
/// `test<TAB>reason` to the file that `RINGWAY_SKIPPED` names, where the summary finds it.
pub fn skip_without_root(test: &str) -> bool {
    if is_root() {
        return false;
    }
    println!("{test}: skipped: needs root");
    if let Some(path) = std::env::var_os("RINGWAY_SKIPPED") {
        let line = format!("{test}\tneeds root\n");
        OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .and_then(|mut file| file.write_all(line.as_bytes()))
            .unwrap_or_else(|e| panic!("cannot write {path:?} (RINGWAY_SKIPPED): {e}"));
    }
    true
}
