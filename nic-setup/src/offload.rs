//! What a stack leaves to the hardware, turned off.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::AsFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use crate::sys::interface_request;

/// `struct ethtool_value`.
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}
const _: () = assert!(size_of::<Value>() == 8);

/// Checksums, scatter-gather (and with it all segmentation that needs it), TCP segmentation, the
/// stack's own late segmentation; and, as a set of flags, VLAN tags beside the frame.
const OFF: [Value; 5] = [
    Value { command: 0x17, data: 0 }, // ETHTOOL_STXCSUM
    Value { command: 0x19, data: 0 }, // ETHTOOL_SSG
    Value { command: 0x1f, data: 0 }, // ETHTOOL_STSO
    Value { command: 0x24, data: 0 }, // ETHTOOL_SGSO
    Value { command: 0x26, data: 0 }, // ETHTOOL_SFLAGS
];

/// From now on every frame that the stack sends through `interface`, of the calling thread's
/// network namespace, is complete: checksummed, tagged, and no longer than the MTU.
///
/// The kernel loads a module for a name that it does not know, so nobody else may name interfaces in
/// that namespace.
pub(crate) fn turn_off(interface: &str) -> io::Result<()> {
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    for mut value in OFF {
        let pointer = libc::__c_anonymous_ifr_ifru { ifru_data: (&raw mut value).cast() };
        // SAFETY: these commands read one `struct ethtool_value`, which outlives the call.
        unsafe { interface_request(socket.as_fd(), libc::SIOCETHTOOL as _, interface, pointer) }?;
    }
    Ok(())
}
