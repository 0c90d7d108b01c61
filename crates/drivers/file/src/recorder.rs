//! Frames on their way to files: put into memory as blocks, and written by a thread of its own.
//!
//! The two share a piece of memory. The recorder appends blocks to it, the thread takes all that is there
//! in exchange for an empty one. So neither waits for the other longer than that takes, and nothing is
//! allocated once both pieces have grown to what is needed.

use std::{
    io,
    path::PathBuf,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::{Duration, SystemTime},
};

use crate::{
    blocks::{Frame, MAX_SNAPLEN, Statistics},
    error::{Error, Result},
    format::{Format, Kind},
    output::Output,
    threads::ThreadOwner,
};

/// Bytes of blocks that wait to be written, at most. More frames are dropped.
pub const QUEUE_BYTES: usize = 16 << 20;

/// How long the writer may write nothing at the end before the rest is given up, if it writes to a pipe,
/// which may not be read. A disk is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// After this time without frames, what was compressed so far is written out.
const FLUSH: Duration = Duration::from_millis(200);

/// What frames come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    /// The name of a port.
    pub name: String,
    /// Which of its frames are recorded.
    pub filter: Option<String>,
}

/// When another file is begun.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rotation {
    /// Once the file has so many bytes.
    pub size: Option<u64>,
    /// Once it is so old, and there is another frame.
    pub time: Option<Duration>,
    /// How many are kept; older ones are removed.
    pub files: Option<u32>,
}

impl Rotation {
    /// Whether there may be more than one file.
    pub fn is_on(&self) -> bool {
        self.size.is_some() || self.time.is_some()
    }
}

/// What is to be recorded, and where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    /// The file, `-` being standard output. With rotation, the files have numbers: `x.pcap` stands for
    /// `x_00001.pcap` and so on. If the name has conversions of strftime(3), the files have the time of
    /// their beginning instead, and a number where a name was given before.
    pub file: PathBuf,
    /// What frames come from. A pcap file does not tell one from the other.
    pub interfaces: Vec<Interface>,
    /// Bytes that are kept of a frame; 0: all.
    pub snaplen: u32,
    /// When another file is begun.
    pub rotation: Rotation,
    /// What is in a file already is lost; else a file that has something is refused, or, with rotation,
    /// passed over.
    pub overwrite: bool,
}

impl Recording {
    /// To one file, of one interface.
    pub fn to(file: impl Into<PathBuf>, interface: &str) -> Recording {
        let interface = Interface { name: interface.into(), filter: None };
        Recording { file: file.into(), interfaces: vec![interface], ..Recording::default() }
    }

    pub(crate) fn snaplen(&self) -> u32 {
        if self.snaplen == 0 { MAX_SNAPLEN } else { self.snaplen.min(MAX_SNAPLEN) }
    }
}

/// Which way a frame went, seen from the program that has the interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// Not known.
    #[default]
    Unknown,
    /// To the program.
    Received,
    /// From the program.
    Sent,
}

/// What is recorded of one frame besides its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Which of the [interfaces](Recording::interfaces).
    pub interface: u32,
    /// Which way it went.
    pub direction: Direction,
    /// When, in nanoseconds since 1970.
    pub time: u64,
    /// Its bytes.
    pub length: u32,
    /// Bytes that it had on the wire, if that is more.
    pub wire_length: u32,
}

/// What has become of the frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Frames written.
    pub frames: u64,
    /// Bytes of all files.
    pub bytes: u64,
    /// Frames dropped, for want of room in the queue or after an error.
    pub dropped: u64,
    /// Files begun.
    pub files: u64,
}

