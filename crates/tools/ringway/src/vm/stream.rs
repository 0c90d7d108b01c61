//! Frames in a stream, each behind its length in four bytes, the highest first: what QEMU's `-netdev stream` speaks, and
//! passt and gvproxy with it.

use super::link::{AwaitRoom, Awaited, End, Link, Remainder, is_ready};
use crate::fragmenter::publish;
use ringway::{NS_MOREFRAG, Port, Sources};
use ringway_vhost::Moved;
use rustix::event::PollFlags;
use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

/// Bytes of a length.
const LENGTH: usize = 4;

/// Shortest and longest frame: an Ethernet header; IP's longest packet with headers in front of it.
const SHORTEST: usize = 14;
const LONGEST: usize = 65_535 + 14 + 8;

/// Bytes that are read at once, and up to which frames are gathered before they are written.
const CHUNK: usize = 256 << 10;

/// A machine whose frames come and go by a stream.
pub struct Stream {
    socket: UnixStream,
    /// What was read, and how much of it was looked at.
    read: Vec<u8>,
    looked_at: usize,
    /// What is to be written, and how much of it was.
    unwritten: Vec<u8>,
    written: usize,
    /// Why it ends, where that was found while frames moved.
    end: Option<End>,
    /// All that the monitor has sent was read, or what comes is no frame.
    is_read: bool,
}

impl Stream {
    pub fn new(socket: UnixStream) -> io::Result<Stream> {
        socket.set_nonblocking(true)?;
        let (read, unwritten) = (Vec::new(), Vec::new());
        let (end, is_read) = (None, false);
        Ok(Stream { socket, read, looked_at: 0, unwritten, written: 0, end, is_read })
    }

    /// Reads what there is, up to a chunk more than what is not looked at.
    fn fill(&mut self) {
        self.read.drain(..self.looked_at);
        self.looked_at = 0;
        let before = self.read.len();
        self.read.resize(before + CHUNK, 0);
        let count = match self.socket.read(&mut self.read[before..]) {
            Ok(0) => {
                self.end.get_or_insert(End::Closed);
                self.is_read = true;
                0
            }
            Ok(count) => count,
            Err(error) => {
                self.is_read |= self.failed(&error);
                0
            }
        };
        self.read.truncate(before + count);
    }

    /// Whether it is the last of its kind.
    fn failed(&mut self, error: &io::Error) -> bool {
        match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::Interrupted => return false,
            ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => {
                self.end.get_or_insert(End::Closed);
            }
            _ => {
                self.end.get_or_insert_with(|| End::Because(error.to_string()));
            }
        }
        true
    }

    /// The next frame's place in what was read, if it is there whole.
    fn next_frame(&mut self) -> Option<std::ops::Range<usize>> {
        let left = &self.read[self.looked_at..];
        let length = u32::from_be_bytes(*left.first_chunk::<LENGTH>()?) as usize;
        if length > LONGEST {
            let reason =
                format!("a frame of {length} bytes is announced, and the longest has {LONGEST}");
            self.end.get_or_insert(End::Because(reason));
            self.is_read = true;
            return None;
        }
        let first = self.looked_at + LENGTH;
        (self.read.len() >= first + length).then(|| first..first + length)
    }

    /// Writes as much as the other side takes. True if that was all.
    fn flush(&mut self) -> bool {
        while self.written < self.unwritten.len() {
            match self.socket.write(&self.unwritten[self.written..]) {
                Ok(count) => self.written += count,
                Err(error) => {
                    self.failed(&error);
                    if error.kind() != ErrorKind::Interrupted {
                        return false;
                    }
                }
            }
        }
        self.unwritten.clear();
        self.written = 0;
        true
    }
}

impl Link for Stream {
    fn is_asked(&self) -> bool {
        self.end.is_some()
    }

    fn obey(&mut self) -> Result<(), End> {
        self.end.take().map_or(Ok(()), Err)
    }

    fn check_memory(&self) -> Result<(), End> {
        Ok(())
    }

    fn is_up(&self) -> bool {
        true
    }

    fn features(&self) -> Option<String> {
        None
    }

    fn header_len(&self) -> usize {
        0
    }

    fn fault(&self) -> Option<String> {
        None
    }

    fn take_announcement(&mut self) -> Option<[u8; 60]> {
        None
    }

    fn send(&mut self, port: &mut Port, _header_len: usize, budget: u32) -> Moved {
        let mut moved = Moved::default();
        let size = port.max_frame();
        // One slot of a ring is always free.
        let most = (port.binding().registration().tx_slots as usize).saturating_sub(1);
        let mut tx = port.tx(0);
        if self.next_frame().is_none() && !self.is_read {
            self.fill();
        }
        for _ in 0..budget {
            let Some(place) = self.next_frame() else { break };
            let frame = &self.read[place.clone()];
            let slots = frame.len().div_ceil(size);
            if frame.len() < SHORTEST {
                moved.too_short += 1;
            } else if slots > most {
                moved.too_long += 1;
            } else if slots > tx.space() {
                moved.no_room = true;
                if self.has_hung_up() {
                    // What it has sent before that is for the end.
                    self.end.get_or_insert(End::Closed);
                }
                break;
            } else {
                for (i, (part, mut slot)) in frame.chunks(size).zip(tx.batch(slots)).enumerate() {
                    slot.write_part(part, i + 1 < slots);
                }
                moved.frames += 1;
                moved.bytes += frame.len() as u64;
            }
            self.looked_at = place.end;
        }
        if moved.frames > 0 || moved.no_room {
            publish(&mut tx, moved.no_room);
        }
        moved
    }

