//! An interface as a port of a bridge: what it receives goes into the bridge, and the other way round.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use ringway_region::{Buf, Timestamps};
use ringway_switch_port::{
    Backpressure, Burst, Configure, CopyMirrors, Delivered, Drops, Frame, KernelWay, Mirrored,
    PacketIo, PortMirrors, Shown, TxStall, Wake, WakeSource,
};
use ringway_vnet::{Header, is_expressible};
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
        let messages = InMessages { messages: Messages::new(), next: 0, expected };
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
    let Some((frames, rest)) = finish(frame, std::mem::take(arena)) else {
        drops.too_long += 1;
        return Some(0);
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
                    bytes += frame.data.size();
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
        let InMessages { messages, next, expected } = self;
        if *next >= messages.count() {
            if !*expected.get_mut() {
                return 0;
            }
            *next = 0;
            // Fewer than there may be: those were all.
            *expected.get_mut() = messages.receive(socket) == MESSAGES;
        }
        let (mut looked, mut frames, mut bytes, mut clock) = (0, 0, 0, None);
        for message in messages.from(*next) {
            if frames >= BURST || bytes >= burst.limit {
                break;
            }
            let with_header = times.is_none() && stays_whole(&message, burst.source.as_sent);
            if with_header != burst.source.as_sent && !burst.frames.is_empty() {
                break;
            }
            if with_header {
                bytes += message.bytes.len() as u32;
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
                    bytes += frame.data.size();
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
        self.tx_queue.take_lost(drops);
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
            // A packet whose data could not be read is empty.
            if !fits || len < SHORTEST {
                drops.too_long += 1;
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

    fn flush(&mut self, idle: bool) {
        self.send(idle);
        self.mirrors.wake(idle);
    }

    fn complete(&mut self, idle: bool) {
        self.mirrors.wake(idle);
    }

    fn count_lost(&mut self, drops: &mut Drops) {
        self.tx_queue.take_lost(drops);
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
        if let Incoming::Messages(InMessages { expected, .. }) = &self.incoming {
            expected.store(true, Relaxed);
        }
        // That the interface has gone down is told until it is heard, also when it is up again.
        let _ = socket_error(&self.rx);
    }
}

/// Frames that found all blocks full since the last call.
fn drops_of(rx: &OwnedFd) -> u64 {
    // It fails for a broken descriptor alone, by which nothing is received either.
    sys::take_drops(rx.as_fd()).unwrap_or(0).into()
}
