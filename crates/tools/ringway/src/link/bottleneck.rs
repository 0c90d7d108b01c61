//! The slowest part of a link: frames go through it one after the other, wait for it in a queue, and are
//! dropped when that is full.

use super::rate::TransmitTime;
use crate::units::Rate;
use std::collections::VecDeque;

/// What may wait, that which is being transmitted included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    Frames(usize),
    Bytes(u64),
    None,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bandwidth {
    pub rate: Rate,
    /// Bytes on the wire that each frame takes beside its own.
    pub overhead: u32,
    pub limit: Limit,
    /// Frames do not wait: the limit is what may go at once beyond the rate.
    pub police: bool,
}

#[derive(Clone, Debug)]
pub struct Bottleneck {
    times: TransmitTime,
    limit: Limit,
    police: bool,
    /// When everything is through that is in it.
    free_at: u64,
    /// When each frame is through, and its length.
    waiting: VecDeque<(u64, u32)>,
    bytes: u64,
}

impl Bottleneck {
    /// `most`: frames that wait at the most, whatever the limit says.
    pub fn new(bandwidth: Bandwidth, most: usize) -> Bottleneck {
        let Bandwidth { rate, overhead, limit, police } = bandwidth;
        let frames = if let Limit::Frames(frames) = limit { frames.min(most) } else { most };
        Bottleneck {
            times: TransmitTime::new(rate, overhead),
            limit: if limit == Limit::None { Limit::Frames(most) } else { limit },
            police,
            free_at: 0,
            waiting: VecDeque::with_capacity(frames),
            bytes: 0,
        }
    }

    /// Another bandwidth from now on. What is in it already is through when it would have been.
    pub fn change(&mut self, bandwidth: Bandwidth, most: usize) {
        let mut changed = Bottleneck::new(bandwidth, most);
        changed.free_at = self.free_at;
        changed.bytes = self.bytes;
        changed.waiting.extend(self.waiting.drain(..));
        *self = changed;
    }

    /// A frame comes, not before the last one. Returns when it is through; `None`: the queue is full.
    #[inline]
    pub fn enter(&mut self, now: u64, length: usize) -> Option<u64> {
        while let Some(&(through, length)) = self.waiting.front()
            && through <= now
        {
            self.waiting.pop_front();
            self.bytes -= u64::from(length);
        }
        let is_full = match self.limit {
            Limit::Frames(most) => self.waiting.len() >= most,
            Limit::Bytes(most) => self.bytes + length as u64 > most,
            Limit::None => false,
        };
        if is_full || self.waiting.len() == self.waiting.capacity() {
            return None;
        }
        self.free_at = self.free_at.max(now) + self.times.of(length);
        self.waiting.push_back((self.free_at, length as u32));
        self.bytes += length as u64;
        Some(if self.police { now } else { self.free_at })
    }

    /// Bytes that wait, as of the last frame that came.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(rate: Rate, limit: Limit) -> Bottleneck {
        Bottleneck::new(Bandwidth { rate, overhead: 0, limit, police: false }, 1 << 16)
    }

    #[test]
    fn frames_go_through_one_after_the_other() {
        let mut link = at(Rate::Bits(8e9), Limit::None);
        assert_eq!(link.enter(0, 1000), Some(1000));
        assert_eq!(link.enter(100, 500), Some(1500));
        assert_eq!(link.enter(5000, 60), Some(5060));
    }

    #[test]
    fn a_full_queue_drops_what_comes_last() {
        let mut link = at(Rate::Bits(8e9), Limit::Bytes(1000));
        assert_eq!(
            [link.enter(0, 600), link.enter(0, 500), link.enter(0, 400)],
            [Some(600), None, Some(1000)]
        );
        // The first is through.
        assert_eq!(link.enter(600, 600), Some(1600));
        let mut link = at(Rate::Packets(1e9), Limit::Frames(2));
        assert_eq!([(); 3].map(|()| link.enter(0, 60)), [Some(1), Some(2), None]);
    }

    #[test]
    fn policing_delays_nothing() {
        let bandwidth = Bandwidth {
            rate: Rate::Bits(8e9),
            overhead: 0,
            limit: Limit::Bytes(1000),
            police: true,
        };
        let mut link = Bottleneck::new(bandwidth, 100);
        assert_eq!(
            [link.enter(5, 600), link.enter(6, 400), link.enter(7, 60)],
            [Some(5), Some(6), None]
        );
        assert_eq!(link.enter(700, 60), Some(700));
    }

    #[test]
    fn what_waits_keeps_its_time_when_the_rate_changes() {
        let mut link = at(Rate::Bits(8e9), Limit::Bytes(1500));
        assert_eq!([link.enter(0, 1000), link.enter(0, 500)], [Some(1000), Some(1500)]);
        let limit = Limit::Bytes(2000);
        let twice = Bandwidth { rate: Rate::Bits(16e9), overhead: 0, limit, police: false };
        link.change(twice, 1 << 16);
        assert_eq!([link.enter(0, 500), link.enter(0, 1)], [Some(1750), None]);
        let less = Bandwidth { limit: Limit::Frames(1), ..twice };
        link.change(less, 1 << 16);
        assert_eq!([link.enter(1000, 1), link.enter(1750, 100)], [None, Some(1800)]);
    }

    proptest! {
        /// A model that keeps everything: what is through is not dropped, in order, never faster than the
        /// rate, and never idle while something waits.
        #[test]
        fn it_is_a_server_with_a_finite_queue(
            frames in proptest::collection::vec((0u64..3000, 1usize..2000), 1..300), most in 1usize..20,
        ) {
            let mut link = at(Rate::Bits(8e9), Limit::Frames(most));
            let (mut now, mut through) = (0, Vec::<u64>::new());
            for (gap, length) in frames {
                now += gap;
                let waiting = through.iter().filter(|t| **t > now).count();
                let begins = through.last().copied().unwrap_or(0).max(now);
                match link.enter(now, length) {
                    None => prop_assert_eq!(waiting, most),
                    Some(time) => {
                        prop_assert!(waiting < most);
                        prop_assert_eq!(time, begins + length as u64);
                        through.push(time);
                    }
                }
            }
        }
    }
}
