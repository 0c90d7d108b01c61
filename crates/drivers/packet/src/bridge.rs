//! An interface as a port of a bridge: what it receives goes into the bridge, and the other way round.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use ringway_region::{Buf, Timestamps};
use ringway_switch_port::{
    Backpressure, Burst, Configure, CopyMirrors, Delivered, Drops, Frame, KernelWay, Mirrored,
    PacketIo, PortMirrors, Shown, TxStall, Unsent, Wake, WakeSource,
};
use ringway_vnet::{Error, Header, is_expressible};
use rustix::io::Errno;
use rustix::net::sockopt::socket_error;

use crate::block::BlockCursor;
use crate::blocks::{Blocks, Captured, Found};
use crate::finish::{ROOM, finish};
use crate::rx::Clock;
use crate::sys::{HEADROOM, MESSAGES, Message, Messages};
use crate::tx_queue::TxQueue;
use crate::{Geometry, SHORTEST, sys};

/// Frames looked at before other ports have their turn.
const BURST: usize = 128;

/// Bytes of what finished frames leave of their memory: of a burst, some of the largest, or all of
/// those that are as long as a wire takes them.
const ARENA: usize = 2 * ROOM;

/// An interface that a bridge has by AF_PACKET. It only listens: what attaches it keeps from the
/// stack what it hears.
///
/// Frames come as on a wire: with their VLAN tags, with checksums, and no longer than the interface
/// sends them.
pub struct PacketPort {
    // In the order in which to let go: the mapping before its socket.
    incoming: Incoming,
    rx: OwnedFd,
    /// Where frames are finished.
    arena: Vec<u8>,
    tx_queue: TxQueue,
    /// Something was put there since the last flush.
    staged: bool,
    stall: Option<TxStall>,
    wake_source: WakeSource,
    /// Bytes of the longest frame that is sent; four more with a tag.
    max_frame: u32,
    mirrors: CopyMirrors,
    /// A program in the kernel forwards beside the port, by this way.
    kernel_way: Option<KernelWay>,
}

/// How frames come.
enum Incoming {
    /// The kernel puts them into blocks, which costs least where there are many; a lone one waits for others.
    Blocks(InBlocks),
    /// Each is asked for, with others that are there, as soon as it has come.
    Messages(InMessages),
}

struct InBlocks {
    blocks: Blocks,
    geometry: Geometry,
    place: BlockCursor,
    /// Blocks whose frames are on their way through the bridge, or have gone it.
    done: Vec<BlockCursor>,
}

struct InMessages {
    messages: Messages,
    /// The first that is not on its way yet.
    next: usize,
    /// There may be more: to be asked for.
    expected: AtomicBool,
    /// Frames that the kernel has refused to hand over, which it told by the socket's error.
    refused: AtomicU32,
}

impl PacketPort {
    /// A port with a socket that receives into a ring of blocks, and a socket that sends. `max_frame`: bytes
    /// of the longest frame without a VLAN tag.
    ///
    /// # Errors
    /// The process is out of memory or descriptors.
    pub fn new(
        rx: OwnedFd,
        geometry: Geometry,
        tx: OwnedFd,
        max_frame: u32,
    ) -> io::Result<PacketPort> {
        let blocks = Blocks::map(rx.as_fd(), geometry)?;
        let place = blocks.place(0);
        let done = Vec::with_capacity(geometry.blocks as usize);
        let blocks = Incoming::Blocks(InBlocks { blocks, geometry, place, done });
        PacketPort::with(blocks, rx, tx, max_frame, None)
    }

    /// The same with a socket that receives messages, with a virtio-net header in front of each, and
    /// whose frames a program in the kernel hands over that forwards others past the port, by `way`.
    ///
    /// # Errors
    /// The process is out of memory or descriptors.
    pub fn beside_program(
        rx: OwnedFd,
        tx: OwnedFd,
        max_frame: u32,
        way: KernelWay,
    ) -> io::Result<PacketPort> {
        let expected = AtomicBool::new(true);
        let messages =
            InMessages { messages: Messages::new(), next: 0, expected, refused: AtomicU32::new(0) };
        PacketPort::with(Incoming::Messages(messages), rx, tx, max_frame, Some(way))
    }

