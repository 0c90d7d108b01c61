//! What a queue does from its first frame to its last, through portals and interfaces.

use std::sync::Arc;

use ringway_qbman::{Schedule::*, *};

const QUEUE: u32 = 0x400;

fn frame(number: u32) -> Frame {
    Frame { buffer: 7 << 48 | u64::from(number), shape: 60, command: number }
}

fn pool_1(settings: &mut Settings) {
    settings.channel = 0x21;
    settings.work_queue = 4;
}

/// What a portal takes now, with everything consumed at once.
fn take(portal: &mut Portal, limit: usize) -> Vec<Entry> {
    portal.fill(limit);
    let mut taken = Vec::new();
    while let Some((place, entry)) = portal.peek() {
        taken.push(*entry);
        portal.advance();
        portal.consume(Consume { place, park: false });
    }
    taken
}

fn numbers(entries: &[Entry]) -> Vec<u32> {
    entries.iter().map(|entry| entry.frame.command).collect()
}

fn send(manager: &Manager, queue: u32, numbers: std::ops::Range<u32>) {
    numbers.for_each(|number| manager.enqueue(queue, frame(number)).unwrap());
}

fn pooled(manager: &Manager) -> Portal<'_> {
    let mut portal = manager.portal(None).unwrap();
    portal.set_pools(2);
    portal
}

#[test]
fn frames_pass_in_order_with_context_and_sequence() {
    let manager = Manager::new();
    let mut portal = pooled(&manager);
    let settings = |settings: &mut Settings| {
        pool_1(settings);
        (settings.context_a, settings.context_b) = (5, 6);
    };
    manager.init(QUEUE, Scheduled, settings).unwrap();
    send(&manager, QUEUE, 0..40);
    let mut all = Vec::new();
    while let entries = take(&mut portal, 100)
        && !entries.is_empty()
    {
        assert!(entries.len() <= RING);
        all.extend(entries);
    }
    assert_eq!(numbers(&all), (0..40).collect::<Vec<_>>());
    for (at, entry) in all.iter().enumerate() {
        let expected = (QUEUE, 5, 6, at as u16);
        assert_eq!((entry.queue, entry.context_a, entry.context_b, entry.sequence), expected);
        assert!(entry.status.has(Status::FRAME));
        assert_eq!(entry.status.has(Status::EMPTY), at == 39);
    }
}

/// Entries that are left from before it was shut down hold it no more, also when others do.
#[test]
fn a_queue_that_was_shut_down_is_held_by_new_entries_alone() {
    let manager = Manager::new();
    let mut portal = pooled(&manager);
    let held = |settings: &mut Settings| {
        pool_1(settings);
        settings.hold_active = true;
    };
    let mut hold = |numbers: std::ops::Range<u32>| {
        manager.init(QUEUE, Scheduled, held).unwrap();
        send(&manager, QUEUE, numbers);
        assert_eq!(portal.fill(1), 1);
        let (place, _) = portal.peek().unwrap();
        portal.advance();
        place
    };
    let old = hold(0..1);
    manager.shut_down(QUEUE, |_| panic!("it was taken")).unwrap();
    let new = hold(1..3);
    assert_eq!(manager.retire(QUEUE, Some(portal.number())), Ok(Retired::Later));
    portal.consume(Consume { place: new, park: false });
    let left = Leftover { frames: true, order: false };
    assert_eq!(portal.message(), Some(Message::Retired { queue: QUEUE, tag: 0, left }));
    portal.consume(Consume { place: old, park: true });
    assert_eq!(portal.message(), None);
}

#[test]
fn a_parked_queue_waits_and_xoff_stops() {
    let manager = Manager::new();
    let mut portal = pooled(&manager);
    manager.init(QUEUE, Parked, pool_1).unwrap();
    send(&manager, QUEUE, 0..2);
    assert!(take(&mut portal, 16).is_empty() && !portal.has_frames());
    manager.flow_control(QUEUE, false).unwrap();
    manager.schedule(QUEUE).unwrap();
    assert!(take(&mut portal, 16).is_empty());
    manager.flow_control(QUEUE, true).unwrap();
    assert_eq!(numbers(&take(&mut portal, 1)), [0]);
    manager.flow_control(QUEUE, false).unwrap();
    assert!(take(&mut portal, 1).is_empty());
    manager.flow_control(QUEUE, true).unwrap();
    assert_eq!(numbers(&take(&mut portal, 1)), [1]);
    assert_eq!(manager.schedule(QUEUE), Err(Error::State(QUEUE)));
}

