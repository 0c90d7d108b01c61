//! What an operator should know of, for a daemon's log: few lines, however much happens.

use std::time::{Duration, Instant};

use ringway_proto::{EventKind, Level};

use crate::{bridges::Bridges, clock, conflicts::NameConflicts};

/// Between two reports.
const PAUSE: Duration = Duration::from_secs(10);
/// Lines of a report.
const LINES: usize = 10;

/// Something that an operator should know of.
#[derive(Debug)]
pub struct Notice {
    pub level: Level,
    pub kind: EventKind,
    /// The user of the port, or the cause of it, if that is a user.
    pub uid: Option<u32>,
    /// That port; empty if it is about several, or none.
    pub port: String,
    /// Of an interface's port: the inode number of its network namespace.
    pub netns: Option<u64>,
    pub text: String,
}

impl Notice {
    /// Of the daemon's own.
    pub(crate) fn new(level: Level, kind: EventKind, text: impl Into<String>) -> Notice {
        Notice { level, kind, uid: None, port: String::new(), netns: None, text: text.into() }
    }

    pub(crate) fn at(self, port: impl Into<String>) -> Notice {
        Notice { port: port.into(), ..self }
    }

    pub(crate) fn of_netns(self, netns: Option<u64>) -> Notice {
        Notice { netns, ..self }
    }

    pub(crate) fn of_user(self, uid: u32) -> Notice {
        Notice { uid: Some(uid), ..self }
    }
}

/// When there was a report.
#[derive(Debug, Default)]
pub(crate) struct Notices {
    last: Option<Instant>,
    /// What is to be told at once.
    urgent: Vec<Notice>,
}

impl Notices {
    /// Something that is told with the next report, however soon that is.
    pub fn add(&mut self, notice: Notice) {
        self.urgent.push(notice);
    }

    /// What is to be told at once; ports that have begun to send with addresses of others since the
    /// last report; and names that users asked for and others have.
    pub fn of(&mut self, bridges: &mut Bridges, conflicts: &mut NameConflicts) -> Vec<Notice> {
        let warn = |kind, text: String| Notice::new(Level::Warn, kind, text);
        self.urgent.extend(bridges.loops().into_iter().map(|(name, other)| {
            let text = format!(
                "{name}: blocked, because what left the switch by {other} came back by it; end that \
                 connection outside the switch, or take one of them off, and run \
                 `ringway switch port {name} --unblock`"
            );
            warn(EventKind::Loop, text).at(name)
        }));
        let now = clock::now();
        if self.last.is_some_and(|last| now.duration_since(last) < PAUSE) {
            return std::mem::take(&mut self.urgent);
        }
        let (mut moves, asked) = (bridges.moves(), conflicts.take_lines());
        if moves.is_empty() && asked.is_empty() {
            return std::mem::take(&mut self.urgent);
        }
        self.last = Some(now);
        moves.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let others = moves.len().saturating_sub(LINES);
        let line = |(name, count): &(String, u64)| {
            let text = format!(
                "{name}: sends with addresses that were behind other ports ({count} times); if no \
                 machine has moved, bind it to its own: `ringway switch port {name} --one-address`"
            );
            warn(EventKind::AddressMove, text).at(name)
        };
        let mut lines = std::mem::take(&mut self.urgent);
        lines.extend(moves.iter().take(LINES).map(line));
        if others > 0 {
            let text = format!("and so do {others} other ports");
            lines.push(warn(EventKind::AddressMove, text));
        }
        let others = asked.len().saturating_sub(LINES);
        let asked = asked.into_iter().take(LINES);
        lines.extend(asked.map(|line| warn(EventKind::NameConflict, line)));
        if others > 0 {
            let text =
                format!("and {others} other names were asked for by users who may not have them");
            lines.push(warn(EventKind::NameConflict, text));
        }
        lines
    }
}
