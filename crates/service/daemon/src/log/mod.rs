//! The log: what an operator is told. All of it passes here, so that no name or text of a client's does
//! anything to the terminal that shows it, and no client fills it or holds up the daemon with it.
//!
//! ```text
//!  log(entry) -- level? -- limit of user and kind? --> outputs: journal, or standard error; a file
//!                                                 \--> kept: the last ones, for `ringway log`
//! ```
//!
//! The types are the daemon's own, not those of the crate `tracing`: an event is a message of the protocol,
//! with a fixed set of fields and a user that may see it, so a subscriber would have to take each one apart
//! and make that message of it.

mod file;
mod journal;
mod kept;
mod limit;
mod output;
mod time;

use std::{
    fmt::Display,
    io::{self, Write},
    panic::{self, PanicHookInfo},
    sync::{Mutex, MutexGuard},
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use ringway_proto::{Cause, Event, EventKind, EventPage, Level, printable};
use rustix::{
    event::{EventfdFlags, eventfd},
    fd::OwnedFd,
};

use kept::Kept;
use limit::Limits;
use output::Outputs;

pub use file::private_path;
pub use output::{JournalStream, Place};

/// Bytes of a text at most.
const TEXT: usize = 1000;
/// Bytes of another field at most.
const FIELD: usize = 300;

static LOG: Mutex<Log> = Mutex::new(Log {
    level: Level::Info,
    limits: Limits::new(),
    outputs: Outputs::NONE,
    kept: Kept::new(),
    news: None,
    is_awaited: false,
});

struct Log {
    level: Level,
    limits: Limits,
    outputs: Outputs,
    kept: Kept,
    /// Written to when there is another event, and somebody waits for one.
    news: Option<OwnedFd>,
    is_awaited: bool,
}

/// What is to be logged.
#[derive(Clone, Debug)]
pub struct Entry {
    level: Level,
    kind: EventKind,
    audit: bool,
    by: Option<By>,
    port: String,
    switch: String,
    mode: String,
    cause: String,
    text: String,
    netns: Option<u64>,
}

/// The user and process that an event concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct By {
    pub uid: u32,
    pub pid: Option<u32>,
    /// Users of one account have one limit.
    pub account: u32,
}

impl Entry {
    pub fn new(level: Level, kind: EventKind, text: impl Display) -> Entry {
        let [port, switch, mode, cause] = [const { String::new() }; 4];
        let (audit, by, netns, text) = (false, None, None, text.to_string());
        Entry { level, kind, audit, by, port, switch, mode, cause, text, netns }
    }

    pub fn error(kind: EventKind, text: impl Display) -> Entry {
        Entry::new(Level::Error, kind, text)
    }

    pub fn warn(kind: EventKind, text: impl Display) -> Entry {
        Entry::new(Level::Warn, kind, text)
    }

    pub fn info(kind: EventKind, text: impl Display) -> Entry {
        Entry::new(Level::Info, kind, text)
    }

    /// It tells of something granted or refused.
    pub fn audit(self) -> Entry {
        Entry { audit: true, ..self }
    }

    pub fn by(self, by: By) -> Entry {
        Entry { by: Some(by), ..self }
    }

    /// The port and, as its name tells, the switch.
    pub fn at(self, name: &str) -> Entry {
        let (switch, port) = match name.split_once(':') {
            Some((switch, _)) if switch.starts_with("vale") => (switch, name),
            None if name.starts_with("vale") => (name, ""),
            _ => ("", name),
        };
        Entry { port: port.into(), switch: switch.into(), ..self }
    }

    pub fn mode(self, mode: impl Into<String>) -> Entry {
        Entry { mode: mode.into(), ..self }
    }

    /// The inode number of the network namespace of the port's interface.
    pub fn netns(self, netns: Option<u64>) -> Entry {
        Entry { netns, ..self }
    }

    pub fn cause(self, cause: impl Into<String>) -> Entry {
        Entry { cause: cause.into(), ..self }
    }

    /// The same of an error of the operating system's.
    pub fn caused_by(self, error: &io::Error) -> Entry {
        match error.raw_os_error() {
            Some(errno) => self.cause(format!("{:?}", Cause::System(errno))),
            None => self,
        }
    }
}

