//! Frames made by etherparse, which knows nothing of this crate.

use etherparse::{
    EtherType, Ethernet2Header, IpFragOffset, IpNumber, Ipv4Header, Ipv4Options, Ipv6Header,
    SingleVlanHeader, TcpHeader, UdpHeader, VlanId,
};
use proptest::{collection::vec, prelude::*};

#[derive(Clone, Debug)]
pub enum Ip {
    V4(Ipv4Header),
    V6(Ipv6Header),
}

#[derive(Clone, Debug)]
pub enum Transport {
    Tcp(TcpHeader),
    Udp(UdpHeader),
}

/// A frame by its meaning. Lengths and checksums are made when it is written.
#[derive(Clone, Debug)]
pub struct Packet {
    /// Ethertypes and identifiers of the VLAN tags, outermost first.
    pub tags: Vec<(EtherType, u16)>,
    pub ip: Ip,
    pub transport: Transport,
    pub payload: Vec<u8>,
}

impl Packet {
    /// Bytes before the payload.
    pub fn headers(&self) -> usize {
        self.transport_at()
            + match &self.transport {
                Transport::Tcp(tcp) => tcp.header_len(),
                Transport::Udp(_) => 8,
            }
    }

    pub fn transport_at(&self) -> usize {
        14 + 4 * self.tags.len()
            + match &self.ip {
                Ip::V4(ip) => ip.header_len(),
                Ip::V6(_) => 40,
            }
    }

    /// The frame, complete.
    pub fn bytes(&self) -> Vec<u8> {
        let inner = match self.ip {
            Ip::V4(_) => EtherType::IPV4,
            Ip::V6(_) => EtherType::IPV6,
        };
        let mut types = self.tags.iter().map(|tag| tag.0).chain([inner]);
        let ethernet = Ethernet2Header {
            destination: [2, 0, 0, 0, 0, 1],
            source: [2, 0, 0, 0, 0, 2],
            ether_type: types.next().unwrap(),
        };
        let mut out = ethernet.to_bytes().to_vec();
        for (&(_, id), ether_type) in self.tags.iter().zip(types) {
            let vlan_id = VlanId::try_new(id).unwrap();
            let tag = SingleVlanHeader { vlan_id, ether_type, ..Default::default() };
            out.extend(tag.to_bytes());
        }
        let length = self.headers() - self.transport_at() + self.payload.len();
        match &self.ip {
            Ip::V4(ip) => {
                let mut ip = ip.clone();
                ip.set_payload_len(length).unwrap();
                ip.header_checksum = ip.calc_header_checksum();
                out.extend(ip.to_bytes());
            }
            Ip::V6(ip) => {
                let mut ip = ip.clone();
                ip.set_payload_length(length).unwrap();
                out.extend(ip.to_bytes());
            }
        }
        match &self.transport {
            Transport::Tcp(tcp) => {
                let mut tcp = tcp.clone();
                tcp.checksum = match &self.ip {
                    Ip::V4(ip) => tcp.calc_checksum_ipv4(ip, &self.payload),
                    Ip::V6(ip) => tcp.calc_checksum_ipv6(ip, &self.payload),
                }
                .unwrap();
                out.extend(tcp.to_bytes());
            }
            Transport::Udp(udp) => {
                let mut udp = udp.clone();
                udp.length = length as u16;
                udp.checksum = match &self.ip {
                    Ip::V4(ip) => udp.calc_checksum_ipv4(ip, &self.payload),
                    Ip::V6(ip) => udp.calc_checksum_ipv6(ip, &self.payload),
                }
                .unwrap();
                out.extend(udp.to_bytes());
            }
        }
        out.extend(&self.payload);
        out
    }
}

fn ip(protocol: IpNumber) -> impl Strategy<Value = Ip> {
    let v4 = (any::<[[u8; 4]; 2]>(), any::<u16>(), vec(1u8..2, 0..=10)).prop_map(
        move |([source, destination], identification, options)| {
            let options = options.repeat(4);
            let mut ip = Ipv4Header::new(0, 64, protocol, source, destination).unwrap();
            ip.identification = identification;
            ip.dont_fragment = identification & 1 == 0;
            ip.fragment_offset = IpFragOffset::ZERO;
            ip.options = Ipv4Options::try_from(&options[..]).unwrap();
            Ip::V4(ip)
        },
    );
    let v6 = any::<[[u8; 16]; 2]>().prop_map(move |[source, destination]| {
        let next_header = protocol;
        Ip::V6(Ipv6Header { next_header, source, destination, hop_limit: 9, ..Default::default() })
    });
    prop_oneof![v4, v6]
}

fn tcp() -> impl Strategy<Value = Transport> {
    (any::<[u16; 3]>(), any::<[u32; 2]>(), any::<[bool; 8]>(), 0usize..=10).prop_map(
        |([from, to, window], [sequence, acknowledgment], flags, options)| {
            let mut tcp = TcpHeader::new(from, to, sequence, window);
            tcp.acknowledgment_number = acknowledgment;
            [tcp.fin, tcp.syn, tcp.rst, tcp.psh, tcp.ack, tcp.urg, tcp.ece, tcp.cwr] = flags;
            tcp.set_options_raw(&[1].repeat(options * 4)).unwrap();
            Transport::Tcp(tcp)
        },
    )
}

fn udp() -> impl Strategy<Value = Transport> {
    any::<[u16; 2]>().prop_map(|[source_port, destination_port]| {
        Transport::Udp(UdpHeader { source_port, destination_port, length: 0, checksum: 0 })
    })
}

fn payload() -> impl Strategy<Value = Vec<u8>> {
    let length = prop_oneof![0usize..64, 0usize..6000, 0usize..=65400];
    (vec(any::<u8>(), 0..97), length)
        .prop_map(|(pattern, length)| pattern.into_iter().cycle().take(length).collect())
}

/// Any TCP or UDP packet that fits IP.
pub fn packet() -> impl Strategy<Value = Packet> {
    let tag = (
        prop_oneof![Just(EtherType::VLAN_TAGGED_FRAME), Just(EtherType::PROVIDER_BRIDGING)],
        0u16..4095,
    );
    let over_tcp = (tcp(), ip(IpNumber::TCP));
    let over_udp = (udp(), ip(IpNumber::UDP));
    (vec(tag, 0..=2), prop_oneof![over_tcp, over_udp], payload())
        .prop_map(|(tags, (transport, ip), payload)| Packet { tags, ip, transport, payload })
}
