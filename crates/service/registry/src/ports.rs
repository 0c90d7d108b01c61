//! The book of ports, and the names by which they are found.

use std::{
    collections::{BTreeMap, HashMap, btree_map},
    sync::Arc,
};

use ringway_proto::{Error, Result};
use ringway_vale::PortConfig;

use crate::{
    caller::Caller,
    host_rings::HostRings,
    kinds::PortBackend,
    port::{Port, PortId},
    regions::RegionKey,
    subject::Subject,
};

/// All ports. Ids are never used again.
#[derive(Default)]
pub(crate) struct Ports {
    all: BTreeMap<PortId, Port>,
    /// Of those that can be found by name.
    names: HashMap<String, PortId>,
    /// Names that requests hold, each with what is worked on until it is a port's.
    held: HashMap<String, Subject>,
    /// The users of persistent ports that are being made, once for each.
    held_persistent: Vec<u32>,
    last: PortId,
}

impl Ports {
    /// The id of the next port.
    pub fn next_id(&self) -> PortId {
        self.last + 1
    }

    /// From now on a request holds the name, until work on the subject is done.
    pub fn hold(&mut self, key: &str, subject: &Subject) {
        self.held.insert(key.into(), subject.clone());
    }

    /// From now on no request does.
    pub fn let_go(&mut self, key: &str) {
        self.held.remove(key);
    }

    /// From now on a request holds a place among the persistent ports of a user.
    pub fn hold_persistent(&mut self, uid: u32) {
        self.held_persistent.push(uid);
    }

    /// From now on that is anybody's.
    pub fn let_go_persistent(&mut self, uid: u32) {
        if let Some(at) = self.held_persistent.iter().position(|held| *held == uid) {
            self.held_persistent.swap_remove(at);
        }
    }

    /// How many of them are held for some users.
    pub fn held_persistent(&self, users: impl Fn(u32) -> bool) -> usize {
        self.held_persistent.iter().filter(|uid| users(**uid)).count()
    }

    /// What a request works on that holds the name, if one does.
    pub fn holder(&self, key: &str) -> Option<&Subject> {
        self.held.get(key)
    }

    /// What requests work on that hold names.
    #[cfg(feature = "faults")]
    pub fn holders(&self) -> impl Iterator<Item = (&str, &Subject)> {
        self.held.iter().map(|(key, subject)| (key.as_str(), subject))
    }

    /// Enters a port in that region, to be found by `key`.
    pub fn add(
        &mut self,
        name: &str,
        key: Option<String>,
        uid: u32,
        region: RegionKey,
        backend: impl PortBackend,
    ) -> PortId {
        crate::fault::step();
        self.last += 1;
        let id = self.last;
        if let Some(key) = key {
            self.names.insert(key, id);
        }
        let port = Port {
            name: name.into(),
            uid,
            shared_with: None,
            backend: Box::new(backend),
            region,
            tx: Vec::new(),
            rx: Vec::new(),
            host: HostRings::default(),
            gone: false,
            bindings: 0,
            children: 0,
            awaited: 0,
            config: PortConfig::default(),
            receives: Arc::default(),
        };
        self.all.insert(id, port);
        id
    }

    /// Strikes a port, and its names.
    pub fn remove(&mut self, id: PortId) -> Option<Port> {
        crate::fault::step();
        self.hide(id);
        self.all.remove(&id)
    }

    pub fn get(&self, id: PortId) -> Option<&Port> {
        self.all.get(&id)
    }

    pub fn get_mut(&mut self, id: PortId) -> Option<&mut Port> {
        self.all.get_mut(&id)
    }

