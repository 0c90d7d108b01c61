//! Packets of an interface by turns: the kernel hands each to one of the members' packet sockets, which are in a group.
//!
//! A group has a number, which all users of a network namespace have in common. So the kernel chooses it, and the
//! cluster's file says which it is.

use std::{
    ffi::c_int,
    fs::File,
    os::{fd::BorrowedFd, unix::fs::FileExt},
};

use ringway_packet::socket::{get_option, set_option};

/// Where the file has the group's number; 0 before it, or 1.
const GROUP_AT: u64 = 32;
const KNOWN: u32 = 1 << 16;

/// Puts a packet socket into the group of its cluster; whether the kernel has it there. The file is locked.
pub fn take(file: &File, socket: BorrowedFd<'_>) -> bool {
    match group(file) {
        Some(group) => join(socket, group, 0),
        None => found(socket).is_some_and(|group| {
            file.write_all_at(&(KNOWN | group).to_ne_bytes(), GROUP_AT).is_ok()
        }),
    }
}

/// There is none, for a cluster that begins. The file is locked.
pub fn forget(file: &File) {
    let _ = file.write_all_at(&[0; 4], GROUP_AT);
}

fn group(file: &File) -> Option<u32> {
    let mut bytes = [0; 4];
    file.read_exact_at(&mut bytes, GROUP_AT).ok()?;
    let group = u32::from_ne_bytes(bytes);
    (group & KNOWN != 0).then_some(group & 0xffff)
}

/// A new group with this socket; its number.
fn found(socket: BorrowedFd<'_>) -> Option<u32> {
    if !join(socket, 0, libc::PACKET_FANOUT_FLAG_UNIQUEID) {
        return None;
    }
    let mut group: c_int = 0;
    get_option(socket, libc::SOL_PACKET, libc::PACKET_FANOUT, &mut group).ok()?;
    Some(group as u32 & 0xffff)
}

fn join(socket: BorrowedFd<'_>, group: u32, flags: u32) -> bool {
    let group = (group | (libc::PACKET_FANOUT_LB | flags) << 16) as c_int;
    set_option(socket, libc::SOL_PACKET, libc::PACKET_FANOUT, &group).is_ok()
}
