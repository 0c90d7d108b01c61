//! Static addresses of a bridge that learns: users say which port they are behind. They go with the bridge,
//! and wait for a port that goes and comes back.
//!
//! They decide over the packets of every port on the bridge, so changing them takes the right to
//! [configure](Bridges::check_may_configure) it.

use ringway_proto::{Cause, Error, Forwarding, Mac, Result, mac_text};
use ringway_vale::{ABSENT, AddressFilter, StaticAddress, Vlan};

use super::{BridgeEntry, Bridges, forwarding::full_name, no_bridge};
use crate::{
    caller::Caller,
    lasting::LastingAddress,
    switches::{VIDS, check_bridge_name},
};

/// Static addresses of a bridge at most: an eighth of the places that the table has.
pub(crate) const MAX_STATICS: usize = 512;

/// What is to be forgotten: all that it does not tell apart by what is `None`.
pub(crate) struct Flush {
    pub port: Option<String>,
    pub vlan: Option<u16>,
    /// Static addresses, too.
    pub added: bool,
}

impl Bridges {
    /// Adds a static address. EEXIST if it is another port's; EINVAL if it could not have an effect.
    pub fn add_address(
        &mut self,
        caller: &Caller,
        bridge: &str,
        address: LastingAddress,
    ) -> Result<()> {
        let LastingAddress { mac, vlan, port } = address;
        self.check_may_configure(caller, bridge)?;
        check_address(bridge, mac, vlan)?;
        let entry = self.find(bridge).ok_or_else(|| no_bridge(bridge))?;
        if !entry.learns() {
            return Err(Error::invalid("it does not forward by the addresses that it learns")
                .at(bridge)
                .remedy(format!(
                    "have it learn: `ringway switch forward {bridge} learning`; static forwarding has \
                     its addresses by --address"
                )));
        }
        let port = full_name(bridge, &port);
        entry.check_port_of_address(&port, vlan)?;
        match entry.statics.iter().find(|it| (it.mac, it.vlan) == (mac, vlan)) {
            Some(there) if there.port == port => return Ok(()),
            Some(there) => {
                let problem = format!("the address is static behind {} already", there.port);
                return Err(Error::new(Cause::Exists, problem)
                    .at(bridge)
                    .remedy("delete it first: `ringway switch fdb del`"));
            }
            None => {}
        }
        if entry.statics.len() >= MAX_STATICS {
            let problem = format!("it has {MAX_STATICS} static addresses, which is the most");
            return Err(Error::no_memory(problem)
                .at(bridge)
                .remedy("delete some: `ringway switch fdb del`, or `fdb flush --static`"));
        }
        entry.statics.push(LastingAddress { mac, vlan, port });
        entry.apply_statics();
        self.note_statics_changed(caller, bridge);
        Ok(())
    }

    /// Has an address forgotten, static or learned. ENOENT if there is none.
    pub fn delete_address(
        &mut self,
        caller: &Caller,
        bridge: &str,
        mac: Mac,
        vlan: u16,
    ) -> Result<()> {
        self.check_may_configure(caller, bridge)?;
        check_address(bridge, mac, vlan)?;
        let entry = self.find(bridge).ok_or_else(|| no_bridge(bridge))?;
        if let Some(at) = entry.statics.iter().position(|it| (it.mac, it.vlan) == (mac, vlan)) {
            entry.statics.remove(at);
            entry.apply_statics();
            self.note_statics_changed(caller, bridge);
            return Ok(());
        }
        let which = AddressFilter { mac: Some(mac), vlan: Some(vlan), port: None };
        if entry.worker.flush_learned(which) > 0 {
            return Ok(());
        }
        let problem = match vlan {
            0 => "no such address is known that is in no VLAN".into(),
            vlan => format!("no such address is known in VLAN {vlan}"),
        };
        Err(Error::new(Cause::NotFound, problem)
            .at(bridge)
            .remedy(format!("`ringway switch fdb show {bridge}` shows those there are")))
    }

