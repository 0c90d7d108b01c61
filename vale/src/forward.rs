//! Where a packet goes: learn the source, look up the destination, deliver or flood.

use crate::{
    frame::{Burst, Frame, is_group},
    port::{Drops, Port, PortIndex, Totals},
    table::Table,
};

/// A port with what the bridge knows of it.
pub(crate) struct Member {
    pub port: Box<dyn Port>,
    pub totals: Totals,
    /// Source address that this port used last: most packets repeat it.
    pub last_source: u64,
    /// Something was delivered, or freed, since the last flush.
    pub touched: bool,
    /// As much in an earlier round: whoever waits for it may not have been woken yet.
    pub owed: bool,
}

/// The members by index; the one whose packets are on their way is out of its place.
pub(crate) type Members = [Option<Member>];

/// Sends the packets of `burst`, which came from ring `ring` of port `source`, on their way.
pub(crate) fn forward(
    source: PortIndex,
    ring: usize,
    burst: &Burst<'_>,
    last_source: &mut u64,
    table: &mut Table,
    others: &mut Members,
    drops: &mut Drops,
) {
    for frame in &burst.frames {
        if frame.len == 0 {
            drops.too_short += 1;
            continue;
        }
        let (dst, src) = (frame.dst(), frame.src());
        if src != *last_source && !is_group(src) {
            *last_source = src;
            table.learn(src, source);
        }
        let known = if is_group(dst) { None } else { table.lookup(dst) };
        let reached = match known {
            Some(index) => others
                .get_mut(usize::from(index))
                .and_then(Option::as_mut)
                .is_some_and(|to| deliver(to, ring, frame, burst)),
            None => flood(others, frame, burst),
        };
        if !reached {
            drops.no_destination += 1;
        }
    }
}

/// Whether there was somebody to deliver to. A receiver that was full has counted it.
#[inline]
fn deliver(to: &mut Member, ring: usize, frame: &Frame, burst: &Burst<'_>) -> bool {
    if !to.port.receives() {
        return false;
    }
    if to.port.deliver(ring, frame, burst, &mut to.totals.drops) {
        to.totals.received_packets += 1;
        to.totals.received_bytes += u64::from(frame.len);
        to.touched = true;
    }
    true
}

fn flood(others: &mut Members, frame: &Frame, burst: &Burst<'_>) -> bool {
    let mut reached = false;
    for to in others.iter_mut().flatten() {
        reached |= deliver(to, 0, frame, burst);
    }
    reached
}
