//! What sysfs says of an interface: programs read its address or its state in
//! `/sys/class/net/NAME`.
//!
//! A port that has the name of a kernel's interface has its files. Another has files with what the
//! hooks of `ioctl` say of it; they can be read, and not written.

use std::{
    ffi::{CStr, c_int},
    os::fd::{AsRawFd, OwnedFd},
};

use ringway_interpose::{Interface, InterfaceName, UserPath};
use rustix::{
    fs::{MemfdFlags, Mode, OFlags, fchmod, memfd_create, open},
    io::write,
};

use crate::names;

const FOLDER: &str = "/sys/class/net";

/// What stands in a port's files, but for its address and its index.
const FILES: [(&CStr, &str); 12] = [
    (c"/addr_len", "6"),
    (c"/broadcast", "ff:ff:ff:ff:ff:ff"),
    (c"/carrier", "1"),
    (c"/dev_id", "0x0"),
    (c"/dormant", "0"),
    (c"/flags", "0x1003"),
    (c"/iflink", "0"),
    (c"/mtu", "1500"),
    (c"/operstate", "up"),
    (c"/tx_queue_len", "1000"),
    (c"/type", "1"),
    (c"/uevent", ""),
];

/// The file at a path; `None` where it is the kernel's affair.
pub fn file(path: UserPath, flags: c_int) -> Option<Result<OwnedFd, c_int>> {
    let (name, interface, rest) = port(path.behind(FOLDER.as_bytes())?.behind(b"/")?)?;
    let opened = match interface {
        Interface::Kernels { name: of_kernel, .. } => {
            let rest = rest.to_str().ok()?;
            let end = of_kernel.iter().position(|byte| *byte == 0).unwrap_or(of_kernel.len());
            let of_kernel = str::from_utf8(&of_kernel[..end]).ok()?;
            let flags = OFlags::from_bits_retain(flags as u32) | OFlags::CLOEXEC;
            open(format!("{FOLDER}/{of_kernel}{rest}"), flags, Mode::empty())
        }
        // The folder itself, for programs that look whether it is there.
        Interface::Port(_) if rest.is_empty() && flags & libc::O_PATH != 0 => {
            open(FOLDER, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
        }
        // What is in it cannot be listed.
        Interface::Port(_) if rest.is_empty() => return Some(Err(libc::EACCES)),
        Interface::Port(_) if flags & libc::O_ACCMODE != libc::O_RDONLY => {
            return Some(Err(libc::EACCES));
        }
        Interface::Port(address) => match text(&name, &address, rest) {
            Some(text) => of_text(&text),
            None => return Some(Err(libc::ENOENT)),
        },
    };
    Some(opened.map_err(|errno| errno.raw_os_error()))
}

/// The name of a port that a path begins with, with the flags that follow a slash (`netmap:eth0/rt`);
/// what it is, and the path behind it.
fn port<'a>(path: UserPath) -> Option<(InterfaceName, Interface, &'a CStr)> {
    let (mut name, mut rest) = path.interface::<'a>()?;
    let mut found = names::interface(&name)?;
    // No file in sysfs has a name that is made of the letters of flags.
    while let Some((longer, behind)) = with_flags(&name, rest)
        && let Some(interface) = names::interface(&longer)
    {
        (name, found, rest) = (longer, interface, behind);
    }
    Some((name, found, rest))
}

/// A name with the next part of the path behind it, and the rest of that.
fn with_flags<'a>(name: &InterfaceName, path: &'a CStr) -> Option<(InterfaceName, &'a CStr)> {
    let part = path.to_bytes().strip_prefix(b"/")?;
    let len = 1 + part.iter().position(|byte| *byte == b'/').unwrap_or(part.len());
    let end = name.iter().position(|byte| *byte == 0)?;
    let mut longer = *name;
    // A nul stays behind it.
    let room = longer.get_mut(end..libc::IFNAMSIZ - 1)?;
    room.get_mut(..len)?.copy_from_slice(&path.to_bytes()[..len]);
    Some((longer, CStr::from_bytes_with_nul(&path.to_bytes_with_nul()[len..]).ok()?))
}

/// What stands in a file of a port's.
fn text(name: &InterfaceName, address: &[u8; 6], file: &CStr) -> Option<String> {
    if file == c"/address" {
        return Some(address.map(|byte| format!("{byte:02x}")).join(":"));
    }
    if file == c"/ifindex" {
        return names::index_of(name).map(|index| index.to_string());
    }
    FILES.iter().find(|(known, _)| *known == file).map(|(_, text)| text.to_string())
}

fn of_text(text: &str) -> rustix::io::Result<OwnedFd> {
    let memfd = memfd_create("ringway-interface", MemfdFlags::CLOEXEC)?;
    write(&memfd, format!("{text}\n").as_bytes())?;
    fchmod(&memfd, Mode::RUSR | Mode::RGRP | Mode::ROTH)?;
    let path = format!("/proc/self/fd/{}", memfd.as_raw_fd());
    open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
}
