//! Looks at the machine. Nothing here judges, and nothing is left changed.

use super::nic::Nic;
use crate::losses::Losses;
use crate::sys;
use ringway::{Cause, Control, NameConflict, PortInfo, SocketPath, daemon_binary};
use ringway_live_capture::namespace::is_named_here;
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
    pub bpf: io::Result<()>,
    /// `/proc/self/uid_map`.
    pub uid_map: String,
    pub tun: io::Result<()>,
    /// RLIMIT_MEMLOCK in bytes; None: no limit.
    pub memlock: Option<u64>,
    pub daemon_program: Option<PathBuf>,
    /// Where the client library looks for a daemon, and what it finds.
    pub daemon: (SocketPath, io::Result<()>),
    /// What it cannot do any more.
    pub degraded: Option<String>,
    /// Whether a daemon of one's own could be started; else why not, and what to do.
    pub private: Result<(), String>,
    /// Whether a daemon that is not this user's own opens all interfaces for this user; `None` if there
    /// is no such daemon.
    pub nic_grant: Option<bool>,
    /// Names that users could not have: those that the running daemon tells this user.
    pub conflicts: Vec<NameConflict>,
    pub nics: Vec<Nic>,
    pub ports: Vec<OpenPort>,
}

/// What there is to say of a port that is open.
pub struct OpenPort {
    pub name: String,
    /// What its device has counted as lost since.
    pub losses: Option<String>,
    /// Queues of its interface that it has no rings for.
    pub added_queues: Vec<u32>,
}

