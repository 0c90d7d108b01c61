//! A socket, its rings and its buffers in one hand: receive, send, and lose nothing.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

use ringway_region::Buf;

use crate::loss::{Lengths, PASSED_OVER};
use crate::rings::Desc;
use crate::{
    KickOutcome, RX_HEADROOM, RingSizes, Rings, SHORTEST, Umem, XskSocket, is_zero_copy, kick_rx,
    kick_tx,
};

/// A received frame: until the callback of [`FrameQueue::recv`] returns, or until
/// [`FrameQueue::give_back`] after [`FrameQueue::take`].
#[derive(Clone, Copy, Debug)]
pub struct RxFrame<'a> {
    /// Bytes from the start of the memory to the frame.
    pub address: u64,
    /// Its bytes, all within one chunk.
    pub data: Buf<'a>,
    /// The packet goes on in the next frame; never so without [`XskSocket::frags`].
    pub goes_on: bool,
}

/// What a [`FrameQueue`] did and dropped, in whole packets unless said otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameCounters {
    pub rx_packets: u64,
    pub rx_bytes: u64,
    /// Received descriptors that named no chunk of ours.
    pub rx_bad_desc: u64,
    /// Handed to the kernel.
    pub tx_packets: u64,
    /// Bytes handed to the kernel.
    pub tx_bytes: u64,
    /// Refused: the TX ring is full, or all buffers are in flight.
    pub tx_ring_full: u64,
    /// Refused: longer than a chunk, or than as many as a packet may have.
    pub tx_too_long: u64,
    /// Refused: shorter than an Ethernet header.
    pub tx_too_short: u64,
    /// Handed to the kernel, which dropped them: the peer's ring was full, the peer was down, or
    /// the frame longer than the MTU allows.
    pub tx_lost: u64,
    /// Those among them that were longer than all that it has taken.
    pub tx_lost_too_long: u64,
    /// Their bytes.
    pub tx_lost_bytes: u64,
    /// Completions of what was not being sent.
    pub tx_bad_completion: u64,
}

/// Which side has a chunk.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holder {
    /// On our free list.
    Free,
    /// On the FILL or RX ring, or in between.
    Rx,
    /// Taken, and not given back yet.
    Taken,
    /// Staged, on the TX or COMPLETION ring, or in between.
    Tx,
}

/// The address of a descriptor that names no chunk: the last multiple of a page's size.
const NOWHERE: u64 = u64::MAX << 12;

/// Receives and sends whole frames on one queue.
///
/// With packets of several buffers ([`XskSocket::frags`]) what is received may be parts of a packet, and
/// [`FrameQueue::send_parts`] sends such packets.
///
/// Up to half of the chunks, as many as the FILL ring holds, are for receiving; the others for
/// sending. A chunk changes sides never, so neither direction can starve the other.
///
/// Every method returns at once; wait for readiness by polling the descriptor (which also makes the
/// kernel send what is pending).
pub struct FrameQueue {
    // The mappings go before the memory that the kernel reaches through them.
    rings: Rings,
    socket: XskSocket,
    umem: Umem,
    holders: Vec<Holder>,
    free: Vec<u32>,
    taken: Vec<u32>,
    tx_buffers: u32,
    /// Descriptors, and the packets and bytes that they are.
    staged: u32,
    staged_packets: u64,
    staged_bytes: u64,
    counters: FrameCounters,
    lengths: Lengths,
}

impl FrameQueue {
    /// Takes a socket that was opened with the memory of `umem` and never used, and fills its FILL
    /// ring. Errors: those of [`Rings::map`].
    pub fn new(socket: XskSocket, umem: Umem) -> rustix::io::Result<FrameQueue> {
        let rings = FrameQueue::fill(socket.fd.as_fd(), &socket.sizes, &umem)?;
        Ok(FrameQueue::over(socket, rings, umem))
    }

    /// Maps the rings of such a socket and fills its FILL ring: best before it is bound, for a driver in
    /// zero-copy looks for buffers then, and kernels before 6.4 have no ring mapped later.
    pub fn fill(
        socket: BorrowedFd<'_>,
        sizes: &RingSizes,
        umem: &Umem,
    ) -> rustix::io::Result<Rings> {
        let mut rings = Rings::map(socket, sizes)?;
        let for_rx = rings.fill.free(umem.chunks() / 2);
        for chunk in 0..for_rx {
            rings.fill.write(chunk, u64::from(chunk) * u64::from(umem.chunk_size()));
        }
        rings.fill.submit(for_rx);
        Ok(rings)
    }

