//! Getting ready to sleep, and what ends a sleep; a thread's commands; where data begins.
#![cfg(not(any(loom, miri)))]

use std::{
    cell::Cell,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    rc::Rc,
    sync::Arc,
    time::{Duration, Instant},
};

use ringway_abi::Dir;
use ringway_kring::{
    Doorbell, Kring, Mailbox, Notify, Offsets, Prepared, Sleeper, Sources, Waiter, Woken, prepare,
};
use ringway_region::{Layout, Region, RingInit, Sizes};
use rustix::{
    event::PollFlags,
    net::{AddressFamily, SocketFlags, SocketType, socketpair},
};

/// What a waiter was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Look,
    Arm,
    PassOn,
}
use Step::*;

/// Finds something from its `found`th look on.
struct Party {
    found: usize,
    drained: bool,
    steps: Vec<Step>,
    doorbell: Doorbell,
}

impl Party {
    fn new(found: usize, drained: bool) -> Party {
        Party { found, drained, steps: Vec::new(), doorbell: Doorbell::new().unwrap() }
    }
}

impl Waiter for Party {
    fn look(&mut self) -> bool {
        self.steps.push(Look);
        self.steps.iter().filter(|step| **step == Look).count() >= self.found
    }

    fn arm(&mut self) -> bool {
        self.steps.push(Arm);
        self.drained
    }

    fn pass_on(&mut self) {
        self.steps.push(PassOn);
    }
}

impl Sleeper for Party {
    fn sources<'s>(&'s self, sources: &mut Sources<'s>) {
        sources.add(self.doorbell.as_fd(), PollFlags::IN);
    }
}

#[test]
fn a_party_looks_before_it_arms_and_after() {
    for (found, drained, ready, steps) in [
        (1, true, true, &[Look][..]),
        (2, false, true, &[Look, Arm, Look]),
        (2, true, true, &[Look, Arm, Look, PassOn]),
        (3, true, false, &[Look, Arm, Look]),
    ] {
        let mut party = Party::new(found, drained);
        assert_eq!(prepare(&mut party).is_ready(), ready, "{found}");
        assert_eq!(party.steps, steps, "{found}");
    }
}

/// Of several, one that finds something is enough; all are armed, and all pass on what one has drained.
#[test]
fn several_wait_for_whatever_comes_first() {
    for (drained, found, ready) in
        [([false, false], 9, false), ([false, true], 2, true), ([true, false], 2, true)]
    {
        let mut parties = [Party::new(9, drained[0]), Party::new(found, drained[1])];
        assert_eq!(prepare(&mut parties[..]).is_ready(), ready);
        let mut steps = vec![Look, Arm, Look];
        steps.extend(ready.then_some(PassOn));
        assert!(parties.iter().all(|party| party.steps == steps), "{drained:?}");
    }
    let mut parties = [Party::new(9, false), Party::new(1, false)];
    assert!(prepare(&mut parties[..]).is_ready());
    let mut parties = [Party::new(9, false), Party::new(9, false)];
    let Prepared::Armed(armed) = prepare(&mut parties[..]) else { panic!("there is nothing") };
    assert_eq!(armed.sources().as_slice().len(), 2);
}

#[test]
fn a_sleep_ends_with_news_or_with_its_deadline() {
    let mut party = Party::new(9, false);
    let sleep = |party: &mut Party, deadline| match prepare(party) {
        Prepared::Armed(armed) => armed.sleep(deadline).unwrap(),
        Prepared::Ready => panic!("there is nothing"),
    };
    let start = Instant::now();
    assert_eq!(sleep(&mut party, Some(start)), Woken::TimedOut, "it is over");
    let soon = Duration::from_millis(30);
    assert_eq!(sleep(&mut party, Some(start + soon)), Woken::TimedOut);
    assert!(start.elapsed() >= soon);
    party.doorbell.notify();
    assert_eq!(sleep(&mut party, None), Woken::Notified);
}

