//! The port whose rings are in a client's region: a VALE port.
//!
//! The worker is the service side of these rings. Its cursors are its own variables; the
//! service line is only told. From the region it takes the client's published `head`, slots
//! and bytes, and nothing else.
#![expect(
    clippy::indexing_slicing,
    reason = "the worker asks for rings below `tx_rings` and `rx_rings`, which count these vectors"
)]

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};

use ringway_abi::Dir;
use ringway_kring::{Doorbell, Offsets};
use ringway_mirror::Shown;
use rustix::fd::{AsFd, BorrowedFd};

use crate::{rx_side::RxSide, tx_side::TxSide};
use ringway_switch_port::{
    Backpressure, Burst, Configure, Delivered, Drops, Frame, Mirrored, PacketIo, PortMirrors, Room,
    Wake, wrapped,
};

/// A VALE port as its bridge sees it.
#[derive(Debug)]
pub struct RingPort {
    tx: Vec<TxSide>,
    rx: Vec<RxSide>,
    doorbell: Arc<Doorbell>,
    receives: Arc<AtomicBool>,
}

impl RingPort {
    /// `doorbell` is what the clients ring when they have sent; `receives` tells whether a program
    /// has the receive rings open.
    pub fn new(
        tx: Vec<TxSide>,
        rx: Vec<RxSide>,
        doorbell: Arc<Doorbell>,
        receives: Arc<AtomicBool>,
    ) -> RingPort {
        RingPort { tx, rx, doorbell, receives }
    }

    /// The receive ring that packets for `ring` go to, modulo those there are.
    #[inline]
    fn rx_side(&mut self, ring: usize) -> &mut RxSide {
        let ring = wrapped(ring, self.rx.len());
        &mut self.rx[ring]
    }
}

impl PacketIo for RingPort {
    fn may_have_sent(&self, ring: usize) -> bool {
        self.tx[ring].may_have_sent()
    }

    fn collect<'a>(&'a mut self, ring: usize, burst: &mut Burst<'a>, drops: &mut Drops) -> u32 {
        self.tx[ring].collect(burst, drops)
    }

    fn release(&mut self, ring: usize) {
        self.tx[ring].release();
    }

    fn seal(&mut self) {
        self.tx.iter_mut().for_each(TxSide::seal);
    }

    fn tx_rings(&self) -> usize {
        self.tx.len()
    }

    fn rx_rings(&self) -> usize {
        self.rx.len()
    }

    #[inline]
    fn receives(&self) -> bool {
        self.receives.load(Relaxed)
    }

    fn deliver(
        &mut self,
        ring: usize,
        frames: &[Frame],
        burst: &Burst<'_>,
        drops: &mut Drops,
    ) -> Delivered {
        self.rx_side(ring).deliver(frames, burst, drops)
    }

    fn hand_over(
        &mut self,
        ring: usize,
        frames: &[Frame],
        burst: &Burst<'_>,
        drops: &mut Drops,
    ) -> Delivered {
        self.rx_side(ring).hand_over(frames, burst, drops)
    }

    fn flush(&mut self, idle: bool) {
        self.rx.iter_mut().for_each(|side| side.flush(idle));
    }

    fn complete(&mut self, idle: bool) {
        self.tx.iter_mut().for_each(|side| side.complete(idle));
    }

    fn tell_lost(&mut self, lost: [u64; 2]) {
        // A port's losses are not any one ring's.
        self.rx.first().into_iter().for_each(|side| side.tell_lost(lost));
    }

    fn count_lost(&mut self, drops: &mut Drops) {
        drops.bad_index += self.rx.iter_mut().map(RxSide::take_bad_heads).sum::<u64>();
    }
}

impl Backpressure for RingPort {
    fn release_some(&mut self, ring: usize, slots: u32) {
        self.tx[ring].release_some(slots);
    }

    fn hold_back(&mut self, ring: usize, held: bool) {
        self.tx[ring].hold_back(held);
    }

    fn ask_to_yield(&mut self, ring: usize) {
        self.tx[ring].ask_to_yield();
    }

    fn can_wait(&self) -> bool {
        true
    }

    fn room(&mut self, ring: usize) -> Room {
        self.rx[ring].room()
    }

    fn await_room(&self, ring: usize) {
        self.rx[ring].arm();
    }

    fn has_room(&mut self, ring: usize, slots: u32, burst: &Burst<'_>) -> bool {
        let ring = wrapped(ring, self.rx.len());
        self.rx.get_mut(ring).is_some_and(|side| side.has_room(slots, burst))
    }
}

impl Configure for RingPort {
    fn set_offsets(&mut self, dir: Dir, ring: usize, offsets: Option<Offsets>) {
        match dir {
            Dir::Tx => self.tx.get_mut(ring).into_iter().for_each(|side| side.set_offsets(offsets)),
            Dir::Rx => self.rx.get_mut(ring).into_iter().for_each(|side| side.set_offsets(offsets)),
        }
    }
}

impl Mirrored for RingPort {
    fn take_back(&mut self) -> bool {
        let mirrored = self.rx.iter_mut().filter(|side| side.swaps());
        mirrored.fold(false, |news, side| news | side.take_back())
    }

    fn show_sent(&mut self, ring: usize, bytes: &[u8], slots: &[Shown]) {
        self.tx[ring].show(bytes, slots);
    }

    fn set_mirrors(&mut self, mirrors: PortMirrors) {
        self.tx.iter_mut().zip(mirrors.tx).for_each(|(side, mirrors)| side.set_mirrors(mirrors));
        self.rx.iter_mut().zip(mirrors.rx).for_each(|(side, mirrors)| side.set_mirrors(mirrors));
        // From now on the client tells what it releases.
        self.arm();
    }
}

impl Wake for RingPort {
    fn arm(&mut self) {
        self.tx.iter().for_each(TxSide::arm);
        let mirrored = self.rx.iter().filter(|side| side.swaps());
        mirrored.for_each(RxSide::arm);
    }

    fn doorbell(&self) -> BorrowedFd<'_> {
        self.doorbell.as_fd()
    }

    fn is_edge_triggered(&self) -> bool {
        true
    }

    /// Nothing: the number is the clients', and what they make of it is not looked at.
    fn drain(&self) {}
}
