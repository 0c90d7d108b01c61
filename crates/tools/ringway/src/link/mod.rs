//! A link in virtual time: how long frames take on it, which are lost, and how late the others come.
//!
//! ```text
//!   accept --> loss --> duplication --> bottleneck, with its queue --> delay, hold --> store --> release
//! ```
//!
//! Nothing in here looks at a clock: times are nanoseconds since any beginning, and come as arguments. The
//! same settings, seed, frames and times give the same again.

mod bottleneck;
mod delay;
mod loss;
mod random;
mod rate;
mod store;

pub use bottleneck::{Bandwidth, Limit};
pub use delay::Delay;
pub use loss::{Burst, Loss, LossModel};
pub use random::Random;
pub use rate::TransmitTime;

use bottleneck::Bottleneck;
use serde::Serialize;
use store::Store;

/// Frames that are held back, so that others overtake them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hold {
    pub probability: f64,
    /// Nanoseconds.
    pub time: u64,
}

/// Least and most nanoseconds between a frame and the one before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gaps {
    pub min: f64,
    pub max: f64,
}

/// What a link does to frames.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    pub loss: Loss,
    /// The probability that a frame comes twice.
    pub duplicate: f64,
    pub bandwidth: Option<Bandwidth>,
    pub delay: Delay,
    pub gaps: Option<Gaps>,
    /// Frames with a shorter delay overtake others.
    pub overtake: bool,
    pub hold: Option<Hold>,
    /// Bytes for the frames that are on their way.
    pub memory: usize,
    /// They are in huge pages.
    pub huge_pages: bool,
    /// What comes when the memory is full waits for it where it is, and is late, instead of being dropped.
    pub lossless: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            loss: Loss::None,
            duplicate: 0.0,
            bandwidth: None,
            delay: Delay::default(),
            gaps: None,
            overtake: false,
            hold: None,
            memory: 16 << 20,
            huge_pages: false,
            lossless: false,
        }
    }
}

/// What has become of the frames that came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Counters {
    pub frames: u64,
    pub bytes: u64,
    /// By the loss model.
    pub lost: u64,
    /// Dropped: the queue before the bottleneck was full.
    pub queue_full: u64,
    /// Dropped: no memory was left for what is on its way.
    pub no_memory: u64,
    pub duplicated: u64,
    pub held: u64,
    /// The most bytes that have waited in the queue.
    pub queued_max: u64,
}

impl Counters {
    /// Frames that came and did not go on.
    pub fn dropped(&self) -> u64 {
        self.lost + self.queue_full + self.no_memory
    }
}

/// One direction of a link.
#[derive(Debug)]
pub struct Link {
    loss: LossModel,
    bottleneck: Option<Bottleneck>,
    settings: Settings,
    random: Random,
    store: Store,
    /// When the last frame was due that was not held.
    last: u64,
    pub counters: Counters,
}

impl Link {
    /// Allocates all memory that it will ever need.
    pub fn new(settings: Settings, seed: u64) -> Link {
        let store = Store::new(settings.memory, settings.huge_pages);
        Link {
            loss: LossModel::new(settings.loss),
            bottleneck: settings.bandwidth.map(|width| Bottleneck::new(width, store.most())),
            settings,
            random: Random::new(seed),
            store,
            last: 0,
            counters: Counters::default(),
        }
    }

    /// Other settings from now on. The frames that are on their way keep their times, and the memory is
    /// what it was.
    pub fn change(&mut self, settings: Settings) {
        let Settings { memory, huge_pages, .. } = self.settings;
        if settings.loss != self.settings.loss {
            self.loss = LossModel::new(settings.loss);
        }
        if settings.bandwidth != self.settings.bandwidth {
            let most = self.store.most();
            match (settings.bandwidth, &mut self.bottleneck) {
                (Some(width), Some(bottleneck)) => bottleneck.change(width, most),
                (width, bottleneck) => {
                    *bottleneck = width.map(|width| Bottleneck::new(width, most));
                }
            }
        }
        self.settings = Settings { memory, huge_pages, ..settings };
    }

    /// Whether a frame of so many bytes may come now.
    #[inline]
    pub fn has_room(&self, length: usize) -> bool {
        !self.settings.lossless || self.store.has_room(length)
    }

    /// A frame of so many bytes comes, not before the last one; `fill` writes them.
    #[inline]
    pub fn accept(&mut self, now: u64, length: usize, mut fill: impl FnMut(&mut [u8])) {
        self.counters.frames += 1;
        self.counters.bytes += length as u64;
        if self.loss.loses(length, &mut self.random) {
            self.counters.lost += 1;
            return;
        }
        self.enter(now, length, &mut fill);
        if self.random.chance(self.settings.duplicate) {
            self.counters.duplicated += 1;
            self.enter(now, length, &mut fill);
        }
    }

    fn enter(&mut self, now: u64, length: usize, fill: &mut impl FnMut(&mut [u8])) {
        let through = match &mut self.bottleneck {
            None => now,
            Some(bottleneck) => {
                let Some(through) = bottleneck.enter(now, length) else {
                    self.counters.queue_full += 1;
                    return;
                };
                self.counters.queued_max = self.counters.queued_max.max(bottleneck.bytes());
                through
            }
        };
        let due = self.due(through);
        match self.store.push(due, length) {
            Some(place) => fill(place),
            None => self.counters.no_memory += 1,
        }
    }

