//! Looks at the machine. Nothing here judges, and nothing is left changed.

use super::nic::Nic;
use ringway::{SocketPath, daemon_binary};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with, socketpair};
use rustix::process::{Resource, getrlimit};
use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// What was found. Texts are the files of the same name in `/proc`, empty if unreadable.
pub struct Host {
    pub kernel: String,
    pub status: String,
    pub meminfo: String,
    pub memfd: io::Result<()>,
    pub seqpacket: io::Result<()>,
    pub eventfd: io::Result<()>,
    pub xdp_socket: io::Result<()>,
    pub tun: io::Result<()>,
    /// RLIMIT_MEMLOCK in bytes; None: no limit.
    pub memlock: Option<u64>,
    pub daemon_program: Option<PathBuf>,
    /// Where the client library looks for a daemon, and what it finds.
    pub daemon: (SocketPath, io::Result<()>),
    pub nics: Vec<Nic>,
}

impl Host {
    pub fn look() -> Host {
        Host {
            kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
            status: read("/proc/self/status"),
            meminfo: read("/proc/meminfo"),
            memfd: sealed_memfd().map_err(io::Error::from),
            seqpacket: seqpacket().map_err(io::Error::from),
            eventfd: eventfd(0, EventfdFlags::CLOEXEC).map(drop).map_err(io::Error::from),
            xdp_socket: xdp_socket().map_err(io::Error::from),
            tun: OpenOptions::new().read(true).write(true).open("/dev/net/tun").map(drop),
            memlock: getrlimit(Resource::Memlock).current,
            daemon_program: daemon_binary(),
            daemon: daemon(),
            nics: nics(Path::new("/sys/class/net")),
        }
    }
}

fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn sealed_memfd() -> rustix::io::Result<()> {
    let memfd = memfd_create("ringway-doctor", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    ftruncate(&memfd, 4096)?;
    fcntl_add_seals(&memfd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)
}

fn seqpacket() -> rustix::io::Result<()> {
    socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).map(drop)
}

fn xdp_socket() -> rustix::io::Result<()> {
    socket_with(AddressFamily::XDP, SocketType::RAW, SocketFlags::CLOEXEC, None).map(drop)
}

fn daemon() -> (SocketPath, io::Result<()>) {
    let place = SocketPath::find();
    let answer = place.answer();
    (place, answer)
}

/// All interfaces but the loopback, by name.
fn nics(sysfs: &Path) -> Vec<Nic> {
    let mut names: Vec<String> = fs::read_dir(sysfs)
        .map(|entries| {
            entries.flatten().map(|entry| entry.file_name().to_string_lossy().into()).collect()
        })
        .unwrap_or_default();
    names.sort();
    names.retain(|name| name != "lo" && sysfs.join(name).join("ifindex").exists());
    names
        .into_iter()
        .map(|name| {
            let folder = sysfs.join(&name);
            Nic {
                driver: driver(&folder),
                rx_queues: queues(&folder, "rx-"),
                tx_queues: queues(&folder, "tx-"),
                name,
            }
        })
        .collect()
}

fn driver(folder: &Path) -> String {
    if let Ok(link) = fs::read_link(folder.join("device/driver"))
        && let Some(name) = link.file_name()
    {
        return name.to_string_lossy().into();
    }
    if folder.join("tun_flags").exists() {
        return "tun".into();
    }
    let uevent = read(folder.join("uevent"));
    if let Some(kind) = uevent.lines().find_map(|line| line.strip_prefix("DEVTYPE=")) {
        return kind.into();
    }
    // A veth has no mark of its own in sysfs, but it is linked to an interface other than itself.
    if read(folder.join("iflink")) != read(folder.join("ifindex")) {
        return "veth".into();
    }
    "virtual".into()
}

fn queues(folder: &Path, prefix: &str) -> usize {
    let starts = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with(prefix);
    fs::read_dir(folder.join("queues"))
        .map_or(0, |entries| entries.flatten().filter(starts).count())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A made-up sysfs in a directory that goes away with the test.
    struct Sysfs(PathBuf);

    impl Sysfs {
        fn new() -> Sysfs {
            let path = std::env::temp_dir().join(format!("ringway-sysfs-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Sysfs(path)
        }

        fn add(&self, name: &str, index: &str, link: &str, uevent: &str) -> PathBuf {
            let folder = self.0.join(name);
            for queue in ["queues/rx-0", "queues/rx-1", "queues/tx-0"] {
                fs::create_dir_all(folder.join(queue)).unwrap();
            }
            for (file, text) in [("ifindex", index), ("iflink", link), ("uevent", uevent)] {
                fs::write(folder.join(file), text).unwrap();
            }
            folder
        }
    }

    impl Drop for Sysfs {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn interfaces_are_found_with_driver_and_queues() {
        let sysfs = Sysfs::new();
        sysfs.add("lo", "1\n", "1\n", "");
        let eth = sysfs.add("eth0", "2\n", "2\n", "");
        fs::create_dir(eth.join("device")).unwrap();
        symlink("../../../bus/pci/drivers/igc", eth.join("device/driver")).unwrap();
        fs::write(sysfs.add("tap0", "3\n", "3\n", "").join("tun_flags"), "0x1002\n").unwrap();
        sysfs.add("br0", "4\n", "4\n", "DEVTYPE=bridge\nINTERFACE=br0\n");
        sysfs.add("veth0", "5\n", "9\n", "INTERFACE=veth0\n");
        sysfs.add("dummy0", "6\n", "6\n", "");
        fs::write(sysfs.0.join("bonding_masters"), "").unwrap();

        let found: Vec<_> =
            nics(&sysfs.0).into_iter().map(|nic| (nic.name, nic.driver, nic.rx_queues)).collect();
        let wanted = [
            ("br0", "bridge"),
            ("dummy0", "virtual"),
            ("eth0", "igc"),
            ("tap0", "tun"),
            ("veth0", "veth"),
        ];
        let wanted = wanted.map(|(name, driver)| (name.to_string(), driver.to_string(), 2));
        assert_eq!(found, wanted);
    }

    #[test]
    fn looking_twice_finds_the_same() {
        let (one, two) = (Host::look(), Host::look());
        assert_eq!((one.kernel, one.nics), (two.kernel, two.nics));
    }
}
