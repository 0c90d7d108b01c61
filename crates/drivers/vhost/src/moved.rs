//! What became of frames.

use std::ops::AddAssign;

/// What a turn, or many of them, have moved one way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Frames that have arrived on the other side.
    pub frames: u64,
    /// Their bytes, without headers of offloads.
    pub bytes: u64,
    /// Frames longer than IP's longest packet, or than all buffers that the guest has offered.
    pub too_long: u64,
    /// Frames without an Ethernet header, or without the header in front of it.
    pub too_short: u64,
    /// Frames whose header asks for what cannot be done to them.
    pub bad_offload: u64,
    /// Segments for which the guest had no buffers left.
    pub no_buffers: u64,
    /// Frames of a queue that the guest has disabled.
    pub disabled: u64,
    /// Frames for a guest that was not there: they came before its driver was up, or waited for it at the end.
    pub not_taken: u64,
    /// Whether the turn ended as there was no room on the other side.
    pub no_room: bool,
}

impl Moved {
    /// Frames that went nowhere.
    pub fn dropped(&self) -> u64 {
        let &Moved { too_long, too_short, bad_offload, no_buffers, disabled, not_taken, .. } = self;
        too_long + too_short + bad_offload + no_buffers + disabled + not_taken
    }

    /// Whether the turn has done anything at all.
    pub fn is_something(&self) -> bool {
        self.frames + self.dropped() > 0
    }
}

impl AddAssign for Moved {
    fn add_assign(&mut self, other: Moved) {
        self.frames += other.frames;
        self.bytes += other.bytes;
        self.too_long += other.too_long;
        self.too_short += other.too_short;
        self.bad_offload += other.bad_offload;
        self.no_buffers += other.no_buffers;
        self.disabled += other.disabled;
        self.not_taken += other.not_taken;
        self.no_room |= other.no_room;
    }
}
