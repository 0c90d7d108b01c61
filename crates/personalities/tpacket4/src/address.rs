//! The address that a packet socket is bound to.

use ringway_interpose::{Interface, InterfaceName, uaccess};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::{
    names::{self, Named, named},
    sys,
};

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

/// Answers `getsockname`: writes the address of a socket that is bound to the interface `index` (0: to none) to `to`, cut
/// to the room that the program has there, and the whole length to `len`. Errors: EFAULT, EINVAL.
pub fn put(index: u32, to: u64, len: u64) -> Result<(), i32> {
    /// Bytes before the hardware's address.
    const HEAD: usize = 12;
    let mac = named(index).ok().and_then(|named| hardware_address(&named));
    let mut address = sockaddr_ll {
        family: libc::AF_PACKET as u16,
        protocol: (libc::ETH_P_ALL as u16).to_be(),
        ifindex: index.cast_signed(),
        hatype: 0,
        pkttype: 0,
        halen: 0,
        addr: [0; 8],
    };
    if let Some(mac) = mac {
        (address.hatype, address.halen) = (libc::ARPHRD_ETHER, mac.len() as u8);
        address.addr[..mac.len()].copy_from_slice(&mac);
    }
    let whole = HEAD + usize::from(address.halen);
    let room: i32 = uaccess::get(len)?;
    let room = usize::try_from(room).map_err(|_| libc::EINVAL)?;
    uaccess::write(to, &address.as_bytes()[..whole.min(room)])?;
    uaccess::put(len, &(whole as u32))?;
    Ok(())
}

fn hardware_address(named: &Named) -> Option<[u8; 6]> {
    let with_zeros = |name: &str| {
        let mut bytes = InterfaceName::default();
        bytes.get_mut(..name.len())?.copy_from_slice(name.as_bytes());
        Some(bytes)
    };
    let of_kernel = match named {
        Named::Port(name) => match names::interface(&with_zeros(name)?)? {
            Interface::Port(address) => return Some(address),
            Interface::Kernels { name, .. } => name,
        },
        Named::Interface(name) => with_zeros(name)?,
    };
    // `struct ifreq`: a name, a family, and the address.
    let mut request = [0u8; 40];
    request[..of_kernel.len()].copy_from_slice(&of_kernel);
    sys::interface_ioctl(libc::SIOCGIFHWADDR as u32, request.as_mut_ptr() as u64).ok()?;
    request[of_kernel.len() + 2..].first_chunk().copied()
}
