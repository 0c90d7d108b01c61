//! Commands for a thread that sleeps, under a model checker that runs the shipped code through every
//! order of its steps: each is carried out, in the order of its sender, and the thread does not sleep on
//! while one waits. A lost wake-up is a deadlock, which loom finds.
//!
//! How it was checked that these models can fail: with `post` notifying before it notes that there is a
//! command, and with `take` forgetting the note after it has taken, the thread sleeps for ever.
//!
//! ```text
//! RUSTFLAGS="--cfg loom" cargo test -p ringway-kring --release --test loom_mailbox
//! ```
#![cfg(loom)]

// Only what is under test is loom's; see `loom.rs`.
use std::sync::Arc;

use loom::{
    sync::{Condvar, Mutex},
    thread,
};
use ringway_kring::{Mailbox, Notify};

/// Notified until drained.
#[derive(Default)]
struct Doorbell {
    notified: Mutex<bool>,
    heard: Condvar,
}

impl Notify for Doorbell {
    fn notify(&self) {
        *self.notified.lock().unwrap() = true;
        self.heard.notify_all();
    }
}

impl Doorbell {
    fn drain(&self) {
        *self.notified.lock().unwrap() = false;
    }

    fn sleep(&self) {
        let mut notified = self.notified.lock().unwrap();
        while !*notified {
            notified = self.heard.wait(notified).unwrap();
        }
    }
}

/// What a command says: its sender, and which of the sender's it is.
type Command = (u32, u32);

fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(3);
    builder.check(model);
}

/// The thread, as a switch's worker: a look, and sleep. It ends with its last command.
fn work(mailbox: &Mailbox<Command, Doorbell>, commands: usize) -> Vec<Command> {
    let mut done = Vec::new();
    while done.len() < commands {
        if mailbox.has_mail() {
            done.extend(mailbox.take());
            continue;
        }
        mailbox.doorbell().sleep();
        mailbox.doorbell().drain();
    }
    done
}

#[test]
fn every_command_is_carried_out() {
    check(|| {
        let mailbox = Arc::new(Mailbox::new(Doorbell::default()));
        let worker = thread::spawn({
            let mailbox = mailbox.clone();
            move || work(&mailbox, 2)
        });
        mailbox.post((0, 0));
        mailbox.post((0, 1));
        assert_eq!(worker.join().unwrap(), [(0, 0), (0, 1)]);
    });
}

#[test]
fn two_senders() {
    check(|| {
        let mailbox = Arc::new(Mailbox::new(Doorbell::default()));
        let sender = thread::spawn({
            let mailbox = mailbox.clone();
            move || mailbox.post((1, 0))
        });
        let worker = thread::spawn({
            let mailbox = mailbox.clone();
            move || work(&mailbox, 2)
        });
        mailbox.post((0, 0));
        sender.join().unwrap();
        let mut done = worker.join().unwrap();
        done.sort();
        assert_eq!(done, [(0, 0), (1, 0)]);
    });
}

/// A command that comes when the thread has ended goes at once, and so does one that it left.
#[test]
fn the_end_of_the_thread() {
    check(|| {
        let mailbox = Arc::new(Mailbox::new(Doorbell::default()));
        let worker = thread::spawn({
            let mailbox = mailbox.clone();
            move || mailbox.close()
        });
        let command = Arc::new(());
        mailbox.post(command.clone());
        worker.join().unwrap();
        assert_eq!(Arc::strong_count(&command), 1);
    });
}
