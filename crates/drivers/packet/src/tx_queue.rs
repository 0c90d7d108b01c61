//! Frames in memory of their own, on their way to the kernel.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use ringway_switch_port::{Drops, StallReason};
use ringway_vnet::{Header, MAX_FRAME};

use crate::patience::Patience;
use crate::sys::{BATCH, Pieces};

/// Frames that may wait.
const FRAMES: usize = 256;

/// The longest frames that the kernel is to cut: room for so many.
const WHOLE: usize = 16;

/// Frames to send, in their order, each behind a virtio-net header of 10 bytes.
#[derive(Debug)]
pub struct TxQueue {
    socket: OwnedFd,
    memory: Vec<u8>,
    /// Where in it each frame is, those that are sent already among them.
    frames: Vec<Range<usize>>,
    sent: usize,
    /// Frames that the kernel would not have, whatever the time; and those of them that were too long.
    lost: u64,
    too_long: u64,
    patience: Patience,
}

impl TxQueue {
    /// For frames of up to `max_frame` bytes, and whole ones that are sent in such.
    pub fn new(socket: OwnedFd, max_frame: u32) -> TxQueue {
        let frame = Header::SHORT + max_frame as usize;
        // Untouched until so much is to be sent at once.
        let memory = vec![0; (FRAMES * frame).max(WHOLE * (Header::SHORT + MAX_FRAME))];
        let (frames, patience) = (Vec::with_capacity(FRAMES), Patience::default());
        TxQueue { socket, memory, frames, sent: 0, lost: 0, too_long: 0, patience }
    }

    /// Room for one more frame of `length` bytes, and its virtio-net header of 10; `None` while too many
    /// wait.
    #[inline]
    pub fn add(&mut self, length: u32) -> Option<&mut [u8]> {
        let start = self.frames.last().map_or(0, |last| last.end);
        let frame = start..start + Header::SHORT + length as usize;
        let room = self.memory.get_mut(frame.clone()).filter(|_| self.frames.len() < FRAMES)?;
        self.frames.push(frame);
        Some(room)
    }

    /// Adds the frames that were lost since the last call.
    pub fn take_lost(&mut self, drops: &mut Drops) {
        drops.too_long += std::mem::take(&mut self.too_long);
        drops.ring_full += std::mem::take(&mut self.lost);
    }

    /// Sends what the kernel takes. Returns what is in the way of the rest, which stays.
    pub fn flush(&mut self) -> Option<StallReason> {
        while self.sent < self.frames.len() {
            match self.send_some() {
                Ok(sent) => {
                    self.sent += sent;
                    self.patience.taken();
                }
                Err(error) => match self.in_the_way(&error) {
                    Some(stall_reason) => return Some(stall_reason),
                    None => {
                        // What the device never had room for is longer than the other end takes.
                        let too_long = [Some(libc::EMSGSIZE), Some(libc::ENOBUFS)];
                        match too_long.contains(&error.raw_os_error()) {
                            true => self.too_long += 1,
                            false => self.lost += 1,
                        }
                        self.sent += 1;
                    }
                },
            }
        }
        self.frames.clear();
        self.sent = 0;
        None
    }

    /// What is in the way of the first frame; `None`: it is not waited for.
    #[cold]
    fn in_the_way(&mut self, error: &io::Error) -> Option<StallReason> {
        let length = self.frames.get(self.sent).map_or(0, |frame| frame.len() as u32);
        let is_no_room = error.raw_os_error() == Some(libc::ENOBUFS);
        let is_over = is_no_room && self.patience.is_over(length, Instant::now());
        stall_reason(error).filter(|_| !is_over)
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
