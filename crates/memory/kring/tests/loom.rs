//! The two promises of `csb.rs` and `waiter.rs`, under a model checker that runs the shipped code through
//! every order of its steps:
//!
//! * what was written before a cursor was published is there when the cursor is seen;
//! * nobody sleeps on while there is work: a lost wake-up is a deadlock, which loom finds.
//!
//! How it was checked that these models can fail: built with `--cfg ringway_no_fence`, which
//! leaves out the store-load fence of `csb.rs` and nothing else, every wake-up model here ends
//! in a deadlock; the tests then demand just that (`should_panic`). The two-waiter model also
//! deadlocks when nobody passes the doorbell on, and, with `LOOM_MAX_PREEMPTIONS=4`, when `arm`
//! reads and stores the number instead of adding to it. With doorbells that are drained after arming,
//! or without the second look, all of them do.
//!
//! ```text
//! RUSTFLAGS="--cfg loom" cargo test -p ringway-kring --release --test loom
//! RUSTFLAGS="--cfg loom --cfg ringway_no_fence" cargo test -p ringway-kring --release --test loom
//! ```
#![cfg(loom)]

// Only what is under test is loom's. Its `Arc` would step the model even while a deadlock is
// being reported, and abort the run.
use std::sync::Arc;

use loom::{
    cell::UnsafeCell,
    sync::{Condvar, Mutex},
    thread,
};
use ringway_kring::{AppLine, Csb, Prepared, ServiceLine, Waiter, prepare};

/// Packets that a producer publishes, one by one.
const PACKETS: u32 = 2;

/// `LOOM_MAX_PREEMPTIONS` overrides the bound, which keeps a run short: bugs of two parties
/// need few involuntary switches.
fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(preemptions);
    builder.check(model);
}

/// An eventfd: rung until drained.
#[derive(Default)]
struct Doorbell {
    rung: Mutex<bool>,
    heard: Condvar,
}

impl Doorbell {
    fn notify(&self) {
        *self.rung.lock().unwrap() = true;
        self.heard.notify_all();
    }

    fn drain(&self) {
        *self.rung.lock().unwrap() = false;
    }

    fn sleep(&self) {
        let mut rung = self.rung.lock().unwrap();
        while !*rung {
            rung = self.heard.wait(rung).unwrap();
        }
    }
}

/// A party that waits: the steps that `prepare` puts in order.
struct Party<'d, A, L> {
    doorbell: &'d Doorbell,
    shared: bool,
    arm: A,
    look: L,
}

impl<A: Fn(), L: Fn() -> bool> Waiter for Party<'_, A, L> {
    fn look(&mut self) -> bool {
        (self.look)()
    }

    fn arm(&mut self) -> bool {
        self.doorbell.drain();
        (self.arm)();
        self.shared
    }

    fn pass_on(&mut self) {
        self.doorbell.notify();
    }
}

/// Waits until `look` finds something, as every party does.
fn wait(doorbell: &Doorbell, shared: bool, arm: impl Fn(), look: impl Fn() -> bool) {
    let mut party = Party { doorbell, shared, arm, look };
    while let Prepared::Armed(_) = prepare(&mut party) {
        doorbell.sleep();
    }
}

// --- Publish and consume ---------------------------------------------------------------

/// Slots written without any synchronisation of their own: loom reports a reader that does
/// not come after the writer.
struct Slots([UnsafeCell<u32>; PACKETS as usize]);

impl Slots {
    fn new() -> Slots {
        Slots(std::array::from_fn(|_| UnsafeCell::new(0)))
    }

    fn write(&self, i: u32) {
        // SAFETY: slot `i` is written once, before its index is published.
        self.0[i as usize].with_mut(|slot| unsafe { *slot = i + 1 });
    }

    fn check(&self, until: u32) {
        for i in 0..until {
            // SAFETY: slots below a published index are not written any more.
            assert_eq!(self.0[i as usize].with(|slot| unsafe { *slot }), i + 1);
        }
    }
}

