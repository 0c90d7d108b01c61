//! A receiver whose deliveries a test looks at.

use ringway_switch_port::{
    Backpressure, Burst, Configure, Delivered, Drops, Frame, Mirrored, PacketIo, Wake,
};
use ringway_vale::RingPort;
use rustix::fd::BorrowedFd;

/// A port that sends nothing, and `look`s at what has just been delivered to it.
pub struct Watched<F> {
    pub port: RingPort,
    pub look: F,
}

impl<F: FnMut(&[Frame], &Burst<'_>) + Send> PacketIo for Watched<F> {
    fn tx_rings(&self) -> usize {
        0
    }

    fn receives(&self) -> bool {
        true
    }

    fn collect<'a>(&'a mut self, _: usize, _: &mut Burst<'a>, _: &mut Drops) -> u32 {
        0
    }

    fn release(&mut self, _: usize) {}

    fn deliver(
        &mut self,
        ring: usize,
        frames: &[Frame],
        burst: &Burst<'_>,
        drops: &mut Drops,
    ) -> Delivered {
        let delivered = self.port.deliver(ring, frames, burst, drops);
        (self.look)(frames, burst);
        delivered
    }

    fn flush(&mut self, idle: bool) {
        self.port.flush(idle);
    }
}

impl<F> Backpressure for Watched<F> {}
impl<F> Configure for Watched<F> {}
impl<F> Mirrored for Watched<F> {}
impl<F> Wake for Watched<F> {
    fn arm(&mut self) {
        self.port.arm();
    }

    fn doorbell(&self) -> BorrowedFd<'_> {
        self.port.doorbell()
    }

    fn drain(&self) {
        self.port.drain();
    }
}