    /// Has what was learned forgotten, and what was added if that is asked for.
    pub fn flush_addresses(&mut self, caller: &Caller, bridge: &str, flush: Flush) -> Result<()> {
        self.check_may_configure(caller, bridge)?;
        let Flush { port, vlan, added } = flush;
        check_vid(bridge, vlan.unwrap_or(0))?;
        let entry = self.find(bridge).ok_or_else(|| no_bridge(bridge))?;
        let port = port.map(|port| full_name(bridge, &port));
        if let Some(port) = &port {
            entry.check_is_port(port)?;
        }
        // What was learned of a port that is away is forgotten already.
        let index = port.as_ref().map(|port| entry.index(port));
        if index != Some(ABSENT) {
            entry.worker.flush_learned(AddressFilter { mac: None, vlan, port: index });
        }
        let before = entry.statics.len();
        if added {
            entry.statics.retain(|it| {
                port.as_ref().is_some_and(|port| *port != it.port)
                    || vlan.is_some_and(|vlan| vlan != it.vlan)
            });
        }
        if entry.statics.len() != before {
            entry.apply_statics();
            self.note_statics_changed(caller, bridge);
        }
        Ok(())
    }

    /// EBUSY if a static address of a port would have no effect with that VLAN.
    pub fn check_leaves_addresses(&self, bridge: &str, full: &str, vlan: &Vlan) -> Result<()> {
        self.entry(bridge).map_or(Ok(()), |entry| entry.check_leaves_addresses(full, vlan))
    }

    fn note_statics_changed(&mut self, caller: &Caller, bridge: &str) {
        self.lasting_changed = true;
        self.note_configured_by(bridge, caller.uid);
    }

    /// EBUSY if a bridge has static addresses and would not use them with that forwarding function.
    pub fn check_leaves_no_addresses(
        &mut self,
        bridge: &str,
        forwarding: &Forwarding,
    ) -> Result<()> {
        let count = self.find(bridge).map_or(0, |entry| entry.statics.len());
        if count == 0 || matches!(forwarding, Forwarding::Learning { .. }) {
            return Ok(());
        }
        let problem = format!("its static addresses ({count}) are for learning alone");
        Err(Error::busy(problem)
            .at(bridge)
            .remedy(format!("remove them: `ringway switch fdb flush {bridge} --static`")))
    }
}

impl Bridges {
    /// Bridges whose workers have other static addresses than they are to have.
    #[cfg(feature = "faults")]
    pub fn wrong_statics(&self) -> impl Iterator<Item = &str> {
        let entries = self.entries.iter().flatten();
        let is_wrong = |entry: &&BridgeEntry| {
            let wanted: Vec<_> =
                entry.statics.iter().map(|it| entry.static_of_worker(it)).collect();
            let has = entry.worker.static_addresses();
            has.is_some_and(|has| has != wanted) || !(wanted.is_empty() || entry.learns())
        };
        entries.filter(is_wrong).map(|entry| &*entry.name)
    }
}

impl BridgeEntry {
    pub(super) fn learns(&self) -> bool {
        matches!(self.forwarding, Forwarding::Learning { .. })
    }

    /// Has these, and no others.
    pub(super) fn use_statics(&mut self, statics: Vec<LastingAddress>) {
        if self.statics != statics {
            self.statics = statics;
            self.apply_statics();
        }
    }

    /// Tells the worker where they are by now.
    pub(super) fn apply_statics(&self) {
        let all = self.statics.iter().map(|it| self.static_of_worker(it));
        self.worker.set_static_addresses(all.collect());
    }

    fn static_of_worker(
        &self,
        LastingAddress { mac, vlan, port }: &LastingAddress,
    ) -> StaticAddress {
        StaticAddress { mac: *mac, vlan: *vlan, port: self.index(port) }
    }

    /// ENXIO if no port of that full name is there, is to come back, or is waited for by an address.
    fn check_is_port(&self, full: &str) -> Result<()> {
        let base = full.trim_end_matches('^');
        let is_one = self.ports.iter().any(|port| port.name == full)
            || self.expected.iter().any(|(name, _)| name == base)
            || self.statics.iter().any(|it| it.port == full);
        if is_one {
            return Ok(());
        }
        Err(self.no_port(full))
    }

