//! Requests that take long: the set-up of interfaces, which waits for the kernel.
//!
//! The registry answers one request at a time, so none may wait. One that needs such [`Work`] leaves it to
//! its caller, to be done on any thread, and goes on when the work is [`Done`]: with the commit, if it was a step
//! of a [transaction](crate::transaction). What was looked up instead is a fact, and the request is begun
//! again, from its beginning, with the result at hand where it was asked for. Ports that only the request needs
//! are kept for it.
//!
//! ```text
//!  begin(request) --> Step::Do(work)     work.run() on another thread, others are answered
//!  begin(request) <-- done               to the next piece of work, or
//!                 --> Step::Answered
//! ```
//!
//! Work on one [`Subject`], such as an interface, is done one at a time: a request that needs more of it
//! meanwhile is told to [wait](Step::Wait), and begun again when that work is done. Requests that wait have
//! their turns in the order in which they came.

use std::{any::Any, collections::HashMap};

use ringway_proto::{Cause, Error, Extmem, OptionStatus, Reply, Result, Statuses};
use rustix::fd::OwnedFd;

use crate::{
    actions::InstalledAction,
    lookups::{Found, LookUp, LookedUp},
    port::{PortId, Ring, free_ring},
    ports::Ports,
    regions::{RegionKey, Regions},
    rx_redirect::Installed,
    shared_nic::Ending,
    subject::Subject,
    transaction::Acting,
    waiting::{Place, Waiting},
};

mod requests;

pub(crate) type Outcome = Box<dyn Any + Send>;

/// Something that may take long. It needs nothing of the registry.
pub struct Work {
    subject: Subject,
    run: Box<dyn FnOnce() -> Outcome + Send>,
}

impl Work {
    pub(crate) fn new<T: Send + 'static>(
        subject: Subject,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Work {
        Work { subject, run: Box::new(|| Box::new(work())) }
    }

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

/// How often a request is begun again at most because of what others hold, or free. Work about a
/// subject is not counted: requests have their turns in the order in which they came.
pub(crate) const MOST_WAITS: usize = 1000;

/// What is kept of a request from one beginning to the next.
#[derive(Default)]
pub struct Progress {
    done: Option<Done>,
    /// The same, while the request is answered: others may work on the subject again.
    at_hand: Option<Done>,
    /// A port that stays for the request alone, perhaps.
    port: Option<PortId>,
    /// The region in the memory that came with it, and what its client is told of that.
    pub(crate) region: Option<(RegionKey, Extmem)>,
    /// Its filter, which has been found fit.
    pub(crate) filter: Option<std::sync::Arc<Installed>>,
    /// The same of its action program.
    pub(crate) action: Option<std::sync::Arc<InstalledAction>>,
    /// Its step is being done.
    pub(crate) acting: Option<Acting>,
    /// The interfaces that it names.
    found: Found,
    /// How often it has waited for what others hold, or free.
    waits: usize,
    wanted: Option<Wanted>,
    /// Among the requests that wait for the same.
    place: Option<Place>,
}

enum Wanted {
    Work(Work),
    Others(Subject),
}

/// Rings that the kernel lets go of with some work.
struct LentRings {
    subject: Subject,
    region: RegionKey,
    rings: Vec<Ring>,
}

/// The book of what a registry leaves to its caller: the work that the request at hand waits for, and what is
/// to be closed, such as sockets, links and devices. The kernel takes its time for both.
#[derive(Default)]
pub struct Deferred {
    /// Of the request that is being answered.
    pub(crate) progress: Progress,
    /// Subjects of work that has been begun, each with how many pieces.
    busy: HashMap<Subject, usize>,
    /// Whether closing is left to the registry's caller.
    defers_closings: bool,
    endings: Vec<Work>,
    closings: Vec<Work>,
    lent: Vec<LentRings>,
    pub(crate) waiting: Waiting,
}

impl Progress {
    /// Gives the request the result of what it waited for.
    pub fn put(&mut self, done: Done) {
        self.done = Some(done);
    }

    /// What a step has failed with, and what had become of the options before.
    fn tell_options(&self, error: Error) -> Error {
        let extmem = match self.region {
            Some(_) => OptionStatus::Accepted,
            None => error.options.extmem,
        };
        Error { options: Statuses { extmem, ..error.options }, ..error }
    }

    /// Whether the request is to be begun again.
    pub(crate) fn is_waiting(&self) -> bool {
        self.wanted.is_some()
    }

    /// The result of what it waited for is at hand from here on.
    fn take_up(&mut self, done: Done) {
        let Done { subject, outcome } = done;
        match outcome.downcast::<LookedUp>() {
            Ok(looked_up) => self.found.add(*looked_up),
            Err(outcome) => self.at_hand = Some(Done { subject, outcome }),
        }
    }
}

impl Deferred {
    /// From now on what takes long to close is not closed by `Registry::close` and `Registry::begin`: it
    /// is [`closings`](Self::closings).
    pub fn defer_closings(&mut self) {
        self.defers_closings = true;
    }

