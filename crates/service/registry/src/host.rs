//! Host rings (S-HOST): the stack behind an interface, as rings of its port.
//!
//! They are the last of a port's rings in each direction. They come into being with the first
//! binding that has one of them, and go with the last.

use std::sync::Arc;

use ringway_abi::Dir;
use ringway_nic_setup::{Interface, PrivatePair, TxSocket};
use ringway_proto::{Error, Reply, Result};

use crate::{
    charge::Charge,
    handles::Handle,
    kinds::{nic::Nic, persistent::Persistent},
    port::{Port, PortId, Shape, free_ring, make_ring},
    ports::Ports,
    regions::{RegionBook, Regions},
    registry::Registry,
    setup_error::nic_error,
    subject::Subject,
    transaction::{Answer, Failed, Needs, Plan},
};

impl Port {
    /// Makes the host rings, all or none.
    pub(crate) fn make_host_rings(&mut self, slots: [u32; 2], book: &mut RegionBook) -> Result<()> {
        self.host.open = true;
        let nic = [self.tx.len(), self.rx.len()];
        for (dir, slots) in [Dir::Tx, Dir::Rx].into_iter().zip(slots) {
            for _ in 0..self.host.count(dir) {
                let index = self.rings(dir).len() as u32;
                match make_ring(book, dir, index, slots, None) {
                    Ok((ring, _)) => self.rings_mut(dir).push(ring),
                    Err(error) => {
                        self.truncate_rings(nic, book);
                        return Err(error);
                    }
                }
            }
        }
        Ok(())
    }

    pub(crate) fn free_host_rings(&mut self, book: &mut RegionBook) {
        let Shape { rings, .. } = self.made_shape();
        self.truncate_rings(rings.map(|n| n as usize), book);
    }

    /// Frees the rings beyond the first `nic`.
    fn truncate_rings(&mut self, nic: [usize; 2], book: &mut RegionBook) {
        self.host.open = false;
        for (dir, first) in [Dir::Tx, Dir::Rx].into_iter().zip(nic) {
            let rings = self.rings_mut(dir);
            for ring in rings.drain(first.min(rings.len())..) {
                free_ring(book, &ring);
            }
        }
    }
}

/// Makes the host rings of a port, and connects them with the stack, for a binding that has some of them.
/// Where that takes long it is a part of the request: it fails, and the rings are made once more with
/// what connects them.
pub(crate) fn open(registry: &mut Registry, id: PortId) -> Result<()> {
    let Registry { settings, ports, regions, .. } = registry;
    let port = ports.port_mut(id);
    if port.host.open {
        return Ok(());
    }
    let slots = port.shape(settings).slots;
    port.make_host_rings(slots, regions.get(port.region))?;
    let connected = (registry.actions(id).connect_host)(registry, id);
    connected.inspect_err(|_| free(&mut registry.ports, &mut registry.regions, id))
}

/// Lets go of the host rings when no program has any.
pub(crate) fn close(registry: &mut Registry, id: PortId) {
    let port = registry.port(id);
    let used = |dir| port.host_rings(dir).iter().any(|ring| ring.users > 0);
    let is_kept = port.awaited > 0 || port.host.forwarders > 0;
    if !port.host.open || is_kept || used(Dir::Tx) || used(Dir::Rx) {
        return;
    }
    if (registry.actions(id).disconnect_host)(registry, id) {
        free(&mut registry.ports, &mut registry.regions, id);
    }
}

fn free(ports: &mut Ports, regions: &mut Regions, id: PortId) {
    let port = ports.port_mut(id);
    port.free_host_rings(regions.get(port.region));
}

/// The way to the stack for a binding that forwards received packets (S-FWD-2) is going to be opened: a socket
/// that takes frames.
struct OpenWay {
    handle: Handle,
    id: PortId,
    subject: Subject,
}

/// Opens it. A NIC's host rings come first.
pub(crate) fn open_way(registry: &mut Registry, handle: Handle) -> Result<Answer> {
    let id = registry.handles.binding(handle)?.port;
    registry.port(id).check_there()?;
    let opening = OpenWay::plan(registry, handle, id);
    let error = opening.map_or_else(
        |error| error,
        |(plan, pair)| {
            let open = |inner: &Interface| TxSocket::open(&inner.name, inner.index);
            registry.carry_out(plan, move || pair.inside(open).map_err(nic_error))
        },
    );
    registry.keep_if_begun_again(id);
    Err(error)
}

impl OpenWay {
    /// With the pair that is in between.
    fn plan(
        registry: &mut Registry,
        handle: Handle,
        id: PortId,
    ) -> Result<(OpenWay, Arc<PrivatePair>)> {
        if registry.port(id).is::<Nic>() {
            open(registry, id)?;
        }
        let port = registry.port(id);
        let (subject, pair) = match (port.get::<Nic>(), port.get::<Persistent>()) {
            (Some(Nic { stack: Some(stack), key, .. }), _) => {
                (Subject::from(*key), stack.end.pair())
            }
            (_, Some(Persistent { device, key, .. })) => {
                (Subject::Device(key.clone()), &device.pair)
            }
            _ => {
                let name = &port.name;
                return Err(Error::invalid("there is no host stack behind it").at(name));
            }
        };
        Ok((OpenWay { handle, id, subject }, pair.clone()))
    }

    /// Fails if the descriptor is bound to it no more.
    fn forwards<'a>(&self, registry: &'a mut Registry) -> Result<&'a mut bool> {
        registry.port(self.id).check_there()?;
        let binding = registry.handles.binding_mut(self.handle)?;
        match binding.port == self.id {
            true => Ok(&mut binding.forwards),
            false => Err(Error::absent("this descriptor is bound to another port now")),
        }
    }
}

impl Plan for OpenWay {
    type Made = TxSocket;

    fn subject(&self) -> Subject {
        self.subject.clone()
    }

    fn needs(&self) -> Needs {
        Needs::nothing(0)
    }

    fn commit(
        self,
        registry: &mut Registry,
        socket: TxSocket,
        _memory: Charge,
    ) -> Result<Answer, Failed> {
        let first = match self.forwards(registry) {
            Ok(forwards) => !std::mem::replace(forwards, true),
            Err(error) => return Err(Failed::new(error, socket)),
        };
        registry.port_mut(self.id).host.forwarders += u32::from(first);
        registry.users_changed(self.id);
        Ok((Reply::Done, vec![socket.fd]))
    }
}
