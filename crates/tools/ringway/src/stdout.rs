//! What standard output is for: results, or the frames of a capture file, with which nothing else may be mixed.

use rustix::fs::{FileType, fstat, stat};
use std::io::IsTerminal;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static HAS_FRAMES: AtomicBool = AtomicBool::new(false);

/// Frames go there. From now on results are told on standard error.
pub fn keep_for_frames() {
    HAS_FRAMES.store(true, Relaxed);
}

/// Whether results are to be told elsewhere.
pub fn has_frames() -> bool {
    HAS_FRAMES.load(Relaxed)
}

/// Whether what is written to this file goes to standard output: `-`, `/dev/stdout`, or the file that it is
/// redirected to. Nothing is mixed in a device as `/dev/null`, except in a terminal.
pub fn is(file: &Path) -> bool {
    if file.as_os_str() == "-" {
        return true;
    }
    let stdout = std::io::stdout();
    let (Ok(named), Ok(ours)) = (stat(file), fstat(&stdout)) else { return false };
    let is_device = FileType::from_raw_mode(ours.st_mode) == FileType::CharacterDevice;
    let is_same = (named.st_dev, named.st_ino) == (ours.st_dev, ours.st_ino);
    is_same && (!is_device || stdout.is_terminal())
}