    /// The same with rings that were [filled](Self::fill).
    pub fn over(socket: XskSocket, rings: Rings, umem: Umem) -> FrameQueue {
        let for_rx = (umem.chunks() / 2).min(rings.fill.size());
        let holder = |chunk| if chunk < for_rx { Holder::Rx } else { Holder::Free };
        FrameQueue {
            holders: (0..umem.chunks()).map(holder).collect(),
            free: (for_rx..umem.chunks()).collect(),
            taken: Vec::with_capacity(for_rx as usize),
            tx_buffers: umem.chunks() - for_rx,
            lengths: Lengths::none(socket.is_pair),
            rings,
            socket,
            umem,
            staged: 0,
            staged_packets: 0,
            staged_bytes: 0,
            counters: FrameCounters::default(),
        }
    }

    /// Gives up to `limit` received frames to `each`, oldest first, and their chunks back to the
    /// kernel. Returns how many were taken off the ring. Packets stay whole: one of more than
    /// `limit` frames stays on the ring.
    pub fn recv(&mut self, limit: u32, each: impl FnMut(RxFrame<'_>)) -> u32 {
        let taken = self.take(limit, each);
        self.give_back();
        taken
    }

    /// As [`FrameQueue::recv`], but the frames stay until [`FrameQueue::give_back`].
    pub fn take<'a>(&'a mut self, limit: u32, mut each: impl FnMut(RxFrame<'a>)) -> u32 {
        self.take_with::<false>(limit, |frame, _| each(frame))
    }

    /// The same where frames have timestamps: what is in front of each, which is 0 afterwards. 0 where nothing
    /// has been written since the memory was new or the last look.
    pub fn take_timed<'a>(&'a mut self, limit: u32, each: impl FnMut(RxFrame<'a>, u64)) -> u32 {
        self.take_with::<true>(limit, each)
    }

    #[inline(always)]
    fn take_with<'a, const TIMED: bool>(
        &'a mut self,
        limit: u32,
        mut each: impl FnMut(RxFrame<'a>, u64),
    ) -> u32 {
        let FrameQueue { rings: Rings { rx, .. }, umem, holders, taken, counters, .. } = self;
        let umem: &'a Umem = umem;
        let mut found = rx.available(limit);
        while found > 0 && rx.read(found - 1).goes_on() {
            found -= 1;
        }
        for i in 0..found {
            let desc @ Desc { address, length, .. } = rx.read(i);
            let located = umem.locate(address, length);
            let Some((chunk, data)) =
                located.filter(|&(chunk, _)| holders[chunk as usize] == Holder::Rx)
            else {
                counters.rx_bad_desc += 1;
                continue;
            };
            holders[chunk as usize] = Holder::Taken;
            taken.push(chunk);
            counters.rx_packets += u64::from(!desc.goes_on());
            counters.rx_bytes += u64::from(length);
            let time = if TIMED { take_time(umem, chunk, address) } else { 0 };
            each(RxFrame { address, data, goes_on: desc.goes_on() }, time);
        }
        if found > 0 {
            rx.release(found);
        }
        found
    }

    /// Gives the chunks of all frames taken back to the kernel.
    pub fn give_back(&mut self) {
        if self.taken.is_empty() {
            return;
        }
        // Room is certain, since these chunks came through the FILL ring, unless another holder of
        // the descriptor scribbled over its indices: then the rest waits for the next time.
        let n = self.rings.fill.free(self.taken.len() as u32);
        for i in 0..n {
            let Some(chunk) = self.taken.pop() else { break };
            self.holders[chunk as usize] = Holder::Rx;
            self.rings.fill.write(i, self.address(chunk));
        }
        self.rings.fill.submit(n);
        if self.rings.fill.needs_wakeup() {
            // Whatever the answer, the chunks stay on the ring until the kernel wants them.
            let _ = kick_rx(&self.socket.fd);
        }
    }

    /// Room for a frame of `length` bytes: write it before the next [`FrameQueue::flush`], which
    /// sends it after those before. `None` when it is dropped, and counted, instead.
    pub fn send(&mut self, length: u32) -> Option<Buf<'_>> {
        if length > self.umem.chunk_size() {
            self.counters.tx_too_long += 1;
            return None;
        }
        if length < SHORTEST {
            self.counters.tx_too_short += 1;
            return None;
        }
        if !self.make_room(1) {
            return None;
        }
        self.staged_packets += 1;
        self.stage(length, false)
    }

