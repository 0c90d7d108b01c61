//! Network namespaces that nobody has to delete.
//!
//! They have no names: each is held by a descriptor of this process, and by whoever runs in it.
//! When these have gone, however they went, the kernel removes it with all its interfaces.

use std::fs::{self, File};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::process::Command;
use std::{io, process, thread};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::sys;

/// A network namespace, whose stack says nothing by itself.
pub struct Netns {
    held: OwnedFd,
}

impl Netns {
    /// Makes one. Needs CAP_SYS_ADMIN.
    pub fn new() -> io::Result<Netns> {
        let make = || {
            sys::leave_netns()?;
            // Absent where the kernel has no IPv6: then it is silent already.
            let _ = fs::write("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
            Ok(Netns { held: File::open("/proc/thread-self/ns/net")?.into() })
        };
        thread::scope(|scope| scope.spawn(make).join().expect("no panic in a new namespace"))
    }

    /// A file for others to open and [`enter`], as long as this process holds the namespace.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", process::id(), self.held.as_raw_fd())
    }

    /// Runs `f` on a thread that lives in the namespace.
    pub fn inside<T: Send>(&self, f: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        thread::scope(|scope| {
            let thread = scope.spawn(|| {
                move_into_link_name_space(self.held.as_fd(), Some(LinkNameSpaceType::Network))?;
                f()
            });
            thread.join().expect("no panic inside a namespace")
        })
    }

    /// Runs a shell script in the namespace, and in a mount namespace whose sysfs shows its
    /// interfaces.
    pub fn run(&self, script: &str) -> io::Result<()> {
        let script =
            format!("set -e; PATH=$PATH:/usr/sbin:/sbin; mount -t sysfs sysfs /sys\n{script}");
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", &script]);
        let output = self.inside(|| command.output())?;
        match output.status.success() {
            true => Ok(()),
            false => Err(io::Error::other(format!(
                "cannot set up a network for the benchmark: {}{}",
                output.status,
                String::from_utf8_lossy(&output.stderr)
            ))),
        }
    }

    /// Packets that `interface` has received.
    pub fn received(&self, interface: &str) -> io::Result<u64> {
        let devices = self.inside(|| fs::read_to_string("/proc/thread-self/net/dev"))?;
        received(&devices, interface)
            .ok_or_else(|| io::Error::other(format!("no interface {interface} in:\n{devices}")))
    }
}

/// Moves the calling thread, and the threads and programs it starts, into the namespace that
/// `path` is a file of.
pub fn enter(path: &Path) -> io::Result<()> {
    let file = File::open(path)?;
    Ok(move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?)
}

/// The packets in the line of `interface` in `/proc/net/dev`: the second number.
fn received(devices: &str, interface: &str) -> Option<u64> {
    devices.lines().find_map(|line| {
        let (name, numbers) = line.split_once(':')?;
        (name.trim() == interface).then(|| numbers.split_whitespace().nth(1)?.parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn received_packets_are_the_second_number() {
        let devices = "Inter-|   Receive\n face |bytes    packets errs\n    \
                       lo:       0       0    0\n  far0: 5000      50    7\n far01: 1 2 3\n";
        assert_eq!(received(devices, "far0"), Some(50));
        assert_eq!(received(devices, "lo"), Some(0));
        assert_eq!(received(devices, "far"), None);
    }
}
