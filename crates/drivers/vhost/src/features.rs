//! What a network card of this kind can do (Virtual I/O Device, sections 5.1.3 and 6), and what its guest makes use of.

use ringway_vnet::{Gso, Header};

/// The guest leaves checksums partial.
pub(crate) const CSUM: u64 = 1 << 0;
/// The guest takes partial checksums.
pub(crate) const GUEST_CSUM: u64 = 1 << 1;
/// The monitor tells the guest an MTU.
const MTU: u64 = 1 << 3;
pub(crate) const GUEST_TSO4: u64 = 1 << 7;
pub(crate) const GUEST_TSO6: u64 = 1 << 8;
pub(crate) const GUEST_ECN: u64 = 1 << 9;
const HOST_TSO4: u64 = 1 << 11;
const HOST_TSO6: u64 = 1 << 12;
const HOST_ECN: u64 = 1 << 13;
/// A received frame may be in several chains.
pub(crate) const MRG_RXBUF: u64 = 1 << 15;
const STATUS: u64 = 1 << 16;
/// The queue by which the guest configures the card: the monitor serves it.
const CTRL_VQ: u64 = 1 << 17;
const CTRL_RX: u64 = 1 << 18;
const CTRL_VLAN: u64 = 1 << 19;
const GUEST_ANNOUNCE: u64 = 1 << 21;
pub(crate) const MQ: u64 = 1 << 22;
const CTRL_MAC: u64 = 1 << 23;
/// Pages that are written are noted: the machine is migrating.
pub(crate) const LOG_ALL: u64 = 1 << 26;
pub(crate) const INDIRECT: u64 = 1 << 28;
pub(crate) const EVENTS: u64 = 1 << 29;
/// There are protocol features.
pub(crate) const PROTOCOL: u64 = 1 << 30;
pub(crate) const VERSION_1: u64 = 1 << 32;
pub(crate) const PACKED: u64 = 1 << 34;
pub(crate) const GUEST_USO4: u64 = 1 << 54;
pub(crate) const GUEST_USO6: u64 = 1 << 55;
const HOST_USO: u64 = 1 << 56;

const TO_GUEST: u64 = GUEST_CSUM | GUEST_TSO4 | GUEST_TSO6 | GUEST_ECN | GUEST_USO4 | GUEST_USO6;
const FROM_GUEST: u64 = CSUM | HOST_TSO4 | HOST_TSO6 | HOST_ECN | HOST_USO;

/// All that is offered.
///
/// Not that a queue can be set up anew while the others run (VIRTIO_F_RING_RESET), without which Linux has no
/// AF_XDP zero copy on virtio-net: QEMU 10 offers it to the guest then, and does not tell the back end when
/// it happens.
pub(crate) const OFFERED: u64 = TO_GUEST
    | FROM_GUEST
    | MTU
    | MRG_RXBUF
    | STATUS
    | CTRL_VQ
    | CTRL_RX
    | CTRL_VLAN
    | GUEST_ANNOUNCE
    | MQ
    | CTRL_MAC
    | LOG_ALL
    | INDIRECT
    | EVENTS
    | PROTOCOL
    | VERSION_1
    | PACKED;

/// What guest and front end have chosen of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features(pub(crate) u64);

impl Features {
    pub(crate) fn has(self, all: u64) -> bool {
        self.0 & all == all
    }

    /// Whether frames have anything in their headers, either way.
    pub fn has_offloads(self) -> bool {
        self.0 & (TO_GUEST | FROM_GUEST) != 0
    }

    /// Bytes of the header in front of a frame in the guest's memory.
    pub(crate) fn header_len(self) -> usize {
        if self.0 & (MRG_RXBUF | VERSION_1) != 0 { Header::LONG } else { Header::SHORT }
    }

