//! A plain AF_XDP program: raw sockets and the kernel's rings, nothing in between. The sockets are
//! set up as Ringway sets up its own, so that what differs is what Ringway costs.

use std::io;
use std::os::fd::AsFd;

use ringway_nic_setup::{Interface, Mode, XdpProgram, Xsk, XskConfig};
use ringway_xdp::{
    Desc, FrameMemory, KickOutcome, RX_HEADROOM, RingSizes, Rings, Umem, kick_rx, kick_tx,
};
use rustix::event::PollFlags;

use super::part::{BATCH, Ends, Task};
use crate::turn::sleep;

const CHUNK: u32 = 2048;

/// Chunks to receive into, and as many to send from.
const EACH: u32 = 2048;

/// Frames lost in one kick before the rest is left for the next: the peer is full.
const LOSSES: u32 = 16;

pub struct AfXdp {
    queues: Vec<Queue>,
    _umem: Umem,
    /// Addresses of frames that hold the packet.
    free: Vec<u64>,
    size: u32,
}

/// Queue 0 of an interface.
struct Queue {
    rings: Rings,
    xsk: Xsk,
    _program: Option<XdpProgram>,
}

impl Ends for AfXdp {
    fn open(interfaces: &[String], task: Task, packet: &[u8]) -> io::Result<AfXdp> {
        let umem = Umem::anonymous(2 * EACH, CHUNK)?;
        let open =
            |(i, name): (usize, &String)| Queue::open(name, &umem, task.receives() && i == 0);
        let mut queues: Vec<_> =
            interfaces.iter().enumerate().map(open).collect::<io::Result<_>>()?;
        let frame = |chunk| u64::from(chunk * CHUNK + RX_HEADROOM);
        if task.receives() {
            let fill = &mut queues[0].rings.fill;
            let posted = fill.free(EACH);
            (0..posted).for_each(|chunk| fill.write(chunk, frame(chunk)));
            fill.submit(posted);
        }
        let mut free = Vec::new();
        // Who forwards sends from where it received.
        if task != Task::Forward {
            for address in (EACH..2 * EACH).map(frame) {
                let (_, at) = umem.locate(address, packet.len() as u32).ok_or_else(too_long)?;
                at.write(0, packet);
                free.push(address);
            }
        }
        Ok(AfXdp { queues, _umem: umem, free, size: packet.len() as u32 })
    }

    fn send(&mut self, most: usize) -> u64 {
        let last = self.queues.len() - 1;
        let queue = &mut self.queues[last];
        queue.reap(&mut self.free);
        let most = most.min(BATCH).min(self.free.len()) as u32;
        let count = queue.rings.tx.free(most);
        let from = self.free.len() - count as usize;
        for (i, address) in (0..).zip(self.free.drain(from..)) {
            queue.rings.tx.write(i, Desc { address, length: self.size, options: 0 });
        }
        queue.rings.tx.submit(count);
        queue.kick();
        count.into()
    }

    fn receive(&mut self) -> u64 {
        let Queue { rings, xsk, .. } = &mut self.queues[0];
        let found = rings.rx.available(BATCH as u32);
        let found = rings.fill.free(found);
        for i in 0..found {
            rings.fill.write(i, rings.rx.read(i).address);
        }
        rings.rx.release(found);
        rings.fill.submit(found);
        if rings.fill.needs_wakeup() {
            // Whatever the answer, the chunks stay on the ring until the kernel wants them.
            let _ = kick_rx(&xsk.socket.fd);
        }
        found.into()
    }

    fn forward(&mut self) -> u64 {
        let (first, last) = (0, self.queues.len() - 1);
        let room = self.queues[last].rings.tx.free(BATCH as u32);
        let found = self.queues[first].rings.rx.available(room);
        for i in 0..found {
            let frame = Desc { options: 0, ..self.queues[first].rings.rx.read(i) };
            self.queues[last].rings.tx.write(i, frame);
        }
        self.queues[first].rings.rx.release(found);
        self.queues[last].rings.tx.submit(found);
        self.queues[last].kick();

        self.queues[last].reap(&mut self.free);
        let fill = &mut self.queues[first].rings.fill;
        let back = fill.free(self.free.len() as u32);
        let from = self.free.len() - back as usize;
        (0..).zip(self.free.drain(from..)).for_each(|(i, address)| fill.write(i, address));
        fill.submit(back);
        if fill.needs_wakeup() {
            let _ = kick_rx(&self.queues[first].xsk.socket.fd);
        }
        found.into()
    }

    fn wait(&mut self, task: Task) -> io::Result<bool> {
        let (queue, readiness) = match task.receives() {
            true => (0, PollFlags::IN),
            false => (self.queues.len() - 1, PollFlags::OUT),
        };
        sleep(&self.queues[queue].xsk.socket.fd, readiness)
    }
}

impl Queue {
    fn open(name: &str, umem: &Umem, receives: bool) -> io::Result<Queue> {
        let open = || -> Result<_, ringway_nic_setup::Error> {
            let interface = Interface::by_name(name)?;
            // Who only sends needs no program.
            let mut program = receives.then(|| XdpProgram::attach(&interface)).transpose()?;
            let modes = program.as_ref().map_or(&[Mode::Copy][..], |p| Mode::preference(p.mode()));
            let config = XskConfig {
                interface: &interface,
                queue: 0,
                memory: FrameMemory::of_umem(umem),
                chunk_size: CHUNK,
                sizes: RingSizes::default(),
                frags: false,
                modes,
            };
            let xsk = Xsk::open(&config)?;
            if let Some(program) = &mut program {
                program.set_queue(0, &xsk.socket)?;
            }
            Ok((xsk, program))
        };
        let (xsk, program) = open().map_err(io::Error::other)?;
        Ok(Queue {
            rings: Rings::map(xsk.socket.fd.as_fd(), &xsk.socket.sizes)?,
            xsk,
            _program: program,
        })
    }

    /// Kicks until the kernel has taken everything or can do no more.
    fn kick(&mut self) {
        let (mut pending, mut lost) = (self.rings.tx.pending(), 0);
        while pending > 0 && lost < LOSSES && self.rings.tx.needs_wakeup() {
            match kick_tx(&self.xsk.socket.fd) {
                Ok(KickOutcome::Sent | KickOutcome::Again) => {}
                Ok(KickOutcome::Lost) => lost += 1,
                Ok(KickOutcome::LinkDown | KickOutcome::Gone) | Err(_) => return,
            }
            let left = self.rings.tx.pending();
            if left >= pending {
                return;
            }
            pending = left;
        }
    }

    /// Adds the addresses of frames that were sent.
    fn reap(&mut self, to: &mut Vec<u64>) {
        let ring = &mut self.rings.completion;
        let done = ring.available(ring.size());
        to.extend((0..done).map(|i| ring.read(i)));
        ring.release(done);
    }
}

fn too_long() -> io::Error {
    io::Error::other("the packet does not fit a chunk")
}