/// Records frames. In a child of `fork` it records none: each is counted as dropped.
#[derive(Debug)]
pub struct Recorder {
    /// The process that writes.
    writer: ThreadOwner,
    shared: Arc<Shared>,
    file: PathBuf,
    /// The file is one on a disk.
    is_regular: bool,
    format: Format,
    snaplen: u32,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pending: Mutex<Pending>,
    /// There is something to write, or an end.
    news: Condvar,
    /// The writer has ended.
    ended: Condvar,
    /// Of each interface: frames recorded, and frames dropped on the way to here and here.
    counters: Vec<[AtomicU64; 2]>,
    pub frames: AtomicU64,
    pub bytes: AtomicU64,
    pub files: AtomicU64,
    dropped: AtomicU64,
    error: Mutex<Option<Error>>,
    /// Nanoseconds since 1970.
    start: u64,
}

#[derive(Debug, Default)]
struct Pending {
    blocks: Blocks,
    /// Frames that the writer has had.
    taken: u64,
    writer_waits: bool,
    closing: bool,
    writer_ended: bool,
    /// The writer is not waited for any more.
    given_up: bool,
}

/// Whole blocks.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    pub bytes: Vec<u8>,
    /// Where each frame's block ends.
    pub ends: Vec<usize>,
}

impl Pending {
    /// Whether there is nothing to wait for: all is written, or the rest was given up.
    fn is_over(&self) -> bool {
        self.writer_ended || self.given_up
    }
}

impl Recorder {
    /// Opens the file and begins to record. A named pipe is opened by the thread, which waits for a reader.
    ///
    /// # Errors
    /// When the file cannot be opened, or has something in it.
    pub fn new(recording: &Recording) -> Result<Recorder> {
        let format = Kind::of_name(&recording.file).format;
        let shared = Arc::new(Shared::new(recording.interfaces.len()));
        let output = Output::new(recording.clone(), shared.clone())?;
        let is_regular = output.is_regular();
        let writer = Writer { output, shared: shared.clone() };
        let name = "ringway-writer".to_owned();
        let spawned = thread::Builder::new().name(name).spawn(move || writer.run());
        spawned.map_err(|error| Error::open(&recording.file, error))?;
        let (file, snaplen) = (recording.file.clone(), recording.snaplen());
        let writer = ThreadOwner::here(&file);
        Ok(Recorder { writer, shared, file, is_regular, format, snaplen })
    }

    /// Begins to put frames into the queue; they are handed over when the burst is dropped.
    pub fn burst(&mut self) -> Burst<'_> {
        let is_here = !self.writer.is_parent();
        // Under the lock, for the writer counts what there is when it ends.
        let pending = is_here.then(|| self.shared.pending()).filter(|pending| !pending.is_over());
        Burst { pending, recorder: self, frames: 0, dropped: 0 }
    }

    /// Says how many frames were lost of an interface before they came here, since the beginning.
    pub fn set_lost(&self, interface: u32, lost: u64) {
        if let Some([_, dropped]) = self.shared.counters.get(interface as usize) {
            dropped.store(lost, Relaxed);
        }
    }

    /// Why nothing is written any more, if that is so.
    pub fn error(&self) -> Option<Error> {
        self.writer.check().err().or_else(|| self.shared.error())
    }

    pub(crate) fn writer(&self) -> &ThreadOwner {
        &self.writer
    }

    /// What has become of the frames so far.
    pub fn totals(&self) -> Totals {
        let Shared { frames, bytes, files, dropped, .. } = &*self.shared;
        let [frames, bytes, files, dropped] =
            [frames, bytes, files, dropped].map(|counter| counter.load(Relaxed));
        Totals { frames, bytes, dropped, files }
    }

    /// Writes what there is, and ends the files; gives up when nothing is read from a pipe for five seconds.
    /// It is what dropping does as well. In a child of `fork` it does nothing.
    pub fn finish(&mut self) -> Totals {
        self.finish_within(PATIENCE)
    }

    fn finish_within(&mut self, patience: Duration) -> Totals {
        if self.writer.is_parent() {
            return self.totals();
        }
        let mut pending = self.shared.pending();
        pending.closing = true;
        self.shared.news.notify_one();
        let mut moved = self.shared.bytes.load(Relaxed);
        while !pending.is_over() {
            let waited = self.shared.ended.wait_timeout(pending, patience);
            let (guard, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            pending = guard;
            let now = self.shared.bytes.load(Relaxed);
            if timeout.timed_out() && now == moved && !self.is_regular {
                self.shared.drop_rest(&mut pending);
                self.shared.fail(Error::write(&self.file, io::ErrorKind::TimedOut.into(), None));
                pending.given_up = true;
            }
            moved = now;
        }
        drop(pending);
        self.totals()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.finish();
    }
}

