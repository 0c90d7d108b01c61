//! Which queue of the machine a frame goes to: that by which the machine sent its flow's last frame, as cards
//! with several queues do it (Virtual I/O Device, section 5.1.6.5.5).

use ringway_flow::flow_hash;

/// Flows are told apart by so many values of their hash.
const FLOWS: usize = 256;

/// The pair of queues of each flow.
#[derive(Debug)]
pub(crate) struct Steering([u8; FLOWS]);

impl Default for Steering {
    fn default() -> Self {
        Steering([u8::MAX; FLOWS])
    }
}

impl Steering {
    /// The machine sends a frame that begins with `begin` by `pair`.
    pub fn learn(&mut self, begin: &[u8], pair: usize) {
        self.0[place(begin)] = pair as u8;
    }

    /// By which pair a frame that begins with `begin` goes to the machine: by its place among those that are `ready`, of which
    /// each has a bit.
    pub fn find(&self, begin: &[u8], ready: u32) -> usize {
        let place = place(begin);
        match 1u32.checked_shl(self.0[place].into()).filter(|pair| ready & pair != 0) {
            Some(pair) => (ready & (pair - 1)).count_ones() as usize,
            None => place % (ready.count_ones() as usize).max(1),
        }
    }
}

fn place(begin: &[u8]) -> usize {
    flow_hash(begin).hash as usize % FLOWS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_comes_back_by_the_queue_that_it_left_by() {
        let frame = |a: u8, b: u8| {
            let ip =
                [0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, a, 10, 0, 0, b, 0, 9, 0, 9];
            [&[2; 12][..], &[8, 0], &ip].concat()
        };
        let mut steering = Steering::default();
        let unknown = steering.find(&frame(1, 2), 0b1111);
        assert!(unknown < 4);
        let other = (unknown + 1) % 4;
        steering.learn(&frame(2, 1), other);
        assert_eq!(steering.find(&frame(1, 2), 0b1111), other);
        let without = 0b1111 & !(1 << other);
        assert!(steering.find(&frame(1, 2), without) < 3, "of fewer queues");
        assert_eq!(steering.find(&frame(1, 2), 1 << other), 0, "the only one");
    }
}
