//! Questions to the kernel about interfaces. Nothing is changed by them.

pub use ringway_live_capture::driver;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use std::ffi::CStr;
use std::io;
use std::os::fd::AsRawFd;

/// A request about the interface of that name, or about one to be made. Longer names than interfaces have
/// are refused.
pub(super) fn named(interface: &str) -> io::Result<libc::ifreq> {
    // SAFETY: an ifreq is made of numbers and addresses that may be null: zeros are a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays zero.
    if interface.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(request)
}

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
        // SAFETY: the list ends with an entry without a name, behind which the loop does not look, and
        // is freed below; the entry is copied.
        let entry = unsafe { list.add(i).read() };
        if entry.if_name.is_null() {
            break;
        }
        // SAFETY: a string of the list's, which ends with a zero.
        let name = unsafe { CStr::from_ptr(entry.if_name) };
        if name.to_bytes() == interface.as_bytes() {
            found = Some(entry.if_index);
        }
    }
    // SAFETY: the list made above, freed once, and what was found in it is a number.
    unsafe { libc::if_freenameindex(list) };
    found.ok_or_else(|| io::Error::from_raw_os_error(libc::ENODEV))
}

/// Whether the interface of this thread's network namespace is up (`ip link set NAME up`).
pub fn is_up(interface: &str) -> io::Result<bool> {
    Ok(flags(interface)? & libc::IFF_UP != 0)
}

/// Whether it is up and has a link (`NO-CARRIER` is not what ip-link(8) shows of it).
pub fn has_link(interface: &str) -> io::Result<bool> {
    let both = libc::IFF_UP | libc::IFF_RUNNING;
    Ok(flags(interface)? & both == both)
}

fn flags(interface: &str) -> io::Result<libc::c_int> {
    let mut request = request(interface)?;
    // SAFETY: the kernel writes the flags, which are in the request itself.
    unsafe { ask(libc::SIOCGIFFLAGS, &mut request)? };
    // SAFETY: any bits are a value of the flags' type, and the request was all zeros to begin with.
    let flags = unsafe { request.ifr_ifru.ifru_flags };
    Ok(libc::c_int::from(flags))
}

/// `struct ethtool_channels`: a command, and then numbers: the most there can be, and those there
/// are, of channels that receive, send, do other things, and do both.
#[repr(C)]
struct Channels {
    command: u32,
    most: [u32; 4],
    rx: u32,
    tx: u32,
    other: u32,
    combined: u32,
}

const _: () = assert!(size_of::<Channels>() == 36);

const ETHTOOL_GCHANNELS: u32 = 0x3c;

/// How many queues an interface receives by, as `ethtool -l` shows it. EOPNOTSUPP: its driver has
/// but one, or does not tell.
pub fn rx_queues(interface: &str) -> io::Result<u32> {
    let mut channels =
        Channels { command: ETHTOOL_GCHANNELS, most: [0; 4], rx: 0, tx: 0, other: 0, combined: 0 };
    let mut request = request(interface)?;
    request.ifr_ifru.ifru_data = (&raw mut channels).cast();
    // SAFETY: the data is `channels`, alive and exclusively ours: of the layout and size that the
    // command in it stands for.
    unsafe { ask(libc::SIOCETHTOOL, &mut request)? };
    Ok(channels.rx.saturating_add(channels.combined))
}

/// A question about the interface of that name, which there is.
fn request(interface: &str) -> io::Result<libc::ifreq> {
    index_of(interface)?;
    named(interface)
}

/// # Safety
/// Where `what` reads or writes what the request's data points to, the data is a structure of that layout.
unsafe fn ask(what: libc::Ioctl, request: &mut libc::ifreq) -> io::Result<()> {
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    // SAFETY: the kernel reads and writes the request, alive during the call, and what its data points to,
    // for which the caller stands.
    match unsafe { libc::ioctl(socket.as_raw_fd(), what, &raw mut *request) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
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
