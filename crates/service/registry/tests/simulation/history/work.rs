//! Work that is done, or lost, and its results; and what the loop may do.

use std::{panic::AssertUnwindSafe, panic::catch_unwind, sync::atomic::Ordering::Relaxed};

use ringway_registry::{Done, Registry, Subject, fault};

use super::{Going, History, State, Waiter};

impl History {
    pub(super) fn start_closings(&mut self, waiter: Waiter) {
        for work in self.registry.deferred().closings() {
            self.work.push((waiter, Going::Begun(work)));
            if let Waiter::Answer(id) = waiter
                && let Some(client) = self.clients.iter_mut().find(|client| client.id == id)
            {
                client.closing += 1;
            }
        }
    }

    /// Does what may take long, apart from the registry.
    pub(super) fn working<T>(&self, work: impl FnOnce() -> T) -> T {
        self.is_working.store(true, Relaxed);
        let result = work();
        self.is_working.store(false, Relaxed);
        result
    }

    /// Does what all others wait for: nothing is closed here that waits for the kernel.
    pub(super) fn in_the_loop<T>(&mut self, what: impl FnOnce(&mut Registry) -> T) -> T {
        let before = self.kernel.held();
        let result = what(&mut self.registry);
        let after = self.kernel.held();
        let closed: Vec<_> = before.iter().filter(|held| !after.contains(held)).collect();
        assert!(closed.is_empty(), "{closed:?} closed in the loop after\n{}", self.tail());
        let misplaced = std::mem::take(&mut *self.misplaced.lock().expect("none has panicked"));
        assert!(misplaced.is_empty(), "{misplaced:?} in the loop after\n{}", self.tail());
        result
    }

    /// Panics after so many steps, if there are as many, and recovers: then what it takes does not matter.
    pub(super) fn panicking<T>(
        &mut self,
        steps: u32,
        what: impl FnOnce(&mut Registry) -> T,
    ) -> Option<T> {
        self.is_working.store(true, Relaxed);
        fault::panic_after(steps);
        let result = catch_unwind(AssertUnwindSafe(|| what(&mut self.registry)));
        if !fault::no_panic() {
            self.note("it panics".into());
            self.registry.recover();
        }
        self.is_working.store(false, Relaxed);
        result.ok()
    }

    /// Takes such work, at random, if there is any.
    fn any_work(&mut self, is_it: impl Fn(&Going) -> bool) -> Option<(Waiter, Going)> {
        let those: Vec<_> = (0..self.work.len()).filter(|&at| is_it(&self.work[at].1)).collect();
        if those.is_empty() {
            return None;
        }
        let at = self.random.of(&those);
        Some(self.work.swap_remove(at))
    }

    /// Some work is done, whose result comes later.
    pub(super) fn run_work(&mut self) {
        let begun = self.any_work(|going| matches!(going, Going::Begun(_)));
        if let Some((waiter, Going::Begun(work))) = begun {
            self.note(format!("{:?} is done for {waiter:?}", work.subject()));
            let done = self.working(|| work.run());
            self.work.push((waiter, Going::Ended(done)));
        }
    }

    /// Its result comes.
    pub(super) fn end_work(&mut self) {
        let ended = self.any_work(|going| matches!(going, Going::Ended(_)));
        if let Some((waiter, Going::Ended(done))) = ended {
            self.deliver(waiter, done);
        }
    }

    pub(super) fn deliver(&mut self, waiter: Waiter, done: Done) {
        let subject = done.subject().clone();
        self.note(format!("{waiter:?} has the result about {subject:?}"));
        let wanted = match waiter {
            Waiter::Request(id) => self.clients.iter().position(|client| client.id == id),
            _ => None,
        };
        match wanted {
            Some(at) => {
                if let Some(pending) = &mut self.clients[at].pending {
                    pending.progress.put(done);
                    self.advance(at);
                }
            }
            None => self.in_the_loop(|registry| registry.discard(done)),
        }
        if let Waiter::Answer(id) = waiter {
            if let Some(client) = self.clients.iter_mut().find(|client| client.id == id) {
                client.closing -= 1;
            }
            self.answer(id);
        }
        self.resume(&subject);
    }

    pub(super) fn resume(&mut self, about: &Subject) {
        for client in &mut self.clients {
            if let Some(pending) = &mut client.pending
                && matches!(&pending.state, State::Waits(subject) if subject == about)
            {
                pending.state = State::Ready;
            }
        }
    }

    /// What does some work ends without a result: its request is refused.
    pub(super) fn lose_work(&mut self) {
        if self.work.is_empty() {
            return;
        }
        let at = self.random.below(self.work.len());
        let (waiter, going) = self.work.swap_remove(at);
        let subject = match &going {
            Going::Begun(work) => work.subject().clone(),
            Going::Ended(done) => done.subject().clone(),
        };
        self.note(format!("the work for {waiter:?} about {subject:?} is lost"));
        self.working(|| drop(going));
        self.registry.discard(Done::lost(subject.clone()));
        match waiter {
            Waiter::Request(id)
                if self.clients.iter().any(|client| client.id == id && client.due.is_some()) =>
            {
                self.give_up(id);
            }
            Waiter::Request(id) => {
                if let Some(client) = self.clients.iter_mut().find(|client| client.id == id)
                    && let Some(pending) = client.pending.take()
                {
                    self.registry.end(pending.progress);
                }
            }
            Waiter::Answer(id) => {
                if let Some(client) = self.clients.iter_mut().find(|client| client.id == id) {
                    client.closing -= 1;
                }
                self.answer(id);
            }
            Waiter::Nobody => {}
        }
        self.resume(&subject);
    }
}