    fn with(
        incoming: Incoming,
        rx: OwnedFd,
        tx: OwnedFd,
        max_frame: u32,
        kernel_way: Option<KernelWay>,
    ) -> io::Result<PacketPort> {
        let wake_source = WakeSource::new()?;
        wake_source.listen(&rx)?;
        sys::socket::set_option(tx.as_fd(), libc::SOL_PACKET, libc::PACKET_VNET_HDR, &1)?;
        Ok(PacketPort {
            incoming,
            rx,
            arena: vec![0; ARENA],
            tx_queue: TxQueue::new(tx, max_frame + TAG),
            staged: false,
            stall: None,
            wake_source,
            max_frame,
            mirrors: CopyMirrors::default(),
            kernel_way,
        })
    }

    /// The socket that receives.
    pub fn rx_socket(&self) -> BorrowedFd<'_> {
        self.rx.as_fd()
    }

    fn send(&mut self, idle: bool) {
        if self.staged || (idle && self.stall.is_some()) {
            self.staged = false;
            self.stall = self.tx_queue.flush().map(TxStall::new);
        }
    }
}

/// Bytes of a VLAN tag, and of the addresses in front of it.
const TAG: u32 = 4;
const ADDRESSES: usize = 12;
/// The tag that AF_PACKET takes in a frame beyond the MTU.
const LONGER: [u8; 2] = (libc::ETH_P_8021Q as u16).to_be_bytes();

/// Adds a frame, or those that it consists of, to a burst; how many. `None`, with nothing done, if
/// `arena` has no room left to finish it in.
#[inline]
fn take<'a>(
    frame: &Captured<'a>,
    arena: &mut &'a mut [u8],
    burst: &mut Burst<'a>,
    drops: &mut Drops,
) -> Option<usize> {
    if !frame.whole {
        drops.too_long += 1;
        return Some(0);
    }
    if frame.tag.is_none() && frame.header.is_plain() {
        burst.push_in_pieces(frame.data);
        burst.end_frame();
        return Some(1);
    }
    if arena.len() < ROOM {
        return None;
    }
    let (frames, rest) = match finish(frame, std::mem::take(arena)) {
        Ok(made) => made,
        Err(error) => {
            match error {
                Error::NoRoom => drops.too_long += 1,
                _ => drops.bad_offload += 1,
            }
            return Some(0);
        }
    };
    *arena = rest;
    let count = frames.len();
    for frame in frames {
        burst.push_in_pieces(Buf::of(frame));
        burst.end_frame();
    }
    Some(count)
}

impl InBlocks {
    /// How much was looked at, and whether the kernel has dropped frames; `times`: for when they came.
    fn collect<'a>(
        &'a mut self,
        mut times: Option<&mut Vec<u64>>,
        mut arena: &'a mut [u8],
        burst: &mut Burst<'a>,
        drops: &mut Drops,
    ) -> (u32, bool) {
        let InBlocks { blocks, geometry, place, done } = self;
        let blocks = &*blocks;
        let (mut looked, mut frames, mut losing) = (0, 0, false);
        // What is not given back yet looks like what the kernel has filled: one block stays with it.
        let mut bytes = 0;
        // The kernel's times: frames may have waited in a block, for others and for the worker.
        let mut clock = None;
        while frames < BURST && bytes < burst.limit && done.len() + 1 < geometry.blocks as usize {
            match blocks.look(place, &mut losing) {
                Found::Nothing => break,
                Found::End => {
                    done.push(*place);
                    *place = blocks.next_block(*place);
                }
                Found::Frame(frame) => {
                    bytes += frame.data.size() + burst.per_frame;
                    let Some(taken) = take(&frame, &mut arena, burst, drops) else {
                        break;
                    };
                    frames += taken;
                    if let Some(times) = &mut times {
                        let clock = clock.get_or_insert_with(|| Clock::new(Timestamps::Software));
                        times.resize(burst.frames.len(), clock.time(&frame));
                    }
                    *place = blocks.behind(*place, frame.next);
                }
            }
            looked += 1;
        }
        (looked, losing)
    }
}

