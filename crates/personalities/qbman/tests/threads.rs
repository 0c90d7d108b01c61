//! Several threads at once: no frame is lost or doubled, and queues that are held active keep their order.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering::*},
    },
    thread,
};

use ringway_qbman::*;
use rustix::event::{PollFd, PollFlags, poll};

const QUEUES: u32 = 6;
const OF_QUEUE: u32 = 20_000;

fn settings(hold_active: bool) -> impl Fn(&mut Settings) {
    move |settings| {
        settings.channel = 0x21;
        settings.work_queue = 4;
        settings.hold_active = hold_active;
    }
}

/// Waits for whatever `arm` is armed for.
fn sleep(notifier: &Arc<Notifier>, arm: impl Fn(&Arc<Notifier>) -> bool) {
    if arm(notifier) {
        let fd = notifier.fd();
        poll(&mut [PollFd::new(&fd, PollFlags::IN)], None).unwrap();
    }
    notifier.clear();
}

/// Two threads enqueue, three take from a pool and enqueue to a channel, one drains that, each asleep while there is
/// nothing: what comes out is what went in.
fn pass(hold_active: bool) {
    let manager = Manager::new();
    for queue in 1..=QUEUES {
        manager.init(queue, Schedule::Scheduled, settings(hold_active)).unwrap();
    }
    manager.init(100, Schedule::Scheduled, |settings| settings.channel = 0x40).unwrap();
    let taken: Vec<AtomicU32> = (0..QUEUES).map(|_| AtomicU32::new(0)).collect();
    let is_over = AtomicBool::new(false);
    let sleepers: Vec<_> = (0..3).map(|_| Arc::new(Notifier::new().unwrap())).collect();
    thread::scope(|scope| {
        for half in 0..2 {
            let manager = &manager;
            scope.spawn(move || {
                for number in 0..OF_QUEUE {
                    for queue in (1..=QUEUES).filter(|queue| queue % 2 == half) {
                        let frame = Frame { buffer: u64::from(queue), shape: 60, command: number };
                        manager.enqueue(queue, frame).unwrap();
                    }
                }
            });
        }
        for sleeper in &sleepers {
            let (manager, taken, is_over) = (&manager, &taken, &is_over);
            scope.spawn(move || {
                let mut portal = manager.portal(None).unwrap();
                portal.set_pools(2);
                while !is_over.load(Acquire) {
                    if portal.fill(16) == 0 {
                        sleep(sleeper, |sleeper| {
                            portal.arm_frames(sleeper) && !is_over.load(Acquire)
                        });
                        continue;
                    }
                    while let Some((place, entry)) = portal.peek() {
                        let (frame, queue) = (entry.frame, entry.queue);
                        let before = taken[queue as usize - 1].fetch_add(1, AcqRel);
                        assert!(
                            !hold_active || before == frame.command,
                            "{queue}: {before} {frame:?}"
                        );
                        portal.advance();
                        let consume = Some(Consume { place, park: false });
                        let command = Command { queue: 100, frame, consume, ..Command::default() };
                        portal.enqueue(command, true).unwrap();
                    }
                    portal.flush();
                }
                assert_eq!(portal.message(), None);
            });
        }
        let sleeper = Arc::new(Notifier::new().unwrap());
        let mut seen = vec![vec![false; OF_QUEUE as usize]; QUEUES as usize];
        let mut next = [0; QUEUES as usize];
        let mut left = QUEUES * OF_QUEUE;
        let mut entries = [Entry::default(); 32];
        while left > 0 {
            let count = manager.drain(0x40, &mut entries);
            if count == 0 {
                sleep(&sleeper, |sleeper| manager.arm(0x40, sleeper));
            }
            for entry in &entries[..count] {
                let (queue, number) = (entry.frame.buffer as usize - 1, entry.frame.command);
                assert!(!std::mem::replace(&mut seen[queue][number as usize], true), "doubled");
                assert!(!hold_active || next[queue] == number, "order is kept");
                next[queue] = number + 1;
                left -= 1;
            }
        }
        is_over.store(true, Release);
        sleepers.iter().for_each(|sleeper| sleeper.raise());
    });
    for queue in 1..=QUEUES {
        assert_eq!(manager.snapshot(queue).unwrap().frames, 0);
    }
}

#[test]
fn no_frame_is_lost_or_doubled() {
    pass(false);
}

#[test]
fn queues_that_are_held_keep_their_order() {
    pass(true);
}

/// Queues retire while others enqueue to them and take from them: what was taken in comes out, by one way or the other.
#[test]
fn what_was_taken_in_comes_out_of_queues_that_retire() {
    let manager = Manager::new();
    let accepted = AtomicU32::new(0);
    let passed = AtomicU32::new(0);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(Acquire) {
                    for queue in 1..=4 {
                        let taken = manager.enqueue(queue, Frame::default());
                        accepted.fetch_add(taken.is_ok().into(), AcqRel);
                    }
                }
            });
        }
        scope.spawn(|| {
            let mut portal = manager.portal(None).unwrap();
            portal.set_pools(2);
            while !is_over.load(Acquire) || portal.fill(16) > 0 {
                portal.fill(16);
                while let Some((place, _)) = portal.peek() {
                    passed.fetch_add(1, AcqRel);
                    portal.advance();
                    portal.consume(Consume { place, park: false });
                }
            }
        });
        let mut portal = manager.portal(None).unwrap();
        let number = Some(portal.number());
        for round in 0..200 {
            let queue = 1 + round % 4;
            manager.init(queue, Schedule::Scheduled, settings(round % 3 == 0)).unwrap();
            while manager.snapshot(queue).unwrap().sequence < 20 {
                thread::yield_now();
            }
            if manager.retire(queue, number).unwrap() == Retired::Later {
                let left = loop {
                    match portal.message() {
                        Some(Message::Retired { left, .. }) => break left,
                        Some(other) => panic!("{other:?}"),
                        None => thread::yield_now(),
                    }
                };
                assert_eq!(left.frames, manager.snapshot(queue).unwrap().frames > 0);
                portal.volatile(Volatile { queue, frames: None, is_last: false }).unwrap();
                let mut is_done = false;
                while !is_done {
                    portal.fill(16);
                    while let Some((place, entry)) = portal.peek() {
                        passed.fetch_add(entry.status.has(Status::FRAME).into(), AcqRel);
                        is_done |= entry.status.has(Status::EXPIRED);
                        portal.advance();
                        portal.consume(Consume { place, park: false });
                    }
                }
            }
            manager.out_of_service(queue).unwrap();
        }
        is_over.store(true, Release);
    });
    assert_eq!(accepted.load(Acquire), passed.load(Acquire));
}
