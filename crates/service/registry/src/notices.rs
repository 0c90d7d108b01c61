//! What an operator should know of, for a daemon's log: few lines, however much happens.

use std::time::{Duration, Instant};

use crate::{bridges::Bridges, clock, conflicts::NameConflicts};

/// Between two reports.
const PAUSE: Duration = Duration::from_secs(10);
/// Lines of a report.
const LINES: usize = 10;

/// When there was a report.
#[derive(Debug, Default)]
pub(crate) struct Notices {
    last: Option<Instant>,
    /// What is to be told at once.
    urgent: Vec<String>,
}

impl Notices {
    /// Something that is told with the next report, however soon that is.
    pub fn add(&mut self, line: String) {
        self.urgent.push(line);
    }

    /// What is to be told at once; ports that have begun to send with addresses of others since the
    /// last report; and names that users asked for and others have.
    pub fn of(&mut self, bridges: &mut Bridges, conflicts: &mut NameConflicts) -> Vec<String> {
        self.urgent.extend(bridges.loops().into_iter().map(|(name, other)| {
            format!(
                "{name}: blocked, because what left the switch by {other} came back by it; end that \
                 connection outside the switch, or take one of them off, and run \
                 `ringway switch port {name} --unblock`"
            )
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
            format!(
                "{name}: sends with addresses that were behind other ports ({count} times); if no \
                 machine has moved, bind it to its own: `ringway switch port {name} --one-address`"
            )
        };
        let mut lines = std::mem::take(&mut self.urgent);
        lines.extend(moves.iter().take(LINES).map(line));
        if others > 0 {
            lines.push(format!("and so do {others} other ports"));
        }
        let others = asked.len().saturating_sub(LINES);
        lines.extend(asked.into_iter().take(LINES));
        if others > 0 {
            lines.push(format!(
                "and {others} other names were asked for by users who may not have them"
            ));
        }
        lines
    }
}
