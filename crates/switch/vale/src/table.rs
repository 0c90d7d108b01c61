//! The learning table (S-VALE-6): which address was last seen behind which port.
//!
//! Ports do not trust each other, so none decides what becomes of another's addresses. Where an address
//! is kept is said by a hash with a random key, so a port cannot choose addresses that meet those of
//! another. An address has four places to be in; where all are taken, it takes that of a port that has
//! more addresses than its own, or of its own port, or none. So a port with a thousand addresses takes
//! no place from one with ten.
#![expect(
    clippy::indexing_slicing,
    reason = "`set_of` is a remainder of the number of sets; there are 256 counts, indexed by a port's number of 8 bits"
)]

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use crate::function::Mac;
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
    /// Port + 1; 0 is empty.
    port: u32,
}

const _: () = assert!(size_of::<Set>() == 64);

impl Entry {
    /// Its key is no address that is learned: it names a group.
    const EMPTY: Entry = Entry { key: Key::MAX, seen: 0, port: 0 };

    fn port(&self) -> Option<PortIndex> {
        self.port.checked_sub(1).map(|port| port as PortIndex)
    }
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
    /// There is no place for it.
    No,
}

impl Table {
    /// An empty table. What was not learned again for `ageing` seconds is not known any more;
    /// 0: it stays.
    pub fn new(ageing: u32) -> Table {
        let secret = random_secret();
        let sets = Box::new([Set([Entry::EMPTY; WAYS]); SETS]);
        Table { sets, counts: Box::new([0; 256]), secret, ageing, now: 0, fast: None }
    }