    /// Sends a frame that is longer than a chunk: `fill` writes one part after the other. False when the frame is dropped, and counted, instead.
    pub fn send_parts(&mut self, length: u32, mut fill: impl FnMut(Buf<'_>)) -> bool {
        let size = self.umem.chunk_size();
        let parts = length.div_ceil(size);
        if parts > self.max_parts() {
            self.counters.tx_too_long += 1;
            return false;
        }
        if !self.make_room(parts) {
            return false;
        }
        let mut left = length;
        while left > 0 {
            let part = left.min(size);
            left -= part;
            let Some(data) = self.stage(part, left > 0) else { break };
            fill(data);
        }
        self.staged_packets += 1;
        true
    }

    /// Whether `chunks` more can be staged; if not, the frame that they are for is counted.
    fn make_room(&mut self, chunks: u32) -> bool {
        if !self.has_room(chunks) {
            if self.staged > 0 {
                // An errno here is that of a broken descriptor; the frame is dropped either way.
                let _ = self.flush();
            } else {
                self.reap();
            }
        }
        let room = self.has_room(chunks);
        self.counters.tx_ring_full += u64::from(!room);
        room
    }

    fn has_room(&mut self, chunks: u32) -> bool {
        let wanted = self.staged + chunks;
        self.free.len() >= chunks as usize && self.rings.tx.free(wanted) >= wanted
    }

    /// Stages a chunk, of which there is one.
    #[inline]
    fn stage(&mut self, length: u32, goes_on: bool) -> Option<Buf<'_>> {
        let chunk = self.free.pop()?;
        self.holders[chunk as usize] = Holder::Tx;
        let address = self.address(chunk);
        let desc = Desc { address, length, options: 0 };
        self.rings.tx.write(self.staged, if goes_on { desc.going_on() } else { desc });
        self.staged += 1;
        self.staged_bytes += u64::from(length);
        // Always somewhere: a whole chunk holds the frame.
        self.umem.locate(address, length).map(|(_, data)| data)
    }

    /// Gives what was staged to the kernel, kicks it until it can do no more, and takes back the
    /// buffers of what was sent.
    ///
    /// [`KickOutcome::Sent`]: all is consumed. [`KickOutcome::Again`] and [`KickOutcome::LinkDown`]:
    /// the rest stays on the ring; flush again later (poll reports POLLOUT). [`KickOutcome::Gone`]:
    /// the interface will not come back. An errno means that the descriptor is broken.
    pub fn flush(&mut self) -> rustix::io::Result<KickOutcome> {
        self.counters.tx_packets += std::mem::take(&mut self.staged_packets);
        self.counters.tx_bytes += std::mem::take(&mut self.staged_bytes);
        self.rings.tx.submit(std::mem::take(&mut self.staged));
        let outcome = self.kick();
        self.reap();
        outcome
    }

    /// Every turn consumes a descriptor or frees a completion, and no new ones are made: it ends.
    fn kick(&mut self) -> rustix::io::Result<KickOutcome> {
        loop {
            let before = self.rings.tx.pending();
            if before == 0 || !self.rings.tx.needs_kick() {
                return Ok(KickOutcome::Sent);
            }
            let outcome = kick_tx(&self.socket.fd)?;
            if outcome == KickOutcome::Lost {
                self.counters.tx_lost += 1;
                let lost = self.lengths.lost(&self.rings.tx, Instant::now());
                self.counters.tx_lost_bytes += u64::from(lost.bytes);
                self.counters.tx_lost_too_long += u64::from(lost.too_long);
            }
            let progress = self.reap() > 0 || self.rings.tx.pending() < before;
            match outcome {
                KickOutcome::LinkDown | KickOutcome::Gone => return Ok(outcome),
                _ if !progress => return Ok(KickOutcome::Again),
                _ => {}
            }
        }
    }

