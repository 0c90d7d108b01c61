//! `usdpaa_netcfg.h`: a program's interfaces, with the frame queues of each, and their addresses.

use std::{
    ffi::{CStr, OsStr, c_char, c_int},
    fmt::Write,
    os::{fd::AsRawFd, unix::ffi::OsStrExt},
    path::{Path, PathBuf},
    ptr,
};

use libc::{EINVAL, ENODEV};
use rustix::{
    io::Errno,
    net::{AddressFamily, SocketType},
};

use super::{
    fman::{find, fman_init, node_of},
    options::selected,
};
use crate::{
    fman::{Distributor, abi::*},
    netcfg::{self, Problem, config, policy, policy::Policy},
    ports::{CONFIG, DEFAULT_CONFIG, MacType, PORTS},
    print,
};

/// # Safety
/// The names are C strings, or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn usdpaa_netcfg_acquire(
    pcd_file: *const c_char,
    cfg_file: *const c_char,
) -> *mut usdpaa_netcfg_info {
    // SAFETY: by the caller's contract.
    let [pcd, cfg] = [pcd_file, cfg_file].map(|name| unsafe { path(name) });
    let (Some(pcd), Some(cfg)) = (pcd, cfg) else {
        print::error("usdpaa_netcfg_acquire: name two files: the policies, and the configuration");
        return ptr::null_mut();
    };
    let started = fman_init();
    if started != 0 {
        set_errno(-started);
        return ptr::null_mut();
    }
    match acquire(&pcd, &cfg) {
        Ok(ports) => allocate(&ports),
        Err(problem) => {
            print::error(&problem.to_string());
            set_errno(problem.errno.raw_os_error());
            ptr::null_mut()
        }
    }
}

fn set_errno(errno: c_int) {
    // SAFETY: it is the calling thread's own.
    unsafe { *libc::__errno_location() = errno };
}

/// # Safety
/// As for `usdpaa_netcfg_acquire`.
unsafe fn path(name: *const c_char) -> Option<PathBuf> {
    if name.is_null() {
        return None;
    }
    // SAFETY: by the caller's contract.
    let name = unsafe { CStr::from_ptr(name) };
    Some(OsStr::from_bytes(name.to_bytes()).into())
}

fn acquire(pcd: &Path, cfg: &Path) -> Result<Vec<(*mut fman_if, Policy)>, Problem> {
    let mut entries = netcfg::read(cfg, config::parse)?;
    if let Some(selected) = selected() {
        if let Some(place) =
            selected.iter().find(|place| entries.iter().all(|e| e.place != **place))
        {
            let text = format!("{place} is asked for, and is not there");
            return Err(Problem::new(Errno::NXIO, text).of(cfg));
        }
        entries.retain(|entry| selected.contains(&entry.place));
    }
    let mut ports = Vec::new();
    for entry in entries {
        let node = node_of(entry.place).ok_or_else(|| {
            let place = entry.place;
            let text = format!(
                "{place} is no port: add {place}=PORT to {PORTS}, or to the file that {CONFIG} names, or \
                 to {DEFAULT_CONFIG}"
            );
            Problem::new(Errno::NXIO, text).of(cfg)
        })?;
        let policy = netcfg::read(pcd, |root| policy::parse(root, &entry.policy))?;
        ports.push((node, policy));
    }
    if ports.is_empty() || ports.len() > u8::MAX.into() {
        let text = format!("{} ports: there have to be 1 to 255", ports.len());
        return Err(Problem::new(Errno::INVAL, text).of(cfg));
    }
    for (node, policy) in &ports {
        if let Some(interface) = find(*node) {
            interface.set_distributor(Distributor::new(policy));
        }
    }
    Ok(ports)
}

