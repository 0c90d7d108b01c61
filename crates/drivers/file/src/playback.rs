//! A file that is read ahead, in a thread of its own, in batches whose memory is used again.
//!
//! Where the file's timing is to be kept, it is the thread that waits: it hands over no frame before its
//! time.

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, Sender, SyncSender, TryRecvError, channel, sync_channel},
    },
    thread,
    time::{Duration, Instant},
};

use rustix::fd::OwnedFd;

use crate::{
    error::{Error, Result},
    in_use::InUse,
    input,
    reader::{Captured, Reader, Skipped},
    threads::ThreadOwner,
};

/// How a file is played.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Replay {
    /// 1 keeps the timing of the file, 2 is twice as fast, 0 as fast as there is room.
    pub speed: f64,
    /// How many times; 0: for ever.
    pub loops: u64,
    /// The address that all frames are to go to.
    pub dst_mac: Option<[u8; 6]>,
    /// The address that all frames are to come from.
    pub src_mac: Option<[u8; 6]>,
    /// The longest pause between two frames, where there is timing.
    pub max_gap: Option<Duration>,
}

impl Default for Replay {
    fn default() -> Replay {
        Replay { speed: 0.0, loops: 1, dst_mac: None, src_mac: None, max_gap: None }
    }
}

/// Frames and bytes of a batch, at most; a longer frame is one by itself.
const BATCH_FRAMES: usize = 1024;
const BATCH_BYTES: usize = 1 << 18;

/// Batches that wait to be played, at most.
const BATCHES: usize = 4;

#[derive(Debug, Default)]
struct Batch {
    bytes: Vec<u8>,
    frames: Vec<Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Where it ends in the batch's bytes.
    end: usize,
    /// When, in nanoseconds since 1970, says the file.
    time: u64,
    /// Bytes that it had on the wire.
    length: u32,
    round: u64,
}

/// What comes next of a file.
#[derive(Debug, PartialEq, Eq)]
pub enum Next<'p> {
    /// A frame.
    Frame {
        /// All that the file has of it.
        bytes: &'p [u8],
        /// When, in nanoseconds since 1970, says the file.
        time: u64,
        /// Bytes that it had on the wire.
        length: u32,
        /// How often the file was played before.
        round: u64,
    },
    /// Nothing, as yet.
    Nothing,
    /// Nothing comes any more.
    End,
}

/// A file that is being played. In a child of `fork` it has ended, but for what was read ahead.
#[derive(Debug)]
pub struct Playback {
    /// The process that reads.
    reader: ThreadOwner,
    batches: Receiver<Batch>,
    spare: Sender<Batch>,
    shared: Arc<Shared>,
    batch: Batch,
    /// The next frame of the batch, and where it begins.
    at: usize,
    start: usize,
    _in_use: Option<InUse>,
}

#[derive(Debug)]
struct Shared {
    /// An eventfd, to be written to when there is another batch, or none any more.
    doorbell: Option<OwnedFd>,
    outcome: Mutex<Outcome>,
}

/// How it ended.
#[derive(Clone, Debug, Default)]
struct Outcome {
    error: Option<Error>,
    cut: Option<u64>,
    skipped: Skipped,
    partial: u64,
}

impl Playback {
    /// Begins to read a file, `-` being standard input. `doorbell`, an eventfd, is notified of news.
    ///
    /// # Errors
    /// When it cannot be opened. Of a regular file also when it is no capture file.
    pub fn open(file: &Path, replay: Replay, doorbell: Option<OwnedFd>) -> Result<Playback> {
        let fail = |error: io::Error| Error::open(file, error);
        let shared = Arc::new(Shared { doorbell, outcome: Mutex::default() });
        let (sender, batches) = sync_channel(BATCHES);
        let (spare, spares) = channel();
        let outbox = Outbox {
            batch: Batch::default(),
            sender: Some(sender),
            spares,
            shared: shared.clone(),
        };
        let mut player = Player {
            file: file.into(),
            replay,
            outbox: Arc::new(Mutex::new(outbox)),
            shared: shared.clone(),
            clock: Clock::new(&replay),
            partial: 0,
            skipped: Skipped::default(),
        };
        // Whether it is a capture file is said at once where that takes no other program.
        let (reader, _in_use) = match file.metadata() {
            Ok(data) if !data.is_file() => (None, None),
            _ if file == Path::new("-") => (None, None),
            _ => {
                let input = input::open(file)?;
                let in_use = InUse::to_read(&input);
                (Some(player.reader(input)?), Some(in_use))
            }
        };
        let name = "ringway-reader".to_owned();
        thread::Builder::new().name(name).spawn(move || player.run(reader)).map_err(fail)?;
        let (reader, batch) = (ThreadOwner::here(file), Batch::default());
        Ok(Playback { reader, batches, spare, shared, batch, at: 0, start: 0, _in_use })
    }

