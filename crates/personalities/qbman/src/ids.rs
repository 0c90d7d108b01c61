//! Numbers that are given out, in ranges.

use std::{collections::BTreeMap, sync::Mutex};

use crate::{Error, lock::lock};

/// Which numbers are free, and which are in use. Ranges that are seeded are given out by [`alloc`](Ids::alloc);
/// others can be reserved by number.
#[derive(Debug)]
pub struct Ids {
    limit: u32,
    ranges: Mutex<Ranges>,
}

/// Disjoint ranges, first to number of ids, that do not touch in either map.
#[derive(Debug, Default)]
struct Ranges {
    seeded: Set,
    used: Set,
}

#[derive(Debug, Default)]
struct Set(BTreeMap<u32, u32>);

impl Set {
    /// The range that `id` is in: its first, and the one after its last.
    fn around(&self, id: u32) -> Option<(u32, u32)> {
        let (first, end) = self.0.range(..=id).next_back()?;
        (id < *end).then_some((*first, *end))
    }

    /// The first range that begins at `id` or after it, or contains it.
    fn next(&self, id: u32) -> Option<(u32, u32)> {
        self.around(id).or_else(|| self.0.range(id..).next().map(|(first, end)| (*first, *end)))
    }

    fn touches(&self, first: u32, end: u32) -> bool {
        self.next(first).is_some_and(|(other, _)| other < end)
    }

    fn insert(&mut self, mut first: u32, mut end: u32) {
        if let Some((before, stop)) = self.0.range(..=first).next_back().map(|(a, b)| (*a, *b))
            && stop >= first
        {
            (first, end) = (before, end.max(stop));
        }
        while let Some((next, stop)) = self.0.range(first..=end).next().map(|(a, b)| (*a, *b)) {
            end = end.max(stop);
            self.0.remove(&next);
        }
        self.0.insert(first, end);
    }

    fn remove(&mut self, first: u32, end: u32) {
        while let Some((from, to)) = self.next(first).filter(|(from, _)| *from < end) {
            self.0.remove(&from);
            if from < first {
                self.0.insert(from, first);
            }
            if to > end {
                self.0.insert(end, to);
            }
        }
    }
}

impl Ids {
    /// Ids from 0 up to `limit`, itself excluded, none of them seeded.
    pub fn new(limit: u32) -> Ids {
        Ids { limit, ranges: Mutex::default() }
    }

    fn range(&self, first: u32, count: u32) -> Result<(u32, u32), Error> {
        let end = first.checked_add(count).filter(|end| *end <= self.limit && count > 0);
        end.map(|end| (first, end)).ok_or(Error::Taken)
    }

    /// Adds ids to those that are given out. What is beyond the limit is left out.
    pub fn seed(&self, first: u32, count: u32) {
        let end = first.saturating_add(count).min(self.limit);
        if first < end {
            let mut ranges = lock(&self.ranges);
            ranges.seeded.insert(first, end);
        }
    }

    /// `count` ids in a row of which the first is a multiple of `align` (0 means 1): the first, and how many. With
    /// `partial` also fewer, as many as there are.
    ///
    /// # Errors
    /// [`Error::Taken`]: no such range is free.
    pub fn alloc(&self, count: u32, align: u32, partial: bool) -> Result<(u32, u32), Error> {
        let align = align.max(1);
        let mut ranges = lock(&self.ranges);
        let mut most: Option<(u32, u32)> = None;
        let mut from = 0;
        while let Some((first, end)) = ranges.seeded.next(from) {
            let mut at = first.max(from);
            from = end;
            while let Some(aligned) = at.checked_next_multiple_of(align).filter(|id| *id < end) {
                let (busy, after) = ranges.used.next(aligned).unwrap_or((end, end));
                let free = busy.min(end).saturating_sub(aligned);
                if free > most.map_or(0, |(_, most)| most) {
                    most = Some((aligned, free.min(count)));
                }
                if free >= count || busy >= end {
                    break;
                }
                at = after;
            }
            if most.is_some_and(|(_, found)| found >= count) {
                break;
            }
        }
        let (first, found) = most.filter(|(_, found)| *found > 0).ok_or(Error::Taken)?;
        if found < count && !partial {
            return Err(Error::Taken);
        }
        ranges.used.insert(first, first + found);
        Ok((first, found))
    }