fn published_data_is_there(
    publish: impl Fn(&Csb, u32) + Sync + Send + Copy + 'static,
    seen: impl Fn(&Csb) -> u32 + Sync + Send + Copy + 'static,
) {
    loom::model(move || {
        let shared = Arc::new((Csb::default(), Slots::new()));
        let theirs = shared.clone();
        let producer = thread::spawn(move || {
            for i in 0..PACKETS {
                theirs.1.write(i);
                publish(&theirs.0, i + 1);
            }
        });
        let (csb, slots) = &*shared;
        let mut last = 0;
        for _ in 0..PACKETS {
            let now = seen(csb);
            assert!(now >= last, "a cursor went back");
            slots.check(now);
            last = now;
        }
        producer.join().unwrap();
        assert_eq!(seen(csb), PACKETS);
        slots.check(PACKETS);
    });
}

#[test]
fn what_the_program_publishes_is_there() {
    published_data_is_there(|csb, i| csb.app.publish(i, i), |csb| csb.app.head());
}

#[test]
fn what_the_service_side_publishes_is_there() {
    published_data_is_there(|csb, i| csb.service.publish(i, i), |csb| csb.service.hwtail());
}

// --- Need-kick -------------------------------------------------------------------------

/// A producer that publishes [`PACKETS`] packets on one thread, and a party that waits for
/// each of them on another. `lines` is what the two share.
fn nobody_sleeps_on<T: Default + Send + Sync + 'static>(
    publish: fn(&T, u32),
    kick: fn(&T, &Doorbell),
    arm: fn(&T),
    seen: fn(&T) -> u32,
) {
    check(4, move || {
        let shared = Arc::new((T::default(), Doorbell::default()));
        let theirs = shared.clone();
        let producer = thread::spawn(move || {
            let (lines, doorbell) = &*theirs;
            for i in 1..=PACKETS {
                publish(lines, i);
                kick(lines, doorbell);
            }
        });
        let (lines, doorbell) = &*shared;
        for i in 1..=PACKETS {
            wait(doorbell, false, || arm(lines), || seen(lines) >= i);
        }
        producer.join().unwrap();
    });
}

#[test]
#[cfg_attr(ringway_no_fence, should_panic(expected = "deadlock"))]
fn a_waiting_program_is_woken() {
    nobody_sleeps_on::<Csb>(
        |csb, i| csb.service.publish(i, i),
        |csb, doorbell| _ = csb.app.kick(&csb.service, || doorbell.notify()),
        |csb| csb.app.arm(),
        |csb| csb.service.hwtail(),
    );
}

#[test]
#[cfg_attr(ringway_no_fence, should_panic(expected = "deadlock"))]
fn a_waiting_service_side_is_woken() {
    nobody_sleeps_on::<Csb>(
        |csb, i| csb.app.publish(i, i),
        |csb, doorbell| _ = csb.service.kick(&csb.app, || doorbell.notify()),
        |csb| csb.service.arm(),
        |csb| csb.app.head(),
    );
}

/// The app lines of a pipe's sending and of its receiving ring, and the service line by which
/// the receiver hands slots back.
#[derive(Default)]
struct Pipe {
    sender: AppLine,
    sender_service: ServiceLine,
    receiver: AppLine,
}

#[test]
#[cfg_attr(ringway_no_fence, should_panic(expected = "deadlock"))]
fn a_waiting_receiver_of_a_pipe_is_woken() {
    nobody_sleeps_on::<Pipe>(
        |pipe, i| pipe.sender.publish(i, i),
        |pipe, doorbell| _ = pipe.receiver.kick_peer(&pipe.sender, || doorbell.notify()),
        |pipe| pipe.receiver.arm(),
        |pipe| pipe.sender.head(),
    );
}