    /// EINVAL if frames of that VLAN do not reach the port.
    fn check_port_of_address(&self, full: &str, vlan: u16) -> Result<()> {
        self.check_is_port(full)?;
        let Some(port) = self.ports.iter().find(|port| port.name == full) else { return Ok(()) };
        let any_vlan = self.ports.iter().any(|port| port.config.vlan != Vlan::Unaware);
        let Some(Misfit { problem, its }) = misfit(&port.config.vlan, any_vlan, vlan) else {
            return Ok(());
        };
        Err(Error::invalid(problem).at(full).remedy(match its {
            None => "leave --vlan out: no port of the switch is in a VLAN".into(),
            Some(vid) => format!("name one of its own: --vlan {vid}"),
        }))
    }

    /// EBUSY if a static address of the port would have no effect with that VLAN.
    pub(super) fn check_leaves_addresses(&self, full: &str, vlan: &Vlan) -> Result<()> {
        let others = self.ports.iter().filter(|port| port.name != full);
        let any_vlan =
            others.map(|port| &port.config.vlan).chain([vlan]).any(|it| *it != Vlan::Unaware);
        let mut its = self.statics.iter().filter(|it| it.port == full);
        let Some(LastingAddress { mac, vlan, .. }) =
            its.find(|it| misfit(vlan, any_vlan, it.vlan).is_some())
        else {
            return Ok(());
        };
        let mac = mac_text(*mac);
        let (of, option) = match vlan {
            0 => (String::new(), String::new()),
            vlan => (format!(" in VLAN {vlan}"), format!(" --vlan {vlan}")),
        };
        let problem = format!("its static address {mac}{of} would have no effect");
        let bridge = &self.name;
        Err(Error::busy(problem)
            .at(full)
            .remedy(format!("delete it first: `ringway switch fdb del {bridge} {mac}{option}`")))
    }
}

/// Why an address has no effect behind a port.
pub(crate) struct Misfit {
    pub problem: String,
    /// A VLAN of the port's.
    pub its: Option<u16>,
}

/// Why an address in VLAN `of`, 0 for none, has no effect behind a port in `vlan`; `any_vlan`: whether any port of the
/// switch is in one.
pub(crate) fn misfit(vlan: &Vlan, any_vlan: bool, of: u16) -> Option<Misfit> {
    let (is_in, its) = match vlan {
        Vlan::Unaware if any_vlan => return None,
        Vlan::Unaware => (of == 0, None),
        Vlan::Access(vid) => (of == *vid, Some(*vid)),
        Vlan::Trunk { allowed, native } => (
            *native == Some(of) || allowed.contains(&of),
            native.or_else(|| allowed.first().copied()),
        ),
    };
    let problem = match of {
        0 => "the port's frames are in a VLAN".into(),
        vlan => format!("the port is not in VLAN {vlan}"),
    };
    (!is_in).then_some(Misfit { problem, its })
}

/// EINVAL if no machine has such an address, or there is no such VLAN.
pub(crate) fn check_address(bridge: &str, mac: Mac, vlan: u16) -> Result<()> {
    check_bridge_name(bridge)?;
    check_vid(bridge, vlan)?;
    let [first, ..] = mac;
    if first & 1 != 0 || mac == [0; 6] {
        return Err(Error::invalid("no machine has that address: it is a group's, or zero")
            .at(bridge)
            .remedy("name the address of one machine"));
    }
    Ok(())
}

/// 0 is none.
fn check_vid(bridge: &str, vlan: u16) -> Result<()> {
    if vlan == 0 || VIDS.contains(&vlan) {
        return Ok(());
    }
    let (first, last) = (VIDS.start(), VIDS.end());
    Err(Error::invalid(format!("there is no VLAN {vlan}"))
        .at(bridge)
        .remedy(format!("they have numbers from {first} to {last}")))
}