    fn receive(&mut self, port: &mut Port, _header_len: usize, budget: u32) -> Moved {
        let mut moved = Moved::default();
        let mut rx = port.rx(0);
        rx.sync();
        if !self.flush() {
            moved.no_room = rx.available() > 0;
            return moved;
        }
        let mut taken = 0;
        while taken < budget as usize && self.unwritten.len() < CHUNK {
            let mut slots = rx.slots();
            let held = slots.held();
            // A frame that has no end yet comes with the next turn.
            let Some(last) = (0..held).find(|n| slots.get(*n).flags & NS_MOREFRAG == 0) else {
                break;
            };
            let length = (0..=last).map(|n| usize::from(slots.get(n).len)).sum::<usize>();
            if length > LONGEST {
                moved.too_long += 1;
            } else {
                self.unwritten.extend((length as u32).to_be_bytes());
                for n in 0..=last {
                    let first = self.unwritten.len();
                    self.unwritten.resize(first + usize::from(slots.get(n).len), 0);
                    slots.read(n, &mut self.unwritten[first..]);
                }
                moved.frames += 1;
                moved.bytes += length as u64;
            }
            slots.advance(last + 1);
            taken += 1;
        }
        self.flush();
        moved
    }

    fn finish(
        &mut self,
        port: &mut Port,
        _header_len: Option<usize>,
        await_room: AwaitRoom<'_>,
    ) -> Remainder {
        self.flush();
        // A monitor that is still there sends no more from now on: what there is to read has an end.
        self.is_read |= self.socket.shutdown(Shutdown::Read).is_err();
        let mut out = Moved::default();
        while !port.is_shut() {
            out += self.send(port, 0, u32::MAX);
            let has_more = self.next_frame().is_some();
            if has_more && !await_room(port) || !has_more && self.is_read {
                break;
            }
        }
        loop {
            while let Some(place) = self.next_frame() {
                self.looked_at = place.end;
                out.not_taken += 1;
            }
            if self.is_read {
                break;
            }
            self.fill();
        }
        let (mut into, mut at) = ([0; 2], 0);
        while let Some(length) = self.unwritten.get(at..).and_then(<[u8]>::first_chunk::<LENGTH>) {
            let length = u32::from_be_bytes(*length) as usize;
            at += LENGTH + length;
            if at > self.written {
                into = [into[0] + 1, into[1] + length as u64];
            }
        }
        Remainder { out, into }
    }

    fn look(&mut self, awaited: Awaited) -> bool {
        let is_left = self.written < self.unwritten.len();
        self.end.is_some()
            || awaited.frames && is_ready(self.socket.as_fd(), PollFlags::IN)
            || is_left && is_ready(self.socket.as_fd(), PollFlags::OUT)
    }

    fn arm(&mut self, _awaited: Awaited) {}

