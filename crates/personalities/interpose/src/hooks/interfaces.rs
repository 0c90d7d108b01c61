//! Names and indices of network interfaces: a personality may have some that the kernel does not know.

use std::{
    ffi::{c_char, c_int, c_uint, c_ulong, c_void},
    ptr,
};

use libc::{IFNAMSIZ, ifreq};

use crate::{
    descriptors,
    personality::{Interface, InterfaceName},
    real_libc::{errno, fail, real},
    uaccess,
};

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

pub(super) fn index_of(name: &InterfaceName) -> Option<c_uint> {
    descriptors::claim(|p| p.interface_index(name)).map(|(_, index)| index)
}

pub(super) fn name_of(index: c_uint) -> Option<InterfaceName> {
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
pub(super) fn answer(fd: c_int, number: u32, argument: *mut c_void) -> Option<c_int> {
    match number {
        FIRST_REQUEST..=LAST_REQUEST => look_up(fd, number, argument.cast()),
        _ => None,
    }
}

/// From SIOCGIFNAME to SIOCGIFMAP: requests with an `ifreq`, and some with another argument, which
/// [`is_about_name`] leaves out.
const FIRST_REQUEST: u32 = libc::SIOCGIFNAME as u32;
const LAST_REQUEST: u32 = 0x8970;

/// Whether a request begins with the name of an interface: those that programs make before they
/// capture.
fn is_about_name(number: u32) -> bool {
    let requests = [
        libc::SIOCGIFFLAGS,
        libc::SIOCSIFFLAGS,
        libc::SIOCGIFADDR,
        libc::SIOCGIFDSTADDR,
        libc::SIOCGIFBRDADDR,
        libc::SIOCGIFNETMASK,
        libc::SIOCGIFMETRIC,
        libc::SIOCGIFMTU,
        libc::SIOCGIFHWADDR,
        libc::SIOCGIFINDEX,
        libc::SIOCGIFTXQLEN,
        libc::SIOCETHTOOL,
        libc::SIOCGIFMAP,
    ];
    requests.iter().any(|known| *known as u32 == number)
}

#[cold]
fn look_up(fd: c_int, number: u32, request: *mut ifreq) -> Option<c_int> {
    let by_index = number == libc::SIOCGIFNAME as u32;
    if !(by_index || is_about_name(number)) || !uaccess::writable(request, size_of::<ifreq>()) {
        return None;
    }
    // SAFETY: it can be read and written, and is the program's, which has given it to be filled in.
    let mut copy = unsafe { request.read_unaligned() };
    if by_index {
        // SAFETY: the program has filled in an index; any bits are a number.
        let index = unsafe { copy.ifr_ifru.ifru_ifindex };
        copy.ifr_name = name_of(index as c_uint)?.map(|byte| byte as c_char);
        // SAFETY: as above.
        unsafe { request.write_unaligned(copy) };
        return Some(0);
    }
    let mut name = copy.ifr_name.map(|byte| byte as u8);
    name[IFNAMSIZ - 1] = 0;
    if number == libc::SIOCGIFINDEX as u32 {
        copy.ifr_ifru.ifru_ifindex = index_of(&name)? as c_int;
    } else {
        let asked = copy.ifr_name;
        let done = match descriptors::claim(|p| p.interface(&name))?.1 {
            Interface::Kernels { name, is_monitor } => {
                copy.ifr_name = name.map(|byte| byte as c_char);
                let sets_flags = number == libc::SIOCSIFFLAGS as u32;
                let may = if is_monitor && sets_flags { keeps_up(fd, &copy) } else { Ok(()) };
                let answer = may.and_then(|()| kernel(fd, number, &mut copy));
                copy.ifr_name = asked;
                answer
            }
            Interface::Port(address) => of_port(number, &address, &mut copy),
        };
        if let Err(errno) = done {
            return Some(fail(errno));
        }
    }
    // SAFETY: as above.
    unsafe { request.write_unaligned(copy) };
    Some(0)
}

/// The program's call, about another name.
fn kernel(fd: c_int, number: u32, request: &mut ifreq) -> Result<(), c_int> {
    let (number, request) = (c_ulong::from(number), ptr::from_mut(request).cast());
    match real!(ioctl: fn(fd => c_int, number => c_ulong, request => *mut c_void) -> c_int) {
        0.. => Ok(()),
        _ => Err(errno()),
    }
}

/// By the name of a monitor, an interface that others use goes neither up nor down: EPERM.
fn keeps_up(fd: c_int, request: &ifreq) -> Result<(), c_int> {
    let mut now = *request;
    kernel(fd, libc::SIOCGIFFLAGS as u32, &mut now)?;
    // SAFETY: the program has written flags into the one, and the kernel into the other.
    let [wanted, now] = [request, &now].map(|of| c_int::from(unsafe { of.ifr_ifru.ifru_flags }));
    if (wanted ^ now) & libc::IFF_UP == 0 { Ok(()) } else { Err(libc::EPERM) }
}

/// Bytes of a packet without Ethernet's header that any port takes in one slot.
pub(super) const MTU: c_int = 1500;
/// Packets that may wait, of an interface of the kernel's.
pub(super) const TX_QUEUE: c_int = 1000;
pub(super) const FLAGS: c_int =
    libc::IFF_UP | libc::IFF_BROADCAST | libc::IFF_RUNNING | libc::IFF_MULTICAST;

/// What the kernel would say of an Ethernet interface that is up and has no addresses of IP.
fn of_port(number: u32, address: &[u8; 6], request: &mut ifreq) -> Result<(), c_int> {
    let answer = &mut request.ifr_ifru;
    match c_ulong::from(number) {
        libc::SIOCGIFFLAGS => answer.ifru_flags = FLAGS as _,
        // It is up, and receives what comes: there is nothing to set.
        libc::SIOCSIFFLAGS => {}
        libc::SIOCGIFMETRIC => answer.ifru_metric = 0,
        libc::SIOCGIFMTU => answer.ifru_mtu = MTU,
        // The bindings lack the field: the length of the queue is where the MTU is.
        libc::SIOCGIFTXQLEN => answer.ifru_mtu = TX_QUEUE,
        libc::SIOCGIFHWADDR => {
            let mut of_kind = libc::sockaddr { sa_family: libc::ARPHRD_ETHER, sa_data: [0; 14] };
            for (to, byte) in of_kind.sa_data.iter_mut().zip(address) {
                *to = *byte as c_char;
            }
            answer.ifru_hwaddr = of_kind;
        }
        libc::SIOCGIFMAP => {
            // SAFETY: numbers, which may be 0.
            answer.ifru_map = unsafe { std::mem::zeroed() };
        }
        libc::SIOCETHTOOL => return Err(libc::EOPNOTSUPP),
        _ => return Err(libc::EADDRNOTAVAIL),
    }
    Ok(())
}
