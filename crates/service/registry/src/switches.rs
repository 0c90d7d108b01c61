//! What a user may choose for a bridge: its forwarding function, and how its ports take part.
//!
//! A setting decides over the packets of every port on the bridge. So root may change it, the user who
//! made the bridge to stay, or, where no user did, one who owns all of its ports.
//!
//! A user who joins a bridge that stays accepts the settings of its maker, and those of root. The
//! settings of the sole owner of a bridge's ports bind nobody else: from then on the ports of other
//! users are refused, until the bridge goes with its last port.

use std::{collections::BTreeMap, ops::RangeInclusive};

use ringway_proto::{
    Cause, Error, FloodLimit, Forwarding, Mac, PortSettings, RateLimit, Result, SourceAddresses,
    Vlan, mac_text,
};
use ringway_switch_port::PortIndex;

use crate::{
    bridges::{Bridges, full_name},
    caller::Caller,
    kinds::{attached::Attached, persistent::Persistent},
    name::PortName,
    registry::Registry,
    switch_config::{apply, filter_of, shown_lossless, shown_rate, vlan_of},
};

/// A sender waits this long at most for a lossless port of another user.
const MAX_LOSSLESS_WAIT_MS: u32 = 60_000;
/// Bits a second, bytes at once, and flooded frames a second that a port can be limited to.
const RATES: RangeInclusive<u64> = 8_000..=1_000_000_000_000;
const BURSTS: RangeInclusive<u64> = 1514..=1 << 34;
const STORMS: RangeInclusive<u32> = 1..=1_000_000_000;
/// Addresses that may be known behind a port.
const MAX_ADDRESSES_OF_PORT: RangeInclusive<u16> = 1..=1024;
/// Source addresses of a port at most: a lookup for each packet.
const MAX_SOURCES: usize = 64;
/// Addresses of a static forwarding function at most.
const MAX_ADDRESSES: usize = 512;
/// Ports of a hashing one at most: as many as a switch has.
const MAX_OVER: usize = 252;
pub(crate) const VIDS: RangeInclusive<u16> = 1..=4094;

/// Takes interfaces and persistent ports off a bridge, and lets it go. Refused if any of
/// it is another user's.
pub(crate) fn delete(registry: &mut Registry, caller: &Caller, bridge: &str) -> Result<()> {
    let Registry { ports, bridges, expected, .. } = registry;
    check_bridge_name(bridge)?;
    if let Some(keeper) = bridges.keeper(bridge)?
        && ![keeper, 0].contains(&caller.uid)
    {
        return Err(Error::busy(format!("made by user {keeper}, who alone can delete it"))
            .at(bridge)
            .remedy("use another switch"));
    }
    let absent = bridges.expected_on(bridge);
    absent.iter().try_for_each(|(name, _)| expected.check_not_expected(caller, name))?;
    let (mut attached, mut persistent) = (Vec::new(), Vec::new());
    for name in bridges.port_names(bridge)? {
        if let Some(id) = ports.find::<Attached>(&name) {
            attached.push(ports.managed(id, caller)?);
        } else if let Some(id) = ports.find::<Persistent>(&name) {
            let port = ports.port(ports.managed(id, caller)?).get::<Persistent>();
            port.map_or(Ok(()), |port| port.check_detach(bridge, &name))?;
            persistent.push((id, name));
        }
    }
    bridges.note_deleted(bridge, caller.uid);
    for (id, name) in persistent {
        Persistent::detach(registry, id, bridge, &name)?;
    }
    for id in attached {
        Attached::detach(registry, id);
    }
    let Registry { bridges, expected, .. } = registry;
    for (name, _) in &absent {
        expected.give_up_attachment(caller, name, bridges).transpose()?;
    }
    // The bridge may have gone with its last NIC.
    match bridges.release(bridge) {
        Err(error) if error.cause == Cause::NotFound => Ok(()),
        other => other,
    }
}

/// What users ask for, each with the rights that the user has; `ports` are all there are.
impl Bridges {
    /// Makes a bridge that stays although it has no ports. One that is there already and stays for
    /// no user becomes the caller's, unless others have ports there: the caller would decide over these.
    pub fn keep(&mut self, caller: &Caller, bridge: &str, one_address: bool) -> Result<()> {
        check_bridge_name(bridge)?;
        if let Ok(None) = self.keeper(bridge) {
            self.check_may_configure(caller, bridge)?;
        }
        self.create(bridge, caller.uid, one_address)
    }

