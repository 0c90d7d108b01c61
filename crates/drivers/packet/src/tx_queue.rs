//! Frames in memory of their own, on their way to the kernel.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};

use ringway_switch_port::StallReason;

use crate::sys::{BATCH, Pieces};

/// Frames that may wait.
const FRAMES: usize = 256;

/// Frames to send, in their order.
#[derive(Debug)]
pub struct TxQueue {
    socket: OwnedFd,
    memory: Vec<u8>,
    /// Where in it each frame is, those that are sent already among them.
    frames: Vec<Range<usize>>,
    sent: usize,
    /// Frames that the kernel would not have, whatever the time.
    lost: u64,
}

impl TxQueue {
    /// For frames of up to `max_frame` bytes.
    pub fn new(socket: OwnedFd, max_frame: u32) -> TxQueue {
        let memory = vec![0; FRAMES * max_frame as usize];
        TxQueue { socket, memory, frames: Vec::with_capacity(FRAMES), sent: 0, lost: 0 }
    }

    /// Room for one more frame of `length` bytes; `None` while too many wait.
    #[inline]
    pub fn add(&mut self, length: u32) -> Option<&mut [u8]> {
        let start = self.frames.last().map_or(0, |last| last.end);
        let frame = start..start + length as usize;
        let room = self.memory.get_mut(frame.clone()).filter(|_| self.frames.len() < FRAMES)?;
        self.frames.push(frame);
        Some(room)
    }

    /// Frames that were lost since the last call.
    pub fn take_lost(&mut self) -> u64 {
        std::mem::take(&mut self.lost)
    }

    /// Sends what the kernel takes. Returns what is in the way of the rest, which stays.
    pub fn flush(&mut self) -> Option<StallReason> {
        while self.sent < self.frames.len() {
            match self.send_some() {
                Ok(sent) => self.sent += sent,
                Err(error) => match stall_reason(&error) {
                    Some(stall_reason) => return Some(stall_reason),
                    None => {
                        self.lost += 1;
                        self.sent += 1;
                    }
                },
            }
        }
        self.frames.clear();
        self.sent = 0;
        None
    }

    /// One system call; how many frames it has taken.
    fn send_some(&self) -> io::Result<usize> {
        let frames = self.frames[self.sent..].iter().take(BATCH);
        let mut pieces = Pieces::<BATCH>::new();
        frames.for_each(|frame| pieces.add_bytes(&self.memory[frame.clone()]));
        pieces.send(self.socket.as_fd(), (0..pieces.count()).map(|at| at..at + 1))
    }
}

/// What is in the way of a frame for now; `None` if it will never be sent.
pub fn stall_reason(error: &io::Error) -> Option<StallReason> {
    match error.raw_os_error().unwrap_or(libc::EIO) {
        libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM | libc::EINTR => Some(StallReason::Full),
        libc::ENETDOWN => Some(StallReason::Link),
        _ => None,
    }
}
