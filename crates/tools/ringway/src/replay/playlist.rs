//! The files of a replay as one sequence of frames.

use crate::capture_file::skipped_text;
use crate::error::{Error, Result};
use crate::output::note;
use crate::replay::file::FileArg;
use ringway::Recorded;
use ringway_file::{Next, Playback, Replay};
use rustix::event::{EventfdFlags, eventfd};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// How the frames of several files follow each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Order {
    /// One file after the other
    #[default]
    Sequence,
    /// All files from the beginning, by the time since each file's first frame
    Start,
    /// By the times that the frames were recorded at
    Time,
}

/// One file, and where it is.
#[derive(Debug)]
struct Track {
    name: String,
    playback: Playback,
    /// Nanoseconds that it begins later.
    offset: u64,
    /// The round's first frame, as the file has it.
    first: Option<u64>,
    /// When the last frame was.
    last: u64,
    has_ended: bool,
}

/// What a track has next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Head {
    /// A frame of the round at hand, with the file's time.
    Frame(u64),
    /// Nothing, as yet.
    Nothing,
    /// Nothing of this round any more.
    Through,
}

/// What comes next, and when, in nanoseconds since the first frame of all.
#[derive(Debug, PartialEq, Eq)]
pub enum Upcoming<'p> {
    /// `recorded`: when it was recorded, since 1970, and its length on the wire; in files that are
    /// merged by the time since their beginning, or are repeated, the time that goes on from the first
    /// frame of all, which was recorded when it `began`.
    Frame {
        bytes: &'p [u8],
        time: u64,
        recorded: Recorded,
        began: u64,
    },
    Nothing,
    End,
}

/// The files of a replay, being read.
#[derive(Debug)]
pub struct Playlist {
    tracks: Vec<Track>,
    order: Order,
    doorbell: OwnedFd,
    round: u64,
    /// Where this round begins, and, of files one after the other, the file at hand.
    base: u64,
    /// What the files' own times begin with, where those decide.
    epoch: Option<u64>,
    /// The track that was chosen, and the time of its frame.
    chosen: Option<(usize, u64)>,
    /// When the last frame was.
    last: u64,
    /// When the first frame of all was recorded, and its time here.
    begin: Option<[u64; 2]>,
}

