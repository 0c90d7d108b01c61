//! Where packets were lost, and why.

use crate::error::Result;
use ringway::{BridgePortInfo, Control, FileSpec, Port, PortKind, RingInfo, Stats};
use serde::Serialize;
use std::fmt;

/// Packets dropped at a port, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Drops {
    /// Sent, but nobody else on the switch was there to get it.
    pub no_destination: u64,
    /// Sent from a slot with an invalid buffer or length.
    pub bad_slot: u64,
    /// Sent, but shorter than an Ethernet header.
    pub too_short: u64,
    /// Times that a ring's indices were wrong.
    pub bad_index: u64,
    /// Sent, and dropped by the switch's forwarding function.
    pub filtered: u64,
    /// Sent, but its virtio-net header asks for what cannot be done.
    pub bad_offload: u64,
    /// Not sent or not received: of a VLAN that the port is not in.
    pub vlan: u64,
    /// Sent, but with a source address that the port may not send with.
    pub spoofed: u64,
    /// Received by an interface with a source address that no machine has: a group's, or zero.
    pub bad_source: u64,
    /// Sent or not received: the port's filter does not match it.
    pub denied: u64,
    /// Sent, but more than the port may send.
    pub over_rate: u64,
    /// Sent, but more than the port may flood.
    pub storm: u64,
    /// Sent to all, to another group, or to an address that is not known: more of such frames than the port may flood.
    pub storm_broadcast: u64,
    pub storm_multicast: u64,
    pub storm_unknown: u64,
    /// Sent, and still in the ring when its daemon ended, or received and not read by then. No switch counts these.
    #[serde(skip_serializing_if = "is_none")]
    pub daemon_ended: u64,
    /// Sent to a capture file, and not written: the disk, or the reader of a pipe, was too slow or has failed. No ring
    /// has such a counter: that of a file counts them as `ring_full`.
    #[serde(skip_serializing_if = "is_none")]
    pub not_written: u64,
    /// Not received: no free slot in the ring.
    pub ring_full: u64,
    /// Not received: longer than a buffer.
    pub too_long: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
fn is_none(count: &u64) -> bool {
    *count == 0
}

impl Drops {
    /// What a switch has counted for one of its ports.
    pub fn at(port: &BridgePortInfo) -> Drops {
        let drops = port.totals.drops;
        Drops {
            no_destination: drops.no_destination,
            bad_slot: drops.bad_slot,
            too_short: drops.too_short,
            bad_index: drops.bad_index,
            filtered: drops.filtered,
            bad_offload: drops.bad_offload,
            vlan: drops.vlan,
            spoofed: drops.spoofed,
            bad_source: drops.bad_source,
            denied: drops.denied,
            over_rate: drops.over_rate,
            storm: drops.storm,
            storm_broadcast: drops.storm_broadcast,
            storm_multicast: drops.storm_multicast,
            storm_unknown: drops.storm_unknown,
            daemon_ended: 0,
            not_written: 0,
            ring_full: drops.ring_full,
            too_long: drops.too_long,
        }
    }

    /// What a ring has counted, with the kernel's part.
    pub fn of_ring(ring: &RingInfo) -> Drops {
        let &RingInfo { bad_index, bad_slot, too_long, ring_full, too_short, bad_offload, .. } =
            ring;
        Drops {
            bad_index,
            bad_slot,
            too_long,
            ring_full,
            too_short,
            bad_offload,
            ..Drops::default()
        }
    }

    /// What rings have counted.
    fn of_rings(rings: Stats) -> Drops {
        let Stats { bad_index, bad_slot, too_long, ring_full, too_short, bad_offload, .. } = rings;
        Drops {
            bad_index,
            bad_slot,
            too_long,
            ring_full,
            too_short,
            bad_offload,
            ..Drops::default()
        }
    }

    /// Of what a switch counts for a port: what was lost on its way out of the port's program.
    fn sending(&self) -> u64 {
        let wrong = self.bad_slot + self.too_short + self.bad_index + self.bad_offload;
        let wrong = wrong + self.spoofed + self.bad_source;
        let storms = self.storm + self.storm_broadcast + self.storm_multicast + self.storm_unknown;
        let unsent = self.over_rate + storms + self.daemon_ended + self.not_written;
        self.no_destination + self.filtered + unsent + wrong
    }

    /// The same: what was lost on its way to the program. A receive ring loses nothing else.
    fn receiving(&self) -> u64 {
        self.ring_full + self.too_long
    }

    /// The same: what was lost on either way, of which the switch has one count.
    fn either(&self) -> u64 {
        self.vlan + self.denied
    }

    pub fn total(&self) -> u64 {
        self.sending() + self.receiving() + self.either()
    }

