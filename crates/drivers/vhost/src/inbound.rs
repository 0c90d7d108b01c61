//! Frames to the machine: slots of a receive ring, into chains that it offers.

use std::time::Duration;

use ringway_abi::NS_MOREFRAG;
use ringway_region::{Buf, RingView};
use ringway_vnet::{Error, Header, MAX_FRAME, Output, consume_as_sent, is_expressible};

use crate::{
    chain::{MAX_PIECES, Piece, Taken, Used},
    features::{Features, MRG_RXBUF},
    memory::GuestMemory,
    moved::Moved,
    queue::{FETCHED, Queue},
};

/// Bytes of a frame's beginning that its header is checked against: all headers that there may be.
const BEGIN: usize = 256;

/// For how long frames of the other queues wait for a queue without buffers. After that, its frames are dropped until it
/// offers some.
pub(crate) const PATIENCE: Duration = Duration::from_millis(10);

/// Descriptors that are walked for one frame, about: a guest may make so much work of no room at all.
const MOST_WORK: usize = 2 * MAX_PIECES;

/// Private memory for what the guest does not take as it is.
#[derive(Debug)]
pub(crate) struct Finisher {
    frame: Box<[u8]>,
    segments: Box<[u8]>,
}

impl Default for Finisher {
    fn default() -> Self {
        let zeros = |len| vec![0; len].into_boxed_slice();
        Finisher { frame: zeros(MAX_FRAME), segments: zeros(2 * MAX_FRAME) }
    }
}

/// A frame in slots.
struct Frame<'r> {
    header: Header,
    /// Without the header.
    parts: Vec<Buf<'r>>,
    len: usize,
    slots: u32,
}

/// What came of an attempt.
enum Put {
    /// The frame is through: with the guest, or counted as dropped.
    Done,
    /// The guest offers too little now.
    NoRoom,
}

/// Moves frames from filled slots of `ring`, whose frames have a header of `header_len` bytes, to the queues, which
/// `choose` names by the beginning of each. Up to `budget` frames.
pub(crate) fn receive(
    queues: &mut [&mut Queue],
    memory: &GuestMemory,
    features: Features,
    (ring, header_len): (&RingView, usize),
    budget: u32,
    finisher: &mut Option<Finisher>,
    choose: impl Fn(&[u8]) -> usize,
) -> Moved {
    let (mut filled, head) = (ring.held(), ring.head());
    let mut at = head;
    let mut moved = Moved::default();
    let mut receivers: Vec<_> = queues.iter().map(|_| Receiver::new(memory, features)).collect();
    let mut frame = Frame { header: Header::default(), parts: Vec::new(), len: 0, slots: 0 };
    let several = queues.len() > 1;
    for _ in 0..budget {
        if !frame.read(ring, at, filled, header_len) {
            break;
        }
        let index = if several { choose(&frame.begin::<BEGIN>().0) } else { 0 };
        let (Some(queue), Some(to)) = (queues.get_mut(index), receivers.get_mut(index)) else {
            break;
        };
        if frame.len > MAX_FRAME {
            // No guest has to take what no stack sends.
            moved.too_long += 1;
        } else if let Put::Done = to.put_frame(queue, &frame, finisher, &mut moved) {
            queue.is_served();
        } else if several && queue.has_starved_for() >= PATIENCE {
            // The other queues' frames are behind this one.
            moved.no_buffers += 1;
        } else {
            moved.no_room = true;
            break;
        }
        at = ring.advance(at, frame.slots);
        filled -= frame.slots;
        if to.work >= MOST_WORK {
            break;
        }
    }
    if at != head {
        ring.set_cur(at);
        ring.set_head(at);
    }
    for (queue, to) in queues.iter_mut().zip(&mut receivers) {
        to.give_back(queue);
        queue.publish();
    }
    moved
}

