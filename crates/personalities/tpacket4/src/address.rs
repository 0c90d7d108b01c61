//! The address that a packet socket is bound to.

use ringway_interpose::uaccess;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// The kernel's `struct sockaddr_ll`.
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes)]
#[repr(C)]
struct sockaddr_ll {
    family: u16,
    protocol: u16,
    ifindex: i32,
    hatype: u16,
    pkttype: u8,
    halen: u8,
    addr: [u8; 8],
}

const _: () = assert!(size_of::<sockaddr_ll>() == size_of::<libc::sockaddr_ll>());

/// The index of the interface in `len` bytes of an address of the program's.
pub fn interface(address: u64, len: u32) -> Result<u32, i32> {
    if (len as usize) < size_of::<sockaddr_ll>() {
        return Err(libc::EINVAL);
    }
    let address: sockaddr_ll = uaccess::get(address)?;
    let all = (libc::ETH_P_ALL as u16).to_be();
    if i32::from(address.family) != libc::AF_PACKET || ![0, all].contains(&address.protocol) {
        return Err(libc::EINVAL);
    }
    u32::try_from(address.ifindex).map_err(|_| libc::ENODEV)
}
