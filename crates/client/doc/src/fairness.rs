//! Whether a reader of several rings, or of several ports, gets its share of each, however slow it is.

use ringway::Port;

use crate::open;

/// Slots of a ring: more than any reader takes in one turn.
const SLOTS: u32 = 512;
/// Packets after which shares are compared: many turns.
const PACKETS: u64 = 20_000;
/// Bytes of a frame of the first ring. Those of the next ring are a byte longer each.
const SHORTEST: usize = 60;

/// The sending ends of pipes, whose rings are full as often as the other ends give slots back.
pub struct BusyPipe {
    ports: Vec<Port>,
    /// Frames that have arrived, by ring: those of the first port, then those of the next.
    seen: Vec<u64>,
}

impl BusyPipe {
    /// A pipe with so many rings, one for the way back, and its receiving end, as `receiver` opens
    /// it.
    ///
    /// # Panics
    /// Where it cannot be opened.
    pub fn new<T>(name: &str, rings: usize, receiver: impl FnOnce(&str) -> T) -> (BusyPipe, T) {
        let mut pipe = BusyPipe { ports: Vec::new(), seen: vec![0; rings] };
        let receiver = pipe.add(name, rings, receiver);
        pipe.fill();
        (pipe, receiver)
    }

    /// So many pipes of one ring each, and their receiving ends.
    ///
    /// # Panics
    /// Where one cannot be opened.
    pub fn several<T>(
        name: &str,
        pipes: usize,
        mut receiver: impl FnMut(&str) -> T,
    ) -> (BusyPipe, Vec<T>) {
        let mut pipe = BusyPipe { ports: Vec::new(), seen: vec![0; pipes] };
        let receivers = (0..pipes).map(|n| pipe.add(&format!("{name}{n}x"), 1, &mut receiver));
        let receivers = receivers.collect();
        pipe.fill();
        (pipe, receivers)
    }

    fn add<T>(&mut self, name: &str, rings: usize, receiver: impl FnOnce(&str) -> T) -> T {
        // In the region that has room for many rings.
        let port = format!("{name}{{1@1@conf:tx-rings={rings},rx-rings=1,slots={SLOTS}");
        self.ports.push(open(&port).expect(name));
        receiver(&format!("{name}}}1"))
    }

    /// Fills every ring.
    pub fn fill(&mut self) {
        let mut lengths = SHORTEST..;
        for port in &mut self.ports {
            for (ring, length) in (0..port.tx_rings()).zip(&mut lengths) {
                let frame = vec![0x22; length];
                let mut tx = port.tx(ring);
                tx.sync();
                while tx.push(&frame) {}
                tx.sync();
            }
        }
    }

    /// Takes as many frames as `most` that have come back by the first pipe, and counts them.
    pub fn count_returned(&mut self, most: usize) {
        let BusyPipe { ports, seen } = self;
        let mut rx = ports[0].rx(0);
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
