//! Ports by the indices of network interfaces, by which packet sockets are bound.
//!
//! A program names an interface, asks for its index, and binds to that. Ringway's own ports have indices of a range that
//! the kernel does not reach: they mean something in this process, and in the children that it forks.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::*};

use ringway::{PortSpec, ethernet_address};
use ringway_interpose::{Interface, InterfaceName};
use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice::index_to_name, socket_with};

/// The first of our indices.
const FIRST: u32 = 0x4000_0000;

/// Names that a process can have.
const MOST: usize = 4096;

/// No lock: a child of `fork` would wait for ever for a thread of its parent's that had it.
static NAMES: [Entry; MOST] = [const { Entry::new() }; MOST];
/// Entries that were taken.
static TAKEN: AtomicUsize = AtomicUsize::new(0);

/// The name that has an index. It is written once.
struct Entry {
    halves: [AtomicU64; 2],
    is_there: AtomicBool,
}

impl Entry {
    const fn new() -> Entry {
        Entry { halves: [const { AtomicU64::new(0) }; 2], is_there: AtomicBool::new(false) }
    }

    fn set(&self, name: &InterfaceName) {
        let name = u128::from_ne_bytes(*name);
        self.halves[0].store(name as u64, Relaxed);
        self.halves[1].store((name >> 64) as u64, Relaxed);
        self.is_there.store(true, Release);
    }

    fn get(&self) -> Option<InterfaceName> {
        let [low, high] = [&self.halves[0], &self.halves[1]];
        let name = || u128::from(low.load(Relaxed)) | u128::from(high.load(Relaxed)) << 64;
        self.is_there.load(Acquire).then(|| name().to_ne_bytes())
    }
}

/// The name as text. `None`: it is no port's name, and the kernel may know it.
fn port_name(name: &InterfaceName) -> Option<&str> {
    let len = name.iter().position(|byte| *byte == 0)?;
    let name = str::from_utf8(&name[..len]).ok()?;
    let has = |letters: &[char]| name.contains(letters);
    let on_switch = name.starts_with("vale") && has(&[':']);
    (on_switch || name.starts_with("netmap:") || has(&['{', '}'])).then_some(name)
}

/// The index of a port's name. `None`: it is no port's, or there are too many.
pub fn index_of(name: &InterfaceName) -> Option<u32> {
    port_name(name)?;
    let taken = TAKEN.load(Acquire).min(MOST);
    let known = NAMES[..taken].iter().position(|entry| entry.get().as_ref() == Some(name));
    // Where another thread enters the same name, it has two indices, both of which stay.
    let at = known.or_else(|| {
        let more = |taken: usize| (taken < MOST).then_some(taken + 1);
        let at = TAKEN.fetch_update(AcqRel, Relaxed, more).ok()?;
        NAMES[at].set(name);
        Some(at)
    })?;
    u32::try_from(at).ok().map(|at| FIRST + at)
}

/// What the interface of a port's name is. `None`: it is no port's.
pub fn interface(name: &InterfaceName) -> Option<Interface> {
    let name = port_name(name)?;
    let spec = PortSpec::parse(name).ok()?;
    if name.starts_with("netmap:") && !spec.name.contains(['{', '}']) {
        let mut of_kernel = InterfaceName::default();
        of_kernel.get_mut(..spec.name.len())?.copy_from_slice(spec.name.as_bytes());
        let is_monitor = spec.registration.monitor.is_asked();
        return Some(Interface::Kernels { name: of_kernel, is_monitor });
    }
    Some(Interface::Port(ethernet_address(&spec.name)))
}

/// The name that has an index of ours.
pub fn name_of(index: u32) -> Option<InterfaceName> {
    NAMES.get(index.checked_sub(FIRST)? as usize)?.get()
}

/// What an index stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// The name of a port.
    Port(String),
    /// The name of an interface of the kernel's.
    Interface(String),
}

impl Named {
    /// The name of the port.
    pub fn port(&self) -> String {
        match self {
            Named::Port(name) => name.clone(),
            Named::Interface(name) => format!("netmap:{name}"),
        }
    }
}

/// What has an index. ENODEV: there is no such interface.
pub fn named(index: u32) -> Result<Named, i32> {
    if let Some(name) = name_of(index) {
        let name = port_name(&name).map(str::to_string);
        return name.map(Named::Port).ok_or(libc::ENODEV);
    }
    let kind = (AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC);
    let socket = socket_with(kind.0, kind.1, kind.2, None).map_err(|e| e.raw_os_error())?;
    let name = index_to_name(socket, index).map_err(|_| libc::ENODEV)?;
    Ok(Named::Interface(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> InterfaceName {
        let mut name = [0; 16];
        name[..text.len()].copy_from_slice(text.as_bytes());
        name
    }

    #[test]
    fn ports_have_indices() {
        for plain in ["eth0", "eth0:1", "vale0", "lo", ""] {
            assert_eq!(index_of(&name(plain)), None, "{plain}");
        }
        let ports = ["vale0:a", "p{1", "p}1", "netmap:veth0", "vale0:a"];
        let indices = ports.map(|port| index_of(&name(port)).unwrap());
        assert_eq!(indices[0], indices[4]);
        for (port, index) in ports.iter().zip(indices) {
            assert!(index >= FIRST && name_of(index) == Some(name(port)));
            assert_eq!(named(index), Ok(Named::Port(port.to_string())));
        }
        for (port, is_monitor) in [("netmap:veth0", false), ("netmap:veth0/rt", true)] {
            let of_kernel = Interface::Kernels { name: name("veth0"), is_monitor };
            assert_eq!(interface(&name(port)), Some(of_kernel), "{port}");
        }
        for (port, other) in [("vale0:a", "vale0:b"), ("netmap:p{1", "netmap:p}1")] {
            let [port, other] = [port, other].map(|port| interface(&name(port)));
            assert!(matches!(port, Some(Interface::Port(_))) && port != other);
        }
        assert_eq!(interface(&name("vale0:a/rt")), interface(&name("vale0:a")));
        assert_eq!(interface(&name("eth0")), None);
        assert_eq!(name_of(1), None);
        assert_eq!(named(FIRST + 1000), Err(libc::ENODEV));
        assert_eq!(named(1), Ok(Named::Interface("lo".into())));
    }
}
