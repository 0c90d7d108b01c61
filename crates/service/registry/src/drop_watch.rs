//! Ports of switches that lose frames: told when it begins and when it is over, by reason.

use std::{
    collections::{HashMap, HashSet},
    time::{Duration, Instant},
};

use ringway_proto::{EventKind, Level, PortDrops};

use crate::{
    bridges::{Drops, PortOfUser, sum},
    notices::Notice,
    registry::Registry,
};

/// From one look to the next.
const INTERVAL: Duration = Duration::from_secs(10);

/// Frames that a port loses for one reason within an interval without being told of.
const FEW: u64 = 1000;

/// Reasons that follow from settings, or are ordinary where nobody is there to receive.
const ORDINARY: [&str; 5] = ["no_destination", "filtered", "vlan", "over_rate", "denied"];

/// What was seen of each port. A port that is opened again under its name, by its user, is the same one: its counters
/// begin again, and what it had dropped before is carried on.
#[derive(Default)]
pub struct DropWatch {
    last: Option<Instant>,
    ports: HashMap<PortOfUser, Seen>,
}

/// Of one port.
#[derive(Default)]
struct Seen {
    /// What it had dropped in those of its lives that have ended.
    before: Drops,
    /// In all, by the last look.
    all: Drops,
    /// For which reasons it loses frames, since when, and how many it had lost for it until then.
    losing: HashMap<&'static str, (Instant, u64)>,
}

impl DropWatch {
    /// Looks at the ports, if it is time for that; what the operator should know. And when to look again, if there
    /// is anything to look at.
    pub fn look(
        &mut self,
        registry: &mut Registry,
        now: Instant,
    ) -> (Vec<Notice>, Option<Duration>) {
        let next = self.last.and_then(|last| (last + INTERVAL).checked_duration_since(now));
        if let Some(left) = next.filter(|left| !left.is_zero()) {
            let is_idle = self.ports.is_empty() && !registry.bridges.have_ended_ports();
            return (Vec::new(), (!is_idle).then_some(left));
        }
        let notices = self.look_now(registry, now);
        (notices, (!self.ports.is_empty()).then_some(INTERVAL))
    }

    /// Looks at the ports, whenever that was done last.
    pub fn look_now(&mut self, registry: &mut Registry, now: Instant) -> Vec<Notice> {
        let ended = registry.bridges.take_ended();
        self.compare(registry.bridges.drops(), ended, now)
    }

    /// `ports`: what there are, with what they have dropped; `ended`: those that have gone since the last look.
    fn compare(
        &mut self,
        ports: impl Iterator<Item = (PortOfUser, Drops)>,
        mut ended: HashMap<PortOfUser, Drops>,
        now: Instant,
    ) -> Vec<Notice> {
        let (mut before, mut notices) = (std::mem::take(&mut self.ports), Vec::new());
        let took = self.last.replace(now).map_or(INTERVAL, |last| now.duration_since(last));
        let mut look = |port: &PortOfUser, mut seen: Seen, drops: Drops, ended: Option<Drops>| {
            seen.before = sum(&seen.before, &ended.unwrap_or_default());
            let all = sum(&seen.before, &drops);
            let names = PortDrops::default().reasons().map(|(reason, _)| reason);
            for (reason, (old, new)) in names.into_iter().zip(seen.all.into_iter().zip(all)) {
                let told = seen.tell(reason, old, new, now, took);
                let tell = |(level, text): (Level, String)| {
                    let text = format!("{}: {text}", port.0);
                    Notice::new(level, EventKind::Drops, text).at(&*port.0).of_user(port.1)
                };
                notices.extend(told.map(tell));
            }
            seen.all = all;
            seen
        };
        for (port, drops) in ports {
            // A port that was not there at the last look had lost nothing by then.
            let seen = before.remove(&port).unwrap_or_default();
            let seen = look(&port, seen, drops, ended.remove(&port));
            self.ports.insert(port, seen);
        }
        // Those that have gone are looked at as long as it is not told that they lose no more.
        let names: HashSet<_> = before.keys().chain(ended.keys()).cloned().collect();
        for port in names {
            let seen = before.remove(&port).unwrap_or_default();
            let seen = look(&port, seen, Drops::default(), ended.remove(&port));
            if !seen.losing.is_empty() {
                self.ports.insert(port, seen);
            }
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

    /// What is told of a port that has dropped so much, or is not there, after lives that had.
    fn texts(
        watch: &mut DropWatch,
        there: Option<PortDrops>,
        ended: Option<PortDrops>,
        now: Instant,
    ) -> Vec<(Level, String)> {
        let [there, ended] = [there, ended].map(|drops| {
            drops.map(|drops| (("vale0:a".into(), 7), drops.reasons().map(|(_, frames)| frames)))
        });
        let notices = watch.compare(there.into_iter(), ended.into_iter().collect(), now);
        notices.into_iter().map(|notice| (notice.level, notice.text)).collect()
    }

    #[test]
    fn the_begin_and_the_end_are_told() {
        let (mut watch, mut now) = (DropWatch::default(), Instant::now());
        let mut look = |ring_full, vlan| {
            now += INTERVAL;
            let drops = PortDrops { ring_full, vlan, ..PortDrops::default() };
            texts(&mut watch, Some(drops), None, now)
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
        assert_eq!(look(90_500, 2000).len(), 1, "and no more");
    }

    /// Each life counts from 0.
    #[test]
    fn a_port_that_is_opened_again_goes_on_losing() {
        let (mut watch, mut now) = (DropWatch::default(), Instant::now());
        let mut look = |there: Option<u64>, ended: Option<u64>| {
            now += INTERVAL;
            let drops = |over_rate| PortDrops { over_rate, ..PortDrops::default() };
            let told = texts(&mut watch, there.map(drops), ended.map(drops), now);
            told.into_iter().map(|(_, text)| text).collect::<Vec<_>>()
        };
        let begin = ["vale0:a: 8000 frames were dropped in 10 s (over rate)"];
        assert_eq!(look(Some(8_000), None), begin);
        assert!(look(Some(5_000), Some(10_000)).is_empty(), "it goes on: 7000 more");
        assert!(look(None, Some(9_000)).is_empty(), "and is closed after 4000 more");
        let over = ["vale0:a: no more frames are dropped (over rate); 19000 were in 30 s"];
        assert_eq!(look(Some(0), None), over);
        assert!(look(None, Some(10)).is_empty());
        assert!(look(None, None).is_empty());
    }

    #[test]
    fn a_port_that_no_look_has_found_is_told() {
        let (mut watch, mut now) = (DropWatch::default(), Instant::now());
        let mut look = |ended: Option<u64>| {
            now += INTERVAL;
            let ended = ended.map(|ring_full| PortDrops { ring_full, ..PortDrops::default() });
            texts(&mut watch, None, ended, now)
        };
        assert_eq!(look(None), []);
        let text = "vale0:a: 13753 frames were dropped in 10 s (ring full)";
        assert_eq!(look(Some(13_753)), [(Level::Warn, text.into())]);
        let text = "vale0:a: no more frames are dropped (ring full); 13753 were in 10 s";
        assert_eq!(look(None), [(Level::Info, text.into())]);
        assert_eq!(look(None), []);
    }
}