impl<'r> Frame<'r> {
    /// Reads the slots from `at` on, of which `filled` are; false where no frame is whole yet.
    #[inline]
    fn read(&mut self, ring: &'r RingView, mut at: u32, filled: u32, header_len: usize) -> bool {
        self.parts.clear();
        (self.len, self.slots) = (0, 0);
        self.header = Header::default();
        let mut skip = header_len as u32;
        while self.slots < filled {
            let slot = ring.slot(at);
            // What names no buffer has no bytes.
            if let Some(buf) = ring.buf(slot.buf_idx) {
                let buf = buf.part(0, u32::from(slot.len).min(buf.size())).unwrap_or(buf);
                if self.slots == 0 && header_len > 0 {
                    self.header = buf
                        .read::<{ Header::SHORT }>(0)
                        .and_then(|bytes| Header::parse(&bytes))
                        .unwrap_or_default();
                }
                let skipped = skip.min(buf.size());
                skip -= skipped;
                if let Some(part) = buf.skip(skipped).filter(|part| part.size() > 0) {
                    self.len += part.size() as usize;
                    self.parts.push(part);
                }
            }
            self.slots += 1;
            if slot.flags & NS_MOREFRAG == 0 {
                return true;
            }
            at = ring.next(at);
        }
        false
    }

    /// Its first bytes, and how many there are.
    fn begin<const N: usize>(&self) -> ([u8; N], usize) {
        let mut bytes = [0; N];
        let len = copy_out(&self.parts, &mut bytes);
        (bytes, len)
    }
}

/// Copies out as much of a frame as fits; returns how much.
fn copy_out(parts: &[Buf<'_>], to: &mut [u8]) -> usize {
    let mut filled = 0;
    for part in parts {
        let room = &mut to[filled..];
        filled += part.copy_to(room.len(), room);
    }
    filled
}

/// The guest's side of a turn: of one of its queues.
struct Receiver<'m> {
    memory: &'m GuestMemory,
    features: Features,
    /// What is at hand.
    taken: Taken<'m>,
    /// How many of them are used.
    used: usize,
    /// What the guest has made of [work](Taken::work) in this turn.
    work: usize,
}