    /// When a frame is due that has passed the bottleneck.
    fn due(&mut self, through: u64) -> u64 {
        let mut due = through + self.settings.delay.draw(&mut self.random);
        if let Some(Gaps { min, max }) = self.settings.gaps {
            let gap = (min + (max - min) * self.random.uniform()) as u64;
            due = due.max(self.last + gap);
        }
        if let Some(Hold { probability, time }) = self.settings.hold
            && self.random.chance(probability)
        {
            self.counters.held += 1;
            return due + time;
        }
        if !self.settings.overtake {
            due = due.max(self.last);
        }
        self.last = due;
        due
    }

    /// When the next frame is due.
    #[inline]
    pub fn next_due(&self) -> Option<u64> {
        self.store.due()
    }

    /// The next frame, and when it is due.
    #[inline]
    pub fn peek(&self) -> Option<(u64, &[u8])> {
        self.store.peek()
    }

    /// The next frame has gone.
    #[inline]
    pub fn pop(&mut self) {
        self.store.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Rate;
    use proptest::prelude::*;

    const SMALL: Settings = Settings {
        loss: Loss::None,
        duplicate: 0.0,
        bandwidth: None,
        delay: Delay::Constant(0.0),
        gaps: None,
        overtake: false,
        hold: None,
        memory: 1 << 20,
        huge_pages: false,
        lossless: false,
    };

    /// Sends frames of 100 bytes with these gaps; returns number and time of each that has come out.
    fn run(settings: Settings, seed: u64, gaps: &[u64]) -> (Vec<(u32, u64)>, Counters) {
        let mut link = Link::new(settings, seed);
        let (mut now, mut out) = (0, Vec::new());
        let release = |link: &mut Link, until: u64, out: &mut Vec<(u32, u64)>| {
            while let Some((due, frame)) = link.peek()
                && due <= until
            {
                out.push((u32::from_le_bytes(frame[..4].try_into().unwrap()), due));
                link.pop();
            }
        };
        for (number, gap) in (0u32..).zip(gaps) {
            now += gap;
            release(&mut link, now, &mut out);
            link.accept(now, 100, |place| place[..4].copy_from_slice(&number.to_le_bytes()));
        }
        release(&mut link, u64::MAX, &mut out);
        assert_eq!(link.next_due(), None);
        (out, link.counters)
    }

    fn numbers(out: &[(u32, u64)]) -> Vec<u32> {
        out.iter().map(|(number, _)| *number).collect()
    }

    #[test]
    fn a_link_without_settings_passes_everything_at_once() {
        let (out, counters) = run(SMALL, 1, &[10; 50]);
        assert_eq!(out, (0..50).map(|n| (n, 10 * u64::from(n) + 10)).collect::<Vec<_>>());
        assert_eq!((counters.frames, counters.bytes, counters.dropped()), (50, 5000, 0));
    }

    #[test]
    fn bandwidth_and_delay_add_up() {
        let bandwidth =
            Bandwidth { rate: Rate::Bits(8e9), overhead: 0, limit: Limit::None, police: false };
        let settings =
            Settings { bandwidth: Some(bandwidth), delay: Delay::Constant(1000.0), ..SMALL };
        let (out, counters) = run(settings, 1, &[0, 0, 0, 5000]);
        assert_eq!(out, [(0, 1100), (1, 1200), (2, 1300), (3, 6100)]);
        assert_eq!(counters.queued_max, 300);
    }

    #[test]
    fn what_is_lost_is_what_the_model_loses() {
        let settings = Settings { loss: Loss::Random(0.1), ..SMALL };
        let (out, counters) = run(settings, 42, &[1; 1000]);
        let (mut model, mut random) = (LossModel::new(settings.loss), Random::new(42));
        let kept: Vec<u32> = (0..1000).filter(|_| !model.loses(100, &mut random)).collect();
        assert_eq!(numbers(&out), kept);
        assert_eq!(counters.lost, 1000 - kept.len() as u64);
    }

    /// Which `ringway shape --seed` promises, from version to version: a test of the program has the
    /// same number of lost frames.
    #[test]
    fn a_seed_always_gives_these_numbers() {
        let (_, counters) = run(Settings { loss: Loss::Random(0.1), ..SMALL }, 1, &[1; 2000]);
        assert_eq!(counters.lost, 206);
    }

    #[test]
    fn held_frames_are_overtaken_and_others_are_not() {
        let hold = Some(Hold { probability: 0.1, time: 1000 });
        let (out, counters) = run(Settings { hold, ..SMALL }, 5, &[10; 1000]);
        assert_eq!(out.len(), 1000);
        let late: Vec<_> =
            out.iter().filter(|(n, due)| *due == 10 * u64::from(*n) + 1010).collect();
        assert_eq!(late.len() as u64, counters.held);
        assert!((60..140).contains(&late.len()), "{}", late.len());
        let others: Vec<_> = out.iter().filter(|at| !late.contains(at)).map(|(n, _)| *n).collect();
        assert!(others.is_sorted());
        assert!(!numbers(&out).is_sorted());
    }

    #[test]
    fn doubled_frames_come_one_behind_the_other() {
        let (out, counters) = run(Settings { duplicate: 0.2, ..SMALL }, 5, &[10; 1000]);
        let numbers = numbers(&out);
        assert!(numbers.is_sorted());
        assert_eq!(numbers.len() as u64, 1000 + counters.duplicated);
        assert!((140..260).contains(&counters.duplicated), "{}", counters.duplicated);
    }

    #[test]
    fn jitter_reorders_only_where_asked() {
        let delay = Delay::Uniform { min: 0.0, max: 1000.0 };
        let (out, _) = run(Settings { delay, ..SMALL }, 5, &[10; 1000]);
        assert!(numbers(&out).is_sorted());
        let (out, _) = run(Settings { delay, overtake: true, ..SMALL }, 5, &[10; 1000]);
        assert!(!numbers(&out).is_sorted());
        let mean = out.iter().map(|(n, due)| due - 10 * u64::from(*n) - 10).sum::<u64>() / 1000;
        assert!((450..550).contains(&mean), "{mean}");
    }

    #[test]
    fn gaps_are_kept() {
        let settings = Settings { gaps: Some(Gaps { min: 100.0, max: 200.0 }), ..SMALL };
        let (out, _) = run(settings, 5, &[10; 1000]);
        assert!(out.windows(2).all(|w| (99..=200).contains(&(w[1].1 - w[0].1))));
    }

    #[test]
    fn memory_is_bounded_and_what_it_cannot_hold_is_counted() {
        let settings = Settings { delay: Delay::Constant(1e9), memory: 256 * 100, ..SMALL };
        let (out, counters) = run(settings, 1, &[1; 300]);
        assert_eq!((out.len(), counters.no_memory), (100, 200));
    }

    #[test]
    fn frames_on_their_way_keep_their_times_when_settings_change() {
        let late = Settings { delay: Delay::Constant(1000.0), ..SMALL };
        let mut link = Link::new(late, 1);
        (0..3).for_each(|now| link.accept(now, 100, |_| ()));
        link.change(Settings { delay: Delay::Constant(10.0), loss: Loss::Random(0.0), ..SMALL });
        link.accept(3, 100, |_| ());
        link.accept(2000, 100, |_| ());
        link.change(Settings { loss: Loss::Random(1.0), ..SMALL });
        link.accept(2001, 100, |_| ());
        let mut dues = Vec::new();
        while let Some(due) = link.next_due() {
            dues.push(due);
            link.pop();
        }
        // Behind those that came before, and not before them.
        assert_eq!(dues, [1000, 1001, 1002, 1002, 2010]);
        assert_eq!((link.counters.frames, link.counters.lost), (6, 1));
    }

    #[test]
    fn a_lossless_link_says_when_there_is_no_room() {
        let settings = Settings { delay: Delay::Constant(1e9), memory: 256 * 4, ..SMALL };
        let mut link = Link::new(Settings { lossless: true, ..settings }, 1);
        let mut taken = 0;
        while link.has_room(300) {
            link.accept(0, 300, |_| ());
            taken += 1;
        }
        assert_eq!((taken, link.counters.no_memory), (3, 0));
        link.pop();
        assert!(!link.has_room(300) && link.has_room(124));
        link.change(settings);
        assert!(link.has_room(300), "it drops instead");
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..Default::default() })]
        /// Whatever is set: nothing leaves before it came, everything is accounted for, and a seed gives
        /// the same again.
        #[test]
        fn nothing_is_early_and_everything_is_counted(
            loss in 0.0f64..0.5, duplicate in 0.0f64..0.5, held in 0.0f64..0.5, rate in 1e5f64..1e10,
            limit in 1usize..50, jitter in 0.0f64..1e6, overtake in any::<bool>(), seed in any::<u64>(),
            gaps in proptest::collection::vec(0u64..100_000, 1..200),
        ) {
            let settings = Settings {
                loss: Loss::Random(loss),
                duplicate,
                bandwidth: Some(Bandwidth {
                    rate: Rate::Bits(rate), overhead: 24, limit: Limit::Frames(limit), police: false,
                }),
                delay: Delay::Exponential { min: 10.0, mean: 10.0 + jitter },
                overtake,
                hold: Some(Hold { probability: held, time: 12_345 }),
                ..SMALL
            };
            let (out, counters) = run(settings, seed, &gaps);
            let accounted = out.len() as u64 + counters.dropped();
            prop_assert_eq!(accounted, counters.frames + counters.duplicated);
            let came: Vec<u64> = gaps.iter().scan(0, |now, gap| { *now += gap; Some(*now) }).collect();
            for (number, due) in &out {
                prop_assert!(*due >= came[*number as usize] + 10);
            }
            prop_assert!(out.windows(2).all(|w| w[0].1 <= w[1].1));
            prop_assert_eq!(run(settings, seed, &gaps), (out, counters));
        }
    }
}
