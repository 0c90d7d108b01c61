//! `fman.h`: the list of interfaces, and what programs set of each.

use std::{
    ffi::c_int,
    ptr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use libc::{EINVAL, EIO, ENODEV};

use crate::{
    fman::{self, Counters, Interface, POOLS, abi::*},
    ports::{self, MacType, Place},
    print,
};

/// The head of the list, once there is one.
#[unsafe(no_mangle)]
pub static mut fman_if_list: *const list_head = ptr::null();
/// Interfaces of the first Frame Manager's generation ask for nothing in context A.
#[unsafe(no_mangle)]
pub static mut fman_dealloc_bufs_mask_hi: u32 = 0;
#[unsafe(no_mangle)]
pub static mut fman_dealloc_bufs_mask_lo: u32 = 0;

/// The nodes that programs see.
struct Nodes {
    head: Box<list_head>,
    interfaces: Vec<(Box<fman_if>, Box<[fman_if_bpool]>)>,
}

// SAFETY: the pointers are among the nodes themselves; programs read these while no thread changes them.
unsafe impl Send for Nodes {}

static NODES: Mutex<Option<Nodes>> = Mutex::new(None);

fn nodes() -> std::sync::MutexGuard<'static, Option<Nodes>> {
    NODES.lock().unwrap_or_else(PoisonError::into_inner)
}

#[unsafe(no_mangle)]
pub extern "C" fn fman_init() -> c_int {
    let mut nodes = nodes();
    if nodes.is_some() {
        return 0;
    }
    let configured = match ports::configured() {
        Ok(configured) => configured,
        Err(problem) => {
            print::error(&problem);
            return -ENODEV;
        }
    };
    let mut started = Vec::new();
    for (named, index) in configured.iter().zip(0..) {
        match Interface::start(named.place, index, &named.port) {
            Ok(interface) => started.push(interface),
            Err(error) => {
                print::error(&format!("{}={}: {error}", named.place, named.port));
                started.iter().for_each(|interface| interface.stop());
                return -EIO;
            }
        }
    }
    let made =
        Nodes::new(started.iter().zip(&configured).map(|(i, named)| (i, named.port.as_str())));
    for interface in &started {
        let Place { fman, number, .. } = interface.place;
        let channel = interface.numbers.channel;
        print::line(&format!(
            "Found {}, Tx Channel = {channel:x}, FMAN = {fman:x}, Port ID = {number:x}",
            interface.place
        ));
    }
    // SAFETY: written while the lock is held; programs read it after this call.
    unsafe { fman_if_list = &*made.head };
    *nodes = Some(made);
    *fman::interfaces_mut() = started;
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn fman_finish() {
    let mut nodes = nodes();
    let stopped = std::mem::take(&mut *fman::interfaces_mut());
    stopped.iter().for_each(|interface| interface.stop());
    // SAFETY: as in `fman_init`.
    unsafe { fman_if_list = ptr::null() };
    *nodes = None;
}

impl Nodes {
    fn new<'a>(interfaces: impl Iterator<Item = (&'a Arc<Interface>, &'a str)>) -> Nodes {
        let mut made: Vec<_> = interfaces.map(|(interface, port)| node(interface, port)).collect();
        let mut head = Box::new(list_head::unlinked());
        let links: Vec<*mut list_head> = made.iter_mut().map(|(i, _)| &raw mut i.node).collect();
        // SAFETY: all are in boxes of their own, which this owns.
        unsafe { link(&mut *head, links) };
        Nodes { head, interfaces: made }
    }
}

fn node(interface: &Interface, port: &str) -> (Box<fman_if>, Box<[fman_if_bpool]>) {
    let pool = |(bpid, size): (u8, u32)| fman_if_bpool {
        bpid: bpid.into(),
        count: 0,
        size: size.into(),
        addr: 0,
        node: list_head::unlinked(),
    };
    let mut pools = Box::new(POOLS.map(pool));
    let numbers = interface.numbers;
    let mut node = Box::new(fman_if {
        fman_idx: interface.place.fman,
        mac_type: interface.place.mac_type as c_int,
        is_memac: 0,
        fqid_rx_def: [0; 3],
        mac_idx: interface.place.number,
        mac_addr: ether_addr { octets: address(interface.place, port) },
        tx_channel_id: numbers.channel,
        fqid_rx_err: numbers.rx_error,
        fqid_tx_err: numbers.tx_error,
        fqid_tx_confirm: numbers.tx_confirm,
        macless_info: macless_port_cfg {
            macless_name: ptr::null_mut(),
            rx_start: 0,
            rx_count: 0,
            tx_start: 0,
            tx_count: 0,
            src_mac: ether_addr::default(),
            peer_mac: ether_addr::default(),
        },
        shared_mac_info: shared_mac_cfg { is_shared_mac: 0, shared_mac_name: ptr::null_mut() },
        bpool_list: list_head::unlinked(),
        node: list_head::unlinked(),
    });
    let links: Vec<*mut list_head> = pools.iter_mut().map(|pool| &raw mut pool.node).collect();
    // SAFETY: all are in boxes of their own, which go together.
    unsafe { link(&raw mut node.bpool_list, links) };
    (node, pools)
}

