//! What a frame costs on its way through a queue, in nanoseconds of the processor's time: the median of several rounds, and
//! the least and most.

use std::hint::black_box;

use ringway_qbman::*;
use rustix::time::{ClockId, clock_gettime};

const FRAMES: u32 = 1 << 20;
const ROUNDS: usize = 15;

/// Frames a nanosecond is too short for: nanoseconds a frame, round by round.
fn measure(name: &str, mut round: impl FnMut() -> u32) {
    let mut costs: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = now();
            let frames = round();
            (now() - start) / f64::from(frames)
        })
        .collect();
    costs.sort_by(f64::total_cmp);
    println!(
        "{name:44} {:6.1} ns  ({:.1} - {:.1})",
        costs[ROUNDS / 2],
        costs[0],
        costs[ROUNDS - 1]
    );
}

/// Nanoseconds of this thread: others do not count.
fn now() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

fn frame(number: u32) -> Frame {
    Frame::contiguous(7, u64::from(number) << 11, 64, 60)
}

fn drain(manager: &Manager, entries: &mut [Entry]) -> u32 {
    black_box(manager.drain(0x40, entries)) as u32
}

fn main() {
    let manager = Manager::new();
    let to = |channel| move |settings: &mut Settings| settings.channel = channel;
    let held = |settings: &mut Settings| {
        settings.channel = 0x21;
        settings.hold_active = true;
    };
    for queue in 1..=8 {
        manager.init(queue, Schedule::Scheduled, to(0x40)).expect("it is out of service");
        manager.init(queue + 8, Schedule::Scheduled, to(0x21)).expect("it is out of service");
        manager.init(queue + 16, Schedule::Scheduled, held).expect("it is out of service");
    }
    let mut entries = [Entry::default(); 32];

    measure("one by one into a queue, drained by 32", || {
        for number in (0..FRAMES).step_by(32) {
            (0..32)
                .for_each(|at| manager.enqueue(1, frame(number + at)).expect("it is in service"));
            assert_eq!(drain(&manager, &mut entries), 32);
        }
        FRAMES
    });
    measure("32 at once into a queue, drained by 32", || {
        let batch: Vec<_> = (0..32).map(|at| (1, frame(at))).collect();
        for _ in (0..FRAMES).step_by(32) {
            manager.enqueue_all(black_box(&batch), |_, _, _| unreachable!());
            assert_eq!(drain(&manager, &mut entries), 32);
        }
        FRAMES
    });
    measure("32 at once into 8 queues, drained by 32", || {
        let batch: Vec<_> = (0..32).map(|at| (1 + at % 8, frame(at))).collect();
        for _ in (0..FRAMES).step_by(32) {
            manager.enqueue_all(black_box(&batch), |_, _, _| unreachable!());
            assert_eq!(drain(&manager, &mut entries), 32);
        }
        FRAMES
    });
    for (name, first) in [("", 8), (", held active", 16)] {
        measure(&format!("8 queues, a portal, a queue, drained{name}"), || {
            let batch: Vec<_> = (0..16).map(|at| (first + 1 + at % 8, frame(at))).collect();
            let mut portal = manager.portal(None).expect("one is free");
            portal.set_pools(2);
            for _ in (0..FRAMES).step_by(16) {
                manager.enqueue_all(black_box(&batch), |_, _, _| unreachable!());
                let mut left = 16;
                while left > 0 {
                    left -= portal.fill(16);
                    while let Some((place, entry)) = portal.peek() {
                        let command =
                            Command { queue: 1, frame: entry.frame, ..Command::default() };
                        portal.advance();
                        portal.enqueue(command, true).expect("there is room");
                        portal.consume(Consume { place, park: false });
                    }
                    portal.flush();
                }
                assert_eq!(drain(&manager, &mut entries), 16);
            }
            FRAMES
        });
    }
    measure("8 buffers acquired and released", || {
        let mut buffers = [0; 8];
        manager.pools.release(1, &[1; 64]).expect("there is room");
        for _ in (0..FRAMES).step_by(8) {
            manager.pools.acquire(1, &mut buffers).expect("there are buffers");
            manager.pools.release(1, black_box(&buffers)).expect("there is room");
        }
        FRAMES
    });
}
