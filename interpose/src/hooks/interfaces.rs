//! Names and indices of network interfaces: a personality may have some that the kernel does not know.

use std::ffi::{c_char, c_int, c_uint, c_void};

use libc::{IFNAMSIZ, SIOCGIFINDEX, SIOCGIFNAME, ifreq};

use crate::{descriptors, personality::InterfaceName, real_libc::real, uaccess};

/// The name at an address of the program's; `None` if it is too long for one, or not there.
fn name_at(address: *const c_char) -> Option<InterfaceName> {
    let mut name = [0; IFNAMSIZ];
    for (at, byte) in name.iter_mut().enumerate() {
        let from = address.wrapping_add(at).cast::<u8>();
        if !uaccess::readable(from, 1) {
            return None;
        }
        // SAFETY: it can be read. A thread of the program that unmaps it meanwhile ends the program.
        *byte = unsafe { from.read_volatile() };
        if *byte == 0 {
            return Some(name);
        }
    }
    None
}

fn index_of(name: &InterfaceName) -> Option<c_uint> {
    descriptors::claim(|p| p.interface_index(name)).map(|(_, index)| index)
}

fn name_of(index: c_uint) -> Option<InterfaceName> {
    descriptors::claim(|p| p.interface_name(index)).map(|(_, name)| name)
}

/// # Safety
/// As the function of libc.
pub unsafe extern "C" fn if_nametoindex(name: *const c_char) -> c_uint {
    match name_at(name).and_then(|name| index_of(&name)) {
        Some(index) => index,
        None => real!(if_nametoindex: fn(name => *const c_char) -> c_uint),
    }
}

/// # Safety
/// As the function of libc.
pub unsafe extern "C" fn if_indextoname(index: c_uint, to: *mut c_char) -> *mut c_char {
    match name_of(index) {
        Some(name) => {
            // SAFETY: the program gives memory for so many bytes.
            unsafe { to.cast::<InterfaceName>().write_unaligned(name) };
            to
        }
        None => real!(if_indextoname: fn(index => c_uint, to => *mut c_char) -> *mut c_char),
    }
}

/// What an `ioctl` about an interface is answered with, if a personality has such a one. `None`: it is the
/// kernel's affair.
#[inline]
pub(super) fn answer(number: u32, argument: *mut c_void) -> Option<c_int> {
    match number {
        _ if number == SIOCGIFINDEX as u32 || number == SIOCGIFNAME as u32 => {
            look_up(number, argument.cast())
        }
        _ => None,
    }
}

#[cold]
fn look_up(number: u32, request: *mut ifreq) -> Option<c_int> {
    if !uaccess::writable(request, size_of::<ifreq>()) {
        return None;
    }
    // SAFETY: it can be read and written, and is the program's, which has given it to be filled in.
    unsafe {
        let name = (&raw mut (*request).ifr_name).cast::<InterfaceName>();
        let index = &raw mut (*request).ifr_ifru.ifru_ifindex;
        if number == SIOCGIFINDEX as u32 {
            let mut asked = name.read_unaligned();
            asked[IFNAMSIZ - 1] = 0;
            index.write_unaligned(index_of(&asked)? as c_int);
        } else {
            name.write_unaligned(name_of(index.read_unaligned() as c_uint)?);
        }
    }
    Some(0)
}
