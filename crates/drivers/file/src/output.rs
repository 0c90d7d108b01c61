//! The files that blocks are written to, one after the other.

use std::{
    collections::VecDeque,
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::{
        ffi::{OsStrExt, OsStringExt},
        fs::{FileTypeExt, MetadataExt},
    },
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering::Relaxed},
    time::{Instant, SystemTime},
};

use rustix::fd::AsFd;

use crate::{
    blocks::header,
    error::{Error, Result, is_stdout},
    format::{Compression, Kind},
    in_use::InUse,
    recorder::{Blocks, Recording, Shared},
    sys::local_time,
};

/// Zstandard's level: about as fast as a disk.
const ZSTD_LEVEL: i32 = 1;

pub(crate) struct Output {
    recording: Recording,
    kind: Kind,
    shared: Arc<Shared>,
    /// The first one, opened before there is a thread.
    opened: Option<Opened>,
    current: Option<Current>,
    /// The files that were begun and are kept, the newest last.
    begun: VecDeque<PathBuf>,
    number: u32,
}

/// A file, and that this process writes it.
struct Opened {
    file: File,
    in_use: InUse,
}

/// The file that is being written.
struct Current {
    path: PathBuf,
    _in_use: InUse,
    stream: Stream,
    begun: Instant,
    frames: u64,
    has_unflushed: bool,
}

enum Stream {
    Plain(Target),
    Gzip(flate2::write::GzEncoder<Target>),
    Zstd(zstd::stream::write::Encoder<'static, Target>),
}

/// The bytes of a file.
struct Target {
    file: File,
    size: u64,
    shared: Arc<Shared>,
}

impl Output {
    /// Opens the first file, unless that is a named pipe.
    pub fn new(recording: Recording, shared: Arc<Shared>) -> Result<Output> {
        Kind::check_name(&recording.file)?;
        let kind = Kind::of_name(&recording.file);
        let mut output = Output {
            recording,
            kind,
            shared,
            opened: None,
            current: None,
            begun: VecDeque::new(),
            number: 0,
        };
        let path = output.next_path();
        let waits = fs::metadata(&path).is_ok_and(|data| data.file_type().is_fifo());
        if !waits {
            output.opened = Some(open(&path, output.recording.overwrite)?);
        }
        output.begun.push_back(path);
        Ok(output)
    }

    /// Whether the first file is one on a disk.
    pub fn is_regular(&self) -> bool {
        let data = self.opened.as_ref().and_then(|opened| opened.file.metadata().ok());
        data.is_some_and(|data| data.is_file())
    }

    /// Begins the first file.
    pub fn begin(&mut self) -> Result<()> {
        let path = self.begun.back().cloned().unwrap_or_default();
        let opened = match self.opened.take() {
            Some(opened) => opened,
            None => open(&path, self.recording.overwrite)?,
        };
        self.begin_file(path, opened)
    }

    /// Writes whole blocks, to as many files as it takes.
    pub fn write(&mut self, blocks: &Blocks) -> Result<()> {
        let (mut first, mut start) = (0, 0);
        while first < blocks.ends.len() {
            if self.is_full() {
                self.rotate()?;
            }
            let count = self.portion(&blocks.ends[first..], start);
            let end = blocks.ends[first + count - 1];
            let Some(current) = &mut self.current else { return Ok(()) };
            let ends = blocks.ends[first..first + count].iter().map(|end| end - start);
            let (frames, written) = current.write(&blocks.bytes[start..end], ends);
            current.frames += frames;
            self.shared.frames.fetch_add(frames, Relaxed);
            written.map_err(|error| current.failed(error))?;
            first += count;
            start = end;
        }
        Ok(())
    }

    /// Whether a compressor keeps something back.
    pub fn has_unflushed(&self) -> bool {
        self.current.as_ref().is_some_and(|current| current.has_unflushed)
    }

    /// Writes out what the compressor keeps back.
    pub fn flush(&mut self) {
        if let Some(current) = &mut self.current {
            // The next write fails as well.
            let _ = current.stream.flush();
            current.has_unflushed = false;
        }
    }

    /// Ends the last file.
    ///
    /// # Errors
    /// Also when somebody has deleted it.
    pub fn finish(&mut self) -> Result<()> {
        let Some(current) = self.current.take() else { return Ok(()) };
        let is_deleted = !is_stdout(&current.path) && current.is_deleted();
        let path = current.path.clone();
        self.end(current)?;
        if is_deleted { Err(Error::Deleted { file: path }) } else { Ok(()) }
    }

    fn end(&self, mut current: Current) -> Result<()> {
        let mut statistics = Vec::new();
        self.shared.append_statistics(self.kind.format, &mut statistics);
        current.write(&statistics, []).1.map_err(|error| current.failed(error))?;
        let path = current.path;
        current.stream.finish().map_err(|error| Error::write(&path, error, None))
    }

