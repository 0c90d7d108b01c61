//! The first place that fits.

use std::collections::BTreeMap;

/// Places in a range, of which some are taken.
#[derive(Debug)]
pub struct FirstFit {
    /// Begin to end.
    free: BTreeMap<usize, usize>,
    /// Begin to begin and end.
    taken: BTreeMap<usize, (usize, usize)>,
}

impl FirstFit {
    pub fn new(begin: usize, length: usize) -> FirstFit {
        FirstFit { free: [(begin, begin + length)].into(), taken: BTreeMap::new() }
    }

    /// A place of `size` bytes at a multiple of `boundary`, a power of two.
    pub fn take(&mut self, boundary: usize, size: usize) -> Option<usize> {
        let size = size.max(1);
        let fit = |(begin, end): (&usize, &usize)| {
            let place = begin.checked_next_multiple_of(boundary)?;
            let stop = place.checked_add(size)?;
            (stop <= *end).then_some((*begin, *end, place, stop))
        };
        let (begin, end, place, stop) = self.free.iter().find_map(fit)?;
        self.free.remove(&begin);
        if begin < place {
            self.free.insert(begin, place);
        }
        if stop < end {
            self.free.insert(stop, end);
        }
        self.taken.insert(place, (place, stop));
        Some(place)
    }

    /// Gives a place back, if it was taken.
    pub fn give(&mut self, place: usize) -> bool {
        let Some((mut begin, mut end)) = self.taken.remove(&place) else { return false };
        if let Some((before, stop)) = self.free.range(..begin).next_back().map(|(a, b)| (*a, *b))
            && stop == begin
        {
            begin = before;
        }
        if let Some(stop) = self.free.remove(&end) {
            end = stop;
        }
        self.free.insert(begin, end);
        true
    }

    /// Bytes that are free, and how many places are taken.
    pub fn counts(&self) -> (usize, usize) {
        (self.free.iter().map(|(begin, end)| end - begin).sum(), self.taken.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_do_not_overlap_and_come_back() {
        let mut fit = FirstFit::new(0x1000, 0x1000);
        assert_eq!(fit.take(1, 1), Some(0x1000));
        assert_eq!(fit.take(64, 100), Some(0x1040));
        assert_eq!(fit.take(1, 0x3f), Some(0x1001));
        assert_eq!(fit.take(1, 1), Some(0x10a4));
        assert_eq!(fit.take(0x1000, 1), None);
        assert_eq!(fit.take(1, usize::MAX), None);
        assert!(!fit.give(0x1041));
        for place in [0x1040, 0x1000, 0x10a4, 0x1001] {
            assert!(fit.give(place) && !fit.give(place));
        }
        assert_eq!(fit.counts(), (0x1000, 0));
        assert_eq!(fit.take(1, 0x1000), Some(0x1000));
        assert_eq!(fit.counts(), (0, 1));
    }
}
