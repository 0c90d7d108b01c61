//! VLAN tags beside frames, as an 802.1Q device leaves them to hardware: what the kernel knows of a frame,
//! and its data does not say.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use crate::Netns;

/// A program at an interface's egress that gives frames a tag; dropping it ends that.
pub struct Tagging {
    link: OwnedFd,
}

impl Drop for Tagging {
    fn drop(&mut self) {
        // To close the link is not enough: a process that another test is just starting has a copy of it until
        // it executes its program.
        let mut attr = [self.link.as_raw_fd() as u32];
        // SAFETY: the command takes no addresses.
        if let Err(e) = unsafe { command(BPF_LINK_DETACH, &mut attr) } {
            eprintln!("tags go on: {e}");
        }
    }
}

impl Netns {
    /// Gives every frame that the stack or a packet socket sends through `interface` from now on a tag
    /// of this kind (0x8100 or 0x88a8) and value, outside those that it has.
    ///
    /// What AF_XDP sockets send does not come by.
    pub fn tag(&self, interface: &str, kind: u16, value: u16) -> Tagging {
        let ifindex = self.ifindex(interface);
        let attach = || attach(&load(kind, value)?, ifindex);
        let link = self.enter(attach);
        Tagging { link: link.unwrap_or_else(|e| panic!("{interface}: no tags: {e}")) }
    }

    /// The number of an interface here.
    pub fn ifindex(&self, interface: &str) -> u32 {
        let name = CString::new(interface).expect("no zeros in a name");
        // SAFETY: a C string.
        match self.enter(|| unsafe { libc::if_nametoindex(name.as_ptr()) }) {
            0 => panic!("there is no interface {interface}"),
            number => number,
        }
    }
}

const BPF_PROG_LOAD: libc::c_long = 5;
const BPF_LINK_CREATE: libc::c_long = 28;
const BPF_LINK_DETACH: libc::c_long = 34;
const BPF_PROG_TYPE_SCHED_CLS: u32 = 3;
const BPF_TCX_EGRESS: u32 = 47;
/// Before all others.
const BPF_F_BEFORE: u32 = 1 << 3;

/// `bpf_skb_vlan_push(skb, kind, value); return TCX_NEXT;`
fn load(kind: u16, value: u16) -> io::Result<OwnedFd> {
    const VLAN_PUSH: i32 = 18;
    const TCX_NEXT: i32 = -1;
    // Code and registers, and what they work with.
    let program = [
        (0x02b7, i32::from(kind.to_be())),
        (0x03b7, i32::from(value)),
        (0x0085, VLAN_PUSH),
        (0x00b7, TCX_NEXT),
        (0x0095, 0),
    ]
    .map(|(insn, immediate): (u32, i32)| [insn, immediate as u32]);
    let mut attr = [0; 18];
    (attr[0], attr[1]) = (BPF_PROG_TYPE_SCHED_CLS, program.len() as u32);
    attr[2..4].copy_from_slice(&halves(program.as_ptr() as u64));
    attr[4..6].copy_from_slice(&halves(c"Dual BSD/GPL".as_ptr() as u64));
    attr[17] = BPF_TCX_EGRESS;
    // SAFETY: the addresses are those of the program, with its length beside it, and of a C string,
    // both alive during the call.
    unsafe { bpf(BPF_PROG_LOAD, &mut attr) }
}

fn attach(program: &OwnedFd, ifindex: u32) -> io::Result<OwnedFd> {
    let mut attr = [program.as_raw_fd() as u32, ifindex, BPF_TCX_EGRESS, BPF_F_BEFORE];
    // SAFETY: the command takes no addresses.
    unsafe { bpf(BPF_LINK_CREATE, &mut attr) }
}

fn halves(address: u64) -> [u32; 2] {
    [address as u32, (address >> 32) as u32]
}

/// A command of `bpf(2)` that makes a descriptor.
///
/// # Safety
/// Addresses that `attr` carries must be valid for what `code` does with them.
unsafe fn bpf(code: libc::c_long, attr: &mut [u32]) -> io::Result<OwnedFd> {
    // SAFETY: the caller's promise.
    let fd = unsafe { command(code, attr) }?;
    // SAFETY: a new descriptor that nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A command of `bpf(2)`.
///
/// # Safety
/// As [`bpf`].
unsafe fn command(code: libc::c_long, attr: &mut [u32]) -> io::Result<i32> {
    // SAFETY: the kernel reads `attr`, of the length given; addresses within are the caller's promise.
    match unsafe { libc::syscall(libc::SYS_bpf, code, attr.as_mut_ptr(), size_of_val(attr)) } {
        result if result < 0 => Err(io::Error::last_os_error()),
        result => Ok(result as i32),
    }
}
