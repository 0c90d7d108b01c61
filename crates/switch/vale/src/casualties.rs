//! Ports that a worker has given up because it panicked over them: word from the worker to the bridge's
//! owner.

use std::{
    mem::take,
    sync::{Arc, Mutex, MutexGuard},
};

use ringway_kring::Doorbell;
use ringway_switch_port::PortIndex;

/// What a bridge has lost by panics of its worker since the last look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Ports that the worker does not touch any more. They keep their places until they are detached.
    pub ports: Vec<PortIndex>,
    /// The worker has ended, so all of its ports are lost, and the bridge carries out nothing.
    pub all: bool,
}

impl Lost {
    pub fn is_nothing(&self) -> bool {
        *self == Lost::default()
    }
}

#[derive(Debug, Default)]
struct State {
    lost: Lost,
    /// Rung when something is lost.
    doorbell: Option<Arc<Doorbell>>,
}

/// Shared by the worker and the bridge.
#[derive(Debug, Default)]
pub(crate) struct Casualties(Mutex<State>);

impl Casualties {
    pub fn report_to(&self, doorbell: Arc<Doorbell>) {
        self.state().doorbell = Some(doorbell);
    }

    /// The worker has given up these ports; or, if `all`, ends.
    pub fn add(&self, ports: impl IntoIterator<Item = PortIndex>, all: bool) {
        let mut state = self.state();
        state.lost.ports.extend(ports);
        state.lost.all |= all;
        if let Some(doorbell) = &state.doorbell {
            doorbell.notify();
        }
    }

    /// Has the bridge's owner look at what its ports tell.
    pub fn tell(&self) {
        if let Some(doorbell) = &self.state().doorbell {
            doorbell.notify();
        }
    }

    pub fn take(&self) -> Lost {
        take(&mut self.state().lost)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_lost_is_told_once() {
        let (casualties, doorbell) = (Casualties::default(), Arc::new(Doorbell::new().unwrap()));
        casualties.add([3], false);
        casualties.tell();
        casualties.report_to(doorbell.clone());
        assert!(!doorbell.drain(), "from then on");
        casualties.add([5, 7], false);
        assert!(doorbell.drain());
        let lost = casualties.take();
        assert_eq!(lost, Lost { ports: vec![3, 5, 7], all: false });
        assert!(!lost.is_nothing() && casualties.take().is_nothing());
        casualties.tell();
        assert!(doorbell.drain() && casualties.take().is_nothing());
        casualties.add([], true);
        casualties.add([1], false);
        let lost = casualties.take();
        assert!(doorbell.drain() && lost.all && lost.ports == [1]);
        assert!(!Lost { ports: vec![], all: true }.is_nothing());
    }
}
