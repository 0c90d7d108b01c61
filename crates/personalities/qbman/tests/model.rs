//! Queues against a plain model of them: whatever is called in whatever order, results and frames are those of the model.

use std::collections::VecDeque;

use proptest::prelude::*;
use ringway_qbman::*;

const QUEUES: usize = 4;

#[derive(Clone, Debug)]
enum Step {
    Init { queue: usize, scheduled: bool, holds: bool },
    Schedule(usize),
    FlowControl(usize, bool),
    Enqueue { queue: usize, frames: u32 },
    Retire(usize),
    OutOfService(usize),
    Volatile { queue: usize, frames: Option<u32> },
    Take(usize),
    Consume { which: usize, park: bool },
    ShutDown(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let queue = || 0..QUEUES;
    prop_oneof![
        3 => (queue(), any::<bool>(), any::<bool>())
            .prop_map(|(queue, scheduled, holds)| Step::Init { queue, scheduled, holds }),
        1 => queue().prop_map(Step::Schedule),
        1 => (queue(), any::<bool>()).prop_map(|(queue, on)| Step::FlowControl(queue, on)),
        6 => (queue(), 1..9u32).prop_map(|(queue, frames)| Step::Enqueue { queue, frames }),
        1 => queue().prop_map(Step::Retire),
        1 => queue().prop_map(Step::OutOfService),
        2 => (queue(), prop::option::of(1..6u32)).prop_map(|(queue, frames)| Step::Volatile { queue, frames }),
        5 => (1..20usize).prop_map(Step::Take),
        6 => (any::<usize>(), any::<bool>()).prop_map(|(which, park)| Step::Consume { which, park }),
        1 => queue().prop_map(Step::ShutDown),
    ]
}

#[derive(Default)]
struct Queue {
    stage: Stage,
    holds: bool,
    is_off: bool,
    frames: VecDeque<u32>,
    /// Entries that hold it.
    held: usize,
    is_retiring: bool,
}

impl Queue {
    fn takes_frames(&self) -> bool {
        matches!(self.stage, Stage::Parked | Stage::Scheduled) && !self.is_retiring
    }

    fn is_served(&self) -> bool {
        self.stage == Stage::Scheduled && !self.is_off && !self.is_retiring
    }
}

/// An entry that is not consumed: its place, its queue, whether it holds it, and how many were taken before.
type Open = (usize, usize, bool, usize);

struct World<'m> {
    manager: &'m Manager,
    portal: Portal<'m>,
    queues: [Queue; QUEUES],
    open: Vec<Open>,
    volatile: Option<(usize, Option<u32>)>,
    next: u32,
    taken: usize,
}

/// Which queue a number is of: two numbers of manager queues differ by a page.
fn number(queue: usize) -> u32 {
    1 + queue as u32 * 600
}

