//! Who has which object of a pool: private bookkeeping of the registry, never shared.

/// A set of free object indices. Hands out the lowest free ones first after creation, so
/// that neighbours in a ring are neighbours in memory.
#[derive(Debug)]
pub struct Pool {
    used: Vec<bool>,
    free: Vec<u32>,
}

impl Pool {
    /// `total` objects, the first `reserved` of which are never handed out.
    pub fn new(total: u32, reserved: u32) -> Pool {
        let mut used = vec![false; total as usize];
        used[..reserved as usize].fill(true);
        Pool { used, free: (reserved..total).rev().collect() }
    }

    /// Objects that can still be taken.
    pub fn available(&self) -> usize {
        self.free.len()
    }

    /// Takes one object.
    pub fn take(&mut self) -> Option<u32> {
        let index = self.free.pop()?;
        self.used[index as usize] = true;
        Some(index)
    }

    /// Takes `count` objects, or none.
    pub fn take_many(&mut self, count: usize) -> Option<Vec<u32>> {
        if count > self.free.len() {
            return None;
        }
        Some((0..count).map_while(|_| self.take()).collect())
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
        fn behaves_like_a_set(ops in proptest::collection::vec((any::<bool>(), 0u32..40), 0..200)) {
            let mut pool = Pool::new(32, 2);
            let mut free: BTreeSet<u32> = (2..32).collect();
            for (take, index) in ops {
                if take {
                    match pool.take() {
                        Some(i) => prop_assert!(free.remove(&i)),
                        None => prop_assert!(free.is_empty()),
                    }
                } else {
                    let legal = (2..32).contains(&index) && !free.contains(&index);
                    prop_assert_eq!(pool.give(index, 2), legal);
                    if legal { free.insert(index); }
                }
                prop_assert_eq!(pool.available(), free.len());
            }
        }
    }
}
