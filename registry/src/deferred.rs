//! Requests that take long: the set-up of interfaces, which waits for the kernel.
//!
//! The registry answers one request at a time, so none may wait. One that needs such [`Work`] leaves it to
//! its caller, to be done on any thread, and is begun again, from its beginning, when the work is
//! [`Done`]: then the result is at hand where the work was asked for. What the request has set up by then
//! stays, so that it gets further each time; ports that only it needs are kept for it.
//!
//! ```text
//!  begin(request) --> Step::Do(work)     work.run() on another thread, others are answered
//!  begin(request) <-- done               to the next piece of work, or
//!                 --> Step::Answered
//! ```
//!
//! Work on one [`Subject`], such as an interface, is done one at a time: a request that needs more of it
//! meanwhile is told to [wait](Step::Wait), and begun again when that work is done.

use std::{any::Any, collections::HashMap};

use ringway_proto::{Cause, Error, Reply, Request, Result};
use rustix::fd::OwnedFd;

use crate::{
    handles::Handle,
    port::{PortId, Ring, free_ring},
    regions::RegionKey,
    registry::{Caller, Registry},
    rx_redirect::Installed,
    shared_nic::NicKey,
};

/// What work changes: of two pieces about one subject, the second begins when the first is done.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    /// A network interface: the number of its network namespace, 0 for this process's, and its own.
    Interface(u64, u32),
    /// The device of a persistent port, by what the port is known by.
    Device(String),
    /// What a user has verified.
    User(u32),
    /// Memory that is being freed of what the programs of an account have closed.
    Memory(u32),
}

impl From<NicKey> for Subject {
    fn from((netns, index): NicKey) -> Subject {
        Subject::Interface(netns, index)
    }
}

type Outcome = Box<dyn Any + Send>;

/// Something that may take long. It needs nothing of the registry.
pub struct Work {
    subject: Subject,
    run: Box<dyn FnOnce() -> Outcome + Send>,
}

impl Work {
    /// Does it, on any thread.
    pub fn run(self) -> Done {
        Done { subject: self.subject, outcome: (self.run)() }
    }

    pub fn subject(&self) -> &Subject {
        &self.subject
    }
}

/// What has come of work.
pub struct Done {
    subject: Subject,
    outcome: Outcome,
}

impl Done {
    /// The same if the work has ended without a result.
    pub fn lost(subject: Subject) -> Done {
        Done { subject, outcome: Box::new(()) }
    }

    pub fn subject(&self) -> &Subject {
        &self.subject
    }
}

/// How far a request has got.
pub enum Step {
    Answered(Result<(Reply, Vec<OwnedFd>)>),
    /// This is to be done first.
    Do(Work),
    /// Work of another request about this is to be done first.
    Wait(Subject),
}

/// What is kept of a request from one beginning to the next.
#[derive(Default)]
pub struct Progress {
    done: Option<Done>,
    /// The same, while the request is answered: others may work on the subject again.
    at_hand: Option<Done>,
    /// A port that stays for the request alone, perhaps.
    port: Option<PortId>,
    /// The region in the memory that came with it.
    pub(crate) region: Option<RegionKey>,
    /// Its filter, which has been found fit.
    pub(crate) filter: Option<std::sync::Arc<Installed>>,
    wanted: Option<Wanted>,
}

enum Wanted {
    Work(Work),
    Others(Subject),
}

/// Subjects of work that has been begun, each with how many pieces.
pub(crate) type Busy = HashMap<Subject, usize>;

/// Rings that the kernel lets go of with some work.
struct LentRings {
    subject: Subject,
    region: RegionKey,
    rings: Vec<Ring>,
}

/// What is to be closed: sockets, links and devices, which the kernel takes its time for.
#[derive(Default)]
pub(crate) struct Closings {
    /// Whether it is left to the registry's caller.
    deferred: bool,
    work: Vec<Work>,
    rings: Vec<LentRings>,
}

impl Closings {
    /// The rings that the kernel has yet, each with its region, which they count for.
    pub fn rings(&self) -> impl Iterator<Item = (RegionKey, &[Ring])> {
        self.rings.iter().map(|lent| (lent.region, lent.rings.as_slice()))
    }
}

impl Progress {
    /// Gives the request the result of what it waited for.
    pub fn put(&mut self, done: Done) {
        self.done = Some(done);
    }

    /// Whether the request is to be begun again.
    pub(crate) fn is_waiting(&self) -> bool {
        self.wanted.is_some()
    }
}

impl Registry {
    /// Answers a request as far as that takes no time; see [`crate::Registry::call`]. Each time the
    /// same request, caller and progress.
    pub fn begin(
        &mut self,
        handle: Handle,
        caller: &Caller,
        request: &Request,
        progress: &mut Progress,
    ) -> Step {
        if let Some(done) = progress.done.take() {
            self.is_over(&done.subject);
            progress.at_hand = Some(done);
        }
        self.progress = std::mem::take(progress);
        let result = self.answer(handle, caller, request.clone());
        *progress = std::mem::take(&mut self.progress);
        match (progress.wanted.take(), result) {
            (Some(Wanted::Work(work)), Err(_)) => {
                *self.busy.entry(work.subject.clone()).or_default() += 1;
                Step::Do(work)
            }
            (Some(Wanted::Others(subject)), Err(_)) => Step::Wait(subject),
            // There may be enough when all has been freed that was closed before.
            (None, Err(Error { cause: Cause::NoRoom, .. }))
                if self.is_freeing(self.settings.accounts.of(caller.uid)) =>
            {
                Step::Wait(Subject::Memory(self.settings.accounts.of(caller.uid)))
            }
            (_, result) => {
                self.end(std::mem::take(progress));
                Step::Answered(result)
            }
        }
    }

