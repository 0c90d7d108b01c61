//! Ports of switches that lose frames: told when it begins and when it is over, by reason.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use ringway_proto::{EventKind, Level, PortDrops};

use crate::{notices::Notice, registry::Registry};

/// From one look to the next.
const INTERVAL: Duration = Duration::from_secs(10);

/// Frames that a port loses for one reason within an interval without being told of.
const FEW: u64 = 1000;

/// Reasons that follow from settings, or are ordinary where nobody is there to receive.
const ORDINARY: [&str; 5] = ["no_destination", "filtered", "vlan", "over_rate", "denied"];

/// What was seen of each port.
#[derive(Default)]
pub struct DropWatch {
    last: Option<Instant>,
    ports: HashMap<String, Seen>,
}

/// Of one port.
#[derive(Default)]
struct Seen {
    drops: PortDrops,
    /// For which reasons it loses frames, since when, and how many it had lost for it until then.
    losing: HashMap<&'static str, (Instant, u64)>,
}

impl DropWatch {
    /// Looks at the ports, if it is time for that; what the operator should know. And when to look again, if there
    /// are any ports.
    pub fn look(&mut self, registry: &Registry, now: Instant) -> (Vec<Notice>, Option<Duration>) {
        let next = self.last.and_then(|last| (last + INTERVAL).checked_duration_since(now));
        if let Some(left) = next.filter(|left| !left.is_zero()) {
            return (Vec::new(), (!self.ports.is_empty()).then_some(left));
        }
        let notices = self.compare(registry.bridges.drops(), now);
        (notices, (!self.ports.is_empty()).then_some(INTERVAL))
    }

    fn compare<'a>(
        &mut self,
        ports: impl Iterator<Item = (&'a str, u32, PortDrops)>,
        now: Instant,
    ) -> Vec<Notice> {
        let (mut before, mut notices) = (std::mem::take(&mut self.ports), Vec::new());
        let took = self.last.replace(now).map_or(INTERVAL, |last| now.duration_since(last));
        for (name, uid, drops) in ports {
            // A port that was not there at the last look had lost nothing by then.
            let mut seen = before.remove(name).unwrap_or_default();
            let counted = seen.drops.reasons().into_iter().zip(drops.reasons());
            for ((reason, old), (_, new)) in counted {
                let told = seen.tell(reason, old, new, now, took);
                let tell = |(level, text): (Level, String)| {
                    let text = format!("{name}: {text}");
                    Notice::new(level, EventKind::Drops, text).at(name).of_user(uid)
                };
                notices.extend(told.map(tell));
            }
            seen.drops = drops;
            self.ports.insert(name.into(), seen);
        }
        notices
    }
}

impl Seen {
    /// What is to be said of a reason whose count was `old` and is `new`, so much later.
    fn tell(
        &mut self,
        reason: &'static str,
        old: u64,
        new: u64,
        now: Instant,
        took: Duration,
    ) -> Option<(Level, String)> {
        // A port that was closed and opened again has counts from the beginning.
        let lost = new.saturating_sub(old);
        let plain = reason.replace('_', " ");
        if lost > FEW {
            if self.losing.contains_key(reason) {
                return None;
            }
            self.losing.insert(reason, (now, old));
            let level = if ORDINARY.contains(&reason) { Level::Info } else { Level::Warn };
            let seconds = took.as_secs_f64();
            return Some((
                level,
                format!("{lost} frames were dropped in {seconds:.0} s ({plain})"),
            ));
        }
        let (since, before) = match lost {
            0 => self.losing.remove(reason)?,
            _ => return None,
        };
        let (all, seconds) = (new.saturating_sub(before), (now - since).as_secs_f64());
        Some((
            Level::Info,
            format!("no more frames are dropped ({plain}); {all} were in {seconds:.0} s"),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(watch: &mut DropWatch, drops: PortDrops, now: Instant) -> Vec<(Level, String)> {
        let notices = watch.compare([("vale0:a", 7, drops)].into_iter(), now);
        notices.into_iter().map(|notice| (notice.level, notice.text)).collect()
    }

    #[test]
    fn the_begin_and_the_end_are_told() {
        let (mut watch, mut now) = (DropWatch::default(), Instant::now());
        let mut look = |ring_full, vlan| {
            now += INTERVAL;
            let drops = PortDrops { ring_full, vlan, ..PortDrops::default() };
            texts(&mut watch, drops, now)
        };
        assert_eq!(look(9_000, 0).len(), 1, "of a port that is new");
        assert_eq!(look(9_000, 0).len(), 1, "and no more");
        assert_eq!(look(10_000, 0), [], "a few");
        let text = "vale0:a: 5000 frames were dropped in 10 s (ring full)";
        assert_eq!(look(15_000, 0), [(Level::Warn, text.into())]);
        assert_eq!(look(90_000, 0), [], "it goes on");
        assert_eq!(look(90_500, 0), [], "fewer, but not over");
        let over = "vale0:a: no more frames are dropped (ring full); 80500 were in 30 s";
        let others = "vale0:a: 2000 frames were dropped in 10 s (vlan)";
        let both = [others, over].map(|text| (Level::Info, text.into()));
        assert_eq!(look(90_500, 2000), both);
        assert_eq!(look(0, 2000).len(), 1, "a port that was opened again");
    }
}
