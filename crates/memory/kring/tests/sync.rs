//! A sync against a plain model of its rules (S-SYNC-4 to S-SYNC-8), and what else a ring tells.
#![cfg(not(any(loom, miri)))]

use std::{
    cell::{Cell, RefCell},
    sync::{Arc, atomic::Ordering::Relaxed},
};

use proptest::{collection::vec, prelude::*};
use ringway_abi::{Dir, NR_TIMESTAMP, NS_BUF_CHANGED, NS_REPORT};
use ringway_kring::{Accepted, Driver, Kring, Outcome, Turn};
use ringway_region::{Layout, Region, RingInit, Sizes};

const SLOTS: u32 = 8;
const OBJECT: u32 = 1;
const FIRST_BUF: u32 = 2;

fn ring(dir: Dir) -> Kring {
    let layout = Layout::new(&Sizes::private([1, 1], [SLOTS; 2], 0, 0), 0).unwrap();
    let region = Arc::new(Region::create(2, layout).unwrap());
    let init = RingInit { dir, ringid: 3, num_slots: SLOTS };
    let bufs: Vec<u32> = (FIRST_BUF..).take(SLOTS as usize).collect();
    Kring::create(&region, OBJECT, &init, &bufs).unwrap()
}

fn move_to(kring: &Kring, head: u32, cur: u32) {
    kring.ring().set_head(head);
    kring.ring().set_cur(cur);
}

/// Moves nothing but the tail, when it is called, and notes how it is called.
#[derive(Default)]
struct Service {
    calls: RefCell<Vec<(u32, u32)>>,
    /// The tail that the next call publishes.
    news: Cell<Option<u32>>,
    fails: bool,
}

impl Driver for Service {
    fn sync(&self, kring: &Kring, Accepted { head, cur }: Accepted) {
        self.calls.borrow_mut().push((head, cur));
        if let Some(tail) = self.news.take() {
            kring.csb().service.publish(head, tail);
        }
    }

    fn fails(&self, _: &Kring) -> bool {
        self.fails
    }
}

/// What a ring is to a reader of the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Model {
    head: u32,
    cur: u32,
    tail: u32,
    /// At the last accepted sync, and as the program was told.
    rhead: u32,
    rtail: u32,
    hwtail: u32,
    errors: u64,
}

impl Model {
    /// Whether head and cur are among the slots from `rhead` to `end`, in this order.
    fn admits(&self, end: u32) -> bool {
        let mut slots = vec![self.rhead];
        while slots[slots.len() - 1] != end {
            slots.push((slots[slots.len() - 1] + 1) % SLOTS);
        }
        let at = |index| slots.iter().position(|slot| *slot == index);
        matches!((at(self.head), at(self.cur)), (Some(head), Some(cur)) if head <= cur)
    }

    fn call(&mut self, calls: &mut Vec<(u32, u32)>, news: &mut Option<u32>, at: (u32, u32)) {
        calls.push(at);
        self.hwtail = news.take().unwrap_or(self.hwtail);
    }

    /// A sync whose driver has this to tell; how it is called, and what comes of it.
    fn sync(&mut self, dir: Dir, mut news: Option<u32>) -> (Vec<(u32, u32)>, Outcome) {
        let mut calls = Vec::new();
        let mut good = self.admits(if dir == Dir::Tx { self.rtail } else { self.hwtail });
        // There may be more than the receiver was told of.
        if !good && dir == Dir::Rx {
            self.call(&mut calls, &mut news, (self.rhead, self.rhead));
            good = self.admits(self.hwtail);
        }
        let mut outcome = Outcome::Done;
        if good {
            self.rhead = self.head;
            self.call(&mut calls, &mut news, (self.head, self.cur));
        } else {
            self.errors += 1;
            outcome = Outcome::Reinitialised;
            if [self.head, self.cur, self.tail].iter().any(|index| *index >= SLOTS) {
                (self.head, self.cur) = (self.rhead, self.rhead);
                (self.tail, self.rtail) = (self.hwtail, self.hwtail);
            } else {
                (self.rhead, self.rtail) = (self.head, self.tail);
            }
            if dir == Dir::Tx {
                return (calls, outcome);
            }
            self.call(&mut calls, &mut news, (self.rhead, self.rhead));
        }
        (self.tail, self.rtail) = (self.hwtail, self.hwtail);
        (calls, outcome)
    }
}

/// One round: what the program stores (a tail is left alone mostly), and the driver's news.
#[derive(Clone, Debug)]
struct Round {
    head: u32,
    cur: u32,
    tail: Option<u32>,
    news: Option<u32>,
}

