//! The learning table (S-VALE-6): which address was last seen behind which port.
//!
//! Ports do not trust each other, so none decides what becomes of another's addresses. Where an address
//! is kept is said by a hash with a random key, so a port cannot choose addresses that meet those of
//! another. An address has four places to be in; where all are taken, it takes that of a port that has
//! more addresses than its own, or of its own port, or none. So a port with a thousand addresses takes
//! no place from one with ten.
//!
//! [Static](StaticAddress) addresses have their places in the same table: they neither age nor move, and no
//! port takes their places.
#![expect(
    clippy::indexing_slicing,
    reason = "`set_of` is a remainder of the number of sets; there are 256 counts, indexed by a port's number of 8 bits"
)]

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

mod statics;
#[cfg(test)]
mod tests;

use crate::function::{Mac, number_of};
use ringway_fastpath::FastPath;
use ringway_switch_port::PortIndex;

const SETS: usize = ringway_fastpath::SETS;
const WAYS: usize = ringway_fastpath::WAYS;

/// Addresses of one port at most, but for those that move to it: as many as netmap's table has places,
/// and a quarter of ours.
const PER_PORT: u16 = 1024;

/// An address in the lower 48 bits, its first byte lowest, and its VLAN in the upper 16.
pub type Key = u64;

/// See the module.
#[derive(Debug)]
pub struct Table {
    sets: Box<[Set; SETS]>,
    /// Addresses of each port.
    counts: Box<[u16; 256]>,
    secret: [u64; 2],
    /// Seconds for which an entry holds; 0: for ever.
    ageing: u32,
    now: u32,
    /// What forwards by the same table, and sees addresses that this one does not.
    fast: Option<Arc<FastPath>>,
    /// All static addresses.
    statics: Vec<StaticAddress>,
    /// Those of them that found no place in their set.
    overflow: Vec<(Key, PortIndex)>,
    /// How many of them each port has.
    fixed: Box<[u16; 256]>,
}

/// A cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Set([Entry; WAYS]);

#[derive(Clone, Copy, Debug)]
struct Entry {
    key: Key,
    /// Second in which it was last seen.
    seen: u32,
    /// Port + 1, and whether it is static; 0 is empty.
    port: u32,
}

/// In [`Entry::port`]: the address is static. A port's number is in the lower bits.
const IS_STATIC: u32 = 1 << 31;

/// The same: the port has sent with it, and may.
const HAS_SENT: u32 = 1 << 30;

const _: () = assert!(size_of::<Set>() == 64);

impl Entry {
    /// Its key is no address that is learned: it names a group.
    const EMPTY: Entry = Entry { key: Key::MAX, seen: 0, port: 0 };

    fn port(&self) -> Option<PortIndex> {
        self.port.checked_sub(1).map(|port| port as PortIndex)
    }

    fn is_static(&self) -> bool {
        self.port & IS_STATIC != 0
    }

    /// Whether its port has sent with the address, and may: what was learned is such.
    fn has_sent(&self) -> bool {
        !self.is_static() || self.port & HAS_SENT != 0
    }

    /// The port that it was learned of.
    fn learned_of(&self) -> Option<PortIndex> {
        self.port().filter(|_| !self.is_static())
    }
}

/// The place of a port that is not there: what is for it is lost, and counted as `no_destination`.
pub const ABSENT: PortIndex = PortIndex::MAX;

/// An address, and the port that it is behind for as long as that is configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaticAddress {
    pub mac: Mac,
    /// The VLAN that it is in; 0: none.
    pub vlan: u16,
    /// [`ABSENT`]: the port is not there.
    pub port: PortIndex,
}

/// An address that the table has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LearnedAddress {
    pub mac: Mac,
    /// The VLAN that it is in; 0: none.
    pub vlan: u16,
    /// The port that it is behind.
    pub port: PortIndex,
    /// Seconds since it was last seen.
    pub age_seconds: u32,
}

/// What became of an address that was to be learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Learned {
    /// The table has it there, and had it there before or not at all.
    There,
    /// It was behind that port before.
    Moved(PortIndex),
    /// The table has it there, and does not know this address of that port any more.
    Instead(Key, PortIndex),
    /// There is no place for it, or it is a static address of another port.
    No,
}

/// Addresses of a table: all that it does not tell apart by what is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AddressFilter {
    pub mac: Option<Mac>,
    /// 0: those that are in none.
    pub vlan: Option<u16>,
    pub port: Option<PortIndex>,
}

