//! What users choose for a port of a switch, and what it has counted, between the words of requests
//! and those of the switch itself.

use std::sync::Arc;

use ringway_filter::Program;
use ringway_proto::{
    Durations, Error, Filter, FloodLimit, Lossless, MulticastRouter, PortDrops, PortSettings,
    PortTotals, RateLimit, Result, SourceAddresses, Vlan,
};
use ringway_vale::{PortConfig, PortFilter};

use crate::rx_redirect::MAX_TEXT;

/// Changes how a port takes part. An error changes nothing.
pub(crate) fn apply(settings: PortSettings, config: &mut PortConfig) -> Result<()> {
    let made = |filter: Option<Option<Filter>>| {
        filter.map(|filter| filter.as_ref().map(filter_of).transpose()).transpose()
    };
    let [filter_in, filter_out] = [made(settings.filter_in)?, made(settings.filter_out)?];
    if let Some(filter) = filter_in {
        config.filter_in = filter;
    }
    if let Some(filter) = filter_out {
        config.filter_out = filter;
    }
    if let Some(vlan) = settings.vlan {
        config.vlan = vlan_of(&vlan);
    }
    if let Some(sources) = settings.sources {
        config.sources = sources_of(&sources);
    }
    if let Some(lossless) = settings.lossless {
        config.lossless = lossless.map(lossless_of);
    }
    config.group_forward = settings.group_forward.unwrap_or(config.group_forward);
    if let Some(router) = settings.multicast_router {
        config.multicast_router = !router.is_auto();
    }
    config.isolated = settings.isolated.unwrap_or(config.isolated);
    config.swap_buffers = settings.swap_buffers.unwrap_or(config.swap_buffers);
    config.max_addresses = settings.max_addresses.unwrap_or(config.max_addresses);
    if let Some(rate) = settings.rate {
        config.rate = rate.map(rate_of);
    }
    config.storm = settings.storm.unwrap_or(config.storm);
    let kinds = [settings.storm_broadcast, settings.storm_multicast, settings.storm_unknown];
    for (limit, kind) in config.storm_kinds.iter_mut().zip(kinds) {
        if let Some(wanted) = kind {
            *limit = wanted.map(flood_limit_of);
        }
    }
    config.unblocked += u32::from(settings.unblock);
    Ok(())
}

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

/// As the switch has it.
pub(crate) fn flood_limit_of(limit: FloodLimit) -> ringway_vale::FloodLimit {
    let FloodLimit { frames_per_second, burst_frames } = limit;
    ringway_vale::FloodLimit { frames_per_second, burst_frames }
}

/// As users see it.
pub(crate) fn shown_flood_limit(limit: ringway_vale::FloodLimit) -> FloodLimit {
    let ringway_vale::FloodLimit { frames_per_second, burst_frames } = limit;
    FloodLimit { frames_per_second, burst_frames }
}

/// As users see it.
pub(crate) fn shown_multicast_router(config: &PortConfig) -> MulticastRouter {
    if config.multicast_router { MulticastRouter::Always } else { MulticastRouter::Auto }
}

/// As users see them; what has not happened yet takes no room.
pub(crate) fn shown_rounds(rounds: &ringway_vale::Rounds) -> Durations {
    const { assert!(matches!(Durations::BOUNDS, ringway_vale::Rounds::BOUNDS)) }
    let is_empty = rounds.counts.iter().all(|count| *count == 0);
    let counts = if is_empty { Vec::new() } else { rounds.counts.into() };
    Durations { counts, micros: rounds.micros }
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
        reordered,
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
                bad_source,
                denied,
                over_rate,
                storm,
                storm_broadcast,
                storm_multicast,
                storm_unknown,
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
        bad_source,
        denied,
        over_rate,
        storm,
        storm_broadcast,
        storm_multicast,
        storm_unknown,
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
        reordered,
        drops,
    }
}

/// Instructions of a port's filter at most: others on the switch wait while it looks at a frame.
const MAX_INSNS: usize = 1024;

/// The filter that is asked for, if the switch can have it.
pub(crate) fn filter_of(filter: &Filter) -> Result<Arc<PortFilter>> {
    let Filter { text, insns, one_in } = filter;
    if text.len() > MAX_TEXT {
        let problem = format!("the text of a filter has {MAX_TEXT} bytes at most");
        return Err(Error::invalid(problem));
    }
    if *one_in > 1 {
        return Err(Error::invalid("a switch takes no samples of what matches a filter")
            .remedy("`ringway switch mirror` does"));
    }
    if insns.len() > MAX_INSNS {
        let problem = format!("a filter of {} instructions; {MAX_INSNS} are the most", insns.len());
        return Err(Error::invalid(problem).remedy("name networks in place of addresses"));
    }
    let program = Program::new(insns.clone()).map_err(|e| Error::invalid(e.to_string()))?;
    Ok(Arc::new(PortFilter { text: text.clone(), program }))
}

/// As it was asked for.
pub(crate) fn shown_filter(filter: &PortFilter) -> Filter {
    let PortFilter { text, program } = filter;
    Filter { text: text.clone(), insns: program.insns().to_vec(), one_in: 1 }
}
