//! What an interface is set to, by the requests of `netdevice(7)`, which wait for nobody: by its name, in the
//! network namespace of the socket that they go by.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// See above.
pub struct Status {
    /// `IFF_*`.
    pub flags: libc::c_int,
    pub mtu: u32,
}

/// What the interface `name` is set to now. A thread with CAP_NET_ADMIN may have the kernel load a module, should
/// there be none of that name.
pub fn status(socket: BorrowedFd<'_>, name: &str) -> io::Result<Status> {
    let flags = ask(socket, name, libc::SIOCGIFFLAGS)?;
    let mtu = ask(socket, name, libc::SIOCGIFMTU)?;
    // SAFETY: the kernel has written what it was asked for, and any bytes are such a number.
    let (flags, mtu) = unsafe { (flags.ifr_ifru.ifru_flags, mtu.ifr_ifru.ifru_mtu) };
    Ok(Status { flags: flags.into(), mtu: u32::try_from(mtu).unwrap_or(0) })
}

/// A request about the interface `name`.
pub(super) fn named(name: &str, ifr_ifru: libc::__c_anonymous_ifr_ifru) -> io::Result<libc::ifreq> {
    let mut ifreq = libc::ifreq { ifr_name: [0; libc::IFNAMSIZ], ifr_ifru };
    // The last byte stays 0: a longer name cannot exist.
    if name.len() >= ifreq.ifr_name.len() {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    for (to, from) in ifreq.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(ifreq)
}

fn ask(socket: BorrowedFd<'_>, name: &str, request: libc::Ioctl) -> io::Result<libc::ifreq> {
    let ifr_ifru = libc::__c_anonymous_ifr_ifru { ifru_ifindex: 0 };
    let mut ifreq = named(name, ifr_ifru)?;
    // SAFETY: the kernel reads and writes `ifreq`, whose name ends with a zero, and nothing that it points to.
    match unsafe { libc::ioctl(socket.as_raw_fd(), request, &raw mut ifreq) } {
        result if result < 0 => Err(io::Error::last_os_error()),
        _ => Ok(ifreq),
    }
}