impl AddressFilter {
    fn matches(&self, key: Key, port: Option<PortIndex>) -> bool {
        let (mac, vlan) = address_of(key);
        self.mac.is_none_or(|it| it == mac)
            && self.vlan.is_none_or(|it| it == vlan)
            && self.port.is_none_or(|it| Some(it) == port)
    }
}

fn key_of(mac: Mac, vlan: u16) -> Key {
    number_of(mac) | Key::from(vlan) << 48
}

fn address_of(key: Key) -> (Mac, u16) {
    let [mac @ .., low, high] = key.to_le_bytes();
    (mac, u16::from_le_bytes([low, high]))
}

impl Table {
    /// An empty table. What was not learned again for `ageing` seconds is not known any more;
    /// 0: it stays.
    pub fn new(ageing: u32) -> Table {
        let secret = random_secret();
        let sets = Box::new([Set([Entry::EMPTY; WAYS]); SETS]);
        let (fast, statics, overflow) = (None, Vec::new(), Vec::new());
        let [counts, fixed] = [(); 2].map(|()| Box::new([0; 256]));
        Table { sets, counts, secret, ageing, now: 0, fast, statics, overflow, fixed }
    }

    /// The same table, shared with a program in the kernel: each address has its place there.
    pub fn share(&mut self, fast: Arc<FastPath>) {
        let empty = Table { secret: fast.secret(), now: self.now, ..Table::new(self.ageing) };
        let old = std::mem::replace(self, Table { fast: Some(fast), ..empty });
        self.set_statics(old.statics);
        let mut entries: Vec<Entry> = old.sets.iter().flat_map(|set| set.0).collect();
        // Those that were seen last, should there be no place for all.
        entries.sort_by_key(|entry| entry.seen);
        for entry in entries {
            if let Some(port) = entry.learned_of() {
                self.now = entry.seen;
                self.learn(entry.key, port);
            }
        }
        self.now = old.now;
    }

    /// Seconds for which an address is known that is not seen; 0: for ever.
    pub fn ageing(&self) -> u32 {
        self.ageing
    }

    /// Where `key` is, if it is static, or was learned, has not aged, and was not displaced since.
    #[inline]
    pub fn lookup(&self, key: Key) -> Option<PortIndex> {
        let set = &self.sets[self.set_of(key)];
        match set.0.iter().find(|entry| entry.key == key) {
            Some(entry) => entry.port(),
            None => self.lookup_overflow(key),
        }
    }

    /// Remembers that `key` is behind `port`, now, unless it is static.
    pub fn learn(&mut self, key: Key, port: PortIndex) -> Learned {
        let new = Entry { key, seen: self.now, port: u32::from(port) + 1 };
        let at = self.set_of(key);
        let Table { sets, counts, overflow, .. } = &*self;
        let set = &sets[at].0;
        let fixed = |fixed: Option<PortIndex>| match fixed == Some(port) {
            true => Learned::There,
            false => Learned::No,
        };
        let count = |entry: &Entry| entry.learned_of().map_or(0, |port| counts[usize::from(port)]);
        let own = counts[usize::from(port)];
        let known = set.iter().position(|entry| entry.key == key && entry.port != 0);
        let (way, outcome) = match known {
            Some(way) if set[way].is_static() => {
                let entry = set[way];
                if entry.port() == Some(port) && !entry.has_sent() {
                    self.put(at, way, Entry { port: entry.port | HAS_SENT, ..entry });
                    return Learned::There;
                }
                return fixed(entry.port());
            }
            Some(way) => match set[way].port() {
                Some(before) if before != port => (Some(way), Learned::Moved(before)),
                _ => (Some(way), Learned::There),
            },
            None if overflow.iter().any(|(it, _)| *it == key) => {
                return fixed(self.lookup_overflow(key));
            }
            None => {
                let oldest = set.iter().filter(|e| e.port == new.port).map(|e| e.seen).min();
                let is_own = |e: &Entry| e.port == new.port && Some(e.seen) == oldest;
                // Where one more does not leave it with more than the other.
                let most = set.iter().map(count).max().filter(|most| *most > own + 1);
                let free = own < PER_PORT && set.iter().any(|e| e.port == 0);
                let way = if free {
                    set.iter().position(|e| e.port == 0)
                } else if own < PER_PORT && most.is_some() {
                    set.iter().position(|e| Some(count(e)) == most)
                } else {
                    set.iter().position(is_own)
                };
                let lost = way.and_then(|way| {
                    let entry = set[way];
                    Some(Learned::Instead(entry.key, entry.port()?))
                });
                let outcome = if way.is_some() { Learned::There } else { Learned::No };
                (way, lost.unwrap_or(outcome))
            }
        };
        if let Some(way) = way {
            self.put(at, way, new);
        }
        outcome
    }

