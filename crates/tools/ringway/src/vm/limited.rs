//! Lines that a monitor or its machine can cause as often as it likes: one a second is told, or some at once and then one a
//! second, and how many others there were.

use std::time::{Duration, Instant};

/// From one line to the next.
const PAUSE: Duration = Duration::from_secs(1);

/// Lines of one kind.
#[derive(Debug)]
pub struct Limited {
    /// So many may be told at once.
    most: u32,
    /// How many of these were told, as of the time beside it: each pause gives one back.
    told: (u32, Option<Instant>),
    untold: u64,
}

impl Default for Limited {
    fn default() -> Self {
        Limited::at_once(1)
    }
}

impl Limited {
    /// Of which so many may be told at once.
    pub fn at_once(most: u32) -> Limited {
        Limited { most, told: (0, None), untold: 0 }
    }

    /// What is to be told of this line now; `None`: it is only counted.
    pub fn line(&mut self, text: &str, now: Instant) -> Option<String> {
        if !self.may_tell(now) {
            return None;
        }
        Some(match std::mem::take(&mut self.untold) {
            0 => text.into(),
            untold => format!("{text} (and {untold} more since the last such line)"),
        })
    }

    /// Whether one may be told now. If not, it is counted.
    pub fn may_tell(&mut self, now: Instant) -> bool {
        let (told, since) = self.told;
        let since = since.unwrap_or(now);
        let pauses = now.saturating_duration_since(since).as_millis() / PAUSE.as_millis();
        let pauses = u32::try_from(pauses).unwrap_or(u32::MAX);
        // Whole pauses alone are over.
        let (told, since) = match told.saturating_sub(pauses) {
            0 => (0, now),
            left => (left, since + PAUSE * pauses),
        };
        let may_tell = told < self.most;
        self.told = (told + u32::from(may_tell), Some(since));
        self.untold += u64::from(!may_tell);
        may_tell
    }

    /// How many were not told since the last that was, once.
    pub fn take_untold(&mut self) -> u64 {
        std::mem::take(&mut self.untold)
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
        // Some at once, and then one a second.
        let mut limited = Limited::at_once(3);
        let told = (0..=5000).step_by(100);
        let told = told.filter(|millis| limited.may_tell(start + Duration::from_millis(*millis)));
        assert_eq!(told.collect::<Vec<_>>(), [0, 100, 200, 1000, 2000, 3000, 4000, 5000]);
        assert_eq!((limited.take_untold(), limited.untold()), (51 - 8, 0));
        // One now and then is told as it is.
        let mut limited = Limited::default();
        for second in 0..3 {
            let now = start + Duration::from_secs(second);
            assert_eq!(limited.line("now and then", now).as_deref(), Some("now and then"));
        }
    }
}
