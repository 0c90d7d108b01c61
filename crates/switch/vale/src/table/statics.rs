//! Static addresses: where they are is configured. None ages, and none moves because another port sends
//! with it.
//!
//! They have places in their sets, where the program in the kernel finds them, too, and take those of
//! addresses that were learned. A set that is full of static ones has no place for more: the rest are in a
//! list of the worker's, which is empty as good as always. For the program such an address is unknown, so
//! the worker decides.
//!
//! Where an address is configured does not say that its port may send with it: the program takes it for a source only
//! when the worker has let a frame from it pass, as with learned addresses.

use std::collections::HashMap;

use super::{Entry, HAS_SENT, IS_STATIC, Key, SETS, StaticAddress, Table, WAYS, key_of};
use ringway_switch_port::PortIndex;

impl Table {
    /// These addresses are static from now on, and no others: what was static before is not known any more.
    pub fn set_statics(&mut self, all: Vec<StaticAddress>) {
        let key = |it: &StaticAddress| (key_of(it.mac, it.vlan), it.port);
        let wanted: HashMap<Key, PortIndex> = all.iter().map(key).collect();
        self.statics = all;
        self.fixed.fill(0);
        for at in 0..SETS {
            for way in 0..WAYS {
                let entry = &self.sets[at].0[way];
                if entry.is_static() && !wanted.contains_key(&entry.key) {
                    self.put(at, way, Entry::EMPTY);
                }
            }
        }
        self.overflow.clear();
        for (key, port) in wanted {
            self.fixed[usize::from(port)] += 1;
            let at = self.set_of(key);
            match self.way_for_static(at, key) {
                Some(way) => {
                    let old = self.sets[at].0[way];
                    let is_it = old.key == key && old.port() == Some(port) && old.has_sent();
                    let has_sent = if is_it { HAS_SENT } else { 0 };
                    let port = (u32::from(port) + 1) | IS_STATIC | has_sent;
                    self.put(at, way, Entry { key, seen: self.now, port });
                }
                None => self.overflow.push((key, port)),
            }
        }
    }

    /// What `port` has sent with is as if it had not.
    pub(super) fn forget_senders(&mut self, port: PortIndex) {
        if self.fixed(port) == 0 {
            return;
        }
        for at in 0..SETS {
            for way in 0..WAYS {
                let entry = self.sets[at].0[way];
                if entry.is_static() && entry.port() == Some(port) && entry.has_sent() {
                    self.put(at, way, Entry { port: entry.port & !HAS_SENT, ..entry });
                }
            }
        }
    }

    /// All static addresses.
    pub fn statics(&self) -> &[StaticAddress] {
        &self.statics
    }

    /// How many static addresses are behind `port`.
    pub fn fixed(&self, port: PortIndex) -> u16 {
        self.fixed[usize::from(port)]
    }

    /// Its own place, a free one, or that of the address that was seen last the longest ago.
    fn way_for_static(&self, at: usize, key: Key) -> Option<usize> {
        let set = &self.sets[at].0;
        let oldest = || {
            let learned = set.iter().enumerate().filter(|(_, entry)| !entry.is_static());
            learned.min_by_key(|(_, entry)| entry.seen).map(|(way, _)| way)
        };
        let own = set.iter().position(|entry| entry.key == key);
        own.or_else(|| set.iter().position(|entry| entry.port == 0)).or_else(oldest)
    }

    /// Where a static address is that has found no place.
    #[cold]
    pub(super) fn lookup_overflow(&self, key: Key) -> Option<PortIndex> {
        self.overflow.iter().find(|(it, _)| *it == key).map(|(_, port)| *port)
    }
}
