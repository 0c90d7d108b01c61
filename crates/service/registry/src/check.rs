//! Whether the books agree: what [recovery](Registry::recover) counts anew is counted, and compared. For tests.

use ringway_abi::Dir;

use crate::{
    kinds::nic::Nic,
    port::{Port, PortId},
    recover::uses,
    registry::Registry,
    subject::Subject,
};

impl Registry {
    /// What does not agree, in words. It is to be empty after each request, each end of one, and each look at
    /// interfaces.
    pub fn disagreements(&self) -> Vec<String> {
        let mut all = Vec::new();
        self.check_names(&mut all);
        self.check_uses(&mut all);
        self.check_relations(&mut all);
        self.check_interfaces(&mut all);
        self.check_switches(&mut all);
        self.check_regions(&mut all);
        all
    }

    /// Each name leads to a port whose interface is there.
    fn check_names(&self, all: &mut Vec<String>) {
        for (name, id) in self.ports.names() {
            match self.ports.get(id) {
                None => all.push(format!("{name:?} leads to port {id}, which is none")),
                Some(port) if port.gone => all.push(format!("{name:?} leads to one that has gone")),
                Some(_) => {}
            }
        }
        for (name, subject) in self.ports.holders() {
            if !self.deferred.is_busy(subject) {
                all.push(format!("{name:?} is held, and nothing is done about {subject:?}"));
            }
        }
        let devices = self.ports.holders().filter(|(_, what)| matches!(what, Subject::Device(_)));
        if self.ports.held_persistent(|_| true) > devices.count() {
            all.push("places of persistent ports are held, and none are made".into());
        }
    }

    /// Users of ports and rings are those that bindings name.
    fn check_uses(&self, all: &mut Vec<String>) {
        let mut counted = uses(&self.handles, &self.ports);
        for (&id, port) in self.ports.iter() {
            let uses = counted.remove(&id).unwrap_or_default();
            let mut differ = |what: &str, has: u32, counted: u32| {
                if has != counted {
                    all.push(format!("{}: {has} {what}, and {counted} counted", port.name));
                }
            };
            differ("bindings", port.bindings, uses.bindings);
            differ("pipes", port.children, uses.children);
            differ("ways to the stack", port.host.forwarders, uses.forwarders);
            for (is_rx, dir) in [(false, Dir::Tx), (true, Dir::Rx)] {
                for (index, ring) in (0..).zip(port.rings(dir)) {
                    let (users, exclusive) =
                        uses.rings.get(&(is_rx, index)).copied().unwrap_or_default();
                    differ("users of a ring", ring.users, users);
                    differ("exclusive users", ring.exclusive.into(), exclusive.into());
                }
            }
            if !is_needed(self, port) {
                all.push(format!("{}: nothing needs it", port.name));
            }
        }
        for id in counted.keys() {
            all.push(format!("bindings name port {id}, which is none"));
        }
    }

    /// A pipe's ends are each other's, and of one region; what a monitor looks at is there.
    fn check_relations(&self, all: &mut Vec<String>) {
        for (&id, port) in self.ports.iter() {
            if let Some(peer) = port.backend.peer() {
                let other = self.ports.get(peer);
                if other.and_then(|other| other.backend.peer()) != Some(id) {
                    all.push(format!("{}: its other end is not its", port.name));
                }
                if other.is_some_and(|other| other.region != port.region) {
                    all.push(format!("{}: its ends are of two regions", port.name));
                }
            }
            if port.backend.parent().is_some_and(|parent| self.ports.get(parent).is_none()) {
                all.push(format!("{}: its parent is none", port.name));
            }
        }
        for (_, binding) in self.handles.bindings() {
            let port = self.ports.get(binding.port);
            if port.is_some_and(|port| port.region != binding.region) {
                all.push(format!("a binding of port {} is of another region", binding.port));
            }
        }
    }

