//! Open handles, and what each is bound to.

use std::collections::{BTreeMap, HashMap};

use ringway_proto::{Error, Options, Registration, Result};
use ringway_region::{NetifView, Span};

use crate::{
    port::PortId,
    regions::{RegionKey, Regions},
    selection::Selection,
};

/// What an open `/dev/netmap` stands for: it can be bound to one port, once (S-LIFE-1, S-LIFE-2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Handle(u64);

/// A handle's registration.
pub(crate) struct Binding {
    pub port: PortId,
    pub region: RegionKey,
    pub netif: NetifView,
    /// Indices of the rings it has, tx before rx.
    pub rings: Selection,
    pub exclusive: bool,
    /// Whether it was given a way to the stack.
    pub forwards: bool,
    /// The request and its options, with their outputs.
    pub registration: Registration,
    pub options: Options,
    /// Extra buffers that it was granted.
    pub extra_bufs: Vec<Span>,
}

impl Binding {
    /// Gives back what it has of its region.
    pub fn return_objects(&mut self, regions: &mut Regions) {
        let book = regions.get(self.region);
        book.return_extra_bufs(&self.netif, &std::mem::take(&mut self.extra_bufs));
        book.give_if(self.netif.object());
    }
}

/// An open handle.
#[derive(Default)]
struct Opened {
    /// Whose connection it stands for, if it stands for one.
    connection: Option<u32>,
    binding: Option<Binding>,
}

#[derive(Default)]
pub(crate) struct Handles {
    open: BTreeMap<Handle, Opened>,
    /// How many of them are connections of which user.
    connections: HashMap<u32, usize>,
    last: u64,
}

impl Handles {
    /// A new, unbound handle; for a connection of a user, if one is named.
    pub fn open(&mut self, connection: Option<u32>) -> Handle {
        self.last += 1;
        let handle = Handle(self.last);
        self.open.insert(handle, Opened { connection, binding: None });
        if let Some(uid) = connection {
            *self.connections.entry(uid).or_default() += 1;
        }
        handle
    }

    /// Forgets a handle, which is bound to nothing any more.
    pub fn close(&mut self, handle: Handle) {
        let closed = self.open.remove(&handle);
        if let Some(uid) = closed.and_then(|opened| opened.connection)
            && let Some(count) = self.connections.get_mut(&uid)
        {
            *count -= 1;
            if *count == 0 {
                self.connections.remove(&uid);
            }
        }
    }

    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// Open connections of some users.
    pub fn connections(&self, users: impl Fn(u32) -> bool) -> usize {
        self.connections.iter().filter(|(uid, _)| users(**uid)).map(|(_, count)| count).sum()
    }

    pub fn is_open(&self, handle: Handle) -> bool {
        self.open.contains_key(&handle)
    }

    /// Handles that are bound to ports in a region.
    pub fn bound_in(&self, region: RegionKey) -> Vec<Handle> {
        let bound = |opened: &Opened| {
            opened.binding.as_ref().is_some_and(|binding| binding.region == region)
        };
        self.open.iter().filter(|(_, opened)| bound(opened)).map(|(&handle, _)| handle).collect()
    }

    pub fn is_bound(&self, handle: Handle) -> bool {
        self.binding(handle).is_ok()
    }

    pub fn binding(&self, handle: Handle) -> Result<&Binding> {
        self.open.get(&handle).and_then(|opened| opened.binding.as_ref()).ok_or_else(unbound)
    }

    pub fn binding_mut(&mut self, handle: Handle) -> Result<&mut Binding> {
        let opened = self.open.get_mut(&handle);
        opened.and_then(|opened| opened.binding.as_mut()).ok_or_else(unbound)
    }

    /// All bindings.
    pub fn bindings(&self) -> impl Iterator<Item = (Handle, &Binding)> {
        self.open.iter().filter_map(|(&handle, opened)| Some((handle, opened.binding.as_ref()?)))
    }

    /// Counts the connections of all users anew.
    pub fn recount(&mut self) {
        self.connections.clear();
        for uid in self.open.values().filter_map(|opened| opened.connection) {
            *self.connections.entry(uid).or_default() += 1;
        }
    }

    /// Binds a handle, which is open.
    pub fn bind(&mut self, handle: Handle, binding: Binding) {
        crate::fault::step();
        self.open.entry(handle).or_default().binding = Some(binding);
    }

    /// After a panic: forgets the bindings to some ports.
    pub fn unbind_all(&mut self, is_it: impl Fn(PortId) -> bool) {
        for opened in self.open.values_mut() {
            opened.binding.take_if(|binding| is_it(binding.port));
        }
    }

    /// The handle stays open, and is bound to nothing.
    pub fn unbind(&mut self, handle: Handle) -> Option<Binding> {
        self.open.get_mut(&handle)?.binding.take()
    }
}

fn unbound() -> Error {
    Error::absent("this descriptor is not bound to a port").remedy("register it first")
}