/// A connection whose other end is closed; news of others is no hang-up, and neither is one of those.
#[test]
fn a_sleep_ends_when_a_connection_is_closed() {
    let pair = || {
        let kind = (AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC);
        socketpair(kind.0, kind.1, kind.2, None).unwrap()
    };
    struct Ends<'a> {
        plain: &'a OwnedFd,
        connections: [&'a OwnedFd; 2],
    }
    impl Waiter for Ends<'_> {
        fn look(&mut self) -> bool {
            false
        }
        fn arm(&mut self) -> bool {
            false
        }
        fn pass_on(&mut self) {}
    }
    impl Sleeper for Ends<'_> {
        fn sources<'s>(&'s self, sources: &mut Sources<'s>) {
            sources.add_connection(self.connections[0].as_fd());
            sources.add(self.plain.as_fd(), PollFlags::IN);
            sources.add_connection(self.connections[1].as_fd());
        }
    }
    let sleep = |mut ends: Ends<'_>| {
        let fd = |fd: BorrowedFd<'_>| std::os::fd::AsRawFd::as_raw_fd(&fd);
        let order =
            [ends.connections[0], ends.connections[1], ends.plain].map(|end| fd(end.as_fd()));
        let Prepared::Armed(armed) = prepare(&mut ends) else { panic!("there is nothing") };
        let sources = armed.sources();
        let listed: Vec<_> = sources.as_slice().iter().map(|source| fd(source.0)).collect();
        assert_eq!(listed, order, "connections come first");
        armed.sleep(Some(Instant::now())).unwrap()
    };
    for closed in 0..3 {
        let (near, mut far): (Vec<_>, Vec<_>) = (0..3).map(|_| pair()).unzip();
        let ends = || Ends { plain: &near[2], connections: [&near[0], &near[1]] };
        assert_eq!(sleep(ends()), Woken::TimedOut);
        rustix::io::write(&far[0], b"not to be read").unwrap();
        assert_eq!(sleep(ends()), Woken::TimedOut, "a connection is not read");
        drop(far.swap_remove(closed));
        let expected = if closed == 2 { Woken::Notified } else { Woken::HungUp };
        assert_eq!(sleep(ends()), expected, "{closed}");
    }
}

/// Counts its notifications.
struct Bell(Rc<Cell<usize>>);

impl Notify for Bell {
    fn notify(&self) {
        self.0.set(self.0.get() + 1);
    }
}

#[test]
fn commands_wait_in_their_order() {
    let notified = Rc::new(Cell::new(0));
    let mailbox = Mailbox::new(Bell(notified.clone()));
    assert!(!mailbox.has_mail() && mailbox.take().is_empty());
    (1..4).for_each(|command| mailbox.post(Rc::new(command)));
    assert!(mailbox.has_mail() && notified.get() == 3);
    assert_eq!(mailbox.take(), [1, 2, 3].map(Rc::new));
    assert!(!mailbox.has_mail() && mailbox.take().is_empty());
    mailbox.doorbell().notify();
    assert_eq!(notified.get(), 4);
    // A command goes with the thread, and with it whoever waits for an answer.
    let [waiting, late] = [Rc::new(4), Rc::new(5)];
    mailbox.post(waiting.clone());
    mailbox.close();
    mailbox.post(late.clone());
    assert_eq!([&waiting, &late].map(Rc::strong_count), [1, 1]);
    assert!(mailbox.take().is_empty() && notified.get() == 5);
}

#[test]
fn offsets_are_read_under_their_mask() {
    let layout = Layout::new(&Sizes::private([1, 1], [8; 2], 0, 0), 0).unwrap();
    let region = Arc::new(Region::create(2, layout).unwrap());
    let init = RingInit { dir: Dir::Tx, ringid: 0, num_slots: 8 };
    let kring = Kring::create(&region, 0, &init, &[]).unwrap();
    assert_eq!(Offsets::of(&kring), Offsets::default(), "none was agreed upon");
    let offsets = Offsets { mask: 0xfff, max: 1000, gap: 256 };
    offsets.note(&kring);
    assert_eq!(Offsets::of(&kring), offsets);
    let read = [0, 1, 1000, 1001, 0x1001, u64::MAX].map(|ptr| offsets.read(ptr));
    assert_eq!(read, [0, 1, 1000, 1000, 1, 1000]);
    assert_eq!(offsets.write(0xabcd_1234, 0x56), 0xabcd_1056);
    assert_eq!(offsets.write(0, 0x1fff), 0xfff);
    let ends = [(0, 2048), (100, 2048), (2000, 2048), (u32::MAX, 2048)];
    assert_eq!(ends.map(|(base, size)| offsets.end(base, size)), [256, 356, 2048, 2048]);
    assert_eq!(Offsets::default().end(100, 2048), 2048, "without a gap, all");
}
