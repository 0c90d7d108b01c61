//! Whole frames on one queue: none is lost or sent twice, and each chunk is with one side.

use std::collections::VecDeque;

use proptest::{collection::vec, prelude::*, sample::Index};
use ringway_region::Buf;
use ringway_xdp::{
    Desc, FrameCounters, FrameQueue, KickOutcome, MAX_FRAGS, RX_HEADROOM, RingSizes, RxFrame, Umem,
    XskSocket,
};

use crate::kernel::{CHUNK, FILL, Kernel, TX};

const CHUNKS: u32 = 24;
/// For receiving; the others are for sending.
const FOR_RX: u32 = 8;
const FOR_TX: u32 = CHUNKS - FOR_RX;
const SIZES: RingSizes = RingSizes { fill: FOR_RX, completion: 32, rx: 16, tx: 8 };

#[derive(Clone, Debug)]
enum Op {
    Send(u32),
    SendParts(u32),
    Flush,
    /// The kernel takes so many.
    Sends(u32),
    /// It completes so many, and which.
    Completes(usize, Vec<Index>),
    /// It says that it has completed what it was not given.
    CompletesOdd(u64),
    /// A packet of parts of these lengths, each in one of the chunks that it has.
    Receives(Vec<(u32, Index)>),
    /// It has received something where there is no chunk for that.
    ReceivesOdd(u64),
    Recv(u32),
    Take(u32),
    GiveBack,
}

fn op() -> impl Strategy<Value = Op> {
    let size = CHUNK as u32;
    let length = prop_oneof![6 => 14u32..2000, 1 => 12u32..16, 1 => size - 1..size + 2];
    let long = prop_oneof![4 => size..4 * size, 1 => 18 * size - 1..18 * size + 2];
    let part = (1u32..1792, any::<Index>());
    let odd =
        prop_oneof![Just(u64::MAX), Just(u64::from(CHUNKS) * CHUNK), Just(1 << 44), 0..CHUNK * 24];
    let which = vec(any::<Index>(), 16);
    prop_oneof![
        10 => length.prop_map(Op::Send),
        2 => long.prop_map(Op::SendParts),
        4 => Just(Op::Flush),
        6 => (0..=SIZES.tx).prop_map(Op::Sends),
        6 => (0usize..16, which).prop_map(|(n, which)| Op::Completes(n, which)),
        1 => odd.clone().prop_map(Op::CompletesOdd),
        8 => vec(part, 1..4).prop_map(Op::Receives),
        1 => odd.prop_map(Op::ReceivesOdd),
        4 => (0u32..12).prop_map(Op::Recv),
        2 => (0u32..12).prop_map(Op::Take),
        2 => Just(Op::GiveBack),
    ]
}

struct World {
    kernel: Kernel,
    queue: FrameQueue,
    counters: FrameCounters,
    /// Parts that the kernel is to find: their bytes, and whether they go on; and how many of them are staged.
    sent: VecDeque<(Vec<u8>, bool)>,
    staged: u32,
    staged_packets: u64,
    /// What it has taken and not completed; and what it has completed that we have not looked at.
    taken: Vec<u64>,
    completed: u32,
    odd_completions: u64,
    free: u32,
    /// Chunks that the kernel has to receive into; what it has received: address, bytes and whether it goes on, or
    /// nothing where there is no chunk; and chunks that we have taken.
    posted: Vec<u64>,
    received: VecDeque<Option<(u64, Vec<u8>, bool)>>,
    held: Vec<u64>,
    stamp: u8,
}

fn queue(kernel: &Kernel, frags: bool) -> FrameQueue {
    let umem = Umem::anonymous(CHUNKS, CHUNK as u32).unwrap();
    let mut rings = kernel.fake.rings().unwrap();
    for chunk in 0..FOR_RX {
        rings.fill.write(chunk, u64::from(chunk) * CHUNK);
    }
    rings.fill.submit(FOR_RX);
    let socket =
        XskSocket { fd: kernel.socket(), sizes: SIZES, frags, max_segs: MAX_FRAGS, is_pair: true };
    FrameQueue::over(socket, rings, umem)
}

fn bytes_of(data: &Buf<'_>) -> Vec<u8> {
    let mut bytes = vec![0; data.size() as usize];
    data.copy_to(bytes.len(), &mut bytes);
    bytes
}

