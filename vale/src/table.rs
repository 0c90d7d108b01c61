//! The learning table (S-VALE-6): which address was last seen behind which port.

use crate::port::PortIndex;

const SLOTS: usize = 1024;

/// A direct-mapped hash of 1024 addresses. A collision overwrites; nothing ages.
#[derive(Debug)]
pub struct Table {
    /// Address in the upper 48 bits, port + 1 in the lower 16; 0 is empty.
    slots: Box<[u64; SLOTS]>,
}

impl Default for Table {
    fn default() -> Self {
        Table { slots: Box::new([0; SLOTS]) }
    }
}

impl Table {
    /// Where `mac` is, if it was learned and not overwritten since.
    #[inline]
    pub fn lookup(&self, mac: u64) -> Option<PortIndex> {
        let entry = self.slots[Self::slot(mac)];
        (entry >> 16 == mac && entry & 0xffff != 0).then(|| (entry as u16 - 1) as PortIndex)
    }

    /// Remembers that `mac` is behind `port`.
    #[inline]
    pub fn learn(&mut self, mac: u64, port: PortIndex) {
        self.slots[Self::slot(mac)] = mac << 16 | (u64::from(port) + 1);
    }

    #[inline]
    fn slot(mac: u64) -> usize {
        (mac.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54) as usize % SLOTS
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a plain map: what the table knows is right, and it forgets an address only
        /// for another one of the same slot.
        #[test]
        fn behaves_like_a_forgetful_map(
            ops in proptest::collection::vec((0u64..5000, 0u8..254), 1..3000), spread in any::<u64>()
        ) {
            let mac_of = |n: u64| n.wrapping_mul(spread | 1) & 0xffff_ffff_ffff;
            let (mut table, mut model) = (Table::default(), HashMap::new());
            let mut last_in_slot = HashMap::new();
            for (n, port) in ops {
                let mac = mac_of(n);
                table.learn(mac, port);
                model.insert(mac, port);
                last_in_slot.insert(Table::slot(mac), mac);
            }
            for (mac, port) in model {
                let kept = last_in_slot[&Table::slot(mac)] == mac;
                prop_assert_eq!(table.lookup(mac), kept.then_some(port));
            }
        }
    }

    #[test]
    fn an_empty_table_knows_nobody() {
        assert_eq!(Table::default().lookup(0), None);
        assert_eq!(Table::default().lookup(0xffff_ffff_ffff), None);
    }
}
