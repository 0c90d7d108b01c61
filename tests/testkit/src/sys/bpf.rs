//! Commands of `bpf(2)`.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const BPF_PROG_LOAD: libc::c_long = 5;
const BPF_PROG_GET_NEXT_ID: libc::c_long = 11;
const BPF_PROG_QUERY: libc::c_long = 16;
const BPF_LINK_CREATE: libc::c_long = 28;
const BPF_LINK_GET_NEXT_ID: libc::c_long = 31;
const BPF_LINK_DETACH: libc::c_long = 34;

const BPF_PROG_TYPE_SCHED_CLS: u32 = 3;
const BPF_TCX_INGRESS: u32 = 46;
const BPF_TCX_EGRESS: u32 = 47;
/// Before all others.
const BPF_F_BEFORE: u32 = 1 << 3;

/// One command, with the beginning of its `union bpf_attr`.
///
/// # Safety
/// Addresses that `attr` carries must be valid for what `command` does with them.
unsafe fn bpf(command: libc::c_long, attr: &mut [u32]) -> io::Result<i32> {
    // SAFETY: the kernel reads and writes `attr`, of the length given; addresses within are the caller's
    // promise.
    let result =
        unsafe { libc::syscall(libc::SYS_bpf, command, attr.as_mut_ptr(), size_of_val(attr)) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as i32) }
}

/// A command that makes a descriptor.
///
/// # Safety
/// As that of [`bpf`]; and the command makes a descriptor.
unsafe fn make(command: libc::c_long, attr: &mut [u32]) -> io::Result<OwnedFd> {
    // SAFETY: the caller's promise.
    let fd = unsafe { bpf(command, attr)? };
    // SAFETY: a new descriptor, as the caller promises, that no other value owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn halves(address: u64) -> [u32; 2] {
    [address as u32, (address >> 32) as u32]
}

/// What there is of BPF on a machine.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Program,
    Link,
}

/// The next object of a kind, in the order of the kernel: by id.
pub fn next_id(kind: Kind, after: u32) -> Option<u32> {
    let command = match kind {
        Kind::Program => BPF_PROG_GET_NEXT_ID,
        Kind::Link => BPF_LINK_GET_NEXT_ID,
    };
    // start_id, next_id, open_flags.
    let mut attr = [after, 0, 0];
    // SAFETY: the commands take no address.
    unsafe { bpf(command, &mut attr) }.ok().map(|_| attr[1])
}

/// The programs at a hook of the traffic control of an interface; none where the kernel has no such hooks.
pub fn programs_at(ifindex: u32, hook: u32) -> Vec<u32> {
    let mut ids = [0u32; 64];
    // target_ifindex, attach_type, query_flags, attach_flags, prog_ids, count, and more that is not used.
    let mut attr = [0; 16];
    (attr[0], attr[1]) = (ifindex, hook);
    attr[4..6].copy_from_slice(&halves(ids.as_mut_ptr() as u64));
    attr[6] = ids.len() as u32;
    // SAFETY: the address is that of `ids`, alive during the call, with its length beside it.
    let count = unsafe { bpf(BPF_PROG_QUERY, &mut attr) }.map_or(0, |_| attr[6]);
    ids.into_iter().take(count as usize).collect()
}

/// A program for the traffic control that gives frames a VLAN tag, or takes it.
pub struct Tagger {
    program: OwnedFd,
    hook: u32,
}

/// An instruction: its code and registers, and what they work with.
type Instruction = (u32, i32);

impl Tagger {
    /// `bpf_skb_vlan_push(skb, kind, value); return TCX_NEXT;`
    pub fn load(kind: u16, value: u16) -> io::Result<Tagger> {
        const VLAN_PUSH: i32 = 18;
        let push = [(0x02b7, i32::from(kind.to_be())), (0x03b7, i32::from(value))];
        Tagger::of(BPF_TCX_EGRESS, &[&push[..], &[(0x0085, VLAN_PUSH)]].concat())
    }

    /// `bpf_skb_vlan_pop(skb); return TCX_NEXT;`
    pub fn untagger() -> io::Result<Tagger> {
        const VLAN_POP: i32 = 19;
        Tagger::of(BPF_TCX_INGRESS, &[(0x0085, VLAN_POP)])
    }

    /// What is done at a hook, before other programs.
    fn of(hook: u32, what: &[Instruction]) -> io::Result<Tagger> {
        const TCX_NEXT: i32 = -1;
        let all = [what, &[(0x00b7, TCX_NEXT), (0x0095, 0)]].concat();
        let program: Vec<[u32; 2]> =
            all.into_iter().map(|(insn, immediate)| [insn, immediate as u32]).collect();
        let mut attr = [0; 18];
        (attr[0], attr[1]) = (BPF_PROG_TYPE_SCHED_CLS, program.len() as u32);
        attr[2..4].copy_from_slice(&halves(program.as_ptr() as u64));
        attr[4..6].copy_from_slice(&halves(c"Dual BSD/GPL".as_ptr() as u64));
        attr[17] = hook;
        // SAFETY: the addresses are those of the program, with its length beside it, and of a C string,
        // both alive during the call. The command makes a descriptor.
        let program = unsafe { make(BPF_PROG_LOAD, &mut attr) }?;
        Ok(Tagger { program, hook })
    }

    /// It sees what leaves, or comes, by an interface of the calling thread's network namespace, before all other
    /// programs, until the result is dropped.
    pub fn attach(&self, ifindex: u32) -> io::Result<OwnedFd> {
        let program = self.program.as_raw_fd() as u32;
        let mut attr = [program, ifindex, self.hook, BPF_F_BEFORE];
        // SAFETY: the command takes no addresses, and makes a descriptor.
        unsafe { make(BPF_LINK_CREATE, &mut attr) }
    }
}

/// Takes a program off what a link holds it to, whoever has the link still.
pub fn detach(link: &OwnedFd) -> io::Result<()> {
    let mut attr = [link.as_raw_fd() as u32];
    // SAFETY: the command takes no addresses.
    unsafe { bpf(BPF_LINK_DETACH, &mut attr) }.map(drop)
}
