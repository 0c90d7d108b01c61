//! The unsafe code of this crate: system calls that have no safe interface, and the constants that libc lacks.
#![allow(unsafe_code)]
#![expect(
    clippy::indexing_slicing,
    reason = "fields of `union bpf_attr`, which lie within arrays of this size; counts that the kernel gives are bounded"
)]

pub mod ethtool;
pub mod flow_rules;
pub mod netdevice;

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use ringway_filter::Ebpf;
use ringway_region::collapse;
use ringway_xdp::FrameMemory;
use rustix::mm::{Advice, madvise};
use rustix::thread::{UnshareFlags, unshare_unsafe};

/// `BPF_LINK_CREATE` flags: which hook of the interface.
pub const XDP_FLAGS_UPDATE_IF_NOEXIST: u32 = 1 << 0;
pub const XDP_FLAGS_SKB_MODE: u32 = 1 << 1;
pub const XDP_FLAGS_DRV_MODE: u32 = 1 << 2;
/// Of a program: it takes frames of several buffers.
pub const BPF_F_XDP_HAS_FRAGS: u32 = 1 << 5;
/// Of a program: it is for one interface, and may call its driver's functions.
pub const BPF_F_XDP_DEV_BOUND_ONLY: u32 = 1 << 6;

const BPF_MAP_CREATE: libc::c_long = 0;
const BPF_MAP_LOOKUP_ELEM: libc::c_long = 1;
const BPF_MAP_UPDATE_ELEM: libc::c_long = 2;
const BPF_MAP_DELETE_ELEM: libc::c_long = 3;
const BPF_PROG_LOAD: libc::c_long = 5;
const BPF_PROG_GET_FD_BY_ID: libc::c_long = 13;
const BPF_MAP_GET_FD_BY_ID: libc::c_long = 14;
const BPF_OBJ_GET_INFO_BY_FD: libc::c_long = 15;
const BPF_PROG_QUERY: libc::c_long = 16;
const BPF_LINK_CREATE: libc::c_long = 28;
const BPF_LINK_UPDATE: libc::c_long = 29;
const BPF_LINK_DETACH: libc::c_long = 34;
const BPF_XDP: u32 = 37;
const BPF_PROG_TYPE_SCHED_CLS: u32 = 3;
const BPF_PROG_TYPE_XDP: u32 = 6;
const BPF_MAP_TYPE_ARRAY: u32 = 2;
const BPF_MAP_TYPE_PROG_ARRAY: u32 = 3;
const BPF_MAP_TYPE_PERCPU_ARRAY: u32 = 6;
const BPF_F_MMAPABLE: u32 = 1 << 10;

/// Attach types of a program beside the traffic control of an interface.
pub const BPF_TCX_INGRESS: u32 = 46;
pub const BPF_TCX_EGRESS: u32 = 47;

/// What older kernels know nothing else of.
const ANY_HOOK: u32 = 0;

const XDP_MAX_TX_SKB_BUDGET: libc::c_int = 9;

/// One `bpf(2)` command. `attr` is the start of `union bpf_attr`; the kernel takes what is beyond
/// it as zero.
///
/// # Safety
/// Addresses that `attr` carries must be valid for what `command` does with them.
unsafe fn bpf<const N: usize>(command: libc::c_long, attr: &mut [u32; N]) -> io::Result<i32> {
    // SAFETY: the kernel reads `size_of_val(attr)` bytes of `attr` and writes none beyond; the
    // addresses within are the caller's promise.
    let result =
        unsafe { libc::syscall(libc::SYS_bpf, command, attr.as_mut_ptr(), size_of_val(attr)) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as i32) }
}