#[test]
fn an_interface_drains_its_channel_and_sleeps() {
    let manager = Manager::new();
    manager.init(QUEUE, Scheduled, |settings| settings.channel = 0x40).unwrap();
    let sleeper = Arc::new(Notifier::new().unwrap());
    let readable = || {
        let fd = sleeper.fd();
        let mut fds = [rustix::event::PollFd::new(&fd, rustix::event::PollFlags::IN)];
        rustix::event::poll(&mut fds, Some(&rustix::event::Timespec::default())).unwrap() == 1
    };
    assert!(manager.arm(0x40, &sleeper) && !readable());
    send(&manager, QUEUE, 0..50);
    assert!(readable());
    sleeper.clear();
    assert!(!manager.arm(0x40, &sleeper));
    let mut entries = [Entry::default(); 32];
    assert_eq!(manager.drain(0x40, &mut entries), 32);
    assert_eq!(numbers(&entries), (0..32).collect::<Vec<_>>());
    assert_eq!(manager.drain(0x40, &mut entries), 18);
    assert_eq!(manager.drain(0x40, &mut entries), 0);
    assert!(manager.arm(0x40, &sleeper) && !readable());
    assert_eq!(manager.drain(0x20, &mut entries), 0);
}

#[test]
fn what_is_not_in_service_rejects() {
    let manager = Manager::new();
    let mut portal = manager.portal(Some(3)).unwrap();
    let refused = Err(Rejection::NoService);
    assert_eq!(manager.enqueue(0, frame(0)), refused);
    assert_eq!(manager.enqueue(u32::MAX, frame(0)), refused);
    assert_eq!(manager.enqueue(QUEUE, frame(0)), refused);
    let command = Command { queue: QUEUE, frame: frame(9), tag: 77, ..Command::default() };
    portal.enqueue(command, false).unwrap();
    let why = Rejection::NoService;
    let message = Message::Rejected { frame: frame(9), queue: QUEUE, tag: 77, why, order: None };
    assert_eq!(portal.message(), Some(message));
    assert_eq!(portal.message(), None);
}

#[test]
fn a_scheduled_queue_with_frames_retires_later_and_is_drained() {
    let manager = Manager::new();
    let mut portal = pooled(&manager);
    manager.init(QUEUE, Scheduled, pool_1).unwrap();
    send(&manager, QUEUE, 0..20);
    assert_eq!(manager.retire(QUEUE, Some(portal.number())), Ok(Retired::Later));
    assert_eq!(manager.retire(QUEUE, None), Err(Error::State(QUEUE)));
    assert!(take(&mut portal, 16).is_empty());
    let left = Leftover { frames: true, order: false };
    assert_eq!(portal.message(), Some(Message::Retired { queue: QUEUE, tag: 0, left }));
    assert_eq!(manager.out_of_service(QUEUE), Err(Error::NotEmpty(QUEUE)));
    let all = Volatile { queue: QUEUE, frames: None, is_last: false };
    portal.volatile(all).unwrap();
    assert_eq!(portal.volatile(all), Err(Error::Busy));
    let mut entries = take(&mut portal, 16);
    entries.extend(take(&mut portal, 16));
    assert_eq!(numbers(&entries), (0..20).collect::<Vec<_>>());
    let over = Status::EXPIRED | Status::EMPTY;
    assert!(entries[..19].iter().all(|entry| !entry.status.has(Status::EXPIRED)));
    assert!(entries[19].status.has(over) && entries[0].status.has(Status::UNSCHEDULED));
    portal.volatile(all).unwrap();
    let last = take(&mut portal, 16);
    assert_eq!(last.len(), 1);
    assert_eq!(last[0].status, over | Status::UNSCHEDULED);
    manager.out_of_service(QUEUE).unwrap();
    assert_eq!(manager.enqueue(QUEUE, frame(0)), Err(Rejection::NoService));
    assert_eq!(portal.volatile(all), Err(Error::State(QUEUE)));
}

#[test]
fn an_empty_queue_retires_at_once() {
    let manager = Manager::new();
    for schedule in [Parked, Scheduled] {
        manager.init(QUEUE, schedule, pool_1).unwrap();
        assert_eq!(manager.retire(QUEUE, Some(0)), Ok(Retired::Now(Leftover::default())));
        manager.out_of_service(QUEUE).unwrap();
    }
    assert_eq!(manager.retire(QUEUE, None), Err(Error::State(QUEUE)));
    assert_eq!(manager.retire(0, None), Err(Error::NoQueue(0)));
    let bad = manager.init(QUEUE, Parked, |settings| settings.channel = 0x20);
    assert_eq!(bad, Err(Error::NoChannel(0x20)));
    assert_eq!(manager.snapshot(QUEUE).unwrap().stage, Stage::OutOfService);
}