impl World {
    fn new(first: u32) -> World {
        let kernel = Kernel::new(SIZES, first);
        let queue = queue(&kernel, true);
        let posted = kernel.take_posted(u32::MAX);
        World {
            kernel,
            queue,
            counters: FrameCounters::default(),
            sent: VecDeque::new(),
            staged: 0,
            staged_packets: 0,
            taken: Vec::new(),
            completed: 0,
            odd_completions: 0,
            free: FOR_TX,
            posted,
            received: VecDeque::new(),
            held: Vec::new(),
            stamp: 0,
        }
    }

    fn fresh(&mut self, length: u32) -> Vec<u8> {
        self.stamp = self.stamp.wrapping_add(1);
        (0..length).map(|i| self.stamp.wrapping_add(i as u8)).collect()
    }

    /// Those that the kernel has completed are free.
    fn reap(&mut self) {
        self.free += std::mem::take(&mut self.completed);
        self.counters.tx_bad_completion += std::mem::take(&mut self.odd_completions);
    }

    fn flushed(&mut self) {
        let staged = std::mem::take(&mut self.staged) as usize;
        let first = self.sent.len() - staged;
        self.counters.tx_packets += std::mem::take(&mut self.staged_packets);
        let bytes = self.sent.iter().skip(first).map(|(bytes, _)| bytes.len() as u64);
        self.counters.tx_bytes += bytes.sum::<u64>();
        self.reap();
    }

    /// Whether there is room for a packet of so many chunks, as the queue finds out.
    fn has_room(&mut self, chunks: u32) -> bool {
        let fits = |world: &World| {
            let pending = world.sent.len() as u32;
            world.free >= chunks && SIZES.tx - pending >= chunks
        };
        if !fits(self) {
            if self.staged > 0 { self.flushed() } else { self.reap() }
        }
        let fits = fits(self);
        self.counters.tx_ring_full += u64::from(!fits);
        fits
    }

    fn stage(&mut self, parts: Vec<Vec<u8>>) {
        let count = parts.len();
        self.staged += count as u32;
        self.free -= count as u32;
        self.staged_packets += 1;
        self.sent.extend(parts.into_iter().zip(1..).map(|(bytes, i)| (bytes, i < count)));
    }

    fn send(&mut self, length: u32) -> Result<(), TestCaseError> {
        let bytes = self.fresh(length);
        let fits = if length > CHUNK as u32 {
            self.counters.tx_too_long += 1;
            false
        } else if length < 14 {
            self.counters.tx_too_short += 1;
            false
        } else {
            self.has_room(1)
        };
        let room = self.queue.send(length);
        prop_assert_eq!(room.map(|room| room.write(0, &bytes)), fits.then_some(bytes.len()));
        if fits {
            self.stage(vec![bytes]);
        }
        Ok(())
    }

    fn send_parts(&mut self, length: u32) -> Result<(), TestCaseError> {
        let bytes = self.fresh(length);
        let parts: Vec<_> = bytes.chunks(CHUNK as usize).map(<[u8]>::to_vec).collect();
        let fits = if parts.len() > MAX_FRAGS as usize {
            self.counters.tx_too_long += 1;
            false
        } else {
            self.has_room(parts.len() as u32)
        };
        let mut rest = parts.iter();
        let sent = self.queue.send_parts(length, |data| {
            let part = rest.next().expect("as many parts as it takes");
            assert_eq!(data.size() as usize, part.len());
            data.write(0, part);
        });
        prop_assert_eq!(sent, fits);
        if fits {
            prop_assert_eq!(rest.len(), 0);
            self.stage(parts);
        }
        Ok(())
    }

    /// The kernel takes what is on the ring.
    fn sends(&mut self, most: u32) -> Result<(), TestCaseError> {
        for Desc { address, length, options } in self.kernel.take_sent(most) {
            let (bytes, goes_on) = self.sent.pop_front().expect("it was sent once");
            prop_assert_eq!((length as usize, options), (bytes.len(), goes_on.into()));
            let (chunk, data) = self.queue.umem().locate(address, length).expect("in one chunk");
            prop_assert!(chunk >= FOR_RX && !self.taken.contains(&address));
            prop_assert!(bytes_of(&data) == bytes);
            self.taken.push(address);
        }
        Ok(())
    }

    /// What is left of the received parts, up to the last that ends a packet.
    fn whole(&self, limit: u32) -> usize {
        let most = self.received.len().min(limit as usize);
        let ends = |i: &usize| !matches!(self.received[i - 1], Some((_, _, true)));
        (1..=most).rev().find(ends).unwrap_or(0)
    }

