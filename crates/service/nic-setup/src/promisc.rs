//! Promiscuous mode that cannot be forgotten: it goes with its holder, however that ends.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use ringway_packet::socket;
use serde::{Deserialize, Serialize};

use crate::operation::HoldPromiscuous;
use crate::{Error, Interface, helper, parcel};

/// Keeps an interface promiscuous while it lives. The kernel counts such holders; the interface's
/// own flag, the administrator's, is left alone.
#[derive(Debug, Serialize, Deserialize)]
pub struct Promiscuous {
    interface: u32,
    #[serde(with = "parcel::fd")]
    socket: OwnedFd,
}

impl Promiscuous {
    /// For an interface of the calling thread's network namespace. Needs CAP_NET_RAW.
    pub fn hold(interface: &Interface) -> Result<Promiscuous, Error> {
        helper::run(HoldPromiscuous { interface: interface.clone() })
    }

    #[cfg(feature = "simulated")]
    pub(crate) fn of_socket(interface: u32, socket: OwnedFd) -> Promiscuous {
        Promiscuous { interface, socket }
    }

    pub(crate) fn hold_here(interface: &Interface) -> Result<Promiscuous, Error> {
        let socket = socket::hold_promiscuous(interface.index).map_err(Error::refused(
            &interface.name,
            "promiscuous mode cannot be set",
            "run with CAP_NET_RAW; the kernel needs CONFIG_PACKET",
        ))?;
        Ok(Promiscuous { interface: interface.index, socket })
    }

    /// It holds nothing from now on, even if other processes have the socket.
    pub(crate) fn end(&self) {
        // Refused when the interface has gone.
        let _ = socket::leave_promiscuous(self.socket.as_fd(), self.interface);
    }
}

impl AsFd for Promiscuous {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
