//! What is in a packet, in one line.

use crate::endpoint::Mac;
use etherparse::err::packet::SliceError;
use etherparse::{
    ArpOperation, ArpPacketSlice, EtherType, Icmpv4Slice, Icmpv4Type, Icmpv6Slice, Icmpv6Type,
    LaxLinkExtSlice, LaxNetSlice, LaxSlicedPacket, LinkSlice, TcpSlice, TransportSlice,
};
use serde::Serialize;
use std::fmt::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What the headers of a frame say.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Packet {
    source_mac: Option<String>,
    destination_mac: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    vlans: Vec<u16>,
    /// The innermost protocol that is known: `arp`, `udp`, `ethertype 0x88cc`.
    protocol: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<IpAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    destination: Option<IpAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source_port: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    destination_port: Option<u16>,
    /// What else the line says: `[S] seq 7 win 512, 0 bytes`.
    info: String,
}

impl Packet {
    /// Reads a frame, which may be cut short.
    pub fn read(frame: &[u8]) -> Packet {
        let mut packet = Packet::default();
        let Ok(sliced) = LaxSlicedPacket::from_ethernet(frame) else {
            packet.protocol = "no Ethernet header".into();
            return packet;
        };
        packet.link(&sliced);
        packet.net(&sliced);
        if let Some(transport) = &sliced.transport {
            packet.transport(transport);
        }
        if let Some((error, layer)) = &sliced.stop_err {
            let wrong = if matches!(error, SliceError::Len(_)) { "ends in" } else { "malformed:" };
            packet.add(format_args!("{wrong} {layer}"));
        }
        packet
    }

    fn add(&mut self, text: impl fmt::Display) {
        let comma = if self.info.is_empty() { "" } else { ", " };
        // Writing to a text does not fail.
        let _ = write!(self.info, "{comma}{text}");
    }

    fn link(&mut self, sliced: &LaxSlicedPacket) {
        if let Some(LinkSlice::Ethernet2(ethernet)) = &sliced.link {
            self.source_mac = Some(Mac(ethernet.source()).to_string());
            self.destination_mac = Some(Mac(ethernet.destination()).to_string());
        }
        for tag in &sliced.link_exts {
            match tag {
                LaxLinkExtSlice::Vlan(tag) => self.vlans.push(tag.vlan_identifier().value()),
                LaxLinkExtSlice::Macsec(_) => self.add("MACsec"),
            }
        }
        if let Some(payload) = sliced.ether_payload() {
            self.protocol = match payload.ether_type {
                EtherType(length) if length < 0x600 => "802.3".into(),
                EtherType(number) => format!("ethertype 0x{number:04x}"),
            };
            if sliced.net.is_none() {
                self.add(format_args!("{} bytes", payload.payload.len()));
            }
        }
    }

    fn net(&mut self, sliced: &LaxSlicedPacket) {
        let payload = match &sliced.net {
            Some(LaxNetSlice::Ipv4(ip)) => {
                let header = ip.header();
                self.source = Some(header.source_addr().into());
                self.destination = Some(header.destination_addr().into());
                let offset = header.fragments_offset().byte_offset();
                if header.more_fragments() || offset > 0 {
                    let id = header.identification();
                    self.add(format_args!("fragment at {offset} of id {id}"));
                }
                ip.payload()
            }
            Some(LaxNetSlice::Ipv6(ip)) => {
                self.source = Some(ip.header().source_addr().into());
                self.destination = Some(ip.header().destination_addr().into());
                if ip.is_payload_fragmented() {
                    self.add("fragment");
                }
                ip.payload()
            }
            Some(LaxNetSlice::Arp(arp)) => return self.arp(arp),
            None => return,
        };
        self.protocol = match payload.ip_number.keyword_str() {
            Some(name) => name.to_lowercase(),
            None => format!("protocol {}", payload.ip_number.0),
        };
        if sliced.transport.is_none() {
            self.add(format_args!("{} bytes", payload.payload.len()));
        }
    }