impl World<'_> {
    fn run(&mut self, step: Step) {
        let manager = self.manager;
        match step {
            Step::Init { queue, scheduled, holds } => {
                let model = &mut self.queues[queue];
                let fits = matches!(model.stage, Stage::OutOfService | Stage::Parked);
                let schedule = if scheduled { Schedule::Scheduled } else { Schedule::Parked };
                let change = |settings: &mut Settings| {
                    (settings.channel, settings.hold_active) = (0x21, holds);
                    settings.work_queue = queue as u8 + 2;
                };
                assert_eq!(manager.init(number(queue), schedule, change).is_ok(), fits);
                if fits {
                    model.is_off &= model.stage == Stage::Parked;
                    model.stage = if scheduled { Stage::Scheduled } else { Stage::Parked };
                    model.holds = holds;
                }
            }
            Step::Schedule(queue) => {
                let model = &mut self.queues[queue];
                let fits = model.stage == Stage::Parked;
                assert_eq!(manager.schedule(number(queue)).is_ok(), fits);
                if fits {
                    model.stage = Stage::Scheduled;
                }
            }
            Step::FlowControl(queue, on) => {
                let model = &mut self.queues[queue];
                let fits = matches!(model.stage, Stage::Parked | Stage::Scheduled);
                assert_eq!(manager.flow_control(number(queue), on).is_ok(), fits);
                if fits {
                    model.is_off = !on;
                }
            }
            Step::Enqueue { queue, frames } => {
                let model = &mut self.queues[queue];
                for _ in 0..frames {
                    let frame = Frame { command: self.next, shape: 60, ..Frame::default() };
                    let taken = manager.enqueue(number(queue), frame);
                    let expected =
                        if model.takes_frames() { Ok(()) } else { Err(Rejection::NoService) };
                    assert_eq!(taken, expected);
                    if taken.is_ok() {
                        model.frames.push_back(self.next);
                    }
                    self.next += 1;
                }
            }
            Step::Retire(queue) => {
                let model = &mut self.queues[queue];
                let fits = model.takes_frames();
                let left = Leftover { frames: !model.frames.is_empty(), order: false };
                let done = manager.retire(number(queue), Some(self.portal.number()));
                if !fits {
                    assert_eq!(done, Err(Error::State(number(queue))));
                } else if model.held > 0 {
                    assert_eq!(done, Ok(Retired::Later));
                    model.is_retiring = true;
                } else {
                    model.stage = Stage::Retired;
                    let later = left.frames;
                    assert_eq!(done, Ok(if later { Retired::Later } else { Retired::Now(left) }));
                    let message = Message::Retired { queue: number(queue), tag: 0, left };
                    assert_eq!(self.portal.message(), later.then_some(message));
                }
            }
            Step::OutOfService(queue) => {
                let model = &mut self.queues[queue];
                let fits = model.stage == Stage::Retired && model.frames.is_empty();
                assert_eq!(manager.out_of_service(number(queue)).is_ok(), fits);
                if fits {
                    model.stage = Stage::OutOfService;
                }
            }
            Step::Volatile { queue, frames } => {
                let model = &self.queues[queue];
                let fits = matches!(model.stage, Stage::Parked | Stage::Retired);
                let request = Volatile { queue: number(queue), frames, is_last: false };
                let begun = self.portal.volatile(request);
                match self.volatile {
                    Some(_) => assert_eq!(begun, Err(Error::Busy)),
                    None => assert_eq!(begun.is_ok(), fits),
                }
                if begun.is_ok() {
                    self.volatile = Some((queue, frames));
                }
            }
            Step::Take(limit) => self.take(limit),
            Step::Consume { which, park } if !self.open.is_empty() => {
                let (place, queue, holds, _) = self.open.swap_remove(which % self.open.len());
                self.portal.consume(Consume { place, park });
                self.portal.consume(Consume { place, park });
                self.release(queue, holds, park);
            }
            Step::Consume { .. } => {}
            Step::ShutDown(queue) => {
                let mut dropped = VecDeque::new();
                manager.shut_down(number(queue), |frame| dropped.push_back(frame.command)).unwrap();
                let model = &mut self.queues[queue];
                assert_eq!(dropped, model.frames);
                // Entries that were taken stay, and hold nothing any more.
                self.open.iter_mut().filter(|open| open.1 == queue).for_each(|open| open.2 = false);
                *model = Queue::default();
            }
        }
    }

    fn take(&mut self, limit: usize) {
        let room = RING - self.span();
        let count = self.portal.fill(limit);
        assert!(count <= limit.min(room));
        let mut places = Vec::new();
        while let Some((place, entry)) = self.portal.peek() {
            let entry = *entry;
            self.portal.advance();
            let queue = (entry.queue as usize - 1) / 600;
            places.push(place);
            let model = &mut self.queues[queue];
            if entry.status.has(Status::UNSCHEDULED) {
                let (of, left) = self.volatile.as_mut().expect("one was begun");
                assert_eq!(*of, queue);
                // It may have been scheduled since.
                let is_by_hand = matches!(model.stage, Stage::Parked | Stage::Retired);
                if entry.status.has(Status::FRAME) {
                    assert!(is_by_hand);
                    assert_eq!(Some(entry.frame.command), model.frames.pop_front());
                    *left = left.map(|left| left - 1);
                }
                let is_over = model.frames.is_empty() || *left == Some(0) || !is_by_hand;
                assert_eq!(entry.status.has(Status::EXPIRED), is_over);
                if is_over {
                    self.volatile = None;
                }
                self.open.push((place, queue, false, self.taken));
                self.taken += 1;
                continue;
            }
            assert!(model.is_served());
            assert_eq!(Some(entry.frame.command), model.frames.pop_front());
            let holds = entry.status.has(Status::HELD);
            assert_eq!(holds, model.holds);
            model.held += usize::from(holds);
            self.open.push((place, queue, holds, self.taken));
            self.taken += 1;
        }
        assert_eq!(places.len(), count);
        if count < limit.min(room) && self.volatile.is_none() {
            let left =
                self.queues.iter().any(|queue| queue.is_served() && !queue.frames.is_empty());
            assert!(!left, "frames are left although there was room");
        }
    }

    /// From the oldest entry that is not consumed to the newest: places come free in order.
    fn span(&self) -> usize {
        let oldest = self.open.iter().map(|open| open.3).min();
        oldest.map_or(0, |oldest| self.taken - oldest)
    }

    fn release(&mut self, queue: usize, holds: bool, park: bool) {
        let model = &mut self.queues[queue];
        if !holds {
            return;
        }
        model.held -= 1;
        if model.held > 0 {
            return;
        }
        let queue = number(queue);
        if model.is_retiring {
            model.is_retiring = false;
            model.stage = Stage::Retired;
            let left = Leftover { frames: !model.frames.is_empty(), order: false };
            assert_eq!(self.portal.message(), Some(Message::Retired { queue, tag: 0, left }));
        } else if park {
            model.stage = Stage::Parked;
            assert_eq!(self.portal.message(), Some(Message::Parked { queue, tag: 0 }));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn as_the_model(steps in prop::collection::vec(step(), 1..120)) {
        let manager = Manager::new();
        let mut portal = manager.portal(None).unwrap();
        portal.set_pools(2);
        let queues = Default::default();
        let mut world = World { manager: &manager, portal, queues, open: Vec::new(), volatile: None, next: 0, taken: 0 };
        for step in steps {
            world.run(step);
            prop_assert_eq!(world.portal.message(), None);
        }
        for (at, queue) in world.queues.iter().enumerate() {
            let now = manager.snapshot(number(at)).unwrap();
            prop_assert_eq!((now.stage, now.frames as usize), (queue.stage, queue.frames.len()));
            prop_assert_eq!(now.bytes, 60 * queue.frames.len() as u64);
        }
    }
}
