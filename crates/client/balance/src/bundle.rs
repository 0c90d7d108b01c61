//! Packets that are chosen for before any of them is taken, so that each output takes its own at once.

/// Packets of one slot each, of which `first` is in the first, by the output that they are for: for each a bit.
#[derive(Default)]
pub struct Bundle {
    first: Option<u32>,
    of_outputs: Vec<u64>,
}

impl Bundle {
    /// For so many outputs. Nothing is in it.
    pub fn set_outputs(&mut self, outputs: usize) {
        self.of_outputs.resize(outputs, 0);
    }

    /// Whether the packet in slot `at`, which is behind those that are in it, can be added.
    #[inline]
    pub fn reaches(&self, at: u32) -> bool {
        self.first.is_none_or(|first| at - first < u64::BITS)
    }

    /// Opens it at slot `at` if it is empty; returns the first slot behind those that it reaches.
    #[inline]
    pub fn end(&mut self, at: u32) -> u32 {
        *self.first.get_or_insert(at) + u64::BITS
    }

    /// Adds a packet that it reaches.
    #[inline]
    pub fn add(&mut self, at: u32, output: usize) {
        self.of_outputs[output] |= 1 << (at - *self.first.get_or_insert(at));
    }

    /// Empties it: for each output with packets, the slots that they are in.
    #[inline]
    pub fn take(&mut self, mut each: impl FnMut(usize, Places)) {
        let Some(first) = self.first.take() else { return };
        for (output, packets) in self.of_outputs.iter_mut().enumerate() {
            let bits = std::mem::take(packets);
            if bits != 0 {
                each(output, Places { first, bits });
            }
        }
    }
}

/// Slots of a bundle.
#[derive(Clone, Copy)]
pub struct Places {
    first: u32,
    bits: u64,
}

impl Places {
    /// How many.
    pub fn left(&self) -> u32 {
        self.bits.count_ones()
    }
}

impl Iterator for Places {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        let place = self.bits.trailing_zeros();
        // Without the lowest bit.
        self.bits &= self.bits.checked_sub(1)?;
        Some(self.first + place)
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    proptest! {
        #[test]
        fn each_output_has_its_own_in_order(chosen in vec(prop::option::of(0usize..5), 0..200)) {
            let mut bundle = Bundle::default();
            bundle.set_outputs(5);
            let mut had = vec![Vec::new(); 5];
            let mut take = |bundle: &mut Bundle| {
                bundle.take(|output, places| {
                    assert_eq!(places.left() as usize, places.count());
                    had[output].extend(places);
                });
            };
            for (at, output) in (7..).zip(&chosen) {
                let Some(output) = *output else { continue };
                if !bundle.reaches(at) {
                    take(&mut bundle);
                }
                bundle.add(at, output);
            }
            take(&mut bundle);
            for (output, had) in had.iter().enumerate() {
                let own = (7..).zip(&chosen).filter(|(_, to)| **to == Some(output)).map(|(at, _)| at);
                prop_assert!(own.eq(had.iter().copied()));
            }
        }
    }
}