    fn arp(&mut self, arp: &ArpPacketSlice) {
        self.protocol = "arp".into();
        let address = |bytes: &[u8]| <[u8; 4]>::try_from(bytes).map(Ipv4Addr::from);
        let mac = |bytes: &[u8]| <[u8; 6]>::try_from(bytes).map(Mac);
        let sender = (address(arp.sender_protocol_addr()), mac(arp.sender_hw_addr()));
        match (arp.operation(), sender, address(arp.target_protocol_addr())) {
            (ArpOperation::REQUEST, (Ok(sender), _), Ok(target)) => {
                self.add(format_args!("who has {target}, tell {sender}"));
            }
            (ArpOperation::REPLY, (Ok(sender), Ok(mac)), _) => {
                self.add(format_args!("{sender} is at {mac}"));
            }
            (ArpOperation(number), ..) => self.add(format_args!("operation {number}")),
        }
    }

    fn transport(&mut self, transport: &TransportSlice) {
        match transport {
            TransportSlice::Udp(udp) => {
                self.source_port = Some(udp.source_port());
                self.destination_port = Some(udp.destination_port());
                // What it says it is, though it be cut short.
                self.add(format_args!("{} bytes", udp.length().saturating_sub(8)));
            }
            TransportSlice::Tcp(tcp) => {
                self.source_port = Some(tcp.source_port());
                self.destination_port = Some(tcp.destination_port());
                self.tcp(tcp);
            }
            TransportSlice::Icmpv4(icmp) => self.icmpv4(icmp),
            TransportSlice::Icmpv6(icmp) => self.icmpv6(icmp),
            TransportSlice::Igmp(igmp) => self.add(format_args!("{} bytes", igmp.slice().len())),
        }
    }

    fn tcp(&mut self, tcp: &TcpSlice) {
        let flags = [
            (tcp.syn(), 'S'),
            (tcp.fin(), 'F'),
            (tcp.rst(), 'R'),
            (tcp.psh(), 'P'),
            (tcp.urg(), 'U'),
            (tcp.ece(), 'E'),
            (tcp.cwr(), 'W'),
            (tcp.ack(), '.'),
        ];
        let flags: String = flags.iter().filter(|(set, _)| *set).map(|(_, flag)| *flag).collect();
        let mut text = format!("[{flags}] seq {}", tcp.sequence_number());
        if tcp.ack() {
            let _ = write!(text, " ack {}", tcp.acknowledgment_number());
        }
        self.add(format_args!("{text} win {}, {} bytes", tcp.window_size(), tcp.payload().len()));
    }

    fn icmpv4(&mut self, icmp: &Icmpv4Slice) {
        let (kind, code) = (icmp.type_u8(), icmp.code_u8());
        let bytes = icmp.payload().len();
        match icmp.icmp_type() {
            Icmpv4Type::EchoRequest(echo) => self.echo("echo request", echo, bytes),
            Icmpv4Type::EchoReply(echo) => self.echo("echo reply", echo, bytes),
            Icmpv4Type::DestinationUnreachable(_) => {
                self.add(format_args!("destination unreachable, code {code}"));
            }
            Icmpv4Type::Redirect(_) => self.add(format_args!("redirect, code {code}")),
            Icmpv4Type::TimeExceeded(_) => self.add("time exceeded"),
            Icmpv4Type::ParameterProblem(_) => self.add("parameter problem"),
            Icmpv4Type::TimestampRequest(_) => self.add("timestamp request"),
            Icmpv4Type::TimestampReply(_) => self.add("timestamp reply"),
            Icmpv4Type::Unknown { .. } => self.add(format_args!("type {kind}, code {code}")),
        }
    }

