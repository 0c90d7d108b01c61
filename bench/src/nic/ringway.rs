//! Through Ringway's client, with its default settings, as any program would use it.

use std::{hint, io};

use ringway::{Interest, Port, RxRing, TxRing};

use super::part::{BATCH, Ends, LONGEST, Task};
use crate::turn::NAP;

pub struct Ringway {
    ports: Vec<Port>,
    packet: Vec<u8>,
    touches: bool,
}

impl Ends for Ringway {
    fn open(
        interfaces: &[String],
        _task: Task,
        packet: &[u8],
        touches: bool,
    ) -> io::Result<Ringway> {
        let open = |name: &String| Port::open(&format!("netmap:{name}")).map_err(io::Error::other);
        let mut ports: Vec<Port> = interfaces.iter().map(open).collect::<io::Result<_>>()?;
        // Every buffer to send from holds the packet, as long as nothing is forwarded.
        let last = ports.len() - 1;
        if ports[last].tx_rings() == 0 {
            return Ok(Ringway { ports, packet: packet.to_vec(), touches });
        }
        let mut sending = ports[last].tx(0);
        // One slot is always kept free: it has its turn in the second round. Nothing goes out, since
        // the slots have no length yet.
        for _ in 0..2 {
            let room = sending.space();
            sending.batch(room).for_each(|mut slot| {
                slot.write_at(0, packet);
            });
            sending.sync();
        }
        Ok(Ringway { ports, packet: packet.to_vec(), touches })
    }

    fn send(&mut self, most: usize) -> u64 {
        let last = self.ports.len() - 1;
        let mut ring = self.ports[last].tx(0);
        let mut sent = 0;
        for mut slot in ring.batch(most.min(BATCH)) {
            match self.touches {
                true => drop(slot.write(hint::black_box(&self.packet))),
                false => slot.set_len(self.packet.len() as u16),
            }
            sent += 1;
        }
        ring.sync();
        sent
    }

    fn receive(&mut self) -> u64 {
        let mut ring = self.ports[0].rx(0);
        ring.sync();
        let mut received = 0;
        let mut bytes = [0; LONGEST];
        for frame in ring.batch(usize::MAX) {
            if self.touches {
                let length = frame.copy_to(&mut bytes);
                hint::black_box(&bytes[..length]);
            }
            hint::black_box(frame.len());
            received += 1;
        }
        received
    }

    fn forward(&mut self) -> u64 {
        match &mut self.ports[..] {
            [both] => {
                let (mut to, mut from) = both.split();
                relay(&mut from[0], &mut to[0])
            }
            [from, .., to] => relay(&mut from.rx(0), &mut to.tx(0)),
            [] => 0,
        }
    }

    fn wait(&mut self, task: Task) -> io::Result<bool> {
        let (port, interest) = match task.receives() {
            true => (0, Interest::Rx),
            false => (self.ports.len() - 1, Interest::Tx),
        };
        self.ports[port].wait(interest, Some(NAP)).map_err(io::Error::other)
    }
}

fn relay(from: &mut RxRing<'_>, to: &mut TxRing<'_>) -> u64 {
    from.sync();
    let room = to.space().min(BATCH);
    let mut moved = 0;
    for (frame, mut slot) in from.batch(room).zip(to.batch(room)) {
        frame.forward(&mut slot);
        moved += 1;
    }
    to.sync();
    moved
}