impl<'m> Receiver<'m> {
    fn new(memory: &'m GuestMemory, features: Features) -> Receiver<'m> {
        Receiver { memory, features, taken: Taken::with_capacity(FETCHED), used: 0, work: 0 }
    }

    /// Takes more chains, several at once, so that their first bytes are on their way while others are written. False
    /// if there is none.
    fn fetch(&mut self, queue: &mut Queue) -> bool {
        let (before, work) = (self.taken.chains.len(), self.taken.work());
        queue.take(self.memory, &mut self.taken, before + FETCHED);
        self.work += self.taken.work() - work;
        for i in before..self.taken.chains.len() {
            if let Some(piece) = self.taken.pieces_of(i).first() {
                piece.buf.prefetch_to_write();
            }
        }
        self.taken.chains.len() > before
    }

    /// What is at hand and not used comes again.
    fn give_back(&mut self, queue: &mut Queue) {
        for (chain, _) in self.taken.chains.drain(self.used..).rev() {
            queue.take_back(&[chain]);
        }
    }

    /// Forgets what is used, where nothing else is at hand.
    fn tidy(&mut self) {
        if self.used == self.taken.chains.len() {
            self.taken.clear();
            self.used = 0;
        }
    }

    /// Puts a frame into the guest's memory, finished where the guest asks for that.
    fn put_frame(
        &mut self,
        queue: &mut Queue,
        frame: &Frame<'_>,
        finisher: &mut Option<Finisher>,
        moved: &mut Moved,
    ) -> Put {
        if frame.header.is_plain() {
            // What has been verified is the sender's word: the guest verifies.
            return self.put(queue, &Header::default(), &frame.parts, frame.len, moved);
        }
        let (begin, len) = frame.begin::<BEGIN>();
        let (begin, is_v6) = (&begin[..len], begin[12..14] == [0x86, 0xdd]);
        let Ok(checked) = frame.header.checked(frame.len) else {
            moved.bad_offload += 1;
            return Put::Done;
        };
        // Nor is it told that a checksum was verified.
        let header = Header { flags: checked.flags & !2, ..checked };
        if self.features.takes(&header, is_v6) && is_expressible(&header, begin) {
            return self.put(queue, &header, &frame.parts, frame.len, moved);
        }
        let Finisher { frame: whole, segments } = finisher.get_or_insert_default();
        let whole = &mut whole[..frame.len];
        copy_out(&frame.parts, whole);
        let plain = Header::default();
        match consume_as_sent(&frame.header, whole, segments) {
            Ok(Output::InPlace) => self.put(queue, &plain, &[Buf::of(whole)], frame.len, moved),
            Ok(Output::Segments(cut)) => {
                // The frame waits while there is no room for its first segment. Later ones that find none are lost.
                let mut first = true;
                for segment in cut.frames(segments) {
                    let len = segment.len();
                    match self.put(queue, &plain, &[Buf::of(segment)], len, moved) {
                        Put::NoRoom if first => return Put::NoRoom,
                        Put::NoRoom => moved.no_buffers += 1,
                        Put::Done => first = false,
                    }
                }
                Put::Done
            }
            Err(Error::NoRoom) => {
                moved.too_long += 1;
                Put::Done
            }
            Err(_) => {
                moved.bad_offload += 1;
                Put::Done
            }
        }
    }

    /// The usual case of [`put`](Self::put): the frame has a part, and the next chain a piece that holds it. False, and
    /// nothing is done, where it is another.
    #[inline]
    fn put_whole(
        &mut self,
        queue: &mut Queue,
        header: &Header,
        parts: &[Buf<'_>],
        needed: usize,
    ) -> bool {
        let [part] = parts else { return false };
        if self.used == self.taken.chains.len() && !self.fetch(queue) {
            return false;
        }
        let [piece] = self.taken.pieces_of(self.used) else { return false };
        let (chain, _) = self.taken.chains[self.used];
        let own = self.features.header_len();
        let Some(to) = piece.buf.skip(own as u32).filter(|to| to.size() >= part.size()) else {
            return false;
        };
        let header = Header { num_buffers: 1, ..*header }.emit();
        piece.buf.write(0, &header[..own]);
        to.copy_from(part, part.size() as usize);
        // Afterwards: see `Writer::note_written`.
        self.memory.mark(piece.at, needed as u64);
        queue.put(Used { written: needed as u32, ..chain });
        self.used += 1;
        true
    }

    /// Copies a frame as it is.
    #[inline]
    fn put(
        &mut self,
        queue: &mut Queue,
        header: &Header,
        parts: &[Buf<'_>],
        len: usize,
        moved: &mut Moved,
    ) -> Put {
        let own = self.features.header_len();
        let needed = own + len;
        self.tidy();
        if self.put_whole(queue, header, parts, needed) {
            moved.frames += 1;
            moved.bytes += len as u64;
            return Put::Done;
        }
        let is_mergeable = self.features.has(MRG_RXBUF);
        let (mut room, mut end, begun) = (0, self.used, self.work);
        while room < needed && (is_mergeable || end == self.used) {
            if self.work - begun >= MOST_WORK
                || end == self.taken.chains.len() && !self.fetch(queue)
            {
                break;
            }
            let pieces = self.taken.pieces_of(end);
            room += bytes_of(pieces);
            self.work += pieces.len() + 1;
            end += 1;
        }
        let count = end - self.used;
        if room < needed {
            // More than all that can ever be offered at once, or than the one buffer that it has to fit.
            let most = if is_mergeable { queue.size() as usize } else { 1 };
            if count < most && self.work - begun < MOST_WORK {
                queue.await_more();
                return Put::NoRoom;
            }
            moved.too_long += 1;
            return Put::Done;
        }
        let header = Header { num_buffers: count as u16, ..*header }.emit();
        let pieces =
            &self.taken.pieces[self.taken.first_piece(self.used)..self.taken.first_piece(end)];
        let mut to = Writer { memory: self.memory, pieces, filled: 0 };
        to.write(&header[..own]);
        for part in parts {
            to.copy(part);
        }
        let mut left = needed;
        for i in self.used..end {
            let (chain, _) = self.taken.chains[i];
            let written = bytes_of(self.taken.pieces_of(i)).min(left);
            queue.put(Used { written: written as u32, ..chain });
            left -= written;
        }
        self.used = end;
        moved.frames += 1;
        moved.bytes += len as u64;
        Put::Done
    }
}

fn bytes_of(pieces: &[Piece<'_>]) -> usize {
    pieces.iter().map(|piece| piece.buf.size() as usize).sum()
}

/// Writes one thing after another into pieces that have room for all.
struct Writer<'a, 'm> {
    memory: &'m GuestMemory,
    pieces: &'a [Piece<'m>],
    /// Bytes of the first piece that are written.
    filled: u32,
}

impl<'m> Writer<'_, 'm> {
    fn write(&mut self, bytes: &[u8]) {
        let mut left = bytes;
        while !left.is_empty() {
            let Some((to, room)) = self.next(left.len()) else { return };
            to.write(0, &left[..room as usize]);
            self.note_written(room);
            left = &left[room as usize..];
        }
    }

    #[inline]
    fn copy(&mut self, from: &Buf<'_>) {
        let mut left = Some(*from);
        while let Some(from) = left.filter(|from| from.size() > 0) {
            let Some((to, room)) = self.next(from.size() as usize) else { return };
            to.copy_from(&from, room as usize);
            self.note_written(room);
            left = from.skip(room);
        }
    }

    /// Where the next bytes go, up to `most`.
    #[inline]
    fn next(&mut self, most: usize) -> Option<(Buf<'m>, u32)> {
        while self.pieces.first()?.buf.size() == self.filled {
            self.pieces = &self.pieces[1..];
            self.filled = 0;
        }
        let piece = self.pieces.first()?;
        let room = (piece.buf.size() - self.filled).min(most.min(u32::MAX as usize) as u32);
        Some((piece.buf.part(self.filled, room)?, room))
    }

    /// So many bytes are where the next go. They are noted afterwards: a monitor that finds a page noted copies it at once, and
    /// not again.
    #[inline]
    fn note_written(&mut self, bytes: u32) {
        if let Some(piece) = self.pieces.first() {
            self.memory.mark(piece.at + u64::from(self.filled), bytes.into());
        }
        self.filled += bytes;
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs::File,
        sync::atomic::{AtomicBool, Ordering::SeqCst},
    };

    use rustix::fs::{MemfdFlags, memfd_create};

    use super::*;
    use crate::{log::DirtyLog, memory::RegionAt, sys::Map};

    fn file(bytes: u64) -> File {
        let file = File::from(memfd_create("test", MemfdFlags::CLOEXEC).unwrap());
        file.set_len(bytes).unwrap();
        file
    }

    /// A monitor that takes a page out of the log, and copies it then, ends up with what the guest has, however its steps
    /// fall between those of the device.
    #[test]
    fn a_page_is_noted_behind_what_is_written_to_it() {
        const SIZE: u32 = 1 << 20;
        const LAST: u64 = SIZE as u64 - 4096;
        let (pages, bits) = (file(SIZE.into()), file(4096));
        let at = RegionAt { guest: 0, user: 0, size: SIZE.into(), offset: 0 };
        let log = DirtyLog::new(&bits, 0, 4096).unwrap();
        let memory = GuestMemory::default().with(at, &pages).unwrap().logged(log);
        memory.set_logging(true);
        let bits = Map::new(&bits, 4096).unwrap();
        let (page, copy) = (memory.buf(LAST, 4096).unwrap(), || {
            memory.buf(LAST, 4096).and_then(|page| page.read::<8>(4088)).unwrap()
        });
        for round in 1..100 {
            let mut source = vec![round; SIZE as usize];
            let [begun, done] = [(); 2].map(|()| AtomicBool::new(false));
            let copied = std::thread::scope(|scope| {
                let monitor = scope.spawn(|| {
                    let mut copied = copy();
                    begun.store(true, SeqCst);
                    loop {
                        let is_last = done.load(SeqCst);
                        let word = bits.buf(LAST / 4096 / 32 * 4, 4).unwrap();
                        let [word] = word.words::<1>(0).unwrap();
                        if word.swap(0, SeqCst) >> (LAST / 4096 % 32) & 1 != 0 {
                            copied = copy();
                        }
                        if is_last {
                            return copied;
                        }
                    }
                });
                while !begun.load(SeqCst) {
                    std::thread::yield_now();
                }
                let pieces = [Piece { buf: memory.buf(0, SIZE).unwrap(), at: 0 }];
                let mut to = Writer { memory: &memory, pieces: &pieces, filled: 0 };
                to.copy(&Buf::of(&mut source));
                done.store(true, SeqCst);
                monitor.join().unwrap()
            });
            assert_eq!((copied, page.read(4088)), ([round; 8], Some([round; 8])));
        }
    }
}
