//! What a port has lost since the handle was activated.

use ringway::{BoundRing, Control, Port, Stats};
use ringway_abi::Dir;

/// Counts it: from the port's rings, and, for a port of a switch, from what the switch has counted of it.
pub struct Losses {
    /// Opened with the port: later the program may have neither the rights nor the way to the daemon.
    switch: Option<Control>,
    before: [u32; 2],
}

impl Losses {
    /// `switch` is where the switch of the port can be asked, if it has one.
    pub fn of(port: &Port, switch: Option<Control>) -> Losses {
        let losses = Losses { switch, before: [0; 2] };
        Losses { before: losses.so_far(port), ..losses }
    }

    /// Of another port, counted on from what was `lost` before.
    pub fn after(lost: [u32; 2], port: &Port, switch: Option<Control>) -> Losses {
        let losses = Losses::of(port, switch);
        Losses { before: [0, 1].map(|i| losses.before[i].wrapping_sub(lost[i])), ..losses }
    }

    /// Packets that found no room, and those that were refused for another reason; as libpcap counts, modulo
    /// 2^32.
    pub fn so_far(&self, port: &Port) -> [u32; 2] {
        let [of_rings, of_switch] = [of_rings(port), self.of_switch(port.name())];
        let all = [0, 1].map(|i| of_rings[i].wrapping_add(of_switch[i]) as u32);
        [0, 1].map(|i| all[i].wrapping_sub(self.before[i]))
    }

    /// None where the switch cannot be asked any more.
    fn of_switch(&self, name: &str) -> [u64; 2] {
        let switches = self.switch.as_ref().and_then(|control| control.switches().ok());
        let mut ports = switches.into_iter().flatten().flat_map(|switch| switch.ports);
        let drops = ports.find(|port| port.name == name).map(|port| port.totals.drops);
        drops.map_or([0; 2], |drops| [drops.ring_full, drops.too_long])
    }
}

fn of_rings(port: &Port) -> [u64; 2] {
    let add = |[drops, refused]: [u64; 2], stats: Stats| {
        [
            drops.wrapping_add(stats.ring_full),
            refused.wrapping_add(stats.too_long).wrapping_add(stats.bad_slot),
        ]
    };
    port.binding().rings(Dir::Rx).iter().map(BoundRing::stats).fold([0; 2], add)
}