#[test]
#[cfg_attr(ringway_no_fence, should_panic(expected = "deadlock"))]
fn a_waiting_sender_of_a_pipe_is_woken() {
    nobody_sleeps_on::<Pipe>(
        |pipe, i| pipe.sender_service.publish(i, i),
        |pipe, doorbell| _ = pipe.sender.kick_peer(&pipe.receiver, || doorbell.notify()),
        |pipe| pipe.sender.arm(),
        |pipe| pipe.sender_service.hwtail(),
    );
}

/// Both ends of a pipe of one slot wait for each other in turn: each is the producer of what
/// the other waits for.
#[test]
#[cfg_attr(ringway_no_fence, should_panic(expected = "deadlock"))]
fn both_ends_of_a_full_pipe_make_progress() {
    check(3, || {
        let shared = Arc::new((Pipe::default(), Doorbell::default(), Doorbell::default()));
        let theirs = shared.clone();
        let sender = thread::spawn(move || {
            let (pipe, to_sender, to_receiver) = &*theirs;
            for i in 1..=PACKETS {
                let free = || pipe.sender_service.hwtail() >= i - 1;
                wait(to_sender, false, || pipe.sender.arm(), free);
                pipe.sender.publish(i, i);
                pipe.receiver.kick_peer(&pipe.sender, || to_receiver.notify());
            }
        });
        let (pipe, to_sender, to_receiver) = &*shared;
        for i in 1..=PACKETS {
            wait(to_receiver, false, || pipe.receiver.arm(), || pipe.sender.head() >= i);
            pipe.sender_service.publish(i, i);
            pipe.sender.kick_peer(&pipe.receiver, || to_sender.notify());
        }
        sender.join().unwrap();
    });
}

/// Two threads share one receive ring and one doorbell; each packet goes to whoever takes it.
#[test]
#[cfg_attr(ringway_no_fence, should_panic(expected = "deadlock"))]
fn two_waiters_of_one_ring_are_woken() {
    #[derive(Default)]
    struct Shared {
        csb: Csb,
        doorbell: Doorbell,
        taken: Mutex<u32>,
    }

    fn receive(shared: &Shared, packets: u32) {
        for _ in 0..packets {
            let take = || {
                let mut taken = shared.taken.lock().unwrap();
                let found = *taken < shared.csb.service.hwtail();
                *taken += u32::from(found);
                found
            };
            wait(&shared.doorbell, true, || shared.csb.app.arm(), take);
        }
    }

    check(2, || {
        let shared = Arc::new(Shared::default());
        let waiters = [2, 1].map(|packets| {
            let shared = shared.clone();
            thread::spawn(move || receive(&shared, packets))
        });
        for i in 1..=3 {
            shared.csb.service.publish(i, i);
            shared.csb.app.kick(&shared.csb.service, || shared.doorbell.notify());
        }
        waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
    });
}

/// An event loop watches a descriptor that is readable while the doorbell is notified, or while the last
/// `prepare` has found something; it takes one packet a turn.
#[test]
#[cfg_attr(ringway_no_fence, should_panic(expected = "deadlock"))]
fn a_watched_descriptor_is_readable_while_there_is_something() {
    check(4, || {
        let shared = Arc::new((Csb::default(), Doorbell::default()));
        let theirs = shared.clone();
        let producer = thread::spawn(move || {
            let (csb, doorbell) = &*theirs;
            for i in 1..=PACKETS {
                csb.service.publish(i, i);
                csb.app.kick(&csb.service, || doorbell.notify());
            }
        });
        let (csb, doorbell) = &*shared;
        let (mut taken, mut held) = (0, true);
        while taken < PACKETS {
            if !held {
                doorbell.sleep();
            }
            let look = || csb.service.hwtail() > taken;
            let mut party = Party { doorbell, shared: true, arm: || csb.app.arm(), look };
            held = prepare(&mut party).is_ready();
            taken += u32::from(held);
        }
        producer.join().unwrap();
    });
}