    /// Whether the guest takes a frame with that header as it is.
    pub(crate) fn takes(self, header: &Header, is_v6: bool) -> bool {
        let needs = match header.gso() {
            Err(_) => return false,
            Ok(None) if header.is_plain() => return true,
            Ok(None) => GUEST_CSUM,
            Ok(Some(Gso::TcpV4)) => GUEST_CSUM | GUEST_TSO4,
            Ok(Some(Gso::TcpV6)) => GUEST_CSUM | GUEST_TSO6,
            Ok(Some(Gso::UdpL4(_))) => GUEST_CSUM | if is_v6 { GUEST_USO6 } else { GUEST_USO4 },
            Ok(Some(Gso::Udp)) => return false,
        };
        let ecn = if header.gso_type & 0x80 != 0 { GUEST_ECN } else { 0 };
        self.has(needs | ecn)
    }
}

impl std::fmt::Display for Features {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let named = [
            (PACKED, "packed rings"),
            (MRG_RXBUF, "mergeable buffers"),
            (INDIRECT, "indirect descriptors"),
            (EVENTS, "event index"),
            (CSUM, "checksum"),
            (HOST_TSO4 | HOST_TSO6, "TSO"),
            (HOST_USO, "USO"),
            (GUEST_CSUM, "receives partial checksums"),
            (GUEST_TSO4 | GUEST_TSO6, "receives TSO"),
            (GUEST_USO4 | GUEST_USO6, "receives USO"),
        ];
        // What the guest can choose for one version of IP alone.
        let versions = [(HOST_TSO4, HOST_TSO6), (GUEST_TSO4, GUEST_TSO6), (GUEST_USO4, GUEST_USO6)];
        let version = |feature: u64| {
            let (v4, v6) = versions.into_iter().find(|(v4, v6)| v4 | v6 == feature)?;
            match (self.has(v4), self.has(v6)) {
                (true, false) => Some(" for IPv4"),
                (false, true) => Some(" for IPv6"),
                _ => None,
            }
        };
        let mut first = true;
        for (feature, name) in named {
            let version = version(feature);
            if !self.has(feature) && version.is_none() {
                continue;
            }
            f.write_str(if first { "" } else { ", " })?;
            f.write_str(name)?;
            f.write_str(version.unwrap_or_default())?;
            first = false;
        }
        if first { f.write_str("no offloads") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_chosen_for_one_version_of_ip_is_named() {
        for (features, text) in [
            (0, "no offloads"),
            (HOST_TSO4 | HOST_TSO6, "TSO"),
            (HOST_TSO6, "TSO for IPv6"),
            (CSUM | GUEST_TSO4 | HOST_USO, "checksum, USO, receives TSO for IPv4"),
            (GUEST_USO4 | GUEST_USO6 | GUEST_TSO6, "receives TSO for IPv6, receives USO"),
        ] {
            assert_eq!(Features(features).to_string(), text);
        }
    }

    #[test]
    fn a_guest_gets_what_it_has_asked_for() {
        let of = |flags, gso_type| Header { flags, gso_type, gso_size: 1000, ..Header::default() };
        for (header, is_v6, needs) in [
            (of(0, 0), false, 0),
            (of(2, 0), false, 0),
            (of(1, 0), false, GUEST_CSUM),
            (of(1, 1), false, GUEST_CSUM | GUEST_TSO4),
            (of(1, 0x81), false, GUEST_CSUM | GUEST_TSO4 | GUEST_ECN),
            (of(1, 4), true, GUEST_CSUM | GUEST_TSO6),
            (of(1, 5), false, GUEST_CSUM | GUEST_USO4),
            (of(1, 5), true, GUEST_CSUM | GUEST_USO6),
        ] {
            assert!(Features(needs).takes(&header, is_v6), "{header:?}");
            for bit in (0..64).map(|bit| 1u64 << bit).filter(|bit| needs & bit != 0) {
                let without = Features(OFFERED & !bit);
                assert!(!without.takes(&header, is_v6), "{header:?} without {bit:#x}");
            }
        }
        for odd in [of(4, 0), of(1, 2), of(1, 3)] {
            assert!(!Features(OFFERED).takes(&odd, false), "{odd:?}");
        }
    }
}