    /// Chooses the forwarding function of a bridge.
    pub fn choose_forwarding(
        &mut self,
        caller: &Caller,
        bridge: &str,
        forwarding: Forwarding,
    ) -> Result<()> {
        self.check_may_configure(caller, bridge)?;
        let forwarding = as_declared(bridge, forwarding);
        check_forwarding(bridge, &forwarding)?;
        self.check_leaves_no_addresses(bridge, &forwarding)?;
        self.check_leaves_no_limits(bridge, &forwarding)?;
        self.check_leaves_no_groups(bridge, &forwarding)?;
        // Each is there now; what becomes of one that goes and comes back is the bridge's affair.
        let named: Vec<&String> = match &forwarding {
            Forwarding::Learning { .. } | Forwarding::Flood => Vec::new(),
            Forwarding::Static { addresses, .. } => {
                addresses.iter().map(|(_, port)| port).collect()
            }
            Forwarding::Hash { over, back } => over.iter().chain(back).collect(),
        };
        named.into_iter().try_for_each(|port| self.port_index(bridge, port).map(drop))?;
        self.forward(bridge, forwarding)?;
        self.note_configured_by(bridge, caller.uid);
        Ok(())
    }

    /// Changes how a port of a bridge takes part.
    pub fn configure_port(
        &mut self,
        caller: &Caller,
        name: &str,
        settings: PortSettings,
    ) -> Result<()> {
        let PortName::Vale { bridge, .. } = PortName::parse(name, Cause::Invalid)? else {
            return Err(Error::invalid("name a port of a switch, vale0:a").at(name));
        };
        self.check_may_configure(caller, bridge)?;
        check_choices(name, &settings)?;
        let index = self.port_index(bridge, name)?;
        if let Some(vlan) = &settings.vlan {
            self.check_leaves_addresses(bridge, name, &vlan_of(vlan))?;
        }
        if let Some(Some(_)) = settings.lossless {
            self.check_lossless(caller.uid, bridge, index).map_err(|e| e.at(name))?;
        }
        if let Some(Some(_)) = settings.max_addresses
            && !self.learns(bridge)
        {
            let problem = "its switch learns no addresses: there is nothing to limit";
            let remedy = format!("`ringway switch forward {bridge} learning`");
            return Err(Error::invalid(problem).at(name).remedy(remedy));
        }
        if settings.rate.is_some() || settings.lossless.is_some() {
            self.check_not_both(bridge, index, &settings).map_err(|e| e.at(name))?;
        }
        if settings.group_forward.is_some() && !self.is_interface(bridge, index) {
            return Err(Error::invalid(
                "a program's port gets link-local groups, and sends them on",
            )
            .at(name)
            .remedy("the setting is for attached interfaces"));
        }
        let mut config = self.config(bridge, index).cloned().unwrap_or_default();
        if settings.swap_buffers == Some(true) && (config.is_interface || config.leads_on) {
            return Err(Error::invalid(
                "an interface has no buffers that a program's port could take",
            )
            .at(name)
            .remedy("the setting is for ports of programs"));
        }
        apply(settings, &mut config).map_err(|e| e.at(name))?;
        self.check_room_for(bridge, index, &config).map_err(|e| e.at(name))?;
        self.note_configured_by(bridge, caller.uid);
        self.change(bridge, index, |now| *now = config);
        Ok(())
    }

    /// Refuses to take learning from a switch some of whose ports have a limit for what is learned of them.
    fn check_leaves_no_limits(&self, bridge: &str, forwarding: &Forwarding) -> Result<()> {
        let limited = match forwarding {
            Forwarding::Learning { .. } => None,
            _ => self.limited_port(bridge),
        };
        let Some((port, is_there)) = limited else { return Ok(()) };
        let problem = format!("the limit of addresses of {port} is for learning alone");
        let when = if is_there { "remove it" } else { "when that is back, remove it" };
        let remedy = format!("{when}: `ringway switch port {port} --no-max-addresses`");
        Err(Error::busy(problem).at(bridge).remedy(remedy))
    }

