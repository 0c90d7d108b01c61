//! The later names of what programs set of an interface's MAC, with error numbers.

use std::ffi::c_int;

use libc::{EINVAL, ENOTSUP};

use super::fman::{find, fman_if_loopback_disable, fman_if_loopback_enable};
use crate::fman::abi::fman_if;

/// 0 of an interface, or what only hardware has.
fn of_interface(fif: *const fman_if, result: c_int) -> c_int {
    find(fif).map_or(-EINVAL, |_| result)
}

/// A port gets what comes, whomever it is for.
#[unsafe(no_mangle)]
pub extern "C" fn fm_mac_set_promiscuous(fif: *const fman_if) -> c_int {
    of_interface(fif, 0)
}

#[unsafe(no_mangle)]
pub extern "C" fn fm_mac_config_loopback(fif: *const fman_if, enable: bool) -> c_int {
    match enable {
        true => fman_if_loopback_enable(fif),
        false => fman_if_loopback_disable(fif),
    }
    of_interface(fif, 0)
}

/// # Safety
/// `eth` has room for an address, or is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fm_mac_config(fif: *const fman_if, eth: *mut [u8; 6]) -> c_int {
    if find(fif).is_none() || eth.is_null() {
        return -EINVAL;
    }
    // SAFETY: a node of the list, which stays as long as its interface; room, by the caller's contract.
    unsafe { eth.write((*fif).mac_addr.octets) };
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn fm_mac_add_exact_match_mac_addr(fif: *const fman_if, _eth: *mut u8) -> c_int {
    of_interface(fif, -ENOTSUP)
}

#[unsafe(no_mangle)]
pub extern "C" fn fm_mac_set_rx_ignore_pause_frames(fif: *const fman_if, _enable: bool) -> c_int {
    of_interface(fif, -ENOTSUP)
}

/// How long frames may be is the port's.
#[unsafe(no_mangle)]
pub extern "C" fn fm_mac_conf_max_frame_len(fif: *const fman_if, _len: u32) -> c_int {
    of_interface(fif, -ENOTSUP)
}
