//! What a port has lost since the handle was activated.
//!
//! The ring's driver and the switch's worker count in shared memory. Reading the counters allocates nothing and asks no
//! daemon, so a signal handler may do it.

use ringway::{BoundRing, Port};
use ringway_abi::Dir;

/// The counters of a port when its handle was activated, to subtract.
pub struct Losses {
    before: [u32; 2],
}

impl Losses {
    pub fn of(port: &Port) -> Losses {
        Losses { before: lost(port) }
    }

    /// Of another port, counted on from what was `lost` before.
    pub fn after(lost: [u32; 2], port: &Port) -> Losses {
        let Losses { before } = Losses::of(port);
        Losses { before: [0, 1].map(|i| before[i].wrapping_sub(lost[i])) }
    }

    /// Packets that found no room, and those that were refused for another reason; as libpcap counts, modulo
    /// 2^32.
    pub fn so_far(&self, port: &Port) -> [u32; 2] {
        let lost = lost(port);
        [0, 1].map(|i| lost[i].wrapping_sub(self.before[i]))
    }
}

/// Sums over the receive rings what their drivers and the switch's worker have counted.
fn lost(port: &Port) -> [u32; 2] {
    let add = |[no_room, refused]: [u64; 2], ring: &BoundRing| {
        let (stats, [found_full, too_long]) = (ring.stats(), ring.kring().csb().service.lost());
        [
            no_room.wrapping_add(stats.ring_full).wrapping_add(found_full),
            refused
                .wrapping_add(stats.too_long)
                .wrapping_add(stats.bad_slot)
                .wrapping_add(too_long),
        ]
    };
    port.binding().rings(Dir::Rx).iter().fold([0; 2], add).map(|all| all as u32)
}