/// The structure that programs get: its own memory, and a list for each port.
fn allocate(ports: &[(*mut fman_if, Policy)]) -> *mut usdpaa_netcfg_info {
    let bytes = size_of::<usdpaa_netcfg_info>() + size_of_val(ports).max(ports.len() * PORT_CFG);
    // SAFETY: the memory has room for the header and for each port, and is aligned for either.
    unsafe {
        let info = libc::calloc(1, bytes).cast::<usdpaa_netcfg_info>();
        if info.is_null() {
            return info;
        }
        (*info).num_ethports = ports.len() as u8;
        let first = (&raw mut (*info).port_cfg).cast::<fm_eth_port_cfg>();
        for (n, (fman_if, policy)) in ports.iter().enumerate() {
            let list = ranges(&policy.ranges);
            first.add(n).write(fm_eth_port_cfg { list, rx_def: policy.default, fman_if: *fman_if });
        }
        info
    }
}

const PORT_CFG: usize = size_of::<fm_eth_port_cfg>();

fn ranges(ranges: &[(u32, u32)]) -> *mut list_head {
    let node = |(start, count): &(u32, u32)| {
        let range =
            fm_eth_port_fqrange { list: list_head::unlinked(), start: *start, count: *count };
        // The list is the first field.
        Box::into_raw(Box::new(range)).cast::<list_head>()
    };
    let head = Box::into_raw(Box::new(list_head::unlinked()));
    // SAFETY: the nodes were made just now.
    unsafe { link(head, ranges.iter().map(node).collect::<Vec<_>>()) };
    head
}

/// The nodes of a list.
///
/// # Safety
/// It is one that `ranges` has made, and nobody changes it meanwhile.
unsafe fn nodes(head: *mut list_head) -> Vec<*mut fm_eth_port_fqrange> {
    let mut found = Vec::new();
    if head.is_null() {
        return found;
    }
    // SAFETY: by the caller's contract.
    unsafe {
        let mut node = (*head).next;
        while node != head && !node.is_null() {
            found.push(node.cast());
            node = (*node).next;
        }
    }
    found
}

/// # Safety
/// `info` is NULL, or one that was acquired and not released.
unsafe fn port_cfgs<'a>(info: *mut usdpaa_netcfg_info) -> &'a [fm_eth_port_cfg] {
    if info.is_null() {
        return &[];
    }
    // SAFETY: by the caller's contract, as many follow.
    unsafe {
        let first = (&raw const (*info).port_cfg).cast::<fm_eth_port_cfg>();
        std::slice::from_raw_parts(first, (*info).num_ethports.into())
    }
}

/// # Safety
/// `info` is NULL, or one that was acquired and not released.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn usdpaa_netcfg_release(info: *mut usdpaa_netcfg_info) {
    // SAFETY: all of it was allocated by `allocate`.
    unsafe {
        for port in port_cfgs(info) {
            for node in nodes(port.list) {
                drop(Box::from_raw(node));
            }
            if !port.list.is_null() {
                drop(Box::from_raw(port.list));
            }
        }
        libc::free(info.cast());
    }
}

/// # Safety
/// `info` is NULL, or one that was acquired and not released.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dump_usdpaa_netcfg(info: *mut usdpaa_netcfg_info) {
    // SAFETY: by the caller's contract.
    let ports = unsafe { port_cfgs(info) };
    let mut text = String::from("..........  USDPAA Configuration  ..........\n\n");
    let _ = writeln!(text, "Network interfaces: {}", ports.len());
    for port in ports {
        // SAFETY: nodes of interfaces live as long as these are not finished.
        unsafe { dump(&mut text, port) };
    }
    print::text(&text);
}

