//! Which host rings a port has.

use ringway_abi::Dir;

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
