//! Waiting until what was sent has been taken.

use crate::error::Result;
use crate::run_loop::RunLoop;
use ringway::{Interest, NS_MOREFRAG, Port, PortWaiter, Sleeper, Sources, TxRing, Waiter};
use std::time::{Duration, Instant};

/// Waits until fewer slots than before are on their way.
pub struct Flush<'p> {
    port: PortWaiter<'p>,
    rings: usize,
    before: usize,
}

/// Slots of a port's first `rings` transmit rings that have not come back, as of their last sync.
pub fn pending(port: &mut Port, rings: usize) -> usize {
    port.split().0.iter().take(rings).map(TxRing::pending).sum()
}

/// Packets that were sent, and that the other side has not taken by now.
pub fn left(port: &mut Port) -> u64 {
    let mut left = 0;
    for tx in &mut port.split().0 {
        // What it has taken since the last sync has not come back yet.
        tx.sync();
        let slots = tx.slots();
        // The slot behind the free ones stays empty.
        let sent = slots.held() + 1..slots.num_slots();
        left += sent.filter(|n| slots.get(*n).flags & NS_MOREFRAG == 0).count() as u64;
    }
    left
}

/// How long the other side may take nothing before the rest is given up.
const PATIENCE: Duration = Duration::from_secs(1);

/// Waits until the other side has taken everything, as long as it takes something.
pub struct Drain {
    rings: usize,
    left: usize,
    progress: Instant,
}

impl Drain {
    /// Of a port's first `rings` transmit rings.
    pub fn new(rings: usize) -> Drain {
        Drain { rings, left: usize::MAX, progress: Instant::now() }
    }

    /// Looks, and waits for progress at most until `due`. True: everything was taken, or is given up.
    pub fn step(&mut self, port: &mut Port, run_loop: &RunLoop, due: Instant) -> Result<bool> {
        let (pending, now) = (pending(port, self.rings), Instant::now());
        if pending < self.left {
            (self.left, self.progress) = (pending, now);
        }
        let give_up = self.progress + PATIENCE;
        if self.left == 0 || now >= give_up {
            return Ok(true);
        }
        run_loop.wait_for(&mut Flush::new(port, self.rings, self.left), give_up.min(due))?;
        port.check(Interest::Tx)?;
        Ok(false)
    }
}

impl<'p> Flush<'p> {
    /// Of a port's first `rings` transmit rings, with `before` slots [pending].
    pub fn new(port: &'p mut Port, rings: usize, before: usize) -> Flush<'p> {
        Flush { port: port.waiter(Interest::Tx), rings, before }
    }
}

impl Waiter for Flush<'_> {
    fn look(&mut self) -> bool {
        let port = self.port.port();
        port.poll(Interest::Tx);
        pending(port, self.rings) < self.before
    }

    fn arm(&mut self) -> bool {
        self.port.arm()
    }

    fn pass_on(&mut self) {
        self.port.pass_on();
    }
}

impl Sleeper for Flush<'_> {
    fn sources<'s>(&'s self, sources: &mut Sources<'s>) {
        self.port.sources(sources);
    }
}