/// Nanoseconds since 1970.
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    since.as_nanos().try_into().unwrap_or(u64::MAX)
}

/// Frames that are handed over together.
#[derive(Debug)]
pub struct Burst<'r> {
    recorder: &'r Recorder,
    /// `None`: nothing is written any more.
    pending: Option<MutexGuard<'r, Pending>>,
    frames: u64,
    dropped: u64,
}

impl Burst<'_> {
    /// Records one frame: `fill` is given room for the bytes that are kept. False: it is dropped, and
    /// counted, because too much waits to be written, or nothing is written any more.
    pub fn record(&mut self, record: &Record, fill: impl FnOnce(&mut [u8])) -> bool {
        let &Record { interface, direction, time, length, wire_length } = record;
        let kept = length.min(self.recorder.snaplen);
        let length = length.max(wire_length);
        let frame = Frame { interface, direction, time, kept, length };
        let counters = self.recorder.shared.counters.get(interface as usize);
        if let Some([recorded, _]) = counters {
            recorded.fetch_add(1, Relaxed);
        }
        let blocks = self.pending.as_mut().map(|pending| &mut pending.blocks);
        let room = |blocks: &&mut Blocks| blocks.bytes.len() + frame.size() <= QUEUE_BYTES;
        let Some(Blocks { bytes, ends }) = blocks.filter(room) else {
            self.dropped += 1;
            return false;
        };
        let room = frame.append(self.recorder.format, bytes);
        fill(&mut bytes[room]);
        ends.push(bytes.len());
        self.frames += 1;
        true
    }
}

impl Drop for Burst<'_> {
    fn drop(&mut self) {
        if self.dropped > 0 {
            self.recorder.shared.dropped.fetch_add(self.dropped, Relaxed);
        }
        let writer_waits = self.pending.as_mut().map(|pending| &mut pending.writer_waits);
        if self.frames > 0 && writer_waits.is_some_and(std::mem::take) {
            self.recorder.shared.news.notify_one();
        }
    }
}

impl Shared {
    /// For so many interfaces.
    pub fn new(interfaces: usize) -> Shared {
        Shared {
            pending: Mutex::default(),
            news: Condvar::new(),
            ended: Condvar::new(),
            counters: (0..interfaces).map(|_| Default::default()).collect(),
            frames: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            files: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            error: Mutex::default(),
            start: now(),
        }
    }

    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn error(&self) -> Option<Error> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Nothing is written any more; the first reason counts.
    fn fail(&self, error: Error) {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    /// Counts as dropped what waits, and what the writer has in its hands and has not written.
    fn drop_rest(&self, pending: &mut Pending) {
        let waiting = std::mem::take(&mut pending.blocks).ends.len() as u64;
        let in_hand = pending.taken.saturating_sub(self.frames.load(Relaxed));
        self.dropped.fetch_add(waiting + in_hand, Relaxed);
    }

    /// The statistics of all interfaces, up to now.
    pub fn append_statistics(&self, format: Format, out: &mut Vec<u8>) {
        let dropped_here = self.dropped.load(Relaxed);
        for (interface, [received, lost]) in (0..).zip(&self.counters) {
            // Which interface's frames the queue had no room for is not counted apart.
            let here = if self.counters.len() == 1 { dropped_here } else { 0 };
            let (received, lost) = (received.load(Relaxed), lost.load(Relaxed));
            let (start, end) = (self.start, now());
            let dropped = lost + here;
            Statistics { interface, start, end, received, dropped }.append(format, out);
        }
    }
}

/// The thread that writes.
struct Writer {
    output: Output,
    shared: Arc<Shared>,
}

impl Writer {
    fn run(mut self) {
        let mut blocks = Blocks::default();
        let mut done = self.output.begin();
        while done.is_ok() && self.take(&mut blocks) {
            done = self.output.write(&blocks);
        }
        let done = done.and_then(|()| self.output.finish());
        if let Err(error) = done {
            self.shared.fail(error);
        }
        let mut pending = self.shared.pending();
        if !pending.given_up {
            self.shared.drop_rest(&mut pending);
        }
        pending.writer_ended = true;
        self.shared.ended.notify_all();
    }

