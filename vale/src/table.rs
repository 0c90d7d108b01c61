//! The learning table (S-VALE-6): which address was last seen behind which port.
#![expect(clippy::indexing_slicing, reason = "`slot` is a remainder of the table's length")]

use ringway_bridge_port::PortIndex;

const SLOTS: usize = 1024;

/// An address in the lower 48 bits, its first byte lowest, and its VLAN in the upper 16.
pub type Key = u64;

/// A direct-mapped hash of 1024 addresses. A collision overwrites.
#[derive(Debug)]
pub struct Table {
    entries: Box<[Entry; SLOTS]>,
    /// Seconds for which an entry holds; 0: for ever.
    ageing: u32,
    now: u32,
    /// Entries seen before that have aged.
    oldest: u32,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    key: Key,
    /// Second in which it was last seen.
    seen: u32,
    /// Port + 1; 0 is empty.
    port: u32,
}

impl Entry {
    const EMPTY: Entry = Entry { key: 0, seen: 0, port: 0 };
}

impl Table {
    /// An empty table. What was not learned again for `ageing` seconds is not known any more;
    /// 0: it stays.
    pub fn new(ageing: u32) -> Table {
        Table { entries: Box::new([Entry::EMPTY; SLOTS]), ageing, now: 0, oldest: 0 }
    }

    /// Where `key` is, if it was learned, has not aged, and was not overwritten since.
    #[inline]
    pub fn lookup(&self, key: Key) -> Option<PortIndex> {
        let entry = &self.entries[Self::slot(key)];
        let known = entry.key == key && entry.port != 0 && entry.seen >= self.oldest;
        known.then(|| (entry.port - 1) as PortIndex)
    }

    /// Remembers that `key` is behind `port`, now. Returns what it no longer remembers: another
    /// address of the same place, or the same one behind another port.
    #[inline]
    pub fn learn(&mut self, key: Key, port: PortIndex) -> Option<(Key, PortIndex)> {
        let new = Entry { key, seen: self.now, port: u32::from(port) + 1 };
        let old = std::mem::replace(&mut self.entries[Self::slot(key)], new);
        let lost = old.port != 0 && (old.key, old.port) != (new.key, new.port);
        lost.then(|| (old.key, (old.port - 1) as PortIndex))
    }

    /// Forgets all that is behind `port`.
    pub fn purge(&mut self, port: PortIndex) {
        let gone = u32::from(port) + 1;
        self.entries.iter_mut().filter(|e| e.port == gone).for_each(|e| *e = Entry::EMPTY);
    }

    /// It is `seconds` now. Time does not go back.
    pub fn tick(&mut self, seconds: u32) {
        self.now = seconds;
        self.oldest = if self.ageing == 0 { 0 } else { seconds.saturating_sub(self.ageing) };
    }

    #[inline]
    fn slot(key: Key) -> usize {
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54) as usize % SLOTS
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Op {
        Learn(u64, PortIndex),
        Pass(u32),
        Purge(PortIndex),
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            40 => (0u64..5000, 0u8..254).prop_map(|(n, port)| Op::Learn(n, port)),
            2 => (0u32..8).prop_map(Op::Pass),
            1 => (0u8..254).prop_map(Op::Purge),
        ]
    }

    proptest! {
        /// Against a plain map with times: what the table knows is right, and it forgets an
        /// address only when it has aged, its port has gone, or another one took its place.
        #[test]
        fn behaves_like_a_forgetful_map(
            ops in proptest::collection::vec(op(), 1..2000),
            ageing in 0u32..20, spread in any::<u64>(),
        ) {
            let mac_of = |n: u64| n.wrapping_mul(spread | 1) & 0xffff_ffff_ffff;
            let (mut table, mut model) = (Table::new(ageing), HashMap::new());
            let (mut last_in_slot, mut now) = (HashMap::new(), 1000);
            table.tick(now);
            for op in ops {
                match op {
                    Op::Learn(n, port) => {
                        let mac = mac_of(n);
                        let before = last_in_slot.insert(Table::slot(mac), mac);
                        let before = before.and_then(|mac| Some((mac, model.remove(&mac)?)));
                        let lost = table.learn(mac, port);
                        model.insert(mac, (port, now));
                        let expected = before.map(|(mac, (port, _))| (mac, port));
                        prop_assert_eq!(lost, expected.filter(|old| *old != (mac, port)));
                    }
                    Op::Pass(seconds) => {
                        now += seconds;
                        table.tick(now);
                    }
                    Op::Purge(port) => {
                        table.purge(port);
                        model.retain(|_, (behind, _)| *behind != port);
                    }
                }
            }
            for n in 0..5000 {
                let fresh = |seen| ageing == 0 || now - seen <= ageing;
                let known = model.get(&mac_of(n)).filter(|(_, seen)| fresh(*seen));
                prop_assert_eq!(table.lookup(mac_of(n)), known.map(|(port, _)| *port));
            }
        }
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
    }
}
