//! Frames of each size on the way from one port to another.
//!
//! ```text
//!   0          6         12       14      18       22         30
//!   +----------+---------+--------+-------+--------+----------+-------------------------
//!   | ff:...   | source  | 88b5   | RWAY  | stream | sequence | pattern of this stream ...
//!   +----------+---------+--------+-------+--------+----------+-------------------------
//! ```
//!
//! The first frames find out whether there is a way at all: a link may need seconds after its driver
//! was set up anew. Then all sizes are sent, from the shortest on: where the interface does not take
//! the longer ones, and keeps what is behind them waiting, those before have come.

use super::report::{Direction, Size};
use crate::error::Result;
use crate::flush::{Flush, pending};
use crate::fragmenter::Fragmenter;
use crate::fragments::Fragments;
use crate::payload::{MARK_LEN, Mark, Pattern};
use crate::run_loop::RunLoop;
use ringway::{Interest, Port, PortWaiter, Sleeper, Sources, Waiter, ethernet_address};
use std::time::{Duration, Instant};

/// For experiments in one's own network (IEEE 802).
const ETHERTYPE: [u8; 2] = [0x88, 0xb5];
const BROADCAST: [u8; 6] = [0xff; 6];

/// The shortest frame.
pub const SHORTEST: usize = 60;
pub const ETHERNET_HEADER: usize = 14;
/// The longest frame that is sent: no slot can tell of a longer one.
pub const LONGEST: usize = 65_535;

/// Frames of each size that are sent.
const OF_EACH: usize = 16;

/// Frames that may be under way: fewer than any ring on the way has room for.
const WINDOW: usize = 64;
/// And their bytes, but for a single frame: what a cable or a switch between the interfaces may keep.
const WINDOW_BYTES: usize = 64 * 1024;

/// What has not come for so long after the last that came has been lost.
const SILENCE: Duration = Duration::from_millis(500);

/// How long a link may take until it carries frames, and how often that is tried.
const LINK: Duration = Duration::from_secs(5);
const AGAIN: Duration = Duration::from_millis(100);

/// The sizes that are sent, and what frames are filled with.
pub struct Frames {
    sizes: Vec<usize>,
    pattern: Pattern,
}

impl Frames {
    /// Of these sizes, each at least 60 and at most [`LONGEST`].
    pub fn new(sizes: Vec<usize>) -> Frames {
        Frames { sizes, pattern: Pattern::new() }
    }

    /// Whether frame `sent` may leave while those from `done` on are under way.
    fn may_send(&self, sent: usize, done: usize) -> bool {
        let size = |at: usize| self.sizes.get(at / OF_EACH).copied().unwrap_or(0);
        let bytes: usize = (done..sent.saturating_add(1)).map(size).sum();
        sent <= done || (sent - done < WINDOW && bytes <= WINDOW_BYTES)
    }

    /// The size of the frame with that number, if there is such a frame.
    fn size(&self, mark: Mark) -> Option<usize> {
        let at = usize::try_from(mark.sequence).ok()? / OF_EACH;
        self.sizes.get(at).copied()
    }

    fn build(&self, source: [u8; 6], mark: Mark, bytes: &mut Vec<u8>) {
        let size = self.size(mark).unwrap_or(SHORTEST);
        bytes.clear();
        bytes.extend(BROADCAST);
        bytes.extend(source);
        bytes.extend(ETHERTYPE);
        bytes.extend(mark.to_bytes());
        bytes.extend(self.pattern.bytes(mark.stream, size - ETHERNET_HEADER - MARK_LEN));
    }

    /// The mark of a received frame, and whether all that was sent with it has come.
    fn read(&self, frame: &[u8]) -> Option<(Mark, bool)> {
        let (header, payload) = frame.split_at_checked(ETHERNET_HEADER)?;
        let (mark, rest) = Mark::split(payload).filter(|_| header.ends_with(&ETHERTYPE))?;
        let is_whole = frame.len() <= LONGEST
            && self.size(mark) == Some(frame.len())
            && rest == self.pattern.bytes(mark.stream, rest.len());
        Some((mark, is_whole))
    }
}

/// One direction between two ports.
pub struct Passage<'p> {
    frames: &'p Frames,
    /// Of the first frames; that of the others is the next.
    stream: u32,
    from: &'p mut Port,
    to: &'p mut Port,
    source: [u8; 6],
    fragmenter: Fragmenter,
    /// Ring by ring.
    fragments: Vec<Fragments>,
    bytes: Vec<u8>,
}

