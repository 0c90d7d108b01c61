//! Descriptors that a broker may have: what it was answered with, and what clients send it.

use std::{fs::File, os::fd::OwnedFd};

use rustix::{
    fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create},
    net::{AddressFamily, SocketFlags, SocketType, socket_with, socketpair},
    pipe::pipe,
};

/// Numbers from here on stand for what answers brought.
pub const GRANTED: u8 = 64;

fn memfd(length: u64, seals: SealFlags) -> OwnedFd {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let memfd = memfd_create("fuzz", flags).expect("there is memory");
    ftruncate(&memfd, length).expect("it is new");
    fcntl_add_seals(&memfd, seals).expect("it takes seals");
    memfd
}

fn socket(family: AddressFamily, kind: SocketType) -> OwnedFd {
    socket_with(family, kind, SocketFlags::CLOEXEC, None).expect("there are sockets")
}

fn open(path: &str) -> OwnedFd {
    File::open(path).expect("it is always there").into()
}

/// A descriptor of that kind; `granted` are those of the answers.
pub fn descriptor(kind: u8, granted: &[OwnedFd]) -> OwnedFd {
    let sealed = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
    match kind {
        0 => memfd(1 << 16, sealed),
        1 => memfd(1 << 20, sealed),
        2 => memfd(1 << 16, SealFlags::empty()),
        3 => memfd(0, sealed),
        4 => open("/proc/thread-self/ns/net"),
        5 => open("/proc/self/ns/mnt"),
        6 => socket(AddressFamily::UNIX, SocketType::STREAM),
        7 => socket(AddressFamily::INET, SocketType::DGRAM),
        8 => {
            let flags = SocketFlags::CLOEXEC;
            let pair = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None);
            pair.expect("there are sockets").0
        }
        9 => pipe().expect("there are pipes").0,
        10 => open("/"),
        GRANTED.. => {
            let place = usize::from(kind - GRANTED).checked_rem(granted.len());
            let fd = place.and_then(|place| granted.get(place));
            fd.map_or_else(
                || open("/dev/null"),
                |fd| fd.try_clone().expect("there are descriptors"),
            )
        }
        _ => open("/dev/null"),
    }
}
