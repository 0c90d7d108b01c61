//! Places on bridges that requests hold until they are carried out: nothing else gets them meanwhile.

use std::collections::BTreeSet;

use super::Bridges;
use ringway_proto::Result;

/// So many places on a bridge, which may not be there yet, for a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HeldPlaces {
    pub bridge: String,
    pub uid: u32,
    pub ports: usize,
}

impl Bridges {
    /// Holds places. ENOMEM as in [`check_room`](Bridges::check_room).
    pub fn hold(&mut self, places: &HeldPlaces) -> Result<()> {
        self.check_room(&places.bridge, places.uid, places.ports)?;
        self.held.push(places.clone());
        Ok(())
    }

    /// From now on they are anybody's.
    pub fn let_go(&mut self, places: &HeldPlaces) {
        if let Some(at) = self.held.iter().position(|held| held == places) {
            self.held.swap_remove(at);
        }
    }

    /// How many places on a bridge are held for some users.
    pub(super) fn held_on(&self, bridge: &str, users: impl Fn(u32) -> bool) -> usize {
        let there = self.held.iter().filter(|held| held.bridge == bridge && users(held.uid));
        there.map(|held| held.ports).sum()
    }

    /// Bridges with other names that are to come into being for some users.
    pub(super) fn held_anew(&self, but: &str, users: impl Fn(u32) -> bool) -> usize {
        let others = self.held.iter().filter(|held| held.bridge != but && users(held.uid));
        let new = others.filter(|held| self.entry(&held.bridge).is_none());
        new.map(|held| held.bridge.as_str()).collect::<BTreeSet<_>>().len()
    }

    /// Whether another user's interface is about to join the bridge.
    pub fn is_held_for_others(&self, bridge: &str, uid: u32) -> bool {
        self.held_on(bridge, |held| held != uid) > 0
    }
}
