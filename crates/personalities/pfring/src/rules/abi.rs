//! Rules as programs write them.

use crate::abi::ip_addr;

pub const AUTO_RULE_ID: u16 = 0xffff;
pub const TUNNEL_ID_FLAG: u16 = 1;

/// What belongs to the capture.
type Internals = [u64; 2];

#[repr(C, packed)]
#[derive(Clone, Copy, Default)]
pub struct filtering_rule {
    pub rule_id: u16,
    pub rule_action: i32,
    pub balance_id: u8,
    pub balance_pool: u8,
    pub locked: u8,
    pub bidirectional: u8,
    pub core: filtering_rule_core_fields,
    pub optional_fields: u16,
    pub tunnel: tunnel_fields,
    pub payload_pattern: [u8; 32],
    pub reflector_device_name: [u8; 8],
    pub _internals: Internals,
}

#[repr(C, packed)]
#[derive(Clone, Copy, Default)]
pub struct filtering_rule_core_fields {
    pub if_index: i32,
    pub smac: [u8; 6],
    pub dmac: [u8; 6],
    pub vlan_id: u16,
    pub eth_type: u16,
    pub proto: u8,
    pub shost: ip_addr,
    pub dhost: ip_addr,
    pub shost_mask: ip_addr,
    pub dhost_mask: ip_addr,
    pub sport_low: u16,
    pub sport_high: u16,
    pub dport_low: u16,
    pub dport_high: u16,
    pub tcp_flags: u8,
}

#[repr(C, packed)]
#[derive(Clone, Copy, Default)]
pub struct tunnel_fields {
    pub id: u32,
    pub shost: ip_addr,
    pub dhost: ip_addr,
    pub shost_mask: ip_addr,
    pub dhost_mask: ip_addr,
}

#[repr(C, packed)]
#[derive(Clone, Copy, Default)]
pub struct hash_filtering_rule {
    pub rule_id: u16,
    pub vlan_id: u16,
    pub ip_version: u8,
    pub proto: u8,
    pub hosts: [ip_addr; 2],
    pub ports: [u16; 2],
    pub rule_action: i32,
    pub reflector_device_name: [u8; 8],
    pub _internals: Internals,
}

#[repr(C, packed)]
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct hash_filtering_rule_stats {
    pub matched: u64,
    pub filtered: u64,
    pub match_forward: u64,
    pub inactivity: u32,
}

const _: () = {
    assert!(size_of::<filtering_rule>() == 230 && size_of::<hash_filtering_rule>() == 70);
    assert!(size_of::<filtering_rule_core_fields>() == 94 && size_of::<tunnel_fields>() == 68);
    assert!(size_of::<hash_filtering_rule_stats>() == 28);
};