    /// Refuses what would make a lossless port of one with a rate, or the other way round.
    fn check_not_both(
        &self,
        bridge: &str,
        index: PortIndex,
        settings: &PortSettings,
    ) -> Result<()> {
        let Some(config) = self.config(bridge, index) else { return Ok(()) };
        let rate = settings.rate.unwrap_or(config.rate.map(shown_rate));
        let lossless = settings.lossless.unwrap_or(config.lossless.map(shown_lossless));
        let both = PortSettings { rate: Some(rate), lossless: Some(lossless), ..<_>::default() };
        check_lossless_rate(&both)
    }

    /// EBUSY if another user has configured the bridge for ports of its own.
    pub fn check_may_join(&self, caller: &Caller, bridge: &str) -> Result<()> {
        match self.configured_by(bridge) {
            Some(configured_by) if ![configured_by, 0].contains(&caller.uid) => {
                let problem =
                    format!("user {configured_by} has changed its settings for ports of his own");
                let remedy = format!(
                    "use another switch, or have that user make it for all: \
                     `ringway switch new {bridge}`"
                );
                Err(Error::busy(problem).at(bridge).remedy(remedy))
            }
            _ => Ok(()),
        }
    }

    /// EBUSY if the bridge is others' too; ENOENT if there is none.
    pub fn check_may_configure(&self, caller: &Caller, bridge: &str) -> Result<()> {
        match self.keeper(bridge)? {
            Some(keeper) if keeper == caller.uid || caller.uid == 0 => Ok(()),
            Some(keeper) => {
                Err(Error::busy(format!("made by user {keeper}, who alone can change it"))
                    .at(bridge)
                    .remedy("use another switch"))
            }
            None if self
                .expected_on(bridge)
                .iter()
                .any(|(_, uid)| ![*uid, 0].contains(&caller.uid)) =>
            {
                Err(Error::busy("another user's interface is to come back there")
                    .at(bridge)
                    .remedy("make one of your own: `ringway switch new`"))
            }
            None if self.is_held_for_others(bridge, caller.uid) && caller.uid != 0 => {
                Err(Error::busy("another user's interface is being attached to it")
                    .at(bridge)
                    .remedy("make one of your own: `ringway switch new`"))
            }
            None => match self.port_of_others(bridge, caller.uid).filter(|_| caller.uid != 0) {
                None => Ok(()),
                Some(name) => Err(Error::busy(format!(
                    "{name} is another user's, and who changes a switch has all of its ports"
                ))
                .at(bridge)
                .remedy("make one of your own: `ringway switch new`")),
            },
        }
    }

    /// The index of a port on a bridge, by its full name or by what follows the colon.
    fn port_index(&self, bridge: &str, port: &str) -> Result<PortIndex> {
        let full = full_name(bridge, port);
        let found = self.locate(bridge, &full).and_then(|(_, index)| index);
        found.ok_or_else(|| self.no_port(bridge, &full))
    }
}

/// The same for what a user chooses now, or an operator declares: nothing that has no effect, or lets nothing pass.
pub(crate) fn check_choices(name: &str, settings: &PortSettings) -> Result<()> {
    if let Some(SourceAddresses::Only(macs)) = &settings.sources {
        if macs.is_empty() {
            let problem = "without a source address the port could send nothing";
            return Err(Error::invalid(problem)
                .at(name)
                .remedy("name one, or take `any` or `one`"));
        }
        let is_no_machines =
            |mac: &&Mac| mac.first().is_some_and(|first| first & 1 != 0) || **mac == [0; 6];
        if let Some(mac) = macs.iter().find(is_no_machines) {
            let problem =
                format!("no frame comes from {}: it is a group's, or zero", mac_text(*mac));
            return Err(Error::invalid(problem).at(name).remedy("name addresses of machines"));
        }
    }
    if let Some(Some(lossless)) = settings.lossless
        && lossless.patience_ms == 0
    {
        let problem = "senders would wait for no time, as for a port that is not lossless";
        return Err(Error::invalid(problem).at(name).remedy("name milliseconds, or leave it out"));
    }
    check_settings(name, settings)
}