    /// Packets, and their bytes, that the kernel has not taken yet.
    pub fn waiting(&self) -> (u64, u64) {
        let chunk = self.umem.chunk_size();
        let parts = (0..self.rings.tx.pending()).map(|i| self.rings.tx.peek_pending(i));
        let sound = parts.filter(|part| part.length <= chunk);
        let (packets, bytes) = sound.fold((0, 0), |(packets, bytes), part| {
            (packets + u64::from(!part.goes_on()), bytes + u64::from(part.length))
        });
        (packets + self.staged_packets, bytes + self.staged_bytes)
    }

    /// Gives up what [waits](Self::waiting): the kernel passes over it, and its chunks are free at once. Not in zero
    /// copy, where the driver reads the ring whenever it likes: there, what waits stays. So does the rest of a packet
    /// of which the kernel has taken a part. Returns how many descriptors the kernel is to pass over.
    pub fn discard(&mut self) -> u32 {
        if is_zero_copy(&self.socket.fd).unwrap_or(true) {
            return 0;
        }
        self.pass_over()
    }

    /// The same, where the kernel reads the TX ring in calls of this thread alone: when it is kicked, and when the
    /// descriptor is polled, of which it is the only user that has something to send.
    ///
    /// The index stays where it is: the kernel keeps a copy of it, and reads on up to that. Whether it completes what
    /// it passes over depends on its version, so that the descriptors name no chunk any more.
    fn pass_over(&mut self) -> u32 {
        self.rings.tx.submit(std::mem::take(&mut self.staged));
        (self.staged_packets, self.staged_bytes) = (0, 0);
        let (pending, chunk) = (self.rings.tx.pending(), self.umem.chunk_size());
        // With a part of a packet the kernel would drop those that it has, and not complete them.
        let mut is_begun =
            pending < self.rings.tx.size() && self.rings.tx.peek_consumed(0).goes_on();
        let mut discarded = 0;
        for i in 0..pending {
            let part = self.rings.tx.peek_pending(i);
            if is_begun {
                is_begun = part.goes_on();
            } else if part.length <= chunk {
                let passed_over = Desc { address: NOWHERE, length: PASSED_OVER, options: 0 };
                self.rings.tx.replace_pending(i, passed_over);
                self.set_free(part.address);
                discarded += 1;
            }
        }
        discarded
    }

    /// A chunk that was being sent is free. False: there is none of that address.
    fn set_free(&mut self, address: u64) -> bool {
        let chunk = self.umem.locate(address, 0).map(|(chunk, _)| chunk);
        let sent = chunk.filter(|&chunk| self.holders[chunk as usize] == Holder::Tx);
        if let Some(chunk) = sent {
            self.holders[chunk as usize] = Holder::Free;
            self.free.push(chunk);
        }
        sent.is_some()
    }

    /// Takes completed chunks back; returns how many completions there were. Their order means
    /// nothing: a dropped frame overtakes those still on their way.
    fn reap(&mut self) -> u32 {
        let done = self.rings.completion.available(self.socket.sizes.completion);
        for i in 0..done {
            let address = self.rings.completion.read(i);
            if !self.set_free(address) && address != NOWHERE {
                self.counters.tx_bad_completion += 1;
            }
        }
        if done > 0 {
            self.rings.completion.release(done);
        }
        done
    }

    /// Buffers that are staged, on the TX ring, or on their way.
    pub fn tx_in_flight(&self) -> u32 {
        self.tx_buffers - self.free.len() as u32
    }

    /// Buffers that the kernel has to receive into; frames beyond are dropped by it.
    pub fn rx_posted(&self) -> u32 {
        self.rings.fill.pending()
    }

    /// Frames handed to the kernel that it has not looked at yet: flush again.
    pub fn tx_pending(&self) -> u32 {
        self.rings.tx.pending()
    }

    /// The longest frame that [`FrameQueue::send`] takes, in bytes: a chunk.
    pub fn max_tx_frame(&self) -> u32 {
        self.umem.chunk_size()
    }

    /// The longest frame that [`FrameQueue::send_parts`] takes, in bytes.
    pub fn max_tx_packet(&self) -> u32 {
        self.max_parts().saturating_mul(self.umem.chunk_size())
    }

    /// Chunks of a packet at most.
    fn max_parts(&self) -> u32 {
        if self.socket.frags { self.socket.max_segs } else { 1 }
    }

