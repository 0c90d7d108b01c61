//! What `/proc/net/pf_ring` has: files in the user's own folder, where a private daemon would have its socket:
//! [`RingTexts`].
//!
//! `ringway ports --pf-ring` shows them.

use std::{
    fs, io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use ringway::{RingTexts, SocketPath};

use crate::{describe, errno::keep_errno};

/// Where files are that members of clusters share: in a folder of the user's alone, which is made
/// if it is not there. With a private daemon it is the daemon's, else one that is the same whatever
/// session a program is of.
pub fn shared_folder() -> io::Result<PathBuf> {
    let folder = match SocketPath::find() {
        SocketPath::Private { .. } => ringway::user_folder(),
        _ => ringway::shared_folder(),
    };
    folder.map_err(|_| io::Error::from_raw_os_error(libc::EACCES))
}

/// Removes that folder if there is nothing in it.
pub fn leave_shared_folder() {
    match SocketPath::find() {
        SocketPath::Private { .. } => ringway::leave_user_folder(),
        _ => ringway::leave_shared_folder(),
    }
}

/// The files of a ring, which go with it.
pub struct Files {
    name: String,
    /// The user's; `None` where there is none that is the user's alone.
    folder: Option<PathBuf>,
    interfaces: Vec<String>,
}

impl Files {
    /// Of a ring with this name and number, on these interfaces.
    pub fn new(device: &str, id: u32, interfaces: Vec<String>) -> Files {
        // What is named may be longer than a file's name is, and have its separators.
        let device: String = device.replace('/', "_").chars().take(100).collect();
        let folder = ringway::user_folder().ok();
        Files { name: format!("{}-{device}.{id}", std::process::id()), folder, interfaces }
    }

    /// Shows what the ring is. Nobody waits for it: what cannot be written is not.
    pub fn publish(&self, text: &str) {
        keep_errno(|| {
            if let Some(texts) = self.texts() {
                let _ = write(&texts.path().join(&self.name), text);
                self.publish_others(&texts);
            }
        });
    }

    fn texts(&self) -> Option<RingTexts> {
        RingTexts::open(self.folder.as_ref()?, make).ok()
    }

    /// Shows what else there is; nothing when there is no ring any more.
    fn publish_others(&self, texts: &RingTexts) {
        let mut rings = texts.running();
        if rings.is_empty() {
            texts.clear();
            // Without the lock, a ring that came meanwhile may have shown what has been removed.
            rings = texts.running();
            if rings.is_empty() {
                return ringway::leave_user_folder();
            }
        }
        let _ = write(&texts.path().join("info"), &describe::all(rings.len()));
        for interface in &self.interfaces {
            let bound = rings.iter().filter(|ring| is_on(ring, interface)).count();
            let path = texts.path().join("dev").join(interface).join("info");
            let _ = write(&path, &describe::interface(interface, bound));
        }
    }

    pub fn statistics(&self) -> Option<PathBuf> {
        Some(self.folder.as_ref()?.join("pf_ring/stats").join(&self.name))
    }

    pub fn write_statistics(&self, text: &str) -> io::Result<()> {
        keep_errno(|| self.statistics().map_or(Ok(()), |path| write(&path, text)))
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        keep_errno(|| {
            let Some(texts) = self.texts() else { return };
            let own = texts.path().join(&self.name);
            for path in [Some(own), self.statistics()].into_iter().flatten() {
                // It may never have been written.
                let _ = fs::remove_file(path);
            }
            self.publish_others(&texts);
        });
    }
}

/// Whether a ring with a file of this name is on the interface.
fn is_on(ring: &str, interface: &str) -> bool {
    let devices = ring.split_once('-').map_or("", |(_, devices)| devices);
    let devices = devices.rsplit_once('.').map_or("", |(devices, _)| devices);
    devices.split([',', ';']).any(|device| {
        let device = device.trim_start_matches("netmap:");
        device.split(['.', '@', '^']).next() == Some(interface)
    })
}

/// Makes a folder of this user's if it is not there.
fn make(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().mode(0o700).recursive(true).create(folder)
}

/// In one piece: a reader finds the text of before or this one.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut unfinished = path.as_os_str().to_owned();
    // Each thread has its own.
    let thread = rustix::thread::gettid().as_raw_pid();
    unfinished.push(format!(".{thread}~{}", std::process::id()));
    let attempt = || {
        path.parent().map_or(Ok(()), make)?;
        let mut options = fs::OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
        io::Write::write_all(&mut options.open(&unfinished)?, text.as_bytes())?;
        fs::rename(&unfinished, path)
    };
    match attempt() {
        // The last ring of another program has taken the folder away.
        Err(e) if e.kind() == io::ErrorKind::NotFound => attempt(),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_are_on_their_interfaces() {
        for ring in ["7-eth1.0", "7-eth0,eth1.12", "7-eth1.5.1", "7-eth1@0.1", "7-netmap:eth1^.2"] {
            assert!(is_on(ring, "eth1"), "{ring}");
        }
        for ring in ["7-eth10.0", "7-vale0:eth1.0", "info", "7-eth1"] {
            assert!(!is_on(ring, "eth1"), "{ring}");
        }
    }

    #[test]
    fn the_last_ring_leaves_nothing() {
        let folder = std::env::temp_dir().join(format!("ringway-last-{}", std::process::id()));
        let ring = |id| {
            let name = format!("{}-eth1.{id}", std::process::id());
            let files =
                Files { name, folder: Some(folder.clone()), interfaces: vec!["eth1".into()] };
            files.publish("text\n");
            files.write_statistics("42\n").unwrap();
            files
        };
        let rings = [ring(0), ring(1)];
        let texts = folder.join("pf_ring");
        for file in ["info", "dev/eth1/info"] {
            assert!(texts.join(file).exists(), "{file}");
        }
        let [first, last] = rings;
        drop(first);
        assert!(texts.join("info").exists());
        drop(last);
        assert!(!texts.exists());
        fs::remove_dir(&folder).unwrap();
    }
}
