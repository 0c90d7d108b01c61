//! TPACKET_V2: a ring of frames to receive from, and PACKET_TX_RING to send.

use std::mem::offset_of;
use std::{hint, io};

use libc::{
    TP_STATUS_KERNEL, TP_STATUS_SEND_REQUEST, TP_STATUS_SENDING, TP_STATUS_USER, sockaddr_ll,
    tpacket_req, tpacket2_hdr,
};
use rustix::event::PollFlags;

use super::part::{BATCH, Ends, LONGEST, Task};
use crate::sys::{Memory, Piece, Socket};
use crate::turn::sleep;

/// Bytes of a frame of a ring, its header included.
const FRAME: usize = 2048;

/// Frames of each ring.
const FRAMES: usize = 2048;

/// Bytes of memory that the kernel allocates in one piece.
const BLOCK: usize = 1 << 16;

const RING: usize = FRAME * FRAMES;

/// Where in a frame the packet to send begins.
const PACKET: usize = libc::TPACKET2_HDRLEN - size_of::<sockaddr_ll>();

const STATUS: usize = offset_of!(tpacket2_hdr, tp_status);
const LENGTH: usize = offset_of!(tpacket2_hdr, tp_len);

pub struct Tpacket2 {
    interfaces: Vec<Interface>,
    packet: Vec<u8>,
    touches: bool,
}

/// Both rings of an interface, and how far this program is in each.
struct Interface {
    memory: Memory,
    socket: Socket,
    received: usize,
    sent: usize,
}

impl Ends for Tpacket2 {
    fn open(
        interfaces: &[String],
        task: Task,
        packet: &[u8],
        touches: bool,
    ) -> io::Result<Tpacket2> {
        let open = |(i, name): (usize, &String)| Interface::open(name, task.receives() && i == 0);
        let interfaces: Vec<Interface> =
            interfaces.iter().enumerate().map(open).collect::<io::Result<_>>()?;
        // Every frame to send holds the packet, as long as nothing is forwarded.
        for interface in &interfaces {
            (0..FRAMES).for_each(|frame| interface.write(frame, packet.into()));
        }
        Ok(Tpacket2 { interfaces, packet: packet.to_vec(), touches })
    }

    fn send(&mut self, most: usize) -> u64 {
        let last = self.interfaces.len() - 1;
        let to = &mut self.interfaces[last];
        let mut sent = 0;
        while sent < most.min(BATCH) && to.has_room() {
            if self.touches {
                to.write(to.sent, hint::black_box(&self.packet[..]).into());
            }
            to.mark(self.packet.len() as u32);
            sent += 1;
        }
        to.socket.kick();
        sent as u64
    }

    fn receive(&mut self) -> u64 {
        let from = &mut self.interfaces[0];
        let mut received = 0;
        let mut bytes = [0; LONGEST];
        while received < BATCH
            && let Some((at, length)) = from.peek()
        {
            if self.touches {
                let length = from.memory.piece(at, length).copy_to(&mut bytes);
                hint::black_box(&bytes[..length]);
            }
            from.release();
            received += 1;
        }
        received as u64
    }

    fn forward(&mut self) -> u64 {
        let (first, last) = (0, self.interfaces.len() - 1);
        let mut moved = 0;
        while moved < BATCH && self.interfaces[last].has_room() {
            let Some((at, length)) = self.interfaces[first].peek() else { break };
            let (from, to) = (&self.interfaces[first].memory, &self.interfaces[last]);
            to.write(to.sent, from.piece(at, length));
            let to = &mut self.interfaces[last];
            to.mark(length as u32);
            self.interfaces[first].release();
            moved += 1;
        }
        if moved > 0 || self.interfaces[last].is_pending() {
            self.interfaces[last].socket.kick();
        }
        moved as u64
    }

    fn wait(&mut self, task: Task) -> io::Result<bool> {
        match task.receives() {
            true => sleep(&self.interfaces[0].socket, PollFlags::IN),
            false => sleep(&self.interfaces[self.interfaces.len() - 1].socket, PollFlags::OUT),
        }
    }
}

impl Interface {
    fn open(name: &str, receives: bool) -> io::Result<Interface> {
        let socket = Socket::new(libc::tpacket_versions::TPACKET_V2)?;
        let ring = tpacket_req {
            tp_block_size: BLOCK as u32,
            tp_block_nr: (RING / BLOCK) as u32,
            tp_frame_size: FRAME as u32,
            tp_frame_nr: FRAMES as u32,
        };
        socket.set(libc::PACKET_RX_RING, &ring)?;
        socket.set(libc::PACKET_TX_RING, &ring)?;
        let memory = socket.map(2 * RING)?;
        socket.bind(name, receives)?;
        Ok(Interface { memory, socket, received: 0, sent: 0 })
    }

    /// Where the next received packet is, and its length, if there is one.
    #[inline]
    fn peek(&self) -> Option<(usize, usize)> {
        let frame = self.received * FRAME;
        if self.memory.status(frame + STATUS).get() & TP_STATUS_USER == 0 {
            return None;
        }
        let header: tpacket2_hdr = self.memory.read(frame);
        Some((frame + usize::from(header.tp_mac), header.tp_snaplen as usize))
    }

    /// Gives the frame of [`Interface::peek`] back.
    #[inline]
    fn release(&mut self) {
        self.memory.status(self.received * FRAME + STATUS).set(TP_STATUS_KERNEL);
        self.received = (self.received + 1) % FRAMES;
    }

    /// Whether the next frame to send is free.
    #[inline]
    fn has_room(&self) -> bool {
        let status = self.memory.status(RING + self.sent * FRAME + STATUS).get();
        status & (TP_STATUS_SEND_REQUEST | TP_STATUS_SENDING) == 0
    }

    /// Whether the kernel did not take all at the last kick.
    #[inline]
    fn is_pending(&self) -> bool {
        let last = (self.sent + FRAMES - 1) % FRAMES;
        self.memory.status(RING + last * FRAME + STATUS).get() & TP_STATUS_SEND_REQUEST != 0
    }

    /// Marks the next frame, which holds a packet of `length` bytes, to be sent.
    #[inline]
    fn mark(&mut self, length: u32) {
        let frame = RING + self.sent * FRAME;
        self.memory.write(frame + LENGTH, length);
        self.memory.status(frame + STATUS).set(TP_STATUS_SEND_REQUEST);
        self.sent = (self.sent + 1) % FRAMES;
    }

    /// Writes the packet of a frame to send, at which the kernel does not look before it is marked.
    #[inline]
    fn write(&self, frame: usize, packet: Piece<'_>) {
        self.memory.put(RING + frame * FRAME + PACKET, FRAME - PACKET, packet);
    }
}
