//! What no safe interface offers: questions to the kernel about interfaces and BPF. Nothing is left
//! changed by them.
#![allow(unsafe_code)]

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// The number of an interface of this thread's network namespace. ENODEV: there is none of that name.
///
/// By netlink, as libc asks for the list of all: a root process that asks the kernel for one by its name
/// makes it load a module for a name that it does not know.
pub fn index_of(interface: &str) -> io::Result<u32> {
    // SAFETY: the call takes nothing, and gives a list of its own or null.
    let list = unsafe { libc::if_nameindex() };
    if list.is_null() {
        return Err(io::Error::last_os_error());
    }
    let mut found = None;
    for i in 0.. {
        // SAFETY: the list ends with an entry without a name, behind which the loop does not look; the
        // names are strings that end with a zero. It is freed once, below.
        let (index, name) = unsafe {
            let entry = &*list.add(i);
            if entry.if_name.is_null() {
                break;
            }
            (entry.if_index, CStr::from_ptr(entry.if_name))
        };
        if name.to_bytes() == interface.as_bytes() {
            found = Some(index);
        }
    }
    // SAFETY: as above.
    unsafe { libc::if_freenameindex(list) };
    found.ok_or_else(|| io::Error::from_raw_os_error(libc::ENODEV))
}

/// Whether the interface of this thread's network namespace is up (`ip link set NAME up`).
pub fn is_up(interface: &str) -> io::Result<bool> {
    let mut request = request(interface)?;
    ask(libc::SIOCGIFFLAGS, &mut request)?;
    // SAFETY: the kernel has filled in the flags; any bits are a value of their type.
    let flags = unsafe { request.ifr_ifru.ifru_flags };
    Ok(libc::c_int::from(flags) & libc::IFF_UP != 0)
}

/// `struct ethtool_drvinfo`: a command, and then texts of 32 bytes, the first of them the driver's name.
#[repr(C)]
struct DriverInfo {
    command: u32,
    driver: [u8; 32],
    rest: [u8; 160],
}

const _: () = assert!(size_of::<DriverInfo>() == 196);

const ETHTOOL_GDRVINFO: u32 = 3;

/// The name of an interface's driver, as `ethtool -i` shows it.
pub fn driver(interface: &str) -> io::Result<String> {
    let mut info = DriverInfo { command: ETHTOOL_GDRVINFO, driver: [0; 32], rest: [0; 160] };
    let mut request = request(interface)?;
    request.ifr_ifru.ifru_data = (&raw mut info).cast();
    ask(libc::SIOCETHTOOL, &mut request)?;
    let name = info.driver.split(|byte| *byte == 0).next().unwrap_or_default();
    Ok(String::from_utf8_lossy(name).into_owned())
}

/// A question about the interface of that name, which there is.
fn request(interface: &str) -> io::Result<libc::ifreq> {
    index_of(interface)?;
    // SAFETY: an ifreq is plain old data, for which zero is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if interface.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(request)
}

fn ask(what: libc::Ioctl, request: &mut libc::ifreq) -> io::Result<()> {
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    // SAFETY: `request` is an initialised ifreq with a name that ends in a zero; what its data points
    // to, where `what` has some, is a structure of the size that `what` writes, alive during the call.
    match unsafe { libc::ioctl(socket.as_raw_fd(), what, &raw mut *request) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// The beginning of `union bpf_attr` for BPF_MAP_CREATE.
#[repr(C)]
struct MapAttributes {
    kind: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    flags: u32,
}

const BPF_MAP_CREATE: libc::c_long = 0;
const BPF_MAP_TYPE_XSKMAP: u32 = 17;

/// Makes a BPF map of AF_XDP sockets, as an interface's XDP program needs it, and drops it.
pub fn make_socket_map() -> io::Result<()> {
    let attributes = MapAttributes {
        kind: BPF_MAP_TYPE_XSKMAP,
        key_size: 4,
        value_size: 4,
        max_entries: 1,
        flags: 0,
    };
    // SAFETY: the kernel reads the attributes, of the size given, and nothing else of ours.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            BPF_MAP_CREATE,
            &raw const attributes,
            size_of::<MapAttributes>(),
        )
    };
    match libc::c_int::try_from(fd) {
        Ok(fd) if fd >= 0 => {
            // SAFETY: the kernel has just made this descriptor, and nothing else holds it.
            drop(unsafe { OwnedFd::from_raw_fd(fd) });
            Ok(())
        }
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_answers_about_interfaces() {
        for unknown in ["no such one", &"x".repeat(16)] {
            assert_eq!(is_up(unknown).unwrap_err().raw_os_error(), Some(libc::ENODEV));
        }
        is_up("lo").unwrap();
        assert!(driver("nosuch0").is_err());
    }
}