    /// A request is not to be begun again: its client has gone, say. Work that it waits for is to be
    /// [discarded](Self::discard) when it is done.
    pub fn end(&mut self, progress: Progress) {
        if let Some(id) = progress.port {
            self.let_go_of(id);
        }
        if let Some(region) = progress.region {
            self.regions.drop_unused(region);
        }
        if let Some(done) = progress.done {
            self.discard(done);
        }
        if let Some(done) = progress.at_hand {
            self.drop_outcome(done);
        }
    }

    /// Work has been done that no request waits for: what has come of it is undone.
    pub fn discard(&mut self, done: Done) {
        let subject = done.subject.clone();
        self.drop_outcome(done);
        self.is_over(&subject);
    }

    fn drop_outcome(&mut self, done: Done) {
        let Done { subject, outcome } = done;
        if !outcome.is::<()>() {
            self.close_off_loop(subject, outcome, None);
        }
    }

    /// One piece of work about it has been done.
    fn is_over(&mut self, subject: &Subject) {
        let Some(count) = self.busy.get_mut(subject) else { return };
        *count -= 1;
        if *count > 0 {
            return;
        }
        self.busy.remove(subject);
        let about = |lent: &mut LentRings| lent.subject == *subject;
        let over: Vec<_> = self.closings.rings.extract_if(.., about).collect();
        for LentRings { region, rings, .. } in over {
            self.free_lent(region, rings);
            self.regions.release(region);
        }
    }

    fn free_lent(&mut self, region: RegionKey, rings: Vec<Ring>) {
        let book = self.regions.get(region);
        // They hold the region, which may be freed next.
        rings.into_iter().for_each(|ring| free_ring(book, &ring));
    }

    /// From now on what takes long to close is not closed by [`close`](Registry::close) and
    /// [`begin`](Registry::begin): it is [`closings`](Registry::closings).
    pub fn defer_closings(&mut self) {
        self.closings.deferred = true;
    }

    /// What is to be closed by now, on any thread; then it is to be [discarded](Self::discard). A client
    /// that asked for it is answered when that is done.
    pub fn closings(&mut self) -> Vec<Work> {
        std::mem::take(&mut self.closings.work)
    }

    /// Closes what the kernel takes its time for. Then it does not touch the `rings` any more, which are
    /// freed; whatever is about the same subject comes after that.
    pub(crate) fn close_off_loop(
        &mut self,
        subject: impl Into<Subject>,
        what: impl Send + 'static,
        rings: Option<(RegionKey, Vec<Ring>)>,
    ) {
        let subject = subject.into();
        if !self.closings.deferred {
            drop(what);
            if let Some((region, rings)) = rings {
                self.free_lent(region, rings);
            }
            return;
        }
        *self.busy.entry(subject.clone()).or_default() += 1;
        if let Some((region, rings)) = rings {
            self.regions.hold(region);
            self.closings.rings.push(LentRings { subject: subject.clone(), region, rings });
        }
        let run = move || -> Outcome {
            drop(what);
            Box::new(())
        };
        self.closings.work.push(Work { subject, run: Box::new(run) });
    }

    /// Whether work about this is going on.
    pub(crate) fn is_busy(&self, subject: &Subject) -> bool {
        self.busy.contains_key(subject)
    }

    /// The result of `work`, which is done while others are answered. Fails as long as there is none:
    /// then the request returns without a lasting change but what it finds again.
    pub(crate) fn off_loop<T: Send + 'static>(
        &mut self,
        subject: impl Into<Subject>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        let subject = subject.into();
        if let Some(Done { subject: about, outcome }) = self.progress.at_hand.take() {
            match outcome.downcast::<T>() {
                Ok(outcome) if about == subject => return Ok(*outcome),
                Ok(outcome) => self.close_off_loop(about, outcome, None),
                Err(outcome) => self.drop_outcome(Done { subject: about, outcome }),
            }
        }
        let later = Error::new(Cause::System(libc::EINPROGRESS), "not done yet");
        self.progress.wanted = Some(match self.is_busy(&subject) {
            true => Wanted::Others(subject),
            false => Wanted::Work(Work { subject, run: Box::new(move || Box::new(work())) }),
        });
        Err(later)
    }

    /// Whether the result of work on this is at hand.
    pub(crate) fn is_done(&self, subject: &Subject) -> bool {
        self.progress.at_hand.as_ref().is_some_and(|done| done.subject == *subject)
    }

    /// Fails as long as buffers of a region are being freed: the request is begun again when some are.
    pub(crate) fn await_freed(&mut self, region: RegionKey) -> Result<()> {
        if !self.regions.get(region).is_freeing() && !self.leftovers.any_in(region) {
            return Ok(());
        }
        let uid = self.regions.owner(region).map_or(0, |(_, uid)| uid);
        let account = self.settings.accounts.of(uid);
        self.progress.wanted = Some(Wanted::Others(Subject::Memory(account)));
        Err(Error::new(Cause::System(libc::EINPROGRESS), "not free yet"))
    }

    /// The port stays until the request that is being answered has been.
    pub(crate) fn keep_for_request(&mut self, id: PortId) {
        if self.progress.port == Some(id) {
            return;
        }
        if let Some(port) = self.ports.get_mut(id) {
            port.awaited += 1;
            if let Some(before) = self.progress.port.replace(id) {
                self.let_go_of(before);
            }
        }
    }

    fn let_go_of(&mut self, id: PortId) {
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
}
