//! Ports that the worker of their switch has given up, because it panicked over them.
//!
//! Such a port's rings are stopped, and its programs are woken, as if its interface had gone; its name is
//! free at once. An interface goes back to the stack, and a persistent port goes; both come back after a
//! while, as when the daemon had been started anew. The switch goes on with its other ports; where its
//! worker has ended, it has lost them all, and a new worker.

use std::time::Instant;

use ringway_nic_setup::{Link, LinkState};

use crate::{bridges::BridgePortRef, port::PortId, registry::Registry};

impl Registry {
    /// Gives up the ports that workers have lost since the last call.
    pub(crate) fn give_up_lost_ports(&mut self) {
        let ports = &self.ports;
        let stays = |name: &str| {
            let port = ports.get(ports.named(name)?)?;
            port.backend.is_set_up().then_some(port.uid)
        };
        for (at, name) in self.bridges.take_lost(stays) {
            self.notices.add(format!(
                "BUG: a worker has panicked over {}; the port is closed; please report it",
                name.escape_debug()
            ));
            let is_its = |port: &crate::port::Port| port.backend.bridge_ports().contains(&at);
            self.lose_port_where(is_its);
            // A port that is on its way out is in no book but the bridge's.
            self.bridges.detach(&at);
        }
        self.lose_port_where(|port| port.backend.has_lost_worker());
    }

    fn lose_port_where(&mut self, is_it: impl Fn(&crate::port::Port) -> bool) {
        let found = self.ports.iter().find(|(_, port)| is_it(port)).map(|(&id, _)| id);
        if let Some(id) = found {
            self.expect_again(id, Instant::now());
            self.lose_port(id);
        }
    }

    pub(crate) fn lose_port(&mut self, id: PortId) {
        if self.port(id).backend.is_set_up() {
            self.watches.remove(id);
            let gone = Link { state: LinkState::Gone, mtu: 0 };
            return (self.actions(id).link_changed)(self, id, gone);
        }
        self.stop(id);
        let side = self.port_mut(id).backend.switch_side_mut();
        let at: Option<BridgePortRef> = side.and_then(|side| side.bridge_port.take());
        at.iter().for_each(|at| self.bridges.detach(at));
    }
}
