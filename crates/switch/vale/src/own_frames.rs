//! Frames that the worker sends by a port to find loops. No counter of the port has them: what its counters say is what others
//! have sent, and was received. But what waits for the kernel, and what that has refused, has them among the others, in their
//! order.

use ringway_switch_port::{Delivered, Drops, Unsent};

/// Those of a port.
#[derive(Debug, Default)]
pub(crate) struct OwnFrames {
    /// Packets of others that the kernel has refused, and packets of the worker's own.
    refused: u64,
    sent: u64,
    /// Those that may wait for the kernel, and how many packets, with them, were delivered by then: when so many have
    /// left, they have.
    waiting: Delivered,
    behind: u64,
}

impl OwnFrames {
    /// Some were delivered behind all that was `received` so far.
    pub fn add(&mut self, delivered: Delivered, received: u64) {
        self.sent += delivered.packets;
        self.waiting += delivered;
        self.behind = self.all(received);
    }

    /// What of others' packets is unsent, of which so many were `received` before this.
    pub fn without(&mut self, unsent: Unsent, received: u64) -> Unsent {
        let Unsent { mut refused, mut waiting } = unsent;
        if self.waiting.packets > 0 && refused.packets > 0 {
            // It may be one of those in front of them, too. Most often the link has gone, and all are refused.
            take(&mut refused, std::mem::take(&mut self.waiting));
        }
        if self.all(received).saturating_sub(waiting.packets) >= self.behind {
            self.waiting = Delivered::default();
        }
        self.refused += refused.packets;
        take(&mut waiting, self.waiting);
        Unsent { refused, waiting }
    }

    /// All packets that were delivered, of which the counters have `received`.
    fn all(&self, received: u64) -> u64 {
        received + self.refused + self.sent
    }
}

/// Takes `own` refused frames off the counters, which were `too_long` and `ring_full` before those were counted. They are
/// short: there was no room for them.
#[cold]
pub(crate) fn uncount(own: u64, [too_long, ring_full]: [u64; 2], drops: &mut Drops) {
    let no_room = own.min(drops.ring_full - ring_full);
    drops.ring_full -= no_room;
    drops.too_long -= (own - no_room).min(drops.too_long - too_long);
}

fn take(from: &mut Delivered, Delivered { packets, bytes }: Delivered) {
    from.packets = from.packets.saturating_sub(packets);
    from.bytes = from.bytes.saturating_sub(bytes);
}
