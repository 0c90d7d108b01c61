//! The forwarding function of a bridge, whose ports come and go.
//!
//! Users name ports; the worker knows their places. A port that is not there has no place, so that
//! nothing goes to a port that has got its place since; and it has its part again when it is back. Where flows are spread
//! over ports, others take its part meanwhile.

use ringway_proto::{Forwarding, Result};
use ringway_switch_port::PortIndex;
use ringway_vale::ABSENT;

use super::{BridgeEntry, Bridges, no_bridge};

/// The full name of a port that a forwarding function of `bridge` names.
pub(crate) fn full_name(bridge: &str, port: &str) -> String {
    match port.contains(':') {
        true => port.to_string(),
        false => format!("{bridge}:{port}"),
    }
}

impl Bridges {
    /// Has a bridge forward by `forwarding`.
    pub fn forward(&mut self, bridge: &str, forwarding: Forwarding) -> Result<()> {
        let entry = self.find(bridge).ok_or_else(|| no_bridge(bridge))?;
        entry.use_forwarding(forwarding);
        self.lasting_changed = true;
        Ok(())
    }
}

impl BridgeEntry {
    pub(super) fn index(&self, port: &str) -> PortIndex {
        let full = full_name(&self.name, port);
        self.ports.iter().find(|entry| entry.name == full).map_or(ABSENT, |entry| entry.index)
    }

    /// Forwards so from now on. A function that it has already keeps what it has learned.
    pub(super) fn use_forwarding(&mut self, forwarding: Forwarding) {
        if !matches!(forwarding, Forwarding::Learning { .. }) {
            // What is away may stay away: it does not hold the switch to learning.
            self.settings.iter_mut().for_each(|it| it.max_addresses = None);
        }
        if self.forwarding != forwarding {
            self.forwarding = forwarding;
            self.apply_forwarding();
        }
    }

    pub(super) fn apply_forwarding(&self) {
        let index = |port: &String| self.index(port);
        self.worker.set_forwarding(&match &self.forwarding {
            Forwarding::Learning { ageing_seconds } => {
                ringway_vale::Forwarding::Learning { ageing_seconds: *ageing_seconds }
            }
            Forwarding::Static { addresses, flood_unknown } => ringway_vale::Forwarding::Static {
                addresses: addresses.iter().map(|(mac, port)| (*mac, index(port))).collect(),
                flood_unknown: *flood_unknown,
            },
            Forwarding::Hash { over, back } => ringway_vale::Forwarding::Hash {
                over: with_stand_ins(over.iter().map(index).collect()),
                back: back.as_ref().map(index),
            },
            Forwarding::Flood => ringway_vale::Forwarding::Flood,
        });
        if !self.statics.is_empty() {
            self.apply_statics();
        }
    }

    /// A port has come, or gone.
    pub(super) fn ports_changed(&self, full: &str) {
        let is_it = |port: &String| full_name(&self.name, port) == full;
        let named = match &self.forwarding {
            Forwarding::Learning { .. } | Forwarding::Flood => false,
            Forwarding::Static { addresses, .. } => addresses.iter().any(|(_, port)| is_it(port)),
            Forwarding::Hash { over, back } => over.iter().chain(back).any(is_it),
        };
        if named {
            self.apply_forwarding();
        }
        if self.statics.iter().any(|it| it.port == full) {
            self.apply_statics();
        }
        self.mirrored_ports_changed(full);
    }
}

/// Has ports that are there take the parts of those that are not, one after the other. They keep their own.
fn with_stand_ins(mut over: Vec<PortIndex>) -> Vec<PortIndex> {
    let there: Vec<_> = over.iter().copied().filter(|&port| port != ABSENT).collect();
    let absent = over.iter_mut().filter(|port| **port == ABSENT);
    absent.zip(there.iter().cycle()).for_each(|(port, &other)| *port = other);
    over
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_that_are_there_take_all_parts() {
        for (over, expected) in [
            (vec![], vec![]),
            (vec![3, 1, 2], vec![3, 1, 2]),
            (vec![3, ABSENT, 2], vec![3, 3, 2]),
            (vec![ABSENT, 1, ABSENT, 2, ABSENT], vec![1, 1, 2, 2, 1]),
            (vec![ABSENT, ABSENT], vec![ABSENT, ABSENT]),
        ] {
            assert_eq!(with_stand_ins(over.clone()), expected, "{over:?}");
        }
    }
}
