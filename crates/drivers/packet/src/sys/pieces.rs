//! Packets for one system call, each in pieces.

use std::io;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd};

use ringway_region::Buf;

use super::BATCH;

/// Pieces of packets that are about to be sent: `N` at most. They are in memory that can be read for 'a.
pub struct Pieces<'a, const N: usize> {
    vectors: [MaybeUninit<libc::iovec>; N],
    /// How many of them are filled in.
    count: usize,
    memory: PhantomData<Buf<'a>>,
}

impl<const N: usize> Default for Pieces<'_, N> {
    fn default() -> Self {
        Pieces::new()
    }
}

impl<'a, const N: usize> Pieces<'a, N> {
    /// None yet.
    #[inline]
    pub fn new() -> Self {
        let vectors = [const { MaybeUninit::uninit() }; N];
        Pieces { vectors, count: 0, memory: PhantomData }
    }

    /// How many there are.
    #[inline]
    pub fn count(&self) -> usize {
        self.count
    }

    /// One more. Panics if there is no room.
    #[inline]
    pub fn add(&mut self, piece: Buf<'a>) {
        self.push(piece.as_ptr(), piece.size() as usize);
    }

    /// One more, which nothing writes to. Panics if there is no room.
    #[inline]
    pub fn add_bytes(&mut self, piece: &'a [u8]) {
        self.push(piece.as_ptr().cast_mut(), piece.len());
    }

    #[inline]
    fn push(&mut self, base: *mut u8, length: usize) {
        let vector = libc::iovec { iov_base: base.cast(), iov_len: length };
        self.vectors[self.count].write(vector);
        self.count += 1;
    }

    /// Forgets those behind the first `count`.
    #[inline]
    pub fn truncate(&mut self, count: usize) {
        self.count = self.count.min(count);
    }

    /// Sends packets, of which the first [`BATCH`] count, by one system call: each is a range of the pieces.
    /// Returns how many the kernel has taken, of those that there are at least one. Panics if a range is
    /// not one of pieces.
    #[inline]
    pub fn send(
        &self,
        socket: BorrowedFd<'_>,
        packets: impl Iterator<Item = Range<usize>>,
    ) -> io::Result<usize> {
        let pieces = &self.vectors[..self.count];
        let mut messages = [const { MaybeUninit::<libc::mmsghdr>::zeroed() }; BATCH];
        let mut count = 0;
        for (message, packet) in messages.iter_mut().zip(packets) {
            let packet = &pieces[packet];
            // SAFETY: all zeros are a message without address and data.
            let header = unsafe { &mut message.assume_init_mut().msg_hdr };
            header.msg_iov = packet.as_ptr().cast_mut().cast();
            header.msg_iovlen = packet.len() as _;
            count += 1;
        }
        let (fd, flags) = (socket.as_raw_fd(), libc::MSG_DONTWAIT);
        // SAFETY: the kernel reads `count` messages, all filled in above, the pieces of each, of which the
        // first `self.count` are filled in, and what these name, which can be read for 'a.
        let sent = unsafe { libc::sendmmsg(fd, messages.as_mut_ptr().cast(), count, flags) };
        let sent = usize::try_from(sent).map_err(|_| io::Error::last_os_error())?;
        Ok(sent.min(count as usize))
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use ringway_testkit::datagram_sockets;
    use rustix::net::{RecvFlags, recv};

    use super::*;

    #[test]
    fn packets_are_ranges_of_the_pieces_that_are_left() {
        let (own, peer) = datagram_sockets();
        let mut first = *b"first";
        let mut pieces = Pieces::<4>::default();
        pieces.add(Buf::of(&mut first));
        pieces.add_bytes(b"second");
        pieces.add_bytes(b"no more");
        pieces.truncate(3);
        assert_eq!(pieces.count(), 3);
        pieces.truncate(2);
        assert_eq!(pieces.count(), 2);
        pieces.add_bytes(b"third");
        assert_eq!(pieces.send(own.as_fd(), [0..2, 2..3].into_iter()).unwrap(), 2);
        let mut bytes = [0; 20];
        let mut next = || {
            let (count, _) = recv(&peer, &mut bytes[..], RecvFlags::DONTWAIT).unwrap();
            bytes[..count].to_vec()
        };
        assert_eq!([next(), next()], [b"firstsecond".to_vec(), b"third".to_vec()]);
        drop(peer);
        assert!(pieces.send(own.as_fd(), std::iter::once(0..1)).is_err());
    }
}
