//! Which objects of a pool are taken: private bookkeeping of the registry, never shared.

use serde::{Deserialize, Serialize};

/// A set of free object indices. Hands out the lowest free ones first after creation, so
/// that neighbours in a ring are neighbours in memory.
#[derive(Debug)]
pub struct Pool {
    used: Vec<bool>,
    /// Objects that were given back; the last is handed out first.
    free: Vec<u32>,
    /// From here on none was ever taken. So a large pool costs nothing before it is used.
    fresh: u32,
}

/// Objects side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// The first one's index.
    pub first: u32,
    /// How many there are.
    pub count: u32,
}

impl Span {
    /// Their indices.
    pub fn indices(self) -> impl Iterator<Item = u32> {
        (0..self.count).map_while(move |i| self.first.checked_add(i))
    }

    /// The same, the last one first.
    pub(crate) fn indices_down(self) -> impl Iterator<Item = u32> {
        (0..self.count).rev().filter_map(move |i| self.first.checked_add(i))
    }

    /// Takes in an object beside it; false if it is none.
    fn join(&mut self, index: u32) -> bool {
        let before = self.first.checked_sub(1) == Some(index);
        if before {
            self.first = index;
        }
        let joined = before || self.first.checked_add(self.count) == Some(index);
        self.count += u32::from(joined);
        joined
    }
}

impl Pool {
    /// `total` objects, the first `reserved` of which are never handed out.
    pub fn new(total: u32, reserved: u32) -> Pool {
        let mut used = vec![false; total as usize];
        used[..reserved as usize].fill(true);
        Pool { used, free: Vec::new(), fresh: reserved }
    }

    /// The first of those that were never taken.
    pub fn fresh(&self) -> u32 {
        self.fresh
    }

    fn never_taken(&self) -> usize {
        self.used.len() - self.fresh as usize
    }

    /// Objects that can still be taken.
    pub fn available(&self) -> usize {
        self.free.len() + self.never_taken()
    }

    /// Takes one object.
    pub fn take(&mut self) -> Option<u32> {
        let index = self.free.pop().or_else(|| {
            let index = self.fresh;
            (self.never_taken() > 0).then(|| {
                self.fresh += 1;
                index
            })
        })?;
        self.used[index as usize] = true;
        Some(index)
    }

    /// Takes `count` objects, or none.
    pub fn take_many(&mut self, count: usize) -> Option<Vec<u32>> {
        if count > self.available() {
            return None;
        }
        Some((0..count).map_while(|_| self.take()).collect())
    }

    /// Takes `count` objects, or fewer if there are fewer, or if they would be more than `most` spans.
    /// Those that were never taken come first: they are one.
    pub fn take_spans(&mut self, count: u32, most: usize) -> Vec<Span> {
        let first = self.fresh;
        let fresh = if most == 0 { 0 } else { (count as usize).min(self.never_taken()) };
        self.used[first as usize..][..fresh].fill(true);
        self.fresh += fresh as u32;
        let mut spans = Vec::new();
        if fresh > 0 {
            spans.push(Span { first, count: fresh as u32 });
        }
        for _ in fresh..count as usize {
            let Some(&index) = self.free.last() else { break };
            if !spans.last_mut().is_some_and(|last| last.join(index)) {
                if spans.len() == most {
                    break;
                }
                spans.push(Span { first: index, count: 1 });
            }
            self.free.pop();
            self.used[index as usize] = true;
        }
        spans
    }

    /// Gives back all objects but the first `reserved` and those that `is_owned` names. Returns how many.
    pub fn retain(&mut self, reserved: u32, is_owned: impl Fn(u32) -> bool) -> usize {
        let taken = (reserved..self.fresh).filter(|&index| !is_owned(index)).collect::<Vec<_>>();
        taken.into_iter().filter(|&index| self.give(index, reserved)).count()
    }

    /// Gives an object back. Returns false, and does nothing, for an index that is out of
    /// range, reserved or free already: the index may come from memory that a client wrote.
    pub fn give(&mut self, index: u32, reserved: u32) -> bool {
        match self.used.get_mut(index as usize) {
            Some(used) if *used && index >= reserved => {
                *used = false;
                self.free.push(index);
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a plain set: nothing is handed out twice, nothing is lost, and giving
        /// back garbage changes nothing.
        #[test]
        fn behaves_like_a_set(ops in proptest::collection::vec((0..5, 0u32..40), 0..200)) {
            let mut pool = Pool::new(32, 2);
            let mut free: BTreeSet<u32> = (2..32).collect();
            // From there on, none was ever taken.
            let mut fresh = 2;
            for (op, number) in ops {
                let taken = match op {
                    0 | 1 => {
                        let taken = pool.take();
                        prop_assert_eq!(taken.is_none(), free.is_empty());
                        taken.into_iter().collect()
                    }
                    2 => {
                        let (count, left) = (number as usize / 4, free.len());
                        let taken = pool.take_many(count);
                        prop_assert_eq!(taken.as_ref().map(Vec::len), (count <= left).then_some(count));
                        taken.unwrap_or_default()
                    }
                    3 => {
                        let (count, most) = (number / 4, number as usize % 4);
                        let spans = pool.take_spans(count, most);
                        prop_assert!(spans.len() <= most);
                        let taken: Vec<u32> = spans.iter().flat_map(|span| span.indices()).collect();
                        let all = (count as usize).min(free.len());
                        let is_short = taken.len() < all && spans.len() < most;
                        prop_assert!(taken.len() <= all && !is_short);
                        taken
                    }
                    _ => {
                        let legal = (2..32).contains(&number) && !free.contains(&number);
                        prop_assert_eq!(pool.give(number, 2), legal);
                        if legal { free.insert(number); }
                        Vec::new()
                    }
                };
                for index in taken {
                    prop_assert!(free.remove(&index));
                    fresh = fresh.max(index + 1);
                }
                prop_assert_eq!((pool.available(), pool.fresh()), (free.len(), fresh));
            }
            // All but those with an owner come back.
            let is_owned = |index: u32| index.is_multiple_of(3);
            let back = (2..fresh).filter(|index| !free.contains(index) && !is_owned(*index)).count();
            prop_assert_eq!(pool.retain(2, is_owned), back);
            prop_assert_eq!(pool.available(), free.len() + back);
        }
    }

    #[test]
    fn spans_are_as_few_as_there_are_pieces() {
        let mut pool = Pool::new(100, 2);
        let all = |spans: &[Span]| spans.iter().flat_map(|span| span.indices()).collect::<Vec<_>>();
        assert_eq!(pool.take_spans(50, 1), [Span { first: 2, count: 50 }]);
        assert!([10, 20, 21, 22, 30].into_iter().all(|index| pool.give(index, 2)));
        let spans = pool.take_spans(200, 3);
        assert_eq!(spans[0], Span { first: 52, count: 48 });
        assert_eq!(spans[1..], [Span { first: 30, count: 1 }, Span { first: 20, count: 3 }]);
        assert_eq!((all(&spans).len(), pool.available()), (52, 1), "a fourth span is too many");
        assert!(pool.take_spans(0, 3).is_empty());
        assert_eq!((pool.take(), pool.take()), (Some(10), None));
        assert!(all(&spans).into_iter().all(|index| pool.give(index, 2)));
        assert_eq!(pool.available(), 52);
    }
}