/// What has come of a stream.
struct Stream {
    number: u32,
    /// By sequence number: whether it came, and whole.
    came: Vec<Option<bool>>,
    /// Frames that came, each once.
    count: usize,
    /// Behind the last in order that has come.
    next: usize,
}

impl Stream {
    fn new(number: u32, frames: usize) -> Stream {
        Stream { number, came: vec![None; frames], count: 0, next: 0 }
    }

    fn add(&mut self, mark: Mark, is_whole: bool) {
        let at = usize::try_from(mark.sequence).unwrap_or(usize::MAX);
        if mark.stream == self.number
            && let Some(came) = self.came.get_mut(at)
        {
            self.count += usize::from(came.is_none());
            *came = Some(is_whole);
            self.next = self.next.max(at + 1);
        }
    }
}

impl<'p> Passage<'p> {
    pub fn new(frames: &'p Frames, stream: u32, from: &'p mut Port, to: &'p mut Port) -> Self {
        let room = from.max_frame();
        let source = ethernet_address(from.name());
        let fragmenter = Fragmenter::new(&mut from.tx(0), room);
        let fragments = Fragments::of(to);
        Passage { frames, stream, from, to, source, fragmenter, fragments, bytes: Vec::new() }
    }

    /// Sends, and says what has come; `None`: the user has ended it.
    pub fn run(&mut self, run_loop: &RunLoop) -> Result<Option<Direction>> {
        let sizes = self.frames.sizes.len();
        let mut first = Stream::new(self.stream, sizes * OF_EACH);
        let until = Instant::now() + LINK;
        let mut tries = 0;
        while first.count == 0 && Instant::now() < until {
            // From the shortest on, until a size comes.
            self.send(self.stream, (tries % sizes) * OF_EACH);
            tries += 1;
            let again = Instant::now() + AGAIN;
            while first.count == 0 && Instant::now() < again {
                self.wait(run_loop, again)?;
                self.take(&mut first);
                if run_loop.is_interrupted() {
                    return Ok(None);
                }
            }
        }
        if first.count == 0 {
            let sent = |at: usize| (tries + sizes - 1 - at) / sizes;
            let none = |(at, &size)| Size { size, sent: sent(at), arrived: 0, damaged: 0 };
            let sizes = self.frames.sizes.iter().enumerate().map(none).collect();
            return Ok(Some(Direction { sizes, kept: self.kept() }));
        }
        self.send_all(run_loop)
    }

    fn send_all(&mut self, run_loop: &RunLoop) -> Result<Option<Direction>> {
        let total = self.frames.sizes.len() * OF_EACH;
        let mut stream = Stream::new(self.stream.wrapping_add(1), total);
        // Frames that were sent, and those of them that are not waited for any more.
        let (mut sent, mut done) = (0, 0);
        let mut last = Instant::now();
        while stream.count < total {
            while sent < total && self.frames.may_send(sent, done) && self.send(stream.number, sent)
            {
                sent += 1;
            }
            let before = stream.count;
            self.take(&mut stream);
            let now = Instant::now();
            if stream.count > before {
                (last, done) = (now, done.max(stream.next));
                continue;
            }
            if run_loop.is_interrupted() {
                return Ok(None);
            }
            if now >= last + SILENCE {
                if sent == total || sent == done {
                    break;
                }
                (last, done) = (now, sent);
                continue;
            }
            self.wait(run_loop, last + SILENCE)?;
        }
        let of_size = |(size, came): (&usize, &[Option<bool>])| {
            let count = |how| came.iter().filter(|came| **came == Some(how)).count();
            Size { size: *size, sent: OF_EACH, arrived: count(true), damaged: count(false) }
        };
        let came = stream.came.chunks(OF_EACH);
        let sizes = self.frames.sizes.iter().zip(came).map(of_size).collect();
        Ok(Some(Direction { sizes, kept: self.kept() }))
    }

    /// Slots that the interface has not taken.
    fn kept(&mut self) -> usize {
        self.from.poll(Interest::Tx);
        pending(self.from, 1)
    }