impl InMessages {
    /// How many were looked at; `times`: for when they came. Frames that are left undone come whole, with headers, in a burst
    /// of their own, unless monitors want their `times`.
    fn collect<'a>(
        &'a mut self,
        mut times: Option<&mut Vec<u64>>,
        socket: BorrowedFd<'_>,
        mut arena: &'a mut [u8],
        burst: &mut Burst<'a>,
        drops: &mut Drops,
    ) -> u32 {
        let InMessages { messages, next, expected, refused } = self;
        let (mut looked, mut frames, mut bytes, mut clock) = (0, 0, 0, None);
        if *next >= messages.count() {
            if !*expected.get_mut() {
                return 0;
            }
            *next = 0;
            let mut lost = std::mem::take(refused.get_mut());
            let count = messages.receive(socket, &mut lost);
            // Fewer than there may be: those were all.
            *expected.get_mut() = count == MESSAGES || lost > 0;
            drops.bad_offload += u64::from(lost);
            looked += lost;
        }
        for message in messages.from(*next) {
            if frames >= BURST || bytes >= burst.limit {
                break;
            }
            let with_header = times.is_none() && stays_whole(&message, burst.source.as_sent);
            if with_header != burst.source.as_sent && !burst.frames.is_empty() {
                break;
            }
            if with_header {
                bytes += message.bytes.len() as u32 + burst.per_frame;
                (burst.source.header_len, burst.source.as_sent) = (Header::LONG as u8, true);
                burst.push_headed(Buf::of(headed(message)));
                burst.end_frame();
                frames += 1;
                *next += 1;
                looked += 1;
                continue;
            }
            match captured(message) {
                Some(frame) => {
                    bytes += frame.data.size() + burst.per_frame;
                    let Some(taken) = take(&frame, &mut arena, burst, drops) else { break };
                    frames += taken;
                    if let Some(times) = &mut times {
                        let clock = clock.get_or_insert_with(|| Clock::new(Timestamps::Software));
                        let time = if frame.time == 0 { 0 } else { clock.time(&frame) };
                        times.resize(burst.frames.len(), time);
                    }
                }
                None => drops.too_short += 1,
            }
            *next += 1;
            looked += 1;
        }
        looked
    }
}

/// The header of a message, and the whole frame behind it. `None`: the frame is short, or cut off.
fn parts<'m>(message: &'m Message<'_>) -> Option<(Header, &'m [u8])> {
    let bytes = message.bytes.get(HEADROOM..)?;
    let (header, frame) = bytes.split_first_chunk::<{ Header::SHORT }>()?;
    let is_frame = message.whole && frame.len() >= SHORTEST as usize;
    Header::parse(header).filter(|_| is_frame).map(|header| (header, frame))
}

/// Whether a frame goes on with its header: if that asks for something, or `others` have theirs.
fn stays_whole(message: &Message<'_>, others: bool) -> bool {
    parts(message).is_some_and(|(header, frame)| {
        if header.is_plain() { others } else { is_expressible(&header, frame) }
    })
}

/// A frame that [stays whole](stays_whole), with its tag, behind a header of 12 bytes.
fn headed(message: Message<'_>) -> &mut [u8] {
    const FRAME: usize = HEADROOM + Header::SHORT;
    let header = parts(&message).map(|(header, _)| header).unwrap_or_default();
    let Message { bytes, tag, .. } = message;
    let begin = FRAME - Header::LONG - if tag.is_some() { TAG as usize } else { 0 };
    let header = header.shifted(if tag.is_some() { TAG as i8 } else { 0 }).emit();
    let (_, bytes) = bytes.split_at_mut(begin);
    bytes[..Header::LONG].copy_from_slice(&header);
    if let Some(tag) = tag {
        let addresses = FRAME - begin;
        bytes.copy_within(addresses..addresses + ADDRESSES, Header::LONG);
        bytes[Header::LONG + ADDRESSES..][..tag.len()].copy_from_slice(&tag);
    }
    bytes
}

