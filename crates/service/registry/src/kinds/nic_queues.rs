//! The queues of a NIC that its port has: taken over from ports whose programs have let them go, closed with the
//! interface or the last program. `open_queues` opens them.

use std::collections::BTreeSet;

use ringway_abi::Dir;
use ringway_proto::Result;

use crate::{
    kinds::{monitor::Monitor, nic::Nic, nic_sockets::Sockets},
    port::{PortId, free_ring, make_empty_ring, state_mut},
    queues::Socket,
    registry::Registry,
    subject::NicKey,
};

impl Nic {
    /// Takes queues away from other ports whose programs have let them go. A port keeps those for its
    /// user's next program, as long as no other user wants them.
    pub(super) fn free_queues(
        registry: &mut Registry,
        id: PortId,
        queues: &BTreeSet<u32>,
    ) -> Result<()> {
        let Some(nic) = registry.port(id).get::<Nic>() else { return Ok(()) };
        let key = nic.key;
        for &queue in queues {
            let holder = registry.shared.get(&key).and_then(|shared| shared.holder(queue));
            let Some(holder) = holder.filter(|&holder| holder != id) else { continue };
            let slots = registry.settings.nic_slots;
            let Some(port) = registry.ports.get_mut(holder) else { continue };
            let at = queue as usize;
            let used = |dir| port.nic_rings(dir).get(at).is_some_and(|ring| ring.users > 0);
            if used(Dir::Tx) || used(Dir::Rx) || port.awaited > 0 {
                continue;
            }
            let dirs = [Dir::Tx, Dir::Rx].into_iter();
            let has = dirs.filter(|&dir| at < port.nic_rings(dir).len()).collect::<Vec<_>>();
            let book = registry.regions.get(port.region);
            let mut fresh = Vec::new();
            for dir in has {
                match make_empty_ring(book, dir, queue, slots) {
                    Ok(ring) => fresh.push((dir, ring)),
                    Err(error) => {
                        fresh.iter().for_each(|(_, ring)| free_ring(book, ring));
                        return Err(error);
                    }
                }
            }
            // First the kernel lets go of the buffers, then they are free.
            let mut closed = None;
            if let Some(Nic { sockets: Some(sockets), interface, netns, .. }) =
                state_mut(&mut port.backend)
            {
                if let Some(socket) = sockets.get(queue).and_then(Socket::xdp) {
                    let interface = (interface.name.as_str(), netns.inode());
                    registry.kept_sockets.add(socket, queue, key, interface, port.uid);
                }
                closed = sockets.take(queue);
            }
            let mut lent = Vec::new();
            for (dir, ring) in fresh {
                if let Some(entry) = port.rings_mut(dir).get_mut(at) {
                    lent.push(std::mem::replace(entry, ring));
                }
            }
            let region = port.region;
            registry.deferred.close_with_rings(
                key,
                closed,
                Some((region, lent)),
                &mut registry.regions,
            );
            registry.shared.entry(key).or_default().forget_holder(queue);
            Monitor::update_mirrors_if_any(registry, holder);
        }
        Ok(())
    }

    /// Takes back the buffers of rings whose queue was not opened after all: the request has failed, or its program has
    /// gone.
    pub(super) fn empty_unopened(registry: &mut Registry, id: PortId) {
        let slots = registry.settings.nic_slots;
        let Some(port) = registry.ports.get_mut(id) else { return };
        // A request may be about to have them; and with the last program all rings go.
        if port.awaited > 0 || port.is_unused() {
            return;
        }
        let Some(nic) = port.get::<Nic>() else { return };
        let key = nic.key;
        let open: BTreeSet<u32> =
            nic.sockets.iter().flat_map(Sockets::all).map(|(queue, _)| queue).collect();
        let (region, mut left) = (port.region, Vec::new());
        let book = registry.regions.get(region);
        for dir in [Dir::Tx, Dir::Rx] {
            let rings = port.nic_rings(dir).len();
            for (queue, ring) in (0..).zip(port.rings_mut(dir).iter_mut().take(rings)) {
                if ring.filled
                    && ring.users == 0
                    && !open.contains(&queue)
                    && let Ok(empty) = make_empty_ring(book, dir, queue, slots)
                {
                    left.push(std::mem::replace(ring, empty));
                }
            }
        }
        if !left.is_empty() {
            // The kernel may have them yet, by sockets that are being closed.
            let left = Some((region, left));
            registry.deferred.close_with_rings(key, (), left, &mut registry.regions);
            Monitor::update_mirrors_if_any(registry, id);
        }
    }

    /// Connects an interface with the stack behind it, which any of its ports may have.
    pub(super) fn connect_stack(registry: &mut Registry, key: NicKey) {
        let Some(shared) = registry.shared.get_mut(&key) else { return };
        let holder = shared.stack.and_then(|id| registry.ports.get_mut(id));
        let stack = holder.and_then(|port| port.get_mut::<Nic>()?.stack.as_mut());
        // Refused filters were when they were installed.
        if let Ok(Some(ending)) = shared.connect(stack) {
            registry.deferred.end_off_loop(key, ending);
        }
    }

    /// A port of an interface that has gone: all that was made of the interface goes, although
    /// programs still have the port.
    pub(super) fn interface_gone(registry: &mut Registry, id: PortId) {
        let Some(nic) = registry.port(id).get::<Nic>() else { return };
        let key = nic.key;
        if let Some(shared) = registry.shared.get_mut(&key) {
            let ending = shared.detach_programs();
            registry.deferred.end_off_loop(key, ending);
        }
        Nic::close_sockets(registry, id);
        registry.kept_sockets.forget(key);
    }

    /// The port has no queues any more, no stack, and, unless programs have it, no rings. From here on the
    /// interface's number may be another one's.
    pub(super) fn close_sockets(registry: &mut Registry, id: PortId) {
        let Some(port) = registry.ports.get_mut(id) else { return };
        let uid = port.uid;
        let Some(nic) = port.get_mut::<Nic>() else { return };
        let key = nic.key;
        for (queue, socket) in nic.sockets.iter().flat_map(Sockets::all) {
            if let Some(socket) = socket.xdp() {
                let interface = (nic.interface.name.as_str(), nic.netns.inode());
                registry.kept_sockets.add(socket, queue, key, interface, uid);
            }
        }
        let closed = (nic.sockets.take(), nic.stack.take());
        let leaving = registry.shared.get_mut(&key).map(|shared| shared.leave(id));
        Nic::connect_stack(registry, key);
        let is_last = leaving.as_ref().is_some_and(|leaving| leaving.last);
        // Nothing is left of it, unless that could not be ended.
        let rest = is_last.then(|| registry.shared.remove(&key)).flatten();
        let Some(port) = registry.ports.get_mut(id) else { return };
        let rings = port.is_unused().then(|| (port.region, port.take_rings()));
        // First the kernel lets go of the buffers, then they are free.
        let closed = (closed, leaving, rest);
        registry.deferred.close_with_rings(key, closed, rings, &mut registry.regions);
    }
}