impl Host {
    /// `only`: of all interfaces, look at this one.
    pub fn look(only: Option<&str>) -> Host {
        let daemon = daemon();
        Host {
            kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
            status: read("/proc/self/status"),
            meminfo: read("/proc/meminfo"),
            memfd: sealed_memfd().map_err(io::Error::from),
            seqpacket: seqpacket().map_err(io::Error::from),
            eventfd: eventfd(0, EventfdFlags::CLOEXEC).map(drop).map_err(io::Error::from),
            xdp_socket: xdp_socket().map_err(io::Error::from),
            bpf: sys::make_socket_map(),
            uid_map: read("/proc/self/uid_map"),
            tun: OpenOptions::new().read(true).write(true).open("/dev/net/tun").map(drop),
            memlock: getrlimit(Resource::Memlock).current,
            daemon_program: daemon_binary(),
            nic_grant: nic_grant(&daemon),
            conflicts: conflicts(&daemon),
            degraded: degraded(&daemon),
            ports: ports(&daemon, only),
            private: daemon.0.check_private().map_err(|error| error.to_string()),
            daemon,
            nics: nics(&read("/proc/self/net/dev"), only, Path::new("/sys/class/net"), sys::driver),
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

/// Asks a daemon that serves several users about the one interface that is everywhere. Asking opens
/// nothing.
fn nic_grant((place, answer): &(SocketPath, io::Result<()>)) -> Option<bool> {
    if answer.is_err() || matches!(place, SocketPath::Private { .. }) {
        return None;
    }
    match Control::connect().ok()?.port_config("lo") {
        Err(error) if error.cause() == Cause::Denied => Some(false),
        Err(_) => None,
        Ok(_) => Some(true),
    }
}

/// A daemon is asked, and none is started.
fn conflicts((_, answer): &(SocketPath, io::Result<()>)) -> Vec<NameConflict> {
    let ask = || Control::connect_running()?.name_conflicts();
    answer.as_ref().map_or(Vec::new(), |()| ask().unwrap_or_default())
}

/// Likewise.
fn degraded((_, answer): &(SocketPath, io::Result<()>)) -> Option<String> {
    answer.as_ref().ok()?;
    Control::connect_running().ok()?.daemon().ok()?.degraded
}

/// Likewise.
fn ports((_, answer): &(SocketPath, io::Result<()>), only: Option<&str>) -> Vec<OpenPort> {
    let ask = || -> Option<Vec<_>> {
        answer.as_ref().ok()?;
        let control = Control::connect_running().ok()?;
        let mut ports = control.ports().ok()?;
        // Those of other network namespaces are not the interfaces that are looked at.
        ports.retain(|port| {
            is_named_here(port, &port.name) && only.is_none_or(|only| port.name == only)
        });
        let open = |port: PortInfo| OpenPort {
            losses: Losses::at(&port, &control).of_device(),
            name: port.name,
            added_queues: port.added_queues,
        };
        Some(ports.into_iter().map(open).collect())
    };
    ask().unwrap_or_default()
}

/// `only` one of the interfaces, or all but the loopback, those that the kernel makes for its own
/// queueing, and those that a daemon makes for its ports, by name: those of this process's network namespace, which
/// `/proc/net/dev` tells, where sysfs may show those of another. `ask` asks the kernel for the driver.
fn nics(
    dev: &str,
    only: Option<&str>,
    sysfs: &Path,
    ask: impl Fn(&str) -> io::Result<String>,
) -> Vec<Nic> {
    // Two lines of headings, and then `  name: numbers`.
    let names = dev.lines().skip(2).filter_map(|line| Some(line.split_once(':')?.0.trim()));
    let is_others = |name: &str| name != "lo" && !is_private(name);
    let wanted = |name: &&str| only.map_or_else(|| is_others(name), |only| *name == only);
    let mut names: Vec<&str> = names.filter(wanted).collect();
    names.sort_unstable();
    names
        .into_iter()
        .map(|name| {
            let folder = sysfs.join(name);
            Nic {
                driver: driver(&folder, || ask(name)),
                has_headers: has_headers(&folder),
                rx_queues: queues(&folder, "rx-"),
                tx_queues: queues(&folder, "tx-"),
                name: name.into(),
            }
        })
        .filter(|nic| only.is_some() || nic.driver != QUEUEING)
        .collect()
}

/// Whether an interface is an end of a pair of a daemon's own, which goes with the port that it is for: `nic-setup` names
/// them.
fn is_private(name: &str) -> bool {
    let number = ["rwhost", "rwport", "rwrecv"].iter().find_map(|begin| name.strip_prefix(begin));
    number.is_some_and(|it| !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Whether frames have Ethernet headers, where sysfs tells.
fn has_headers(folder: &Path) -> bool {
    let kind = fs::read_to_string(folder.join("type")).ok();
    let kind = kind.and_then(|kind| kind.trim().parse().ok());
    kind.is_none_or(|kind: u16| [libc::ARPHRD_ETHER, libc::ARPHRD_LOOPBACK].contains(&kind))
}

/// The driver of interfaces that no program receives from or sends on.
const QUEUEING: &str = "ifb";

fn driver(folder: &Path, ask: impl FnOnce() -> io::Result<String>) -> String {
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
    // A veth, for one, has no mark of its own in sysfs.
    ask().ok().filter(|name| !name.is_empty()).unwrap_or_else(|| "virtual".into())
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

        fn add(&self, name: &str, uevent: &str) -> PathBuf {
            let folder = self.0.join(name);
            for queue in ["queues/rx-0", "queues/rx-1", "queues/tx-0"] {
                fs::create_dir_all(folder.join(queue)).unwrap();
            }
            fs::write(folder.join("uevent"), uevent).unwrap();
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
        sysfs.add("lo", "");
        let eth = sysfs.add("eth0", "");
        fs::create_dir(eth.join("device")).unwrap();
        symlink("../../../bus/pci/drivers/igc", eth.join("device/driver")).unwrap();
        fs::write(sysfs.add("tap0", "").join("tun_flags"), "0x1002\n").unwrap();
        sysfs.add("br0", "DEVTYPE=bridge\nINTERFACE=br0\n");
        sysfs.add("veth0", "INTERFACE=veth0\n");
        fs::write(sysfs.add("odd0", "").join("type"), "776\n").unwrap();
        fs::write(eth.join("type"), "1\n").unwrap();
        sysfs.add("ifb0", "");
        sysfs.add("rwport7", "");
        sysfs.add("rwhost12", "");
        sysfs.add("elsewhere0", "");
        let dev = "Inter-|   Receive\n face |bytes\n    lo: 0 0\n  eth0: 1 2\n  tap0:1 2\n   br0: 0\n \
                   veth0: 0\n  odd0: 0\n  ifb0: 0\nrwport7: 0\nrwhost12: 0\n";
        let ask = |name: &str| match name {
            "veth0" | "rwport7" | "rwhost12" => Ok("veth".into()),
            "ifb0" => Ok("ifb".into()),
            _ => Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP)),
        };
        let look = |only| -> Vec<_> {
            let nics = nics(dev, only, &sysfs.0, ask).into_iter();
            nics.map(|nic| (nic.name, nic.driver, nic.rx_queues)).collect()
        };
        let without: Vec<_> = nics(dev, None, &sysfs.0, ask)
            .into_iter()
            .filter(|nic| !nic.has_headers)
            .map(|nic| nic.name)
            .collect();
        assert_eq!(without, ["odd0"]);
        let found = look(None);
        let wanted = [
            ("br0", "bridge"),
            ("eth0", "igc"),
            ("odd0", "virtual"),
            ("tap0", "tun"),
            ("veth0", "veth"),
        ];
        let wanted = wanted.map(|(name, driver)| (name.to_string(), driver.to_string(), 2));
        assert_eq!(found, wanted);
        assert_eq!(look(Some("eth0")), [wanted[1].clone()]);
        for named in ["lo", "ifb0", "rwport7"] {
            assert_eq!(look(Some(named)).len(), 1, "{named}");
        }
        assert_eq!(look(Some("elsewhere0")), []);
    }

    #[test]
    fn looking_twice_finds_the_same() {
        let (one, two) = (Host::look(None), Host::look(None));
        assert_eq!((one.kernel, one.nics), (two.kernel, two.nics));
    }
}