    fn take(&mut self, limit: u32, give_back: bool) -> Result<(), TestCaseError> {
        let count = self.whole(limit);
        let mut got = Vec::new();
        let each =
            |frame: RxFrame<'_>| got.push((frame.address, bytes_of(&frame.data), frame.goes_on));
        let found =
            if give_back { self.queue.recv(limit, each) } else { self.queue.take(limit, each) };
        prop_assert_eq!(found as usize, count);
        let mut expected = Vec::new();
        for part in self.received.drain(..count) {
            let Some(part) = part else {
                self.counters.rx_bad_desc += 1;
                continue;
            };
            self.counters.rx_bytes += part.1.len() as u64;
            self.counters.rx_packets += u64::from(!part.2);
            self.held.push(part.0 / CHUNK * CHUNK);
            expected.push(part);
        }
        prop_assert!(got == expected);
        if give_back { self.given_back() } else { Ok(()) }
    }

    /// The kernel gets back all that we have had.
    fn given_back(&mut self) -> Result<(), TestCaseError> {
        prop_assert_eq!(self.queue.rx_posted() as usize, self.held.len());
        let mut chunks = self.kernel.take_posted(u32::MAX);
        self.posted.extend(&chunks);
        chunks.sort_unstable();
        self.held.sort_unstable();
        prop_assert_eq!(chunks, std::mem::take(&mut self.held));
        Ok(())
    }

