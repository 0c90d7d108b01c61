//! Moves frames between two ports, each direction through a link.

use crate::error::Result;
use crate::fragmenter::{Fragmenter, MAX_FRAGMENTS, publish};
use crate::fragments::Fragments;
use crate::lateness::Lateness;
use crate::link::{Link, Settings};
use crate::route::{Router, Unrouted};
use crate::run_loop::{OVERSLEPT, RunLoop, interest};
use crate::turn::Turn;
use ringway::{Interest, Port};
use std::num::NonZeroU64;
use std::time::{Duration, Instant};

/// Frames taken from a ring, and put into one, before the other direction has its turn.
const BATCH: usize = 256;

/// Bytes of the longest frame that room is kept for.
const LONGEST: usize = 1 << 18;

/// One direction.
pub struct Flow {
    pub link: Link,
    pub lateness: Lateness,
    /// Frames that have gone, and their bytes.
    pub packets: u64,
    pub bytes: u64,
    /// Frames that no ring of the port can hold.
    pub too_long: u64,
    fragmenter: Fragmenter,
    /// There was no room for a frame that is due.
    is_blocked: bool,
    /// There was no memory for what may come next.
    is_full: bool,
    turn: Turn,
    /// The longest frame that a receive ring can hold.
    longest: usize,
    /// By how much earlier than a frame is due a sleep ends.
    margin: Duration,
    /// What has come of the next frame, ring by ring.
    fragments: Vec<Fragments>,
    /// Times of the batch's frames.
    dues: Vec<u64>,
    /// The frame that is routed.
    routed: Vec<u8>,
}

/// Two ports and the links between them. Flow 0 is from port 0 to port 1.
pub struct Relay {
    pub ports: [Port; 2],
    pub flows: [Flow; 2],
    /// Receive rings of a port that are read at most.
    rings: usize,
    batch: usize,
    /// What decides which frames enter the links, and gives them their Ethernet addresses.
    pub router: Option<Router>,
    origin: Instant,
}