/// A network interface's own address; of another port, one that no other interface of the process has.
fn address(place: Place, port: &str) -> [u8; 6] {
    let interface = port
        .strip_prefix("netmap:")
        .map(|name| name.split(['@', '/', '-', '^', '~']).next().unwrap_or_default());
    interface.and_then(super::netcfg::address_of).unwrap_or([
        2,
        0,
        0,
        place.fman,
        place.mac_type as u8,
        place.number,
    ])
}

/// The interface of a node that is in the list.
pub(crate) fn find(fif: *const fman_if) -> Option<Arc<Interface>> {
    let nodes = nodes();
    let at = nodes.as_ref()?.interfaces.iter().position(|(node, _)| ptr::eq(&**node, fif))?;
    fman::interfaces().get(at).cloned()
}

/// The node of a place.
pub(crate) fn node_of(place: Place) -> Option<*mut fman_if> {
    let at = fman::interfaces().iter().position(|interface| interface.place == place)?;
    let mut nodes = nodes();
    nodes.as_mut()?.interfaces.get_mut(at).map(|(node, _)| &raw mut **node)
}

fn with(fif: *const fman_if, work: impl FnOnce(&Interface)) {
    if let Some(interface) = find(fif) {
        work(&interface);
    }
}

fn set(flag: impl FnOnce(&Interface) -> &AtomicBool, fif: *const fman_if, value: bool) {
    with(fif, |interface| {
        // Without a wire there is nothing but the loop.
        flag(interface).store(value || interface.place.mac_type == MacType::Offline, Relaxed);
        interface.wake();
    });
}

#[unsafe(no_mangle)]
pub extern "C" fn fman_if_enable_rx(fif: *const fman_if) {
    with(fif, |interface| interface.set_receives(true));
}

#[unsafe(no_mangle)]
pub extern "C" fn fman_if_disable_rx(fif: *const fman_if) {
    with(fif, |interface| interface.set_receives(false));
}

#[unsafe(no_mangle)]
pub extern "C" fn fman_if_loopback_enable(fif: *const fman_if) {
    set(|interface| &interface.loops_back, fif, true);
}

#[unsafe(no_mangle)]
pub extern "C" fn fman_if_loopback_disable(fif: *const fman_if) {
    set(|interface| &interface.loops_back, fif, false);
}

/// A port gets what comes, whomever it is for: there is nothing to be switched.
#[unsafe(no_mangle)]
pub extern "C" fn fman_if_promiscuous_enable(_fif: *const fman_if) {}

#[unsafe(no_mangle)]
pub extern "C" fn fman_if_promiscuous_disable(_fif: *const fman_if) {}

#[unsafe(no_mangle)]
pub extern "C" fn memac_add_hash_mac_addr(_fif: *const fman_if, _address: *mut u8) -> c_int {
    -EINVAL
}

/// What an interface has counted, of `usdpaa/ringway.h`.
#[repr(C)]
pub struct ringway_usdpaa_counters {
    received: u64,
    transmitted: u64,
    no_buffer: u64,
    too_long: u64,
    rejected: u64,
    unsendable: u64,
    lost: u64,
}

/// # Safety
/// `to` has room for the counters, or is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ringway_usdpaa_count(
    fif: *const fman_if,
    to: *mut ringway_usdpaa_counters,
) -> c_int {
    let (Some(interface), false) = (find(fif), to.is_null()) else { return -EINVAL };
    let Counters { received, transmitted, no_buffer, too_long, rejected, unsendable, lost } =
        &interface.counters;
    let counted = ringway_usdpaa_counters {
        received: received.load(Relaxed),
        transmitted: transmitted.load(Relaxed),
        no_buffer: no_buffer.load(Relaxed),
        too_long: too_long.load(Relaxed),
        rejected: rejected.load(Relaxed),
        unsendable: unsendable.load(Relaxed),
        lost: lost.load(Relaxed),
    };
    // SAFETY: by the caller's contract.
    unsafe { to.write(counted) };
    0
}
