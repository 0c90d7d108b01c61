//! Where packets go: the forwarding function decides, the others receive.

use crate::{
    config::PortConfig,
    frame::{Burst, Fate, Frame},
    function::{Forward, Packet, Way},
    port::{Delivered, Drops, Port, PortIndex, Totals},
    vnet::Converter,
};

/// A port with what the bridge knows of it.
pub(crate) struct Member {
    pub port: Box<dyn Port>,
    pub config: PortConfig,
    pub totals: Totals,
    /// Something was delivered, or freed, since the last flush.
    pub touched: bool,
    /// As much in an earlier round: whoever waits for it may not have been woken yet.
    pub owed: bool,
}

/// The members by index; the one whose packets are on their way is out of its place.
pub(crate) type Members = [Option<Member>];

/// Sends the packets of `burst` on their way.
///
/// Neighbours mostly go the same way, so they are handed over in runs: the decision is made for
/// each packet, everything else once a run. The order of packets stays, per destination.
pub(crate) fn forward(
    function: &mut (impl Forward + ?Sized),
    burst: &Burst<'_>,
    others: &mut Members,
    converter: &mut Converter,
    drops: &mut Drops,
) {
    let mut decide = |frame: &Frame| match frame.fate {
        Fate::Fine => Some(function.decide(&Packet { frame, burst })),
        _ => None,
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
        if let Some(way) = way {
            dispatch(way, run, burst, others, converter, drops);
        }
    }
}

/// Hands a run of packets over. A receiver that is full counts what it loses.
fn dispatch(
    way: Way,
    run: &[Frame],
    burst: &Burst<'_>,
    others: &mut Members,
    converter: &mut Converter,
    drops: &mut Drops,
) {
    let mut to_port = |port: PortIndex, ring| {
        let to = others.get_mut(usize::from(port)).and_then(Option::as_mut);
        to.is_some_and(|to| deliver(to, ring, run, burst, converter, drops))
    };
    let reached = match way {
        Way::Port(port) => to_port(port, burst.source.ring),
        Way::Ring(port, ring) => to_port(port, ring.into()),
        Way::Flood => {
            let mut reached = false;
            for to in others.iter_mut().flatten() {
                reached |= deliver(to, 0, run, burst, converter, drops);
            }
            reached
        }
        Way::Drop => {
            drops.filtered += run.len() as u64;
            return;
        }
    };
    if !reached {
        drops.no_destination += run.len() as u64;
    }
}

/// Whether there was somebody to deliver to. What the sender got wrong counts in `drops`.
fn deliver(
    to: &mut Member,
    ring: usize,
    run: &[Frame],
    burst: &Burst<'_>,
    converter: &mut Converter,
    drops: &mut Drops,
) -> bool {
    if !to.port.receives() {
        return false;
    }
    let alike = to.config.header_len == burst.source.header_len && !burst.apart;
    let Delivered { packets, bytes } = if alike {
        to.port.deliver(ring, run, burst, &mut to.totals.drops)
    } else {
        converter.deliver(to, ring, run, burst, drops)
    };
    to.totals.received_packets += packets;
    to.totals.received_bytes += bytes;
    to.touched |= packets > 0;
    true
}

/// Counts what a port has sent, once its slots are given back.
pub(crate) fn account(frames: &[Frame], totals: &mut Totals) {
    let mut odd = false;
    for frame in frames {
        totals.sent_bytes += u64::from(frame.len);
        odd |= frame.fate != Fate::Fine || frame.spoilt != 0;
    }
    totals.sent_packets += frames.len() as u64;
    if odd {
        for frame in frames {
            totals.drops.bad_slot += u64::from(frame.spoilt);
            match frame.fate {
                Fate::Fine => {}
                Fate::TooShort => totals.drops.too_short += 1,
                Fate::BadSlot => {
                    totals.drops.bad_slot += 1;
                    totals.sent_packets -= 1;
                }
            }
        }
    }
}