fn state() -> MutexGuard<'static, Log> {
    LOG.lock().unwrap_or_else(|e| e.into_inner())
}

/// Logs an event.
pub fn log(entry: Entry) {
    state().add(entry, Instant::now());
}

/// Writes an error that may take several lines, as one of the configuration does, before the program ends.
pub fn log_lines(text: impl Display) {
    let text = printable(&text.to_string(), &['\n']);
    let prefix = output::prefix(state().outputs.is_journal(), Level::Error);
    let _ = io::stderr().write_all(format!("{prefix}ringwayd: {text}\n").as_bytes());
}

/// From here on standard error gets lines in one piece that wait for no reader, and panics are events.
/// `journal`: where the service manager has it.
pub fn begin(journal: JournalStream) {
    state().outputs.begin(journal);
    panic::set_hook(Box::new(log_panic));
}

/// Opens the outputs of the daemon itself. To be called before the process confines itself. `Some`: there is
/// no file.
pub fn open(level: Level, place: Place<'_>) -> Option<io::Error> {
    let mut state = state();
    state.level = level;
    state.kept.begin(micros());
    state.outputs.open(place).err()
}

/// For a process that was forked from the daemon: its outputs are closed, but standard error, and a connection to
/// the journal, which it may [keep](keep_journal).
pub fn forked() -> Option<OwnedFd> {
    let mut state = state();
    state.news = None;
    state.outputs.close()
}

/// What the process that was forked logs has its fields in the journal, too.
pub fn keep_journal(journal: Option<OwnedFd>) {
    state().outputs.keep_journal(journal);
}

/// The level of what is logged.
pub fn level() -> Level {
    state().level
}

/// From now on this is logged.
pub fn set_level(level: Level) {
    state().level = level;
}

/// A descriptor that is readable when there are events [that are awaited](await_news).
pub fn news() -> io::Result<OwnedFd> {
    let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
    state().news = Some(event.try_clone()?);
    Ok(event)
}

/// Whether anybody waits for events.
pub fn await_news(is_awaited: bool) {
    state().is_awaited = is_awaited;
}

/// Events from a number on that a user may see. `None`: all of them.
pub fn page(from: u64, seen_by: Option<u32>) -> EventPage {
    state().kept.page(from, seen_by)
}

impl Log {
    fn add(&mut self, entry: Entry, now: Instant) {
        if entry.level > self.level {
            return;
        }
        let Entry { level, kind, audit, by, port, switch, mode, cause, text, netns } = entry;
        // What follows from the operator's files is no client's doing.
        let is_operators = by.is_none() && kind == EventKind::Config;
        let left_out = match is_operators {
            true => Some(0),
            false => self.limits.admit(by.map(|by| by.account), kind, now),
        };
        let Some(left_out) = left_out else { return };
        let event = Event {
            number: 0,
            time: micros(),
            level,
            kind,
            audit,
            uid: by.map(|by| by.uid),
            pid: by.and_then(|by| by.pid),
            port: short(&port, FIELD),
            switch: short(&switch, FIELD),
            mode: short(&mode, FIELD),
            cause: short(&cause, FIELD),
            left_out,
            text: short(&text, TEXT),
            netns,
        };
        self.outputs.write(&event);
        self.kept.add(event);
        if self.is_awaited
            && let Some(news) = &self.news
        {
            // It fails when it was written to as often as a number has values: then it is readable.
            let _ = rustix::io::write(news, &1u64.to_ne_bytes());
        }
    }
}

/// What is printable of a text, on one line, and not too long.
fn short(text: &str, longest: usize) -> String {
    let mut text = printable(text, &[]);
    if text.len() > longest {
        let fits = (0..=longest - 3).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(fits);
        text.push_str("...");
    }
    text
}

/// The sentence of an event, with how many are not told.
fn sentence(event: &Event) -> String {
    match (event.left_out, event.uid) {
        (0, _) => event.text.clone(),
        (count, Some(uid)) => {
            format!("{} ({count} more of this kind, of user {uid}, were left out)", event.text)
        }
        (count, None) => format!("{} ({count} more of this kind were left out)", event.text),
    }
}

