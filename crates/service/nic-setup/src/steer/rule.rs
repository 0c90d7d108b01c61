//! The rule of a NIC that leads a flow to a queue (`struct ethtool_rx_flow_spec`).
#![expect(
    clippy::indexing_slicing,
    reason = "two sides of addresses and ports fit the match, and there is a type for each protocol"
)]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ringway_flow::{Flow, Protocol};

use crate::sys::flow_rules::{FlowSpec, Match};

/// `*_FLOW` of `linux/ethtool.h`.
const V4: [u32; 4] = [0x01, 0x02, 0x03, 0x0d];
const V6: [u32; 4] = [0x05, 0x06, 0x07, 0x0e];
/// `ETH_RX_NFC_IP4`: the only version that a rule for whatever IPv4 may name.
const IP4: u8 = 1;

/// The rule that leads `flow` to `queue`, at `location`.
pub(crate) fn rule(flow: &Flow, queue: u32, location: u32) -> FlowSpec {
    let flow_types = if flow.version6 { V6 } else { V4 };
    let (mut value, mut mask) = (Match::default(), Match::default());
    // Addresses first, of either size, then ports, then, in IPv4 of whatever, the version.
    let size = if flow.version6 { 16 } else { 4 };
    for (side, host) in flow.hosts.iter().enumerate() {
        let Some(host) = host else { continue };
        let bytes = match host {
            IpAddr::V4(host) => Ipv4Addr::octets(host).to_vec(),
            IpAddr::V6(host) => Ipv6Addr::octets(host).to_vec(),
        };
        // An address of the other version has no place there.
        value.0[side * size..][..size].iter_mut().zip(bytes).for_each(|(to, byte)| *to = byte);
        mask.0[side * size..][..size].fill(0xff);
    }
    for (side, port) in flow.ports.iter().enumerate() {
        let Some(port) = port else { continue };
        value.0[2 * size + 2 * side..][..2].copy_from_slice(&port.to_be_bytes());
        mask.0[2 * size + 2 * side..][..2].fill(0xff);
    }
    if flow.protocol == Protocol::Any && !flow.version6 {
        value.0[2 * size + 5] = IP4;
    }
    FlowSpec::new(flow_types[flow.protocol as usize], value, mask, queue, location)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `struct ethtool_tcpip4_spec`, `ethtool_tcpip6_spec` and `ethtool_usrip4_spec` have it.
    #[test]
    fn rules_are_laid_out_as_the_kernel_reads_them() {
        let spec = |text: &str| rule(&text.parse().unwrap(), 4, 7);
        let udp = spec("udp src host 10.0.0.1 dst port 53");
        assert_eq!((udp.flow_type, udp.ring_cookie, udp.location), (0x02, 4, 7));
        assert_eq!(udp.value.0[..13], [10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 53, 0]);
        assert_eq!(udp.mask.0[..13], [255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 255, 255, 0]);
        let tcp = spec("tcp dst host fd00::1 src port 80");
        assert_eq!(tcp.flow_type, 0x05);
        assert_eq!(
            (tcp.value.0[16], tcp.value.0[31], tcp.value.0[32..34].to_vec()),
            (0xfd, 1, vec![0, 80])
        );
        assert_eq!(tcp.mask.0[..36].iter().map(|&b| u32::from(b)).sum::<u32>(), 18 * 255);
        let ip = spec("ip dst host 10.0.0.2");
        assert_eq!((ip.flow_type, ip.value.0[7], ip.value.0[13], ip.mask.0[13]), (0x0d, 2, 1, 0));
    }
}
