//! `ringway ports --rings`: what each ring of a port has counted.

use std::fmt;

use ringway::{FileSpec, KernelCounters, PortInfo, PortKind, RingInfo};
use serde::Serialize;

use crate::drops::{Drops, occurred};
use crate::table::{Table, where_names_repeat};

/// A ring of a port.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "type", rename = "ring")]
pub struct Line<'a> {
    port: &'a str,
    /// Of an interface: the inode number of its network namespace.
    netns: Option<u64>,
    region: u16,
    #[serde(flatten)]
    #[cfg_attr(test, schemars(with = "crate::schema::described::Ring"))]
    ring: RingInfo,
    /// What the count of `packets` counts.
    #[serde(skip)]
    unit: &'static str,
}

impl<'a> Line<'a> {
    pub fn new(port: &'a PortInfo, ring: RingInfo) -> Line<'a> {
        let unit = unit(&port.name, port.kind);
        Line { port: &port.name, netns: port.netns, region: port.mem_id, ring, unit }
    }

    fn drops(&self) -> Drops {
        Drops::of_ring(&self.ring)
    }
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RingInfo { host, receives, index, .. } = self.ring;
        let (host, way) = (if host { "host " } else { "" }, if receives { "rx" } else { "tx" });
        write!(f, "{host}{way} {index}")
    }
}

/// What rings of a port count: whole packets where this process puts them together, and else what is passed on,
/// of which a packet that is longer than a buffer takes several.
fn unit(name: &str, kind: PortKind) -> &'static str {
    match kind {
        PortKind::Nic => "packets",
        _ if FileSpec::is_file(name) => "packets",
        _ => "slots",
    }
}

/// Those of the kernel's counters that are among the ring's drops, under its names.
fn troubles(ring: &RingInfo, kernel: &KernelCounters) -> String {
    // In zero-copy mode these are no drops.
    let refills = kernel.rx_fill_ring_empty_descs;
    let refills = if refills > ring.ring_full { 0 } else { refills };
    occurred(&[
        ("rx_dropped", kernel.rx_dropped),
        ("rx_ring_full", kernel.rx_ring_full),
        ("rx_fill_ring_empty_descs", refills),
        ("rx_invalid_descs", kernel.rx_invalid_descs),
        ("tx_invalid_descs", kernel.tx_invalid_descs),
    ])
}

pub fn table(lines: &[Line]) -> String {
    if lines.is_empty() {
        return "no ports have rings".into();
    }
    let heading =
        ["port", "ring", "users", "fill", "moved", "bytes", "drops", "of these the kernel's"];
    let mut table = Table::new(&heading);
    for line in lines {
        let RingInfo { users, slots, fill, packets, bytes, kernel, .. } = &line.ring;
        table.row(vec![
            line.port.into(),
            line.to_string(),
            users.to_string(),
            format!("{fill}/{slots}"),
            format!("{packets} {}", line.unit),
            bytes.to_string(),
            line.drops().to_string(),
            kernel.as_ref().map(|kernel| troubles(&line.ring, kernel)).unwrap_or_default(),
        ]);
    }
    let names: Vec<_> = lines.iter().map(|line| (line.port, line.netns)).collect();
    table.with_last("netns", where_names_repeat(&names)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_is_named_where_it_has_dropped() {
        let kernel = KernelCounters { rx_dropped: 3, tx_ring_empty_descs: 9, ..Default::default() };
        let ring = RingInfo {
            receives: true,
            host: true,
            index: 1,
            slots: 1024,
            fill: 12,
            packets: 70,
            ring_full: 3,
            kernel: Some(kernel),
            ..RingInfo::default()
        };
        let text =
            table(&[Line { port: "eth0", netns: Some(7), region: 1, ring, unit: "packets" }]);
        let row = text.lines().nth(1).unwrap();
        let cells: Vec<_> =
            row.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
        assert_eq!(
            cells,
            ["eth0", "host rx 1", "0", "12/1024", "70 packets", "0", "3 ring full", "3 rx_dropped"]
        );
    }

    #[test]
    fn refills_in_vain_are_named_where_they_are_drops() {
        let kernel = KernelCounters { rx_fill_ring_empty_descs: 7, ..Default::default() };
        let ring = |ring_full| RingInfo { ring_full, ..RingInfo::default() };
        assert_eq!(troubles(&ring(9), &kernel), "7 rx_fill_ring_empty_descs");
        assert_eq!(troubles(&ring(0), &kernel), "none");
    }

    #[test]
    fn rings_count_slots_but_for_those_that_put_packets_together() {
        for (name, kind, expected) in [
            ("eth0", PortKind::Nic, "packets"),
            ("file:x.pcap@7.0", PortKind::Null, "packets"),
            ("none", PortKind::Null, "slots"),
            ("vale0:a", PortKind::Vale, "slots"),
            ("p{1", PortKind::Pipe, "slots"),
            ("vale0:a/r", PortKind::Monitor, "slots"),
        ] {
            assert_eq!(unit(name, kind), expected, "{name}");
        }
    }
}