/// `None`: there is no header in front of it, or no frame behind.
fn captured(message: Message<'_>) -> Option<Captured<'_>> {
    let Message { bytes, tag, time, whole } = message;
    let bytes = bytes.get_mut(HEADROOM..)?;
    let (header, frame) = bytes.split_first_chunk_mut::<{ Header::SHORT }>()?;
    if frame.len() < SHORTEST as usize {
        return None;
    }
    let (data, header) = (Buf::of(frame), Header::parse(header)?);
    Some(Captured { data, header, tag, whole, time, by_hardware: false, next: 0 })
}

impl PacketPort {
    /// Whether a frame is longer than the interface's by a tag alone.
    #[cold]
    fn fits_with_tag(&self, frame: &Frame, len: u32) -> bool {
        len - self.max_frame <= TAG && frame.header()[ADDRESSES..][..2] == LONGER
    }
}

impl PacketIo for PacketPort {
    fn collect<'a>(&'a mut self, _ring: usize, burst: &mut Burst<'a>, drops: &mut Drops) -> u32 {
        if self.stall.as_mut().is_some_and(TxStall::turn) {
            self.stall = self.tx_queue.flush().map(TxStall::new);
        }
        let times = self.mirrors.times();
        match &mut self.incoming {
            Incoming::Blocks(blocks) => {
                let (looked, losing) = blocks.collect(times, &mut self.arena, burst, drops);
                if losing {
                    drops.ring_full += drops_of(&self.rx);
                }
                looked
            }
            Incoming::Messages(messages) => {
                messages.collect(times, self.rx.as_fd(), &mut self.arena, burst, drops)
            }
        }
    }

    fn release(&mut self, _ring: usize) {
        match &mut self.incoming {
            Incoming::Blocks(InBlocks { blocks, done, .. }) => {
                done.drain(..).for_each(|place| blocks.give_back(place));
            }
            Incoming::Messages(_) => {}
        }
    }

    fn expect(&mut self) {
        if let Incoming::Messages(InMessages { expected, .. }) = &mut self.incoming {
            *expected.get_mut() = true;
        }
    }

    fn tx_rings(&self) -> usize {
        1
    }

    fn receives(&self) -> bool {
        true
    }

    fn sends_by_call(&self) -> bool {
        true
    }

    #[inline]
    fn deliver(
        &mut self,
        _ring: usize,
        frames: &[Frame],
        burst: &Burst<'_>,
        drops: &mut Drops,
    ) -> Delivered {
        let mut delivered = Delivered::default();
        let vnet = u32::from(burst.source.header_len);
        for frame in frames {
            let len = frame.len.saturating_sub(vnet);
            // How long segments are, the header says.
            let fits = vnet != 0 || len <= self.max_frame || self.fits_with_tag(frame, len);
            if !fits {
                drops.too_long += 1;
                continue;
            }
            // A packet whose data could not be read is empty.
            if len < SHORTEST {
                drops.too_short += 1;
                continue;
            }
            let mut room = self.tx_queue.add(len);
            if room.is_none() && self.stall.is_none() {
                self.send(false);
                room = self.tx_queue.add(len);
            }
            let Some(room) = room else {
                drops.ring_full += 1;
                continue;
            };
            let behind = if vnet == 0 { Header::SHORT } else { 0 };
            let (nothing, rest) = room.split_at_mut(behind);
            nothing.fill(0);
            burst.gather(frame, Buf::of(rest));
            self.staged = true;
            delivered.add(len);
            self.mirrors.note_received(frame, burst);
        }
        self.mirrors.show_received(0);
        delivered
    }

    fn unsent(&mut self, drops: &mut Drops) -> Unsent {
        self.tx_queue.unsent(drops)
    }

    fn discard(&mut self) {
        self.tx_queue.discard();
        (self.staged, self.stall) = (false, None);
    }

    fn flush(&mut self, idle: bool) {
        self.send(idle);
        self.mirrors.wake(idle);
    }

    fn complete(&mut self, idle: bool) {
        self.mirrors.wake(idle);
    }

    fn count_lost(&mut self, drops: &mut Drops) {
        drops.ring_full += drops_of(&self.rx);
    }
}