    fn icmpv6(&mut self, icmp: &Icmpv6Slice) {
        let (kind, code) = (icmp.type_u8(), icmp.code_u8());
        // Of a neighbor's message: what it is about.
        let about = || {
            let target = icmp.payload().first_chunk::<16>();
            target.map_or_else(|| "?".into(), |target| Ipv6Addr::from(*target).to_string())
        };
        match icmp.icmp_type() {
            Icmpv6Type::EchoRequest(echo) => self.echo("echo request", echo, icmp.payload().len()),
            Icmpv6Type::EchoReply(echo) => self.echo("echo reply", echo, icmp.payload().len()),
            Icmpv6Type::DestinationUnreachable(_) => {
                self.add(format_args!("destination unreachable, code {code}"));
            }
            Icmpv6Type::PacketTooBig { mtu } => {
                self.add(format_args!("packet too big, mtu {mtu}"));
            }
            Icmpv6Type::TimeExceeded(_) => self.add("time exceeded"),
            Icmpv6Type::ParameterProblem(_) => self.add("parameter problem"),
            Icmpv6Type::RouterSolicitation => self.add("router solicitation"),
            Icmpv6Type::RouterAdvertisement(_) => self.add("router advertisement"),
            Icmpv6Type::NeighborSolicitation => self.add(format_args!("who has {}", about())),
            Icmpv6Type::NeighborAdvertisement(_) => self.add(format_args!("{} is here", about())),
            Icmpv6Type::Redirect => self.add("redirect"),
            Icmpv6Type::Unknown { .. } => self.add(format_args!("type {kind}, code {code}")),
        }
    }

    fn echo(&mut self, which: &str, echo: etherparse::IcmpEchoHeader, bytes: usize) {
        self.add(format_args!("{which} id {} seq {}, {bytes} bytes", echo.id, echo.seq));
    }
}

impl fmt::Display for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let (Some(from), Some(to)) = (&self.source_mac, &self.destination_mac) {
            write!(f, "{from} > {to} ")?;
        }
        for vlan in &self.vlans {
            write!(f, "vlan {vlan} ")?;
        }
        if let (Some(from), Some(to)) = (self.source, self.destination) {
            end(f, from, self.source_port)?;
            f.write_str(" > ")?;
            end(f, to, self.destination_port)?;
            f.write_str(" ")?;
        }
        f.write_str(&self.protocol)?;
        if self.info.is_empty() { Ok(()) } else { write!(f, " {}", self.info) }
    }
}

