//! The table of descriptors, under a model checker that runs the shipped code through every order of
//! its steps: `open`, `close`, `dup` and calls on one number, in several threads, with one object that
//! is used again at once.
//!
//! * A call that has found a descriptor has it until the call ends: nothing ends it meanwhile, and
//!   nothing makes it another one.
//! * A descriptor ends once, when its last number, and the last call on it, have gone.
//! * A thread that is about to sleep for an epoll set sees the set's change, or is woken.
//!
//! How it was checked that these models can fail: with `Slot::get` without its second look, with
//! `Object::end` without its comparison, and with a relaxed order in `Object::leave`, those with a call
//! and a close fail; with a `claim` that does not compare, that with two opens; without the fences of `Sleepers`, that of
//! sleepers.
//!
//! ```text
//! RUSTFLAGS="--cfg loom" cargo test -p ringway-interpose --release --test loom
//! ```
#![cfg(loom)]

// The list is the model's own: it is none of loom's.
use std::sync::Mutex;

use loom::{
    cell::UnsafeCell,
    sync::atomic::{
        AtomicBool,
        Ordering::{Acquire, Relaxed, Release, SeqCst},
    },
    thread,
};
use ringway_interpose::{
    fd_table::{Content, End, Found, Objects, Slot},
    sleepers::Sleepers,
};

/// What a descriptor stands for: written without any synchronisation of its own when it begins and
/// ends, read in between. loom reports a reader that is not ordered with the writers.
struct State {
    port: UnsafeCell<usize>,
    ended: &'static Mutex<Vec<usize>>,
}

// SAFETY: what the models are about; loom checks it.
unsafe impl Sync for State {}
// SAFETY: as above.
unsafe impl Send for State {}

const NONE: usize = 0;

impl State {
    fn port(&self) -> usize {
        // SAFETY: see `State`.
        self.port.with(|port| unsafe { *port })
    }

    fn set(&self, port: usize) {
        // SAFETY: see `State`.
        self.port.with_mut(|at| unsafe { *at = port });
    }
}

impl Content for State {
    type Left = ();

    fn end(&self, _: &End) -> Option<()> {
        let port = self.port();
        assert_ne!(port, NONE, "a descriptor ends once");
        self.set(NONE);
        self.ended.lock().unwrap().push(port);
        None
    }
}

struct Table {
    slots: [Slot<State>; 2],
    objects: Objects<State>,
    ended: &'static Mutex<Vec<usize>>,
}

impl Table {
    fn new() -> &'static Table {
        let slots = [Slot::new(), Slot::new()];
        let ended = Box::leak(Box::default());
        Box::leak(Box::new(Table { slots, objects: Objects::new(), ended }))
    }

    fn open(&self, fd: usize, port: usize) {
        let new = || State { port: UnsafeCell::new(NONE), ended: self.ended };
        let object = self.objects.take(|_| true, new, |state| state.set(port));
        assert!(self.slots[fd].put(object).is_none(), "the kernel gives no number that is open");
    }

    fn close(&self, fd: usize) {
        drop(self.slots[fd].clear());
    }

    /// A call that looks twice at what it has found.
    fn call(&self, fd: usize, ports: &[usize]) {
        let Found::Object(object) = self.slots[fd].get() else { return };
        let port = object.port();
        assert!(ports.contains(&port), "a call found {port}");
        thread::yield_now();
        assert_eq!(object.port(), port, "what a call has found stays what it is");
    }

    /// The ports whose descriptors have ended, in order.
    fn ended(&self) -> Vec<usize> {
        let mut ended = self.ended.lock().unwrap().clone();
        ended.sort();
        ended
    }
}

fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(3);
    builder.check(model);
}

/// A call races with a close: whichever comes last ends the descriptor.
#[test]
fn a_call_and_a_close() {
    check(|| {
        let table = Table::new();
        table.open(0, 1);
        let caller = thread::spawn(|| table.call(0, &[1]));
        table.close(0);
        caller.join().unwrap();
        assert_eq!(table.ended(), [1]);
    });
}

/// The object is used again at once, for the same number: a call gets the one or the other.
#[test]
fn a_call_and_another_descriptor_of_the_same_number() {
    check(|| {
        let table = Table::new();
        table.open(0, 1);
        let caller = thread::spawn(|| table.call(0, &[1, 2]));
        table.close(0);
        table.open(0, 2);
        caller.join().unwrap();
        assert_eq!(table.ended(), [1]);
        table.close(0);
        assert_eq!(table.ended(), [1, 2]);
    });
}