impl Backpressure for PacketPort {}

impl Configure for PacketPort {
    fn set_max_frame(&mut self, bytes: u32) {
        self.max_frame = bytes;
    }

    fn takes_headers(&self) -> bool {
        true
    }

    fn kernel_way(&self) -> Option<KernelWay> {
        self.kernel_way
    }
}

impl Mirrored for PacketPort {
    fn set_mirrors(&mut self, mirrors: PortMirrors) {
        self.mirrors.set(mirrors);
        if let Incoming::Messages(_) = &self.incoming {
            // Without them, monitors see when the worker came to the frames.
            let _ = sys::time_messages(self.rx.as_fd(), self.mirrors.shows_sent());
        }
    }

    fn show_sent(&mut self, ring: usize, bytes: &[u8], slots: &[Shown]) {
        self.mirrors.show_sent(ring, bytes, slots);
    }
}

impl Wake for PacketPort {
    fn arm(&mut self) {
        self.wake_source.arm(self.stall.into_iter());
    }

    fn doorbell(&self) -> BorrowedFd<'_> {
        self.wake_source.as_fd()
    }

    fn drain(&self) {
        self.wake_source.drain();
        // That the interface has gone down is told until it is heard, also when it is up again.
        let error = socket_error(&self.rx);
        if let Incoming::Messages(InMessages { expected, refused, .. }) = &self.incoming {
            if error == Ok(Err(Errno::INVAL)) {
                refused.fetch_add(1, Relaxed);
            }
            expected.store(true, Relaxed);
        }
    }
}

/// Frames that found all blocks full since the last call.
fn drops_of(rx: &OwnedFd) -> u64 {
    // It fails for a broken descriptor alone, by which nothing is received either.
    sys::socket::take_drops(rx.as_fd()).unwrap_or(0).into()
}

#[cfg(test)]
mod tests {
    use ringway_testkit::datagram_sockets;
    use rustix::net::{SendFlags, send};

    use super::*;
    use crate::blocks::written::{Laid, lay, ring};
    use crate::finish::tests::{
        CHECKSUM, DATAGRAMS, TAG as SOME_TAG, captured as frame, partial, whole,
    };

    fn lengths(burst: &Burst<'_>) -> Vec<u32> {
        let length = |frame| burst.pieces(frame).iter().map(|(_, len)| *len).sum();
        burst.frames.iter().map(length).collect()
    }