    fn step(&mut self, op: &Op) -> Result<(), TestCaseError> {
        match op {
            Op::Send(length) => self.send(*length)?,
            Op::SendParts(length) => self.send_parts(*length)?,
            Op::Flush => {
                self.flushed();
                prop_assert_eq!(self.queue.flush(), Ok(KickOutcome::Sent));
            }
            Op::Sends(most) => self.sends(*most)?,
            Op::Completes(count, which) => {
                for which in which.iter().take((*count).min(self.taken.len())) {
                    let address = self.taken.swap_remove(which.index(self.taken.len()));
                    self.kernel.complete(&[address]);
                    self.completed += 1;
                }
            }
            // A chunk that is being received into, or none.
            Op::CompletesOdd(address) => {
                let is_tx = (FOR_RX..CHUNKS).contains(&((address / CHUNK) as u32));
                if (!is_tx || *address > u64::from(u32::MAX)) && self.odd_completions == 0 {
                    self.kernel.complete(&[*address]);
                    self.odd_completions += 1;
                }
            }
            Op::Receives(parts) => {
                let count = parts.len().min(self.posted.len());
                if self.received.len() + count > SIZES.rx as usize {
                    return Ok(());
                }
                for (i, (length, which)) in (1..).zip(&parts[..count]) {
                    let chunk = self.posted.swap_remove(which.index(self.posted.len()));
                    let address = chunk + u64::from(RX_HEADROOM);
                    let bytes = self.fresh(*length);
                    let (_, data) = self.queue.umem().locate(address, *length).unwrap();
                    data.write(0, &bytes);
                    let options = u32::from(i < count);
                    self.kernel.receive(&[Desc { address, length: *length, options }]);
                    self.received.push_back(Some((address, bytes, i < count)));
                }
            }
            Op::ReceivesOdd(address) => {
                // Any but those that it has: one for sending, or none at all.
                let is_rx = address / CHUNK < FOR_RX.into();
                if !is_rx && self.received.len() < SIZES.rx as usize {
                    self.kernel.receive(&[Desc { address: *address, length: 60, options: 0 }]);
                    self.received.push_back(None);
                }
            }
            // What was taken before goes back with it.
            Op::Recv(limit) => self.take(*limit, true)?,
            Op::Take(limit) => self.take(*limit, false)?,
            Op::GiveBack => {
                self.queue.give_back();
                self.given_back()?;
            }
        }
        let pending = self.sent.len() as u32 - self.staged;
        prop_assert_eq!((self.queue.tx_pending(), self.kernel.pending(TX)), (pending, pending));
        prop_assert_eq!(self.queue.tx_in_flight(), FOR_TX - self.free);
        prop_assert_eq!(self.queue.counters(), self.counters);
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn every_frame_goes_its_way_and_every_chunk_has_one_holder(
        ops in vec(op(), 1..80), first in prop_oneof![Just(0), u32::MAX - 40..=u32::MAX],
    ) {
        let mut world = World::new(first);
        for op in &ops {
            world.step(op)?;
        }
    }
}

/// A packet has no more chunks than the driver takes.
#[test]
fn a_packet_has_no_more_chunks_than_are_taken() {
    let kernel = Kernel::new(SIZES, 0);
    let chunk = CHUNK as u32;
    let umem = Umem::anonymous(CHUNKS, chunk).unwrap();
    let socket =
        XskSocket { fd: kernel.socket(), sizes: SIZES, frags: true, max_segs: 3, is_pair: true };
    let mut queue = FrameQueue::over(socket, kernel.fake.rings().unwrap(), umem);
    assert_eq!(queue.max_tx_packet(), 3 * chunk);
    assert!(!queue.send_parts(3 * chunk + 1, |_| panic!("there is no room")));
    assert!(queue.send_parts(3 * chunk, |_| ()));
    assert_eq!(queue.counters().tx_too_long, 1);
}

/// A socket whose packets have one chunk sends no longer ones, and a chunk is the longest frame.
#[test]
fn a_packet_of_one_chunk_is_no_longer() {
    let kernel = Kernel::new(SIZES, 0);
    let mut queue = queue(&kernel, false);
    let chunk = CHUNK as u32;
    assert_eq!((queue.max_tx_frame(), queue.max_rx_frame()), (chunk, chunk - RX_HEADROOM));
    assert!(!queue.send_parts(chunk + 1, |_| panic!("there is no room")));
    assert!(queue.send(chunk).is_some() && queue.send(chunk + 1).is_none());
    let expected = FrameCounters { tx_too_long: 2, ..FrameCounters::default() };
    assert_eq!(queue.counters(), expected);
    assert_eq!((queue.rx_posted(), queue.tx_in_flight(), queue.tx_pending()), (FOR_RX, 1, 0));
}

/// A kernel that waits is kicked as long as that moves something, and only if there is something to send.
#[test]
fn a_kick_that_moves_nothing_is_the_last() {
    let kernel = Kernel::new(SIZES, 0);
    let mut queue = queue(&kernel, false);
    kernel.set_wakeup(TX, true);
    assert_eq!(queue.flush(), Ok(KickOutcome::Sent), "there is nothing to send");
    assert!(queue.send(60).is_some() && queue.send(60).is_some());
    assert_eq!(queue.flush(), Ok(KickOutcome::Again));
    let [one, _]: [Desc; 2] = kernel.take_sent(2).try_into().unwrap();
    assert!(queue.send(60).is_some());
    kernel.complete(&[one.address]);
    assert_eq!(queue.flush(), Ok(KickOutcome::Again));
    assert_eq!((queue.tx_pending(), queue.tx_in_flight()), (1, 2));
    kernel.set_wakeup(TX, false);
    assert_eq!(queue.flush(), Ok(KickOutcome::Sent), "it goes on by itself");
}

/// The times in front of frames are told once, and are no part of others.
#[test]
fn a_time_is_told_once() {
    let kernel = Kernel::new(SIZES, 0);
    let mut queue = queue(&kernel, false);
    let chunks = kernel.take_posted(u32::MAX);
    let put = |queue: &FrameQueue, chunk: u64, at: u64, time: Option<u64>| {
        if let Some(time) = time {
            let (_, front) = queue.umem().locate(chunk + at - 8, 8).unwrap();
            front.write(0, &time.to_ne_bytes());
        }
        kernel.receive(&[Desc { address: chunk + at, length: 60, options: 0 }]);
    };
    let headroom = u64::from(RX_HEADROOM);
    put(&queue, chunks[0], headroom, Some(1234));
    put(&queue, chunks[1], headroom, None);
    put(&queue, chunks[2], 8, Some(77));
    // There is no room in front of it, but for another chunk's, and for none.
    put(&queue, chunks[3], 7, None);
    put(&queue, chunks[4], 0, None);
    let mut times = Vec::new();
    assert_eq!(queue.take_timed(9, |_, time| times.push(time)), 5);
    assert_eq!(times, [1234, 0, 77, 0, 0]);
    queue.give_back();
    assert_eq!(kernel.pending(FILL), 5);
    for chunk in &chunks[..3] {
        put(&queue, *chunk, headroom, None);
    }
    times.clear();
    queue.take_timed(9, |_, time| times.push(time));
    assert_eq!(times, [0; 3]);
}
