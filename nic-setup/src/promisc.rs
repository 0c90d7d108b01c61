//! Promiscuous mode that cannot be forgotten: it goes with its holder, however that ends.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use crate::{Error, Interface, sys};

/// Keeps an interface promiscuous while it lives. The kernel counts such holders; the interface's
/// own flag, the administrator's, is left alone.
#[derive(Debug)]
pub struct Promiscuous {
    _socket: OwnedFd,
}

impl Promiscuous {
    /// For an interface of the calling thread's network namespace. Needs CAP_NET_RAW.
    pub fn hold(interface: &Interface) -> Result<Promiscuous, Error> {
        // No protocol: this socket never receives a frame.
        let socket =
            socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, None)
                .map_err(io::Error::from)
                .and_then(|socket| {
                    sys::set_promiscuous(socket.as_fd(), interface.index)?;
                    Ok(socket)
                })
                .map_err(Error::refused(
                    &interface.name,
                    "promiscuous mode cannot be set",
                    "run with CAP_NET_RAW; the kernel needs CONFIG_PACKET",
                ))?;
        Ok(Promiscuous { _socket: socket })
    }
}
