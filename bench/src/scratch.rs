//! A private folder for sockets, gone at the end however the end comes.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::{fs, io, process, thread};

use ringway_testkit::Folder;

use crate::hugepages;
use crate::sys::Signals;

/// Exit status of a shell's child that Ctrl-C ended.
pub const INTERRUPTED: u8 = 130;

static STOP: AtomicBool = AtomicBool::new(false);

/// Whether the user has asked for the end.
pub fn is_interrupted() -> bool {
    STOP.load(Ordering::Relaxed)
}

/// A folder that goes on drop. SIGINT, SIGTERM and SIGHUP [interrupt](is_interrupted) the benchmark, which ends
/// with what it has; a second one removes the folder and ends the process at once. The processes started by
/// this one ask the kernel to die with it (see [`crate::roles`]), so nobody is left to use the folder.
pub struct Scratch(Folder);

impl Scratch {
    /// Makes the folder and takes over the signals. To be called by the main thread before any
    /// other thread starts: threads inherit its signal mask.
    pub fn new() -> io::Result<Scratch> {
        let folder = Folder::new();
        remove_on_signal(folder.path().to_owned())?;
        Ok(Scratch(folder))
    }

    /// A new, empty folder inside this one. There may be others of that name, which who has just
    /// ended is about to leave.
    pub fn folder(&self, name: &str) -> io::Result<PathBuf> {
        static FOLDERS: AtomicU32 = AtomicU32::new(0);
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let path = self.0.path().join(format!("{name}-{number}"));
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(path)
    }
}

fn remove(path: &Path) {
    if let Err(error) = fs::remove_dir_all(path) {
        eprintln!("cannot remove {}: {error}; remove it by hand", path.display());
    }
}

fn remove_on_signal(path: PathBuf) -> io::Result<()> {
    let signals = Signals::hold_back(&[libc::SIGINT, libc::SIGTERM, libc::SIGHUP])?;
    thread::Builder::new().name("signals".into()).spawn(move || {
        if signals.wait().is_ok() {
            STOP.store(true, Ordering::Relaxed);
            eprintln!("\ninterrupted: it ends after this run; once more ends it at once");
            if signals.wait().is_ok() {
                remove(&path);
                hugepages::give_back();
                process::exit(INTERRUPTED.into());
            }
        }
    })?;
    Ok(())
}
