//! How much of what a port sends is flooded: so many frames a second of each kind, and of all kinds together.
//!
//! A frame passes if the limit of its kind and that of all kinds have one left, and is paid for in both. What passes that of
//! its kind, and not the other, is counted as of all kinds.
#![expect(
    clippy::indexing_slicing,
    reason = "there are four limits, and each place is that of one"
)]

use ringway_switch_port::{Drops, Frame, is_group};

use crate::{
    bucket::{Bucket, FloodLimit},
    clock::Fine,
    config::PortConfig,
};

/// The places of limits: those of frames to all, to other groups and to addresses that are not known, and that of all
/// three kinds.
const BROADCAST: usize = 0;
const MULTICAST: usize = 1;
const UNKNOWN: usize = 2;
const ALL: usize = 3;

/// The kind of a frame that is flooded, to whichever ports.
fn kind_of(frame: &Frame) -> usize {
    match frame.dst() {
        0xffff_ffff_ffff => BROADCAST,
        group if is_group(group) => MULTICAST,
        _ => UNKNOWN,
    }
}

/// The limits of `config`, by their places.
fn limits(config: &PortConfig) -> [Option<FloodLimit>; 4] {
    let [broadcast, multicast, unknown] = config.storm_kinds;
    let as_many_at_once = |frames| FloodLimit { frames_per_second: frames, burst_frames: frames };
    [broadcast, multicast, unknown, config.storm.map(as_many_at_once)]
}

/// What a port may flood, if not as much as it likes.
#[derive(Debug)]
pub(crate) struct Storm {
    buckets: [Option<Bucket>; 4],
}

impl Storm {
    /// For the limits of `config`, if it has any. What is spent of those that a port had `before`, by the `old` settings,
    /// stays spent.
    pub fn renewed(
        before: Option<Storm>,
        old: &PortConfig,
        config: &PortConfig,
        clock: Fine,
    ) -> Option<Storm> {
        let mut buckets = before.map_or([const { None }; 4], |storm| storm.buckets);
        let changes = limits(old).into_iter().zip(limits(config));
        for (bucket, (old, new)) in buckets.iter_mut().zip(changes) {
            if old != new {
                *bucket = new.map(|limit| Bucket::new(limit.limit(), clock));
            }
        }
        buckets.iter().any(Option::is_some).then_some(Storm { buckets })
    }

    /// What may be flooded now. It is not [paid](Storm::pay) for yet.
    pub fn allowance(&mut self) -> Allowance {
        let left = |bucket: &mut Option<Bucket>| bucket.as_mut().map_or(i64::MAX, Bucket::left);
        Allowance { left: self.buckets.each_mut().map(left) }
    }

    /// These frames were flooded.
    pub fn pay(&mut self, frames: &[Frame]) {
        let mut pay = |place: usize, count| {
            if let Some(bucket) = &mut self.buckets[place] {
                bucket.take(count);
            }
        };
        frames.iter().for_each(|frame| pay(kind_of(frame), 1));
        pay(ALL, frames.len() as u64);
    }
}

/// How many frames may be flooded: of each kind, and of all.
pub(crate) struct Allowance {
    left: [i64; 4],
}

impl Allowance {
    /// The limit that keeps a frame from being flooded, if one does.
    fn spent(&self, frame: &Frame) -> Option<usize> {
        [kind_of(frame), ALL].into_iter().find(|place| self.left[*place] <= 0)
    }

    /// How many of the frames may be flooded, from the first on. They are taken off.
    pub fn take(&mut self, frames: &[Frame]) -> usize {
        for (at, frame) in frames.iter().enumerate() {
            if self.spent(frame).is_some() {
                return at;
            }
            for place in [kind_of(frame), ALL] {
                self.left[place] -= 1;
            }
        }
        frames.len()
    }