fn held(settings: &mut Settings) {
    pool_1(settings);
    settings.hold_active = true;
}

#[test]
fn a_queue_that_is_held_stays_with_its_portal() {
    let manager = Manager::new();
    let (mut one, mut other) = (pooled(&manager), pooled(&manager));
    manager.init(QUEUE, Scheduled, held).unwrap();
    send(&manager, QUEUE, 0..10);
    assert_eq!(one.fill(2), 2);
    let (place, entry) = one.peek().unwrap();
    assert!(entry.status.has(Status::HELD));
    one.advance();
    assert_eq!(other.fill(16), 0);
    assert_eq!(one.fill(4), 4);
    one.consume(Consume { place, park: false });
    assert_eq!(other.fill(16), 0);
    while let Some((place, _)) = one.peek() {
        one.advance();
        one.consume(Consume { place, park: false });
    }
    assert_eq!(other.fill(16), 5);
    assert_eq!(other.peek().unwrap().1.frame.command, 5);
}

#[test]
fn a_queue_that_is_held_is_parked_on_request() {
    let manager = Manager::new();
    let mut portal = pooled(&manager);
    manager.init(QUEUE, Scheduled, held).unwrap();
    send(&manager, QUEUE, 0..2);
    portal.fill(1);
    let place = portal.peek().unwrap().0;
    portal.consume(Consume { place, park: true });
    assert_eq!(portal.message(), None, "it was not handed out");
    portal.advance();
    portal.consume(Consume { place, park: true });
    portal.consume(Consume { place, park: true });
    assert_eq!(portal.message(), Some(Message::Parked { queue: QUEUE, tag: 0 }));
    assert!(take(&mut portal, 16).is_empty());
    manager.schedule(QUEUE).unwrap();
    assert_eq!(numbers(&take(&mut portal, 16)), [1]);
}

#[test]
fn a_queue_that_is_held_retires_when_it_is_let_go() {
    let manager = Manager::new();
    let mut portal = pooled(&manager);
    let teller = manager.portal(None).unwrap();
    manager.init(QUEUE, Scheduled, held).unwrap();
    send(&manager, QUEUE, 0..2);
    portal.fill(1);
    let place = portal.peek().unwrap().0;
    portal.advance();
    assert_eq!(manager.retire(QUEUE, Some(teller.number())), Ok(Retired::Later));
    assert_eq!(manager.enqueue(QUEUE, frame(3)), Err(Rejection::NoService));
    assert_eq!(teller.message(), None);
    portal.consume(Consume { place, park: false });
    let left = Leftover { frames: true, order: false };
    assert_eq!(teller.message(), Some(Message::Retired { queue: QUEUE, tag: 0, left }));
}

/// What order restoration has kept back is told before the queue is retired, that nothing is left of it behind that.
#[test]
fn a_queue_that_is_held_and_restores_order_retires_when_it_is_let_go() {
    let manager = Manager::new();
    let mut portal = pooled(&manager);
    let ordered = |settings: &mut Settings| {
        held(settings);
        settings.order = Some(OrderSettings::default());
    };
    manager.init(QUEUE, Scheduled, ordered).unwrap();
    send(&manager, QUEUE, 0..1);
    portal.fill(1);
    let place = portal.peek().unwrap().0;
    portal.advance();
    let order = Order { point: QUEUE, sequence: 1, kind: OrderKind::Frame, is_last: true };
    let command = Command { queue: 2, order: Some(order), ..Command::default() };
    portal.enqueue(command, false).unwrap();
    assert_eq!(manager.retire(QUEUE, Some(portal.number())), Ok(Retired::Later));
    let why = Rejection::OrderRetired;
    assert!(matches!(portal.message(), Some(Message::Rejected { why: it, .. }) if it == why));
    assert_eq!(portal.message(), None);
    portal.consume(Consume { place, park: false });
    let left = Leftover { frames: false, order: true };
    assert_eq!(portal.message(), Some(Message::Retired { queue: QUEUE, tag: 0, left }));
    assert_eq!(portal.message(), Some(Message::OrderEmpty { queue: QUEUE, tag: 0 }));
}

