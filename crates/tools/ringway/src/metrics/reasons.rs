//! Why packets were dropped, as labels.

use ringway::RingInfo;

/// All reasons for which a ring drops packets, with the kernel's part.
pub fn of_ring(ring: &RingInfo) -> [(&'static str, u64); 6] {
    let &RingInfo { bad_index, bad_slot, too_long, ring_full, too_short, bad_offload, .. } = ring;
    [
        ("bad_index", bad_index),
        ("bad_slot", bad_slot),
        ("too_long", too_long),
        ("ring_full", ring_full),
        ("too_short", too_short),
        ("bad_offload", bad_offload),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringway::PortDrops;
    use serde_json::{Map, Value};

    /// Each field is there once, under its own name, with its own value.
    #[test]
    fn every_reason_is_a_label() {
        let mut fields = serde_json::to_value(PortDrops::default()).unwrap();
        let fields = fields.as_object_mut().unwrap();
        for (n, value) in (1..).zip(fields.values_mut()) {
            *value = Value::from(n);
        }
        let drops: PortDrops = serde_json::from_value(fields.clone().into()).unwrap();
        let labels = drops.reasons().map(|(reason, n)| (reason.to_owned(), Value::from(n)));
        assert_eq!(labels.len(), fields.len());
        assert_eq!(&Map::from_iter(labels), fields);
    }

    /// A ring has these reasons among its fields, and a switch has them all.
    #[test]
    fn reasons_of_rings_are_reasons_of_ports() {
        let ring = RingInfo {
            bad_index: 1,
            bad_slot: 2,
            too_long: 3,
            ring_full: 4,
            too_short: 5,
            bad_offload: 6,
            ..Default::default()
        };
        let fields = serde_json::to_value(&ring).unwrap();
        for (reason, n) in of_ring(&ring) {
            assert_eq!(fields[reason], n, "{reason}");
            let of_ports = PortDrops::default().reasons();
            assert!(of_ports.iter().any(|(of_port, _)| *of_port == reason));
        }
    }
}
