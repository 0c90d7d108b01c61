//! The book of ports, and the names by which they are found.

use std::{
    collections::{BTreeMap, HashMap, btree_map},
    sync::Arc,
};

use ringway_vale::PortConfig;

use crate::{
    host::HostRings,
    kinds::PortBackend,
    port::{Port, PortId},
    regions::RegionKey,
};

/// All ports. Ids are never used again.
#[derive(Default)]
pub(crate) struct Ports {
    all: BTreeMap<PortId, Port>,
    /// Of those that can be found by name.
    names: HashMap<String, PortId>,
    last: PortId,
}

impl Ports {
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