fn round() -> impl Strategy<Value = Round> {
    let index = || 0..SLOTS + 2;
    let tail = prop_oneof![4 => Just(None), 1 => index().prop_map(Some)];
    (index(), index(), tail, proptest::option::of(0..SLOTS))
        .prop_map(|(head, cur, tail, news)| Round { head, cur, tail, news })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn a_sync_is_as_the_rules_say(is_tx: bool, rounds in vec(round(), 1..20)) {
        let dir = if is_tx { Dir::Tx } else { Dir::Rx };
        let kring = ring(dir);
        let tail = if is_tx { SLOTS - 1 } else { 0 };
        let mut model =
            Model { head: 0, cur: 0, tail, rhead: 0, rtail: tail, hwtail: tail, errors: 0 };
        for Round { head, cur, tail, news } in rounds {
            (model.head, model.cur) = (head, cur);
            model.tail = tail.unwrap_or(model.tail);
            move_to(&kring, head, cur);
            kring.ring().set_tail(model.tail);
            prop_assert_eq!(kring.pending(), head != model.rhead);
            let service = Service { news: Cell::new(news), ..Service::default() };
            let outcome = kring.sync(&service);
            let (calls, expected) = model.sync(dir, news);
            prop_assert_eq!((service.calls.into_inner(), outcome), (calls, expected));
            let view = kring.ring();
            let [rhead, rtail] = kring.reconciled();
            let errors = kring.counters().bad_index.load(Relaxed);
            let (head, cur, tail) = (view.head(), view.cur(), view.tail());
            let hwtail = kring.hwtail();
            prop_assert_eq!(Model { head, cur, tail, rhead, rtail, hwtail, errors }, model);
            prop_assert_eq!(kring.last_tail(), rtail);
            prop_assert_eq!(kring.ready(), cur != rtail);
        }
    }
}

/// S-SYNC-8: of slots that make no sense, those alone are put right.
#[test]
fn s_sync_8_slots_are_put_right() {
    for dir in [Dir::Tx, Dir::Rx] {
        let kring = ring(dir);
        let (view, layout) = (kring.ring(), *kring.ring().region().layout());
        let (most, size) = (layout.bufs.total, layout.bufs.size as u16);
        let before =
            [(0, 60), (1, 60), (2, 60), (most - 1, size), (most, 60), (5, size + 1), (6, 0)];
        for (at, (buf, len)) in (0..).zip(before) {
            view.set_slot(at, buf, len, NS_REPORT);
        }
        move_to(&kring, 2, 1);
        assert_eq!(kring.sync(&Service::default()), Outcome::Reinitialised);
        let after = [(0, 0), (0, 0), (2, 60), (most - 1, size), (0, 0), (5, 0), (6, 0)];
        for (at, (buf, len)) in (0..).zip(after) {
            let slot = view.slot(at);
            assert_eq!((slot.buf_idx, slot.len, slot.flags), (buf, len, NS_REPORT), "slot {at}");
        }
    }
}

/// A driver that fails is not called; a receiver gets what is in the ring all the same.
#[test]
fn a_ring_whose_driver_fails() {
    let fails = Service { fails: true, ..Service::default() };
    for (dir, told) in [(Dir::Tx, SLOTS - 1), (Dir::Rx, 5)] {
        let kring = ring(dir);
        kring.csb().service.publish(0, 5);
        assert_eq!(kring.sync(&fails), Outcome::Failed);
        move_to(&kring, 6, 6);
        assert_eq!(kring.sync(&fails), Outcome::Failed);
        assert_eq!((fails.calls.borrow().len(), kring.ring().tail()), (0, told));
    }
    let outcomes = [Outcome::Done, Outcome::Busy, Outcome::Reinitialised, Outcome::Failed];
    assert_eq!(outcomes.map(Outcome::is_error), [false, false, true, true]);
}

#[test]
fn a_ring_that_another_thread_drives_is_left_alone() {
    let kring = ring(Dir::Tx);
    let guard = kring.try_lock();
    assert!(guard.is_some());
    let outcome =
        std::thread::scope(|scope| scope.spawn(|| kring.sync(&Service::default())).join().unwrap());
    assert_eq!(outcome, Outcome::Busy);
    drop(guard);
    assert_eq!(kring.sync(&Service::default()), Outcome::Done);
}

#[test]
fn s_nifp_4_a_fresh_ring() {
    for (dir, tail) in [(Dir::Tx, SLOTS - 1), (Dir::Rx, 0)] {
        let kring = ring(dir);
        let view = kring.ring();
        assert_eq!((view.head(), view.cur(), view.tail()), (0, 0, tail));
        assert_eq!((kring.hwcur(), kring.hwtail(), kring.reconciled()), (0, tail, [0, tail]));
        assert_eq!((kring.dir(), kring.object(), kring.ready()), (dir, OBJECT, dir == Dir::Tx));
        let size = view.region().layout().bufs.size as u16;
        for at in 0..SLOTS {
            let slot = view.slot(at);
            let parts = (slot.buf_idx, slot.len, slot.flags, slot.ptr);
            assert_eq!(parts, (FIRST_BUF + at, size, 0, 0), "slot {at}");
        }
    }
}

