//! What a port may cost in one turn (trust rule 6): the bytes that its packets have the worker copy,
//! and something for each packet. A port that has used up its turn goes on in the next round, so
//! other ports, and what the registry asks, never wait longer for it.

use ringway_bridge_port::Delivered;

/// What handing over one packet costs besides its bytes: about the time in which so many are copied.
const PACKET: u64 = 256;

/// What a look at a ring costs, and what each slot costs that is found there.
const LOOK: u64 = 1024;
const SLOT: u64 = 64;

/// What is left of a port's turn.
#[derive(Debug)]
pub(crate) struct Budget {
    left: u64,
}

impl Budget {
    /// For one port in one round: some tenths of a millisecond.
    pub fn turn() -> Budget {
        Budget { left: 1 << 20 }
    }

    /// For a port that goes, before its owner is answered: some milliseconds, in which nearly every
    /// port has forwarded what its program had sent.
    pub fn farewell() -> Budget {
        Budget { left: 8 << 20 }
    }

    #[inline]
    pub fn is_spent(&self) -> bool {
        self.left == 0
    }

    /// So many slots were found in a ring.
    #[inline]
    pub fn charge_look(&mut self, slots: u32) {
        self.left = self.left.saturating_sub(LOOK + u64::from(slots) * SLOT);
    }

    /// Packets were copied so many times.
    #[inline]
    pub fn charge(&mut self, Delivered { packets, bytes }: Delivered, copies: u64) {
        self.left = self.left.saturating_sub((bytes + packets * PACKET) * copies);
    }

    /// How many of packets with these lengths may be copied so many times each.
    pub fn affords(&self, lengths: impl Iterator<Item = u32>, copies: u64) -> usize {
        let mut left = self.left;
        let fits = |len: &u32| {
            let fits = left > 0;
            left = left.saturating_sub((u64::from(*len) + PACKET) * copies);
            fits
        };
        lengths.take_while(fits).count()
    }
}
