//! What is taken out of a port's receive rings: batch after batch, and what has come before the end.

use crate::fragments::Fragments;
use crate::frame_uses::FrameUses;
use crate::recording::Origin;
use crate::report::Counters;
use ringway::{Interest, Port};
use ringway_file::now;

/// Slots taken from a ring before they are given back.
const BATCH: usize = 256;

pub struct Intake {
    pub origin: Origin,
    /// Ring by ring.
    fragments: Vec<Fragments>,
}

impl Intake {
    /// Of a port that has just been opened, for the first time or again.
    pub fn of(interface: u32, port: &Port) -> Intake {
        Intake { origin: Origin::new(interface, port), fragments: Fragments::of(port) }
    }

    /// Takes a batch from each ring and gives the slots back; returns how many that were. Packets count with their last
    /// slot, until `counted` has so many as are `wanted`.
    pub fn take(
        &mut self,
        port: &mut Port,
        uses: &mut FrameUses,
        counted: &mut Counters,
        wanted: u64,
    ) -> usize {
        let mut taken = 0;
        let counts_only = uses.are_none();
        let now = if counts_only { 0 } else { now() };
        // A port that is closed has none.
        let rings = port.rx_rings();
        for (ring, fragments) in self.fragments.iter_mut().enumerate().take(rings) {
            let mut rx = port.rx(ring);
            if rx.available() == 0 {
                rx.sync();
                continue;
            }
            let left = wanted - counted.packets;
            let most = usize::try_from(left).unwrap_or(usize::MAX).min(BATCH);
            let mut uses = (!counts_only).then(|| uses.begin(&self.origin));
            for slot in rx.batch(most) {
                taken += 1;
                let bytes = match &mut uses {
                    None => fragments.count(&slot),
                    Some(uses) => fragments.add(slot).map(|frame| {
                        uses.take(&frame, now);
                        frame.len()
                    }),
                };
                counted.packets += u64::from(bytes.is_some());
                counted.bytes += bytes.unwrap_or(0) as u64;
            }
            drop(uses);
            rx.sync();
        }
        taken
    }

    /// Takes what has come before the end, and no more than the rings hold.
    pub fn take_rest(
        &mut self,
        port: &mut Port,
        uses: &mut FrameUses,
        counted: &mut Counters,
        wanted: u64,
    ) {
        let mut left = slots(port);
        while left > 0 && port.poll(Interest::Rx) {
            left = left.saturating_sub(self.take(port, uses, counted, wanted).max(1));
        }
    }
}

/// Slots of all receive rings of a port.
fn slots(port: &Port) -> usize {
    port.rx_rings() * port.binding().registration().rx_slots as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::Verifier;
    use ringway_doc as doc;

    /// A packet that has not come as a whole when the run ends is not counted, neither it nor its bytes, whether or not
    /// anything is done with the packets.
    #[test]
    fn packets_count_with_their_last_slot() {
        for verifies in [false, true] {
            let open = |end: &str| doc::open(&format!("intake{end}{verifies}@conf:slots=16"));
            let (mut from, mut to) = (open("{").unwrap(), open("}").unwrap());
            let mut uses =
                FrameUses { verifier: verifies.then(Verifier::new), ..FrameUses::default() };
            let lengths = [(60, false), (100, true), (50, false), (70, true), (30, false)];
            for (mut slot, (length, more)) in from.tx(0).batch(5).zip(lengths) {
                slot.write_part(&vec![0; length], more);
            }
            from.tx(0).sync();
            to.rx(0).sync();
            let (mut intake, mut counted) = (Intake::of(0, &to), Counters::default());
            // As many slots as packets are wanted: the last packet is taken in part.
            assert_eq!(intake.take(&mut to, &mut uses, &mut counted, 4), 4);
            assert_eq!((counted.packets, counted.bytes), (2, 210));
            intake.take_rest(&mut to, &mut uses, &mut counted, 4);
            assert_eq!((counted.packets, counted.bytes), (3, 310));
        }
    }
}