/// A queue that is scheduled while frames are taken from it by hand goes on by itself, in order.
#[test]
fn a_volatile_dequeue_ends_when_its_queue_is_scheduled() {
    let manager = Manager::new();
    let mut portal = pooled(&manager);
    manager.init(QUEUE, Parked, pool_1).unwrap();
    send(&manager, QUEUE, 0..6);
    portal.volatile(Volatile { queue: QUEUE, frames: None, is_last: false }).unwrap();
    assert_eq!(numbers(&take(&mut portal, 2)), [0, 1]);
    manager.schedule(QUEUE).unwrap();
    let last = take(&mut portal, 1);
    assert_eq!(last[0].status, Status::UNSCHEDULED | Status::EXPIRED);
    let others = take(&mut portal, 16);
    assert_eq!(numbers(&others), [2, 3, 4, 5]);
    assert!(others.iter().all(|entry| !entry.status.has(Status::UNSCHEDULED)));
    portal.volatile(Volatile { queue: QUEUE, frames: None, is_last: false }).unwrap_err();
}

/// Pools take turns, whichever of them have something.
#[test]
fn pools_take_turns() {
    let manager = Manager::new();
    let mut portal = manager.portal(None).unwrap();
    portal.set_pools(0xfffe);
    assert!(!portal.has_frames() && portal.fill(16) == 0);
    for pool in [1, 7, 15] {
        let channel = pool_channel(Pool(pool)).unwrap();
        manager.init(pool.into(), Scheduled, |settings| settings.channel = channel).unwrap();
        send(&manager, pool.into(), 0..100);
    }
    assert!(portal.has_frames());
    let mut served = [0; 16];
    for _ in 0..30 {
        for entry in take(&mut portal, 3) {
            served[entry.queue as usize] += 1;
        }
    }
    assert_eq!(served.iter().sum::<u32>(), 90);
    assert!([1, 7, 15].iter().all(|pool| served[*pool] >= 6), "{served:?}");
    while portal.has_frames() {
        take(&mut portal, 16);
    }
    portal.set_pools(1 << 7);
    send(&manager, 1, 0..1);
    assert!(!portal.has_frames(), "another's");
    send(&manager, 7, 0..1);
    assert_eq!(take(&mut portal, 16)[0].queue, 7);
}

#[test]
fn an_entry_is_consumed_by_the_enqueue_that_says_so() {
    let manager = Manager::new();
    let mut portal = pooled(&manager);
    manager.init(QUEUE, Scheduled, held).unwrap();
    manager.init(2, Scheduled, |settings| settings.channel = 0x40).unwrap();
    send(&manager, QUEUE, 0..1);
    portal.fill(16);
    let (place, entry) = portal.peek().unwrap();
    let frame = entry.frame;
    portal.advance();
    let consume = Some(Consume { place, park: false });
    portal.enqueue(Command { queue: 2, frame, consume, ..Command::default() }, true).unwrap();
    assert!(manager.snapshot(QUEUE).unwrap().is_held && !portal.is_flushed());
    portal.flush();
    assert!(!manager.snapshot(QUEUE).unwrap().is_held && portal.is_flushed());
    let mut entries = [Entry::default(); 2];
    assert_eq!(manager.drain(0x40, &mut entries), 1);
}

#[test]
fn an_entry_is_handed_out_again_when_it_is_taken_back() {
    let manager = Manager::new();
    let mut portal = pooled(&manager);
    manager.init(QUEUE, Scheduled, pool_1).unwrap();
    send(&manager, QUEUE, 0..2);
    portal.fill(2);
    portal.advance();
    portal.retract();
    portal.retract();
    assert_eq!(numbers(&take(&mut portal, 16)), [0, 1]);
    portal.retract();
    assert!(portal.peek().is_none());
}

