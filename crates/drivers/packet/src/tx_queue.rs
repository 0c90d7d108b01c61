//! Frames in memory of their own, on their way to the kernel.

use std::io;
use std::mem;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use ringway_switch_port::{Delivered, Drops, StallReason, Unsent};
use ringway_vnet::{Header, MAX_FRAME};

use crate::patience::Patience;
use crate::refusals::Refusals;
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
    /// What the kernel would not have, whatever the time; and how many of them were too long.
    refused: Delivered,
    too_long: u64,
    patience: Patience,
    /// Of frames that the kernel does not cut.
    refusals: Refusals,
}

impl TxQueue {
    /// For frames of up to `max_frame` bytes, and whole ones that are sent in such.
    pub fn new(socket: OwnedFd, max_frame: u32) -> TxQueue {
        let frame = Header::SHORT + max_frame as usize;
        // Untouched until so much is to be sent at once.
        let memory = vec![0; (FRAMES * frame).max(WHOLE * (Header::SHORT + MAX_FRAME))];
        let (frames, patience) = (Vec::with_capacity(FRAMES), Patience::default());
        TxQueue {
            socket,
            memory,
            frames,
            sent: 0,
            refused: Delivered::default(),
            too_long: 0,
            patience,
            refusals: Refusals::default(),
        }
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

    /// What was refused since the last call, which it counts in `drops`, and what waits.
    pub fn unsent(&mut self, drops: &mut Drops) -> Unsent {
        let refused = mem::take(&mut self.refused);
        let too_long = mem::take(&mut self.too_long) + self.refusals.take_too_long();
        drops.too_long += too_long;
        drops.ring_full += refused.packets - too_long;
        Unsent { refused, waiting: self.waiting() }
    }

    fn waiting(&self) -> Delivered {
        let mut waiting = Delivered::default();
        self.frames[self.sent..].iter().for_each(|frame| waiting.add(length(frame)));
        waiting
    }

    /// What waits is refused.
    pub fn discard(&mut self) {
        let waiting = self.waiting();
        self.refused += waiting;
        self.frames.clear();
        self.sent = 0;
        self.patience.end_wait();
    }

    /// Sends what the kernel takes. Returns what is in the way of the rest, which stays. It does not wait for a link:
    /// by the time that it is back, the frames are old.
    pub fn flush(&mut self) -> Option<StallReason> {
        while self.sent < self.frames.len() {
            match self.send_some() {
                Ok(sent) => {
                    let taken = self.frames[self.sent..].iter().take(sent);
                    let whole = taken.filter(|frame| !is_cut(&self.memory, frame)).map(length);
                    let longest = whole.clone().max().unwrap_or(0);
                    self.refusals.taken(whole);
                    self.sent += sent;
                    self.patience.taken(longest);
                }
                Err(error) => match self.in_the_way(&error, Instant::now()) {
                    Some(StallReason::Link) => self.discard(),
                    Some(stall_reason) => return Some(stall_reason),
                    None => self.give_up(&error),
                },
            }
        }
        self.frames.clear();
        self.sent = 0;
        None
    }

    /// The first frame will not be sent.
    #[cold]
    fn give_up(&mut self, error: &io::Error) {
        let frame = self.frames.get(self.sent);
        let bytes = frame.map_or(0, length);
        let is_whole = frame.is_some_and(|frame| !is_cut(&self.memory, frame));
        match error.raw_os_error() {
            Some(libc::EMSGSIZE) => self.too_long += 1,
            Some(libc::ENOBUFS) if is_whole => self.refusals.given_up(bytes),
            _ => {}
        }
        self.refused.add(bytes);
        self.sent += 1;
    }

    /// What is in the way of the first frame; `None`: it is not waited for.
    #[cold]
    fn in_the_way(&mut self, error: &io::Error, now: Instant) -> Option<StallReason> {
        let whole = self.frames.get(self.sent).filter(|frame| !is_cut(&self.memory, frame));
        let is_no_room = error.raw_os_error() == Some(libc::ENOBUFS);
        let is_over = is_no_room && self.patience.is_over(whole.map(length), now);
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

/// Of a frame, without its virtio-net header.
fn length(frame: &Range<usize>) -> u32 {
    (frame.len() - Header::SHORT) as u32
}

/// Whether the kernel is to cut a frame: whether its virtio-net header has a kind of segments.
fn is_cut(memory: &[u8], frame: &Range<usize>) -> bool {
    memory.get(frame.start + 1).is_some_and(|kind| *kind != 0)
}

/// What is in the way of a frame for now; `None` if it will never be sent.
pub fn stall_reason(error: &io::Error) -> Option<StallReason> {
    match error.raw_os_error().unwrap_or(libc::EIO) {
        libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM | libc::EINTR => Some(StallReason::Full),
        libc::ENETDOWN => Some(StallReason::Link),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ringway_testkit::datagram_sockets;
    use rustix::net::{RecvFlags, recv, sockopt::set_socket_send_buffer_size};

    use super::*;

    /// A queue to a socket of this process: what has few frames waiting, as an interface has.
    fn queue(max_frame: u32) -> (TxQueue, OwnedFd) {
        let (own, peer) = datagram_sockets();
        (TxQueue::new(own, max_frame), peer)
    }

    fn add(queue: &mut TxQueue, number: usize, length: u32) -> bool {
        let room = queue.add(length);
        room.is_some_and(|room| {
            assert_eq!(room.len(), 10 + length as usize);
            room.fill(number as u8);
            true
        })
    }

    fn arrived(peer: &OwnedFd) -> Vec<Vec<u8>> {
        let mut bytes = [0; 2048];
        let receive = || {
            let (count, _) = recv(peer, &mut bytes[..], RecvFlags::DONTWAIT).ok()?;
            Some(bytes[..count].to_vec())
        };
        std::iter::from_fn(receive).collect()
    }

    fn lost(queue: &mut TxQueue) -> (u64, u64) {
        let mut drops = Drops { too_long: 100, ring_full: 200, ..Drops::default() };
        let Unsent { refused, waiting } = queue.unsent(&mut drops);
        let lost = (drops.too_long - 100, drops.ring_full - 200);
        assert_eq!((refused.packets, waiting), (lost.0 + lost.1, Delivered::default()));
        lost
    }

    #[test]
    fn frames_leave_in_their_order_as_there_is_room() {
        let (mut queue, peer) = queue(100);
        let length = |number: usize| (number % 90) as u32;
        for round in 0..2 {
            let added = (0..300).take_while(|number| add(&mut queue, *number, length(*number)));
            assert_eq!(added.count(), FRAMES, "{round}");
            let (mut found, mut stalls) = (Vec::new(), 0);
            while let Some(stall) = queue.flush() {
                assert_eq!(stall, StallReason::Full);
                found.extend(arrived(&peer));
                stalls += 1;
            }
            found.extend(arrived(&peer));
            let expected =
                (0..FRAMES).map(|number| vec![number as u8; 10 + length(number) as usize]);
            assert!(found.into_iter().eq(expected), "{round}");
            assert!(stalls <= FRAMES && lost(&mut queue) == (0, 0));
        }
    }

    /// Of the longest that the interface sends as many as may wait; of the longest of all some.
    #[test]
    fn long_frames_have_room() {
        for (max_frame, length, count) in
            [(9018, 9018, FRAMES), (1518, MAX_FRAME as u32, WHOLE), (1518, 4000, FRAMES)]
        {
            let (mut queue, _peer) = queue(max_frame);
            let added = (0..300).take_while(|number| add(&mut queue, *number, length));
            assert_eq!(added.count(), count, "{max_frame} {length}");
        }
    }

    /// What is never going to leave does not keep others, and is counted once.
    #[test]
    fn what_the_socket_refuses_is_lost() {
        let (mut queue, peer) = queue(100);
        set_socket_send_buffer_size(&queue.socket, 4096).unwrap();
        for (number, length) in [60, 50_000, 61, 50_001, 50_002].into_iter().enumerate() {
            assert!(add(&mut queue, number, length));
        }
        assert_eq!((queue.flush(), lost(&mut queue)), (None, (3, 0)));
        let lengths = arrived(&peer).iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!((lengths, lost(&mut queue)), (vec![70, 71], (0, 0)));
        drop(peer);
        (0..3).for_each(|number| assert!(add(&mut queue, number, 60)));
        assert_eq!((queue.flush(), lost(&mut queue)), (None, (0, 3)));
        assert_eq!((queue.flush(), lost(&mut queue)), (None, (0, 0)));
    }

    /// A device that stands still has no room, also for a length that is new. If it takes shorter frames behind those
    /// that it has refused, it does not take such long ones; segments tell nothing of that.
    #[test]
    fn what_is_taken_behind_tells_what_was_too_long() {
        let (mut queue, peer) = queue(200);
        let no_room = io::Error::from_raw_os_error(libc::ENOBUFS);
        // The virtio-net header, which the memory is filled with, asks for no segments if it is zero.
        let refuse = |queue: &mut TxQueue, number, length| {
            assert!(add(queue, number, length));
            queue.give_up(&no_room);
        };
        assert!(add(&mut queue, 0, 60));
        assert_eq!((queue.flush(), lost(&mut queue)), (None, (0, 0)));
        for _ in 0..2 {
            refuse(&mut queue, 0, 100);
            assert_eq!((queue.flush(), lost(&mut queue)), (None, (0, 1)), "nothing moves");
        }
        for (number, counts) in [(0, (1, 0)), (3, (0, 1))] {
            refuse(&mut queue, number, 150);
            assert!(add(&mut queue, 0, 99));
            assert_eq!((queue.flush(), lost(&mut queue)), (None, counts));
        }
        assert!(add(&mut queue, 0, 100));
        assert_eq!((queue.flush(), lost(&mut queue)), (None, (0, 0)));
        refuse(&mut queue, 0, 150);
        assert_eq!((queue.flush(), lost(&mut queue)), (None, (0, 1)), "they are taken again");
        assert_eq!(arrived(&peer).len(), 4);
    }

    /// Frames that were given up with the link, and those that the kernel has taken, have no part in how long others wait.
    #[test]
    fn a_wait_begins_anew() {
        let (mut queue, _peer) = queue(100);
        let (begin, no_room) = (Instant::now(), io::Error::from_raw_os_error(libc::ENOBUFS));
        let at = |ms| begin + Duration::from_millis(ms);
        assert!(add(&mut queue, 0, 60));
        for ms in [0, 10, 20] {
            assert_eq!(queue.in_the_way(&no_room, at(ms)), Some(StallReason::Full));
        }
        queue.discard();
        assert!(add(&mut queue, 0, 60));
        for (ms, reason) in [(0, true), (20, true), (40, true), (60, false)] {
            assert_eq!(queue.in_the_way(&no_room, at(10_000 + ms)).is_some(), reason, "{ms}");
        }
        // It is taken after all.
        assert_eq!(queue.flush(), None);
        assert!(add(&mut queue, 0, 60));
        assert_eq!(queue.in_the_way(&no_room, at(10_070)), Some(StallReason::Full));
    }

    #[test]
    fn what_passes_is_waited_for() {
        let (full, link) = (Some(StallReason::Full), Some(StallReason::Link));
        for (error, reason) in [
            (libc::EAGAIN, full),
            (libc::ENOBUFS, full),
            (libc::ENOMEM, full),
            (libc::EINTR, full),
            (libc::ENETDOWN, link),
            (libc::EMSGSIZE, None),
            (libc::ENXIO, None),
            (libc::EIO, None),
        ] {
            assert_eq!(stall_reason(&io::Error::from_raw_os_error(error)), reason, "{error}");
            // Only a lack of room may be one for ever.
            let (mut queue, _peer) = queue(100);
            assert!(add(&mut queue, 0, 60));
            let begin = Instant::now();
            let last = (0..10).map(|try_| {
                let error = io::Error::from_raw_os_error(error);
                queue.in_the_way(&error, begin + Duration::from_secs(try_))
            });
            let last = last.collect::<Vec<_>>();
            assert_eq!(last[..3], [reason; 3], "{error}");
            let is_given_up = last[3..].contains(&None) && reason.is_some();
            assert_eq!(is_given_up, error == libc::ENOBUFS, "{error}");
        }
    }
}
