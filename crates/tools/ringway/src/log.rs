//! `ringway log`: what the daemon has logged, and logs.

use crate::error::{Error, Result};
use crate::namespace;
use crate::output::{Output, note};
use crate::port_notes;
use crate::run_loop::{self, RunLoop};
use ringway::{Control, Event, EventPage, Level, SocketPath};
use ringway_file::local_time;
use serde::Serialize;
use std::fmt::{self, Display};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant, UNIX_EPOCH};

#[derive(clap::Args)]
#[command(after_help = "\
The daemon keeps its last 2048 events in memory. Root, and the user of a private daemon, see all of
them; other users see those about themselves: what they were given or refused, and what has become
of it. More is in the journal (`journalctl -u ringwayd`, audit events alone with RINGWAY_AUDIT=1),
and, for a private daemon, in ringway/ringwayd.log of $XDG_STATE_HOME or ~/.local/state.

Audit events tell what was granted and refused, and to which user: interfaces, switches, persistent ports, filters
and flows. Ports of switches and pipes are events of the level debug, which the daemon does not have
unless it is told so: `ringwayd --log-level debug`, log_level in its configuration, or, until it
ends, --set-level. If a user has more than 20 events of one kind at once, or one a second in the long
run, the rest is left out, and the next event says how many were.

With --json each event is an object of the type `event`:
  number, time      its number, which grows, also from one daemon to the next; seconds since 1970
  level, kind       error, warn, info, debug; daemon-start, port-open, attach, refused, ...
  audit             whether it tells of something granted or refused
  uid, pid          the user and the process that it concerns; null if none
  port, switch      null if it is about none
  netns             the inode number of an interface's network namespace, as `ringway ports` has it;
                    without --json it is shown if that is another namespace than the command's
  mode, cause       an interface's mode, and why it is no better one; why something was refused
  errno             the number of the operating system's error, if one is the cause
  left_out, text    events of its kind and user left out before it; the sentence

--follow goes on when the daemon is started anew, and waits for a daemon if there is none. The command
starts no daemon, and a private daemon ends although it is followed.

Examples:
  ringway log
  ringway log --follow --audit
  ringway log --json | jq 'select(.kind == \"refused\") | .uid, .text'
  ringway log --set-level debug")]
pub struct Args {
    /// Go on with what the daemon logs, as it happens
    #[arg(short, long)]
    follow: bool,
    /// Only audit events: what was granted and refused, and to which user
    #[arg(long)]
    audit: bool,
    /// Only events that matter as much as this: error, warn, info, debug
    #[arg(long, value_name = "LEVEL", default_value = "debug", hide_default_value = true)]
    level: Level,
    /// Have the daemon log what matters as much as this, until it ends, and print nothing
    #[arg(long, value_name = "LEVEL", conflicts_with_all = ["follow", "audit", "level"])]
    set_level: Option<Level>,
}

/// Between two attempts to find a daemon.
const PAUSE: Duration = Duration::from_millis(200);

/// An event as it is shown.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "type", rename = "event")]
pub struct Line<'a> {
    number: u64,
    /// Seconds since 1970.
    time: f64,
    level: &'static str,
    kind: &'static str,
    audit: bool,
    uid: Option<u32>,
    pid: Option<u32>,
    port: Option<&'a str>,
    switch: Option<&'a str>,
    netns: Option<u64>,
    mode: Option<&'a str>,
    cause: Option<String>,
    /// Of the operating system's error, where one is the cause.
    errno: Option<i32>,
    /// Events of the same kind and user that were left out before it, because there were too many.
    left_out: u64,
    text: &'a str,
}

impl Line<'_> {
    fn of(event: &Event) -> Line<'_> {
        let Event { number, time, level, kind, audit, uid, pid, left_out, netns, .. } = *event;
        let (cause, errno) = cause_of(&event.cause);
        Line {
            number,
            time: time as f64 / 1e6,
            level: level.name(),
            kind: kind.name(),
            audit,
            uid,
            pid,
            port: Some(event.port.as_str()).filter(|text| !text.is_empty()),
            switch: Some(event.switch.as_str()).filter(|text| !text.is_empty()),
            netns,
            mode: Some(event.mode.as_str()).filter(|text| !text.is_empty()),
            cause: Some(cause).filter(|text| !text.is_empty()),
            errno,
            left_out,
            text: &event.text,
        }
    }
}

/// A cause as errors have it, `no_room`, and the number of the operating system's error: the daemon writes
/// `NoRoom` and `System(12)`.
fn cause_of(text: &str) -> (String, Option<i32>) {
    let errno = text.strip_prefix("System(").and_then(|rest| rest.strip_suffix(')'));
    if let Some(errno) = errno.and_then(|errno| errno.parse().ok()) {
        return ("system".into(), Some(errno));
    }
    let mut name = String::new();
    for letter in text.chars() {
        if letter.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(letter.to_ascii_lowercase());
    }
    (name, None)
}

impl Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Line { level, kind, text, .. } = self;
        let time = UNIX_EPOCH + Duration::from_secs_f64(self.time);
        let time = local_time(b"%Y-%m-%d %H:%M:%S", time).unwrap_or_default();
        let time = String::from_utf8_lossy(&time);
        write!(f, "{time} {level:<5} {kind}: {text}")?;
        if let Some(netns) = self.netns.filter(|netns| Some(*netns) != namespace::here()) {
            write!(f, " (network namespace {netns})")?;
        }
        if self.left_out > 0 {
            write!(f, " ({} more of this kind were left out)", self.left_out)?;
        }
        Ok(())
    }
}

