//! The last packets, to know those that come again.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Places for each packet that is remembered: most packets that are new find theirs empty.
const SPARSE: usize = 8;

struct Entry {
    arrived: Instant,
    hash: u64,
    bytes: Vec<u8>,
    /// Slots that the packet takes in a ring.
    slots: u32,
}

/// So many packets, of so long a time.
pub struct Memory {
    size: usize,
    window: Duration,
    entries: VecDeque<Entry>,
    /// How many of the packets have a hash that ends so.
    counts: Box<[u16]>,
    /// Room of packets that were forgotten.
    spare: Vec<Vec<u8>>,
}

impl Memory {
    pub fn new(size: usize, window: Duration) -> Memory {
        let counts = vec![0; (SPARSE * size.max(1)).next_power_of_two()].into();
        Memory { size, window, entries: VecDeque::with_capacity(size), counts, spare: Vec::new() }
    }

    /// Whether the packet with this hash is remembered.
    pub fn knows(&self, hash: u64, bytes: &[u8]) -> bool {
        self.counts[self.place(hash)] > 0
            && self.entries.iter().any(|entry| entry.hash == hash && entry.bytes == bytes)
    }

    pub fn is_full(&self) -> bool {
        self.entries.len() >= self.size
    }

    /// Remembers a packet; there must be room.
    pub fn remember(&mut self, hash: u64, bytes: &[u8], slots: u32, arrived: Instant) {
        let mut copy = self.spare.pop().unwrap_or_default();
        copy.clear();
        copy.extend_from_slice(bytes);
        self.counts[self.place(hash)] += 1;
        self.entries.push_back(Entry { arrived, hash, bytes: copy, slots });
    }

    /// When the oldest is too old.
    pub fn next_end(&self) -> Option<Instant> {
        self.entries.front()?.arrived.checked_add(self.window)
    }

    /// Forgets the oldest; returns the slots that it takes.
    pub fn forget(&mut self) -> u32 {
        let Some(entry) = self.entries.pop_front() else { return 0 };
        self.counts[self.place(entry.hash)] -= 1;
        self.spare.push(entry.bytes);
        entry.slots
    }

    fn place(&self, hash: u64) -> usize {
        hash as usize & (self.counts.len() - 1)
    }
}

/// A number that equal packets have in common. What others make of it costs a comparison at worst.
pub fn hash(bytes: &[u8]) -> u64 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |sum: u64, word: u64| {
        let product = u128::from(sum ^ word) * u128::from(ODD);
        product as u64 ^ (product >> 64) as u64
    };
    let (words, rest) = bytes.as_chunks::<8>();
    let sum = words.iter().fold(bytes.len() as u64 + 1, |sum, w| mix(sum, u64::from_le_bytes(*w)));
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    mix(mix(sum, u64::from_le_bytes(last)), ODD)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_forgotten_is_new_again() {
        let now = Instant::now();
        let mut memory = Memory::new(2, Duration::from_secs(1));
        assert_eq!((memory.next_end(), memory.forget()), (None, 0));
        memory.remember(7, b"one", 3, now);
        // Another packet may have the same hash.
        memory.remember(7, b"two", 1, now + Duration::from_secs(5));
        assert!(memory.is_full() && memory.knows(7, b"one") && memory.knows(7, b"two"));
        assert!(!memory.knows(7, b"on") && !memory.knows(8, b"one"));
        assert_eq!(memory.next_end(), Some(now + Duration::from_secs(1)));
        assert_eq!(memory.forget(), 3);
        assert!(!memory.is_full() && !memory.knows(7, b"one") && memory.knows(7, b"two"));
    }

    proptest! {
        #[test]
        fn a_changed_byte_is_another_packet(mut bytes: Vec<u8>, at: prop::sample::Index, by in 1u8..) {
            let before = hash(&bytes);
            prop_assert_eq!(before, hash(&bytes.clone()));
            bytes.push(0);
            prop_assert_ne!(before, hash(&bytes), "it is longer");
            let longer = hash(&bytes);
            let at = at.index(bytes.len());
            bytes[at] ^= by;
            prop_assert_ne!(longer, hash(&bytes));
        }
    }
}