    /// What ports share of an interface is theirs.
    fn check_interfaces(&self, all: &mut Vec<String>) {
        for (key, shared) in &self.shared {
            let nic = |id: PortId| self.ports.get(id).and_then(Port::get::<Nic>);
            let theirs = |id: PortId| nic(id).filter(|nic| nic.key == *key);
            for id in shared.ports() {
                if theirs(id).is_none() {
                    all.push(format!("interface {key:?}: port {id} is not its"));
                }
            }
            for (queue, id) in shared.holders() {
                let sockets = theirs(id).and_then(|nic| nic.sockets.as_ref());
                if sockets.and_then(|sockets| sockets.get(queue)).is_none() {
                    all.push(format!(
                        "interface {key:?}: queue {queue} has a holder, and no socket"
                    ));
                }
            }
            // A request that has taken the last queue from a port is about to open it.
            let is_awaited = self.ports.iter().any(|(_, port)| {
                port.awaited > 0 && port.get::<Nic>().is_some_and(|nic| nic.key == *key)
            });
            let has_queue = shared.holders().next().is_some();
            if !is_awaited && has_queue != shared.attachment().is_some() {
                all.push(format!(
                    "interface {key:?}: it is directed without a queue, or not with one"
                ));
            }
        }
        for (&id, port) in self.ports.iter() {
            let Some(nic) = port.get::<Nic>() else { continue };
            let queues = nic.sockets.iter().flat_map(|sockets| sockets.all());
            for (queue, _) in queues {
                let holder = self.shared.get(&nic.key).and_then(|shared| shared.holder(queue));
                if holder != Some(id) {
                    all.push(format!(
                        "{}: it has queue {queue}, whose holder is {holder:?}",
                        port.name
                    ));
                }
            }
        }
    }

    /// Each place on a switch is a port's.
    fn check_switches(&self, all: &mut Vec<String>) {
        let there: Vec<_> = self.bridges.places().collect();
        let claimed: Vec<_> =
            self.ports.iter().flat_map(|(_, port)| port.backend.bridge_ports()).collect();
        for place in &there {
            let claims = claimed.iter().filter(|claim| *claim == place).count();
            if claims != 1 {
                all.push(format!("place {} of {}: {claims} ports", place.index, place.bridge));
            }
        }
        for bridge in self.bridges.wrong_statics() {
            all.push(format!("{bridge}: its worker has other static addresses"));
        }
        for bridge in self.bridges.wrong_mirrors() {
            all.push(format!("{bridge}: its worker has other mirrors"));
        }
        for place in claimed.iter().filter(|place| !there.contains(place)) {
            all.push(format!("place {} of {} is none", place.index, place.bridge));
        }
    }

    /// Regions have as many objects taken as ports and bindings have, and live as long as something is theirs.
    fn check_regions(&self, all: &mut Vec<String>) {
        for key in self.regions.keys() {
            let ports = self.ports.iter().filter(|(_, port)| port.region == key);
            let mut rings: usize = ports.clone().map(|(_, port)| port.all_rings().count()).sum();
            let mut count = ports.count() as u32;
            let left = self.leftovers.rings().chain(self.deferred.rings());
            for (_, left) in left.filter(|(region, _)| *region == key) {
                rings += left.len();
                count += 1;
            }
            let ifs = self.handles.bindings().filter(|(_, binding)| binding.region == key).count();
            let taken = self.regions.taken(key);
            if taken != (count, rings, ifs) {
                all.push(format!(
                    "a region has (ports, rings, interface objects) {taken:?}, and {:?} counted",
                    (count, rings, ifs)
                ));
            }
        }
    }
}

/// Whether anything refers to a port, or it stays by itself.
fn is_needed(registry: &Registry, port: &Port) -> bool {
    port.bindings + port.children + port.awaited > 0 || port.backend.stays(registry)
}

impl Registry {
    /// Whether switches have yet to let go of ports that have gone.
    pub fn is_draining(&self) -> bool {
        self.leftovers.rings().next().is_some()
    }
}

/// Panics over each frame, whichever port it is of.
struct Panics;

impl ringway_vale::Forward for Panics {
    fn decide(&mut self, _packet: &ringway_vale::Packet<'_>) -> ringway_vale::Verdict {
        assert!(crate::fault::FAULT.is_empty(), "{}", crate::fault::FAULT);
        ringway_vale::Verdict::Drop
    }
}

impl Registry {
    /// From now on the worker of a switch panics over each frame.
    pub fn panic_over_frames(&mut self, bridge: &str) {
        self.bridges.set_function(bridge, Box::new(Panics));
    }
}