impl Relay {
    /// Times are counted from `origin`. `rings`: how many receive rings of each port are read at most.
    pub fn new(
        ports: [Port; 2],
        settings: [Settings; 2],
        seed: u64,
        rings: usize,
        origin: Instant,
    ) -> Relay {
        // What the kernel may add to a sleep. It always takes the least there is.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let flows = [0, 1].map(|from: usize| Flow {
            link: Link::new(settings[from], seed.wrapping_add(from as u64)),
            lateness: Lateness::new(),
            packets: 0,
            bytes: 0,
            too_long: 0,
            fragmenter: Fragmenter::none(),
            is_blocked: false,
            is_full: false,
            turn: Turn::default(),
            longest: 0,
            margin: OVERSLEPT,
            fragments: Vec::new(),
            dues: Vec::with_capacity(BATCH),
            routed: Vec::new(),
        });
        let mut relay = Relay { ports, flows, rings, batch: BATCH, router: None, origin };
        (0..2).for_each(|port| relay.opened(port));
        relay
    }

    /// A port that has just been opened, for the first time or again. What had come of a frame is lost.
    pub fn opened(&mut self, port: usize) {
        let opened = &mut self.ports[port];
        let from = &mut self.flows[port];
        from.longest = (opened.max_frame() * MAX_FRAGMENTS).min(LONGEST);
        from.fragments = Fragments::of(opened);
        from.fragments.truncate(self.rings);
        self.flows[1 - port].fragmenter = Fragmenter::of(opened);
    }

    /// Takes so many frames at once at most, and puts as many.
    pub fn with_batch(self, batch: usize) -> Relay {
        Relay { batch, ..self }
    }

    /// Frames of each direction may go so much later than they are due: then no clock is looked at for them
    /// where a sleep ends in time for that.
    pub fn with_lag(mut self, lag: [Duration; 2]) -> Relay {
        for (flow, lag) in self.flows.iter_mut().zip(lag) {
            flow.margin = OVERSLEPT.saturating_sub(lag);
        }
        self
    }

    /// Other settings of both directions, for the frames that come from now on.
    pub fn change(&mut self, settings: [Settings; 2]) {
        for (flow, settings) in self.flows.iter_mut().zip(settings) {
            flow.link.change(settings);
        }
    }

    /// What the router has not let into a flow.
    pub fn unrouted(&self, from: usize) -> Unrouted {
        let now = self.since(Instant::now());
        self.router.as_ref().map_or_else(Unrouted::default, |router| router.unrouted(from, now))
    }

    fn since(&self, time: Instant) -> u64 {
        time.saturating_duration_since(self.origin).as_nanos() as u64
    }

    /// Takes what has come, and lets go what is due now. False: there was nothing.
    pub fn step(&mut self, now: Instant) -> bool {
        let now = self.since(now);
        let origin = self.origin;
        let clock = || origin.elapsed().as_nanos() as u64;
        let mut moved = false;
        for from in 0..2 {
            let (flow, router) = (&mut self.flows[from], self.router.as_mut().map(|r| (r, from)));
            moved |= flow.take(&mut self.ports[from], self.batch, router, now);
        }
        self.let_in_and_answer(now);
        for (from, flow) in self.flows.iter_mut().enumerate() {
            moved |= flow.release(&mut self.ports[1 - from], self.batch, now, clock);
        }
        moved
    }

    /// Takes the packets in that waited for a neighbour, and sends what the router says to its own.
    fn let_in_and_answer(&mut self, now: u64) {
        let Some(router) = &mut self.router else { return };
        for (from, flow) in self.flows.iter_mut().enumerate() {
            let to = 1 - from;
            for packet in router.take_ready(to) {
                flow.link.accept(now, packet.len(), |place| place.copy_from_slice(&packet));
            }
            if router.has_own(to) && self.ports[to].tx_rings() > 0 {
                let mut tx = self.ports[to].tx(0);
                let mut slots = tx.batch(usize::MAX);
                for frame in router.take_own(to) {
                    // One for which there is no room is asked for, or asked, again.
                    flow.fragmenter.put(&mut slots, &frame);
                }
                drop(slots);
                tx.sync();
            }
        }
    }

    /// Lets go what is due now, and takes nothing any more. False: there was nothing.
    pub fn release(&mut self, now: Instant) -> bool {
        let now = self.since(now);
        let origin = self.origin;
        let clock = || origin.elapsed().as_nanos() as u64;
        let mut moved = false;
        for (from, flow) in self.flows.iter_mut().enumerate() {
            moved |= flow.release(&mut self.ports[1 - from], self.batch, now, clock);
        }
        moved
    }

    /// When the next frame is due that there may be room for, and until when to sleep.
    fn next_due(&self) -> Option<(Instant, Instant)> {
        let flows = self.flows.iter().filter(|flow| !flow.is_blocked);
        let dues = flows.filter_map(|flow| {
            let due = self.origin.checked_add(Duration::from_nanos(flow.link.next_due()?))?;
            Some((due.checked_sub(flow.margin)?, due))
        });
        dues.min().map(|(asleep, due)| (due, asleep))
    }

    /// Waits until frames come, some are due, there is room for those that were, or `until`. Does not sleep
    /// when a frame is due within the time that a sleep may take longer.
    pub fn wait(&mut self, run_loop: &RunLoop, until: Instant) -> Result<()> {
        let asleep = self.next_due().map(|(_, asleep)| asleep);
        if asleep.is_some_and(|asleep| asleep <= Instant::now()) {
            return Ok(());
        }
        let flows = &self.flows;
        let wanted = |port: usize| interest(!flows[port].is_full, flows[1 - port].is_blocked);
        let ports = self.ports.iter_mut().enumerate();
        let mut wanted: Vec<_> = ports.filter_map(|(at, port)| Some((port, wanted(at)?))).collect();
        run_loop.wait(&mut wanted, asleep.unwrap_or(until).min(until))
    }

    /// The same when nothing is taken any more. False: nothing is on its way.
    pub fn wait_for_rest(&mut self, run_loop: &RunLoop, until: Instant) -> Result<bool> {
        if let Some((due, _)) = self.next_due() {
            run_loop.sleep_exactly(due, until)?;
            return Ok(true);
        }
        for (from, flow) in self.flows.iter().enumerate() {
            if flow.is_blocked {
                run_loop.wait(&mut [(&mut self.ports[1 - from], Interest::Tx)], until)?;
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Flow {
    fn take(
        &mut self,
        port: &mut Port,
        batch: usize,
        mut router: Option<(&mut Router, usize)>,
        now: u64,
    ) -> bool {
        let mut taken = false;
        self.is_full = false;
        // A port that is closed has none.
        let rings = self.fragments.len().min(port.rx_rings());
        for (ring, budget) in std::mem::take(&mut self.turn).order(rings, batch) {
            let mut rx = port.rx(ring);
            if rx.available() == 0 {
                rx.sync();
            }
            let fragments = &mut self.fragments[ring];
            let mut slots = rx.batch(budget);
            let mut left = budget;
            loop {
                if !self.link.has_room(self.longest) {
                    if !self.is_full {
                        self.turn = Turn::cut_short(ring, left);
                    }
                    self.is_full = true;
                    break;
                }
                let Some(slot) = slots.next() else { break };
                taken = true;
                left -= 1;
                let Some(frame) = fragments.add(slot) else { continue };
                let Some((router, from)) = &mut router else {
                    self.link.accept(now, frame.len(), |place| frame.copy_to(place));
                    continue;
                };
                frame.read(&mut self.routed);
                if router.receive(*from, &mut self.routed, now) {
                    let routed = &self.routed[..];
                    self.link.accept(now, routed.len(), |place| place.copy_from_slice(routed));
                }
            }
        }
        taken
    }

    fn release(
        &mut self,
        port: &mut Port,
        batch: usize,
        now: u64,
        clock: impl Fn() -> u64,
    ) -> bool {
        self.is_blocked = false;
        if self.link.next_due().is_none_or(|due| due > now) {
            return false;
        }
        if port.is_shut() {
            self.is_blocked = true;
            return false;
        }
        if self.fragmenter.longest() == 0 {
            // It takes nothing at all, as a file that is read.
            while self.link.next_due().is_some() {
                self.too_long += 1;
                self.link.pop();
            }
            return false;
        }
        let mut tx = port.tx(0);
        let mut slots = tx.batch(usize::MAX);
        while let Some((due, frame)) = self.link.peek()
            && due <= now
            && self.dues.len() < batch
        {
            if frame.len() > self.fragmenter.longest() {
                self.too_long += 1;
            } else if self.fragmenter.put(&mut slots, frame) {
                self.packets += 1;
                self.bytes += frame.len() as u64;
                self.dues.push(due);
            } else {
                self.is_blocked = true;
                break;
            }
            self.link.pop();
        }
        drop(slots);
        publish(&mut tx, self.is_blocked);
        let moved = !self.dues.is_empty();
        if moved {
            let sent = clock();
            self.dues.drain(..).for_each(|due| self.lateness.record(due, sent));
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringway_doc as doc;

    /// A frame that is due and finds too few free slots is waited for until there are more.
    #[test]
    fn too_few_slots_end_no_wait() {
        let open = |name: &str| doc::open(&format!("{name}@conf:slots=16")).unwrap();
        let (mut source, from) = (open("rly{1"), open("rly}1"));
        let (mut to, mut sink) = (open("rly{2"), open("rly}2"));
        (0..14).for_each(|_| assert!(to.tx(0).push(&[1; 60])));
        to.tx(0).sync();
        assert!(source.tx(0).push(&vec![7; 2 * from.max_frame() + 1]));
        source.tx(0).sync();
        let now = Instant::now();
        let mut relay = Relay::new([from, to], [Settings::default(); 2], 0, usize::MAX, now);
        assert!(relay.step(now), "the frame is taken");
        for _ in 0..2 {
            assert!(!relay.step(now) && relay.flows[0].is_blocked);
            assert!(!relay.ports[1].poll(Interest::Tx), "too few are free");
            sink.rx(0).sync();
            assert_eq!(sink.rx(0).batch(1).count(), 1);
            sink.rx(0).sync();
            assert!(relay.ports[1].poll(Interest::Tx), "there is one more");
        }
        assert!(relay.step(now) && relay.flows[0].packets == 1);
    }
}
