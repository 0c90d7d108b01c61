//! Requests are begun, go on, and end.

use ringway_proto::{Cause, Error, Request};

use super::{Deferred, Done, MOST_WAITS, Progress, Step, Wanted};
use crate::{
    caller::Caller, conflicts::Taken, handles::Handle, port::PortId, registry::Registry,
    subject::Subject, taken_names::reserved,
};

impl Registry {
    /// Begins a request, or goes on with it, up to the next work that takes long; see
    /// [`crate::Registry::call`]. `request`, `caller` and `progress` are those of the first call.
    pub fn begin(
        &mut self,
        handle: Handle,
        caller: &Caller,
        request: &Request,
        progress: &mut Progress,
    ) -> Step {
        let account = self.settings.accounts.of(caller.uid);
        if let Some(done) = progress.done.take() {
            self.is_over(&done.subject);
            progress.take_up(done);
        }
        caller.lookups.begin(std::mem::take(&mut progress.found));
        self.deferred.progress = std::mem::take(progress);
        let was_freeing = self.leftovers.is_freeing(account, &self.regions);
        let committed = match self.deferred.progress.acting.is_some() {
            true => self.commit(),
            false => Ok(None),
        };
        let result = match committed {
            Ok(None) => self.answer(handle, caller, request.clone()),
            Ok(Some(answer)) => Ok(answer),
            Err(error) => Err(self.deferred.progress.tell_options(error)),
        };
        let (found, wanted) = caller.lookups.end();
        if let Some(look_up) = wanted.filter(|_| !self.deferred.progress.is_waiting()) {
            self.deferred.look_up(account, look_up);
        }
        *progress = std::mem::take(&mut self.deferred.progress);
        progress.found = found;
        match (progress.wanted.take(), result) {
            (Some(Wanted::Work(work)), Err(_)) => {
                self.deferred.waiting.has_turn(progress.place.take(), &work.subject);
                self.deferred.begun(&work.subject);
                Step::Do(work)
            }
            (Some(Wanted::Others(subject)), Err(_)) => self.deferred.wait(progress, subject),
            // There may be enough when all has been freed that was closed before: by now, perhaps.
            (None, Err(Error { cause: Cause::NoRoom, .. }))
                if progress.waits < MOST_WAITS
                    && (was_freeing || self.leftovers.is_freeing(account, &self.regions)) =>
            {
                progress.waits += 1;
                self.deferred.wait(progress, Subject::Memory(account))
            }
            (_, result) => {
                self.end(std::mem::take(progress));
                if result.is_err() {
                    self.note_conflict(caller, request);
                }
                Step::Answered(result)
            }
        }
    }

    /// A request is not to be begun again: its client has gone, say. Work that it waits for is to be
    /// [discarded](Self::discard) when it is done. Each request that was begun must be ended: others may wait
    /// behind it.
    pub fn end(&mut self, progress: Progress) {
        if let Some(place) = progress.place {
            self.deferred.waiting.leave(place);
        }
        if let Some(id) = progress.port {
            self.let_go_of(id);
        }
        if let Some(acting) = &progress.acting {
            self.let_go_of_held(acting);
        }
        if let Some((region, _)) = progress.region {
            self.regions.drop_unused(region);
        }
        if let Some(done) = progress.done {
            self.discard(done);
        }
        if let Some(done) = progress.at_hand {
            self.deferred.drop_outcome(done);
        }
    }

    /// Work has been done that no request waits for: what has come of it is undone.
    pub fn discard(&mut self, done: Done) {
        let subject = done.subject.clone();
        self.deferred.drop_outcome(done);
        self.is_over(&subject);
    }

    fn is_over(&mut self, subject: &Subject) {
        let freed = self.deferred.is_over(subject, &mut self.regions);
        freed.into_iter().for_each(|region| self.reclaim_region(region));
    }

    /// What is left to the caller.
    pub fn deferred(&mut self) -> &mut Deferred {
        &mut self.deferred
    }

    /// Keeps a port for the request that is being answered if that is to be begun again. False: it is not.
    pub(crate) fn keep_if_begun_again(&mut self, id: PortId) -> bool {
        let is_waiting = self.deferred.progress.is_waiting();
        if is_waiting {
            let before = self.deferred.keep_for_request(id, &mut self.ports);
            before.into_iter().for_each(|before| self.let_go_of(before));
        }
        is_waiting
    }

    /// A request that a port [was kept](Deferred::keep_for_request) for needs it no more.
    pub(crate) fn let_go_of(&mut self, id: PortId) {
        if let Some(port) = self.ports.get_mut(id) {
            port.awaited -= 1;
            self.leave_unused(id);
        }
    }

    /// Undoes what was set up at a port that no program has.
    pub(crate) fn leave_unused(&mut self, id: PortId) {
        self.users_changed(id);
        if self.port(id).is_unused() {
            (self.actions(id).unbind)(self, id);
        }
        self.reap(id);
    }

    /// A request was refused: notes whether for a name that others have.
    pub(crate) fn note_conflict(&mut self, caller: &Caller, request: &Request) {
        let taken = match reserved(&self.bridges, caller, request) {
            Some(pattern) => Some(Taken::Reserved(pattern.to_string())),
            None => self.user_of(request).filter(|user| *user != caller.uid).map(Taken::InUse),
        };
        if let Some(taken) = taken {
            self.conflicts.add(request.name(), caller.uid, taken, &self.settings.accounts);
        }
    }

    /// The user that owns the switch or port whose name a request asks for.
    fn user_of(&mut self, request: &Request) -> Option<u32> {
        match request {
            Request::Register { name, registration, .. } if !registration.monitor.is_asked() => {
                self.ports.named(name).and_then(|id| self.ports.get(id)).map(|port| port.uid)
            }
            Request::SwitchNew { bridge, .. } => self.bridges.owner(bridge),
            _ => None,
        }
    }
}