fn micros() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_micros().try_into().unwrap_or(u64::MAX)
}

/// Says where a panic was. The lock may be held by the thread that panics: then it is told without.
fn log_panic(info: &PanicHookInfo<'_>) {
    let backtrace = std::backtrace::Backtrace::capture();
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("of no name");
    let text = format!("BUG: thread {name} {info}").replace('\n', " ");
    match LOG.try_lock() {
        Ok(mut log) => log.add(Entry::error(EventKind::Bug, text), Instant::now()),
        Err(_) => output::write_plainly(&format!("ringwayd: {}\n", short(&text, TEXT))),
    }
    if backtrace.status() == std::backtrace::BacktraceStatus::Captured {
        output::write_plainly(&printable(&format!("{backtrace}\n"), &['\n']));
    }
}

#[cfg(test)]
mod fixture {
    use super::{Event, EventKind, Level};

    /// An event of which nothing is told.
    pub fn event() -> Event {
        let [port, switch, mode, cause, text] = [const { String::new() }; 5];
        let (level, kind, audit) = (Level::Info, EventKind::PortOpen, false);
        let (number, time, uid, pid, left_out) = (0, 0, None, None, 0);
        Event {
            number,
            time,
            level,
            kind,
            audit,
            uid,
            pid,
            port,
            switch,
            mode,
            cause,
            left_out,
            text,
            netns: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_one_line_and_does_nothing_to_a_terminal() {
        for (text, written) in [
            ("vale0:b\u{fc}ro is full", "vale0:b\u{fc}ro is full"),
            ("\u{1b}[2J\nringwayd: all is well", "\\u{1b}[2J\\nringwayd: all is well"),
            ("\u{9b}2J \u{202e}a\u{200b}", "\\u{9b}2J \\u{202e}a\\u{200b}"),
        ] {
            assert_eq!(short(text, TEXT), written);
        }
        let long = short(&"\u{fc}".repeat(600), TEXT);
        assert!(long.len() <= TEXT && long.ends_with("\u{fc}..."), "{long}");
    }

    fn fresh() -> Log {
        let (level, limits, outputs) = (Level::Info, Limits::new(), Outputs::NONE);
        Log { level, limits, outputs, kept: Kept::new(), news: None, is_awaited: false }
    }

    #[test]
    fn what_matters_less_is_not_logged() {
        let (mut log, now) = (fresh(), Instant::now());
        let add = |log: &mut Log, level| {
            log.add(Entry::new(level, EventKind::Config, level), now);
        };
        add(&mut log, Level::Debug);
        add(&mut log, Level::Info);
        log.level = Level::Warn;
        add(&mut log, Level::Info);
        add(&mut log, Level::Error);
        let texts: Vec<_> = log.kept.page(0, None).events.into_iter().map(|e| e.text).collect();
        assert_eq!(texts, ["info", "error"]);
    }

    /// What is left out is told with the next one.
    #[test]
    fn a_flood_is_bounded_and_counted() {
        let (mut log, now) = (fresh(), Instant::now());
        let entry =
            Entry::info(EventKind::Refused, "no").by(By { uid: 7, pid: Some(1), account: 7 });
        (0..1000).for_each(|_| log.add(entry.clone(), now));
        let kept = log.kept.page(0, None).events.len();
        assert_eq!(kept, 20);
        log.add(entry, now + std::time::Duration::from_secs(1));
        let events = log.kept.page(0, None).events;
        let last = events.last().unwrap();
        assert_eq!((events.len(), last.left_out), (21, 980));
        assert_eq!(sentence(last), "no (980 more of this kind, of user 7, were left out)");
    }

    #[test]
    fn names_tell_port_and_switch() {
        let at = |name| {
            let Entry { port, switch, .. } = Entry::info(EventKind::Attach, "").at(name);
            (switch, port)
        };
        assert_eq!(at("vale0:a"), ("vale0".into(), "vale0:a".into()));
        assert_eq!(at("vale0"), ("vale0".into(), String::new()));
        assert_eq!(at("eth0{1"), (String::new(), "eth0{1".into()));
    }
}