    /// How many frames go to the current file, of those that end there; at least one.
    fn portion(&self, ends: &[usize], start: usize) -> usize {
        let (Some(most), Some(current)) = (self.recording.rotation.size, &self.current) else {
            return ends.len();
        };
        let room = most.saturating_sub(current.size());
        let fits = ends.partition_point(|&end| (end - start) as u64 <= room);
        // What compression makes of it is known only afterwards: a part, and then a look.
        let most = if self.kind.compression == Compression::None { fits } else { fits.min(64) };
        most.max(1)
    }

    fn is_full(&self) -> bool {
        let Some(current) = self.current.as_ref().filter(|current| current.frames > 0) else {
            return false;
        };
        let rotation = self.recording.rotation;
        rotation.size.is_some_and(|most| current.size() >= most)
            || rotation.time.is_some_and(|most| current.begun.elapsed() >= most)
    }

    fn rotate(&mut self) -> Result<()> {
        // A file that somebody has deleted by now is one of those that are not kept.
        if let Some(current) = self.current.take() {
            self.end(current)?;
        }
        let path = self.next_path();
        self.begun.push_back(path.clone());
        let most = self.recording.rotation.files.map_or(usize::MAX, |files| files as usize);
        while self.begun.len() > most.max(1) {
            // Somebody may have taken it away.
            let _ = self.begun.pop_front().map(fs::remove_file);
        }
        let opened = open(&path, true)?;
        self.begin_file(path, opened)
    }

    fn begin_file(&mut self, path: PathBuf, Opened { file, in_use }: Opened) -> Result<()> {
        let fail = |error| Error::write(&path, error, None);
        let target = Target { file, size: 0, shared: self.shared.clone() };
        let stream = match self.kind.compression {
            Compression::None => Stream::Plain(target),
            Compression::Gzip => {
                Stream::Gzip(flate2::write::GzEncoder::new(target, flate2::Compression::fast()))
            }
            Compression::Zstd => {
                Stream::Zstd(zstd::stream::write::Encoder::new(target, ZSTD_LEVEL).map_err(fail)?)
            }
        };
        let begun = Instant::now();
        let (_in_use, has_unflushed) = (in_use, false);
        let mut current = Current { path, _in_use, stream, begun, frames: 0, has_unflushed };
        let Recording { interfaces, .. } = &self.recording;
        let header = header(self.kind.format, interfaces, self.recording.snaplen());
        current.write(&header, []).1.map_err(|error| current.failed(error))?;
        self.shared.files.fetch_add(1, Relaxed);
        self.current = Some(current);
        Ok(())
    }

    /// The file that is begun now. With rotation: one that is not there, or may be overwritten and is none
    /// of those that were begun here.
    fn next_path(&mut self) -> PathBuf {
        let file = &self.recording.file;
        if !self.recording.rotation.is_on() || is_stdout(file) {
            return file.clone();
        }
        let is_free = |path: &PathBuf| {
            !self.begun.contains(path)
                && (self.recording.overwrite || fs::symlink_metadata(path).is_err())
        };
        let numbers = self.number + 1..;
        let found = match timed(file) {
            None => numbers.map(|number| (number, numbered(file, number))).find(|n| is_free(&n.1)),
            Some(path) => {
                let again = (2..).map(|number| numbered(&path, number));
                let found = std::iter::once(path.clone()).chain(again).find(is_free);
                found.map(|path| (self.number, path))
            }
        };
        // There are more numbers than a directory has files.
        let (number, path) = found.unwrap_or_else(|| (self.number, file.clone()));
        self.number = number;
        path
    }
}

/// A name with the time of now in place of the conversions of strftime(3); `None`: it has none.
fn timed(file: &Path) -> Option<PathBuf> {
    let pattern = file.as_os_str().as_bytes();
    let name = if pattern.contains(&b'%') { local_time(pattern, SystemTime::now()) } else { None };
    name.map(|name| OsString::from_vec(name).into())
}

/// The path of file `number`, which stands before the ending.
fn numbered(file: &Path, number: u32) -> PathBuf {
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let known = [".gz", ".zst", ".pcap", ".pcapng"];
    let mut stem = &name[..];
    while let Some(shorter) = known.iter().find_map(|ending| stem.strip_suffix(ending)) {
        stem = shorter;
    }
    let ending = &name[stem.len()..];
    file.with_file_name(format!("{stem}_{number:05}{ending}"))
}

fn open(path: &Path, overwrite: bool) -> Result<Opened> {
    let fail = |error| Error::open(path, error);
    let is_used = || Error::InUse { file: path.into() };
    if is_stdout(path) {
        let file = io::stdout().as_fd().try_clone_to_owned().map(File::from).map_err(fail)?;
        let in_use = InUse::to_write(&file).ok_or_else(is_used)?;
        return Ok(Opened { file, in_use });
    }
    // A new file is made by its own name, never by a link to a place where nothing is yet: the link may be another's.
    let open = |new| OpenOptions::new().write(true).create_new(new).open(path);
    let file = match open(false) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => match open(true) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let why = "it is a link to a file that is not there";
                return Err(fail(io::Error::new(error.kind(), why)));
            }
            made => made.map_err(fail)?,
        },
        there => there.map_err(fail)?,
    };
    let has_something = file.metadata().is_ok_and(|data| data.is_file() && data.len() > 0);
    // Before anything is lost.
    let in_use = InUse::to_write(&file).ok_or_else(is_used)?;
    match has_something {
        true if overwrite => file.set_len(0).map_err(fail)?,
        true => return Err(Error::Exists { file: path.into() }),
        false => {}
    }
    Ok(Opened { file, in_use })
}