/// `10.0.0.1:80`, `[fd00::1]:80`, or the address alone.
fn end(f: &mut fmt::Formatter<'_>, address: IpAddr, port: Option<u16>) -> fmt::Result {
    match port {
        Some(port) => write!(f, "{}", std::net::SocketAddr::new(address, port)),
        None => write!(f, "{address}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::{
        ArpEthIpv4Packet, ArpPacket, Ethernet2Header, PacketBuilder, PacketBuilderStep, VlanId,
    };
    use proptest::prelude::*;

    const A: [u8; 6] = [2, 0, 0, 0, 0, 1];
    const B: [u8; 6] = [2, 0, 0, 0, 0, 2];
    const MACS: &str = "02:00:00:00:00:01 > 02:00:00:00:00:02 ";

    fn ethernet() -> PacketBuilderStep<Ethernet2Header> {
        PacketBuilder::ethernet2(A, B)
    }

    /// The line of a packet, behind its addresses.
    fn line(frame: &[u8]) -> String {
        let line = Packet::read(frame).to_string();
        line.strip_prefix(MACS).unwrap_or_else(|| panic!("{line}")).into()
    }

    macro_rules! built {
        ($builder:expr $(, $rest:expr)*) => {{
            let mut frame = Vec::new();
            $builder.write(&mut frame $(, $rest)*).unwrap();
            frame
        }};
    }

    #[test]
    fn tcp_has_ports_flags_and_numbers() {
        let tcp = |step: PacketBuilderStep<Ethernet2Header>| {
            step.ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).tcp(1000, 80, 7, 512)
        };
        let frame = built!(tcp(ethernet()).syn(), b"");
        assert_eq!(line(&frame), "10.0.0.1:1000 > 10.0.0.2:80 tcp [S] seq 7 win 512, 0 bytes");
        let frame = built!(tcp(ethernet()).ack(9).psh().fin(), b"abc");
        assert_eq!(
            line(&frame),
            "10.0.0.1:1000 > 10.0.0.2:80 tcp [FP.] seq 7 ack 9 win 512, 3 bytes"
        );
    }

    #[test]
    fn udp_in_vlans() {
        let udp = ethernet()
            .single_vlan(VlanId::try_new(10).unwrap())
            .ipv6([0xfd; 16], [0xfe; 16], 64)
            .udp(53, 5353);
        let frame = built!(udp, b"four");
        let (from, to) = ("fd".repeat(2), "fe".repeat(2));
        let long = |part: &str| [part; 8].join(":");
        let expected = format!("vlan 10 [{}]:53 > [{}]:5353 udp 4 bytes", long(&from), long(&to));
        assert_eq!(line(&frame), expected);
        let json = serde_json::to_value(Packet::read(&frame)).unwrap();
        assert_eq!((&json["vlans"][0], &json["protocol"]), (&10.into(), &"udp".into()));
        assert_eq!((&json["source_port"], &json["source"]), (&53.into(), &long(&from).into()));
        // Cut, as with --snaplen, in the payload and in the header.
        assert_eq!(line(&frame[..frame.len() - 2]), expected);
        let cut = line(&frame[..frame.len() - 8]);
        assert!(cut.ends_with(" udp 4 bytes, ends in UDP header"), "{cut}");
    }

    #[test]
    fn arp_asks_and_answers() {
        let arp = |operation, from, to| {
            let packet = ArpEthIpv4Packet {
                operation,
                sender_mac: A,
                sender_ipv4: from,
                target_mac: [0; 6],
                target_ipv4: to,
            };
            built!(ethernet().arp(ArpPacket::from(packet)))
        };
        let frame = arp(ArpOperation::REQUEST, [10, 0, 0, 1], [10, 0, 0, 2]);
        assert_eq!(line(&frame), "arp who has 10.0.0.2, tell 10.0.0.1");
        let frame = arp(ArpOperation::REPLY, [10, 0, 0, 1], [10, 0, 0, 2]);
        assert_eq!(line(&frame), "arp 10.0.0.1 is at 02:00:00:00:00:01");
    }

    #[test]
    fn icmp_of_both_kinds() {
        let ip = || ethernet().ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64);
        let frame = built!(ip().icmpv4_echo_request(1, 2), &[0; 56]);
        let expected = "10.0.0.1 > 10.0.0.2 icmp echo request id 1 seq 2, 56 bytes";
        assert_eq!(line(&frame), expected);
        let frame = built!(ip().icmpv4_raw(3, 1, [0; 4]), &[]);
        assert_eq!(line(&frame), "10.0.0.1 > 10.0.0.2 icmp destination unreachable, code 1");
        let frame = built!(
            ethernet().ipv6([0; 16], [0; 16], 255).icmpv6(Icmpv6Type::NeighborSolicitation),
            &Ipv6Addr::LOCALHOST.octets()
        );
        assert_eq!(line(&frame), ":: > :: ipv6-icmp who has ::1");
    }

    #[test]
    fn what_is_not_known_has_its_number() {
        let mut frame = [&B[..], &A, &[0x88, 0xcc], &[0; 46]].concat();
        assert_eq!(line(&frame), "ethertype 0x88cc 46 bytes");
        frame[12..14].copy_from_slice(&[0, 46]);
        assert_eq!(line(&frame), "802.3 46 bytes");
        let frame = built!(ethernet().ipv4([1; 4], [2; 4], 9), 253.into(), &[0; 4]);
        assert_eq!(line(&frame), "1.1.1.1 > 2.2.2.2 protocol 253 4 bytes");
        assert_eq!(Packet::read(&[0; 13]).to_string(), "no Ethernet header");
        assert_eq!(Packet::read(&[]).to_string(), "no Ethernet header");
    }

    proptest! {
        /// Whatever is in a frame, a line comes of it, of letters that do nothing to a terminal.
        #[test]
        fn any_bytes_make_one_line(
            kind in prop_oneof![Just([0x08, 0x00]), Just([0x86, 0xdd]), Just([0x08, 0x06]), any::<[u8; 2]>()],
            rest in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let frame = [&B[..], &A, &kind, &rest].concat();
            let line = line(&frame);
            prop_assert!(!line.is_empty() && !line.chars().any(char::is_control));
        }
    }
}
