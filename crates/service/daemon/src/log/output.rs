//! Where events go. No output waits for its reader: a line for which there is no room is lost, and counted.

use std::{
    fs::OpenOptions,
    io::{self, Write},
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::fs::OpenOptionsExt,
    },
    path::Path,
};

use ringway_proto::{Event, EventKind, Level};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{FileType, fstat},
    io::Errno,
    net::{SendFlags, send},
};

use super::{
    file::LogFile,
    journal::{self, Journal, priority},
    sentence,
};

/// What `JOURNAL_STREAM` tells: device and number of what the service manager has made standard error.
pub type JournalStream = Option<(u64, u64)>;

/// Whose log it is.
#[derive(Clone, Copy, Debug)]
pub enum Place<'a> {
    System,
    /// With its file, if its user has a place for one.
    Private(Option<&'a Path>),
}

/// See above.
pub struct Outputs {
    /// Standard error is read by the journal.
    is_journal: bool,
    journal: Option<Journal>,
    stderr: Stderr,
    file: Option<LogFile>,
    /// There is a file for all else than what its user is to see.
    is_private: bool,
    lost: u64,
}

/// Standard error, by the way in which writing to it does not wait.
enum Stderr {
    Socket,
    /// A description of its own: others that have standard error may count on waiting.
    Opened(OwnedFd),
    /// A file never waits; else it is asked whether there is room, which another writer may take meanwhile.
    Itself,
}

impl Outputs {
    pub const NONE: Outputs = Outputs {
        is_journal: false,
        journal: None,
        stderr: Stderr::Itself,
        file: None,
        is_private: false,
        lost: 0,
    };

    pub fn is_journal(&self) -> bool {
        self.is_journal
    }

    /// Standard error, as it is to be for each process of the daemon.
    pub fn begin(&mut self, journal: JournalStream) {
        let own = fstat(io::stderr()).ok().map(|found| (found.st_dev, found.st_ino));
        self.is_journal = own.is_some() && own == journal;
    }

    /// The rest.
    pub fn open(&mut self, place: Place<'_>) -> io::Result<()> {
        self.stderr = Stderr::open();
        self.journal = self.open_journal();
        if let Place::Private(file) = place {
            self.is_private = true;
            self.file = file.map(LogFile::open).transpose()?;
        }
        Ok(())
    }

    /// Without it there are the lines of standard error.
    fn open_journal(&self) -> Option<Journal> {
        self.is_journal.then(|| Journal::open(Path::new(journal::SOCKET)).ok()).flatten()
    }

    /// All but standard error. The connection to the journal, if there is one, or there can be: it goes on.
    pub fn close(&mut self) -> Option<OwnedFd> {
        (self.file, self.stderr) = (None, Stderr::Itself);
        self.journal.take().or_else(|| self.open_journal()).map(OwnedFd::from)
    }

    pub fn keep_journal(&mut self, journal: Option<OwnedFd>) {
        self.journal = journal.map(Journal::from);
    }

    pub fn write(&mut self, event: &Event) {
        let sentence = sentence(event);
        if let Some(file) = &mut self.file {
            let _ = file.write(event, &sentence);
        }
        if self.is_private && !is_for_user(event) {
            return;
        }
        let sentence = match self.lost {
            0 => sentence,
            lost => {
                format!("{sentence} ({lost} lines before this one are missing: nobody read them)")
            }
        };
        match self.journal.as_ref().map(|journal| journal.write(event, &sentence)) {
            Some(Ok(())) => {
                self.lost = 0;
                return;
            }
            Some(Err(error)) if error.kind() == io::ErrorKind::WouldBlock => return self.lost += 1,
            // Too long for a datagram, or journald is not there: there are the lines.
            Some(Err(_)) | None => {}
        }
        let prefix = prefix(self.is_journal, event.level);
        let line = format!("{prefix}ringwayd: {sentence}\n");
        match self.stderr.write(line.as_bytes()) {
            Ok(()) => self.lost = 0,
            Err(_) => self.lost += 1,
        }
    }
}

/// What a private daemon's user finds beside its socket: what is wrong with the daemon, and on switches. What
/// programs were told themselves is in its file.
fn is_for_user(event: &Event) -> bool {
    let is_told = [EventKind::Refused, EventKind::LinkLost, EventKind::SlowRequest];
    event.level <= Level::Warn && !is_told.contains(&event.kind)
}

/// The journal takes a line's level from its beginning.
pub fn prefix(is_journal: bool, level: Level) -> String {
    if is_journal { format!("<{}>", priority(level)) } else { String::new() }
}

/// Writes to standard error if there is room.
pub fn write_plainly(text: &str) {
    let _ = Stderr::Itself.write(text.as_bytes());
}

impl Stderr {
    fn open() -> Stderr {
        let kind = fstat(io::stderr()).map(|found| FileType::from_raw_mode(found.st_mode));
        match kind {
            Ok(FileType::Socket) => Stderr::Socket,
            Ok(FileType::Fifo | FileType::CharacterDevice) => {
                let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
                let opened =
                    OpenOptions::new().write(true).custom_flags(flags).open("/proc/self/fd/2");
                opened.map_or(Stderr::Itself, |file| Stderr::Opened(file.into()))
            }
            _ => Stderr::Itself,
        }
    }

    /// In one piece: other processes of the daemon write there, too.
    fn write(&self, bytes: &[u8]) -> rustix::io::Result<()> {
        let written = match self {
            Stderr::Socket => send(io::stderr(), bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)?,
            Stderr::Opened(fd) => rustix::io::write(fd, bytes)?,
            Stderr::Itself if has_room(io::stderr().as_fd()) => {
                return io::stderr().write_all(bytes).map_err(|_| Errno::IO);
            }
            Stderr::Itself => return Err(Errno::AGAIN),
        };
        if written == bytes.len() { Ok(()) } else { Err(Errno::AGAIN) }
    }
}

fn has_room(fd: BorrowedFd<'_>) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::OUT)];
    // What has gone says so when it is written to.
    poll(&mut fds, Some(&now)).is_ok_and(|ready| ready > 0)
}