    /// Takes these very ids, seeded or not.
    ///
    /// # Errors
    /// [`Error::Taken`]: one of them is in use, or beyond the limit.
    pub fn reserve(&self, first: u32, count: u32) -> Result<(), Error> {
        let (first, end) = self.range(first, count)?;
        let mut ranges = lock(&self.ranges);
        if ranges.used.touches(first, end) {
            return Err(Error::Taken);
        }
        ranges.used.insert(first, end);
        Ok(())
    }

    /// Gives ids back. What is not in use stays free.
    pub fn release(&self, first: u32, count: u32) {
        let end = first.saturating_add(count).min(self.limit);
        if first < end {
            lock(&self.ranges).used.remove(first, end);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranges_are_consecutive_aligned_and_partial_on_request() {
        let ids = Ids::new(100);
        assert_eq!(ids.alloc(1, 1, true), Err(Error::Taken));
        ids.seed(10, 20);
        assert_eq!(ids.alloc(4, 0, false), Ok((10, 4)));
        assert_eq!(ids.alloc(4, 8, false), Ok((16, 4)));
        assert_eq!(ids.alloc(2, 1, false), Ok((14, 2)));
        assert_eq!(ids.alloc(11, 1, false), Err(Error::Taken));
        assert_eq!(ids.alloc(11, 1, true), Ok((20, 10)));
        assert_eq!(ids.alloc(1, 1, true), Err(Error::Taken));
        ids.release(0, u32::MAX);
        assert_eq!(ids.alloc(u32::MAX, u32::MAX, true), Err(Error::Taken));
        assert_eq!(ids.alloc(u32::MAX, 1, true), Ok((10, 20)));
    }

    #[test]
    fn reserved_ids_are_in_use_wherever_they_lie() {
        let ids = Ids::new(100);
        ids.seed(10, 10);
        assert_eq!(ids.reserve(5, 10), Ok(()));
        assert_eq!(ids.reserve(14, 1), Err(Error::Taken));
        assert_eq!(ids.alloc(5, 1, false), Ok((15, 5)));
        for (first, count) in [(100, 1), (99, 2), (0, 0), (u32::MAX, u32::MAX)] {
            assert_eq!(ids.reserve(first, count), Err(Error::Taken));
        }
        ids.release(5, 10);
        assert_eq!(ids.reserve(14, 1), Ok(()));
    }

    proptest! {
        /// Against a list of flags.
        #[test]
        fn as_a_list_of_flags(steps in prop::collection::vec((0..4u8, 0..40u32, 0..12u32, 0..5u32, any::<bool>()), 0..60)) {
            let ids = Ids::new(40);
            let (mut seeded, mut used) = ([false; 40], [false; 40]);
            for (what, first, count, align, partial) in steps {
                let span = first as usize..(first + count).min(40) as usize;
                match what {
                    0 => {
                        ids.seed(first, count);
                        seeded[span].fill(true);
                    }
                    1 => {
                        ids.release(first, count);
                        used[span].fill(false);
                    }
                    2 => {
                        let fits = count > 0 && first + count <= 40 && !used[span.clone()].contains(&true);
                        prop_assert_eq!(ids.reserve(first, count).is_ok(), fits);
                        if fits {
                            used[span].fill(true);
                        }
                    }
                    _ => {
                        let is_free = |id: usize| id < 40 && seeded[id] && !used[id];
                        let runs = (0..40usize).step_by(align.max(1) as usize);
                        let run = |at: usize| (at..40).take_while(|id| is_free(*id)).count();
                        let longest = runs.map(run).max().unwrap_or(0).min(count as usize);
                        match ids.alloc(count, align, partial) {
                            Ok((first, found)) => {
                                prop_assert_eq!(found as usize, longest);
                                prop_assert!(found == count || partial);
                                prop_assert_eq!(first % align.max(1), 0);
                                let taken = first as usize..(first + found) as usize;
                                prop_assert!(taken.clone().all(is_free));
                                used[taken].fill(true);
                            }
                            Err(_) => prop_assert!(longest == 0 || longest < count as usize && !partial),
                        }
                    }
                }
            }
        }
    }
}