    fn reasons(&self) -> [(&'static str, u64); 19] {
        [
            ("no destination", self.no_destination),
            ("bad slot", self.bad_slot),
            ("too short", self.too_short),
            ("bad index", self.bad_index),
            ("filtered", self.filtered),
            ("bad offload", self.bad_offload),
            ("vlan", self.vlan),
            ("spoofed", self.spoofed),
            ("bad source", self.bad_source),
            ("denied", self.denied),
            ("over rate", self.over_rate),
            ("storm", self.storm),
            ("storm broadcast", self.storm_broadcast),
            ("storm multicast", self.storm_multicast),
            ("storm unknown", self.storm_unknown),
            ("daemon ended", self.daemon_ended),
            ("not written", self.not_written),
            ("ring full", self.ring_full),
            ("too long", self.too_long),
        ]
    }

    /// Of each reason, what `with` makes of both.
    pub fn merge(self, other: Drops, with: impl Fn(u64, u64) -> u64) -> Drops {
        Drops {
            no_destination: with(self.no_destination, other.no_destination),
            bad_slot: with(self.bad_slot, other.bad_slot),
            too_short: with(self.too_short, other.too_short),
            bad_index: with(self.bad_index, other.bad_index),
            filtered: with(self.filtered, other.filtered),
            bad_offload: with(self.bad_offload, other.bad_offload),
            vlan: with(self.vlan, other.vlan),
            spoofed: with(self.spoofed, other.spoofed),
            bad_source: with(self.bad_source, other.bad_source),
            denied: with(self.denied, other.denied),
            over_rate: with(self.over_rate, other.over_rate),
            storm: with(self.storm, other.storm),
            storm_broadcast: with(self.storm_broadcast, other.storm_broadcast),
            storm_multicast: with(self.storm_multicast, other.storm_multicast),
            storm_unknown: with(self.storm_unknown, other.storm_unknown),
            daemon_ended: with(self.daemon_ended, other.daemon_ended),
            not_written: with(self.not_written, other.not_written),
            ring_full: with(self.ring_full, other.ring_full),
            too_long: with(self.too_long, other.too_long),
        }
    }
}

impl fmt::Display for Drops {
    /// The reasons that occurred: `3 no destination, 5 ring full`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&occurred(&self.reasons()))
    }
}

/// Those that are not 0: `3 no destination, 5 ring full`.
pub fn occurred(counters: &[(&str, u64)]) -> String {
    let occurred = counters.iter().filter(|(_, n)| *n > 0);
    let texts: Vec<_> = occurred.map(|(reason, n)| format!("{n} {reason}")).collect();
    if texts.is_empty() { "none".into() } else { texts.join(", ") }
}

/// Follows the drops of an open port, also when it is [opened again](DropBook::reopened).
///
/// Its own rings count some, and, if it is on a switch, the switch counts others.
pub struct DropBook {
    switch: Option<Control>,
    /// When the port was opened, and now.
    before: Counted,
    now: Counted,
    /// Of the ports before it.
    kept: Counted,
}

/// What has counted drops of an open port: its transmit rings, its receive rings, and the switch.
type Counted = [Drops; 3];

/// What was dropped at an open port, by reason; and how much of that on each way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortDrops {
    pub all: Drops,
    /// On the way out of the program.
    pub sending: u64,
    /// On the way to the program.
    pub receiving: u64,
    /// On one way or the other: the port's VLANs and filters drop on both, and the switch counts these together.
    pub either: u64,
}

impl PortDrops {
    fn of([tx, rx, switch]: Counted) -> PortDrops {
        let sum = |a: Drops, b: Drops| a.merge(b, |a, b| a + b);
        PortDrops {
            all: sum(sum(tx, rx), switch),
            // A transmit ring counts there what the driver or the kernel has not sent.
            sending: tx.total() + switch.sending(),
            receiving: rx.receiving() + rx.daemon_ended + switch.receiving(),
            either: switch.either(),
        }
    }

    /// Of a port that only sends: what it counts without a way was on this.
    pub fn if_it_sends(&self) -> u64 {
        self.sending + self.either
    }

    /// The same of a port that only receives.
    pub fn if_it_receives(&self) -> u64 {
        self.receiving + self.either
    }
}

impl DropBook {
    /// Begins at zero: what happened to the port before is not ours.
    pub fn open(port: &Port) -> Result<DropBook> {
        let none = Counted::default();
        let mut book = DropBook { switch: None, before: none, now: none, kept: none };
        book.begin(port)?;
        Ok(book)
    }

    fn begin(&mut self, port: &Port) -> Result<()> {
        if port.kind() == PortKind::Vale {
            self.switch = Some(Control::connect()?);
        }
        self.count(port)?;
        self.before = self.now;
        Ok(())
    }

    /// The drops since [`DropBook::open`]; of a daemon that has ended those that it has told before.
    pub fn read(&mut self, port: &Port) -> PortDrops {
        // The daemon may have ended.
        let _ = self.count(port);
        PortDrops::of(self.since())
    }

    /// The same after [`DropBook::ended`], when there is no port.
    pub fn kept(&self) -> PortDrops {
        PortDrops::of(self.since())
    }

