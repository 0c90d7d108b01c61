//! What the tools have in common about ports: their names, and the old way to shape new ones.

use super::getopt::count;
use ringway::PortShape;

/// Puts `netmap:` in front of a name that has no subsystem.
pub fn with_prefix(name: &str) -> String {
    if name.starts_with("netmap:") || name.starts_with("vale") {
        name.into()
    } else {
        format!("netmap:{name}")
    }
}

/// Reads `txs[,rxs[,txr[,rxr]]]`; a number for transmitting stands for receiving too, unless that
/// is given.
pub fn config(text: &str) -> PortShape {
    let mut config = PortShape::default();
    for (at, value) in text.split(',').map(count).enumerate() {
        match at {
            0 => (config.tx_slots, config.rx_slots) = (value as u32, value as u32),
            1 => config.rx_slots = value as u32,
            2 => (config.tx_rings, config.rx_rings) = (value as u16, value as u16),
            3 => config.rx_rings = value as u16,
            _ => (),
        }
    }
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receiving_is_like_transmitting_unless_given() {
        let read = |text| {
            let PortShape { tx_slots, rx_slots, tx_rings, rx_rings, .. } = config(text);
            [tx_slots, rx_slots, tx_rings.into(), rx_rings.into()]
        };
        assert_eq!(read("512"), [512, 512, 0, 0]);
        assert_eq!(read("512,256"), [512, 256, 0, 0]);
        assert_eq!(read("512,256,4"), [512, 256, 4, 4]);
        assert_eq!(read("512,256,4,2"), [512, 256, 4, 2]);
    }

    #[test]
    fn only_bare_names_get_a_prefix() {
        for (name, whole) in
            [("eth0", "netmap:eth0"), ("netmap:p{0", "netmap:p{0"), ("vale0:a", "vale0:a")]
        {
            assert_eq!(with_prefix(name), whole);
        }
    }
}