    /// What comes next.
    pub fn peek(&mut self) -> Next<'_> {
        if self.at == self.batch.frames.len() {
            if self.reader.is_parent() {
                return Next::End;
            }
            match self.batches.try_recv() {
                Ok(batch) => {
                    let mut old = std::mem::replace(&mut self.batch, batch);
                    (self.at, self.start) = (0, 0);
                    old.bytes.clear();
                    old.frames.clear();
                    // The reader may have ended.
                    let _ = self.spare.send(old);
                }
                Err(TryRecvError::Empty) => return Next::Nothing,
                Err(TryRecvError::Disconnected) => return Next::End,
            }
        }
        let Some(entry) = self.batch.frames.get(self.at) else { return Next::Nothing };
        let bytes = self.batch.bytes.get(self.start..entry.end).unwrap_or_default();
        let &Entry { time, length, round, .. } = entry;
        Next::Frame { bytes, time, length, round }
    }

    /// The frame that was next has been taken.
    pub fn advance(&mut self) {
        if let Some(entry) = self.batch.frames.get(self.at) {
            self.start = entry.end;
            self.at += 1;
        }
    }

    /// Why it ended early, if it did.
    pub fn error(&self) -> Option<Error> {
        self.outcome().error
    }

    /// Where the last block begins, if the file ends in the middle of it.
    pub fn cut(&self) -> Option<u64> {
        self.outcome().cut
    }

    /// Frames of other link types that were left out, once it has ended.
    pub fn skipped(&self) -> Skipped {
        self.outcome().skipped
    }

    /// Frames of a round that the file has only in part, once it has ended.
    pub fn partial(&self) -> u64 {
        self.outcome().partial
    }

    pub(crate) fn reader(&self) -> &ThreadOwner {
        &self.reader
    }

    fn outcome(&self) -> Outcome {
        if let Err(error) = self.reader.check() {
            return Outcome { error: Some(error), ..Outcome::default() };
        }
        self.shared.outcome.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The thread that reads.
struct Player {
    file: PathBuf,
    replay: Replay,
    outbox: Arc<Mutex<Outbox>>,
    shared: Arc<Shared>,
    clock: Clock,
    partial: u64,
    skipped: Skipped,
}

impl Player {
    fn reader(&self, input: File) -> Result<Reader> {
        let outbox = self.outbox.clone();
        let before_wait = move || lock(&outbox).send();
        Reader::of(&self.file, input, Box::new(before_wait))
    }

    fn run(&mut self, reader: Option<Reader>) {
        let (error, cut) = match self.play(reader) {
            Ok(cut) => (None, cut),
            Err(error) => (Some(error), None),
        };
        let outcome = Outcome { error, cut, skipped: self.skipped, partial: self.partial };
        *self.shared.outcome.lock().unwrap_or_else(PoisonError::into_inner) = outcome;
        lock(&self.outbox).close();
    }

    /// Plays it as often as asked; where the last block begins, if it is cut.
    fn play(&mut self, mut reader: Option<Reader>) -> Result<Option<u64>> {
        let mut round = 0;
        loop {
            let mut reader = match reader.take() {
                Some(reader) => reader,
                None => self.reader(input::open(&self.file)?)?,
            };
            let frames = self.play_once(&mut reader, round)?;
            round += 1;
            let is_over =
                frames == 0 || round == self.replay.loops || lock(&self.outbox).is_closed();
            if is_over {
                return Ok(reader.cut());
            }
            if !self.file.metadata().is_ok_and(|data| data.is_file()) {
                let error =
                    io::Error::new(io::ErrorKind::NotSeekable, "a pipe has no second round");
                return Err(Error::open(&self.file, error));
            }
            self.clock.begin_again();
        }
    }

    fn play_once(&mut self, reader: &mut Reader, round: u64) -> Result<u64> {
        let (mut frames, mut partial) = (0, 0);
        let (replay, clock, outbox) = (self.replay, &mut self.clock, &self.outbox);
        let mut take = |frame: Captured<'_>| {
            if let Some(due) = clock.due(frame.time) {
                wait_until(due, outbox);
            }
            partial += u64::from(frame.bytes.len() < frame.length as usize);
            lock(outbox).push(&frame, &replay, round);
        };
        while reader.next(&mut take)? {
            frames += 1;
            // The last batch that was refused says that there is no player any more.
            if frames % BATCH_FRAMES as u64 == 0 && lock(&self.outbox).is_closed() {
                break;
            }
        }
        (self.partial, self.skipped) = (partial, reader.skipped());
        Ok(frames)
    }
}