    /// What is to be closed by now, on any thread; then it is to be discarded (`Registry::discard`). A client
    /// that asked for it is answered when that is done.
    pub fn closings(&mut self) -> Vec<Work> {
        let mut all = self.endings();
        all.append(&mut self.closings);
        all
    }

    /// What requests [wait](Step::Wait) for that are to be begun again, although no work about it has ended:
    /// the first of them has gone.
    pub fn stirred(&mut self) -> Vec<Subject> {
        self.waiting.stirred()
    }

    /// Whether a request that [waits](Step::Wait) is to be begun again when work about this subject has ended. Of
    /// those that wait for the same fact the first alone is: the next has its turn after it, or is
    /// [stirred](Self::stirred).
    pub fn is_to_go_on(&self, progress: &Progress, subject: &Subject) -> bool {
        match subject {
            Subject::Switch(_) | Subject::Names(_) | Subject::Counters(_) => {
                self.waiting.is_next(progress.place.as_ref(), subject)
            }
            _ => true,
        }
    }

    /// Those of it that give the stack its traffic back: a client that has closed a port waits for no others.
    pub fn endings(&mut self) -> Vec<Work> {
        std::mem::take(&mut self.endings)
    }

    /// A fact: the result of `work`, which is done while others are answered. Fails as long as there is none:
    /// then the request returns without a lasting change but what it finds again.
    pub(crate) fn off_loop<T: Send + 'static>(
        &mut self,
        subject: impl Into<Subject>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        crate::fault::step();
        let subject = subject.into();
        if let Some(Done { subject: about, outcome }) = self.progress.at_hand.take() {
            match outcome.downcast::<T>() {
                Ok(outcome) if about == subject => return Ok(*outcome),
                Ok(outcome) => self.close_off_loop(about, outcome),
                Err(outcome) => self.drop_outcome(Done { subject: about, outcome }),
            }
        }
        self.await_turn(&subject)?;
        Err(self.wait_for_work(Work::new(subject, work)))
    }

    /// Fails until the request at hand may have work done about this.
    pub(crate) fn await_turn(&mut self, subject: &Subject) -> Result<()> {
        match self.may_begin(subject) {
            true => Ok(()),
            false => Err(self.wait_for(Wanted::Others(subject.clone()))),
        }
    }

    /// Fails: the request goes on when this is done.
    pub(crate) fn wait_for_work(&mut self, work: Work) -> Error {
        self.wait_for(Wanted::Work(work))
    }

    /// Fails: the request is begun again when others have done their work about this.
    pub(crate) fn wait_for_others(&mut self, subject: Subject) -> Error {
        self.progress.waits += 1;
        match self.progress.waits > MOST_WAITS {
            true => Error::busy("other requests are always ahead").remedy("try again"),
            false => self.wait_for(Wanted::Others(subject)),
        }
    }

    /// Whether it is the turn of the request at hand to work on this.
    fn may_begin(&self, subject: &Subject) -> bool {
        !self.is_busy(subject) && self.waiting.is_next(self.progress.place.as_ref(), subject)
    }

    /// Fails: the request is begun again when some memory has been freed that an account's programs have
    /// closed.
    pub(crate) fn await_memory(&mut self, account: u32) -> Result<()> {
        Err(self.wait_for_others(Subject::Memory(account)))
    }

    /// The request is begun again with what has been looked up.
    fn look_up(&mut self, account: u32, look_up: LookUp) {
        let subject = Subject::Names(account);
        self.progress.wanted = Some(match self.may_begin(&subject) {
            true => Wanted::Work(Work::new(subject, || look_up.run())),
            false => Wanted::Others(subject),
        });
    }

    /// The request waits for others. What is freed is not for one request alone, so memory has no line.
    fn wait(&mut self, progress: &mut Progress, subject: Subject) -> Step {
        let before = progress.place.take();
        match subject {
            Subject::Memory(_) => before.into_iter().for_each(|place| self.waiting.leave(place)),
            _ => progress.place = Some(self.waiting.wait(before, &subject)),
        }
        Step::Wait(subject)
    }

    fn wait_for(&mut self, wanted: Wanted) -> Error {
        self.progress.wanted = Some(wanted);
        Error::new(Cause::System(libc::EINPROGRESS), "not done yet")
    }

    /// The result of what the request at hand has waited for.
    pub(crate) fn take_result(&mut self) -> Outcome {
        self.progress.at_hand.take().map_or_else(|| Box::new(()) as Outcome, |done| done.outcome)
    }

