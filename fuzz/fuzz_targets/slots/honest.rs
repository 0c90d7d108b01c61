//! An honest port, which receives: what the bridge may change of its memory, and nothing else.

use std::{
    mem::offset_of,
    sync::{Arc, atomic::AtomicBool},
};

use ringway_abi::Dir;
use ringway_kring::{Csb, Doorbell, Kring, ServiceLine};
use ringway_region::Region;
use ringway_vale::{RingPort, RxSide, TxSide};

use crate::{guard::Guard, program::region};

const RINGS: [(Dir, u32); 3] = [(Dir::Tx, 8), (Dir::Rx, 40), (Dir::Rx, 8)];

pub struct Honest {
    /// Those of the rings that it does not receive on, and those of no ring.
    _guards: [Guard; 2],
    region: Arc<Region>,
    rings: Vec<Kring>,
    doorbell: Arc<Doorbell>,
    /// The first slot of each ring that it has not released.
    heads: [u32; RINGS.len()],
    /// All but the buffers, at first.
    before: Vec<u8>,
}

impl Honest {
    pub fn new() -> Honest {
        let (region, rings, free) = region(&RINGS, 2048);
        let total = region.layout().bufs.total;
        let _guards = [Guard::new(&region, 0, 2 + RINGS[0].1), Guard::new(&region, free, total)];
        let doorbell = Arc::new(Doorbell::new().unwrap());
        Honest { _guards, rings, doorbell, heads: Default::default(), before: Vec::new(), region }
    }

    /// The bridge's side of the port. From now on its memory is watched.
    pub fn port(&mut self) -> Box<RingPort> {
        let [tx, rx @ ..] = &self.rings[..] else { unreachable!() };
        let tx = vec![TxSide::new(tx.clone(), self.doorbell.clone())];
        let rx = rx.iter().map(|ring| RxSide::new(ring.clone(), self.doorbell.clone())).collect();
        let receives = Arc::new(AtomicBool::new(true));
        self.before = self.outside_buffers();
        Box::new(RingPort::new(tx, rx, self.doorbell.clone(), receives))
    }

    /// Gives `slots` of the received slots of each ring back, or as many as there are.
    pub fn release(&mut self, slots: u8) {
        self.check();
        for (ring, head) in self.rings.iter().zip(&mut self.heads).skip(1) {
            let filled = ring.ring().distance(*head, ring.hwtail());
            *head = ring.ring().advance(*head, filled.min(slots.into()));
            ring.csb().app.publish(*head, *head);
        }
        self.before = self.outside_buffers();
    }

    /// Nothing has changed but the service lines and the slots that it receives in; and those hold
    /// what they may.
    pub fn check(&self) {
        assert!(self.outside_buffers() == self.before, "an honest port's memory was changed");
        let mut own = 2 + RINGS[0].1;
        for (ring, head) in self.rings.iter().zip(self.heads).skip(1) {
            let (view, service) = (ring.ring(), &ring.csb().service);
            let [hwcur, hwtail] = [service.hwcur(), service.hwtail()];
            assert!(hwcur < view.num_slots() && hwtail < view.num_slots());
            assert!(view.distance(head, hwtail) <= view.distance(head, view.prev(hwcur)));
            for at in 0..view.num_slots() {
                let slot = view.slot(at);
                assert_eq!(slot.buf_idx, own);
                assert!(u32::from(slot.len) <= self.region.layout().data_size());
                own += 1;
            }
        }
    }

    /// All bytes but the buffers, with zeros where the bridge may write.
    fn outside_buffers(&self) -> Vec<u8> {
        let layout = self.region.layout();
        let bufs = &layout.bufs;
        let after = bufs.offset + u64::from(bufs.size) * u64::from(bufs.total);
        let mut bytes = vec![0; layout.total() as usize];
        for (from, to) in [(0, bufs.offset), (after, layout.total())] {
            let part = &mut bytes[from as usize..to as usize];
            assert_eq!(rustix::io::pread(self.region.memfd(), &mut *part, from), Ok(part.len()));
        }
        for ring in &self.rings {
            let service = layout.block(ring.object()).unwrap() + offset_of!(Csb, service) as u64;
            bytes[service as usize..][..size_of::<ServiceLine>()].fill(0);
            if ring.dir() == Dir::Rx {
                let slots = layout.rings.object(ring.object()).unwrap() + 256;
                bytes[slots as usize..][..16 * ring.ring().num_slots() as usize].fill(0);
            }
        }
        bytes.drain(bufs.offset as usize..after as usize);
        bytes
    }
}
