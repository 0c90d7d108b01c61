//! Lines that a monitor or its machine can cause as often as it likes: one a second is told, and how many others there
//! were.

use std::time::{Duration, Instant};

/// From one line to the next.
const PAUSE: Duration = Duration::from_secs(1);

/// Lines of one kind.
#[derive(Debug, Default)]
pub struct Limited {
    /// When the last one was told.
    told: Option<Instant>,
    untold: u64,
}

impl Limited {
    /// What is to be told of this line now; `None`: it is only counted.
    pub fn line(&mut self, text: &str, now: Instant) -> Option<String> {
        if self.told.is_some_and(|told| now.saturating_duration_since(told) < PAUSE) {
            self.untold += 1;
            return None;
        }
        self.told = Some(now);
        Some(match std::mem::take(&mut self.untold) {
            0 => text.into(),
            untold => format!("{text} (and {untold} more since the last such line)"),
        })
    }

    /// How many lines were not told since the last that was.
    pub fn untold(&self) -> u64 {
        self.untold
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_a_line_a_second() {
        let (start, mut limited) = (Instant::now(), Limited::default());
        let mut lines = Vec::new();
        for millis in 0..=2500 {
            let text = format!("line {millis}");
            lines.extend(limited.line(&text, start + Duration::from_millis(millis)));
        }
        let more = |n| format!("line {n} (and 999 more since the last such line)");
        assert_eq!(lines, ["line 0".into(), more(1000), more(2000)]);
        assert_eq!(limited.untold(), 500);
        // One now and then is told as it is.
        let mut limited = Limited::default();
        for second in 0..3 {
            let now = start + Duration::from_secs(second);
            assert_eq!(limited.line("now and then", now).as_deref(), Some("now and then"));
        }
    }
}
