//! What the names of interfaces in a request stand for.
//!
//! A look-up waits for whoever changes interfaces, anywhere on the machine, and may wait for another process. So it
//! is work that the registry leaves to its caller: a request that needs one is begun again with the
//! result at hand. What was found is for that request alone, from its beginning to its answer.

use std::sync::{Mutex, MutexGuard};

use ringway_nic_setup::Interface;
use ringway_proto::{Cause, Error, Result};

use crate::{
    netns::{Netns, OpenNetns},
    setup_error::nic_error,
};

/// A name, and the namespace that it is meant in.
type Key = (Option<u64>, String);

/// What a request has had looked up.
#[derive(Debug, Default)]
pub(crate) struct Found(Vec<LookedUp>);

/// One look-up that is done.
#[derive(Debug)]
pub(crate) struct LookedUp {
    key: Key,
    interface: Result<Interface>,
}

/// A look-up that is to be done.
#[derive(Debug)]
pub(crate) struct LookUp {
    netns: Netns,
    name: String,
}

/// The look-ups of the request that is being answered.
#[derive(Debug, Default)]
pub(crate) struct Lookups(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    found: Found,
    wanted: Option<LookUp>,
}

impl Found {
    pub fn add(&mut self, looked_up: LookedUp) {
        self.0.push(looked_up);
    }
}

impl LookUp {
    /// Takes its time.
    pub fn run(self) -> LookedUp {
        let LookUp { netns, name } = self;
        let look_up = || Interface::by_name(&name).map_err(nic_error);
        let interface = OpenNetns::of(&netns).and_then(|netns| netns.inside(look_up)).flatten();
        LookedUp { key: (netns.id(), name), interface }
    }
}

impl Lookups {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// A request is begun, or begun again with what was found for it.
    pub fn begin(&self, found: Found) {
        *self.state() = State { found, wanted: None };
    }

    /// What was found for the request, and what it wants to know besides.
    pub fn end(&self) -> (Found, Option<LookUp>) {
        let State { found, wanted } = std::mem::take(&mut *self.state());
        (found, wanted)
    }

    /// Whether the request is to be begun again when something has been looked up.
    pub fn is_any_wanted(&self) -> bool {
        self.state().wanted.is_some()
    }

    /// The interface of that name. As long as it has not been looked up, the request fails, without a
    /// lasting change.
    pub fn interface(&self, netns: &Netns, name: &str) -> Result<Interface> {
        let id = netns.id();
        let mut state = self.state();
        let is_it = |(of, known): &Key| *of == id && known == name;
        if let Some(found) = state.found.0.iter().find(|found| is_it(&found.key)) {
            return found.interface.clone();
        }
        state.wanted = Some(LookUp { netns: netns.clone(), name: name.into() });
        Err(Error::new(Cause::System(libc::EINPROGRESS), "not looked up yet").at(name))
    }
}
