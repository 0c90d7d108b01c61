//! TPACKET_V3: blocks full of packets to receive from, and sendmmsg to send.

use std::mem::offset_of;
use std::{hint, io};

use libc::{
    TP_STATUS_KERNEL, TP_STATUS_USER, tpacket_block_desc, tpacket_hdr_v1, tpacket_req3,
    tpacket3_hdr,
};
use rustix::event::PollFlags;

use super::part::{BATCH, Ends, LONGEST, Task};
use crate::sys::{Memory, Messages, Piece, Socket};
use crate::turn::sleep;

/// Bytes of a block: the kernel hands it over when the next packet does not fit.
const BLOCK: usize = 1 << 17;

const BLOCKS: usize = 32;

/// When the kernel hands over a block that is not full, in ms; it takes no less.
const RETIRE: u32 = 1;

const HEADER: usize = offset_of!(tpacket_block_desc, hdr);
const STATUS: usize = HEADER + offset_of!(tpacket_hdr_v1, block_status);

pub struct Tpacket3 {
    interfaces: Vec<(Socket, Option<Memory>)>,
    /// The block that packets are taken from.
    block: usize,
    /// The next packet's place in it, and how many are left; the block is the kernel's while 0.
    next: usize,
    left: usize,
    packet: Vec<u8>,
    touches: bool,
    messages: Messages<BATCH>,
    /// Where in the block packets to forward are, and their lengths.
    taken: Vec<(usize, usize)>,
}

impl Ends for Tpacket3 {
    fn open(
        interfaces: &[String],
        task: Task,
        packet: &[u8],
        touches: bool,
    ) -> io::Result<Tpacket3> {
        let open = |(i, name): (usize, &String)| open(name, task.receives() && i == 0);
        let interfaces = interfaces.iter().enumerate().map(open).collect::<io::Result<_>>()?;
        let (packet, messages) = (packet.to_vec(), Messages::new());
        let taken = Vec::with_capacity(BATCH);
        Ok(Tpacket3 { interfaces, block: 0, next: 0, left: 0, packet, touches, messages, taken })
    }

    fn send(&mut self, most: usize) -> u64 {
        let Some((to, _)) = self.interfaces.last() else { return 0 };
        if self.touches {
            // One buffer is sent again and again: it is written as often.
            let whole = self.packet.clone();
            (0..most.min(BATCH))
                .for_each(|_| hint::black_box(&mut self.packet).copy_from_slice(&whole));
        }
        let packet = Piece::from(&self.packet[..]);
        self.messages.send(to, std::iter::repeat_n(packet, most.min(BATCH))) as u64
    }

    fn receive(&mut self) -> u64 {
        let mut received = 0;
        let mut bytes = [0; LONGEST];
        while received < BATCH
            && let Some((at, length)) = self.take()
        {
            if let (true, Some(memory)) = (self.touches, &self.interfaces[0].1) {
                let length = memory.piece(at, length).copy_to(&mut bytes);
                hint::black_box(&bytes[..length]);
            }
            received += 1;
        }
        self.release();
        received as u64
    }

    fn forward(&mut self) -> u64 {
        let mut taken = std::mem::take(&mut self.taken);
        taken.clear();
        while taken.len() < BATCH {
            let Some(packet) = self.take() else { break };
            taken.push(packet);
        }
        let (from, to) = (&self.interfaces[0].1, &self.interfaces[self.interfaces.len() - 1].0);
        let mut rest = &taken[..];
        // What finds no room is lost, as in every forwarder.
        while let (false, Some(memory)) = (rest.is_empty(), from) {
            let packets = rest.iter().map(|&(at, length)| memory.piece(at, length));
            match self.messages.send(to, packets) {
                0 => break,
                sent => rest = &rest[sent..],
            }
        }
        let found = taken.len() as u64;
        self.taken = taken;
        self.release();
        found
    }

    fn wait(&mut self, task: Task) -> io::Result<bool> {
        match task.receives() {
            true => sleep(&self.interfaces[0].0, PollFlags::IN),
            false => sleep(&self.interfaces[self.interfaces.len() - 1].0, PollFlags::OUT),
        }
    }
}

fn open(name: &str, receives: bool) -> io::Result<(Socket, Option<Memory>)> {
    let socket = Socket::new(libc::tpacket_versions::TPACKET_V3)?;
    let memory = match receives {
        true => {
            let ring = tpacket_req3 {
                tp_block_size: BLOCK as u32,
                tp_block_nr: BLOCKS as u32,
                tp_frame_size: 2048,
                tp_frame_nr: (BLOCK * BLOCKS / 2048) as u32,
                tp_retire_blk_tov: RETIRE,
                tp_sizeof_priv: 0,
                tp_feature_req_word: 0,
            };
            socket.set(libc::PACKET_RX_RING, &ring)?;
            Some(socket.map(BLOCK * BLOCKS)?)
        }
        false => None,
    };
    socket.bind(name, receives)?;
    Ok((socket, memory))
}

impl Tpacket3 {
    /// Where the next packet of the block is, and its length. It stays until [`Tpacket3::release`];
    /// a block that it opens, it does not leave.
    #[inline]
    fn take(&mut self) -> Option<(usize, usize)> {
        let memory = self.interfaces[0].1.as_ref()?;
        let block = self.block * BLOCK;
        if self.next == 0 {
            if memory.status(block + STATUS).get() & TP_STATUS_USER == 0 {
                return None;
            }
            let header: tpacket_hdr_v1 = memory.read(block + HEADER);
            self.next = header.offset_to_first_pkt as usize;
            self.left = header.num_pkts as usize;
        }
        if self.left == 0 {
            return None;
        }
        let at = block + self.next;
        let header: tpacket3_hdr = memory.read(at);
        self.next += header.tp_next_offset as usize;
        self.left -= 1;
        Some((at + usize::from(header.tp_mac), header.tp_snaplen as usize))
    }

    /// Gives the block back if all of its packets were taken.
    fn release(&mut self) {
        let Some(memory) = &self.interfaces[0].1 else { return };
        if self.next != 0 && self.left == 0 {
            memory.status(self.block * BLOCK + STATUS).set(TP_STATUS_KERNEL);
            self.block = (self.block + 1) % BLOCKS;
            self.next = 0;
        }
    }
}
