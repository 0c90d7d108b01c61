//! Transmitting in copy mode: the kernel copies packets out of the program's frames, many by one system call.

use std::{io, os::fd::BorrowedFd};

use ringway_packet::{BATCH, MAX_FRAGS, Pieces};

use super::{BAD, TOO_LONG, TxQueue};
use crate::{
    area::Area,
    desc::{Desc, DescRing},
};

/// Descriptors that the packets of one system call may have.
const PIECES: usize = BATCH + MAX_FRAGS as usize;

/// Packets for one system call: each descriptor is a piece.
struct Batch<'a> {
    pieces: Pieces<'a, PIECES>,
    /// Where each packet ends among the pieces.
    ends: [usize; BATCH],
    count: usize,
}

/// What stands behind the packets of a batch.
enum Rest {
    /// More of them, or so it may be.
    More,
    /// Nothing, or not all of a packet.
    Nothing,
    /// So many descriptors that cannot be sent.
    Bad(usize, u8),
}

impl TxQueue {
    /// Sends packets through a socket. False: some are left, for which it has no room.
    pub fn send(&mut self, socket: BorrowedFd<'_>) -> bool {
        // A program that hands over as fast as this takes must not hold the call for ever.
        let mut budget = self.ring.len() as usize + 1;
        while budget > 0 {
            let (batch, rest) = gather(&self.ring, &self.area, &mut self.packet);
            let (done, error) = match (batch.count, rest) {
                (0, Rest::Nothing | Rest::More) => return true,
                (0, Rest::Bad(descs, error)) => (descs, self.error(error)),
                _ => match batch.send(socket) {
                    Ok(0) => return false,
                    Ok(sent) => (batch.ends[sent - 1], 0),
                    Err(error) if has_no_room(&error) => return false,
                    Err(error) => (batch.ends[0], error.raw_os_error().unwrap_or(libc::EIO) as u8),
                },
            };
            for at in 0..done {
                self.ring.give_back(self.packet[at].returned(error));
            }
            budget = budget.saturating_sub(done);
        }
        false
    }
}

impl Batch<'_> {
    fn send(&self, socket: BorrowedFd<'_>) -> io::Result<usize> {
        let begin = |at: usize| at.checked_sub(1).map_or(0, |before| self.ends[before]);
        // A socket tells it once after its interface was down, also when that is up again.
        let mut told = false;
        loop {
            let packets = (0..self.count).map(|at| begin(at)..self.ends[at]);
            match self.pieces.send(socket, packets) {
                Err(error) if error.raw_os_error() == Some(libc::ENETDOWN) && !told => told = true,
                sent => return sent,
            }
        }
    }
}

/// Looks for packets that are whole, and copies their descriptors, and those that are bad if they come first.
fn gather<'a>(ring: &DescRing, area: &'a Area, descs: &mut Vec<Desc>) -> (Batch<'a>, Rest) {
    let mut batch = Batch { pieces: Pieces::new(), ends: [0; BATCH], count: 0 };
    descs.clear();
    while batch.count < BATCH && batch.pieces.count() < BATCH {
        let first = descs.len();
        let (mut good, mut at) = (true, first);
        loop {
            let Some(desc) = ring.peek(at as u32) else {
                // A ring that is full of a packet without an end will not have one.
                let endless = first == 0 && at as u32 == ring.len();
                batch.pieces.truncate(first);
                return (batch, if endless { Rest::Bad(at, TOO_LONG) } else { Rest::Nothing });
            };
            at += 1;
            descs.push(desc);
            match area.filled(&desc) {
                Some(data) if batch.pieces.count() < PIECES => batch.pieces.add(data),
                Some(_) => {}
                None => good = false,
            }
            if !desc.goes_on() {
                break;
            }
        }
        let error = if good { TOO_LONG } else { BAD };
        if !good || at - first > MAX_FRAGS as usize {
            batch.pieces.truncate(first);
            return (batch, Rest::Bad(at - first, error));
        }
        batch.ends[batch.count] = at;
        batch.count += 1;
    }
    (batch, Rest::More)
}

/// Whether the packet may be sent later.
fn has_no_room(error: &io::Error) -> bool {
    use libc::{EAGAIN, EINTR, ENOBUFS, ENODEV, ENOMEM, ENXIO};
    // With the last two the interface has gone, which the wait for room finds.
    matches!(error.raw_os_error(), Some(EAGAIN | ENOBUFS | ENOMEM | EINTR | ENXIO | ENODEV))
}
