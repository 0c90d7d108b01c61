//! The first place that fits, of memory that several processes share: what is taken stands in words that they share, too.
//!
//! ```text
//!  word 0       no granule below this number is free
//!  word 1 + g   how many granules the place has that begins at granule g; 0: none does
//! ```
//!
//! Every change is the store of one word, so a process that is killed leaves what was before it, or what is after it. The
//! caller sees to it that one process at a time is here. The words may have any content all the same: a number from them
//! is bounded when it is read, and whatever it says, places are within the memory, and searches end.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Bytes that places begin at multiples of, and have multiples of.
pub const GRANULE: usize = 64;

/// The words that memory of `length` bytes needs.
pub fn words(length: usize) -> usize {
    1 + length / GRANULE
}

/// Places in memory, of which some are taken.
pub struct SharedFit<'a> {
    lowest: &'a AtomicU32,
    places: &'a [AtomicU32],
}

impl<'a> SharedFit<'a> {
    /// What these words say. `None` if they are none.
    pub fn new(words: &'a [AtomicU32]) -> Option<SharedFit<'a>> {
        let (lowest, places) = words.split_first()?;
        Some(SharedFit { lowest, places })
    }

    /// Where the place ends that begins at a granule, if one does.
    fn end(&self, granule: usize) -> Option<usize> {
        match self.places[granule].load(Relaxed) {
            0 => None,
            count => Some(granule.saturating_add(count as usize).min(self.places.len())),
        }
    }

    /// The offset of `size` bytes whose address is a multiple of `boundary`, a power of two; the memory's own is `base`, a
    /// multiple of granules.
    pub fn take(&self, base: usize, boundary: usize, size: usize) -> Option<usize> {
        let size = u32::try_from(size.max(1).div_ceil(GRANULE)).ok()?;
        let boundary = boundary.max(GRANULE);
        let mut lowest = self.lowest.load(Relaxed) as usize;
        let mut from = lowest;
        loop {
            let address = base.checked_add(from.checked_mul(GRANULE)?)?;
            let place = (address.checked_next_multiple_of(boundary)? - base) / GRANULE;
            let stop = place.checked_add(size as usize)?;
            if stop > self.places.len() {
                return None;
            }
            let taken = (from..stop).find_map(|granule| Some((granule, self.end(granule)?)));
            match taken {
                Some((begin, end)) if begin == lowest => (lowest, from) = (end, end),
                Some((_, end)) => from = end,
                None => {
                    self.places[place].store(size, Relaxed);
                    let lowest = if place == lowest { stop } else { lowest };
                    self.lowest.store(u32::try_from(lowest).unwrap_or(u32::MAX), Relaxed);
                    return Some(place * GRANULE);
                }
            }
        }
    }

    /// Gives the place at an offset back, if it was taken.
    pub fn give(&self, offset: usize) -> bool {
        let granule = offset / GRANULE;
        let Some(place) = self.places.get(granule).filter(|_| offset.is_multiple_of(GRANULE))
        else {
            return false;
        };
        if place.load(Relaxed) == 0 {
            return false;
        }
        // First, so that a process which is killed here loses nothing.
        self.lowest.fetch_min(u32::try_from(granule).unwrap_or(u32::MAX), Relaxed);
        place.swap(0, Relaxed) != 0
    }

    /// Bytes that are free, and how many places are taken.
    pub fn counts(&self) -> (usize, usize) {
        let (mut free, mut taken, mut granule) = (0, 0, 0);
        while granule < self.places.len() {
            match self.end(granule) {
                Some(end) => (taken, granule) = (taken + 1, end),
                None => (free, granule) = (free + GRANULE, granule + 1),
            }
        }
        (free, taken)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BYTES: usize = 64 * GRANULE;

    fn memory(words: &[u32]) -> Vec<AtomicU32> {
        words.iter().map(|word| AtomicU32::new(*word)).collect()
    }

    /// Granules of which each is taken or not, and what was taken.
    struct Model {
        is_taken: [bool; BYTES / GRANULE],
        places: Vec<(usize, usize)>,
    }

    impl Model {
        fn take(&mut self, base: usize, boundary: usize, size: usize) -> Option<usize> {
            let count = size.max(1).div_ceil(GRANULE);
            let is_place = |granule: &usize| {
                (base + granule * GRANULE).is_multiple_of(boundary)
                    && granule + count <= self.is_taken.len()
                    && !self.is_taken[*granule..granule + count].contains(&true)
            };
            let first = (0..self.is_taken.len()).find(is_place)?;
            self.is_taken[first..first + count].fill(true);
            self.places.push((first * GRANULE, count));
            Some(first * GRANULE)
        }

        fn give(&mut self, place: usize) -> usize {
            let (offset, count) = self.places.swap_remove(place);
            self.is_taken[offset / GRANULE..offset / GRANULE + count].fill(false);
            offset
        }

        fn counts(&self) -> (usize, usize) {
            let free = self.is_taken.iter().filter(|is_taken| !**is_taken).count();
            (free * GRANULE, self.places.len())
        }
    }

    proptest! {
        /// Takes and gives are those of a plain model, also by a process that begins with the words alone, and with a
        /// bound that lags behind, as one leaves it that is killed.
        #[test]
        fn places_are_those_of_a_plain_model(
            base in 0..8usize,
            steps in prop::collection::vec((0..4u8, 0..13u32, 0..1500usize, any::<prop::sample::Index>()), 1..200),
        ) {
            let base = base * GRANULE;
            let words = memory(&[0; BYTES / GRANULE + 1]);
            let mut model = Model { is_taken: [false; _], places: Vec::new() };
            for (what, boundary, size, which) in steps {
                let fit = SharedFit::new(&words).unwrap();
                if what < 2 {
                    let boundary = 1 << boundary;
                    prop_assert_eq!(fit.take(base, boundary, size), model.take(base, boundary, size));
                } else if what == 2 && !model.places.is_empty() {
                    let place = model.give(which.index(model.places.len()));
                    prop_assert!(fit.give(place) && !fit.give(place) && !fit.give(place + 1));
                } else {
                    let place = which.get(&[&[(0, 0)], model.places.as_slice()].concat()).0;
                    words[0].fetch_min((place / GRANULE) as u32, Relaxed);
                }
                prop_assert_eq!(fit.counts(), model.counts());
            }
        }

        /// Whatever the words say, places are within the memory, and everything ends.
        #[test]
        fn words_may_say_anything(
            words in prop::collection::vec(prop_oneof![Just(0), 0..80u32, any::<u32>()], 0..80),
            steps in prop::collection::vec((0..40u32, any::<usize>(), 0..10_000usize), 1..50),
        ) {
            let words = memory(&words);
            let Some(fit) = SharedFit::new(&words) else { return Ok(()) };
            let bytes = (words.len() - 1) * GRANULE;
            for (boundary, large, size) in steps {
                for size in [large, size] {
                    if let Some(place) = fit.take(1 << 32, 1 << boundary, size) {
                        prop_assert!(place + size <= bytes && place % (1 << boundary) == 0);
                    }
                    fit.give(size);
                }
                prop_assert!(fit.counts().0 <= bytes);
            }
        }
    }
}