    /// Exchanges `blocks` for what is there to be written; waits for that. False at the end.
    fn take(&mut self, blocks: &mut Blocks) -> bool {
        blocks.bytes.clear();
        blocks.ends.clear();
        let shared = self.shared.clone();
        let mut pending = shared.pending();
        while pending.blocks.ends.is_empty() {
            if pending.closing {
                return false;
            }
            pending.writer_waits = true;
            let waited = shared.news.wait_timeout(pending, FLUSH);
            let (guard, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            pending = guard;
            if timeout.timed_out() && self.output.has_unflushed() {
                drop(pending);
                // The next write tells of an error.
                self.output.flush();
                pending = shared.pending();
            }
        }
        pending.writer_waits = false;
        std::mem::swap(&mut pending.blocks, blocks);
        pending.taken += blocks.ends.len() as u64;
        true
    }
}

#[cfg(test)]
mod tests {
    use std::{fs::File, path::Path};

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    /// A named pipe of a test's own.
    fn pipe(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("ringway-{name}-{}.pcap", std::process::id()));
        mknodat(CWD, &path, FileType::Fifo, Mode::RWXU, 0).unwrap();
        path
    }

    fn record(recorder: &mut Recorder, frames: u64) -> u64 {
        let (mut burst, record) = (recorder.burst(), Record { length: 1000, ..Record::default() });
        (0..frames).filter(|_| burst.record(&record, |_| {})).count() as u64
    }

    /// A pipe without a reader is given up once: the recorder that is dropped then waits for nothing.
    #[test]
    fn what_was_given_up_is_not_waited_for_again() {
        let path = pipe("unread");
        let mut recorder = Recorder::new(&Recording::to(&path, "a")).unwrap();
        assert!(!recorder.shared.pending().is_over());
        assert_eq!(record(&mut recorder, 1), 1);
        assert_eq!(recorder.finish_within(Duration::from_millis(1)).dropped, 1);
        assert!(recorder.shared.pending().is_over());
        assert!(recorder.error().is_some());
        drop(recorder);
        std::fs::remove_file(path).unwrap();
    }

    /// More than a pipe holds is in the writer's hands when the pipe is given up.
    #[test]
    fn what_the_writer_of_a_pipe_has_in_its_hands_is_counted() {
        let path = pipe("in-hand");
        let mut recorder = Recorder::new(&Recording::to(&path, "a")).unwrap();
        let _reader = File::open(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        assert_eq!(record(&mut recorder, 200), 200);
        while !recorder.shared.pending().blocks.ends.is_empty() {
            thread::yield_now();
        }
        assert_eq!(record(&mut recorder, 100), 100);
        let Totals { frames, dropped, .. } = recorder.finish_within(Duration::from_millis(1));
        assert_eq!((frames, dropped), (0, 300));
        assert_eq!((record(&mut recorder, 7), recorder.totals().dropped), (0, 307));
    }

    /// A writer that has ended takes nothing any more, whether its error is known yet or not.
    #[test]
    fn what_is_recorded_after_the_writer_has_ended_is_counted() {
        let mut recorder = Recorder::new(&Recording::to(Path::new("/dev/full"), "a")).unwrap();
        while !recorder.shared.pending().writer_ended {
            thread::yield_now();
        }
        recorder.shared.error.lock().unwrap().take();
        assert_eq!(record(&mut recorder, 5), 0);
        assert_eq!(recorder.finish().dropped, 5);
    }
}
