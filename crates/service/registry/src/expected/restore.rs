//! What comes to be expected: what a registry before this one had, what is lost with a worker, and what has
//! gone with its interface.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use ringway_nic_setup::LinkWatch;
use ringway_proto::{Cause, Error, EventKind, Level, Result};

use super::{Due, Expected, Item, PATIENCE, WAITING, What};
use crate::{
    bridges::{Bridges, MAX_ACTIVE, MAX_MIRRORS, MAX_STATICS, check_address, check_mirror},
    kinds::attached::Attached,
    lasting::{Lasting, LastingAttachment, LastingSwitch},
    lasting_state::{lasting_attachment, lasting_port},
    name::{PortName, check_name},
    notices::Notice,
    port::PortId,
    ports::Ports,
    registry::Registry,
    switches::{check_bridge_name, check_forwarding, check_settings},
};

/// As long as something is left alone that a worker has panicked over.
const AFTER_PANIC: Duration = Duration::from_secs(2);

impl Registry {
    /// What is not there yet.
    pub fn expected(&mut self) -> &mut Expected {
        &mut self.expected
    }

    /// What has come of something that was due. Returns what the operator is to know.
    pub fn tried_again(&mut self, due: &Due, outcome: Result<()>, now: Instant) -> Option<Notice> {
        if outcome.is_ok() {
            let name = due.request.name();
            let is = if due.comes_back { "is back" } else { "is there" };
            let text = format!("{name} of user {} {is}", due.uid);
            let notice = Notice::new(Level::Info, EventKind::LinkBack, text);
            return Some(notice.at(name).of_user(due.uid));
        }
        let notice = self.expected.tried(due, outcome, now);
        let bridges = &self.bridges;
        let given_up = self.expected.given_up(due, now, |full| bridges.is_declared(full));
        let Some((bridge, full)) = given_up else { return notice };
        self.bridges.expect_no_more(&bridge, &full);
        let minutes = PATIENCE.as_secs() / 60;
        let text = format!(
            "{full} has not come back for {minutes} minutes, and is not waited for any more"
        );
        Some(Notice::new(Level::Warn, EventKind::NotBack, text).at(full).of_user(due.uid))
    }

    /// Has all of it again that a registry before this one had: switches at once, what is on them as soon as
    /// it can be had. Returns what is wrong with the rest, which is left out.
    pub fn restore(&mut self, lasting: Lasting, now: Instant) -> Vec<String> {
        self.expected.restore(lasting, now, &mut self.bridges)
    }
}

impl Expected {
    /// All of it that a registry before this one had: switches come back at once. Returns what is wrong
    /// with the rest, which is left out.
    fn restore(&mut self, lasting: Lasting, now: Instant, bridges: &mut Bridges) -> Vec<String> {
        let Lasting { ports, switches, attached } = lasting;
        let mut wrong = Vec::new();
        for switch in switches {
            if let Err(error) = restore_switch(switch, &attached, bridges) {
                wrong.push(error.to_string());
            }
        }
        for port in ports {
            match check_name(&port.name) {
                Ok(()) => self.push(What::Port(port), now),
                Err(error) => wrong.push(error.to_string()),
            }
        }
        for attachment in attached {
            match self.restore_attachment(&attachment, bridges) {
                Ok(()) => self.push(What::Attachment(attachment), now),
                Err(error) => wrong.push(error.to_string()),
            }
        }
        self.changed = true;
        wrong
    }

    /// It has its place on a switch from now on.
    fn restore_attachment(
        &self,
        attachment: &LastingAttachment,
        bridges: &mut Bridges,
    ) -> Result<()> {
        let LastingAttachment { name, uid, .. } = attachment;
        check_name(name)?;
        let PortName::Vale { bridge, .. } = PortName::parse(name, Cause::Invalid)? else {
            return Err(Error::invalid("not the name of a port of a switch").at(name));
        };
        if self.attachment(name).is_some() {
            return Err(Error::busy("attached already").at(name));
        }
        bridges.expect(bridge, name, *uid)
    }

