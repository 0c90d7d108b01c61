//! Ports that the worker of their switch has given up, because it panicked over them.
//!
//! Such a port's rings are stopped, and its programs are woken, as if its interface had gone; its name is
//! free at once. An interface goes back to the stack, and a persistent port goes; both come back after a
//! while, as when the daemon had been started anew. The switch goes on with its other ports; where its
//! worker has ended, it has lost them all, and a new worker.

use ringway_nic_setup::{Link, LinkState};
use ringway_proto::{EventKind, Level};

use crate::{
    bridges::BridgePortRef,
    clock,
    notices::Notice,
    port::{Port, PortId},
    registry::Registry,
    subject::Subject,
};

/// Gives up the ports that workers have lost since the last call.
pub(crate) fn give_up(registry: &mut Registry) {
    let ports = &registry.ports;
    let stays = |name: &str| {
        let port = ports.get(ports.named(name)?)?;
        port.backend.is_set_up().then_some(port.uid)
    };
    for (at, name) in registry.bridges.take_lost(stays) {
        let text =
            format!("BUG: a worker has panicked over {name}; the port is closed; please report it");
        registry.notices.add(Notice::new(Level::Error, EventKind::Bug, text).at(&name));
        lose_where(registry, |port| port.backend.bridge_ports().contains(&at));
        // A port that is on its way out is in no book but the bridge's.
        registry.close_place(&at);
    }
    lose_where(registry, |port| port.backend.has_lost_worker());
}

fn lose_where(registry: &mut Registry, is_it: impl Fn(&Port) -> bool) {
    let Registry { ports, bridges, expected, .. } = registry;
    let found = ports.iter().find(|(_, port)| is_it(port)).map(|(&id, _)| id);
    if let Some(id) = found {
        expected.expect_again(id, clock::now(), ports, bridges);
        lose(registry, id);
    }
}

/// The port has lost its place on a switch.
pub(crate) fn lose(registry: &mut Registry, id: PortId) {
    if registry.port(id).backend.is_set_up() {
        registry.watches.remove(id);
        let gone = Link { state: LinkState::Gone, mtu: 0 };
        return (registry.actions(id).link_changed)(registry, id, gone);
    }
    registry.stop(id);
    let side = registry.port_mut(id).backend.switch_side_mut();
    let at: Option<BridgePortRef> = side.and_then(|side| side.bridge_port.take());
    at.iter().for_each(|at| registry.close_place(at));
}

impl Registry {
    /// Takes off its switch what is in no book but the switch's.
    pub(crate) fn close_place(&mut self, at: &BridgePortRef) {
        let closed = self.bridges.detach(at);
        if closed.is_some() {
            self.deferred.close_off_loop(Subject::Switch(at.bridge.clone()), closed);
        }
    }
}
