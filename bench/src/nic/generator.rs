//! The sender that all contestants get their packets from: the same few again and again, from a raw AF_XDP socket of its own.

use std::io;
use std::os::fd::AsFd;

use ringway_nic_setup::{Interface, Mode, Xsk, XskConfig};
use ringway_xdp::{Desc, FrameMemory, KickOutcome, RX_HEADROOM, RingSizes, Rings, Umem, kick_tx};
use rustix::event::PollFlags;

use super::part::BATCH;
use crate::cpu;
use crate::turn::{LOOKS, sleep, turn};

const CHUNK: u32 = 2048;

/// Chunks to send from.
const CHUNKS: u32 = 2048;

/// Frames lost in one kick before the rest is left for the next: the peer is full.
const LOSSES: u32 = 16;

/// Plays it on `cpu`, as the parent orders.
pub fn play(
    cpu: Option<usize>,
    interface: &str,
    queue: u32,
    packets: &[Vec<u8>],
) -> io::Result<()> {
    let generator = Generator::open(interface, queue, packets)?;
    cpu.map_or(Ok(()), cpu::pin)?;
    let wait =
        |generator: &mut Generator| sleep(&generator.xsk.socket.fd, PollFlags::OUT).map(drop);
    turn(generator, LOOKS, Generator::send, wait)
}

struct Generator {
    rings: Rings,
    xsk: Xsk,
    _umem: Umem,
    /// Addresses of frames that hold the packets, one after the other.
    free: Vec<u64>,
    size: u32,
}

impl Generator {
    fn open(interface: &str, queue: u32, packets: &[Vec<u8>]) -> io::Result<Generator> {
        let umem = Umem::anonymous(CHUNKS, CHUNK)?;
        let mut free = Vec::new();
        let size = packets.first().map_or(0, Vec::len) as u32;
        for (chunk, packet) in (0..CHUNKS).zip(packets.iter().cycle()) {
            let address = u64::from(chunk * CHUNK + RX_HEADROOM);
            let (_, at) = umem
                .locate(address, size)
                .ok_or_else(|| io::Error::other("the packet does not fit a chunk"))?;
            at.write(0, packet);
            free.push(address);
        }
        let open = || -> Result<_, ringway_nic_setup::Error> {
            Xsk::open(&XskConfig {
                interface: &Interface::by_name(interface)?,
                queue,
                memory: FrameMemory::of_umem(&umem),
                chunk_size: CHUNK,
                sizes: RingSizes::default(),
                frags: false,
                // A sender needs no program.
                modes: &[Mode::Copy],
            })
        };
        let xsk = open().map_err(io::Error::other)?;
        let rings = Rings::map(xsk.socket.fd.as_fd(), &xsk.socket.sizes)?;
        Ok(Generator { rings, xsk, _umem: umem, free, size })
    }

    fn send(&mut self) -> u64 {
        self.reap();
        let most = BATCH.min(self.free.len()) as u32;
        let count = self.rings.tx.free(most);
        let from = self.free.len() - count as usize;
        for (i, address) in (0..).zip(self.free.drain(from..)) {
            self.rings.tx.write(i, Desc { address, length: self.size, options: 0 });
        }
        self.rings.tx.submit(count);
        self.kick();
        count.into()
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

    /// Takes back the frames that were sent.
    fn reap(&mut self) {
        let ring = &mut self.rings.completion;
        let done = ring.available(ring.size());
        self.free.extend((0..done).map(|i| ring.read(i)));
        ring.release(done);
    }
}
