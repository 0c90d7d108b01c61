//! Waiting until what was sent has been taken.

use ringway::{Interest, Port, PortWaiter, Sleeper, Sources, Waiter};

/// Waits until fewer slots than before are on their way.
pub struct Flush<'p> {
    port: PortWaiter<'p>,
    rings: usize,
    before: usize,
}

/// Slots of a port's first `rings` transmit rings that have not come back, as of their last sync.
pub fn pending(port: &mut Port, rings: usize) -> usize {
    (0..rings).map(|ring| port.tx(ring).pending()).sum()
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
