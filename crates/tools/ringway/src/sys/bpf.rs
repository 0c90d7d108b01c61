//! Whether this program may use BPF.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

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
    // SAFETY: the kernel reads the attributes, alive during the call and of the size given. They hold no
    // address.
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