    /// The daemon of the port has ended: [shuts](Port::shut) it. Returns how many frames were in its rings.
    pub fn ended(&mut self, port: &mut Port) -> u64 {
        let _ = self.count(port);
        self.kept = self.since();
        self.before = self.now;
        let (unread, unsent) = (port.unread(), port.shut());
        self.kept[0].daemon_ended += unsent;
        self.kept[1].daemon_ended += unread;
        unread + unsent
    }

    /// The port has been opened again.
    pub fn reopened(&mut self, port: &Port) {
        // Where the daemon has ended once more, the next wait for the port says so.
        let _ = self.begin(port);
    }

    fn since(&self) -> Counted {
        let since = |at: usize| {
            let now = self.now[at].merge(self.before[at], u64::saturating_sub);
            now.merge(self.kept[at], |a, b| a + b)
        };
        [0, 1, 2].map(since)
    }

    fn count(&mut self, port: &Port) -> Result<()> {
        if port.is_shut() {
            return Ok(());
        }
        let [mut tx, mut rx] = [port.tx_stats(), port.rx_stats()].map(Drops::of_rings);
        if FileSpec::is_file(port.name()) {
            (tx.not_written, tx.ring_full) = (tx.ring_full, 0);
        }
        if self.switch.is_some() {
            // The switch counts the others, but for those that the port's program has noted there itself.
            let indices = |Drops { bad_index, .. }| Drops { bad_index, ..Drops::default() };
            (tx, rx) = (indices(tx), indices(rx));
        }
        (self.now[0], self.now[1]) = (tx, rx);
        if let Some(switch) = &self.switch {
            let switches = switch.switches()?;
            let mut ports = switches.iter().flat_map(|switch| &switch.ports);
            let found = ports.find(|found| found.name == port.name());
            self.now[2] = found.map_or(Drops::default(), Drops::at);
        }
        Ok(())
    }
}

/// The drops of one port in the whole run, for the end of it.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "type", rename = "drops")]
pub struct Losses {
    pub port: String,
    #[serde(flatten)]
    pub drops: Drops,
    /// Sent, but never taken out of the ring by the other side.
    pub left: u64,
}

impl fmt::Display for Losses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "  drops at {}: {}", self.port, self.drops)?;
        match self.left {
            0 => Ok(()),
            left => write!(f, "; {left} left in the ring"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_reasons_that_occurred_are_named() {
        assert_eq!(Drops::default().to_string(), "none");
        let drops = Drops { no_destination: 3, ring_full: 5, ..Drops::default() };
        assert_eq!(drops.to_string(), "3 no destination, 5 ring full");
        assert_eq!((drops.sending(), drops.receiving(), drops.total()), (3, 5, 8));
    }

    /// Whatever a transmit ring has lost was on its way out, and the other way round.
    #[test]
    fn drops_are_those_of_a_direction() {
        let lost = Drops { too_long: 3, ring_full: 5, ..Drops::default() };
        let (none, read) = (Drops::default(), |drops: PortDrops| (drops.sending, drops.receiving));
        assert_eq!(read(PortDrops::of([lost, none, none])), (8, 0));
        assert_eq!(read(PortDrops::of([none, lost, none])), (0, 8));
        // A switch counts at the sender what is wrong with a packet, and at the receiver what has no room.
        let at_port = Drops { no_destination: 1, spoofed: 2, too_short: 4, ..lost };
        assert_eq!(read(PortDrops::of([none, none, at_port])), (7, 8));
        let all = PortDrops::of([lost, lost, at_port]).all;
        assert_eq!((all.too_long, all.ring_full, all.no_destination), (9, 15, 1));
    }

    /// A port's VLANs and filters drop on both ways.
    #[test]
    fn drops_on_one_of_both_ways_are_not_left_out() {
        let none = Drops::default();
        let at_port = Drops { vlan: 10, denied: 4, no_destination: 1, ring_full: 2, ..none };
        let drops = PortDrops::of([none, none, at_port]);
        assert_eq!((drops.sending, drops.receiving, drops.either), (1, 2, 14));
        assert_eq!((drops.if_it_sends(), drops.if_it_receives()), (15, 16));
    }

    #[test]
    fn every_reason_is_listed_and_counted() {
        let drops = Drops {
            no_destination: 1,
            bad_slot: 2,
            too_short: 4,
            bad_index: 8,
            filtered: 64,
            vlan: 128,
            spoofed: 512,
            bad_source: 131072,
            denied: 4096,
            over_rate: 1024,
            storm: 2048,
            storm_broadcast: 16384,
            storm_multicast: 32768,
            storm_unknown: 65536,
            daemon_ended: 8192,
            not_written: 262144,
            ring_full: 16,
            too_long: 32,
            bad_offload: 256,
        };
        assert_eq!(drops.reasons().iter().map(|(_, n)| n).sum::<u64>(), 524287);
        assert_eq!(drops.total(), 524287);
        let none = Drops::default();
        let PortDrops { sending, receiving, either, .. } = PortDrops::of([none, none, drops]);
        assert_eq!(sending + receiving + either, 524287);
        let twice = drops.merge(drops, |a, b| a + b);
        assert_eq!(twice.merge(drops, u64::saturating_sub), drops);
    }
}
