//! Frames that take several slots, taken apart.

use ringway::{Port, Recorded, TxBatch, TxRing};

/// The most slots that a packet can have (`NETMAP_MAX_FRAGS`).
pub const MAX_FRAGMENTS: usize = 64;

/// Hands over what was put into a ring. `is_short`: for another packet too few slots were free; then the next wait ends
/// only when there are more than those.
#[inline]
pub fn publish(tx: &mut TxRing<'_>, is_short: bool) {
    if is_short {
        // Before the sync: what that finds is news.
        tx.slots().await_more();
    }
    tx.sync();
}

/// How a ring takes frames: `room` bytes in a slot.
#[derive(Clone, Copy, Debug)]
pub struct Fragmenter {
    room: usize,
    longest: usize,
}

impl Fragmenter {
    /// For a ring whose buffers have `room` bytes.
    pub fn new(tx: &mut TxRing<'_>, room: usize) -> Fragmenter {
        let slots = (tx.slots().num_slots() as usize - 1).min(MAX_FRAGMENTS);
        Fragmenter { room, longest: slots * room }
    }

    /// For the first transmit ring of a port; a port without one takes nothing.
    pub fn of(port: &mut Port) -> Fragmenter {
        match port.tx_rings() {
            0 => Fragmenter::none(),
            _ => {
                let room = port.max_frame();
                Fragmenter::new(&mut port.tx(0), room)
            }
        }
    }

    /// For a port that takes nothing.
    pub fn none() -> Fragmenter {
        Fragmenter { room: 0, longest: 0 }
    }

    /// The length of the longest frame that the ring can hold.
    pub fn longest(self) -> usize {
        self.longest
    }

    /// Puts a frame into as many slots as it takes. False: there are too few, and none was taken.
    #[inline]
    pub fn put(self, slots: &mut TxBatch<'_>, frame: &[u8]) -> bool {
        self.put_recorded(slots, frame, None)
    }

    /// The same, for a port that may be a capture file, which is to have this of the frame.
    #[inline]
    pub fn put_recorded(
        self,
        slots: &mut TxBatch<'_>,
        frame: &[u8],
        mut recorded: Option<Recorded>,
    ) -> bool {
        if frame.len() <= self.room {
            let Some(mut slot) = slots.next() else { return false };
            slot.write(frame);
            if let Some(recorded) = recorded {
                slot.set_recorded(recorded);
            }
            return true;
        }
        if frame.len() > self.longest || frame.len() > slots.size_hint().0 * self.room {
            return false;
        }
        let mut parts = frame.chunks(self.room).peekable();
        while let Some(part) = parts.next() {
            let Some(mut slot) = slots.next() else { return false };
            slot.write_part(part, parts.peek().is_some());
            if let Some(recorded) = recorded.take() {
                slot.set_recorded(recorded);
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringway_doc as doc;

    #[test]
    fn a_frame_is_whole_or_not_there() {
        let mut from = doc::open("fragmenter{1@conf:slots=8").unwrap();
        let mut to = doc::open("fragmenter}1@conf:slots=8").unwrap();
        let room = from.max_frame();
        let mut tx = from.tx(0);
        let fragmenter = Fragmenter::new(&mut tx, room);
        assert_eq!(fragmenter.longest(), 7 * room);
        let frame: Vec<u8> = (0..5 * room + 1).map(|at| at as u8).collect();
        let mut slots = tx.batch(usize::MAX);
        assert!(fragmenter.put(&mut slots, &frame));
        assert!(!fragmenter.put(&mut slots, &frame[..2 * room]));
        assert!(fragmenter.put(&mut slots, &frame[..room]));
        assert!(!fragmenter.put(&mut slots, &frame[..1]));
        drop(slots);
        tx.sync();
        let mut rx = to.rx(0);
        assert_eq!(rx.sync(), 7);
        let (mut all, mut whole) = (Vec::new(), Vec::new());
        for part in rx.batch(7) {
            all.extend(part.to_vec());
            if !part.more_fragments() {
                whole.push(std::mem::take(&mut all));
            }
        }
        assert_eq!(whole, [&frame[..], &frame[..room]]);
    }
}
