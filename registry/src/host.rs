//! Host rings (S-HOST): the stack behind an interface, as rings of its port.
//!
//! They are the last of a port's rings in each direction. They come into being with the first
//! binding that has one of them, and go with the last.

use ringway_abi::Dir;
use ringway_nic_setup::{Interface, TxSocket};
use ringway_proto::{Error, Result};
use rustix::fd::OwnedFd;

use crate::{
    handles::Handle,
    interfaces::nic_error,
    kinds::{nic::Nic, persistent::Persistent},
    port::{PortId, Shape, make_ring},
    registry::Registry,
};

/// Host rings in each direction at most.
pub(crate) const MAX_HOST_RINGS: u16 = 16;

/// The host rings of a port.
#[derive(Clone, Copy, Default)]
pub(crate) struct HostRings {
    /// How many the port has, tx before rx; 0 for one without a stack behind it.
    pub counts: [u16; 2],
    /// Whether they have been made.
    pub open: bool,
    /// Bindings that forward to the stack without them (S-FWD-2).
    pub forwarders: u32,
}

impl HostRings {
    /// How many the port has in one direction, made or not.
    pub fn count(&self, dir: Dir) -> usize {
        match dir {
            Dir::Tx => self.counts[0].into(),
            Dir::Rx => self.counts[1].into(),
        }
    }

    /// How many of the port's rings of one direction are host rings, at the end.
    pub fn made(&self, dir: Dir) -> usize {
        if self.open { self.count(dir) } else { 0 }
    }
}

impl Registry {
    /// Makes the host rings of a port, and connects them with the stack, for a binding that has some
    /// of them.
    pub(crate) fn open_host(&mut self, id: PortId) -> Result<()> {
        if self.port(id).host.open {
            return Ok(());
        }
        self.make_host_rings(id)?;
        (self.actions(id).connect_host)(self, id).inspect_err(|_| self.free_host_rings(id))
    }

    /// Lets go of the host rings when no program has any.
    pub(crate) fn close_host(&mut self, id: PortId) {
        let port = self.port(id);
        let used = |dir| port.host_rings(dir).iter().any(|ring| ring.users > 0);
        if !port.host.open || port.awaited > 0 || used(Dir::Tx) || used(Dir::Rx) {
            return;
        }
        if (self.actions(id).disconnect_host)(self, id) {
            self.free_host_rings(id);
        }
    }

    /// The way to the stack for a binding that forwards received packets (S-FWD-2): a socket that
    /// takes frames.
    pub(crate) fn stack_socket(&mut self, handle: Handle) -> Result<OwnedFd> {
        let id = self.handles.binding(handle)?.port;
        self.check_there(id)?;
        if self.port(id).is::<Nic>() {
            self.open_host(id)?;
        }
        let open = |inner: &Interface| Ok(TxSocket::open(&inner.name, inner.index));
        let port = self.port(id);
        let opened = match (port.get::<Nic>(), port.get::<Persistent>()) {
            (Some(Nic { stack: Some(stack), .. }), _) => stack.end.inside(open),
            (_, Some(Persistent { device, .. })) => device.pair.inside(open),
            _ => {
                let name = &port.name;
                return Err(Error::invalid("there is no host stack behind it").at(name));
            }
        };
        let first = !std::mem::replace(&mut self.handles.binding_mut(handle)?.forwards, true);
        self.port_mut(id).host.forwarders += u32::from(first);
        self.users_changed(id);
        Ok(opened.map_err(nic_error)?.map_err(nic_error)?.fd)
    }

    fn make_host_rings(&mut self, id: PortId) -> Result<()> {
        let slots = self.shape_of(id).slots;
        let Some(port) = self.ports.get_mut(id) else { return Ok(()) };
        let book = self.regions.get(port.region);
        let nic = [port.tx.len(), port.rx.len()];
        port.host.open = true;
        for (dir, slots) in [Dir::Tx, Dir::Rx].into_iter().zip(slots) {
            for _ in 0..port.host.count(dir) {
                let index = port.rings(dir).len() as u32;
                match make_ring(book, dir, index, slots, None) {
                    Ok((ring, _)) => port.rings_mut(dir).push(ring),
                    Err(error) => {
                        self.truncate_rings(id, nic);
                        return Err(error);
                    }
                }
            }
        }
        Ok(())
    }

    fn free_host_rings(&mut self, id: PortId) {
        let Shape { rings, .. } = self.port(id).made_shape();
        self.truncate_rings(id, rings.map(|n| n as usize));
    }

    /// Frees the rings of a port beyond the first `nic`.
    fn truncate_rings(&mut self, id: PortId, nic: [usize; 2]) {
        let Some(port) = self.ports.get_mut(id) else { return };
        let book = self.regions.get(port.region);
        port.host.open = false;
        for (dir, first) in [Dir::Tx, Dir::Rx].into_iter().zip(nic) {
            let rings = port.rings_mut(dir);
            for ring in rings.drain(first.min(rings.len())..) {
                crate::port::free_ring(book, &ring);
            }
        }
    }
}
