//! Which address a bridge knows behind which port. The worker has what was learned: it is asked while others
//! are answered, for a page at a time.

use ringway_proto::{AddressInfo, Cause, Error, Forwarding, Result};
use ringway_vale::LearnedAddress;

use super::{BridgeEntry, Bridges, forwarding::full_name, no_bridge};
use crate::{caller::Caller, deferred::Deferred, subject::Subject};

/// Addresses of a page, about: a message has room for more, and the worker is through with them in
/// microseconds.
const PAGE: usize = 512;

/// Where the page of static addresses begins, behind all that were learned.
const STATICS: u32 = 1 << 31;

impl Bridges {
    /// A page of the addresses that a bridge knows, and where the next one begins. EACCES for a user who has
    /// neither the bridge nor a port on it: the addresses are those of others' machines.
    pub fn addresses(
        &mut self,
        caller: &Caller,
        bridge: &str,
        from: u32,
        deferred: &mut Deferred,
    ) -> Result<(Vec<AddressInfo>, Option<u32>)> {
        let entry = self.seen_by(caller, bridge, "the addresses on it are other users'")?;
        let is_absent = |port: &str| !entry.ports.iter().any(|entry| entry.name == port);
        let fixed = |mac, vlan, port: String| AddressInfo {
            mac,
            vlan,
            absent: is_absent(&port),
            port,
            age_seconds: None,
        };
        match &entry.forwarding {
            Forwarding::Learning { .. } if from >= STATICS => {
                let statics = entry.statics.iter();
                let shown = statics.map(|it| fixed(it.mac, it.vlan, it.port.clone()));
                Ok((shown.collect(), None))
            }
            Forwarding::Learning { .. } => {
                let ask = entry.worker.learned(from as usize, PAGE);
                let learned = deferred.off_loop(Subject::Switch(bridge.into()), ask)?;
                let (learned, next) = learned.ok_or_else(|| worker_has_ended(bridge))?;
                let shown = learned.into_iter().filter_map(|address| entry.shown(address));
                let next = next.and_then(|next| u32::try_from(next).ok());
                let behind = (!entry.statics.is_empty()).then_some(STATICS);
                Ok((shown.collect(), next.or(behind)))
            }
            Forwarding::Static { addresses, .. } => {
                let shown =
                    addresses.iter().map(|(mac, port)| fixed(*mac, 0, full_name(bridge, port)));
                Ok((shown.collect(), None))
            }
            Forwarding::Hash { .. } | Forwarding::Flood => Ok((Vec::new(), None)),
        }
    }
}

impl Bridges {
    /// A bridge of which the caller may see what is behind its ports. EACCES, for that reason, for users that have
    /// neither the bridge nor a port on it.
    pub(super) fn seen_by(
        &mut self,
        caller: &Caller,
        bridge: &str,
        why_not: &str,
    ) -> Result<&mut BridgeEntry> {
        let accounts = self.accounts.clone();
        let entry = self.find(bridge).filter(|entry| entry.is_visible());
        let entry = entry.ok_or_else(|| no_bridge(bridge))?;
        let is_caller = |uid: &u32| accounts.of(*uid) == accounts.of(caller.uid);
        let has_part = entry.ports.iter().map(|port| port.uid).chain(entry.keeper);
        if caller.uid != 0 && !has_part.into_iter().any(|uid| is_caller(&uid)) {
            return Err(Error::new(Cause::Denied, why_not)
                .at(bridge)
                .remedy("have a port on it, or ask as root"));
        }
        Ok(entry)
    }
}

pub(super) fn worker_has_ended(bridge: &str) -> Error {
    Error::new(Cause::Gone, "its worker has ended")
        .at(bridge)
        .remedy("ask again: the daemon starts another")
}

impl BridgeEntry {
    /// `None`: the port has gone meanwhile.
    fn shown(&self, learned: LearnedAddress) -> Option<AddressInfo> {
        let LearnedAddress { mac, vlan, port, age_seconds } = learned;
        let port = self.ports.iter().find(|entry| entry.index == port)?.name.clone();
        Some(AddressInfo { mac, vlan, port, age_seconds: Some(age_seconds), absent: false })
    }
}
