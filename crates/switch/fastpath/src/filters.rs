//! Filters of ports that the program interprets (`access.h` in `ringway-nic-setup`).

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use ringway_filter::Insn;

use crate::{FastPath, sys::Shared};

/// Instructions of such a filter at most.
const LENGTH: usize = 64;

/// Bytes of a filter in its map, which has four for each port.
const FILTER: usize = 8 * LENGTH;
pub(crate) const OF_PORT: usize = 4 * FILTER;

/// In a port's flags: it has a filter for what it sends, or gets; and that is the second of two.
const HAS: [u32; 2] = [16, 32];
const SECOND: [u32; 2] = [64, 128];

/// The filters of a port, of what it sends and of what it gets.
pub type Filters<'a> = [Option<&'a [Insn]>; 2];

/// Whether the program can have such a filter: it has no scratch memory.
fn fits(filter: &[Insn]) -> bool {
    // Loads of it, and stores.
    let needs_memory = |insn: &Insn| matches!(insn.code, 0x60 | 0x61 | 0x02 | 0x03);
    filter.len() <= LENGTH && !filter.iter().any(needs_memory)
}

impl FastPath {
    /// Whether the program can see to filters like these.
    pub fn can_filter(&self, filters: Filters<'_>) -> bool {
        filters.iter().flatten().all(|filter| self.filters.is_some() && fits(filter))
    }

    /// Has the program's memory hold these filters, of which it [can](FastPath::can_filter) have each; returns what of a
    /// port's flags, which are `now`, tells it so. The one at work stays as it is.
    pub(crate) fn store_filters(&self, port: u8, now: u32, filters: Filters<'_>) -> u32 {
        let Some(memory) = &self.filters else { return 0 };
        let mut flags = 0;
        for (way, ((filter, has), second)) in filters.into_iter().zip(HAS).zip(SECOND).enumerate() {
            let Some(filter) = filter else { continue };
            let place = |second: bool| {
                usize::from(port) * OF_PORT + (2 * way + usize::from(second)) * FILTER
            };
            let is_second = now & second != 0;
            let is_there = now & has != 0 && is_at(memory, place(is_second), filter);
            // The one at work, or the other.
            let is_second = is_second == is_there;
            if !is_there {
                for (word, value) in words(memory, place(is_second), filter) {
                    word.store(value, Relaxed);
                }
            }
            flags |= has | if is_second { second } else { 0 };
        }
        flags
    }
}

fn is_at(memory: &Shared, at: usize, filter: &[Insn]) -> bool {
    words(memory, at, filter).all(|(word, value)| word.load(Relaxed) == value)
}

/// The words of memory at that place, with what a filter has there.
fn words<'a>(
    memory: &'a Shared,
    at: usize,
    filter: &'a [Insn],
) -> impl Iterator<Item = (&'a AtomicU32, u32)> {
    filter.iter().take(LENGTH).enumerate().flat_map(move |(i, Insn { code, jt, jf, k })| {
        let [low, high] = code.to_ne_bytes();
        let values = [u32::from_ne_bytes([low, high, *jt, *jf]), *k];
        [0, 1].map(|half| memory.u32(at + 8 * i + 4 * half)).into_iter().zip(values)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Shared;

    fn insn(code: u16, k: u32) -> Insn {
        Insn { code, jt: 1, jf: 2, k }
    }

    /// The one at work stays as it is until the flags name the other.
    #[test]
    fn filters_take_turns() {
        let fast = FastPath::unshared([1, 2]).unwrap();
        let (one, other) = ([insn(0x28, 12), insn(6, 1)], [insn(6, 7)]);
        let memory = fast.filters.as_ref().unwrap();
        let at = |place: usize| {
            let at = 3 * OF_PORT + place * FILTER;
            [at, at + 4].map(|at| memory.u32(at).load(Relaxed))
        };
        let of = |code: u16, k| {
            let [low, high] = code.to_ne_bytes();
            [u32::from_ne_bytes([low, high, 1, 2]), k]
        };
        assert_eq!(fast.store_filters(3, 0, [None, None]), 0);
        assert_eq!(fast.store_filters(3, 0, [Some(&one), None]), HAS[0] | SECOND[0]);
        assert_eq!([at(0), at(1)], [[0; 2], of(0x28, 12)]);
        let now = HAS[0] | SECOND[0];
        assert_eq!(fast.store_filters(3, now, [Some(&one), None]), now, "it is there");
        assert_eq!(
            fast.store_filters(3, now, [Some(&other), Some(&one)]),
            HAS[0] | HAS[1] | SECOND[1]
        );
        assert_eq!([at(0), at(1), at(3)], [of(6, 7), of(0x28, 12), of(0x28, 12)]);
        // A longer filter that begins alike is another.
        let now = HAS[0];
        fast.store_filters(3, now, [Some(&other), None]);
        let longer = [insn(6, 7), insn(6, 8)];
        assert_eq!(fast.store_filters(3, now, [Some(&longer), None]), HAS[0] | SECOND[0]);
    }

    #[test]
    fn long_filters_and_those_with_memory_are_the_workers() {
        let fast = FastPath::unshared([1, 2]).unwrap();
        let filter = |length: usize| vec![insn(6, 1); length];
        assert!(fast.can_filter([Some(&filter(64)), None]));
        assert!(!fast.can_filter([None, Some(&filter(65))]));
        for code in [0x60, 0x61, 0x02, 0x03] {
            assert!(!fast.can_filter([Some(&[insn(code, 1), insn(6, 1)]), None]), "{code:#x}");
        }
        let without = FastPath { filters: None, ..fast };
        assert!(without.can_filter([None, None]));
        assert!(!without.can_filter([Some(&filter(1)), None]));
    }

    /// Where it is read beyond its end there is another filter's, which no jump of it leads to.
    #[test]
    fn what_is_behind_a_filter_does_not_matter() {
        let memory = Shared::anonymous(OF_PORT).unwrap();
        words(&memory, 0, &[insn(6, 1), insn(6, 2)])
            .for_each(|(word, value)| word.store(value, Relaxed));
        assert!(is_at(&memory, 0, &[insn(6, 1)]));
    }
}
