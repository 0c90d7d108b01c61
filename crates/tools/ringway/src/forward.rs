//! Packets from the receive rings of one port to the transmit rings of another.

use crate::error::Result;
use crate::fragmenter::publish;
use crate::run_loop::{RunLoop, interest};
use crate::turn::Turn;
use ringway::{Forwarded, NS_MOREFRAG, Port, RxRing, TxRing};
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
        let (mut next, mut is_short) = (None, false);
        for (i, mut budget) in self.turn.order(receiving.len(), self.batch) {
            let rx = &mut receiving[i];
            for k in 0..sending.len() {
                if budget == 0 {
                    break;
                }
                let tx = &mut sending[(i + k) % sending.len()];
                let room = portion(rx, tx, budget);
                if room == 0 {
                    is_short |= rx.available() > 0;
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
        if is_short {
            // Where packets go the other way all the time, no wait syncs these.
            sending.iter_mut().for_each(|tx| publish(tx, true));
        }
        moved
    }
}

/// Slots that go from one ring to another: of whole packets, lest another ring gets the rest of one.
pub fn portion(rx: &mut RxRing<'_>, tx: &TxRing<'_>, batch: usize) -> usize {
    let most = rx.available().min(tx.space());
    let whole = rx.whole(most.min(batch));
    if whole > 0 || most == 0 {
        return whole;
    }
    let endless = most == rx.available() || tx.pending() == 0;
    let slots = rx.slots();
    let mut longer_than_batch = batch as u32..most as u32;
    let end = longer_than_batch.find(|&last| slots.get(last).flags & NS_MOREFRAG == 0);
    match end {
        Some(last) => last as usize + 1,
        // It has no end yet, or never fits: nothing is won by waiting.
        None if endless => most,
        None => 0,
    }
}

/// Whether a port has packets to take.
pub fn has_packets(port: &mut Port) -> bool {
    port.split().1.iter().any(|rx| rx.available() > 0)
}

/// Waits for what each direction lacks: packets to take, or, if there are some, room for them.
pub fn wait(ports: &mut [Port; 2], run_loop: &RunLoop, until: Instant) -> Result<()> {
    let waiting = ports.each_mut().map(has_packets);
    let [a, b] = ports;
    let [for_b, for_a] = waiting;
    let wanted = [(a, interest(!for_b, for_a)), (b, interest(!for_a, for_b))];
    let mut wanted: Vec<_> =
        wanted.into_iter().filter_map(|(port, lack)| Some((port, lack?))).collect();
    run_loop.wait(&mut wanted, until)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reflect::reflect;
    use ringway::{Interest, Slot, Turns};
    use ringway_doc as doc;
    use rustix::time::{ClockId, clock_gettime};

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

    /// Publishes a packet of so many slots, by a ring that has room for it.
    fn send_long(port: &mut Port, slots: usize) {
        let mut tx = port.tx(0);
        let parts = tx.batch(slots).enumerate();
        assert_eq!(
            parts.map(|(n, mut slot)| slot.write_part(&[7; 60], n + 1 < slots)).count(),
            slots
        );
        tx.sync();
    }

    /// A packet that finds too few free slots is waited for until there are more: what is free all the time ends no wait.
    #[test]
    fn too_few_slots_end_no_wait() {
        type Mover = fn(&mut Port, &mut Port) -> bool;
        let movers: [(&str, Mover); 2] = [
            ("fwe", |from, to| Path::default().forward(from, to).slots > 0),
            ("fwf", |from, _| {
                let reflected = reflect(from, &mut Turns::default(), |_| true);
                reflected.packets > 0
            }),
        ];
        for (name, moves) in movers {
            let open = |end: &str| doc::open(&format!("{name}{end}@conf:slots=16")).unwrap();
            let (mut source, mut from) = (open("{1"), open("}1"));
            // What is reflected goes back to where it came from.
            let (mut sink, mut to) = (open("{2"), open("}2"));
            let is_reflected = name == "fwf";
            let filled = if is_reflected { &mut from } else { &mut to };
            (0..14).for_each(|_| assert!(filled.tx(0).push(&[1; 60])));
            filled.tx(0).sync();
            send_long(&mut source, 3);
            assert!(from.poll(Interest::Rx));
            let mut taken = 0;
            let moved = loop {
                if moves(&mut from, &mut to) {
                    break taken;
                }
                let waits = if is_reflected { &mut from } else { &mut to };
                assert!(!waits.poll(Interest::Tx), "{name}: {} slots are free", taken + 1);
                let taker = if is_reflected { &mut source } else { &mut sink };
                taker.rx(0).sync();
                taken += taker.rx(0).batch(1).count();
                taker.rx(0).sync();
                assert!(waits.poll(Interest::Tx), "{name}: there is one more");
            };
            assert_eq!(moved, 2, "{name}");
        }
    }

    /// What a port's peer has taken is seen though no wait comes in between.
    #[test]
    fn room_is_found_without_a_wait() {
        let open = |name: &str| doc::open(&format!("{name}@conf:slots=16")).unwrap();
        let (mut source, mut from) = (open("fwg{1"), open("fwg}1"));
        let (mut to, mut sink) = (open("fwh{1"), open("fwh}1"));
        while to.tx(0).push(&[1; 60]) {}
        to.tx(0).sync();
        send_long(&mut source, 1);
        from.rx(0).sync();
        let mut path = Path::default();
        assert_eq!(path.forward(&mut from, &mut to).slots, 0);
        sink.rx(0).sync();
        sink.rx(0).batch(usize::MAX).for_each(drop);
        sink.rx(0).sync();
        let slots = [0; 2].map(|_| path.forward(&mut from, &mut to).slots);
        assert_eq!(slots, [0, 1], "found in one turn, used in the next");
    }

    /// What a look at a packet costs that has no end yet grows as its slots, and not as their square.
    #[test]
    fn an_endless_packet_is_looked_at_once() {
        let cost = |count: usize| {
            let open =
                |name: &str| doc::open(&format!("{name}{count}@conf:slots={count}")).unwrap();
            let (mut source, mut from, mut to) = (open("fwi{"), open("fwi}"), open("fwj{"));
            while source.tx(0).push(&[7; 60]) {}
            source.tx(0).sync();
            let (mut rx, tx) = (from.rx(0), to.tx(0));
            assert_eq!(rx.sync(), count - 1);
            let mut slots = rx.slots();
            for n in 0..slots.held() {
                let slot = slots.get(n);
                slots.set(n, Slot { flags: slot.flags | NS_MOREFRAG, ..slot });
            }
            let mut time = || {
                let start = clock_gettime(ClockId::ThreadCPUTime);
                (0..20).for_each(|_| assert_eq!(portion(&mut rx, &tx, 1), count - 1));
                let end = clock_gettime(ClockId::ThreadCPUTime);
                (end.tv_sec - start.tv_sec) * 1_000_000_000 + end.tv_nsec - start.tv_nsec
            };
            (0..10).map(|_| time()).min().unwrap()
        };
        let (few, many) = (cost(512), cost(4096));
        assert!(many < 24 * few, "{few} and {many} ns for 512 and 4096 slots");
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
