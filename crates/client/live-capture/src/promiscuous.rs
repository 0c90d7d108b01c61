//! Promiscuous mode of a network interface, for as long as a handle wants it.

use std::{io, os::fd::OwnedFd};

use ringway_packet::socket;
use rustix::net::netdevice::name_to_index;

/// A membership: see [`socket::hold_promiscuous`].
pub struct Promiscuous(#[allow(dead_code)] OwnedFd);

impl Promiscuous {
    pub fn set(interface: &str) -> io::Result<Promiscuous> {
        let index = name_to_index(socket::new()?, interface)?;
        socket::hold_promiscuous(index).map(Promiscuous)
    }
}
