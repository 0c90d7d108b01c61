//! What one daemon hands on to the next: this one takes over what the one before had, and keeps the file up
//! to date for the one behind.
//!
//! Switches are there before any client is served. Interfaces and persistent ports are set up by requests
//! of the daemon's own, which wait for their work as those of clients do, beside them and each other.

use std::time::{Duration, Instant};

use ringway_nic_setup::kept;
use ringway_proto::{Error, EventKind};
use ringway_registry::{Caller, Done, Due, Progress, Registry, Step};

use super::Server;
use crate::{
    guard::guarded_in,
    log::{Entry, log},
    peer::CONTAINED_ROOT,
    place::place,
    reservations,
    state::StateFile,
    workers::Waiter,
};

/// Something that is being set up again.
pub(super) struct Restoring {
    due: Due,
    caller: Caller,
    pub(super) progress: Progress,
}

impl Server {
    /// Has what the daemon before this one had, or begins to.
    pub(super) fn take_over(&mut self) {
        let lasting = self.state.as_mut().and_then(StateFile::take_over);
        let Some(mut lasting) = lasting else { return };
        for struck in reservations::strike(&self.rules.reservations, &mut lasting) {
            log(Entry::warn(EventKind::NotBack, format_args!("not set up again: {struck}")));
        }
        let wrong = guarded_in(&mut self.registry, "what was set up before", |registry| {
            registry.restore(lasting, Instant::now())
        });
        for wrong in wrong.into_iter().flatten() {
            log(Entry::warn(EventKind::NotBack, format_args!("not set up again: {wrong}")));
        }
        for (name, why) in self.state.as_ref().map(StateFile::left_out).unwrap_or_default() {
            if self.registry.expected().hold(&name, &why) {
                let text = format!(
                    "{name}: not set up again: {why}; it keeps its place: set it up by hand (`ringway switch attach`, \
                     `vale-ctl -n`), give it up (`ringway switch detach`, `vale-ctl -r`), or stop and start the daemon, \
                     which tries it again"
                );
                log(Entry::error(EventKind::NotBack, text));
            }
        }
        self.restore_due();
    }

    /// Whether the next entry waits for another, which is being set up.
    fn is_setting_up_one(&self) -> bool {
        let is_one_by_one = self.state.as_ref().is_some_and(StateFile::is_one_by_one);
        is_one_by_one && !self.being_restored.is_empty()
    }

    /// How long until something is to be tried.
    pub(super) fn next_due(&mut self) -> Option<Duration> {
        if self.is_setting_up_one() {
            return None;
        }
        self.registry.expected().next_due(Instant::now())
    }

    /// Tries what is to be set up again and is due.
    pub(super) fn restore_due(&mut self) {
        while !self.is_setting_up_one()
            && let Some(due) = self.registry.expected().due(Instant::now())
        {
            if let Some(state) = &mut self.state {
                state.trying(due.request.name());
            }
            let uid = if due.uid == CONTAINED_ROOT { 0 } else { due.uid };
            match place(due.netns, due.socket.clone()) {
                Ok(netns) => {
                    self.last += 1;
                    let reservations = reservations::of_user(&self.rules.reservations, uid);
                    let caller = self.caller(due.uid, uid, netns, reservations);
                    let progress = Progress::default();
                    self.restore(self.last, Restoring { due, caller, progress });
                }
                Err(error) => self.tried(&due, Err(error)),
            }
        }
        if self.registry.expected().all_tried() {
            // Those that are back have programs of this daemon.
            kept::end_those_before();
            if let Some(state) = &mut self.state {
                state.done();
            }
        }
    }

    /// As far as that takes no time.
    fn restore(&mut self, key: u64, mut restoring: Restoring) {
        let Restoring { due, caller, progress } = &mut restoring;
        let begin = |registry: &mut Registry| {
            registry.begin(self.own_handle, caller, &due.request, progress)
        };
        match guarded_in(&mut self.registry, "something that is set up again", begin) {
            Ok(Step::Answered(answer)) => self.tried(due, answer.map(drop)),
            Err(error) => self.give_up(restoring, error),
            Ok(Step::Do(work)) => match self.start(Waiter::Request(key), work) {
                Ok(()) => drop(self.being_restored.insert(key, restoring)),
                Err(error) => self.give_up(restoring, error),
            },
            Ok(Step::Wait(subject)) => {
                self.queued.push((subject, key));
                self.being_restored.insert(key, restoring);
            }
        }
    }

    /// What it waited for is done.
    pub(super) fn go_on_restoring(
        &mut self,
        key: u64,
        mut restoring: Restoring,
        outcome: Option<Result<Done, Error>>,
    ) {
        match outcome {
            Some(Err(error)) => return self.give_up(restoring, error),
            Some(Ok(done)) => restoring.progress.put(done),
            None => {}
        }
        if !self.registry.expected().is_wanted(&restoring.due) {
            return self.give_up(restoring, Error::absent("it is not to come back any more"));
        }
        self.restore(key, restoring);
    }

    fn give_up(&mut self, restoring: Restoring, error: Error) {
        let Restoring { due, progress, .. } = restoring;
        let _ = guarded_in(&mut self.registry, "the end of a request", |registry| {
            registry.end(progress)
        });
        self.tried(&due, Err(error));
    }

    fn tried(&mut self, due: &Due, outcome: Result<(), Error>) {
        self.start_closings(Waiter::Nobody);
        if let Some(state) = &mut self.state {
            state.tried(due.request.name());
        }
        if let Some(notice) = self.registry.tried_again(due, outcome, Instant::now()) {
            self.note(notice);
        }
    }

    /// Has the next daemon know of what has changed. `Some`: so much later, because it was too often.
    pub(super) fn keep_state(&mut self) -> Option<Duration> {
        let begin = Instant::now();
        let retry_after = self.state.as_ref()?.retry_after(begin);
        let changed = self.registry.lasting_changed();
        if !changed && retry_after != Some(Duration::ZERO) {
            return retry_after;
        }
        let wait = self.pace.wait(begin);
        if wait > Duration::ZERO {
            return Some(wait);
        }
        match changed {
            true => self.write_state(),
            false => self.state.as_mut()?.retry(),
        }
        let end = Instant::now();
        self.pace.spend(begin, end);
        self.state.as_ref()?.retry_after(end)
    }

    /// The same with all that takes a look, before this daemon ends.
    pub(super) fn write_last_state(&mut self) {
        if self.state.is_some() {
            let look = Registry::look_at_devices;
            let _ = guarded_in(&mut self.registry, "a look at devices", look);
        }
        self.write_state();
        if let Some(state) = &mut self.state {
            state.stop();
        }
    }

    pub(super) fn write_state(&mut self) {
        if let Some(state) = &mut self.state
            && let Some(lasting) = self.registry.lasting()
        {
            let expected = self.registry.expected();
            state.let_in(|name| expected.is_held(name));
            state.keep(lasting);
        }
    }
}
