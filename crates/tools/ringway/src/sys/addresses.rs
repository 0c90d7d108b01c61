//! The addresses that an interface has.

use std::ffi::CStr;
use std::io;
use std::net::Ipv4Addr;

/// What the kernel says of an interface of this thread's network namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterfaceAddresses {
    /// Its Ethernet address, if there is such an interface and it has one.
    pub mac: Option<[u8; 6]>,
    /// Its IPv4 addresses, with the masks of their networks.
    pub networks: Vec<(Ipv4Addr, Ipv4Addr)>,
}

/// Of the interface of that name; nothing, if there is none.
pub fn addresses_of(interface: &str) -> io::Result<InterfaceAddresses> {
    let mut list: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: the call writes the pointer alone; what it points to is a list of its own, freed below.
    if unsafe { libc::getifaddrs(&raw mut list) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut found = InterfaceAddresses::default();
    let mut next = list;
    while !next.is_null() {
        // SAFETY: an entry of the list, which is freed only below; it is copied.
        let entry = unsafe { next.read() };
        next = entry.ifa_next;
        // SAFETY: a string of the list's, which ends with a zero.
        let name = unsafe { CStr::from_ptr(entry.ifa_name) };
        if name.to_bytes() != interface.as_bytes() || entry.ifa_addr.is_null() {
            continue;
        }
        // SAFETY: every address begins with its family.
        let family = unsafe { (*entry.ifa_addr).sa_family };
        match libc::c_int::from(family) {
            libc::AF_INET if !entry.ifa_netmask.is_null() => {
                // SAFETY: both are addresses of this family, and the mask is not null.
                let (address, mask) = unsafe { (ipv4(entry.ifa_addr), ipv4(entry.ifa_netmask)) };
                found.networks.push((address, mask));
            }
            libc::AF_PACKET => {
                // SAFETY: an address of this family is of this type; it is copied, from where it may not be
                // aligned.
                let link = unsafe { entry.ifa_addr.cast::<libc::sockaddr_ll>().read_unaligned() };
                if link.sll_hatype == libc::ARPHRD_ETHER
                    && let Some((mac, _)) = link.sll_addr.split_first_chunk::<6>()
                {
                    found.mac = Some(*mac);
                }
            }
            _ => (),
        }
    }
    // SAFETY: the list made above, freed once, and what was found in it was copied.
    unsafe { libc::freeifaddrs(list) };
    Ok(found)
}

/// # Safety
/// It is an address of IPv4, of that length.
unsafe fn ipv4(address: *const libc::sockaddr) -> Ipv4Addr {
    // SAFETY: as the caller says; it is copied, from where it may not be aligned.
    let address = unsafe { address.cast::<libc::sockaddr_in>().read_unaligned() };
    Ipv4Addr::from_bits(u32::from_be(address.sin_addr.s_addr))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_has_a_network_and_no_ethernet_address() {
        let found = addresses_of("lo").unwrap();
        assert_eq!(found.mac, None);
        let network = (Ipv4Addr::LOCALHOST, Ipv4Addr::new(255, 0, 0, 0));
        assert!(found.networks.is_empty() || found.networks.contains(&network), "{found:?}");
        assert_eq!(addresses_of("no such one").unwrap(), InterfaceAddresses::default());
    }
}