#[test]
fn two_calls_and_a_close() {
    check(|| {
        let table = Table::new();
        table.open(0, 1);
        let callers = [0; 2].map(|_| thread::spawn(|| table.call(0, &[1])));
        table.close(0);
        callers.into_iter().for_each(|caller| caller.join().unwrap());
        assert_eq!(table.ended(), [1]);
    });
}

/// `dup` races with the close of the number that it copies: the copy is the same descriptor, or it
/// found none.
#[test]
fn a_copy_and_a_close() {
    check(|| {
        let table = Table::new();
        table.open(0, 1);
        let copier = thread::spawn(|| {
            let Found::Object(object) = table.slots[0].get() else { return false };
            table.slots[1].put(object.hold()).is_none()
        });
        table.close(0);
        let copied = copier.join().unwrap();
        assert_eq!(table.ended().is_empty(), copied);
        table.close(1);
        assert_eq!(table.ended(), [1]);
    });
}

/// Two threads open at the same time, where one object is spare: each gets its own.
#[test]
fn two_opens() {
    check(|| {
        let table = Table::new();
        table.open(0, 1);
        table.close(0);
        let opener = thread::spawn(|| {
            table.open(0, 2);
            table.call(0, &[2]);
        });
        table.open(1, 3);
        table.call(1, &[3]);
        opener.join().unwrap();
        assert_eq!(table.ended(), [1]);
        table.close(0);
        table.close(1);
        assert_eq!(table.ended(), [1, 2, 3]);
    });
}

/// The kernel has closed a range of numbers, and gives one of them to another thread before that is
/// noted: its new descriptor stays.
#[test]
fn a_number_of_a_closed_range_is_had_again() {
    check(|| {
        let table = Table::new();
        table.open(0, 1);
        let is_open: &'static AtomicBool = Box::leak(Box::new(AtomicBool::new(false)));
        let opener = thread::spawn(move || {
            is_open.store(true, SeqCst);
            let new = || State { port: UnsafeCell::new(NONE), ended: table.ended };
            let object = table.objects.take(|_| true, new, |state| state.set(2));
            drop(table.slots[0].put(object));
        });
        drop(table.slots[0].clear_if(|| !is_open.load(SeqCst)));
        opener.join().unwrap();
        assert_eq!(table.ended(), [1]);
        table.call(0, &[2]);
        table.close(0);
        assert_eq!(table.ended(), [1, 2]);
    });
}

/// Threads are about to sleep for a set, and another changes it: each sees the change, or is woken.
#[test]
fn sleepers_and_a_change() {
    for threads in 1..=2 {
        check(move || {
            let sleepers: &'static Sleepers = Box::leak(Box::default());
            let flag = || -> &'static AtomicBool { Box::leak(Box::new(AtomicBool::new(false))) };
            let (changed, woken) = (flag(), flag());
            let sleep = move || {
                sleepers.begin(1);
                let sees = changed.load(Acquire);
                if sees {
                    sleepers.end(1);
                }
                !sees
            };
            let waiting: Vec<_> = (0..threads).map(|_| thread::spawn(sleep)).collect();
            changed.store(true, Release);
            if sleepers.are_there(1) {
                woken.store(true, Relaxed);
            }
            let asleep = waiting.into_iter().map(|thread| thread.join().unwrap());
            let asleep = asleep.fold(false, |any, sleeps| any | sleeps);
            assert!(!asleep || woken.load(Relaxed), "a thread sleeps for what the set was");
            assert_eq!(sleepers.are_there(1), asleep);
            assert!(!sleepers.are_there(2), "a child of fork has none of them");
        });
    }
}

/// The object goes to another number while a call is about to lose its race.
#[test]
fn an_object_moves_to_another_number() {
    check(|| {
        let table = Table::new();
        table.open(0, 1);
        let caller = thread::spawn(|| table.call(0, &[1]));
        table.close(0);
        table.open(1, 2);
        caller.join().unwrap();
        assert_eq!(table.ended(), [1]);
        table.close(1);
        assert_eq!(table.ended(), [1, 2]);
    });
}