pub fn run(args: &Args) -> Result<()> {
    if let Some(level) = args.set_level {
        Control::connect_running()?.set_log_level(level)?;
        let now = || Some(serde_json::json!({ "type": "log_level", "level": level.name() }));
        return Output::chosen().done("log", "level", None, now);
    }
    if args.follow { follow(args) } else { print(args) }
}

/// Prints what there is.
fn print(args: &Args) -> Result<()> {
    let control = Control::connect_running().inspect_err(|_| of_the_last())?;
    let mut from = 0;
    loop {
        let page = control.events(from, false)?;
        show(args, &page)?;
        if !page.more {
            return Ok(());
        }
        from = page.next;
    }
}

/// Says where the log of the last private daemon is: it ends with its last client, and its log stays.
fn of_the_last() {
    let SocketPath::Private { dir } = SocketPath::find() else { return };
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|it| it.is_absolute());
    let states =
        || absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")));
    let log = match absolute("RINGWAY_DIR") {
        Some(_) => Some(dir.join("ringwayd.events.log")),
        None => states().map(|states| states.join("ringway/ringwayd.log")),
    };
    if let Some(log) = log.filter(|log| log.is_file()) {
        note(format_args!("your daemon has ended; its log is {}", log.display()));
    }
}

fn show(args: &Args, page: &EventPage) -> Result<()> {
    if page.missed > 0 {
        let missed = page.missed;
        note(format_args!(
            "up to {missed} events are missing here: the daemon does not have them any more"
        ));
    }
    let is_wanted = |event: &&Event| event.level <= args.level && (event.audit || !args.audit);
    for event in page.events.iter().filter(is_wanted) {
        Output::chosen().write(&Line::of(event))?;
    }
    Ok(())
}

/// What a thread has that asks the daemon.
enum Heard {
    Page(EventPage),
    /// There is no daemon.
    Nothing(ringway::Error),
}

/// A thread asks, so that a signal ends the command while the daemon has nothing.
fn follow(args: &Args) -> Result<()> {
    let mut run_loop = RunLoop::begin(&run_loop::Args::default())?;
    let waker = run_loop.waker()?;
    let (sender, heard) = sync_channel(1);
    let ask = move || listen(&sender, || waker.wake());
    let thread = std::thread::Builder::new().name("ringway-log".into());
    thread.spawn(ask).map_err(|source| Error::System { what: "starting a thread", source })?;
    let mut is_waiting = false;
    while !run_loop.is_interrupted() {
        match next(&heard) {
            Some(Heard::Page(page)) => {
                is_waiting = false;
                show(args, &page)?;
            }
            Some(Heard::Nothing(error)) if !is_waiting => {
                is_waiting = true;
                port_notes::waiting_for_daemon(&error);
            }
            Some(Heard::Nothing(_)) => {}
            None => run_loop.sleep(Instant::now() + Duration::from_secs(3600))?,
        }
    }
    Ok(())
}

fn next(heard: &Receiver<Heard>) -> Option<Heard> {
    heard.try_recv().ok()
}

/// Asks for events, over one connection after the other, until nobody takes them.
fn listen(sender: &SyncSender<Heard>, wake: impl Fn()) {
    let (mut control, mut from) = (None, 0);
    loop {
        let asked = match control.take() {
            Some(connected) => Ok(connected),
            None => Control::connect_running(),
        };
        let page = asked.and_then(|connected: Control| {
            let page = connected.events(from, true)?;
            control = Some(connected);
            Ok(page)
        });
        let heard = match page {
            Ok(page) => {
                from = page.next;
                Heard::Page(page)
            }
            Err(error) => {
                std::thread::sleep(PAUSE);
                Heard::Nothing(error)
            }
        };
        if sender.send(heard).is_err() {
            return;
        }
        wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringway::EventKind;

    #[test]
    fn causes_are_spelled_as_in_errors() {
        for (said, expected) in [
            ("", ("", None)),
            ("Denied", ("denied", None)),
            ("NoRoom", ("no_room", None)),
            ("HeadersNotAccepted", ("headers_not_accepted", None)),
            ("System(12)", ("system", Some(12))),
        ] {
            assert_eq!(cause_of(said), (expected.0.to_owned(), expected.1));
        }
    }

    #[test]
    fn a_line_has_time_level_kind_and_text() {
        let event = Event {
            number: 3,
            time: 1_500_000,
            level: Level::Warn,
            kind: EventKind::Refused,
            audit: true,
            uid: Some(7),
            pid: None,
            port: "eth0".into(),
            switch: String::new(),
            mode: String::new(),
            cause: "Denied".into(),
            left_out: 2,
            text: "eth0: no".into(),
            netns: Some(7),
        };
        let line = Line::of(&event);
        let shown = line.to_string();
        let wanted =
            " warn  refused: eth0: no (network namespace 7) (2 more of this kind were left out)";
        assert!(shown.ends_with(wanted), "{shown}");
        let json = serde_json::to_value(line).unwrap();
        assert_eq!((&json["cause"], &json["errno"]), (&"denied".into(), &serde_json::Value::Null));
        assert_eq!((&json["time"], &json["pid"]), (&1.5.into(), &serde_json::Value::Null));
        assert_eq!((&json["port"], &json["switch"]), (&"eth0".into(), &serde_json::Value::Null));
    }
}