impl Current {
    /// Writes whole blocks, with frames that end at `ends`; returns how many frames are written. Where not all are, the
    /// file is cut behind the last that is whole, unless it is compressed, or standard output: others write there, too,
    /// and have before.
    fn write(
        &mut self,
        blocks: &[u8],
        ends: impl IntoIterator<Item = usize>,
    ) -> (u64, io::Result<()>) {
        let before = self.size();
        self.has_unflushed = !matches!(self.stream, Stream::Plain(_));
        let done = self.stream.write_all(blocks);
        let written = match (&done, &self.stream) {
            (Ok(()), _) => blocks.len() as u64,
            (Err(_), Stream::Plain(target)) => target.size - before,
            // How much of it a compressor has put into the file is not known.
            (Err(_), _) => 0,
        };
        let (mut frames, mut whole) = (0, 0);
        for end in ends.into_iter().map(|end| end as u64).take_while(|&end| end <= written) {
            (frames, whole) = (frames + 1, end);
        }
        if let (Err(_), Stream::Plain(target)) = (&done, &mut self.stream)
            && !is_stdout(&self.path)
        {
            target.cut(before + whole);
        }
        (frames, done)
    }

    fn failed(&self, error: io::Error) -> Error {
        let is_plain = matches!(self.stream, Stream::Plain(_));
        Error::write(&self.path, error, is_plain.then_some(self.frames))
    }

    fn size(&self) -> u64 {
        self.stream.target().size
    }

    /// Whether it is a file on a disk that has no name any more.
    fn is_deleted(&self) -> bool {
        let data = self.stream.target().file.metadata();
        data.is_ok_and(|data| data.is_file() && data.nlink() == 0)
    }
}

impl Stream {
    fn target(&self) -> &Target {
        match self {
            Stream::Plain(target) => target,
            Stream::Gzip(stream) => stream.get_ref(),
            Stream::Zstd(stream) => stream.get_ref(),
        }
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Stream::Plain(target) => target.write_all(bytes),
            Stream::Gzip(stream) => stream.write_all(bytes),
            Stream::Zstd(stream) => stream.write_all(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Plain(_) => Ok(()),
            Stream::Gzip(stream) => stream.flush(),
            Stream::Zstd(stream) => stream.flush(),
        }
    }

    fn finish(self) -> io::Result<()> {
        match self {
            Stream::Plain(_) => Ok(()),
            Stream::Gzip(stream) => stream.finish().map(drop),
            Stream::Zstd(stream) => stream.finish().map(drop),
        }
    }
}

impl Target {
    /// Cuts the file. A pipe cannot be shortened.
    fn cut(&mut self, size: u64) {
        if self.file.set_len(size).is_ok() {
            self.shared.bytes.fetch_sub(self.size - size, Relaxed);
            self.size = size;
        }
    }
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.write(bytes)?;
        self.size += count as u64;
        self.shared.bytes.fetch_add(count as u64, Relaxed);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::recorder::{Interface, Rotation};

    #[test]
    fn an_old_file_is_followed_by_another_when_there_is_another_frame() {
        let name = format!("ringway-output-{}.pcap", std::process::id());
        let age = |time| Rotation { time: Some(time), ..Rotation::default() };
        let recording = Recording {
            file: std::env::temp_dir().join(name),
            interfaces: vec![Interface::default()],
            rotation: age(Duration::ZERO),
            ..Recording::default()
        };
        let mut output = Output::new(recording, Arc::new(Shared::new(1))).unwrap();
        output.begin().unwrap();
        let blocks = Blocks { bytes: vec![0; 76], ends: vec![76] };
        // It is old enough, but has no frame.
        output.write(&blocks).unwrap();
        output.recording.rotation = age(Duration::MAX);
        output.write(&blocks).unwrap();
        output.recording.rotation = age(Duration::ZERO);
        output.write(&blocks).unwrap();
        output.finish().unwrap();
        let file = output.recording.file;
        let files: Vec<_> = (1..=3).map(|number| numbered(&file, number)).collect();
        let size = |path| fs::metadata(path).map_or(0, |data| data.len());
        let sizes: Vec<_> = files.iter().map(size).collect();
        files.iter().for_each(|path| drop(fs::remove_file(path)));
        assert_eq!(sizes, [24 + 2 * 76, 24 + 76, 0]);
    }
}
