//! Where packets go out that a ring passes on: an interface, or a port.

use std::ffi::c_int;

use crate::{
    abi::MAX_CAPLEN,
    device::{self, Element, Target},
    interface::Interface,
    ring::Ring,
    send::Sender,
    source::Source,
};

/// A device that is sent to, and not received from.
pub enum Outlet {
    /// That device of the ring itself, by its place.
    Own(usize),
    Interface(Sender),
    Port(Box<Ring>),
}

impl Outlet {
    /// `None` for what is not there, or is more than one device.
    pub fn open(device: &str) -> Option<Outlet> {
        let elements = device::parse(device)?;
        let [Element { target, .. }] = &elements[..] else { return None };
        match target {
            Target::Interface(name) => {
                let index = Interface::new(name)?.index()?;
                Sender::new(u32::try_from(index).ok()?).ok().map(Outlet::Interface)
            }
            Target::Port(_) => {
                Ring::open(device, MAX_CAPLEN, 0).ok().map(Box::new).map(Outlet::Port)
            }
            Target::Any => None,
        }
    }

    /// Sends a packet for a ring with these devices; an error number else.
    pub fn send(&self, sources: &[Source], packet: &[u8]) -> Result<(), c_int> {
        match self {
            Outlet::Own(place) => {
                sources.get(*place).map_or(Err(libc::ENODEV), |source| source.send(packet))
            }
            Outlet::Interface(sender) => sender.send(packet),
            Outlet::Port(ring) => {
                ring.sources.first().map_or(Err(libc::ENODEV), |source| source.send(packet))
            }
        }
    }
}