    /// Has another entry there, for the program in the kernel, too.
    fn put(&mut self, at: usize, way: usize, new: Entry) {
        let old = std::mem::replace(&mut self.sets[at].0[way], new);
        if let Some(before) = old.learned_of() {
            self.counts[usize::from(before)] -= 1;
        }
        if let Some(port) = new.learned_of() {
            self.counts[usize::from(port)] += 1;
        }
        let Some(fast) = &self.fast else { return };
        match new.port() {
            None => fast.forget(at, way),
            Some(port) if new.is_static() => {
                fast.fix(at, way, new.key, port, new.seen, new.has_sent());
            }
            Some(port) => fast.learn(at, way, new.key, port, new.seen),
        }
    }

    /// How many addresses were learned that are behind `port`.
    pub fn known(&self, port: PortIndex) -> u16 {
        self.counts[usize::from(port)]
    }

    /// Addresses that were learned, from set `from` on, whole sets, until there are `most`; and the set behind
    /// them.
    pub fn list(&self, from: usize, most: usize) -> (Vec<LearnedAddress>, Option<usize>) {
        let mut list = Vec::new();
        for (at, set) in self.sets.iter().enumerate().skip(from) {
            if list.len() >= most {
                return (list, Some(at));
            }
            let known = set.0.iter().enumerate().filter_map(|(way, entry)| {
                let seen = entry.seen.max(self.seen_elsewhere(at, way));
                let (mac, vlan) = address_of(entry.key);
                Some(LearnedAddress {
                    mac,
                    vlan,
                    port: entry.learned_of()?,
                    age_seconds: self.now.saturating_sub(seen),
                })
            });
            list.extend(known);
        }
        (list, None)
    }

    /// Forgets all that was learned of `port`, and what it has sent with: it may send with other addresses now.
    pub fn purge(&mut self, port: PortIndex) {
        self.forget(|entry| entry.port() == Some(port));
        self.forget_senders(port);
    }

    /// Forgets what was learned of these addresses; returns how many there were.
    pub fn flush(&mut self, which: &AddressFilter) -> usize {
        self.forget(|entry| which.matches(entry.key, entry.port()))
    }

    /// When the other that forwards by this table has seen the address there.
    fn seen_elsewhere(&self, set: usize, way: usize) -> u32 {
        self.fast.as_ref().map_or(0, |fast| fast.seen(set, way))
    }

    /// It is `seconds` now. Time does not go back.
    pub fn tick(&mut self, seconds: u32) {
        self.now = seconds;
        if self.ageing > 0 {
            if self.fast.is_some() {
                self.note_seen_elsewhere();
            }
            let oldest = seconds.saturating_sub(self.ageing);
            self.forget(|entry| entry.seen < oldest);
        }
    }

    fn note_seen_elsewhere(&mut self) {
        for at in 0..SETS {
            for way in 0..WAYS {
                let seen = self.seen_elsewhere(at, way);
                let entry = &mut self.sets[at].0[way];
                entry.seen = entry.seen.max(seen);
            }
        }
    }

    /// Forgets such addresses that were learned; returns how many.
    fn forget(&mut self, which: impl Fn(&Entry) -> bool) -> usize {
        let mut forgotten = 0;
        for at in 0..SETS {
            for way in 0..WAYS {
                let entry = &self.sets[at].0[way];
                if entry.learned_of().is_some() && which(entry) {
                    self.put(at, way, Entry::EMPTY);
                    forgotten += 1;
                }
            }
        }
        forgotten
    }

    #[inline]
    fn set_of(&self, key: Key) -> usize {
        ringway_fastpath::set_of(self.secret, key)
    }
}

/// What the places of addresses depend on, so that no port knows which share one.
pub fn random_secret() -> [u64; 2] {
    let random = RandomState::new();
    [random.hash_one(0u8), random.hash_one(1u8)]
}