/// What stands in memory may be any number: what is made of it is an index of the ring.
#[test]
fn cursors_of_the_service_are_indices() {
    let kring = ring(Dir::Rx);
    for (stored, read) in [(0, 0), (SLOTS - 1, SLOTS - 1), (SLOTS, 0), (u32::MAX, 0)] {
        kring.csb().service.publish(stored, stored);
        assert_eq!((kring.hwcur(), kring.hwtail(), kring.bounded(stored)), (read, read, read));
    }
    kring.csb().service.publish(6, 2);
    let within = [5, 6, 7, 0, 1, 2, 3].map(|head| kring.within(head));
    assert_eq!(within, [6, 6, 7, 0, 1, 2, 6], "the program holds 6, 7, 0 and 1");
}

/// S-CSB-3: entering tells the view where the ring stands, and the next user of the ring finds its
/// own cursors up to date.
#[test]
fn s_csb_3_cursors_change_their_place() {
    let kring = ring(Dir::Rx);
    kring.csb().service.publish(0, 6);
    assert_eq!(kring.sync(&Service::default()), Outcome::Done);
    move_to(&kring, 4, 4);
    assert_eq!(kring.sync(&Service::default()), Outcome::Done);
    kring.csb().service.publish(4, 7);
    kring.enter_csb(kring.ring());
    assert!(kring.csb_mode().is_on());
    assert_eq!((kring.ring().tail(), kring.last_tail()), (7, 7));
    kring.csb().service.publish(4, 1);
    move_to(&kring, 99, 99);
    kring.csb_mode().ask_to_stop();
    kring.leave_csb();
    assert!(!kring.csb_mode().is_on() && !kring.csb_mode().run().unwrap().must_stop());
    assert_eq!((kring.ring().head(), kring.ring().cur(), kring.ring().tail()), (4, 4, 1));
    // Without CSB mode, the cursors are the program's.
    move_to(&kring, 5, 6);
    kring.leave_csb();
    assert_eq!((kring.ring().head(), kring.ring().cur()), (5, 6));
}

/// All is taken when the tail is behind the head, or when the service side says that it is held back.
#[test]
fn what_was_sent_is_taken_when_the_tail_says_so() {
    let kring = ring(Dir::Tx);
    let (app, service) = (&kring.csb().app, &kring.csb().service);
    app.publish(3, 3);
    assert!(!kring.is_taken());
    service.hold_back(true);
    assert!(service.holds_back() && kring.is_taken());
    service.hold_back(false);
    service.publish(3, SLOTS - 1);
    assert!(!service.holds_back() && !kring.is_taken());
    service.publish(3, 2);
    assert!(kring.is_taken());
}

#[test]
fn what_was_released_is_taken_back_where_somebody_wants_it() {
    let kring = ring(Dir::Rx);
    let (app, service) = (&kring.csb().app, &kring.csb().service);
    app.publish(3, 4);
    assert!(!service.takes_back() && kring.is_taken_back());
    service.set_takes_back(true);
    assert!(service.takes_back() && !kring.is_taken_back());
    service.publish(3, 5);
    assert!(kring.is_taken_back());
    service.set_takes_back(false);
    service.publish(0, 5);
    assert!(!service.takes_back() && kring.is_taken_back());
    assert_eq!((app.head(), app.cur()), (3, 4));
}

#[test]
fn a_program_sees_once_that_it_is_asked_to_yield() {
    let kring = ring(Dir::Tx);
    let (app, service) = (&kring.csb().app, &kring.csb().service);
    assert!(!app.is_asked_to_yield(service));
    service.ask_to_yield();
    service.ask_to_yield();
    assert!(app.is_asked_to_yield(service));
    assert!(!app.is_asked_to_yield(service));
    service.ask_to_yield();
    assert!(app.is_asked_to_yield(service));
}

#[test]
fn a_wait_is_answered_once() {
    let [one, other] = [ring(Dir::Tx), ring(Dir::Rx)];
    let rings = Cell::new(0);
    let ring = || rings.set(rings.get() + 1);
    let (app, service) = (&one.csb().app, &one.csb().service);
    assert!(!app.kick(service, ring) && !app.seems_to_wait(service));
    assert!(!service.kick(app, ring) && !service.has_waited());
    for number in 1..3 {
        app.arm();
        app.arm();
        assert!(app.seems_to_wait(service));
        assert!(app.kick(service, ring) && !app.kick(service, ring) && !app.seems_to_wait(service));
        service.arm();
        assert!(service.has_waited() && service.kick(app, ring) && !service.kick(app, ring));
        assert_eq!(rings.get(), 2 * number);
    }
    let peer = &other.csb().app;
    app.arm();
    assert!(app.kick_peer(peer, ring) && !app.kick_peer(peer, ring));
    assert_eq!(rings.get(), 5);
}