    /// The same table, shared with a program in the kernel: each address has its place there.
    pub fn share(&mut self, fast: Arc<FastPath>) {
        let empty = Table { secret: fast.secret(), now: self.now, ..Table::new(self.ageing) };
        let old = std::mem::replace(self, Table { fast: Some(fast), ..empty });
        let mut entries: Vec<Entry> = old.sets.iter().flat_map(|set| set.0).collect();
        // Those that were seen last, should there be no place for all.
        entries.sort_by_key(|entry| entry.seen);
        for entry in entries {
            if let Some(port) = entry.port() {
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

    /// Where `key` is, if it was learned, has not aged, and was not displaced since.
    #[inline]
    pub fn lookup(&self, key: Key) -> Option<PortIndex> {
        let set = &self.sets[self.set_of(key)];
        set.0.iter().find(|entry| entry.key == key)?.port()
    }

    /// Remembers that `key` is behind `port`, now.
    pub fn learn(&mut self, key: Key, port: PortIndex) -> Learned {
        let new = Entry { key, seen: self.now, port: u32::from(port) + 1 };
        let at = self.set_of(key);
        let Table { sets, counts, fast, .. } = self;
        let set = &mut sets[at].0;
        let count = |entry: &Entry| entry.port().map_or(0, |port| counts[usize::from(port)]);
        let own = counts[usize::from(port)];
        let known = set.iter().position(|entry| entry.key == key && entry.port != 0);
        let (way, outcome) = match known {
            Some(way) => match set[way].port() {
                Some(before) if before != port => (Some(way), Learned::Moved(before)),
                _ => (Some(way), Learned::There),
            },
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
            let old = std::mem::replace(&mut set[way], new);
            if let Some(before) = old.port() {
                counts[usize::from(before)] -= 1;
            }
            counts[usize::from(port)] += 1;
            if let Some(fast) = fast {
                fast.learn(at, way, key, port, new.seen);
            }
        }
        outcome
    }

    /// How many addresses are behind `port`.
    pub fn known(&self, port: PortIndex) -> u16 {
        self.counts[usize::from(port)]
    }

    /// Addresses from set `from` on, whole sets, until there are `most`; and the set behind them.
    pub fn list(&self, from: usize, most: usize) -> (Vec<LearnedAddress>, Option<usize>) {
        let mut list = Vec::new();
        for (at, set) in self.sets.iter().enumerate().skip(from) {
            if list.len() >= most {
                return (list, Some(at));
            }
            let known = set.0.iter().enumerate().filter_map(|(way, entry)| {
                let seen = entry.seen.max(self.seen_elsewhere(at, way));
                let [mac @ .., low, high] = entry.key.to_le_bytes();
                Some(LearnedAddress {
                    mac,
                    vlan: u16::from_le_bytes([low, high]),
                    port: entry.port()?,
                    age_seconds: self.now.saturating_sub(seen),
                })
            });
            list.extend(known);
        }
        (list, None)
    }

    /// Forgets all that is behind `port`.
    pub fn purge(&mut self, port: PortIndex) {
        self.forget(|entry| entry.port() == Some(port));
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

    fn forget(&mut self, which: impl Fn(&Entry) -> bool) {
        let Table { sets, counts, fast, .. } = self;
        for (at, set) in sets.iter_mut().enumerate() {
            for (way, entry) in set.0.iter_mut().enumerate() {
                let Some(port) = entry.port().filter(|_| which(entry)) else { continue };
                counts[usize::from(port)] -= 1;
                *entry = Entry::EMPTY;
                if let Some(fast) = fast {
                    fast.forget(at, way);
                }
            }
        }
    }

    #[inline]
    fn set_of(&self, key: Key) -> usize {
        set_of(self.secret, key)
    }
}

/// What the places of addresses depend on, so that no port knows which share one.
pub fn random_secret() -> [u64; 2] {
    let random = RandomState::new();
    [random.hash_one(0u8), random.hash_one(1u8)]
}

/// Both halves of a product of two secrets, each with the key in it: which addresses meet depends on all
/// bits of the secrets. With one secret in a hundred, evenly spaced addresses have few lower bits of that,
/// and few upper ones with others; a second product has all of them in its upper bits.
#[inline]
fn set_of([one, other]: [u64; 2], key: Key) -> usize {
    /// An odd number whose bits have no pattern.
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    const { assert!(SETS.is_power_of_two()) };
    let product = u128::from(key ^ one) * u128::from(key.rotate_left(32) ^ other);
    let folded = (product >> 64) as u64 ^ product as u64;
    (folded.wrapping_mul(SPREAD) >> (u64::BITS - SETS.ilog2())) as usize
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Op {
        Learn(u64, PortIndex),
        /// Many addresses of one port.
        Flood(PortIndex, u64),
        Pass(u32),
        Purge(PortIndex),
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            40 => (0u64..5000, 0u8..254).prop_map(|(n, port)| Op::Learn(n, port)),
            2 => (0u8..254, 1000u64..3000).prop_map(|(port, count)| Op::Flood(port, count)),
            2 => (0u32..8).prop_map(Op::Pass),
            1 => (0u8..254).prop_map(Op::Purge),
        ]
    }

    /// Times by address, and what the table says that it lost.
    struct Model {
        table: Table,
        known: HashMap<u64, (PortIndex, u32)>,
        now: u32,
    }

    impl Model {
        fn learn(&mut self, mac: u64, port: PortIndex) {
            let before = self.known.get(&mac).map(|(port, _)| *port);
            let count = |known: &HashMap<u64, (PortIndex, u32)>, port| {
                known.values().filter(|(behind, _)| *behind == port).count()
            };
            match self.table.learn(mac, port) {
                Learned::There => assert!(before.is_none() || before == Some(port)),
                Learned::Moved(old) => assert!(before == Some(old) && old != port),
                Learned::Instead(lost, old) => {
                    assert_eq!(before, None);
                    assert_eq!(self.known.remove(&lost).map(|(port, _)| port), Some(old));
                    // Only of a port that has more, or its own.
                    let has = count(&self.known, old) + 1;
                    assert!(old == port || has > count(&self.known, port) + 1, "{has}");
                }
                Learned::No => return assert_eq!(before, None),
            }
            self.known.insert(mac, (port, self.now));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Against a plain map with times: what the table knows is right, and it forgets an
        /// address only when it has aged, its port has gone, or it says so.
        #[test]
        fn behaves_like_a_forgetful_map(
            ops in proptest::collection::vec(op(), 1..300),
            ageing in 0u32..20, spread in any::<u64>(), shared_from in 0usize..300,
        ) {
            let mac_of = |n: u64| n.wrapping_mul(spread | 1) & 0xffff_ffff_ffff;
            let mut model = Model { table: Table::new(ageing), known: HashMap::new(), now: 1000 };
            model.table.tick(model.now);
            let fast = Arc::new(FastPath::unshared(random_secret()).unwrap());
            let mut is_shared = false;
            for (number, op) in ops.into_iter().enumerate() {
                // Addresses get other places: where they do not fit there, they are forgotten.
                if number == shared_from {
                    model.table.share(fast.clone());
                    is_shared = true;
                    model.known.retain(|mac, _| model.table.lookup(*mac).is_some());
                }
                match op {
                    Op::Learn(n, port) => model.learn(mac_of(n), port),
                    Op::Flood(port, count) => {
                        (0..count).for_each(|n| model.learn(mac_of(10_000 + n), port));
                    }
                    Op::Pass(seconds) => {
                        model.now += seconds;
                        model.table.tick(model.now);
                        let fresh = |seen: u32| ageing == 0 || model.now - seen <= ageing;
                        model.known.retain(|_, (_, seen)| fresh(*seen));
                    }
                    Op::Purge(port) => {
                        model.table.purge(port);
                        model.known.retain(|_, (behind, _)| *behind != port);
                    }
                }
            }
            for (at, set) in model.table.sets.iter().enumerate().filter(|_| is_shared) {
                for (way, entry) in set.0.iter().enumerate() {
                    let here = entry.port().map(|port| (entry.key, port));
                    prop_assert_eq!(fast.entry(at, way), here);
                    prop_assert!(here.is_none() || fast.seen(at, way) == entry.seen);
                }
            }
            for mac in (0..13_000).map(mac_of) {
                let known = model.known.get(&mac).map(|(port, _)| *port);
                prop_assert_eq!(model.table.lookup(mac), known);
            }
            let mut listed = HashMap::new();
            let mut next = Some(0);
            while let Some(from) = next {
                let page;
                (page, next) = model.table.list(from, 100);
                prop_assert!(page.len() < 100 + WAYS);
                for LearnedAddress { mac: [a, b, c, d, e, f], vlan, port, age_seconds } in page {
                    let key = u64::from_le_bytes([a, b, c, d, e, f, 0, 0]);
                    prop_assert_eq!(vlan, 0);
                    prop_assert_eq!(listed.insert(key, (port, model.now - age_seconds)), None);
                }
            }
            prop_assert_eq!(&listed, &model.known);
            for port in 0..=PortIndex::MAX {
                let behind = model.known.values().filter(|(behind, _)| *behind == port).count();
                prop_assert_eq!(usize::from(model.table.known(port)), behind);
            }
        }
    }

    /// 600 addresses of one port, in each order of their bytes, whatever the secrets are.
    #[test]
    fn evenly_spaced_addresses_do_not_meet() {
        let mut secret = [1u64, 2];
        for _ in 0..500 {
            secret = secret
                .map(|half: u64| half.wrapping_mul(0x5851_f42d_4c95_7f2d).rotate_left(29) ^ 7);
            for place in [8u32, 16, 24, 32] {
                let mut table = Table { secret, ..Table::new(0) };
                for number in 0..600u16 {
                    let vlan = if number % 2 == 1 { 7 } else { 1 };
                    table.learn(u64::from(number.swap_bytes()) << place | vlan << 48 | 2, 3);
                }
                let known = table.known(3);
                assert!(known >= 590, "{known} with {secret:x?} at {place}");
            }
        }
    }

    /// A port has so many addresses and no more, but for those that come to it from others.
    #[test]
    fn a_port_has_a_quarter_of_the_places() {
        let mut table = Table::new(0);
        let address = |n: u64| n << 8 | 2;
        // It keeps its place, for it is the only one of its port.
        let other = address(1 << 30);
        table.learn(other, 2);
        for n in 0..20_000 {
            table.learn(address(n), 1);
            assert!(table.known(1) <= 1024);
        }
        assert_eq!((table.known(1), table.known(2)), (1024, 1));
        assert_eq!(table.learn(other, 1), Learned::Moved(2));
        assert_eq!((table.known(1), table.known(2)), (1025, 0));
        table.purge(1);
        assert_eq!(table.known(1), 0);
    }

    /// What of its own a port loses for the next address, when it has no more places: the oldest of that set.
    #[test]
    fn of_its_own_a_port_loses_the_oldest() {
        let mut table = Table::new(0);
        let mut number = 0;
        let mut next = |table: &Table, set: usize| loop {
            number += 1;
            let key = number << 8 | 2;
            if table.set_of(key) == set {
                return key;
            }
        };
        let keys: Vec<Key> = (0..WAYS).map(|_| next(&table, 5)).collect();
        // Not in the order of their places.
        for (second, way) in [2, 0, 3, 1].into_iter().enumerate() {
            table.tick(second as u32);
            table.learn(keys[way], 1);
        }
        table.tick(9);
        let new = next(&table, 5);
        assert_eq!(table.learn(new, 1), Learned::Instead(keys[2], 1));
        assert_eq!(table.lookup(keys[2]), None);
        assert_eq!(table.lookup(new), Some(1));
    }

    /// What the program in the kernel has seen does not age, and is not told as older than it is.
    #[test]
    fn what_was_seen_elsewhere_is_known() {
        let fast = Arc::new(FastPath::unshared(random_secret()).unwrap());
        let mut table = Table::new(10);
        table.tick(100);
        table.share(fast.clone());
        let [here, there] = [0x11_0002, 0x22_0002];
        table.learn(here, 1);
        table.learn(there, 2);
        let set = table.set_of(there);
        let way = (0..WAYS).find(|way| fast.entry(set, *way) == Some((there, 2))).unwrap();
        fast.learn(set, way, there, 2, 107);
        table.now = 109;
        let mut ages: Vec<_> =
            table.list(0, 10).0.iter().map(|it| (it.port, it.age_seconds)).collect();
        ages.sort_unstable();
        assert_eq!(ages, [(1, 9), (2, 2)]);
        table.tick(111);
        assert_eq!((table.lookup(here), table.lookup(there)), (None, Some(2)));
        table.tick(117);
        assert_eq!(table.lookup(there), Some(2));
        table.tick(118);
        assert_eq!((table.lookup(there), table.known(2)), (None, 0));
    }

    #[test]
    fn a_list_has_whole_sets_up_to_so_many() {
        let mut table = Table::new(0);
        for n in 0..200 {
            table.learn(n << 8 | 2, 7);
        }
        let (all, end) = table.list(0, usize::MAX);
        // Of more than a set holds, it has lost some.
        assert_eq!((all.len(), end), (table.known(7).into(), None));
        let (mut seen, mut from) = (Vec::new(), Some(0));
        while let Some(at) = from {
            let (page, next) = table.list(at, 10);
            assert!(next.is_none() || (10..10 + WAYS).contains(&page.len()), "{}", page.len());
            assert!(next.is_none_or(|next| next > at));
            seen.extend(page);
            from = next;
        }
        assert_eq!(seen, all);
        assert_eq!(table.list(0, 0), (Vec::new(), Some(0)));
    }

    #[test]
    fn an_empty_table_knows_no_address() {
        assert_eq!(Table::new(0).lookup(0), None);
        assert_eq!(Table::new(300).lookup(0xffff_ffff_ffff), None);
    }

    #[test]
    fn the_same_address_in_two_vlans_is_two() {
        let mut table = Table::new(0);
        let (one, two) = (0x1234 | 1 << 48, 0x1234 | 2 << 48);
        table.learn(one, 3);
        table.learn(two, 4);
        assert_eq!((table.lookup(one), table.lookup(two)), (Some(3), Some(4)));
        let mut listed = table.list(0, 10).0;
        listed.sort_by_key(|address| address.vlan);
        let told: Vec<_> = listed.iter().map(|a| (a.mac, a.vlan, a.port)).collect();
        let mac = [0x34, 0x12, 0, 0, 0, 0];
        assert_eq!(told, [(mac, 1, 3), (mac, 2, 4)]);
    }

    /// Whatever addresses some ports make up, and however many, those of ports with fewer stay known.
    /// (A port that has none yet may take the place of one with four, which is its right: so those who
    /// flood have more from the beginning.)
    #[test]
    fn nobody_evicts_those_who_have_few() {
        let mut table = Table::new(300);
        let flood = |table: &mut Table, numbers: std::ops::Range<u64>| {
            for n in numbers {
                table.learn(n << 16 | 0x0200, 200 + (n % 50) as u8);
            }
        };
        flood(&mut table, 0..1000);
        let few = |port: u8| (0..4u64).map(move |n| (n << 40 | u64::from(port) << 8 | 2, port));
        for (mac, port) in (0..100).flat_map(few) {
            table.learn(mac, port);
        }
        // More of them than a set has places may have met in one.
        let known = |table: &Table| -> Vec<_> {
            (0..100).flat_map(few).filter(|(mac, port)| table.lookup(*mac) == Some(*port)).collect()
        };
        let before = known(&table);
        assert!(before.len() > 300, "{}", before.len());
        flood(&mut table, 1000..1_000_000);
        assert_eq!(known(&table), before);
        // A port that comes when the table is full finds a place.
        assert_ne!(table.learn(0x77_0002, 100), Learned::No);
        assert_eq!(table.lookup(0x77_0002), Some(100));
    }
}