    fn sources<'s>(&'s self, awaited: Awaited, sources: &mut Sources<'s>) {
        let mut events = PollFlags::empty();
        events.set(PollFlags::IN, awaited.frames);
        events.set(PollFlags::OUT, self.written < self.unwritten.len());
        sources.add(self.socket.as_fd(), events);
    }

    fn message_sources<'s>(&'s self, sources: &mut Sources<'s>) {
        sources.add(self.socket.as_fd(), PollFlags::empty());
    }

    fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringway::Interest;
    use ringway_doc as doc;

    /// A frame that the ring has no room for even when it is empty is dropped, and those behind it pass.
    #[test]
    fn a_frame_longer_than_the_ring_holds_up_nothing() {
        let mut port = doc::open("vmst{1@conf:slots=8").unwrap();
        let mut other = doc::open("vmst}1").unwrap();
        let (near, mut far) = UnixStream::pair().unwrap();
        let mut stream = Stream::new(near).unwrap();
        let slots = 7 * port.max_frame();
        for length in [60, slots + 1, 61, 13, slots] {
            let frame = vec![0; length];
            far.write_all(&(length as u32).to_be_bytes()).unwrap();
            far.write_all(&frame).unwrap();
        }
        let mut rx = other.rx(0);
        let (mut moved, mut arrived) = (Moved::default(), Vec::new());
        // The last frame needs the whole ring, which a turn finds empty after the sync of the one before.
        for _ in 0..3 {
            moved += stream.send(&mut port, 0, 16);
            rx.sync();
            let mut length = 0;
            for slot in rx.batch(8) {
                length += slot.len();
                if !slot.more_fragments() {
                    arrived.push(std::mem::take(&mut length));
                }
            }
            rx.sync();
        }
        assert_eq!(arrived, [60, 61, slots]);
        assert_eq!((moved.frames, moved.too_long, moved.too_short), (3, 1, 1));
    }

    /// When a stream ends, the frames that were read are sent while the port has room; the others are counted.
    #[test]
    fn what_an_ended_stream_still_had_is_moved_or_told() {
        let mut port = doc::open("vmend{1@conf:slots=8").unwrap();
        let mut other = doc::open("vmend}1").unwrap();
        let (near, mut far) = UnixStream::pair().unwrap();
        let mut stream = Stream::new(near).unwrap();
        for _ in 0..20 {
            far.write_all(&60_u32.to_be_bytes()).unwrap();
            far.write_all(&[0; 60]).unwrap();
        }
        // Half a frame is none.
        far.write_all(&60_u32.to_be_bytes()).unwrap();
        let sent = stream.send(&mut port, 0, 2);
        // The monitor reads nothing: frames for it fill the socket's buffer.
        let mut received = Moved::default();
        while stream.flush() {
            other.tx(0).push(&[1; 1500]);
            other.tx(0).sync();
            received += stream.receive(&mut port, 0, 16);
        }
        other.rx(0).sync();
        drop(far);
        let Remainder { out, into } = stream.finish(&mut port, Some(0), &mut |_| false);
        assert_eq!((sent.frames, out.frames, out.not_taken), (2, 5, 13), "7 slots have room");
        assert_eq!((received.frames, into), (received.frames, [1, 1500]));
        assert!(received.frames > 1);
    }

    /// A frame for which too few slots are free is waited for until there are more.
    #[test]
    fn too_few_slots_end_no_wait() {
        let mut port = doc::open("vmfew{1@conf:slots=16").unwrap();
        let mut other = doc::open("vmfew}1").unwrap();
        let (near, mut far) = UnixStream::pair().unwrap();
        let mut stream = Stream::new(near).unwrap();
        (0..14).for_each(|_| assert!(port.tx(0).push(&[1; 60])));
        let long = vec![7; 2 * port.max_frame() + 1];
        far.write_all(&[&(long.len() as u32).to_be_bytes()[..], &long].concat()).unwrap();
        for _ in 0..2 {
            assert!(stream.send(&mut port, 0, 16).no_room);
            assert!(!port.poll(Interest::Tx), "too few are free");
            other.rx(0).sync();
            assert_eq!(other.rx(0).batch(1).count(), 1);
            other.rx(0).sync();
            assert!(port.poll(Interest::Tx), "there is one more");
        }
        assert_eq!(stream.send(&mut port, 0, 16).frames, 1);
    }

    /// What the monitor had sent before it went is read to its end, and sent as long as the port gets room; what is left
    /// is counted.
    #[test]
    fn what_an_ended_stream_has_not_read_is_moved_or_told() {
        let mut port = doc::open("vmlate{1@conf:slots=8").unwrap();
        let mut other = doc::open("vmlate}1").unwrap();
        let (near, mut far) = UnixStream::pair().unwrap();
        let mut stream = Stream::new(near).unwrap();
        let mut buffered = 0_u64;
        far.set_nonblocking(true).unwrap();
        let frame = [&1500_u32.to_be_bytes()[..], &[0; 1500]].concat();
        while far.write_all(&frame).is_ok() {
            buffered += 1;
        }
        // The port has no room, and the monitor goes: that ends the link.
        let sent = stream.send(&mut port, 0, 16);
        assert!(sent.frames == 7 && sent.no_room && buffered > 30 && stream.obey().is_ok());
        drop(far);
        assert!(stream.send(&mut port, 0, 16).no_room && stream.obey().is_err());
        let (mut arrived, mut times) = (0, 0);
        let Remainder { out, .. } = stream.finish(&mut port, Some(0), &mut |port| {
            times += 1;
            other.rx(0).sync();
            arrived += other.rx(0).batch(usize::MAX).count();
            other.rx(0).sync();
            port.tx(0).sync();
            times <= 3
        });
        assert_eq!((out.frames, arrived, times), (21, 28, 4));
        assert_eq!(sent.frames + out.frames + out.not_taken, buffered);
    }

    /// A monitor that goes on sending holds up no end.
    #[test]
    fn a_stream_ends_while_its_monitor_sends() {
        let mut port = doc::open("vmgo{1@conf:slots=8").unwrap();
        let (near, mut far) = UnixStream::pair().unwrap();
        let mut stream = Stream::new(near).unwrap();
        let frame = [&60_u32.to_be_bytes()[..], &[0; 60]].concat();
        let sender = std::thread::spawn(move || while far.write_all(&frame).is_ok() {});
        let Remainder { .. } = stream.finish(&mut port, Some(0), &mut |_| false);
        sender.join().unwrap();
    }
}
