//! What an operator should know of, for a daemon's log: few lines, however much happens.

use std::time::{Duration, Instant};

use crate::bridges::Bridges;

/// Between two reports.
const PAUSE: Duration = Duration::from_secs(10);
/// Lines of a report.
const LINES: usize = 10;

/// When there was a report.
#[derive(Debug, Default)]
pub(crate) struct Notices {
    last: Option<Instant>,
}

impl Notices {
    /// Ports that have begun to send with addresses of others since the last report.
    pub fn of(&mut self, bridges: &mut Bridges) -> Vec<String> {
        let now = Instant::now();
        if self.last.is_some_and(|last| now.duration_since(last) < PAUSE) {
            return Vec::new();
        }
        let mut moves = bridges.moves();
        if moves.is_empty() {
            return Vec::new();
        }
        self.last = Some(now);
        moves.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let others = moves.len().saturating_sub(LINES);
        let line = |(name, count): &(String, u64)| {
            let name = name.escape_debug();
            format!(
                "{name}: sends with addresses that were behind other ports ({count} times); if no \
                 machine has moved, bind it to its own: `ringway switch port {name} --one-address`"
            )
        };
        let mut lines: Vec<_> = moves.iter().take(LINES).map(line).collect();
        if others > 0 {
            lines.push(format!("and so do {others} other ports"));
        }
        lines
    }
}
