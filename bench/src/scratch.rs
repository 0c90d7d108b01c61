//! A private folder for sockets, gone at the end however the end comes.
#![allow(unsafe_code)]

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{fs, io, mem, process, ptr, thread};

use ringway_testkit::Folder;

/// Exit status of a shell's child that Ctrl-C ended.
const INTERRUPTED: i32 = 130;

/// A folder that goes on drop, and by SIGINT, SIGTERM and SIGHUP, which also end the process. The
/// processes started by this one ask the kernel to die with it (see [`crate::roles`]), so nobody is
/// left to use the folder.
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
    // SAFETY: an all-zero sigset_t is a valid place for sigemptyset to fill, and every call below
    // gets pointers to that live local, or null where the manual allows it.
    let signals = unsafe {
        let mut signals: libc::sigset_t = mem::zeroed();
        libc::sigemptyset(&mut signals);
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            libc::sigaddset(&mut signals, signal);
        }
        match libc::pthread_sigmask(libc::SIG_BLOCK, &signals, ptr::null_mut()) {
            0 => signals,
            errno => return Err(io::Error::from_raw_os_error(errno)),
        }
    };
    thread::Builder::new().name("signals".into()).spawn(move || {
        let mut signal = 0;
        // SAFETY: both pointers are to live locals of this thread.
        if unsafe { libc::sigwait(&signals, &mut signal) } == 0 {
            remove(&path);
            process::exit(INTERRUPTED);
        }
    })?;
    Ok(())
}
