//! What a stack leaves to the hardware, turned off.

use std::io;
use std::os::fd::AsFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use crate::sys::ethtool::{self, Offload};

/// All that would leave frames incomplete.
const OFF: [Offload; 5] = [
    Offload::Checksums,
    Offload::ScatterGather,
    Offload::TcpSegmentation,
    Offload::Segmentation,
    Offload::Flags,
];

/// From now on every frame that the stack sends through `interface`, of the calling thread's
/// network namespace, is complete: checksummed, tagged, and no longer than the MTU.
///
/// The kernel loads a module for a name that it does not know, so nobody else may name interfaces in
/// that namespace.
pub(crate) fn turn_off(interface: &str) -> io::Result<()> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    OFF.into_iter().try_for_each(|offload| ethtool::turn_off(socket.as_fd(), interface, offload))
}
