//! TPACKET_V3: blocks full of packets to receive from, and sendmmsg to send.
#![allow(unsafe_code)]

use std::mem::{self, offset_of};
use std::{io, ptr};

use libc::{
    TP_STATUS_KERNEL, TP_STATUS_USER, iovec, mmsghdr, tpacket_block_desc, tpacket_hdr_v1,
    tpacket_req3, tpacket3_hdr,
};
use rustix::event::PollFlags;

use super::part::{BATCH, Ends, Task};
use super::tpacket::{Memory, Socket};
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
    messages: Messages,
}

/// Packets to send. The messages point to the vectors beside them, so they never move.
struct Messages {
    vectors: Box<[iovec; BATCH]>,
    messages: Box<[mmsghdr; BATCH]>,
}

impl Ends for Tpacket3 {
    fn open(interfaces: &[String], task: Task, packet: &[u8]) -> io::Result<Tpacket3> {
        let open = |(i, name): (usize, &String)| open(name, task.receives() && i == 0);
        let interfaces = interfaces.iter().enumerate().map(open).collect::<io::Result<_>>()?;
        let (packet, messages) = (packet.to_vec(), Messages::new());
        Ok(Tpacket3 { interfaces, block: 0, next: 0, left: 0, packet, messages })
    }

    fn send(&mut self, most: usize) -> u64 {
        let most = most.min(BATCH);
        for i in 0..most {
            self.messages.put(i, self.packet.as_mut_ptr(), self.packet.len());
        }
        self.flush(most) as u64
    }

    fn receive(&mut self) -> u64 {
        let mut received = 0;
        while received < BATCH && self.take().is_some() {
            received += 1;
        }
        self.release();
        received as u64
    }

    fn forward(&mut self) -> u64 {
        let mut found = 0;
        while found < BATCH {
            let Some((packet, length)) = self.take() else { break };
            self.messages.put(found, packet, length);
            found += 1;
        }
        // What finds no room is lost, as in every forwarder.
        let mut sent = 0;
        while sent < found {
            match self.flush_from(sent, found) {
                0 => break,
                more => sent += more,
            }
        }
        self.release();
        found as u64
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
            // SAFETY: all zero is valid: no private area, no features.
            let mut ring: tpacket_req3 = unsafe { mem::zeroed() };
            ring.tp_block_size = BLOCK as u32;
            ring.tp_block_nr = BLOCKS as u32;
            ring.tp_frame_size = 2048;
            ring.tp_frame_nr = (BLOCK * BLOCKS / 2048) as u32;
            ring.tp_retire_blk_tov = RETIRE;
            socket.set(libc::PACKET_RX_RING, &ring)?;
            Some(socket.map(BLOCK * BLOCKS)?)
        }
        false => None,
    };
    socket.bind(name, receives)?;
    Ok((socket, memory))
}

impl Tpacket3 {
    /// The next packet of the block and its length. It stays valid until [`Tpacket3::release`];
    /// a block that it opens, it does not leave.
    #[inline]
    fn take(&mut self) -> Option<(*mut u8, usize)> {
        let memory = self.interfaces[0].1.as_ref()?;
        let block = self.block * BLOCK;
        if self.next == 0 {
            if memory.status(block + STATUS).get() & TP_STATUS_USER == 0 {
                return None;
            }
            // SAFETY: the header is made of numbers.
            let header: tpacket_hdr_v1 = unsafe { memory.read(block + HEADER) };
            self.next = header.offset_to_first_pkt as usize;
            self.left = header.num_pkts as usize;
        }
        if self.left == 0 {
            return None;
        }
        let at = block + self.next;
        // SAFETY: the header is made of numbers.
        let header: tpacket3_hdr = unsafe { memory.read(at) };
        self.next += header.tp_next_offset as usize;
        self.left -= 1;
        let length = header.tp_snaplen as usize;
        Some((memory.at(at + usize::from(header.tp_mac), length), length))
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

    fn flush(&mut self, count: usize) -> usize {
        self.flush_from(0, count)
    }

    fn flush_from(&mut self, from: usize, to: usize) -> usize {
        let last = self.interfaces.len() - 1;
        // SAFETY: the messages point to the packet, or to packets of a block not yet given back.
        unsafe { self.interfaces[last].0.send(&mut self.messages.messages[from..to]) }
    }
}

impl Messages {
    fn new() -> Messages {
        let vectors = Box::new([iovec { iov_base: ptr::null_mut(), iov_len: 0 }; BATCH]);
        // SAFETY: all zero is a valid message, of nothing.
        let messages = Box::new(unsafe { mem::zeroed::<[mmsghdr; BATCH]>() });
        Messages { vectors, messages }
    }

    #[inline]
    fn put(&mut self, i: usize, packet: *mut u8, length: usize) {
        self.vectors[i] = iovec { iov_base: packet.cast(), iov_len: length };
        let header = &mut self.messages[i].msg_hdr;
        header.msg_iov = &mut self.vectors[i];
        header.msg_iovlen = 1;
    }
}