    /// What is declared has its place on a switch from now on.
    pub(crate) fn declare(
        &mut self,
        attachment: LastingAttachment,
        now: Instant,
        bridges: &mut Bridges,
    ) -> Result<()> {
        self.restore_attachment(&attachment, bridges)?;
        self.push(What::Attachment(attachment), now);
        self.changed = true;
        Ok(())
    }

    /// What users have set up to stay, and is lost with a worker, is to come back with all its places.
    pub(crate) fn expect_again(
        &mut self,
        id: PortId,
        now: Instant,
        ports: &Ports,
        bridges: &mut Bridges,
    ) {
        let Some(port) = ports.get(id).filter(|port| port.backend.is_set_up()) else { return };
        let at = now + AFTER_PANIC;
        let (uid, port) = (port.uid, lasting_port(port));
        let names = ports.names().filter(|(_, its)| *its == id);
        let places = names.filter_map(|(full, _)| {
            let (bridge, _) = full.split_once(':')?;
            let (attachment, second) = lasting_attachment(ports, bridge, full)?;
            Some((second, bridge.to_owned(), attachment))
        });
        let mut places: Vec<_> = places.collect();
        places.sort_by_key(|(second, ..)| *second);
        if let Some(port) = port {
            self.push(What::Port(port), at);
        }
        for (_, bridge, attachment) in places {
            if bridges.expect(&bridge, &attachment.name, uid).is_ok() {
                self.push(What::Attachment(attachment), at);
            }
        }
        self.changed = true;
    }

    /// The interface of an attachment has gone: its place waits for one of the same name.
    pub(crate) fn await_interface(
        &mut self,
        id: PortId,
        watch: LinkWatch,
        now: Instant,
        ports: &Ports,
        bridges: &mut Bridges,
    ) {
        let waits = |item: &&Item| item.until.is_some() && !bridges.is_declared(item.what.name());
        let waiting = self.items.iter().filter(waits).count();
        let is_attached = ports.get(id).is_some_and(|port| port.get::<Attached>().is_some());
        if !is_attached {
            return;
        }
        let names = ports.names().filter(|(_, its)| *its == id);
        let place = names.filter_map(|(full, _)| {
            let (bridge, _) = full.split_once(':')?;
            let (attachment, _) = lasting_attachment(ports, bridge, full)?;
            Some((bridge.to_owned(), attachment))
        });
        let Some((bridge, attachment)) = place.last() else { return };
        if waiting >= WAITING && !bridges.is_declared(&attachment.name) {
            return;
        }
        let is_there = self.attachment(&attachment.name).is_some();
        if !is_there && bridges.expect(&bridge, &attachment.name, attachment.uid).is_ok() {
            let until = (now + PATIENCE, Arc::new(watch));
            self.push_until(Some(until), What::Attachment(attachment), now);
            self.changed = true;
        }
    }
}

fn restore_switch(
    mut switch: LastingSwitch,
    attached: &[LastingAttachment],
    bridges: &mut Bridges,
) -> Result<()> {
    check_bridge_name(&switch.name)?;
    check_forwarding(&switch.name, &switch.forwarding)?;
    for settings in &switch.settings {
        let name = &settings.name;
        check_name(name).and_then(|()| check_settings(name, &settings.wanted()))?;
    }
    for address in &switch.addresses {
        check_name(&address.port)?;
        check_address(&switch.name, address.mac, address.vlan)?;
    }
    for mirror in &switch.mirrors {
        check_mirror(&switch.name, mirror)?;
    }
    switch.addresses.truncate(MAX_STATICS);
    switch.mirrors.truncate(MAX_MIRRORS);
    switch.settings.truncate(MAX_ACTIVE);
    let on_it = |it: &&LastingAttachment| {
        it.name.split_once(':').is_some_and(|(bridge, _)| bridge == switch.name)
    };
    match switch.keeper.or_else(|| attached.iter().find(on_it).map(|it| it.uid)) {
        Some(uid) => bridges.restore(switch, uid),
        None => bridges.await_programs(switch),
    }
}
