//! What becomes of frames for groups of IP on a bridge, and what its worker knows of groups: it is asked while
//! others are answered, for a page at a time.

use ringway_proto::{Error, Forwarding, GroupInfo, Multicast, Result};
use ringway_switch_port::PortIndex;
use ringway_vale::GroupEntry;

use super::{BridgeEntry, Bridges, addresses::worker_has_ended, no_bridge};
use crate::{caller::Caller, deferred::Deferred, subject::Subject};

/// Entries of a page: a message has room for more.
const PAGE: usize = 512;

impl Bridges {
    /// Chooses what becomes of frames for groups. It decides over the packets of every port on the bridge, so it
    /// takes the right to [configure](Bridges::check_may_configure) it.
    pub fn choose_multicast(
        &mut self,
        caller: &Caller,
        bridge: &str,
        multicast: Multicast,
    ) -> Result<()> {
        self.check_may_configure(caller, bridge)?;
        let entry = self.find(bridge).ok_or_else(|| no_bridge(bridge))?;
        check_learns(bridge, entry.learns(), multicast)?;
        entry.use_multicast(multicast);
        self.lasting_changed = true;
        self.note_configured_by(bridge, caller.uid);
        Ok(())
    }

    /// EBUSY if a bridge snoops and would not with that forwarding function.
    pub fn check_leaves_no_groups(&self, bridge: &str, forwarding: &Forwarding) -> Result<()> {
        let snoops = self.entry(bridge).is_some_and(|entry| !entry.multicast.is_flood());
        if !snoops || matches!(forwarding, Forwarding::Learning { .. }) {
            return Ok(());
        }
        Err(Error::busy("its multicast snooping is for learning alone")
            .at(bridge)
            .remedy(format!("turn it off: `ringway switch multicast {bridge} flood`")))
    }

    /// A page of what a bridge knows of groups, and where the next one begins. EACCES for users that have neither the
    /// bridge nor a port on it.
    pub fn groups(
        &mut self,
        caller: &Caller,
        bridge: &str,
        from: u32,
        deferred: &mut Deferred,
    ) -> Result<(Vec<GroupInfo>, Option<u32>)> {
        let entry = self.seen_by(caller, bridge, "the groups on it are other users'")?;
        let ask = entry.worker.groups(from as usize, PAGE);
        let groups = deferred.off_loop(Subject::Switch(bridge.into()), ask)?;
        let (groups, next) = groups.ok_or_else(|| worker_has_ended(bridge))?;
        let shown = groups.into_iter().filter_map(|group| entry.shown_group(group));
        Ok((shown.collect(), next.and_then(|next| u32::try_from(next).ok())))
    }
}

impl BridgeEntry {
    /// Does so with frames for groups from now on. What it does already keeps the members that it knows.
    pub(super) fn use_multicast(&mut self, multicast: Multicast) {
        if self.multicast != multicast {
            self.multicast = multicast;
            self.apply_multicast();
        }
    }

    pub(super) fn apply_multicast(&self) {
        self.worker.set_multicast(match self.multicast {
            Multicast::Flood => ringway_vale::Multicast::Flood,
            Multicast::Snooping => ringway_vale::Multicast::Snooping,
            Multicast::Querier => ringway_vale::Multicast::Querier,
        });
    }

    /// `None`: the port has gone meanwhile.
    fn shown_group(&self, entry: GroupEntry) -> Option<GroupInfo> {
        let name = |index: PortIndex| self.port(index).map(|port| port.name.clone());
        Some(match entry {
            GroupEntry::Querier { is_v6, vlan, seconds, learning } => {
                GroupInfo::Querier { ipv6: is_v6, vlan, seconds, learning }
            }
            GroupEntry::Router { is_v6, vlan, port, seconds } => {
                GroupInfo::Router { ipv6: is_v6, vlan, port: name(port)?, seconds }
            }
            GroupEntry::Full { port, seconds } => GroupInfo::Full { port: name(port)?, seconds },
            GroupEntry::Member { group, vlan, port, seconds } => {
                GroupInfo::Member { group, vlan, port: name(port)?, seconds }
            }
        })
    }
}

/// EINVAL if a bridge is to snoop that does not learn.
pub(crate) fn check_learns(bridge: &str, learns: bool, multicast: Multicast) -> Result<()> {
    if learns || multicast.is_flood() {
        return Ok(());
    }
    Err(Error::invalid("multicast snooping is for a switch that learns")
        .at(bridge)
        .remedy(format!("have it learn: `ringway switch forward {bridge} learning`")))
}