    /// Whether work about this is going on.
    pub(crate) fn is_busy(&self, subject: &Subject) -> bool {
        self.busy.contains_key(subject)
    }

    /// Work that no request waits for: what has come of it is to be [discarded](Registry::discard).
    pub(crate) fn unasked(
        &mut self,
        subject: Subject,
        work: impl FnOnce() + Send + 'static,
    ) -> Work {
        self.begun(&subject);
        Work::new(subject, work)
    }

    /// Closes what the kernel takes its time for; whatever is about the same subject comes after that.
    pub(crate) fn close_off_loop(
        &mut self,
        subject: impl Into<Subject>,
        what: impl Send + 'static,
    ) {
        let closing = self.closing(subject.into(), what);
        self.closings.extend(closing);
    }

    /// The same of what keeps the stack's traffic away.
    pub(crate) fn end_off_loop(&mut self, subject: impl Into<Subject>, ending: Ending) {
        let ending = self.closing(subject.into(), ending);
        self.endings.extend(ending);
    }

    /// Closes it, or is the work to do so.
    fn closing(&mut self, subject: Subject, what: impl Send + 'static) -> Option<Work> {
        crate::fault::step();
        if !self.defers_closings {
            drop(what);
            return None;
        }
        self.begun(&subject);
        Some(Work::new(subject, || drop(what)))
    }

    /// The same of what touches some rings until it is closed: then these are freed.
    pub(crate) fn close_with_rings(
        &mut self,
        subject: impl Into<Subject>,
        what: impl Send + 'static,
        rings: Option<(RegionKey, Vec<Ring>)>,
        regions: &mut Regions,
    ) {
        let subject = subject.into();
        // From here on they are on the books, whatever happens.
        if let Some((region, rings)) = rings {
            self.lent.push(LentRings { subject: subject.clone(), region, rings });
            regions.hold(region);
        }
        self.close_off_loop(subject, what);
        self.free_returned(regions);
    }

    /// Frees the rings that no work is about any more. Returns their regions.
    fn free_returned(&mut self, regions: &mut Regions) -> Vec<RegionKey> {
        let mut freed = Vec::new();
        while let Some(region) = self.free_next_returned(regions) {
            regions.release_leftover(region);
            freed.push(region);
        }
        freed
    }

    /// The same while the counts of regions are not to be believed.
    pub(crate) fn free_returned_uncounted(&mut self, regions: &mut Regions) {
        while self.free_next_returned(regions).is_some() {}
    }

    /// Frees the next of them. Returns their region, which still counts them.
    fn free_next_returned(&mut self, regions: &mut Regions) -> Option<RegionKey> {
        let at = self.lent.iter().position(|lent| !self.is_busy(&lent.subject))?;
        // They are on the list until they are freed.
        let book = regions.get(self.lent.get(at)?.region);
        let LentRings { region, rings, .. } = self.lent.remove(at);
        rings.into_iter().for_each(|ring| free_ring(book, &ring));
        Some(region)
    }

    /// Whether the kernel has rings of a region.
    pub(crate) fn has_rings_in(&self, region: RegionKey) -> bool {
        self.lent.iter().any(|lent| lent.region == region)
    }

    /// The rings that the kernel has yet, each with its region, which they count for.
    pub(crate) fn rings(&self) -> impl Iterator<Item = (RegionKey, &[Ring])> {
        self.lent.iter().map(|lent| (lent.region, lent.rings.as_slice()))
    }

    /// The port stays until the request that is being answered has been. Returns the port that stayed
    /// for it before, if that is another one, and need not any more.
    pub(crate) fn keep_for_request(&mut self, id: PortId, ports: &mut Ports) -> Option<PortId> {
        let port = ports.get_mut(id).filter(|_| self.progress.port != Some(id))?;
        port.awaited += 1;
        self.progress.port.replace(id)
    }

    /// The port that stays for the request that is being answered, if any.
    pub(crate) fn kept_for_request(&self) -> Option<PortId> {
        self.progress.port
    }

    fn begun(&mut self, subject: &Subject) {
        *self.busy.entry(subject.clone()).or_default() += 1;
    }

    /// One piece of work about it has been done. Returns regions that have rings back.
    fn is_over(&mut self, subject: &Subject, regions: &mut Regions) -> Vec<RegionKey> {
        let Some(count) = self.busy.get_mut(subject) else { return Vec::new() };
        *count -= 1;
        if *count > 0 {
            return Vec::new();
        }
        self.busy.remove(subject);
        self.free_returned(regions)
    }

    fn drop_outcome(&mut self, done: Done) {
        let Done { subject, outcome } = done;
        if !outcome.is::<()>() && !outcome.is::<LookedUp>() {
            self.close_off_loop(subject, outcome);
        }
    }
}
