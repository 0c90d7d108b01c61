//! Promiscuous mode that cannot be forgotten: it goes with its holder, however that ends.

use std::os::fd::OwnedFd;

use ringway_packet::socket;
use serde::{Deserialize, Serialize};

use crate::operation::HoldPromiscuous;
use crate::{Error, Interface, helper, parcel};

/// Keeps an interface promiscuous while it lives. The kernel counts such holders; the interface's
/// own flag, the administrator's, is left alone.
#[derive(Debug, Serialize, Deserialize)]
pub struct Promiscuous {
    #[serde(with = "parcel::fd")]
    _socket: OwnedFd,
}

impl Promiscuous {
    /// For an interface of the calling thread's network namespace. Needs CAP_NET_RAW.
    pub fn hold(interface: &Interface) -> Result<Promiscuous, Error> {
        helper::run(HoldPromiscuous { interface: interface.clone() })
    }

    #[cfg(feature = "simulated")]
    pub(crate) fn of_socket(socket: OwnedFd) -> Promiscuous {
        Promiscuous { _socket: socket }
    }

    pub(crate) fn hold_here(interface: &Interface) -> Result<Promiscuous, Error> {
        let socket = socket::hold_promiscuous(interface.index).map_err(Error::refused(
            &interface.name,
            "promiscuous mode cannot be set",
            "run with CAP_NET_RAW; the kernel needs CONFIG_PACKET",
        ))?;
        Ok(Promiscuous { _socket: socket })
    }
}
