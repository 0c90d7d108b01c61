//! The folder of the texts of PF_RING's rings, in a [user's folder](crate::user_folder):
//!
//! ```text
//!   pf_ring/info                          what there is, in all
//!   pf_ring/<pid>-<device>.<ring>         what a ring is and what it has counted, for as long as it is open
//!   pf_ring/stats/<pid>-<device>.<ring>   what its program says of itself
//!   pf_ring/dev/<interface>/info          an interface that rings have been opened on
//! ```
//!
//! A program removes what it has written. What a killed one has left is removed by the next that looks: another
//! program with a ring, `ringway ports --pf-ring`, a private daemon that leaves. All of them lock the folder meanwhile, so
//! that none removes what another is about to write.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};

/// How often a lock that another has is tried, and the pause between.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(1);

/// The folder, locked. `None` as the lock: another program did not let go of it in time.
pub struct RingTexts {
    path: PathBuf,
    lock: Option<File>,
}

impl RingTexts {
    /// Of a user's folder, in which it is made by `make` if it is not there. A program that is stopped while it has
    /// the lock is not waited for.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn open(
        user_folder: &Path,
        make: impl Fn(&Path) -> io::Result<()>,
    ) -> io::Result<RingTexts> {
        let path = user_folder.join("pf_ring");
        for _ in 0..TRIES {
            make(&path)?;
            let folder = match File::open(&path) {
                // The last ring of another program has taken it away.
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                folder => folder?,
            };
            match flock(&folder, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) if is_at(&folder, &path) => {
                    return Ok(RingTexts { path, lock: Some(folder) });
                }
                Ok(()) | Err(Errno::INTR) => {}
                Err(Errno::WOULDBLOCK) => thread::sleep(PAUSE),
                Err(_) => break,
            }
        }
        Ok(RingTexts { path, lock: None })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The rings of programs that run. What others have left is removed.
    pub fn running(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.retain(|name| {
            // A file that is being written, or was when its program was killed.
            if let Some((_, writer)) = name.rsplit_once('~') {
                if !runs(writer) {
                    let _ = fs::remove_file(self.path.join(name));
                }
                return false;
            }
            let Some((process, _)) = name.split_once('-') else { return false };
            let runs = runs(process);
            if !runs {
                let _ = fs::remove_file(self.path.join(name));
                let _ = fs::remove_file(self.path.join("stats").join(name));
            }
            runs
        });
        names
    }

    /// Removes what is of no ring, and the folder: there is no ring.
    pub fn clear(&self) {
        let _ = fs::remove_file(self.path.join("info"));
        for others in ["dev", "stats"] {
            let _ = fs::remove_dir_all(self.path.join(others));
        }
        let _ = fs::remove_dir(&self.path);
    }
}

impl Drop for RingTexts {
    fn drop(&mut self) {
        if let Some(folder) = &self.lock {
            // A process that was forked meanwhile has the descriptor, too.
            let _ = flock(folder, FlockOperation::Unlock);
        }
    }
}

/// Removes from a user's folder what killed programs have left there. The folder of the texts, and the names of the rings
/// that there are.
pub fn sweep_ring_texts(user_folder: &Path) -> (PathBuf, Vec<String>) {
    let is_there = |path: &Path| path.symlink_metadata().map(drop);
    let Ok(texts) = RingTexts::open(user_folder, is_there) else {
        return (PathBuf::new(), Vec::new());
    };
    let running = texts.running();
    if running.is_empty() && texts.lock.is_some() {
        texts.clear();
    }
    (texts.path.clone(), running)
}

/// Whether it is this folder that has the name.
fn is_at(folder: &File, path: &Path) -> bool {
    let identity = |file: fs::Metadata| (file.dev(), file.ino());
    let there = path.symlink_metadata().map(identity);
    folder.metadata().map(identity).is_ok_and(|own| there.is_ok_and(|there| there == own))
}

/// Whether there is a process with this number.
fn runs(process: &str) -> bool {
    process.parse::<u32>().is_ok_and(|id| Path::new("/proc").join(id.to_string()).exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A user's folder with texts of these rings.
    fn folder(name: &str, rings: &[&str]) -> PathBuf {
        let user = std::env::temp_dir().join(format!("ringway-{name}-{}", std::process::id()));
        for folder in ["dev/eth1", "stats"] {
            fs::create_dir_all(user.join("pf_ring").join(folder)).unwrap();
        }
        for file in rings.iter().copied().chain(["info", "info~4294967295", "dev/eth1/info"]) {
            fs::write(user.join("pf_ring").join(file), "text\n").unwrap();
        }
        user
    }

    const DEAD: &str = "4294967295-eth1.0";

    #[test]
    fn what_the_dead_have_left_is_removed() {
        let mine = format!("{}-eth1.0", std::process::id());
        let user = folder("dead", &[&mine, DEAD, "stats/4294967295-eth1.0"]);
        let (texts, running) = sweep_ring_texts(&user);
        assert_eq!((&texts, running), (&user.join("pf_ring"), vec![mine]));
        assert!(texts.join("info").exists() && texts.join("dev/eth1/info").exists());
        for gone in [DEAD, "stats/4294967295-eth1.0", "info~4294967295"] {
            assert!(!texts.join(gone).exists(), "{gone}");
        }
        fs::remove_dir_all(&user).unwrap();
    }

    #[test]
    fn with_the_last_of_them_all_goes_unless_another_is_about_to_write() {
        let user = folder("last", &[DEAD]);
        let make = |path: &Path| fs::create_dir_all(path);
        let writing = RingTexts::open(&user, make).unwrap();
        assert_eq!(sweep_ring_texts(&user).1, [""; 0]);
        assert!(user.join("pf_ring/info").exists(), "another has the folder");
        // As of a process that was forked meanwhile.
        let _forked = writing.lock.as_ref().unwrap().try_clone().unwrap();
        drop(writing);
        sweep_ring_texts(&user);
        assert!(!user.join("pf_ring").exists());
        sweep_ring_texts(&user);
        assert!(!user.join("pf_ring").exists(), "looking makes nothing");
        assert!(RingTexts::open(&user, make).unwrap().lock.is_some());
        fs::remove_dir_all(&user).unwrap();
    }
}
