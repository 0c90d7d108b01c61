//! A line about a packet, as PF_RING prints it.

use std::{
    fmt::Write,
    net::{Ipv4Addr, Ipv6Addr},
};

use crate::{
    abi::{NO_TUNNEL_ID, ip_addr, pfring_pkthdr},
    parse::program,
};

/// What `pfring_print_parsed_pkt` writes, with the end of the line, which programs rely on; `packet` is what was
/// captured.
pub fn parsed(packet: &[u8], header: &pfring_pkthdr) -> String {
    let info = header.parsed_pkt;
    let offset = info.offset;
    let mut line = format!("[{} -> {}] ", mac(&info.smac), mac(&info.dmac));
    if offset.vlan != 0 {
        add(&mut line, format_args!("[vlan {}] ", { info.vlan_id }));
        if info.qinq_vlan_id != 0 {
            add(&mut line, format_args!("[QinQ-vlan {}] ", { info.qinq_vlan_id }));
        }
    }
    match info.eth_type {
        0x0800 | 0x86dd => {
            let version = if info.eth_type == 0x0800 { 4 } else { 6 };
            let ends =
                ends(version, [info.ip_src, info.ip_dst], [info.l4_src_port, info.l4_dst_port]);
            add(&mut line, format_args!("{ends}[l3_proto={}]", proto(info.l3_proto)));
            let tunnel = info.tunnel;
            if tunnel.id != NO_TUNNEL_ID {
                let inner = self::ends(
                    version,
                    [tunnel.ip_src, tunnel.ip_dst],
                    [tunnel.l4_src_port, tunnel.l4_dst_port],
                );
                let id = tunnel.id;
                let of_tunnel = format_args!(
                    "[TEID=0x{id:08X}][tunneled_proto={}]{inner}",
                    proto(tunnel.proto)
                )
                .to_string();
                line.push_str(&of_tunnel);
            }
            add(&mut line, format_args!("[hash={}]", { header.pkt_hash }));
            if info.l3_proto == 6 {
                let sequence = info.tcp_seq_num;
                add(&mut line, format_args!("[tos={}][tcp_seq_num={sequence}]", info.ip_tos));
            }
        }
        0x0806 => arp(&mut line, packet, usize::try_from(offset.l3).unwrap_or(usize::MAX)),
        0x0027 => line.push_str("[STP]"),
        other => add(&mut line, format_args!("[eth_type=0x{other:04X}]")),
    }
    let [caplen, len] = [header.caplen, header.len];
    let [eth, l3, l4, payload] = [offset.eth, offset.l3, offset.l4, offset.payload];
    add(
        &mut line,
        format_args!(
            " [caplen={caplen}][len={len}][eth_offset={eth}][l3_offset={l3}][l4_offset={l4}][payload_offset={payload}]\n"
        ),
    );
    line
}

/// What `pfring_print_pkt` writes of a packet of `len` bytes.
pub fn packet(captured: &[u8], len: u32) -> String {
    let mut header = pfring_pkthdr { caplen: captured.len() as u32, len, ..Default::default() };
    program(captured, &mut header, 5, true);
    parsed(captured, &header)
}

fn add(line: &mut String, text: std::fmt::Arguments<'_>) {
    // A string takes everything.
    let _ = line.write_fmt(text);
}

fn mac(address: &[u8]) -> String {
    address.iter().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().join(":")
}

fn ends(version: u8, [source, destination]: [ip_addr; 2], [from, to]: [u16; 2]) -> String {
    let text = |address: ip_addr| match version {
        4 => {
            let [a, b, c, d, ..] = address;
            Ipv4Addr::from_bits(u32::from_ne_bytes([a, b, c, d])).to_string()
        }
        _ => Ipv6Addr::from(address).to_string(),
    };
    format!("[IPv{version}][{}:{from} -> {}:{to}] ", text(source), text(destination))
}

fn proto(number: u8) -> String {
    match number {
        1 => "ICMP".into(),
        6 => "TCP".into(),
        17 => "UDP".into(),
        47 => "GRE".into(),
        132 => "SCTP".into(),
        number => number.to_string(),
    }
}

fn arp(line: &mut String, packet: &[u8], at: usize) {
    line.push_str("[ARP]");
    let Some(body) = packet.get(at..).filter(|body| body.len() >= 30) else { return };
    let host = |at: usize| {
        let ip = body[at + 6..at + 10].iter().map(u8::to_string).collect::<Vec<_>>().join(".");
        format!("{}/{ip}", mac(&body[at..at + 6]))
    };
    add(line, format_args!("[Sender={}][Target={}]", host(8), host(18)));
}

#[cfg(test)]
mod tests {
    use super::packet;

    #[test]
    fn lines_are_those_of_the_reference() {
        let macs = [6, 5, 4, 3, 2, 1, 0xa, 0xb, 0xc, 0xd, 0xe, 0xf];
        let mut udp = macs.to_vec();
        udp.extend([0x81, 0, 0, 5]);
        udp.extend([8, 0, 0x45, 0, 0, 32, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        udp.extend([3, 232, 0, 53, 0, 12, 0, 0, 1, 2, 3, 4]);
        let hash = 0x0a00_0001u32 + 0x0a00_0002 + 17 + 1053 + 5;
        assert_eq!(
            packet(&udp, 60),
            format!(
                "[0A:0B:0C:0D:0E:0F -> 06:05:04:03:02:01] [vlan 5] [IPv4][10.0.0.1:1000 -> 10.0.0.2:53] \
                 [l3_proto=UDP][hash={hash}] [caplen=50][len=60][eth_offset=0][l3_offset=18]\
                 [l4_offset=38][payload_offset=46]\n"
            )
        );
        let mut arp = macs.to_vec();
        arp.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, 1, 1, 1, 1, 1, 1, 1, 10, 0, 0, 1]);
        arp.extend([0, 0, 0, 0, 0, 0, 10, 0, 0, 2, 0, 0]);
        let line = packet(&arp, 60);
        assert!(
            line.contains(
                "[ARP][Sender=01:01:01:01:01:01/10.0.0.1][Target=00:00:00:00:00:00/10.0.0.2] [cap"
            ),
            "{line}"
        );
        assert!(packet(&[], 0).ends_with("[eth_type=0x0000] [caplen=0][len=0][eth_offset=0][l3_offset=0][l4_offset=0][payload_offset=0]\n"));
    }
}
