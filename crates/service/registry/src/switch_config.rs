//! What users choose for a port of a switch, and what it has counted, between the words of requests
//! and those of the switch itself.

use ringway_proto::{Lossless, PortDrops, PortTotals, RateLimit, SourceAddresses, Vlan};

/// As the switch has it.
pub(crate) fn vlan_of(vlan: &Vlan) -> ringway_vale::Vlan {
    match vlan {
        Vlan::Unaware => ringway_vale::Vlan::Unaware,
        Vlan::Access(vid) => ringway_vale::Vlan::Access(*vid),
        Vlan::Trunk { allowed, native } => {
            ringway_vale::Vlan::Trunk { allowed: allowed.clone(), native: *native }
        }
    }
}

/// As users see it.
pub(crate) fn shown_vlan(vlan: &ringway_vale::Vlan) -> Vlan {
    match vlan {
        ringway_vale::Vlan::Unaware => Vlan::Unaware,
        ringway_vale::Vlan::Access(vid) => Vlan::Access(*vid),
        ringway_vale::Vlan::Trunk { allowed, native } => {
            Vlan::Trunk { allowed: allowed.clone(), native: *native }
        }
    }
}

/// As the switch has them.
pub(crate) fn sources_of(sources: &SourceAddresses) -> ringway_vale::SourceAddresses {
    match sources {
        SourceAddresses::Any => ringway_vale::SourceAddresses::Any,
        SourceAddresses::One => ringway_vale::SourceAddresses::One,
        SourceAddresses::Only(macs) => ringway_vale::SourceAddresses::Only(macs.clone()),
    }
}

/// As users see them.
pub(crate) fn shown_sources(sources: &ringway_vale::SourceAddresses) -> SourceAddresses {
    match sources {
        ringway_vale::SourceAddresses::Any => SourceAddresses::Any,
        ringway_vale::SourceAddresses::One => SourceAddresses::One,
        ringway_vale::SourceAddresses::Only(macs) => SourceAddresses::Only(macs.clone()),
    }
}

/// As the switch has it.
pub(crate) fn lossless_of(lossless: Lossless) -> ringway_vale::Lossless {
    ringway_vale::Lossless { patience_ms: lossless.patience_ms }
}

/// As users see it.
pub(crate) fn shown_lossless(lossless: ringway_vale::Lossless) -> Lossless {
    Lossless { patience_ms: lossless.patience_ms }
}

/// As the switch has it.
pub(crate) fn rate_of(rate: RateLimit) -> ringway_vale::RateLimit {
    let RateLimit { bits_per_second, burst_bytes } = rate;
    ringway_vale::RateLimit { bits_per_second, burst_bytes }
}

/// As users see it.
pub(crate) fn shown_rate(rate: ringway_vale::RateLimit) -> RateLimit {
    let ringway_vale::RateLimit { bits_per_second, burst_bytes } = rate;
    RateLimit { bits_per_second, burst_bytes }
}

/// As users see them.
pub(crate) fn shown_totals(totals: ringway_vale::Totals) -> PortTotals {
    let ringway_vale::Totals {
        sent_packets,
        sent_bytes,
        received_packets,
        received_bytes,
        known,
        moved,
        unlearned,
        drops:
            ringway_switch_port::Drops {
                no_destination,
                bad_slot,
                too_short,
                bad_index,
                filtered,
                bad_offload,
                vlan,
                spoofed,
                over_rate,
                storm,
                ring_full,
                too_long,
            },
    } = totals;
    let drops = PortDrops {
        no_destination,
        bad_slot,
        too_short,
        bad_index,
        filtered,
        bad_offload,
        vlan,
        spoofed,
        over_rate,
        storm,
        ring_full,
        too_long,
    };
    PortTotals {
        sent_packets,
        sent_bytes,
        received_packets,
        received_bytes,
        known,
        moved,
        unlearned,
        drops,
    }
}