fn lock(outbox: &Mutex<Outbox>) -> std::sync::MutexGuard<'_, Outbox> {
    outbox.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for the time of a frame; those before it are handed over.
fn wait_until(due: Instant, outbox: &Mutex<Outbox>) {
    let left = due.saturating_duration_since(Instant::now());
    if !left.is_zero() {
        lock(outbox).send();
        thread::sleep(due.saturating_duration_since(Instant::now()));
    }
}

/// From the file's times to ours.
struct Clock {
    speed: f64,
    /// The longest pause, in nanoseconds, and what was left out of longer ones in this round.
    max_gap: f64,
    left_out: f64,
    /// The first frame's time of this round, and when that frame was due.
    first: Option<(u64, Instant)>,
    /// When the last frame was due.
    last: Option<Instant>,
}

impl Clock {
    fn new(replay: &Replay) -> Clock {
        let max_gap = replay.max_gap.map_or(f64::INFINITY, |gap| gap.as_nanos() as f64);
        Clock { speed: replay.speed, max_gap, left_out: 0.0, first: None, last: None }
    }

    /// When a frame of that time is due; `None`: at once.
    fn due(&mut self, time: u64) -> Option<Instant> {
        if self.speed <= 0.0 {
            return None;
        }
        let last = self.last;
        let (first, begun) =
            *self.first.get_or_insert_with(|| (time, last.unwrap_or_else(Instant::now)));
        let since = time.saturating_sub(first) as f64 / self.speed;
        let after = |begun: Instant, nanoseconds: f64| {
            begun.checked_add(Duration::from_nanos(nanoseconds as u64)).unwrap_or(begun)
        };
        let mut due = after(begun, since - self.left_out);
        if let Some(last) = self.last {
            let gap = due.saturating_duration_since(last).as_nanos() as f64;
            if gap > self.max_gap {
                self.left_out += gap - self.max_gap;
                due = after(last, self.max_gap);
            }
        }
        // Clocks that stepped back while the file was written do not reorder frames.
        self.last = Some(last.map_or(due, |last| last.max(due)));
        self.last
    }

    fn begin_again(&mut self) {
        (self.first, self.left_out) = (None, 0.0);
    }
}

/// The batch that is being filled.
struct Outbox {
    batch: Batch,
    sender: Option<SyncSender<Batch>>,
    spares: Receiver<Batch>,
    shared: Arc<Shared>,
}

impl Outbox {
    fn push(&mut self, captured: &Captured<'_>, replay: &Replay, round: u64) {
        let start = self.batch.bytes.len();
        self.batch.bytes.extend_from_slice(captured.bytes);
        let frame = &mut self.batch.bytes[start..];
        for (at, mac) in [(0, replay.dst_mac), (6, replay.src_mac)] {
            if let (Some(mac), Some(place)) = (mac, frame.get_mut(at..at + 6)) {
                place.copy_from_slice(&mac);
            }
        }
        let end = self.batch.bytes.len();
        let Captured { time, length, .. } = *captured;
        self.batch.frames.push(Entry { end, time, length, round });
        if self.batch.frames.len() == BATCH_FRAMES || self.batch.bytes.len() >= BATCH_BYTES {
            self.send();
        }
    }

    /// Hands over what there is; waits while there is enough.
    fn send(&mut self) {
        if self.batch.frames.is_empty() {
            return;
        }
        let next = self.spares.try_recv().unwrap_or_default();
        let batch = std::mem::replace(&mut self.batch, next);
        if self.sender.as_ref().is_some_and(|sender| sender.send(batch).is_err()) {
            self.sender = None;
        }
        self.notify();
    }

    fn notify(&self) {
        if let Some(doorbell) = &self.shared.doorbell {
            // Full means that it is readable.
            let _ = rustix::io::write(doorbell, &1u64.to_ne_bytes());
        }
    }

    fn is_closed(&self) -> bool {
        self.sender.is_none()
    }

    fn close(&mut self) {
        self.send();
        self.sender = None;
        self.notify();
    }
}
