//! Packets from the receive rings of one port to the transmit rings of another.

use crate::error::Result;
use crate::run_loop::RunLoop;
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
                let room = portion(rx, tx, self.batch);
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
            let path = Path { batch, copy: false };
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
}