/// A command that makes a descriptor.
///
/// # Safety
/// As that of [`bpf`]; and the command makes a descriptor.
unsafe fn make<const N: usize>(command: libc::c_long, attr: &mut [u32; N]) -> io::Result<OwnedFd> {
    // SAFETY: the caller's promise.
    let fd = unsafe { bpf(command, attr)? };
    // SAFETY: a new descriptor, as the caller promises, that no other value owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Attaches an XDP program to an interface by a link: the program stays as long as the link's last
/// holder. `flags` is one of `XDP_FLAGS_*_MODE`.
pub fn link_create_xdp(program: BorrowedFd<'_>, ifindex: u32, flags: u32) -> io::Result<OwnedFd> {
    link_create(program, ifindex, BPF_XDP, flags, 0)
}

/// Attaches a traffic-control program to an interface by a link, as above; `hook` is one of
/// `BPF_TCX_*`. Kernel 6.6 and newer.
pub fn link_create_tcx(program: BorrowedFd<'_>, ifindex: u32, hook: u32) -> io::Result<OwnedFd> {
    link_create(program, ifindex, hook, 0, 0)
}

/// The same if the programs of the hook are still those of [`tcx_programs`] with this revision: ESTALE,
/// if others have come or gone.
pub fn link_create_tcx_at(
    program: BorrowedFd<'_>,
    ifindex: u32,
    hook: u32,
    revision: u64,
) -> io::Result<OwnedFd> {
    link_create(program, ifindex, hook, 0, revision)
}

/// `revision`: of a hook that has several programs; 0 is any.
fn link_create(
    program: BorrowedFd<'_>,
    ifindex: u32,
    hook: u32,
    flags: u32,
    revision: u64,
) -> io::Result<OwnedFd> {
    // `union bpf_attr` up to `link_create.tcx.expected_revision`.
    let mut attr = [program.as_raw_fd() as u32, ifindex, hook, flags, 0, 0, 0, 0];
    attr[6..8].copy_from_slice(&halves(revision));
    // SAFETY: the command takes no addresses, and makes a descriptor.
    unsafe { make(BPF_LINK_CREATE, &mut attr) }
}

/// Puts another program in the place of a link's, between two frames.
pub fn link_update(link: BorrowedFd<'_>, program: BorrowedFd<'_>) -> io::Result<()> {
    #[cfg(feature = "simulated")]
    if crate::simulated::is_link(link) {
        return Ok(());
    }
    let mut attr = [link.as_raw_fd() as u32, program.as_raw_fd() as u32];
    // SAFETY: the command takes no addresses.
    unsafe { bpf(BPF_LINK_UPDATE, &mut attr) }.map(drop)
}

/// Loads an XDP program. What its instructions refer to by descriptor it holds from then on.
/// `ifindex`: the interface of one that is [bound](BPF_F_XDP_DEV_BOUND_ONLY), else 0.
pub fn load_xdp(insns: &[Ebpf], name: &str, flags: u32, ifindex: u32) -> io::Result<OwnedFd> {
    load_xdp_with_log(insns, name, flags, ifindex, &mut [])
}

/// The same; the verifier writes into `log` what it thinks, and a 0 behind, where there is room.
pub fn load_xdp_with_log(
    insns: &[Ebpf],
    name: &str,
    flags: u32,
    ifindex: u32,
    log: &mut [u8],
) -> io::Result<OwnedFd> {
    load(BPF_PROG_TYPE_XDP, BPF_XDP, insns, name, flags, ifindex, log)
}

/// Loads a program for the traffic control of an interface, as above.
pub fn load_classifier(insns: &[Ebpf], name: &str) -> io::Result<OwnedFd> {
    load(BPF_PROG_TYPE_SCHED_CLS, ANY_HOOK, insns, name, 0, 0, &mut [])
}

fn load(
    kind: u32,
    hook: u32,
    insns: &[Ebpf],
    name: &str,
    flags: u32,
    ifindex: u32,
    log: &mut [u8],
) -> io::Result<OwnedFd> {
    // `union bpf_attr` up to `expected_attach_type`.
    let mut attr = [0u32; 18];
    (attr[0], attr[1]) = (kind, insns.len() as u32);
    attr[2..4].copy_from_slice(&halves(insns.as_ptr() as u64));
    attr[4..6].copy_from_slice(&halves(c"Dual BSD/GPL".as_ptr() as u64));
    if !log.is_empty() {
        const LEVEL: u32 = 1;
        (attr[6], attr[7]) = (LEVEL, log.len() as u32);
        attr[8..10].copy_from_slice(&halves(log.as_mut_ptr() as u64));
    }
    attr[11] = flags;
    for (word, bytes) in
        attr[12..16].iter_mut().zip(name.as_bytes()[..name.len().min(15)].chunks(4))
    {
        let mut whole = [0; 4];
        whole[..bytes.len()].copy_from_slice(bytes);
        *word = u32::from_ne_bytes(whole);
    }
    (attr[16], attr[17]) = (ifindex, hook);
    // SAFETY: the addresses are those of `insns`, with its length beside it, of a C string, and of `log`,
    // of which the kernel writes as many bytes at most as it is told beside it; all are alive during the call.
    // The command makes a descriptor.
    unsafe { make(BPF_PROG_LOAD, &mut attr) }
}

/// Sets an entry of a map whose keys are words. EINVAL if its values are of another size.
pub fn map_update(map: BorrowedFd<'_>, key: u32, value: &[u8]) -> io::Result<()> {
    if map_sizes(map)? != [size_of_val(&key), value.len()] {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // `union bpf_attr` up to `flags`.
    let mut attr = [0u32; 8];
    attr[0] = map.as_raw_fd() as u32;
    attr[2..4].copy_from_slice(&halves(&raw const key as u64));
    attr[4..6].copy_from_slice(&halves(value.as_ptr() as u64));
    // SAFETY: the kernel reads a key and a value of the sizes that the map has, which are theirs, and both
    // outlive the call.
    unsafe { bpf(BPF_MAP_UPDATE_ELEM, &mut attr) }.map(drop)
}

/// Reads an entry of a map whose keys are words and whose values are counters. EINVAL if they are of another size.
pub fn map_count(map: BorrowedFd<'_>, key: u32) -> io::Result<u64> {
    let mut count = 0u64;
    if map_sizes(map)? != [size_of_val(&key), size_of_val(&count)] {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut attr = [0u32; 6];
    attr[0] = map.as_raw_fd() as u32;
    attr[2..4].copy_from_slice(&halves(&raw const key as u64));
    attr[4..6].copy_from_slice(&halves(&raw mut count as u64));
    // SAFETY: the kernel reads a key and writes a value of the sizes that the map has, which are theirs; both outlive the
    // call.
    unsafe { bpf(BPF_MAP_LOOKUP_ELEM, &mut attr)? };
    Ok(count)
}

/// Removes such an entry.
pub fn map_delete(map: BorrowedFd<'_>, key: u32) -> io::Result<()> {
    if map_sizes(map)?[0] != size_of_val(&key) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut attr = [0u32; 4];
    attr[0] = map.as_raw_fd() as u32;
    attr[2..4].copy_from_slice(&halves(&raw const key as u64));
    // SAFETY: the kernel reads a key of the size that the map has, which outlives the call.
    unsafe { bpf(BPF_MAP_DELETE_ELEM, &mut attr) }.map(drop)
}

/// A map of one program, which other programs call. The kernel empties it when its last descriptor is closed,
/// even while programs refer to it.
pub fn program_array() -> io::Result<OwnedFd> {
    let size = size_of::<u32>() as u32;
    // SAFETY: the command takes no addresses, and makes a descriptor.
    unsafe { make(BPF_MAP_CREATE, &mut [BPF_MAP_TYPE_PROG_ARRAY, size, size, 1]) }
}

/// Whether such a map, by the kernel's id of it, is empty. ENOENT: there is no such map; needs CAP_SYS_ADMIN.
pub fn is_empty_slot(map: u32) -> io::Result<bool> {
    // SAFETY: the command takes no addresses, and makes a descriptor.
    let map = unsafe { make(BPF_MAP_GET_FD_BY_ID, &mut [map, 0, 0])? };
    if map_sizes(map.as_fd())? != [size_of::<u32>(); 2] {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let (key, mut program) = (0u32, 0u32);
    let mut attr = [0u32; 6];
    attr[0] = map.as_raw_fd() as u32;
    attr[2..4].copy_from_slice(&halves(&raw const key as u64));
    attr[4..6].copy_from_slice(&halves(&raw mut program as u64));
    // SAFETY: the kernel reads a key and writes a value of the sizes that the map has, which are theirs; both outlive the
    // call.
    match unsafe { bpf(BPF_MAP_LOOKUP_ELEM, &mut attr) } {
        Ok(_) => Ok(false),
        Err(e) if e.raw_os_error() == Some(libc::ENOENT) => Ok(true),
        Err(e) => Err(e),
    }
}

/// The ids of the maps that a program uses, by the kernel's id of it; four at most. ENOENT: there is no such
/// program; needs CAP_SYS_ADMIN.
pub fn maps_of_program(id: u32) -> io::Result<Vec<u32>> {
    // SAFETY: the command takes no addresses, and makes a descriptor.
    let program = unsafe { make(BPF_PROG_GET_FD_BY_ID, &mut [id, 0, 0])? };
    let mut ids = [0u32; 4];
    // `struct bpf_prog_info` up to `map_ids`.
    let mut info = [0u32; 16];
    const COUNT: usize = 13;
    info[COUNT] = ids.len() as u32;
    info[COUNT + 1..].copy_from_slice(&halves(ids.as_mut_ptr() as u64));
    let mut attr = [program.as_raw_fd() as u32, size_of_val(&info) as u32, 0, 0];
    attr[2..].copy_from_slice(&halves(info.as_mut_ptr() as u64));
    // SAFETY: the kernel writes at most the given length to `info`, and as many words at most to `ids` as `info`
    // says; both outlive the call. The other buffers that `info` could name have length 0.
    unsafe { bpf(BPF_OBJ_GET_INFO_BY_FD, &mut attr)? };
    Ok(ids[..ids.len().min(info[COUNT] as usize)].into())
}

/// The kernel's id of the program that a link attaches.
pub fn link_program(link: BorrowedFd<'_>) -> io::Result<u32> {
    // `struct bpf_link_info` up to `prog_id`.
    let mut info = [0u32; 3];
    let address = info.as_mut_ptr() as u64;
    let mut attr = [link.as_raw_fd() as u32, size_of_val(&info) as u32, 0, 0];
    attr[2..].copy_from_slice(&halves(address));
    // SAFETY: the kernel writes at most the given length to `info`, which outlives the call.
    unsafe { bpf(BPF_OBJ_GET_INFO_BY_FD, &mut attr)? };
    Ok(info[2])
}

/// The bytes of a map's keys, and of its values.
fn map_sizes(map: BorrowedFd<'_>) -> io::Result<[usize; 2]> {
    // `struct bpf_map_info` up to `value_size`.
    let mut info = [0u32; 4];
    let address = info.as_mut_ptr() as u64;
    let mut attr = [map.as_raw_fd() as u32, size_of_val(&info) as u32, 0, 0];
    attr[2..].copy_from_slice(&halves(address));
    // SAFETY: the kernel writes at most the given length to `info`, which outlives the call.
    unsafe { bpf(BPF_OBJ_GET_INFO_BY_FD, &mut attr)? };
    Ok([info[2] as usize, info[3] as usize])
}

/// A map of so many numbers, zeroed.
pub fn array(entries: u32) -> io::Result<OwnedFd> {
    let size = size_of::<u32>() as u32;
    // SAFETY: the command takes no addresses, and makes a descriptor.
    unsafe { make(BPF_MAP_CREATE, &mut [BPF_MAP_TYPE_ARRAY, size, size, entries]) }
}

/// A map of so many values of `bytes` bytes, zeroed.
#[cfg(feature = "simulated")]
pub fn array_of(bytes: u32, entries: u32) -> io::Result<OwnedFd> {
    let key = size_of::<u32>() as u32;
    // SAFETY: the command takes no addresses, and makes a descriptor.
    unsafe { make(BPF_MAP_CREATE, &mut [BPF_MAP_TYPE_ARRAY, key, bytes, entries]) }
}

/// A map of one value of `bytes` bytes for each CPU, zeroed.
pub fn percpu_array(bytes: u32) -> io::Result<OwnedFd> {
    let key = size_of::<u32>() as u32;
    // SAFETY: the command takes no addresses, and makes a descriptor.
    unsafe { make(BPF_MAP_CREATE, &mut [BPF_MAP_TYPE_PERCPU_ARRAY, key, bytes, 1]) }
}

/// A map of one word, 0, that a process without privileges can map and set. Kernel 5.5.
pub fn shared_word() -> io::Result<OwnedFd> {
    let size = size_of::<u32>() as u32;
    // SAFETY: the command takes no addresses, and makes a descriptor.
    unsafe { make(BPF_MAP_CREATE, &mut [BPF_MAP_TYPE_ARRAY, size, size, 1, BPF_F_MMAPABLE]) }
}

/// The value of a map of [one for each CPU](percpu_array) for each CPU that there could be; `N` words make the value. EINVAL if the map's
/// values are of another size.
pub fn percpu_value<const N: usize>(map: BorrowedFd<'_>) -> io::Result<Vec<[u64; N]>> {
    if map_sizes(map)? != [size_of::<u32>(), size_of::<[u64; N]>()] {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let cpus = aya::util::nr_cpus().map_err(|(_, e)| e)?;
    let mut values = vec![[0; N]; cpus];
    let key = 0u32;
    let mut attr = [0u32; 6];
    attr[0] = map.as_raw_fd() as u32;
    attr[2..4].copy_from_slice(&halves(&raw const key as u64));
    attr[4..6].copy_from_slice(&halves(values.as_mut_ptr() as u64));
    // SAFETY: the key is `key`, of the map's size; the kernel writes at most one value for each possible
    // CPU, of the map's 8 N bytes, to `values`, which has as many, alive during the call.
    unsafe { bpf(BPF_MAP_LOOKUP_ELEM, &mut attr) }.map(|_| values)
}

/// Bytes that cannot be guessed.
pub fn random() -> io::Result<[u8; 16]> {
    let mut bytes = [0u8; 16];
    // SAFETY: the kernel writes at most the given length to `bytes`, alive during the call.
    match unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) } {
        // So few come at once, or none.
        16 => Ok(bytes),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Detaches the program of a link, even if other processes hold it.
pub fn link_detach(link: BorrowedFd<'_>) -> io::Result<()> {
    #[cfg(feature = "simulated")]
    if crate::simulated::is_link(link) {
        return crate::simulated::detach(link);
    }
    // SAFETY: the command takes no addresses.
    unsafe { bpf(BPF_LINK_DETACH, &mut [link.as_raw_fd() as u32]) }.map(drop)
}

/// The name of a loaded BPF program (15 bytes at most). Needs CAP_SYS_ADMIN.
pub fn program_name(id: u32) -> io::Result<String> {
    // SAFETY: the command takes no addresses, and makes a descriptor.
    let program = unsafe { make(BPF_PROG_GET_FD_BY_ID, &mut [id, 0, 0])? };
    // `struct bpf_prog_info` up to `name`, which ends at byte 80.
    let mut info = [0u8; 80];
    let address = info.as_mut_ptr() as u64;
    let mut attr = [program.as_raw_fd() as u32, size_of_val(&info) as u32, 0, 0];
    attr[2..].copy_from_slice(&halves(address));
    // SAFETY: the kernel writes at most the given length to `info`, which outlives the call. The
    // other buffers that the zeroed info could name have length 0.
    unsafe { bpf(BPF_OBJ_GET_INFO_BY_FD, &mut attr)? };
    let name = info[64..80].split(|&byte| byte == 0).next().unwrap_or_default();
    Ok(String::from_utf8_lossy(name).into_owned())
}

/// The instructions of a program that the verifier looked at; where the kernel does not tell (before
/// 5.16), those that it has.
pub fn verified_insns(program: BorrowedFd<'_>) -> io::Result<u32> {
    // `struct bpf_prog_info` up to `verified_insns`; an older kernel writes less of it.
    let mut info = [0u32; 55];
    let address = info.as_mut_ptr() as u64;
    let mut attr = [program.as_raw_fd() as u32, size_of_val(&info) as u32, 0, 0];
    attr[2..].copy_from_slice(&halves(address));
    // SAFETY: the kernel writes at most the given length to `info`, which outlives the call. The
    // other buffers that the zeroed info could name have length 0.
    unsafe { bpf(BPF_OBJ_GET_INFO_BY_FD, &mut attr)? };
    const XLATED_PROG_LEN: usize = 5;
    Ok(if info[54] > 0 { info[54] } else { info[XLATED_PROG_LEN] / 8 })
}

/// The ids of the programs beside the traffic control of an interface, and the revision of this list;
/// `hook` is one of `BPF_TCX_*`. ENOSPC if there are more than 64, which is as many as the kernel allows. Kernel 6.6 and newer.
pub fn tcx_programs(ifindex: u32, hook: u32) -> io::Result<(Vec<u32>, u64)> {
    let mut ids = [0u32; 64];
    // `union bpf_attr` up to `query.revision`.
    let mut attr = [0u32; 16];
    (attr[0], attr[1]) = (ifindex, hook);
    attr[4..6].copy_from_slice(&halves(ids.as_mut_ptr() as u64));
    attr[6] = ids.len() as u32;
    // SAFETY: the kernel writes at most the given number of words to `ids`, which outlives the call;
    // what else it writes lies within `attr`.
    unsafe { bpf(BPF_PROG_QUERY, &mut attr)? };
    let revision = whole([attr[14], attr[15]]);
    Ok((ids[..ids.len().min(attr[6] as usize)].into(), revision))
}

/// What [`halves`] took apart.
pub fn whole([first, second]: [u32; 2]) -> u64 {
    let ([a, b, c, d], [e, f, g, h]) = (first.to_ne_bytes(), second.to_ne_bytes());
    u64::from_ne_bytes([a, b, c, d, e, f, g, h])
}

fn halves(address: u64) -> [u32; 2] {
    let bytes = address.to_ne_bytes();
    [0, 4].map(|at| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]))
}

/// Bytes that get their pages at once.
const SLICE: usize = 2 << 20;

/// Makes sure that the pages are there. The kernel would do so when it pins them, and holds the process's
/// memory map for as long as that takes: no other thread could map or unmap anything meanwhile.
pub fn populate(memory: FrameMemory<'_>) {
    let memory = memory.bytes();
    collapse(memory);
    for start in (0..memory.len()).step_by(SLICE) {
        let slice = memory.as_ptr().cast::<u8>().wrapping_add(start).cast();
        let length = SLICE.min(memory.len() - start);
        // SAFETY: the slice lies within the memory, which is mapped for reading and writing during the call;
        // what it holds stays as it is.
        if unsafe { madvise(slice, length, Advice::LinuxPopulateWrite) }.is_err() {
            // Kernels older than 5.14 cannot; where there is no memory, pinning says so.
            return;
        }
    }
}

/// Lets one kick send up to `frames` frames in copy mode (32 by default; kernel 6.17 and newer).
pub fn set_tx_budget(socket: BorrowedFd<'_>, frames: u32) -> io::Result<()> {
    set_option(socket, libc::SOL_XDP, XDP_MAX_TX_SKB_BUDGET, frames)
}

/// Has the answers of a netlink socket say in words why a request is refused, behind the header of the request
/// alone.
pub fn ask_for_words(socket: BorrowedFd<'_>) -> io::Result<()> {
    set_option(socket, libc::SOL_NETLINK, libc::NETLINK_CAP_ACK, 1)?;
    set_option(socket, libc::SOL_NETLINK, libc::NETLINK_EXT_ACK, 1)
}

fn set_option(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: u32,
) -> io::Result<()> {
    // SAFETY: the option's value is the four bytes of `value`, alive during the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of::<u32>() as libc::socklen_t,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Moves the calling thread into a network namespace of its own.
pub fn leave_netns() -> rustix::io::Result<()> {
    // SAFETY: what other code could count on is the table of descriptors and the file system of the
    // thread; both stay shared with the process's other threads.
    unsafe { unshare_unsafe(UnshareFlags::NEWNET) }
}

/// `SIOCGSKNS`: a descriptor of a socket's network namespace.
const SIOCGSKNS: libc::Ioctl = 0x894c;

/// A new descriptor of the network namespace of `socket`, which is a socket: the caller has looked.
pub fn netns_of(socket: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    // SAFETY: the request takes no argument, and changes nothing.
    match unsafe { libc::ioctl(socket.as_raw_fd(), SIOCGSKNS) } {
        fd if fd < 0 => Err(io::Error::last_os_error()),
        // SAFETY: it is a socket, by which the kernel answers itself: with a descriptor that it has just
        // made, and no other value owns.
        fd => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
    }
}

/// `SO_NETNS_COOKIE`.
const SO_NETNS_COOKIE: libc::c_int = 71;

/// What the kernel calls the network namespace of a socket.
pub fn netns_cookie(socket: BorrowedFd<'_>) -> io::Result<u64> {
    let mut cookie = 0u64;
    let mut len = size_of_val(&cookie) as libc::socklen_t;
    let value = std::ptr::from_mut(&mut cookie).cast();
    // SAFETY: the kernel writes at most `len` bytes, the size of `cookie`, and the new length to `len`;
    // both live until the call returns.
    let result = unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, SO_NETNS_COOKIE, value, &mut len)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(cookie) }
}