    /// How many of the frames may not be flooded, from the first on. They are counted.
    pub fn refuse(&self, frames: &[Frame], drops: &mut Drops) -> usize {
        for (at, frame) in frames.iter().enumerate() {
            let reason = match self.spent(frame) {
                None => return at,
                Some(BROADCAST) => &mut drops.storm_broadcast,
                Some(MULTICAST) => &mut drops.storm_multicast,
                Some(UNKNOWN) => &mut drops.storm_unknown,
                Some(_) => &mut drops.storm,
            };
            *reason += 1;
        }
        frames.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Micros;
    use ringway_switch_port::Burst;
    use std::cell::Cell;

    thread_local! {
        static NOW: Cell<Micros> = const { Cell::new(0) };
    }

    /// Frames to those addresses, as they are in memory.
    fn frames(to: &[[u8; 6]]) -> Vec<Frame> {
        let mut burst = Burst::default();
        let mut packets: Vec<_> = to.iter().map(|dst| [&dst[..], &[2; 54]].concat()).collect();
        for packet in &mut packets {
            burst.push_private(packet);
            burst.end_frame();
        }
        burst.read_headers();
        burst.frames.clone()
    }

    const TO_ALL: [u8; 6] = [0xff; 6];
    const GROUP: [u8; 6] = [1, 0, 0x5e, 0, 0, 9];
    const UNICAST: [u8; 6] = [2, 0, 0, 0, 0, 9];

    fn storm(all: Option<u32>, kinds: [Option<(u32, u32)>; 3]) -> Storm {
        let limit =
            |(frames_per_second, burst_frames)| FloodLimit { frames_per_second, burst_frames };
        let kinds = kinds.map(|kind| kind.map(limit));
        let config = PortConfig { storm: all, storm_kinds: kinds, ..PortConfig::default() };
        Storm::renewed(None, &PortConfig::default(), &config, || NOW.get()).unwrap()
    }

    /// Floods what may be of these frames: how many were, and what of the others is counted.
    fn flood(storm: &mut Storm, frames: &[Frame]) -> (usize, Drops) {
        let (mut allowance, mut drops) = (storm.allowance(), Drops::default());
        let (mut at, mut flooded) = (0, 0);
        while at < frames.len() {
            let some = allowance.take(&frames[at..]);
            storm.pay(&frames[at..at + some]);
            flooded += some;
            at += some;
            at += allowance.refuse(&frames[at..], &mut drops);
        }
        (flooded, drops)
    }

    /// A frame is earned in the time of one, whenever that begins by the clock.
    #[test]
    fn a_part_of_a_frame_is_no_frame() {
        NOW.set(19_999);
        let mut storm = storm(Some(50), [None; 3]);
        let frames = frames(&[TO_ALL; 100]);
        assert_eq!(flood(&mut storm, &frames), (50, Drops { storm: 50, ..Drops::default() }));
        for (now, most) in [(20_001, 0), (39_998, 0), (39_999, 1), (59_999, 1), (99_999, 2)] {
            NOW.set(now);
            assert_eq!(flood(&mut storm, &frames).0, most, "at {now}");
        }
    }

    #[test]
    fn each_kind_has_its_limit_and_its_burst() {
        NOW.set(0);
        let mut storm = storm(None, [Some((10, 2)), Some((20, 30)), None]);
        let mixed = frames(&[TO_ALL, GROUP, UNICAST].repeat(40));
        let drops = |storm_broadcast, storm_multicast| Drops {
            storm_broadcast,
            storm_multicast,
            ..Drops::default()
        };
        assert_eq!(flood(&mut storm, &mixed), (2 + 30 + 40, drops(38, 10)));
        NOW.set(100_001);
        assert_eq!(flood(&mut storm, &mixed), (1 + 2 + 40, drops(39, 38)));
        NOW.set(100_000_000);
        assert_eq!(flood(&mut storm, &mixed), (2 + 30 + 40, drops(38, 10)));
    }

    /// What passes the limit of its kind counts against that of all; what does not, against none.
    #[test]
    fn both_limits_hold() {
        NOW.set(0);
        let mut storm = storm(Some(10), [Some((1, 3)), None, None]);
        let expected = Drops { storm_broadcast: 5, storm: 1, ..Drops::default() };
        let sent = frames(&[[TO_ALL; 8].as_slice(), &[UNICAST; 8]].concat());
        assert_eq!(flood(&mut storm, &sent), (10, expected));
    }

    #[test]
    fn a_limit_that_stays_is_not_filled_again() {
        NOW.set(0);
        let limit = |burst_frames| Some(FloodLimit { frames_per_second: 1, burst_frames });
        let with = |broadcast, unknown| PortConfig {
            storm_kinds: [broadcast, None, unknown],
            ..PortConfig::default()
        };
        let (old, new) = (with(limit(5), limit(5)), with(limit(5), limit(6)));
        let clock = || NOW.get();
        let mut storm = Storm::renewed(None, &PortConfig::default(), &old, clock).unwrap();
        let sent = frames(&[TO_ALL, UNICAST].repeat(10));
        assert_eq!(flood(&mut storm, &sent).0, 10);
        let mut storm = Storm::renewed(Some(storm), &old, &new, clock).unwrap();
        assert_eq!(flood(&mut storm, &sent).0, 6);
        assert!(Storm::renewed(Some(storm), &new, &PortConfig::default(), clock).is_none());
    }
}
