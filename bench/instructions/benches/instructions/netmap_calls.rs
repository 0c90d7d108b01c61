//! An unmodified program of netmap's API, in C, under the preload library: the library is the code that is counted as
//! Ringway's own.

use std::{
    env, fs,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::Duration,
};

use crate::{
    callgrind::{self, Counts},
    cases::{PACKETS, SLOTS},
};

const PROJECT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// With the process that measures behind it: the names of folders.
const STEM: &str = "ringway-instructions.";

/// The program, built, in a folder of its own, where its daemon is as well.
pub struct NetmapCalls {
    folder: PathBuf,
    library: PathBuf,
}

impl NetmapCalls {
    pub fn build() -> Result<NetmapCalls, String> {
        let own = callgrind::this_program()?;
        // Beside the folder of what is built for tests and measurements alone.
        let built = own.parent().and_then(Path::parent).ok_or("this program is in no folder")?;
        let library = built.join("libringway_preload.so");
        for file in [&library, &built.join("ringwayd")] {
            if !file.exists() {
                return Err(format!("{} is missing: `make build`", file.display()));
            }
        }
        remove_left();
        // Names are as long as in every other run: where the program's stack begins depends on that.
        let folder = format!("{STEM}{:010}", std::process::id());
        let folder = env::temp_dir().join(folder);
        // A daemon is in no folder that others may look into.
        let made = fs::DirBuilder::new().mode(0o700).create(&folder);
        made.map_err(|e| format!("{}: {e}", folder.display()))?;
        let program = NetmapCalls { folder, library };
        let status = Command::new("cc")
            .args(["-std=gnu11", "-O2", "-I"])
            .arg(format!("{PROJECT}/include"))
            .arg(format!("-I{PROJECT}/tests/c"))
            .arg("-o")
            .arg(program.file())
            .arg(format!("{PROJECT}/bench/instructions/c/netmap_calls.c"))
            .status();
        match status {
            Ok(status) if status.success() => Ok(program),
            Ok(status) => Err(format!("cc: {status}")),
            Err(error) => Err(format!("cc: {error}")),
        }
    }

    fn file(&self) -> PathBuf {
        self.folder.join("netmap_calls")
    }

    /// `way` is an argument of the program's.
    pub fn count(&self, name: &str, way: &str, batch: u32) -> Result<Counts, String> {
        let (batch, warm_up) = (batch.to_string(), (2 * SLOTS / batch).to_string());
        let turns = (PACKETS / batch.parse::<u32>().unwrap_or(1)).to_string();
        let program = self.file().display().to_string();
        let command = [program.as_str(), way, &batch, &warm_up, &turns];
        let (daemon, library) =
            (self.folder.display().to_string(), self.library.display().to_string());
        let variables = [("RINGWAY_DIR", daemon.as_str()), ("LD_PRELOAD", &library)];
        callgrind::count(name, &self.library, &command, &variables)
    }
}

/// Removes the folders of measurements that were killed.
fn remove_left() {
    for entry in fs::read_dir(env::temp_dir()).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(STEM)?.parse::<u32>().ok());
        if pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

impl Drop for NetmapCalls {
    fn drop(&mut self) {
        // The daemon, which leaves with its last client, takes its own files away first.
        let of_daemon = ["ringwayd.sock", "lock"].map(|name| self.folder.join(name));
        for _ in 0..100 {
            if !of_daemon.iter().any(|file| file.exists()) {
                break;
            }
            thread::sleep(Duration::from_millis(20));
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}