impl Playlist {
    /// Begins to read all files, each to be played `loops` times (0: for ever).
    pub fn open(files: &[FileArg], order: Order, loops: u64) -> Result<Playlist> {
        let is_pipe = |file: &&FileArg| {
            let is_other = |data: std::fs::Metadata| !data.is_file();
            file.path.as_os_str() == "-" || file.path.metadata().is_ok_and(is_other)
        };
        if let Some(pipe) = files.iter().find(is_pipe).filter(|_| loops != 1) {
            let wrong = "a pipe has no second round; leave --loop out, or name a file";
            return Err(Error::Value(format!("{}: {wrong}", pipe.path.display())));
        }
        let fail = |what| move |error: std::io::Error| Error::System { what, source: error };
        let doorbell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|error| fail("eventfd")(error.into()))?;
        let mut tracks = Vec::new();
        for file in files {
            let notify = doorbell.try_clone().map_err(fail("copying a descriptor"))?;
            let replay = Replay { speed: 0.0, loops, ..file.addresses };
            tracks.push(Track {
                name: file.path.display().to_string(),
                playback: Playback::open(&file.path, replay, Some(notify))?,
                offset: file.offset,
                first: None,
                last: 0,
                has_ended: false,
            });
        }
        Ok(Playlist {
            tracks,
            order,
            doorbell,
            round: 0,
            base: 0,
            epoch: None,
            chosen: None,
            last: 0,
            begin: None,
        })
    }

    /// Readable when there is news.
    pub fn doorbell(&self) -> BorrowedFd<'_> {
        self.doorbell.as_fd()
    }

    /// The news has been heard: to be called before looking again.
    pub fn heard(&self) {
        // Empty means that there was none.
        let _ = rustix::io::read(&self.doorbell, &mut [0; 8]);
    }

    /// The file whose frame is next, or that is waited for.
    pub fn source(&self) -> Option<&str> {
        let next = self.tracks.iter().find(|track| !track.has_ended);
        self.chosen.map(|(index, _)| &self.tracks[index]).or(next).map(|track| &*track.name)
    }

    /// What comes next.
    ///
    /// # Errors
    /// When a file is damaged or cannot be read.
    #[inline]
    pub fn peek(&mut self) -> Result<Upcoming<'_>> {
        if self.chosen.is_none() {
            loop {
                match self.choose()? {
                    Some(Head::Frame(_)) => break,
                    Some(_) => return Ok(Upcoming::Nothing),
                    None if self.tracks.iter().all(|track| track.has_ended) => {
                        return Ok(Upcoming::End);
                    }
                    None => self.begin_round(),
                }
            }
        }
        let Some((index, time)) = self.chosen else { return Ok(Upcoming::Nothing) };
        let offset = self.tracks[index].offset;
        match self.tracks[index].playback.peek() {
            Next::Frame { bytes, time: own, length, .. } => {
                let own = own.saturating_add(offset);
                let [began, at] = *self.begin.get_or_insert([own, time]);
                let goes_on = self.order == Order::Start || self.round > 0;
                let time_of_all = began.saturating_add(time).saturating_sub(at);
                let recorded = Recorded { time: if goes_on { time_of_all } else { own }, length };
                Ok(Upcoming::Frame { bytes, time, recorded, began })
            }
            Next::Nothing | Next::End => Ok(Upcoming::Nothing),
        }
    }

    /// The frame that was next has gone.
    #[inline]
    pub fn advance(&mut self) {
        if let Some((index, time)) = self.chosen.take() {
            let track = &mut self.tracks[index];
            track.playback.advance();
            track.last = time;
            self.last = self.last.max(time);
        }
    }

    /// Chooses the next frame of this round. `None`: there is none any more.
    fn choose(&mut self) -> Result<Option<Head>> {
        if self.order == Order::Sequence {
            return self.choose_in_sequence();
        }
        if self.order == Order::Time && self.epoch.is_none() && !self.find_epoch()? {
            return Ok(Some(Head::Nothing));
        }
        let mut earliest = None;
        for index in 0..self.tracks.len() {
            match self.tracks[index].head(self.round)? {
                Head::Nothing => return Ok(Some(Head::Nothing)),
                Head::Through => (),
                Head::Frame(recorded) => {
                    let time = self.tracks[index].time(recorded, self.base, self.epoch);
                    if earliest.is_none_or(|(_, known)| time < known) {
                        earliest = Some((index, time));
                    }
                }
            }
        }
        self.chosen = earliest;
        Ok(earliest.map(|(_, time)| Head::Frame(time)))
    }

    fn choose_in_sequence(&mut self) -> Result<Option<Head>> {
        for index in 0..self.tracks.len() {
            let track = &mut self.tracks[index];
            match track.head(self.round)? {
                Head::Through => (),
                Head::Nothing => return Ok(Some(Head::Nothing)),
                Head::Frame(recorded) => {
                    if track.first.is_none() {
                        self.base = self.last;
                    }
                    let time = track.time(recorded, self.base, None);
                    self.chosen = Some((index, time));
                    return Ok(Some(Head::Frame(time)));
                }
            }
        }
        Ok(None)
    }

    /// Finds the first time of all files. False: some have not been read that far.
    fn find_epoch(&mut self) -> Result<bool> {
        let mut first = None;
        for track in &mut self.tracks {
            match track.head(self.round)? {
                Head::Nothing => return Ok(false),
                Head::Through => (),
                Head::Frame(time) => {
                    let time = time.saturating_add(track.offset);
                    first = Some(first.map_or(time, |known: u64| known.min(time)));
                }
            }
        }
        self.epoch = first;
        Ok(true)
    }

    /// The next round begins when the last one has ended.
    fn begin_round(&mut self) {
        self.round += 1;
        self.base = self.last;
        self.epoch = None;
        for track in &mut self.tracks {
            track.first = None;
        }
    }

    /// Says what a user should know of the files that have been read.
    pub fn tell_of_files(&self) {
        for Track { name, playback, .. } in &self.tracks {
            if let Some(at) = playback.cut() {
                note(format_args!(
                    "{name}: byte {at}: the file ends in the middle of a block; everything before it was sent"
                ));
            }
            let skipped = playback.skipped();
            if let Some(text) = skipped_text(skipped.frames, skipped.link) {
                note(format_args!("{name}: {text}"));
            }
            if playback.partial() > 0 {
                let cut = playback.partial();
                note(format_args!(
                    "{name}: {cut} frames are not whole in it; they went out cut off"
                ));
            }
        }
    }
}

impl Track {
    #[inline]
    fn head(&mut self, round: u64) -> Result<Head> {
        Ok(match self.playback.peek() {
            Next::Frame { time, round: this, .. } if this == round => Head::Frame(time),
            Next::Frame { .. } => Head::Through,
            Next::Nothing => Head::Nothing,
            Next::End => {
                self.has_ended = true;
                match self.playback.error() {
                    Some(error) => return Err(error.into()),
                    None => Head::Through,
                }
            }
        })
    }

    /// When a frame is, in a round, or a file, that begins at `base`. `epoch`: what the files' times are
    /// counted from, if not from this one's first frame. Clocks that stepped back while the file was
    /// written do not reorder its frames.
    #[inline]
    fn time(&mut self, recorded: u64, base: u64, epoch: Option<u64>) -> u64 {
        let first = *self.first.get_or_insert(recorded);
        let since = recorded.saturating_add(self.offset).saturating_sub(epoch.unwrap_or(first));
        base.saturating_add(since).max(self.last)
    }
}