    /// Hands a frame over to the port; false if there is no room. What no ring can hold is lost.
    fn send(&mut self, stream: u32, sequence: usize) -> bool {
        let mark = Mark { stream, sequence: sequence as u64 };
        self.frames.build(self.source, mark, &mut self.bytes);
        if self.bytes.len() > self.fragmenter.longest() {
            return true;
        }
        let mut tx = self.from.tx(0);
        let has_room = self.fragmenter.put(&mut tx.batch(usize::MAX), &self.bytes);
        tx.sync();
        has_room
    }

    /// Takes what has come.
    fn take(&mut self, stream: &mut Stream) {
        self.to.poll(Interest::Rx);
        for (ring, fragments) in self.fragments.iter_mut().enumerate() {
            let mut rx = self.to.rx(ring);
            for slot in rx.batch(usize::MAX) {
                if let Some(frame) = fragments.add(slot) {
                    frame.read(&mut self.bytes);
                    if let Some((mark, is_whole)) = self.frames.read(&self.bytes) {
                        stream.add(mark, is_whole);
                    }
                }
            }
            rx.sync();
        }
    }

    /// Waits until something has come, or more of what was sent has gone, or `until`.
    fn wait(&mut self, run_loop: &RunLoop, until: Instant) -> Result<()> {
        let before = pending(self.from, 1);
        let rx = self.to.waiter(Interest::Rx);
        // Where all has gone, nothing more can go.
        let tx = (before > 0).then(|| Flush::new(self.from, 1, before));
        run_loop.wait_for(&mut UnderWay { tx, rx }, until)?;
        // What has ended the wait may be that nothing can come any more.
        self.from.check(Interest::Tx)?;
        Ok(self.to.check(Interest::Rx)?)
    }
}

/// Waits for either end of the way.
struct UnderWay<'p> {
    tx: Option<Flush<'p>>,
    rx: PortWaiter<'p>,
}

impl Waiter for UnderWay<'_> {
    fn look(&mut self) -> bool {
        // Both sync: what is not sent does not come.
        let has_gone = self.tx.as_mut().is_some_and(Waiter::look);
        self.rx.look() || has_gone
    }

    fn arm(&mut self) -> bool {
        let drained = self.tx.as_mut().is_some_and(Waiter::arm);
        self.rx.arm() || drained
    }

    fn pass_on(&mut self) {
        self.tx.iter_mut().for_each(Waiter::pass_on);
        self.rx.pass_on();
    }
}

impl Sleeper for UnderWay<'_> {
    fn sources<'s>(&'s self, sources: &mut Sources<'s>) {
        self.tx.iter().for_each(|tx| tx.sources(sources));
        self.rx.sources(sources);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_known_by_their_bytes() {
        let frames = Frames::new(vec![60, 1514]);
        let (mut bytes, mark) = (Vec::new(), Mark { stream: 7, sequence: OF_EACH as u64 + 3 });
        frames.build([2; 6], mark, &mut bytes);
        assert_eq!((bytes.len(), frames.read(&bytes)), (1514, Some((mark, true))));
        // Cut, longer, and with another byte: it came, and not as it was sent.
        assert_eq!(frames.read(&bytes[..1513]), Some((mark, false)));
        assert_eq!(frames.read(&[&bytes[..], &[0]].concat()), Some((mark, false)));
        bytes[1000] ^= 1;
        assert_eq!(frames.read(&bytes), Some((mark, false)));
        // Those of others.
        bytes[13] ^= 1;
        assert_eq!(frames.read(&bytes), None);
        assert_eq!(frames.read(&bytes[..20]), None);
    }

    /// What lies between may have room for few long frames.
    #[test]
    fn few_long_frames_are_under_way_at_once() {
        let frames = Frames::new(vec![60, 60, 60, 60, 60, 9014, LONGEST, LONGEST]);
        let under_way =
            |done: usize| (done..).take_while(|sent| frames.may_send(*sent, done)).count();
        assert_eq!([0, 5, 6].map(|size| under_way(size * OF_EACH)), [64, 7, 1]);
        assert_eq!(under_way(4 * OF_EACH), OF_EACH + 7);
    }

    #[test]
    fn a_frame_counts_once_and_in_its_stream() {
        let mut stream = Stream::new(7, 4);
        for (of, sequence) in [(7, 2), (7, 2), (8, 1), (7, 4), (7, u64::MAX), (7, 0)] {
            stream.add(Mark { stream: of, sequence }, true);
        }
        assert_eq!((stream.count, stream.next), (2, 3));
        assert_eq!(stream.came, [Some(true), None, Some(true), None]);
    }
}
