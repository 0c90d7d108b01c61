//! What of a bridge is declared.

use super::{BridgeEntry, Bridges, PortEntry, declared_mirrors};
use crate::{
    declared::{DeclaredSwitch, static_addresses},
    lasting::{LastingMirror, LastingSettings},
    switch_config::apply,
};
use ringway_proto::{Declared, Forwarding, Multicast, PortSettings, Result};

impl Bridges {
    /// Has a bridge, and the ports that it has by now, as declared. EBUSY: it is so, but one of them is open that is
    /// declared for another user.
    pub fn declare(&mut self, switch: &DeclaredSwitch) -> Result<()> {
        let entry = self.find_or_start(&switch.name, switch.owner)?;
        let before = entry.declared.replace(switch.clone());
        entry.keeper = Some(switch.owner);
        entry.one_address = switch.one_address;
        let statics = static_addresses(&entry.statics, before.as_ref(), switch);
        entry.use_statics(statics);
        let mirrors = declared_mirrors(&entry.lasting_mirrors(), before.as_ref(), switch);
        entry.set_mirrors(mirrors)?;
        entry.use_forwarding(switch.forwarding.clone());
        entry.use_multicast(switch.multicast);
        // Those that are away have it when they are back.
        let is_of = |switch: &DeclaredSwitch, name: &str| switch.settings_of_any(name).is_some();
        entry.settings.retain(|it| {
            !is_of(switch, &it.name) && !before.as_ref().is_some_and(|old| is_of(old, &it.name))
        });
        let (mut changed, mut of_others) = (Vec::new(), Ok(()));
        for port in &entry.ports {
            of_others = of_others.and_then(|()| switch.check_user(&port.name, port.uid));
            let mut config = port.config.clone();
            match switch.settings_of_any(&port.name) {
                Some(settings) => apply(settings.wanted(), &mut config)?,
                None => {
                    if let Some(settings) = entry.undeclared(port, before.as_ref()) {
                        apply(settings, &mut config)?;
                    }
                }
            }
            config.max_addresses = config.max_addresses.filter(|_| switch.learns());
            if config != port.config {
                changed.push((port.index, config));
            }
        }
        self.change_all(&switch.name, changed);
        self.lasting_changed = true;
        of_others
    }

    /// A bridge is not declared any more: it goes with its last port. Until then it is, with the ports that
    /// programs have open, as if it had not been declared, but for what users have chosen since.
    pub fn undeclare(&mut self, bridge: &str) -> Result<()> {
        let Some(entry) = self.find(bridge) else { return Ok(()) };
        let Some(before) = entry.declared.take() else { return Ok(()) };
        entry.keeper = None;
        if entry.one_address == before.one_address {
            entry.one_address = false;
        }
        let statics = entry.statics.iter().filter(|it| !before.addresses.contains(it));
        entry.use_statics(statics.cloned().collect());
        if entry.forwarding == before.forwarding {
            entry.use_forwarding(Forwarding::default());
        }
        if entry.multicast == before.multicast {
            entry.use_multicast(Multicast::default());
        }
        let mut mirrors = entry.lasting_mirrors();
        mirrors.retain(|it| !before.mirrors.contains(it));
        entry.set_mirrors(mirrors)?;
        entry.settings.retain(|it| before.settings_of_any(&it.name).is_none());
        let mut changed = Vec::new();
        for port in &entry.ports {
            if let Some(settings) = entry.undeclared(port, Some(&before)) {
                let mut config = port.config.clone();
                apply(settings, &mut config)?;
                changed.push((port.index, config));
            }
        }
        self.change_all(bridge, changed);
        self.lasting_changed = true;
        self.reap();
        Ok(())
    }

    /// Whether an interface is declared to be the port of that full name.
    pub fn is_declared(&self, full: &str) -> bool {
        let mut declared = self.entries.iter().flatten().filter_map(|it| it.declared.as_ref());
        declared.any(|switch| switch.attaches(full))
    }
}

impl BridgeEntry {
    /// What changes of a port that was declared and is not any more: all that is as it was declared.
    fn undeclared(
        &self,
        port: &PortEntry,
        before: Option<&DeclaredSwitch>,
    ) -> Option<PortSettings> {
        let declared = before?.settings_of_any(&port.name)?;
        let unset = LastingSettings::unset(self.one_address && !port.config.is_interface);
        Some(port.settings().resets(declared, &unset))
    }

    /// Whether it is as declared, if it is declared.
    pub(super) fn is_declared(&self) -> Declared {
        match &self.declared {
            None => Declared::No,
            Some(declared)
                if (self.keeper, self.one_address, &self.forwarding, self.multicast)
                    == (
                        Some(declared.owner),
                        declared.one_address,
                        &declared.forwarding,
                        declared.multicast,
                    )
                    && declared.addresses.iter().all(|it| self.statics.contains(it))
                    && declared.mirrors.iter().all(|it| self.has_mirror(it))
                    && self.has_interfaces(declared) =>
            {
                Declared::Yes
            }
            Some(_) => Declared::Changed,
        }
    }

    /// Where a port of that name is declared.
    pub(super) fn declared_at(&self, full: &str) -> Option<String> {
        self.declared.as_ref()?.place_of(full).map(str::to_owned)
    }

    /// The user that alone may open a port of that name.
    pub(super) fn declared_for(&self, full: &str) -> Option<u32> {
        self.declared.as_ref()?.user_of(full)
    }

    fn has_mirror(&self, mirror: &LastingMirror) -> bool {
        self.mirrors.iter().any(|it| it.mirror == *mirror)
    }

    /// Whether the interfaces that are declared are attached, or are to come: none was detached.
    fn has_interfaces(&self, declared: &DeclaredSwitch) -> bool {
        declared.interfaces().all(|(name, _)| {
            self.ports.iter().any(|port| port.name == name)
                || self.expected.iter().any(|(expected, _)| expected == name)
        })
    }
}

impl PortEntry {
    /// Whether it takes part as declared, if it is declared.
    pub(super) fn is_declared(&self, bridge: &BridgeEntry) -> Declared {
        let declared = bridge.declared.as_ref();
        match declared.and_then(|declared| declared.settings_of_any(&self.name)) {
            None => Declared::No,
            Some(settings) if settings.is_like(&self.settings()) => Declared::Yes,
            Some(_) => Declared::Changed,
        }
    }
}
