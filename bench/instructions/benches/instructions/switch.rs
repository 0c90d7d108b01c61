//! The worker of a switch, which is stepped, between ports of programs.

use std::sync::{Arc, atomic::AtomicBool};

use ringway_abi::NS_MOREFRAG;
use ringway_kring::Kring;
use ringway_ring::WorkerServed;
use ringway_vale::{Clock, Forwarding, PortConfig, RingPort, RxSide, SteppedBridge, TxSide, Vlan};

use crate::{
    cases::{LENGTH, PACKETS, SLOTS, doorbell, put, rings, sync, take},
    counted,
};

/// What is sent, its destination, and what the ports are.
pub struct Kind {
    /// Ports: one sends, the others receive.
    ports: usize,
    /// Whether the switch knows where they go.
    known: bool,
    /// Bytes of a slot, and of what is received.
    sent: u16,
    received: u16,
    /// Slots of a frame.
    slots: u32,
    /// Bytes of the virtio-net header in front.
    header_len: u8,
    /// The sender is in a VLAN, and the others get it tagged.
    tagged: bool,
}

pub const PLAIN: Kind = Kind {
    ports: 2,
    known: true,
    sent: LENGTH,
    received: LENGTH,
    slots: 1,
    header_len: 0,
    tagged: false,
};

/// To an address that is not known: to both others.
pub const FLOOD: Kind = Kind { ports: 3, known: false, ..PLAIN };
/// The worker puts a tag in.
pub const VLAN: Kind = Kind { received: LENGTH + 4, tagged: true, ..PLAIN };
pub const LONG: Kind = Kind { sent: 1514, received: 1514, ..PLAIN };
/// Frames of 4 KiB in two slots.
pub const FRAGMENTS: Kind = Kind { sent: 2048, received: 2048, slots: 2, ..PLAIN };
/// With a virtio-net header, which says that nothing is left to do.
pub const HEADERS: Kind =
    Kind { sent: LENGTH + 12, received: LENGTH + 12, header_len: 12, ..PLAIN };

const UNKNOWN: u8 = 9;

struct Switch {
    kind: Kind,
    bridge: SteppedBridge,
    rings: Vec<[Kring; 2]>,
    programs: Vec<WorkerServed>,
}

impl Switch {
    fn new(kind: Kind) -> Switch {
        let mut bridge =
            SteppedBridge::new(&Forwarding::default(), Clock::new(|| 1000)).expect("a bridge");
        let rings: Vec<_> = (0..kind.ports).map(|_| rings(0)).collect();
        let programs: Vec<_> = (0..kind.ports).map(|_| WorkerServed::new(doorbell())).collect();
        for (number, ([tx, rx], program)) in rings.iter().zip(&programs).enumerate() {
            let tx = TxSide::new(tx.clone(), doorbell());
            let rx = RxSide::new(rx.clone(), doorbell());
            let receives = Arc::new(AtomicBool::new(true));
            let port = RingPort::new(vec![tx], vec![rx], program.worker.clone(), receives);
            let vlan = match (kind.tagged, number) {
                (false, _) => Vlan::Unaware,
                (true, 0) => Vlan::Access(5),
                (true, _) => Vlan::Trunk { allowed: [5].into(), native: Some(5) },
            };
            let config = PortConfig { header_len: kind.header_len, vlan, ..PortConfig::default() };
            bridge.attach(Box::new(port), config).expect("room for a port");
        }
        let mut switch = Switch { kind, bridge, rings, programs };
        // Each port has sent once, so the switch has learned where they are.
        for number in (1..switch.kind.ports).rev() {
            switch.fill(number, 1);
            switch.put(number, 1);
        }
        switch.bridge.round();
        if switch.kind.tagged {
            // From now on what it gets is tagged.
            let vlan = Vlan::Trunk { allowed: [5].into(), native: None };
            let config = PortConfig { vlan, ..PortConfig::default() };
            assert!(switch.bridge.configure(1, config));
        }
        switch.fill(0, if switch.kind.known { 2 } else { UNKNOWN });
        for number in 1..switch.kind.ports {
            // What was flooded meanwhile is no frame of the case.
            sync(&switch.rings[number][1], &switch.programs[number]);
            let ring = switch.rings[number][1].ring();
            ring.set_head(ring.tail());
            ring.set_cur(ring.tail());
        }
        switch
    }

    /// Writes the beginning of a frame into the buffer of every slot of a port: its destination, and this port as source.
    fn fill(&self, port: usize, to: u8) {
        let mut frame = [0; 12];
        frame.copy_from_slice(&[2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, port as u8 + 1]);
        let ring = self.rings[port][0].ring();
        for at in 0..SLOTS {
            let buffer = ring.buf(ring.slot(at).buf_idx).expect("a buffer");
            buffer.write(0, &[0; 60]);
            buffer.write(self.kind.header_len.into(), &frame);
        }
    }

    /// Sends `slots` slots, as a program does: no payload is touched.
    fn put(&self, port: usize, slots: u32) {
        let ring = self.rings[port][0].ring();
        let mut at = ring.head();
        assert!(ring.distance(at, ring.tail()) >= slots, "the ring is full");
        for number in 0..slots {
            let more = (number + 1) % self.kind.slots != 0 && port == 0;
            let flags = if more { NS_MOREFRAG } else { 0 };
            ring.set_slot(at, ring.slot(at).buf_idx, self.kind.sent, flags);
            at = ring.next(at);
        }
        ring.set_head(at);
        ring.set_cur(at);
        sync(&self.rings[port][0], &self.programs[port]);
    }

    /// Takes all received slots, and releases them with the next sync; returns how many.
    fn take(&self, rx: &Kring) -> u32 {
        let ring = rx.ring();
        let (mut at, tail, mut taken) = (ring.head(), ring.tail(), 0);
        while at != tail {
            assert_eq!(ring.slot(at).len, self.kind.received);
            at = ring.next(at);
            taken += 1;
        }
        ring.set_head(at);
        ring.set_cur(at);
        taken
    }

    fn receive(&self) -> u32 {
        let mut taken = 0;
        for (rings, program) in self.rings.iter().zip(&self.programs).skip(1) {
            sync(&rings[1], program);
            taken = self.take(&rings[1]);
        }
        taken
    }
}

/// The worker's turns.
pub fn worker(batch: u32, kind: Kind) {
    let mut switch = Switch::new(kind);
    for turn in 0..(SLOTS + PACKETS) / batch {
        switch.put(0, batch);
        match turn < SLOTS / batch {
            true => switch.bridge.round(),
            false => counted(|| switch.bridge.round()),
        };
        assert_eq!(switch.receive(), batch);
    }
}

/// The programs at both ends of a switch, without the worker.
pub fn programs(batch: u32) {
    let mut switch = Switch::new(PLAIN);
    for turn in 0..(SLOTS + PACKETS) / batch {
        let part = [
            |switch: &Switch, batch| {
                put(&switch.rings[0][0], batch);
                sync(&switch.rings[0][0], &switch.programs[0]);
            },
            |switch: &Switch, batch| {
                sync(&switch.rings[1][1], &switch.programs[1]);
                assert_eq!(take(&switch.rings[1][1]), batch);
            },
        ];
        let run = |switch: &Switch, part: fn(&Switch, u32)| match turn < SLOTS / batch {
            true => part(switch, batch),
            false => counted(|| part(switch, batch)),
        };
        run(&switch, part[0]);
        switch.bridge.round();
        run(&switch, part[1]);
    }
}
