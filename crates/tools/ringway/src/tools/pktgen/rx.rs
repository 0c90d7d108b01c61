//! Receiving: counting, and following the numbers of txseq.

use super::dump::dump;
use super::options::{Mode, Options, how};
use super::paced::whole;
use super::report::Counters;
use crate::error::Result;
use crate::run_loop::RunLoop;
use crate::tools::log::log;
use ringway::{Interest, NS_MOREFRAG, Port, Slots};
use std::time::{Duration, Instant};

/// How long it is waited for packets before something is said or done.
const SILENCE: Duration = Duration::from_secs(1);

pub struct Receiver<'a> {
    port: &'a mut Port,
    options: &'a Options,
    run_loop: &'a RunLoop,
    counters: &'a Counters,
    /// Bytes before the frame.
    header: usize,
    rings: Vec<Ring>,
}

/// What rxseq knows of a ring.
#[derive(Default)]
struct Ring {
    expected: Option<u32>,
    /// Slots of the packet at hand so far, and of the one before.
    slots: u32,
    slots_before: Option<u32>,
}

impl<'a> Receiver<'a> {
    pub fn new(
        port: &'a mut Port,
        options: &'a Options,
        run_loop: &'a RunLoop,
        counters: &'a Counters,
        header: usize,
    ) -> Receiver<'a> {
        let rings = (0..port.rx_rings()).map(|_| Ring::default()).collect();
        Receiver { port, options, run_loop, counters, header, rings }
    }

    /// Receives the share, or until the user has had enough, or there is silence and that is
    /// the end.
    pub fn receive(&mut self, share: u64) -> Result<()> {
        while !self.run_loop.await_port(self.port, Interest::Rx, SILENCE)? {
            if self.run_loop.is_interrupted() {
                return Ok(());
            }
            log!("receiver_body", "waiting for initial packets, poll returns 0 0");
        }
        let start = Instant::now();
        let mut end = start;
        let mut left = whole(share);
        while left > 0 && !self.run_loop.is_interrupted() {
            if self.run_loop.await_port(self.port, Interest::Rx, SILENCE)? {
                for ring in 0..self.rings.len() {
                    left -= self.take(ring, left);
                }
                end = Instant::now();
            } else if self.options.stop_when_silent {
                break;
            }
        }
        if !self.options.stop_when_silent {
            end = Instant::now();
        }
        self.port.poll(Interest::Rx);
        self.counters.ran(start, end);
        Ok(())
    }

    /// Takes up to a burst of slots with at most `most` packets; returns how many packets.
    fn take(&mut self, ring: usize, most: u64) -> u64 {
        let state = &mut self.rings[ring];
        let shown = (self.options.how & how::DUMP != 0).then(|| format!("{:p}", &*state));
        let mut rx = self.port.rx(ring);
        let mut slots = rx.slots();
        let held = slots.held();
        if held == 0 || most == 0 {
            return 0;
        }
        self.counters.space(slots.num_slots() - held);
        let (mut used, mut packets, mut bytes) = (0, 0, 0);
        while used < held.min(self.options.burst as u32) && packets < most {
            let slot = slots.get(used);
            let last = slot.flags & NS_MOREFRAG == 0;
            bytes += u64::from(slot.len);
            packets += u64::from(last);
            if self.options.mode == Mode::RxSeq {
                state.follow(&slots, used, last, self.header);
            }
            if let Some(name) = &shown {
                let mut data = vec![0; slot.len.into()];
                let read = slots.read(used, &mut data);
                dump(name, slots.place(used), &slot, &data[..read]);
            }
            used += 1;
        }
        slots.advance(used);
        self.counters.add(packets, bytes);
        packets
    }
}

impl Ring {
    fn follow(&mut self, slots: &Slots<'_>, n: u32, last: bool, header: usize) {
        if self.slots == 0 {
            let mut start = [0; 128];
            let read = slots.read(n, &mut start);
            if let Some(found) = sequence(start[..read].get(header..).unwrap_or_default()) {
                self.check(found);
            }
        }
        self.slots += 1;
        if last {
            let now = std::mem::take(&mut self.slots);
            if let Some(before) = self.slots_before.replace(now).filter(|before| *before != now) {
                log!("rxseq_body", "Fragment count changed: exp {before} found {now}");
            }
        }
    }

    fn check(&mut self, found: u32) {
        match self.expected {
            Some(expected) if found > expected => {
                log!("rxseq_body", "Sequence GAP: exp {expected} found {found}");
            }
            Some(expected) if found < expected => {
                log!("rxseq_body", "Sequence OUT OF ORDER: exp {expected} found {found}");
            }
            _ => (),
        }
        self.expected = Some(found.wrapping_add(1));
    }
}

/// The number at the start of a frame's UDP payload.
fn sequence(frame: &[u8]) -> Option<u32> {
    let headers = match frame.get(12..14)? {
        [0x08, 0x00] => 14 + 4 * usize::from(frame.get(14)? & 15) + 8,
        [0x86, 0xdd] => 14 + 40 + 8,
        _ => return None,
    };
    Some(u32::from_be_bytes(frame.get(headers..headers + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_is_found_in_both_families() {
        for (ethertype, first, headers) in [([8, 0], 0x45, 42), ([0x86, 0xdd], 0x60, 62)] {
            let mut frame = vec![0; headers];
            frame[12..14].copy_from_slice(&ethertype);
            frame[14] = first;
            assert_eq!(sequence(&frame), None);
            frame.extend(0x0102_0304u32.to_be_bytes());
            assert_eq!(sequence(&frame), Some(0x0102_0304));
        }
        assert_eq!(sequence(&[0; 60]), None);
        assert_eq!(sequence(&[]), None);
    }
}