#[test]
fn counters_count() {
    let kring = ring(Dir::Tx);
    let (service, counters) = (&kring.csb().service, kring.counters());
    for _ in 0..2 {
        kring.count(5);
        kring.note(|counters| &counters.kicks, 3);
        service.count_bytes(100);
        service.count_lost([7, 9]);
    }
    let [packets, kicks] = [&counters.packets, &counters.kicks].map(|count| count.load(Relaxed));
    assert_eq!((packets, kicks, service.bytes(), service.lost()), (10, 6, 200, [14, 18]));
}

#[test]
fn flags_are_consumed_between_two_slots() {
    let kring = ring(Dir::Tx);
    let flags = NS_REPORT | NS_BUF_CHANGED;
    for at in 0..SLOTS {
        kring.ring().set_slot(at, 9, 60, flags);
    }
    kring.consume(6, 1, NS_BUF_CHANGED);
    for at in 0..SLOTS {
        let left = if [6, 7, 0].contains(&at) { NS_REPORT } else { flags };
        let slot = kring.ring().slot(at);
        assert_eq!((slot.buf_idx, slot.len, slot.flags), (9, 60, left), "slot {at}");
    }
    kring.consume(2, 2, flags);
    assert_eq!(kring.ring().slot(2).flags, flags, "none");
}

/// S-MON-8, S-LIFE-9: who syncs learns of the end as of other monitors.
#[test]
fn an_end_is_seen() {
    let kring = ring(Dir::Rx);
    kring.set_monitors(7);
    assert!((!kring.is_ended(), kring.monitors()) == (true, 7));
    kring.end();
    assert!((kring.is_ended(), kring.monitors()) == (true, 7));
    let kring = ring(Dir::Rx);
    kring.set_monitors(7);
    kring.stop();
    assert!((kring.is_ended(), kring.monitors()) == (true, 8));
}

#[test]
fn a_monitors_ring_is_filled_by_those_who_know_it() {
    let kring = ring(Dir::Rx);
    kring.set_feed_id(5);
    assert_eq!(kring.feed_id(), 5);
    assert!(kring.try_feed(5).is_mine());
    assert!(matches!(kring.try_feed(4), Turn::Gone) && !kring.try_feed(4).is_mine());
    let turn = kring.try_feed(5);
    std::thread::scope(|scope| {
        let other = || {
            assert!(matches!(kring.try_feed(5), Turn::Busy));
            assert!(!kring.take_away(), "it is being filled");
        };
        scope.spawn(other).join().unwrap();
    });
    drop(turn);
    assert_eq!(kring.feed_id(), 0, "and to be filled no more");
    assert!(kring.take_away());
    std::thread::scope(|scope| {
        let other = || assert!(matches!(kring.try_feed(0), Turn::Busy), "for good");
        scope.spawn(other).join().unwrap();
    });
}

/// S-SYNC-10.
#[test]
fn s_sync_10_a_ring_is_stamped_when_it_is_asked_to() {
    let region_of = |kring: &Kring| kring.ring().region().clone();
    let ts = |kring: &Kring| {
        let region = region_of(kring);
        let at = region.layout().rings.object(OBJECT).unwrap()
            + std::mem::offset_of!(ringway_abi::netmap_ring, ts) as u64;
        let mut bytes = [0; 16];
        rustix::io::pread(region.memfd(), &mut bytes, at).unwrap();
        let word = |at: usize| i64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap());
        (word(0), word(8))
    };
    let now = || rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    let flags = |kring: &Kring, flags: u32| {
        let at = region_of(kring).layout().rings.object(OBJECT).unwrap()
            + std::mem::offset_of!(ringway_abi::netmap_ring, flags) as u64;
        rustix::io::pwrite(region_of(kring).memfd(), &flags.to_ne_bytes(), at).unwrap();
    };
    for (always, asked) in [(false, 0), (true, 0), (false, NR_TIMESTAMP), (false, !NR_TIMESTAMP)] {
        let kring = ring(Dir::Rx);
        flags(&kring, asked);
        let before = now();
        kring.stamp(always);
        let (after, (seconds, micros)) = (now(), ts(&kring));
        if always || asked == NR_TIMESTAMP {
            let time = (seconds, micros);
            assert!(time >= (before.tv_sec, before.tv_nsec / 1000), "{time:?}");
            assert!(time <= (after.tv_sec, after.tv_nsec / 1000), "{time:?}");
        } else {
            assert_eq!((seconds, micros), (0, 0));
        }
    }
}