    /// The longest frame that can be received in one chunk, in bytes; without [`XskSocket::frags`] the
    /// kernel drops longer ones ([`crate::Statistics::rx_dropped`]).
    pub fn max_rx_frame(&self) -> u32 {
        self.umem.chunk_size() - RX_HEADROOM
    }

    /// What happened so far on our side; [`crate::statistics`] has the kernel's.
    pub fn counters(&self) -> FrameCounters {
        self.counters
    }

    /// The memory that frames are in.
    pub fn umem(&self) -> &Umem {
        &self.umem
    }

    /// The socket.
    pub fn socket(&self) -> &XskSocket {
        &self.socket
    }

    fn address(&self, chunk: u32) -> u64 {
        u64::from(chunk) * u64::from(self.umem.chunk_size())
    }
}

/// Takes the timestamp away that stands in front of a frame in this chunk.
#[inline]
fn take_time(umem: &Umem, chunk: u32, address: u64) -> u64 {
    const LEN: u64 = size_of::<u64>() as u64;
    let in_front = address.checked_sub(LEN).and_then(|at| umem.locate(at, LEN as u32));
    let Some((_, time)) = in_front.filter(|(of, _)| *of == chunk) else { return 0 };
    let told = time.read(0).map_or(0, u64::from_ne_bytes);
    time.write(0, &[0; LEN as usize]);
    told
}

impl AsFd for FrameQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use ringway_testkit::datagram_sockets;

    use super::*;
    use crate::MAX_FRAGS;
    use crate::fake::FakeKernel;

    const CHUNK: u32 = 2048;

    fn queue(kernel: &FakeKernel) -> FrameQueue {
        let sizes = RingSizes { fill: 4, completion: 16, rx: 4, tx: 16 };
        let socket = XskSocket {
            fd: datagram_sockets().0,
            sizes,
            frags: true,
            max_segs: MAX_FRAGS,
            is_pair: true,
        };
        FrameQueue::over(socket, kernel.rings().unwrap(), Umem::anonymous(12, CHUNK).unwrap())
    }

    fn kernel() -> FakeKernel {
        FakeKernel::new(RingSizes { fill: 4, completion: 16, rx: 4, tx: 16 }).unwrap()
    }

    /// Whether the kernel completes what it passes over or not, each chunk is free once.
    #[test]
    fn what_is_passed_over_needs_no_completion() {
        for completes in [true, false] {
            let mut kernel = kernel();
            let mut queue = queue(&kernel);
            for _ in 0..20 {
                assert!(queue.send(60).is_some() && queue.send_parts(3 * CHUNK, |_| ()));
                queue.flush().unwrap();
                // What is staged is given up, too.
                assert!(queue.send(100).is_some());
                assert_eq!(queue.tx_in_flight(), 5);
                assert_eq!((queue.pass_over(), queue.tx_in_flight()), (5, 0));
                assert_eq!((queue.pass_over(), queue.waiting()), (0, (0, 0)));
                if completes {
                    assert_eq!(kernel.send(), 5);
                } else {
                    let before = queue.rings.completion.available(u32::MAX);
                    kernel.send();
                    let told = queue.rings.completion.available(u32::MAX);
                    queue.rings.completion.release(told - before);
                }
                assert!(queue.send(60).is_some());
                queue.flush().unwrap();
                assert_eq!(kernel.send(), 1);
                queue.flush().unwrap();
                assert_eq!((queue.tx_in_flight(), queue.counters().tx_bad_completion), (0, 0));
            }
        }
    }

    /// The rest of a packet that the kernel has begun with stays, and is completed.
    #[test]
    fn a_packet_that_is_begun_is_not_given_up() {
        let mut kernel = kernel();
        let mut queue = queue(&kernel);
        assert!(queue.send_parts(3 * CHUNK, |_| ()) && queue.send(60).is_some());
        queue.flush().unwrap();
        assert_eq!(kernel.send_up_to(1), 1);
        assert_eq!((queue.pass_over(), queue.waiting()), (1, (1, 2 * u64::from(CHUNK))));
        assert_eq!(kernel.send(), 3);
        queue.flush().unwrap();
        assert_eq!((queue.tx_in_flight(), queue.counters().tx_bad_completion), (0, 0));
    }
}
