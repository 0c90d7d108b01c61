//! Packets from the receive rings of one port to the transmit rings of another.

use crate::error::Result;
use crate::run_loop::RunLoop;
use crate::turn::Turn;
use ringway::{Forwarded, Interest, Port, RxRing, TxRing};
use std::time::Instant;

/// How packets get across, in one direction.
#[derive(Debug)]
pub struct Path {
    /// Slots forwarded from one ring before others have their turn.
    batch: usize,
    /// Copy also between ports of one region.
    copy: bool,
    turn: Turn,
}

impl Default for Path {
    fn default() -> Path {
        Path::new(256, false)
    }
}

/// What was moved.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moved {
    pub slots: usize,
    pub packets: u64,
    pub bytes: u64,
    /// Packets that did not fit the buffers of the port they were to go to, and were dropped.
    pub misfits: u64,
}

impl Path {
    pub fn new(batch: usize, copy: bool) -> Path {
        Path { batch, copy, turn: Turn::default() }
    }

    /// Moves what is there and finds room. Where room is scarce, each ring has the same
    /// share of it.
    pub fn forward(&mut self, from: &mut Port, to: &mut Port) -> Moved {
        let (mut sending, _) = to.split();
        let (_, mut receiving) = from.split();
        self.forward_rings(&mut receiving, &mut sending)
    }

    /// The same between rings. Ring `i` goes to ring `i` of the others first, so that flows stay
    /// in order, and to others if that is full.
    pub fn forward_rings(
        &mut self,
        receiving: &mut [RxRing<'_>],
        sending: &mut [TxRing<'_>],
    ) -> Moved {
        let mut moved = Moved::default();
        let mut next = None;
        for (i, mut budget) in self.turn.order(receiving.len(), self.batch) {
            let rx = &mut receiving[i];
            for k in 0..sending.len() {
                if budget == 0 {
                    break;
                }
                let tx = &mut sending[(i + k) % sending.len()];
                let room = portion(rx, tx, budget);
                if room == 0 {
                    continue;
                }
                budget = budget.saturating_sub(room);
                let Forwarded { packets, bytes, misfits, .. } = rx.forward(tx, room, self.copy);
                moved.packets += packets;
                moved.bytes += bytes;
                moved.misfits += misfits;
                // The sender's ring first: the buffers of the other are on their way there.
                tx.sync();
                moved.slots += room;
            }
            if budget > 0 && rx.available() > 0 && next.is_none() {
                next = Some(Turn::cut_short(i, budget));
            }
            rx.sync();
        }
        self.turn = next.unwrap_or_default();
        moved
    }
}

/// Slots that go from one ring to another: of whole packets, lest another ring gets the rest of one.
pub fn portion(rx: &RxRing<'_>, tx: &TxRing<'_>, batch: usize) -> usize {
    let most = rx.available().min(tx.space());
    let whole = rx.whole(most.min(batch));
    if whole > 0 || most == 0 {
        return whole;
    }
    let longer_than_batch = || (batch..=most).find(|&slots| rx.whole(slots) > 0);
    // It has no end yet, or never fits: nothing is won by waiting.
    let endless = || most == rx.available() || tx.pending() == 0;
    longer_than_batch().unwrap_or(if endless() { most } else { 0 })
}

/// Whether a port has packets to take.
pub fn has_packets(port: &mut Port) -> bool {
    port.split().1.iter().any(|rx| rx.available() > 0)
}

/// Waits for what each direction lacks: packets to take, or, if there are some, room for them.
pub fn wait(ports: &mut [Port; 2], run_loop: &RunLoop, until: Instant) -> Result<()> {
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
    run_loop.wait(&mut wanted, until)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringway_doc as doc;

    const PACKETS: u8 = 100;

    /// Slots of a packet: one to five.
    fn slots(number: u8) -> u8 {
        1 + number % 5
    }

    /// Puts packets into a ring as far as there is room; each slot says of which packet it is, and how
    /// many follow. The next packet.
    fn send(tx: &mut TxRing<'_>, first: u8) -> u8 {
        for number in first..PACKETS {
            if tx.space() < slots(number).into() {
                return number;
            }
            for left in (0..slots(number)).rev() {
                tx.batch(1).next().unwrap().write_part(&[number, left], left > 0);
            }
        }
        PACKETS
    }

    /// Rings that are too small for a batch never get parts of packets.
    #[test]
    fn packets_stay_whole() {
        for batch in [1, 2, 7, 256] {
            let port = |name: &str| doc::open(&format!("{name}@conf:slots=64")).unwrap();
            let small = |name: &str| doc::open(&format!("{name}@conf:rings=3,slots=8")).unwrap();
            let (mut source, mut from) = (port("fwa{1"), port("fwa}1"));
            let (mut to, mut sink) = (small("fwb{1"), small("fwb}1"));
            let mut path = Path::new(batch, false);
            let (mut next, mut seen) = (0, Vec::new());
            while seen.len() < usize::from(PACKETS) {
                next = send(&mut source.tx(0), next);
                source.tx(0).sync();
                from.rx(0).sync();
                path.forward(&mut from, &mut to);
                for ring in 0..sink.rx_rings() {
                    let mut rx = sink.rx(ring);
                    rx.sync();
                    let mut expected = None;
                    for frame in rx.batch(8) {
                        let [number, left] = frame.read(0).unwrap();
                        assert_eq!((number, left), expected.unwrap_or((number, slots(number) - 1)));
                        assert_eq!(frame.more_fragments(), left > 0);
                        expected = left.checked_sub(1).map(|left| (number, left));
                        seen.extend((left == 0).then_some(number));
                    }
                    assert_eq!(expected, None, "a packet without its end");
                    rx.sync();
                }
                to.split().0.iter_mut().for_each(TxRing::sync);
            }
            seen.sort();
            assert_eq!(seen, (0..PACKETS).collect::<Vec<_>>());
        }
    }

    /// Rings whose packets find little room at a time have sent as many as the others.
    #[test]
    fn rings_share_the_room() {
        const RINGS: usize = 3;
        const BATCH: usize = 16;
        for room in [1, 5, 16, 20, 60] {
            let many = |name: &str| doc::open(&format!("{name}@conf:rings=3,slots=64")).unwrap();
            let one = |name: &str| doc::open(&format!("{name}@conf:slots=64")).unwrap();
            let (mut source, mut from) = (many("fwc{1"), many("fwc}1"));
            let (mut to, mut sink) = (one("fwd{1"), one("fwd}1"));
            let mut path = Path::new(BATCH, false);
            let mut came = [0; RINGS];
            while came.iter().sum::<usize>() < 40 * RINGS * BATCH {
                for ring in 0..RINGS {
                    let mut tx = source.tx(ring);
                    while tx.push(&[ring as u8; 60]) {}
                    tx.sync();
                    from.rx(ring).sync();
                }
                to.tx(0).sync();
                path.forward(&mut from, &mut to);
                let mut rx = sink.rx(0);
                rx.sync();
                for frame in rx.batch(room) {
                    came[usize::from(frame.read::<1>(0).unwrap()[0])] += 1;
                }
                rx.sync();
            }
            let (least, most) = (came.iter().min().unwrap(), came.iter().max().unwrap());
            assert!(most - least <= BATCH, "room for {room}: {came:?}");
        }
    }
}