/// What the worker does for each packet, and what senders wait, have an end.
pub(crate) fn check_settings(name: &str, settings: &PortSettings) -> Result<()> {
    if let Some(vlan) = &settings.vlan {
        check_vlan(name, vlan)?;
    }
    if let Some(SourceAddresses::Only(macs)) = &settings.sources
        && macs.len() > MAX_SOURCES
    {
        return Err(Error::invalid(format!(
            "{name}: {} source addresses; {MAX_SOURCES} is the most",
            macs.len()
        )));
    }
    if let Some(Some(lossless)) = settings.lossless
        && lossless.patience_ms > MAX_LOSSLESS_WAIT_MS
    {
        let problem = format!("senders would wait up to {} ms", lossless.patience_ms);
        return Err(Error::invalid(problem)
            .at(name)
            .remedy(format!("{MAX_LOSSLESS_WAIT_MS} is the most")));
    }
    for filter in [&settings.filter_in, &settings.filter_out].into_iter().flatten().flatten() {
        filter_of(filter).map_err(|e| e.at(name))?;
    }
    if let Some(Some(most)) = settings.max_addresses
        && !MAX_ADDRESSES_OF_PORT.contains(&most)
    {
        let problem = format!("{most} addresses behind a port");
        let (least, most) = MAX_ADDRESSES_OF_PORT.into_inner();
        let remedy = format!("limits are from {least} to {most}, which each port has anyway");
        return Err(Error::invalid(problem).at(name).remedy(remedy));
    }
    if let Some(Some(rate)) = settings.rate {
        check_rate(rate).map_err(|e| e.at(name))?;
    }
    check_lossless_rate(settings).map_err(|e| e.at(name))?;
    if let Some(Some(storm)) = settings.storm
        && !STORMS.contains(&storm)
    {
        let problem = format!("{storm} flooded frames a second");
        let remedy = format!("limits are from {} to {}", STORMS.start(), STORMS.end());
        return Err(Error::invalid(problem).at(name).remedy(remedy));
    }
    let kinds = [settings.storm_broadcast, settings.storm_multicast, settings.storm_unknown];
    for limit in kinds.into_iter().flatten().flatten() {
        check_flood_limit(limit).map_err(|e| e.at(name))?;
    }
    Ok(())
}

fn check_flood_limit(limit: FloodLimit) -> Result<()> {
    let FloodLimit { frames_per_second, burst_frames } = limit;
    for (frames, what) in [(frames_per_second, " a second"), (burst_frames, " at once")] {
        if !STORMS.contains(&frames) {
            let problem = format!("{frames} flooded frames{what}");
            let remedy = format!("limits are from {} to {}", STORMS.start(), STORMS.end());
            return Err(Error::invalid(problem).remedy(remedy));
        }
    }
    Ok(())
}

fn check_rate(rate: RateLimit) -> Result<()> {
    let RateLimit { bits_per_second, burst_bytes } = rate;
    if !RATES.contains(&bits_per_second) {
        return Err(Error::invalid(format!("a rate of {bits_per_second} bit/s"))
            .remedy("rates are from 8 kbit/s to 1 Tbit/s"));
    }
    if !BURSTS.contains(&burst_bytes) {
        return Err(Error::invalid(format!("a burst of {burst_bytes} bytes")).remedy(format!(
            "bursts are from {} bytes, a frame, to {}",
            BURSTS.start(),
            BURSTS.end()
        )));
    }
    Ok(())
}

/// What is sent to a lossless port waits, and what is sent by a port with a rate does not: it is dropped.
fn check_lossless_rate(settings: &PortSettings) -> Result<()> {
    match (settings.rate, settings.lossless) {
        (Some(Some(_)), Some(Some(_))) => {
            Err(Error::invalid("a rate drops frames of the port, and a lossless port loses none")
                .remedy("take off one of them, with --no-rate or --lossy"))
        }
        _ => Ok(()),
    }
}

/// A forwarding function as the configuration has it, with the full names of ports: what is the same compares as the
/// same.
fn as_declared(bridge: &str, mut forwarding: Forwarding) -> Forwarding {
    let name = |port: &mut String| *port = full_name(bridge, port);
    match &mut forwarding {
        Forwarding::Learning { .. } | Forwarding::Flood => {}
        Forwarding::Static { addresses, .. } => {
            addresses.iter_mut().for_each(|(_, port)| name(port));
            addresses.sort_unstable();
        }
        Forwarding::Hash { over, back } => over.iter_mut().chain(back).for_each(name),
    }
    forwarding
}

