//! The mover: a thread that moves packets while the program makes no call.
//!
//! It sleeps rather than looks again: a program that looks at its ring all the time has a CPU for itself, and on a machine
//! with few the kernel prefers a thread that was asleep. What ends a sleep depends on how fast packets come: few wake it one by
//! one; while there are many it rests between two looks, and nothing wakes it but its clock ([`Pace`]).

use std::{
    num::NonZeroU64,
    os::fd::AsFd,
    sync::atomic::{Ordering::*, fence},
    time::{Duration, Instant},
};

use ringway_abi::Dir;
use ringway_kring::{Prepared, Sleeper, Sources, Waiter, Woken, prepare};
use rustix::{
    event::PollFlags,
    thread::{Timespec, nanosleep, set_current_timer_slack},
};

use super::{
    Found, Receiver, drain,
    kicks::REST,
    pace::{Pace, share},
    placement::Placement,
};
use crate::device::Rests;

/// How long the mover sleeps where packets wait and the program has no descriptor for them, which nothing tells: a part
/// of the time that they have waited, within these, and no less than its share of the CPU makes it rest.
const PART: u32 = 16;
const FIRST_NAP: Duration = Duration::from_micros(1);
const LONGEST_NAP: Duration = Duration::from_millis(5);
/// Nanoseconds by which the kernel may stretch such a sleep; its own setting is more than twice as long.
const SLACK: NonZeroU64 = NonZeroU64::new(1_000).unwrap();

impl Receiver {
    /// Moves packets until the ring is let go of.
    pub(super) fn run(&self, mut placement: Placement) {
        // Without it the naps are longer.
        let _ = set_current_timer_slack(Some(SLACK));
        let mut no_room_since = None;
        let begin = Instant::now();
        let rests = self.device.rests();
        let mut pace = Pace::new(0, self.position());
        let (mut idle_since, mut idle_at) = (begin, self.position());
        let mut woken = begin;
        while !self.stopping.load(SeqCst) {
            let mut queue = self.queue.lock();
            let found = self.pump(&mut queue);
            let (moved, outstanding) = (queue.ring.position(), queue.ring.outstanding());
            drop(queue);
            if found == Found::Packets {
                self.announce();
            }
            let now = Instant::now();
            let ran = nanoseconds(now - std::mem::replace(&mut woken, now));
            if found == Found::NoRoom {
                let waited = now - *no_room_since.get_or_insert(now);
                let mut nap = (waited / PART).clamp(FIRST_NAP, LONGEST_NAP);
                if rests == Rests::ByShare {
                    nap = nap.max(Duration::from_nanos(share(ran)));
                }
                self.sleep_until(Some(now + nap));
                woken = Instant::now();
                continue;
            }
            no_room_since = None;
            let time = nanoseconds(now - begin);
            let rest = match rests {
                Rests::Never => None,
                // They are to fill neither the port's ring, where others would be lost behind them, nor the frames that the
                // program has given.
                Rests::ByRoom(slots) => pace.rest(time, moved, (slots / 4).min(outstanding / 2)),
                Rests::ByShare => pace.share(time, moved, ran),
            };
            if let Some(rest) = rest {
                placement.look_after(time);
                let _ = nanosleep(&Timespec { tv_sec: 0, tv_nsec: rest as i64 });
                woken = Instant::now();
            } else if found == Found::Nothing {
                let is_helped = self.kicks.come_often(now - idle_since) && moved == idle_at;
                (idle_since, idle_at) = (now, moved);
                if !(is_helped && self.rest_beside_kicks()) {
                    self.wait();
                }
                woken = Instant::now();
            }
        }
    }

    /// Sleeps for a while, in which the program's kicks take what comes. False: a poll waits for packets.
    fn rest_beside_kicks(&self) -> bool {
        self.rests.store(true, Relaxed);
        // Either this sees the poll, or the poll sees that the mover rests.
        fence(SeqCst);
        let is_alone = !self.awaited.load(Relaxed);
        if is_alone {
            self.sleep_until(Some(Instant::now() + REST));
        }
        self.rests.store(false, Relaxed);
        is_alone
    }

    /// Sleeps until there may be packets.
    fn wait(&self) {
        if self.gone.load(Relaxed) {
            return self.sleep_until(None);
        }
        let woken = match prepare(&mut Waiting(self)) {
            Prepared::Ready => return,
            Prepared::Armed(armed) => {
                armed.sleep(self.device.rest(Dir::Rx).map(|rest| Instant::now() + rest))
            }
        };
        drain(&self.wake);
        if matches!(woken, Ok(Woken::HungUp) | Err(_)) || self.device.has_gone(Dir::Rx) {
            self.gone.store(true, Relaxed);
            self.announce();
        }
    }

    /// Sleeps until it is woken.
    fn sleep_until(&self, deadline: Option<Instant>) {
        let mut alone = Alone(self);
        if let Prepared::Armed(armed) = prepare(&mut alone) {
            let _ = armed.sleep(deadline);
        }
        drain(&self.wake);
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    duration.as_nanos() as u64
}

/// The mover, which waits for packets.
struct Waiting<'r>(&'r Receiver);

impl Waiter for Waiting<'_> {
    fn look(&mut self) -> bool {
        let found = self.0.pump(&mut self.0.queue.lock());
        if found == Found::Packets {
            self.0.announce();
        }
        found != Found::Nothing || self.0.stopping.load(SeqCst)
    }

    fn arm(&mut self) -> bool {
        self.0.device.arm(Dir::Rx)
    }

    fn pass_on(&mut self) {
        self.0.device.disarm(Dir::Rx);
    }
}

impl Sleeper for Waiting<'_> {
    fn sources<'s>(&'s self, sources: &mut Sources<'s>) {
        let Receiver { device, wake, .. } = self.0;
        sources.add(wake.as_fd(), PollFlags::IN);
        device.add_sources(Dir::Rx, sources);
    }
}

/// The mover, which waits for nothing but to be woken.
struct Alone<'r>(&'r Receiver);

impl Waiter for Alone<'_> {
    fn look(&mut self) -> bool {
        self.0.stopping.load(SeqCst)
    }

    fn arm(&mut self) -> bool {
        false
    }

    fn pass_on(&mut self) {}
}

impl Sleeper for Alone<'_> {
    fn sources<'s>(&'s self, sources: &mut Sources<'s>) {
        sources.add(self.0.wake.as_fd(), PollFlags::IN);
    }
}
