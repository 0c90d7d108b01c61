//! A bound socket, as the set-up hands it over.

use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::io::Errno;

use crate::{RingSizes, kick::is_bound, rings::map_tx};

/// A socket that is bound to a queue. With the memory that is its UMEM, this is all that a process
/// needs to move packets.
///
/// Closing the descriptor does not unbind while a mapping of its rings lives, in any process.
#[derive(Debug)]
pub struct XskSocket {
    pub fd: OwnedFd,
    /// The rings' sizes: the kernel does not tell them, so they travel with the descriptor.
    pub sizes: RingSizes,
    /// Whether a packet may have several buffers: [`Desc::goes_on`](crate::Desc::goes_on). Longer ones
    /// than a buffer are not received else.
    pub frags: bool,
    /// Descriptors that a packet to be sent may have: 1 without `frags`, [`MAX_FRAGS`](crate::MAX_FRAGS) where the
    /// kernel copies, what the driver takes where that reads the memory itself.
    pub max_segs: u32,
    /// Whether the interface is an end of a pair, as of veth: the other end may have a smaller MTU.
    pub is_pair: bool,
}

/// Whether a bound socket's rings can be mapped, by the processes that it is passed to: not before
/// Linux 6.4.
///
/// # Errors
/// Those of the kernel, which tell nothing of other sockets: ENETDOWN if the interface has gone, ENOMEM, EAGAIN.
pub fn can_be_mapped(fd: BorrowedFd<'_>, sizes: &RingSizes) -> rustix::io::Result<bool> {
    match map_tx(fd, sizes) {
        Ok(_) => Ok(true),
        // On every kernel, if the interface has gone since.
        Err(Errno::BUSY) if !is_bound(fd) => Err(Errno::NETDOWN),
        Err(Errno::BUSY) => Ok(false),
        Err(error) => Err(error),
    }
}