    #[test]
    fn a_frame_is_taken_finished_or_counted() {
        let bad = Header { csum_start: 999, ..CHECKSUM };
        // Of which header and tag, with how much memory: how many, and of which lengths. What is cut off, or what
        // makes no sense, is none.
        for (header, tag, room, expected, found) in [
            (Header::default(), None, 0, Some(1), vec![292]),
            (Header::default(), Some(SOME_TAG), ROOM, Some(1), vec![296]),
            (CHECKSUM, None, ROOM, Some(1), vec![292]),
            (CHECKSUM, None, ROOM + 1, Some(1), vec![292]),
            (CHECKSUM, None, ROOM - 1, None, vec![]),
            (DATAGRAMS, None, ROOM, Some(3), vec![142, 142, 92]),
            (bad, None, ROOM, Some(0), vec![]),
        ] {
            let mut bytes = partial(&[5; 250]);
            let captured = frame(&mut bytes, header, tag);
            let (mut memory, mut drops) =
                (vec![0; room], Drops { too_long: 7, ..Drops::default() });
            let (mut arena, mut burst) = (&mut memory[..], Burst::default());
            assert_eq!(take(&captured, &mut arena, &mut burst, &mut drops), expected);
            assert_eq!(lengths(&burst), found);
            let bad_offload = u64::from(expected == Some(0));
            assert_eq!(drops, Drops { too_long: 7, bad_offload, ..Drops::default() });
        }
        let mut bytes = partial(&[5; 250]);
        let captured = Captured { whole: false, ..frame(&mut bytes, Header::default(), None) };
        let (mut drops, mut burst) = (Drops { too_long: 7, ..Drops::default() }, Burst::default());
        assert_eq!(take(&captured, &mut &mut [][..], &mut burst, &mut drops), Some(0));
        assert!(burst.frames.is_empty() && drops == Drops { too_long: 8, ..Drops::default() });
    }

    /// A block stays with the kernel, lest all look as if it had filled them; and a look ends in time.
    #[test]
    fn blocks_are_collected_but_for_the_last() {
        for (blocks, each, limit, expected) in [
            // Each end of a block is looked at as well.
            (4, 1, u32::MAX, (3, 6)),
            (4, 2, u32::MAX, (6, 9)),
            (2, 3, u32::MAX, (3, 4)),
            (4, 2, 60, (1, 1)),
            (4, 2, 61, (2, 2)),
            (4, 2, 121, (3, 4)),
            (4, 30, u32::MAX, (90, 93)),
            (8, 30, u32::MAX, (128, 132)),
        ] {
            let geometry = Geometry { block_size: 16 << 10, blocks };
            let ring = ring(geometry);
            let frames = vec![Laid::plain(vec![7; 60]); each];
            (0..blocks).for_each(|block| lay(&ring, block, &frames));
            let (place, done) = (ring.place(0), Vec::new());
            let mut incoming = InBlocks { blocks: ring, geometry, place, done };
            let (mut memory, mut drops) = ([0; 0], Drops::default());
            let mut burst = Burst { limit, ..Burst::default() };
            let (looked, is_losing) = incoming.collect(None, &mut memory, &mut burst, &mut drops);
            let found = lengths(&burst);
            assert_eq!(
                (found.len(), looked, is_losing),
                (expected.0, expected.1, false),
                "{blocks} {each} {limit}"
            );
            assert!(found.iter().all(|length| *length == 60) && drops == Drops::default());
        }
    }

    /// Monitors want to know when each came.
    #[test]
    fn frames_of_blocks_have_their_times() {
        let geometry = Geometry { block_size: 16 << 10, blocks: 2 };
        let ring = ring(geometry);
        let cut = Laid { header: DATAGRAMS, nanoseconds: 1, ..Laid::plain(partial(&[5; 250])) };
        let later = Laid { nanoseconds: 2, ..Laid::plain(vec![7; 60]) };
        lay(&ring, 0, &[Laid::plain(vec![7; 60]), cut, later]);
        let (place, done) = (ring.place(0), Vec::new());
        let mut incoming = InBlocks { blocks: ring, geometry, place, done };
        let (mut memory, mut drops, mut times) = (vec![0; ARENA], Drops::default(), Vec::new());
        let mut burst = Burst { limit: u32::MAX, ..Burst::default() };
        incoming.collect(Some(&mut times), &mut memory, &mut burst, &mut drops);
        let first = times[0];
        assert_eq!(first % 1_000_000_000, 0);
        assert_eq!(times, [first, first + 1, first + 1, first + 1, first + 2]);
    }

