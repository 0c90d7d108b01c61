//! Where a packet goes: learn the source, look up the destination, deliver or flood.

use crate::{
    frame::{Burst, Frame, is_group},
    port::{Delivered, Drops, Port, PortIndex, Totals},
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

/// Where a packet goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    To(PortIndex),
    Flood,
    /// Too short to have a destination.
    Nowhere,
}

/// Sends the packets of `burst`, which came from ring `ring` of port `source`, on their way.
///
/// Neighbours mostly go the same way, so they are handed over in runs: the decision is made for
/// each packet, everything else once a run. The order of packets stays, per destination.
pub(crate) fn forward(
    source: PortIndex,
    ring: usize,
    burst: &Burst<'_>,
    last_source: &mut u64,
    table: &mut Table,
    others: &mut Members,
    drops: &mut Drops,
) {
    let mut decide = |frame: &Frame| {
        if frame.len == 0 {
            return Way::Nowhere;
        }
        let (dst, src) = (frame.dst(), frame.src());
        if src != *last_source && !is_group(src) {
            *last_source = src;
            table.learn(src, source);
        }
        let known = if is_group(dst) { None } else { table.lookup(dst) };
        known.map_or(Way::Flood, Way::To)
    };
    let mut rest = &burst.frames[..];
    let mut next = rest.first().map(&mut decide);
    while let Some(way) = next {
        let mut len = 1;
        next = loop {
            match rest.get(len).map(&mut decide) {
                Some(same) if same == way => len += 1,
                other => break other,
            }
        };
        let (run, behind) = rest.split_at(len);
        rest = behind;
        dispatch(way, ring, run, burst, others, drops);
    }
}

/// Hands a run of packets over. A receiver that is full counts what it loses.
fn dispatch(
    way: Way,
    ring: usize,
    run: &[Frame],
    burst: &Burst<'_>,
    others: &mut Members,
    drops: &mut Drops,
) {
    let reached = match way {
        Way::Nowhere => {
            drops.too_short += run.len() as u64;
            return;
        }
        Way::To(index) => others
            .get_mut(usize::from(index))
            .and_then(Option::as_mut)
            .is_some_and(|to| deliver(to, ring, run, burst)),
        Way::Flood => {
            let mut reached = false;
            for to in others.iter_mut().flatten() {
                reached |= deliver(to, 0, run, burst);
            }
            reached
        }
    };
    if !reached {
        drops.no_destination += run.len() as u64;
    }
}

/// Whether there was somebody to deliver to.
fn deliver(to: &mut Member, ring: usize, run: &[Frame], burst: &Burst<'_>) -> bool {
    if !to.port.receives() {
        return false;
    }
    let Delivered { packets, bytes } = to.port.deliver(ring, run, burst, &mut to.totals.drops);
    to.totals.received_packets += packets;
    to.totals.received_bytes += bytes;
    to.touched |= packets > 0;
    true
}
