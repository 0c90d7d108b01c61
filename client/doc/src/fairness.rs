//! Whether a reader of several rings gets its share of each, however slow it is.

use ringway::Port;

use crate::open;

/// Slots of a ring: more than any reader takes in one turn.
const SLOTS: u32 = 512;
/// Packets after which shares are compared: many turns.
const PACKETS: u64 = 20_000;
/// Bytes of a frame of the first ring. Those of the next ring are a byte longer each.
const SHORTEST: usize = 60;

/// The sending end of a pipe, whose rings are full as often as the other end gives slots back.
pub struct BusyPipe {
    port: Port,
    seen: Vec<u64>,
}

impl BusyPipe {
    /// A pipe with so many rings, one for the way back, and its receiving end, as `receiver` opens
    /// it.
    ///
    /// # Panics
    /// Where it cannot be opened.
    pub fn new<T>(name: &str, rings: usize, receiver: impl FnOnce(&str) -> T) -> (BusyPipe, T) {
        let port =
            open(&format!("{name}{{1@conf:tx-rings={rings},rx-rings=1,slots={SLOTS}")).expect(name);
        let mut pipe = BusyPipe { port, seen: vec![0; rings] };
        let receiver = receiver(&format!("{name}}}1"));
        pipe.fill();
        (pipe, receiver)
    }

    /// Fills every ring.
    pub fn fill(&mut self) {
        for ring in 0..self.seen.len() {
            let frame = vec![0x22; SHORTEST + ring];
            let mut tx = self.port.tx(ring);
            tx.sync();
            while tx.push(&frame) {}
            tx.sync();
        }
    }

    /// Takes as many frames as `most` that have come back, and counts them.
    pub fn count_returned(&mut self, most: usize) {
        let BusyPipe { port, seen } = self;
        let mut rx = port.rx(0);
        rx.sync();
        rx.batch(most).for_each(|frame| seen[frame.len() - SHORTEST] += 1);
        rx.sync();
    }

    /// Counts a frame that has arrived, by its length.
    ///
    /// # Panics
    /// If it is none of those that were sent.
    pub fn count(&mut self, length: usize) {
        self.seen[length - SHORTEST] += 1;
    }

    /// Whether enough frames have arrived to compare.
    pub fn is_over(&self) -> bool {
        self.seen.iter().sum::<u64>() >= PACKETS
    }

    /// # Panics
    /// If any ring has had less than half of an equal share.
    pub fn assert_fair(&self, reader: &str) {
        let least = self.seen.iter().sum::<u64>() / self.seen.len() as u64 / 2;
        assert!(self.seen.iter().all(|seen| *seen >= least), "{reader}: by ring {:?}", self.seen);
    }
}