    fn message<'m>(bytes: &'m mut Vec<u8>, header: Header, frame: &[u8]) -> Message<'m> {
        *bytes = [&[0xee; HEADROOM][..], &header.emit()[..Header::SHORT], frame].concat();
        Message { bytes, tag: None, time: 5, whole: true }
    }

    #[test]
    fn a_message_is_a_header_and_a_frame() {
        let mut bytes = Vec::new();
        for (length, is_frame) in [(0, false), (13, false), (14, true), (15, true), (60, true)] {
            let sent: Vec<u8> = (0..length).collect();
            let mut message = message(&mut bytes, CHECKSUM, &sent);
            assert_eq!(parts(&message), is_frame.then_some((CHECKSUM, &sent[..])), "{length}");
            // A checksum can only be where the frame is.
            assert_eq!(stays_whole(&message, false), length >= 42);
            message.whole = false;
            assert!(parts(&message).is_none() && !stays_whole(&message, true));
            let found = captured(message);
            assert_eq!(found.is_some(), is_frame, "{length}");
            if let Some(found) = found {
                assert_eq!((found.data.size(), found.header), (length.into(), CHECKSUM));
                assert_eq!((found.whole, found.time, found.tag), (false, 5, None));
                assert_eq!(found.data.read(1), Some([1]));
            }
        }
        for length in 0..HEADROOM + Header::SHORT {
            let mut bytes = vec![0; length];
            let message = Message { bytes: &mut bytes, tag: None, time: 0, whole: true };
            assert!(parts(&message).is_none() && captured(message).is_none());
        }
    }

    #[test]
    fn plain_frames_stay_whole_beside_others() {
        let mut bytes = Vec::new();
        let sent = partial(&[5; 250]);
        for (header, expected) in [
            (Header::default(), [false, true]),
            (CHECKSUM, [true; 2]),
            (DATAGRAMS, [true; 2]),
            (Header { csum_start: 999, ..CHECKSUM }, [false; 2]),
        ] {
            let message = message(&mut bytes, header, &sent);
            assert_eq!([false, true].map(|others| stays_whole(&message, others)), expected);
        }
    }

    #[test]
    fn a_whole_frame_has_a_header_of_12_bytes_and_its_tag() {
        let sent = partial(&[1, 2, 3]);
        for tag in [None, Some(SOME_TAG)] {
            let mut bytes = Vec::new();
            let message = Message { tag, ..message(&mut bytes, DATAGRAMS, &sent) };
            let (header, found) = headed(message).split_at(Header::LONG);
            let by = if tag.is_some() { 4 } else { 0 };
            assert_eq!(Header::parse(header), Some(DATAGRAMS.shifted(by)));
            let mut expected = sent.clone();
            tag.into_iter().for_each(|tag| drop(expected.splice(12..12, tag)));
            assert_eq!(found, expected);
        }
    }

    /// Messages that a socket of this process has sent.
    fn messages(sent: &[(Header, Vec<u8>)], is_timed: bool) -> (InMessages, OwnedFd) {
        let (own, peer) = datagram_sockets();
        sys::time_messages(own.as_fd(), is_timed).unwrap();
        for (header, frame) in sent {
            let bytes = [&header.emit()[..Header::SHORT], frame].concat();
            assert_eq!(send(&peer, &bytes, SendFlags::DONTWAIT), Ok(bytes.len()));
        }
        let expected = AtomicBool::new(true);
        let refused = AtomicU32::new(0);
        (InMessages { messages: Messages::new(), next: 0, expected, refused }, own)
    }

    #[test]
    fn frames_with_headers_and_without_come_in_bursts_of_their_own() {
        let (plain, headed) = (Header::default(), CHECKSUM);
        let of = |header, length: usize| (header, partial(&vec![5; length]));
        let sent = [
            of(plain, 1),
            of(plain, 2),
            of(headed, 3),
            of(plain, 4),
            of(DATAGRAMS, 250),
            (plain, vec![7; 13]),
            of(plain, 5),
        ];
        let (mut incoming, own) = messages(&sent, false);
        let mut drops = Drops::default();
        for (looked, with_header, found) in [
            (2, false, vec![43, 44]),
            (3, true, vec![57, 58, 304]),
            (2, false, vec![47]),
            (0, false, vec![]),
        ] {
            let (mut memory, mut burst) =
                (vec![0; ARENA], Burst { limit: u32::MAX, ..Burst::default() });
            assert_eq!(
                incoming.collect(None, own.as_fd(), &mut memory, &mut burst, &mut drops),
                looked
            );
            assert_eq!(lengths(&burst), found);
            let header_len = if with_header { 12 } else { 0 };
            assert_eq!((burst.source.as_sent, burst.source.header_len), (with_header, header_len));
        }
        assert_eq!(drops, Drops { too_short: 1, ..Drops::default() });
        assert!(!*incoming.expected.get_mut(), "there are no more");
    }

    /// A look ends after so many bytes or frames, be they with headers, without, or cut.
    #[test]
    fn a_look_at_messages_is_bounded() {
        let of = |header, length: usize| (header, partial(&vec![5; length]));
        for (header, times) in
            [(Header::default(), false), (CHECKSUM, false), (Header::default(), true)]
        {
            let (mut incoming, own) = messages(&vec![of(header, 58); 9], false);
            // Where it goes with its header, that and what is free in front count as well.
            let bytes = if header == CHECKSUM { 116 } else { 100 };
            for (limit, per_frame) in [(1, 0), (101, 0), (201, 0), (201, 50), (201, 1000_u32)] {
                let expected = u32::div_ceil(limit, bytes + per_frame) as usize;
                let (mut memory, mut drops, mut noted) =
                    (vec![0; ARENA], Drops::default(), Vec::new());
                let mut burst = Burst { limit, per_frame, ..Burst::default() };
                let times = times.then_some(&mut noted);
                incoming.collect(times, own.as_fd(), &mut memory, &mut burst, &mut drops);
                assert_eq!(lengths(&burst).len(), expected, "{header:?} {limit} {per_frame}");
            }
        }
        // Each is cut into as many as a look has, or a few less: the second ends the look.
        for (payload, expected) in [(12_800, vec![128, 128]), (12_700, vec![254, 0])] {
            let (mut incoming, own) = messages(&vec![of(DATAGRAMS, payload); 2], false);
            for count in expected {
                let (mut memory, mut drops, mut noted) =
                    (vec![0; ARENA], Drops::default(), Vec::new());
                let mut burst = Burst { limit: u32::MAX, ..Burst::default() };
                incoming.collect(
                    Some(&mut noted),
                    own.as_fd(),
                    &mut memory,
                    &mut burst,
                    &mut drops,
                );
                assert_eq!((lengths(&burst).len(), noted.len()), (count, count));
                assert_eq!(drops, Drops::default());
            }
        }
    }

    #[test]
    fn frames_of_messages_have_their_times() {
        let sent = [(DATAGRAMS, partial(&[5; 250])), (Header::default(), whole(&[5; 60], None))];
        for is_timed in [false, true] {
            let clock = Clock::new(Timestamps::Software);
            let now = || {
                let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
                let (time, mut data) = (now.unwrap().as_nanos() as u64, []);
                clock.time(&Captured { time, ..frame(&mut data, Header::default(), None) })
            };
            let before = now();
            let (mut incoming, own) = messages(&sent, is_timed);
            let after = now();
            let (mut memory, mut drops, mut times) = (vec![0; ARENA], Drops::default(), Vec::new());
            let mut burst = Burst { limit: u32::MAX, ..Burst::default() };
            let looked = incoming.collect(
                Some(&mut times),
                own.as_fd(),
                &mut memory,
                &mut burst,
                &mut drops,
            );
            assert_eq!((looked, lengths(&burst)), (2, vec![142, 142, 92, 102]));
            let expected = if is_timed { before..=after } else { 0..=0 };
            assert!(times.len() == 4 && times.is_sorted(), "{times:?}");
            assert!(times.iter().all(|time| expected.contains(time)), "{times:?}");
        }
    }
}