    /// A port that is in the book, as those are which others refer to.
    #[expect(
        clippy::expect_used,
        reason = "a port refers to others only while these are in the book"
    )]
    pub fn port(&self, id: PortId) -> &Port {
        self.get(id).expect("ids are handed out for ports in the book only")
    }

    #[expect(
        clippy::expect_used,
        reason = "a port refers to others only while these are in the book"
    )]
    pub fn port_mut(&mut self, id: PortId) -> &mut Port {
        crate::fault::step();
        self.get_mut(id).expect("ids are handed out for ports in the book only")
    }

    /// The port, if the caller may decide what becomes of it: its user, and root.
    pub fn managed(&self, id: PortId, caller: &Caller) -> Result<PortId> {
        if caller.uid == 0 {
            return Ok(id);
        }
        self.owned(id, caller).map_err(|_| {
            let Port { uid, name, .. } = self.port(id);
            Error::busy(format!("it is user {uid}'s, who alone can change it"))
                .at(name)
                .remedy("ask that user, or root")
        })
    }

    /// The port, if it is the caller's: ports of other users are not shared (the region would
    /// be). Not even root's programs get what another user can write to, unless
    /// [they ask for it](ringway_proto::Options::user).
    pub fn owned(&self, id: PortId, caller: &Caller) -> Result<PortId> {
        let port = self.port(id);
        if port.uid == caller.uid || port.shared_with == Some(caller.uid) {
            return Ok(id);
        }
        let or_ask = match caller.uid {
            0 => format!(", or share that user's memory: {}@user={}", port.name, port.uid),
            _ => String::new(),
        };
        Err(Error::busy(format!("in use by user {}", port.uid))
            .at(&port.name)
            .remedy(format!("choose another port name{or_ask}")))
    }

    /// Notifies the doorbells of a port, and of its peer: a program may have died between its update
    /// and its kick. To be woken for nothing does no harm.
    pub fn notify_waiters(&self, id: PortId) {
        let port = self.port(id);
        if let Some(side) = port.backend.switch_side() {
            side.worker.notify();
        }
        let peer = port.backend.peer().map(|peer| self.port(peer));
        for port in peer.into_iter().chain([port]) {
            port.all_rings().for_each(|ring| ring.doorbell.notify());
        }
    }

    /// In the order in which they came.
    pub fn iter(&self) -> btree_map::Iter<'_, PortId, Port> {
        self.all.iter()
    }

    pub fn iter_mut(&mut self) -> btree_map::IterMut<'_, PortId, Port> {
        self.all.iter_mut()
    }

    /// The ports of some users.
    pub fn of(&self, users: impl Fn(u32) -> bool) -> impl Iterator<Item = &Port> {
        self.all.values().filter(move |port| users(port.uid))
    }

    /// The port that is found by `key`.
    pub fn named(&self, key: &str) -> Option<PortId> {
        self.names.get(key).copied()
    }

    /// The port that is found by `key`, if it is of kind `K`.
    pub fn find<K: PortBackend>(&self, key: &str) -> Option<PortId> {
        self.named(key).filter(|&id| self.port(id).is::<K>())
    }

    /// From now on the port is found by `key`, too.
    pub fn name(&mut self, key: &str, id: PortId) {
        self.names.insert(key.into(), id);
    }

    /// All names, with the ports that are found by them.
    pub fn names(&self) -> impl Iterator<Item = (&str, PortId)> {
        self.names.iter().map(|(key, id)| (key.as_str(), *id))
    }

    /// From now on nothing is found by `key`.
    pub fn forget(&mut self, key: &str) {
        self.names.remove(key);
    }

    /// From now on the port is found by no name.
    pub fn hide(&mut self, id: PortId) {
        self.names.retain(|_, named| *named != id);
    }

    /// The names by which some ports are found, each with the one that `renamed` has for it.
    pub fn keys_of(
        &self,
        ids: &[PortId],
        renamed: impl Fn(&str) -> Option<String>,
    ) -> Vec<(PortId, String, String)> {
        let its = self.names.iter().filter(|(_, id)| ids.contains(id));
        its.filter_map(|(key, id)| Some((*id, key.clone(), renamed(key)?))).collect()
    }
}
