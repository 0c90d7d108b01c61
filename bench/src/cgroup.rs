//! Control groups: a share of the processors for the processes of an experiment, and what they use of them.
//!
//! Both versions are known: `cpu.max` and `cpu.stat` of the second, `cpu.cfs_quota_us` and `cpuacct.usage` of the first.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use std::{fs, io, process};

/// The kernel's own default. A group that has used up its share waits for the next period.
const PERIOD_US: u64 = 100_000;

/// Where a mounted hierarchy with a controller is, the second version first.
const SECOND: &str = "/sys/fs/cgroup";
const FIRST: &str = "/sys/fs/cgroup/cpu";
const ACCOUNTS: &str = "/sys/fs/cgroup/cpuacct";

/// A group, and where it is in the first version's other hierarchy. It goes on drop, when its processes are gone.
pub struct Cgroup {
    path: PathBuf,
}

impl Cgroup {
    /// Makes one. With a `share` its processes get so many percent of one processor, together.
    pub fn new(share: Option<u32>) -> io::Result<Cgroup> {
        static GROUPS: AtomicU32 = AtomicU32::new(0);
        let number = GROUPS.fetch_add(1, Ordering::Relaxed);
        let name = format!("ringway-bench-{}-{number}", process::id());
        let root = if is_second() { SECOND } else { FIRST };
        if is_second() {
            // It may be on, or the group of a container that may not: then the share cannot be set, which is told.
            let _ = fs::write(Path::new(SECOND).join("cgroup.subtree_control"), "+cpu");
        } else {
            fs::create_dir(Path::new(ACCOUNTS).join(&name))?;
        }
        let path = Path::new(root).join(name);
        fs::create_dir(&path)?;
        let group = Cgroup { path };
        let quota = share.map(|percent| u64::from(percent) * PERIOD_US / 100);
        match (quota, is_second()) {
            (None, _) => {}
            (Some(quota), true) => group.write("cpu.max", &format!("{quota} {PERIOD_US}"))?,
            (Some(quota), false) => {
                group.write("cpu.cfs_period_us", &PERIOD_US.to_string())?;
                group.write("cpu.cfs_quota_us", &quota.to_string())?;
            }
        }
        Ok(group)
    }

    /// For [`enter`].
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The CPU time that its processes have used, those that are gone among them.
    pub fn used(&self) -> io::Result<Duration> {
        if is_second() {
            let stat = fs::read_to_string(self.path.join("cpu.stat"))?;
            let usage = stat.lines().find_map(|line| line.strip_prefix("usage_usec "));
            let usage = usage.and_then(|number| number.parse().ok());
            return usage
                .map(Duration::from_micros)
                .ok_or_else(|| io::Error::other(format!("no usage_usec in {stat:?}")));
        }
        let usage = fs::read_to_string(accounts(&self.path).join("cpuacct.usage"))?;
        usage.trim().parse().map(Duration::from_nanos).map_err(io::Error::other)
    }

    fn write(&self, file: &str, what: &str) -> io::Result<()> {
        let path = self.path.join(file);
        fs::write(&path, what).map_err(|error| {
            io::Error::new(error.kind(), format!("{} cannot be set: {error}", path.display()))
        })
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // Processes that were killed are in it until they are gone, and so is a daemon that is about to leave. An
        // empty group that stays costs nothing.
        let empty =
            || fs::read_to_string(self.path.join("cgroup.procs")).is_ok_and(|all| all.is_empty());
        for _ in 0..100 {
            if empty() {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = fs::remove_dir(&self.path);
        if !is_second() {
            let _ = fs::remove_dir(accounts(&self.path));
        }
    }
}

/// Moves this process into the group at `path`, and what it starts from now on.
pub fn enter(path: &Path) -> io::Result<()> {
    fs::write(path.join("cgroup.procs"), "0")?;
    match is_second() {
        true => Ok(()),
        false => fs::write(accounts(path).join("cgroup.procs"), "0"),
    }
}

fn is_second() -> bool {
    Path::new(SECOND).join("cgroup.controllers").exists()
}

fn accounts(path: &Path) -> PathBuf {
    Path::new(ACCOUNTS).join(path.file_name().unwrap_or_default())
}