/// A forwarding function is told to all who list the switches: it has an end.
pub(crate) fn check_forwarding(bridge: &str, forwarding: &Forwarding) -> Result<()> {
    let (count, most, what) = match forwarding {
        Forwarding::Learning { .. } | Forwarding::Flood => return Ok(()),
        Forwarding::Static { addresses, .. } => (addresses.len(), MAX_ADDRESSES, "addresses"),
        Forwarding::Hash { over, .. } => (over.len(), MAX_OVER, "ports to spread flows over"),
    };
    if count > most {
        return Err(Error::invalid(format!("{count} {what}; {most} is the most")).at(bridge));
    }
    contradiction(forwarding).map_or(Ok(()), |problem| {
        Err(Error::invalid(problem).at(bridge).remedy("leave one of them out"))
    })
}

/// What of it would never have an effect, beside the rest.
fn contradiction(forwarding: &Forwarding) -> Option<String> {
    match forwarding {
        Forwarding::Learning { .. } | Forwarding::Flood => None,
        Forwarding::Static { addresses, .. } => {
            let mut behind = BTreeMap::new();
            let twice = |(mac, port): &(Mac, String)| {
                let other = behind.insert(*mac, port.clone()).filter(|other| other != port)?;
                Some(format!("one address is behind {other} and behind {port}"))
            };
            addresses.iter().find_map(twice)
        }
        Forwarding::Hash { over, back } => {
            if let Some(back) = back.as_ref().filter(|back| over.contains(back)) {
                return Some(format!(
                    "{back} is among the ports that flows are spread over, and is for what comes back"
                ));
            }
            None
        }
    }
}

fn check_vlan(name: &str, vlan: &Vlan) -> Result<()> {
    let wrong = |vid: &u16| {
        Err(Error::invalid(format!("there is no VLAN {vid}")).at(name).remedy(format!(
            "they have numbers from {} to {}",
            VIDS.start(),
            VIDS.end()
        )))
    };
    let mut vids: Box<dyn Iterator<Item = &u16>> = match vlan {
        Vlan::Unaware => Box::new(std::iter::empty()),
        Vlan::Access(vid) => Box::new(std::iter::once(vid)),
        Vlan::Trunk { allowed, native } => Box::new(allowed.iter().chain(native)),
    };
    vids.find(|vid| !VIDS.contains(vid)).map_or(Ok(()), wrong)
}

pub(crate) fn check_bridge_name(bridge: &str) -> Result<()> {
    match PortName::parse(&format!("{bridge}:x"), Cause::Invalid) {
        // Behind the first colon all is the port's.
        Ok(PortName::Vale { bridge: its, .. }) if its == bridge => Ok(()),
        _ => Err(Error::invalid("a switch is named vale<id>, at most 15 letters, digits and _")
            .at(bridge)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However ports are named, and in whichever order addresses come.
    #[test]
    fn what_is_the_same_compares_as_the_same() {
        let hash = |over: &str, back: &str| {
            let over = vec![over.to_owned(), "vale0:c".into()];
            as_declared("vale0", Forwarding::Hash { over, back: Some(back.into()) })
        };
        assert_eq!(hash("a", "b"), hash("vale0:a", "vale0:b"));
        let table = |addresses: [(u8, &str); 2]| {
            let addresses = addresses.map(|(last, port)| ([2, 0, 0, 0, 0, last], port.to_owned()));
            let addresses = addresses.to_vec();
            as_declared("vale0", Forwarding::Static { addresses, flood_unknown: true })
        };
        let declared = table([(1, "vale0:a"), (2, "vale0:b")]);
        assert_eq!(table([(2, "b"), (1, "a")]), declared);
        check_forwarding("vale0", &declared).unwrap();

        for wrong in [table([(1, "a"), (1, "b")]), hash("a", "vale0:a")] {
            assert!(check_forwarding("vale0", &wrong).is_err(), "{wrong:?}");
        }
    }
}