#[test]
fn order_is_restored_between_portals() {
    let manager = Manager::new();
    let (mut one, mut other) = (manager.portal(None).unwrap(), manager.portal(None).unwrap());
    let point = |settings: &mut Settings| settings.order = Some(OrderSettings::default());
    manager.init(QUEUE, Scheduled, point).unwrap();
    manager.init(2, Scheduled, |settings| settings.channel = 0x40).unwrap();
    let command = |sequence: u16, kind| Command {
        queue: 2,
        frame: frame(sequence.into()),
        tag: sequence.into(),
        order: Some(Order { point: QUEUE, sequence, kind, is_last: true }),
        consume: None,
    };
    for sequence in [3, 1] {
        one.enqueue(command(sequence, OrderKind::Frame), false).unwrap();
    }
    other.enqueue(command(2, OrderKind::Hole), false).unwrap();
    let mut entries = [Entry::default(); 8];
    assert_eq!(manager.drain(0x40, &mut entries), 0);
    other.enqueue(command(0, OrderKind::Frame), false).unwrap();
    assert_eq!(manager.drain(0x40, &mut entries), 3);
    assert_eq!(numbers(&entries[..3]), [0, 1, 3]);
    for (sequence, why) in [(100, Rejection::Early), (3, Rejection::Late)] {
        one.enqueue(command(sequence, OrderKind::Frame), false).unwrap();
        let rejected = one.message();
        assert!(matches!(rejected, Some(Message::Rejected { why: it, .. }) if it == why));
    }
    // What is kept back comes home when the point retires.
    one.enqueue(command(6, OrderKind::Frame), false).unwrap();
    let number = other.number();
    let left = Leftover { frames: false, order: true };
    assert_eq!(manager.retire(QUEUE, Some(number)), Ok(Retired::Now(left)));
    assert_eq!(other.message(), Some(Message::OrderEmpty { queue: QUEUE, tag: 0 }));
    let home = one.message();
    let retired = Rejection::OrderRetired;
    assert!(matches!(home, Some(Message::Rejected { tag: 6, why, .. }) if why == retired));
    one.enqueue(command(4, OrderKind::Frame), false).unwrap();
    assert!(matches!(one.message(), Some(Message::Rejected { why, .. }) if why == retired));
    one.enqueue(
        Command {
            order: Some(Order { point: 2, sequence: 0, kind: OrderKind::Frame, is_last: true }),
            ..command(0, OrderKind::Frame)
        },
        false,
    )
    .unwrap();
    assert!(matches!(one.message(), Some(Message::Rejected { why: Rejection::NoOrder, .. })));
}

#[test]
fn full_queues_and_congested_groups_reject() {
    let manager = Manager::new();
    let settings = |settings: &mut Settings| {
        settings.channel = 0x40;
        settings.tail_drop = Some(TailDrop { bytes: 120 });
    };
    manager.init(QUEUE, Scheduled, settings).unwrap();
    send(&manager, QUEUE, 0..2);
    assert_eq!(manager.enqueue(QUEUE, frame(2)), Err(Rejection::TailDrop));

    let drops = GroupSettings {
        unit: Unit::Frames,
        threshold: Some(8),
        drops: true,
        ..GroupSettings::default()
    };
    manager.set_group(5, drops).unwrap();
    let member = |settings: &mut Settings| {
        settings.channel = 0x41;
        settings.group = Some(5);
    };
    manager.init(1, Scheduled, member).unwrap();
    manager.init(2, Scheduled, member).unwrap();
    let portal = manager.portal(None).unwrap();
    let sleeper = Arc::new(Notifier::new().unwrap());
    let group = manager.group(5).unwrap();
    assert!(portal.arm_congestion(&sleeper, || !group.is_congested()));
    send(&manager, 1, 0..4);
    send(&manager, 2, 0..3);
    assert!(!group.is_congested());
    send(&manager, 2, 3..4);
    assert!(group.is_congested() && group.count() == 8);
    assert_eq!(manager.enqueue(1, frame(0)), Err(Rejection::Congested));
    let mut entries = [Entry::default(); 1];
    manager.drain(0x41, &mut entries);
    assert!(group.is_congested(), "7 of 8 is where it ends");
    manager.drain(0x41, &mut entries);
    assert!(!group.is_congested());
    assert_eq!(manager.enqueue(1, frame(0)), Ok(()));
    manager.shut_down(1, |_| {}).unwrap();
    manager.shut_down(2, |_| {}).unwrap();
    assert_eq!(group.count(), 0);
}

#[test]
fn portals_are_given_out_once_and_come_back() {
    let manager = Manager::new();
    let all: Vec<_> = (0..PORTALS).map(|_| manager.portal(None).unwrap()).collect();
    assert!(matches!(manager.portal(None), Err(Error::NoPortal)));
    assert!(matches!(manager.portal(Some(0)), Err(Error::NoPortal)));
    drop(all);
    assert_eq!(manager.portal(Some(7)).unwrap().number(), 7);
    assert!(matches!(manager.portal(Some(PORTALS)), Err(Error::NoPortal)));
}

#[test]
fn a_portal_that_goes_lets_go_of_what_it_holds() {
    let manager = Manager::new();
    manager.init(QUEUE, Scheduled, held).unwrap();
    send(&manager, QUEUE, 0..4);
    let mut gone = pooled(&manager);
    gone.fill(2);
    drop(gone);
    assert_eq!(numbers(&take(&mut pooled(&manager), 16)), [2, 3]);
}