/// # Safety
/// The port's interface and lists are there.
unsafe fn dump(text: &mut String, port: &fm_eth_port_cfg) {
    // SAFETY: by the caller's contract.
    let Some(interface) = (unsafe { port.fman_if.as_ref() }) else { return };
    let is_offline = interface.mac_type == MacType::Offline as c_int;
    let kind = match interface.mac_type {
        kind if kind == MacType::TenGigabit as c_int => "10G",
        _ if is_offline => "OFFLINE",
        _ => "1G",
    };
    let (fman, mac) = (interface.fman_idx, interface.mac_idx);
    let _ = writeln!(text, "\n+ Fman {fman}, MAC {mac} ({kind});");
    if !is_offline {
        let octets = interface.mac_addr.octets.map(|octet| format!("{octet:02x}"));
        let _ = writeln!(text, "\tmac_addr: {}", octets.join(":"));
    }
    let _ = writeln!(text, "\ttx_channel_id: {:#04x}", interface.tx_channel_id);
    let _ = writeln!(text, "\tfqid_rx_hash:");
    // SAFETY: by the caller's contract.
    let ranges = unsafe { nodes(port.list) };
    if ranges.is_empty() {
        let _ = writeln!(text, "\t\tPCD List not found");
    }
    for range in ranges {
        // SAFETY: as above.
        let fm_eth_port_fqrange { start, count, .. } = unsafe { &*range };
        let _ = writeln!(text, "\t\t(PCD: start {start:#x}, count {count})");
    }
    let _ = writeln!(text, "\tfqid_rx_def: {:#x}", port.rx_def);
    let _ = writeln!(text, "\tfqid_rx_err: {:#x}", interface.fqid_rx_err);
    if !is_offline {
        let _ = writeln!(text, "\tfqid_tx_err: {:#x}", interface.fqid_tx_err);
        let _ = writeln!(text, "\tfqid_tx_confirm: {:#x}", interface.fqid_tx_confirm);
    }
    let head = &raw const interface.bpool_list;
    let mut node = interface.bpool_list.next.cast_const();
    while node != head && !node.is_null() {
        let offset = std::mem::offset_of!(fman_if_bpool, node);
        // SAFETY: by the caller's contract: nodes of pools lie in these.
        let pool = unsafe { &*node.byte_sub(offset).cast::<fman_if_bpool>() };
        let fman_if_bpool { bpid, count, size, addr, .. } = pool;
        let _ = writeln!(
            text,
            "\tbuffer pool: (bpid={bpid}, count={count}size={size}, addr={addr:#x})"
        );
        node = pool.node.next;
    }
}

/// No interface is shared with the kernel.
#[unsafe(no_mangle)]
pub extern "C" fn usdpaa_netcfg_enable_disable_shared_rx(_fif: *const fman_if, _flag_up: c_int) {}

/// The address of a network interface of Linux, in the process's network namespace.
pub(crate) fn address_of(interface: &str) -> Option<[u8; 6]> {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None).ok()?;
    // SAFETY: numbers and bytes, which may all be 0.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte ends the name.
    let room = request.ifr_name.split_last_mut()?.1.get_mut(..interface.len())?;
    room.iter_mut().zip(interface.bytes()).for_each(|(to, from)| *to = from as c_char);
    // SAFETY: the request reads the name, and writes an address.
    unsafe {
        let result = libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFHWADDR as _, &raw mut request);
        let address = request.ifr_ifru.ifru_hwaddr.sa_data;
        (result == 0).then(|| std::array::from_fn(|at| address[at] as u8))
    }
}

/// # Safety
/// `vname` is a C string, `src_mac` has room for an address; or they are NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn get_mac_addr(vname: *const c_char, src_mac: *mut ether_addr) -> c_int {
    if vname.is_null() || src_mac.is_null() {
        return -EINVAL;
    }
    // SAFETY: by the caller's contract.
    let name = unsafe { CStr::from_ptr(vname) }.to_string_lossy();
    let Some(octets) = address_of(&name) else { return -ENODEV };
    // SAFETY: by the caller's contract.
    unsafe { src_mac.write(ether_addr { octets }) };
    0
}

/// Which address an interface has is its administrator's choice.
#[unsafe(no_mangle)]
pub extern "C" fn set_mac_addr(_vname: *const c_char, _mac: *mut ether_addr) -> c_int {
    -libc::ENOTSUP
}
