//! Where packets were lost, and why.

use crate::error::Result;
use ringway::{BridgePortInfo, Control, Port, PortKind, RingInfo};
use serde::Serialize;
use std::fmt;

/// Packets dropped at a port, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
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
    /// Not received: no free slot in the ring.
    pub ring_full: u64,
    /// Not received: longer than a buffer.
    pub too_long: u64,
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
            ring_full: drops.ring_full,
            too_long: drops.too_long,
        }
    }

    /// What a ring has counted, with the kernel's part.
    pub fn of_ring(ring: &RingInfo) -> Drops {
        let &RingInfo { bad_index, bad_slot, too_long, ring_full, .. } = ring;
        Drops { bad_index, bad_slot, too_long, ring_full, ..Drops::default() }
    }

    /// What was lost on its way out of the program.
    pub fn sending(&self) -> u64 {
        let wrong =
            self.bad_slot + self.too_short + self.bad_index + self.bad_offload + self.spoofed;
        self.no_destination + self.filtered + wrong
    }

    /// What was lost on its way to the program.
    pub fn receiving(&self) -> u64 {
        self.ring_full + self.too_long
    }

    pub fn total(&self) -> u64 {
        self.sending() + self.receiving() + self.vlan
    }

    fn reasons(&self) -> [(&'static str, u64); 10] {
        [
            ("no destination", self.no_destination),
            ("bad slot", self.bad_slot),
            ("too short", self.too_short),
            ("bad index", self.bad_index),
            ("filtered", self.filtered),
            ("bad offload", self.bad_offload),
            ("vlan", self.vlan),
            ("spoofed", self.spoofed),
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

/// Follows the drops of an open port.
///
/// Its own rings count some, and, if it is on a switch, the switch counts others.
pub struct DropBook {
    switch: Option<Control>,
    before: Drops,
}

impl DropBook {
    /// Begins at zero: what happened to the port before is not ours.
    pub fn open(port: &Port) -> Result<DropBook> {
        let switch = match port.kind() {
            PortKind::Vale => Some(Control::connect()?),
            _ => None,
        };
        let mut book = DropBook { switch, before: Drops::default() };
        book.before = book.read(port)?;
        Ok(book)
    }

    /// The drops since [`DropBook::open`]. Fails if the daemon has gone.
    pub fn read(&self, port: &Port) -> Result<Drops> {
        let rings = port.stats();
        let mut drops = Drops {
            bad_index: rings.bad_index,
            bad_slot: rings.bad_slot,
            too_long: rings.too_long,
            ring_full: rings.ring_full,
            ..Drops::default()
        };
        if let Some(switch) = &self.switch {
            let switches = switch.switches()?;
            let mut ports = switches.iter().flat_map(|switch| &switch.ports);
            if let Some(found) = ports.find(|found| found.name == port.name()) {
                drops = drops.merge(Drops::at(found), |a, b| a + b);
            }
        }
        Ok(drops.merge(self.before, u64::saturating_sub))
    }
}

/// The drops of one port in the whole run, for the end of it.
#[derive(Serialize)]
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
            ring_full: 16,
            too_long: 32,
            bad_offload: 256,
        };
        assert_eq!(drops.reasons().iter().map(|(_, n)| n).sum::<u64>(), 1023);
        assert_eq!(drops.total(), 1023);
        let twice = drops.merge(drops, |a, b| a + b);
        assert_eq!(twice.merge(drops, u64::saturating_sub), drops);
    }
}
