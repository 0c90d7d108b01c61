//! Packets from the receive rings of one port to the transmit rings of another.

use crate::course::Course;
use crate::error::Result;
use ringway::{Interest, Port, RxRing, TxRing};
use std::time::Instant;

/// How packets get across.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    /// Slots forwarded from one ring to another before others have their turn.
    pub batch: usize,
    /// Copy also between ports of one region.
    pub copy: bool,
}

impl Default for Path {
    fn default() -> Path {
        Path { batch: 256, copy: false }
    }
}

/// What was moved.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moved {
    pub slots: usize,
    pub packets: u64,
    pub bytes: u64,
    /// Slots that did not fit a buffer of the port they were to go to; they went out empty.
    pub misfits: u64,
}

impl Path {
    /// Moves what is there, as far as there is room.
    pub fn forward(self, from: &mut Port, to: &mut Port) -> Moved {
        let (mut sending, _) = to.split();
        let (_, mut receiving) = from.split();
        self.forward_rings(&mut receiving, &mut sending)
    }

    /// The same between rings. Ring `i` goes to ring `i` of the others first, so that flows stay
    /// in order, and to others if that is full.
    pub fn forward_rings(self, receiving: &mut [RxRing<'_>], sending: &mut [TxRing<'_>]) -> Moved {
        let mut moved = Moved::default();
        for (i, rx) in receiving.iter_mut().enumerate() {
            for k in 0..sending.len() {
                let tx = &mut sending[(i + k) % sending.len()];
                let room = rx.available().min(tx.space()).min(self.batch);
                if room == 0 {
                    continue;
                }
                for (frame, mut slot) in rx.batch(room).zip(tx.batch(room)) {
                    let (bytes, whole) = (frame.len() as u64, !frame.more_fragments());
                    let fits = match self.copy {
                        true => frame.forward_copy(&mut slot),
                        false => frame.forward(&mut slot),
                    };
                    if fits {
                        moved.packets += u64::from(whole);
                        moved.bytes += bytes;
                    } else {
                        moved.misfits += 1;
                    }
                }
                // The sender's ring first: the buffers of the other are on their way there.
                tx.sync();
                moved.slots += room;
            }
            rx.sync();
        }
        moved
    }
}

/// Whether a port has packets to take.
pub fn has_packets(port: &mut Port) -> bool {
    port.split().1.iter().any(|rx| rx.available() > 0)
}

/// Waits for what each direction lacks: packets to take, or, if there are some, room for them.
pub fn wait(ports: &mut [Port; 2], course: &Course, until: Instant) -> Result<()> {
    let waiting = ports.each_mut().map(has_packets);
    let [a, b] = ports;
    let lacks = |own: bool, others: bool| match (own, others) {
        (false, false) => Some(Interest::Rx),
        (false, true) => Some(Interest::Both),
        (true, true) => Some(Interest::Tx),
        (true, false) => None,
    };
    let wanted = [(a, lacks(waiting[0], waiting[1])), (b, lacks(waiting[1], waiting[0]))];
    let mut wanted: Vec<_> =
        wanted.into_iter().filter_map(|(port, lack)| Some((port, lack?))).collect();
    course.wait(&mut wanted, until)
}
