//! PF_RING's hash of a packet: a sum, the same in both directions.

use crate::abi::{NO_TUNNEL_ID, ip_addr, pkt_parsing_info};

/// What is summed.
pub struct Ends {
    pub vlan: u16,
    pub macs: [[u8; 6]; 2],
    pub version: u8,
    pub proto: u8,
    pub addresses: [ip_addr; 2],
    pub ports: [u16; 2],
}

impl Ends {
    /// Of the outer headers, or of what is in the tunnel.
    pub fn of(info: &pkt_parsing_info) -> Ends {
        let tunnel = info.tunnel;
        if tunnel.id == NO_TUNNEL_ID {
            return Ends {
                vlan: info.vlan_id,
                macs: [info.smac, info.dmac],
                version: info.ip_version,
                proto: info.l3_proto,
                addresses: [info.ip_src, info.ip_dst],
                ports: [info.l4_src_port, info.l4_dst_port],
            };
        }
        Ends {
            vlan: info.vlan_id,
            macs: [tunnel.smac, tunnel.dmac],
            version: tunnel.ip_version,
            proto: tunnel.proto,
            addresses: [tunnel.ip_src, tunnel.ip_dst],
            ports: [tunnel.l4_src_port, tunnel.l4_dst_port],
        }
    }

    pub fn sum(&self) -> u32 {
        let words = self.addresses.iter().map(|address| {
            let words = address.as_chunks::<4>().0.iter().map(|word| u32::from_ne_bytes(*word));
            let count = if self.version == 4 { 1 } else { 4 };
            words.take(count).fold(0, u32::wrapping_add)
        });
        let addresses = match self.version {
            4 | 6 => words.fold(0, u32::wrapping_add),
            _ if self.proto == 0 => {
                self.macs.as_flattened().iter().map(|byte| u32::from(*byte)).sum()
            }
            _ => 0,
        };
        let [source, destination] = self.ports.map(u32::from);
        addresses
            .wrapping_add(self.vlan.into())
            .wrapping_add(self.proto.into())
            .wrapping_add(source)
            .wrapping_add(destination)
    }
}

/// The default hash.
pub fn default_hash(info: &pkt_parsing_info) -> u32 {
    Ends::of(info).sum()
}
