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

/// Of all receive rings.
fn lost(port: &Port) -> [u32; 2] {
    let add = |all: [u64; 2], lost: [u64; 2]| [0, 1].map(|i| all[i].wrapping_add(lost[i]));
    let lost = port.binding().rings(Dir::Rx).iter().map(BoundRing::lost).fold([0; 2], add);
    lost.map(|all| all as u32)
}
