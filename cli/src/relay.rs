//! Moves frames between two ports, each direction through a link.

use crate::error::Result;
use crate::fragmenter::Fragmenter;
use crate::fragments::Fragments;
use crate::lateness::Lateness;
use crate::link::{Link, Settings};
use crate::run_loop::{OVERSLEPT, RunLoop};
use ringway::{Interest, Port};
use std::num::NonZeroU64;
use std::time::{Duration, Instant};

/// Frames taken from a ring, and put into one, before the other direction has its turn.
const BATCH: usize = 256;

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
    /// What has come of the next frame, ring by ring.
    fragments: Vec<Fragments>,
    /// Times of the batch's frames.
    dues: Vec<u64>,
}

/// Two ports and the links between them. Flow 0 is from port 0 to port 1.
pub struct Relay {
    pub ports: [Port; 2],
    pub flows: [Flow; 2],
    rings: [usize; 2],
    origin: Instant,
}

impl Relay {
    /// Times are counted from `origin`. `rings`: how many receive rings of each port are read at most.
    pub fn new(
        mut ports: [Port; 2],
        settings: [Settings; 2],
        seed: u64,
        rings: usize,
        origin: Instant,
    ) -> Relay {
        // What the kernel may add to a sleep. It always takes the least there is.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let rings = ports.each_ref().map(|port| port.rx_rings().min(rings));
        let flows = [0, 1].map(|from: usize| {
            let to = &mut ports[1 - from];
            let room = to.max_frame();
            Flow {
                link: Link::new(settings[from], seed.wrapping_add(from as u64)),
                lateness: Lateness::new(),
                packets: 0,
                bytes: 0,
                too_long: 0,
                fragmenter: match to.tx_rings() {
                    0 => Fragmenter::none(),
                    _ => Fragmenter::new(&mut to.tx(0), room),
                },
                is_blocked: false,
                fragments: (0..rings[from]).map(|_| Fragments::default()).collect(),
                dues: Vec::with_capacity(BATCH),
            }
        });
        Relay { ports, flows, rings, origin }
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
            let flow = &mut self.flows[from];
            moved |= flow.take(&mut self.ports[from], self.rings[from], now);
            moved |= flow.release(&mut self.ports[1 - from], now, clock);
        }
        moved
    }

    /// Lets go what is due now, and takes nothing any more. False: there was nothing.
    pub fn release(&mut self, now: Instant) -> bool {
        let now = self.since(now);
        let origin = self.origin;
        let clock = || origin.elapsed().as_nanos() as u64;
        let mut moved = false;
        for (from, flow) in self.flows.iter_mut().enumerate() {
            moved |= flow.release(&mut self.ports[1 - from], now, clock);
        }
        moved
    }

    /// When the next frame is due that there may be room for.
    fn next_due(&self) -> Option<Instant> {
        let dues = self.flows.iter().filter(|flow| !flow.is_blocked);
        let next = dues.filter_map(|flow| flow.link.next_due()).min()?;
        self.origin.checked_add(Duration::from_nanos(next))
    }

    /// Waits until frames come, some are due, there is room for those that were, or `until`. Does not sleep
    /// when a frame is due within the time that a sleep may take longer.
    pub fn wait(&mut self, run_loop: &RunLoop, until: Instant) -> Result<()> {
        let asleep = self.next_due().and_then(|due| due.checked_sub(OVERSLEPT));
        if asleep.is_some_and(|asleep| asleep <= Instant::now()) {
            return Ok(());
        }
        let [to_b, to_a] = self.flows.each_ref().map(|flow| flow.is_blocked);
        let interest = |blocked| if blocked { Interest::Both } else { Interest::Rx };
        let [a, b] = &mut self.ports;
        run_loop.wait(
            &mut [(a, interest(to_a)), (b, interest(to_b))],
            asleep.unwrap_or(until).min(until),
        )
    }

    /// The same when nothing is taken any more. False: nothing is on its way.
    pub fn wait_for_rest(&mut self, run_loop: &RunLoop, until: Instant) -> Result<bool> {
        if let Some(due) = self.next_due() {
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
    fn take(&mut self, port: &mut Port, rings: usize, now: u64) -> bool {
        let mut taken = false;
        for ring in 0..rings {
            let mut rx = port.rx(ring);
            if rx.available() == 0 {
                rx.sync();
            }
            let fragments = &mut self.fragments[ring];
            for slot in rx.batch(BATCH) {
                taken = true;
                if let Some(frame) = fragments.add(slot) {
                    self.link.accept(now, frame.len(), |place| frame.copy_to(place));
                }
            }
        }
        taken
    }

    fn release(&mut self, port: &mut Port, now: u64, clock: impl Fn() -> u64) -> bool {
        self.is_blocked = false;
        if self.link.next_due().is_none_or(|due| due > now) {
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
            && self.dues.len() < BATCH
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
        tx.sync();
        let moved = !self.dues.is_empty();
        if moved {
            let sent = clock();
            self.dues.drain(..).for_each(|due| self.lateness.record(due, sent));
        }
        moved
    }
}
