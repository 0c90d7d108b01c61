//! Requests that take long, as transactions.
//!
//! ```text
//!  facts --> plan --> holds --> step --> commit --> answer
//!    ^         |        |        off the loop
//!    +---------+--------+
//!     others come first: begun again, with nothing held
//! ```
//!
//! * *Facts* are plain data that were looked up for the request.
//! * A [`Plan`] is made of facts and of the books as they are, which it does not change. A request
//!   that is not allowed is refused here.
//! * What the plan [`Needs`] is held, all or nothing: no other request gets it meanwhile. A request
//!   that needs a name which another holds waits for that one, and holds nothing itself.
//! * The *step* is done off the loop, and needs nothing of the registry.
//! * A *commit* enters what was made into the books. If it cannot, it has undone what it did, and
//!   what was made is closed off the loop: the request is refused, or, if what the plan was made for is
//!   not there any more, begun again.
//!
//! Only facts and plan are begun again, and [not for ever](crate::deferred::MOST_WAITS). If the
//! client goes, names and places are free at once, and memory when what the step has made is closed.
//!
//! A request with several steps has a plan for each, and all but the last are
//! [parts](Registry::carry_out_part) of it: after the commit of one it goes on from its beginning, and finds that
//! part done. What a part has entered belongs to a port, which stays for the request; when the request ends
//! early, the port is let go, and with it, off the loop, what no program has.

use std::any::Any;

use ringway_proto::{Cause, Error, Reply, Result};
use rustix::fd::OwnedFd;

use crate::{
    bridges::HeldPlaces,
    charge::Charge,
    deferred::{Outcome, Work},
    port::{PortId, Ring},
    regions::RegionKey,
    registry::Registry,
    subject::Subject,
};

/// What a request is answered with.
pub(crate) type Answer = (Reply, Vec<OwnedFd>);

/// The same without descriptors; for a part, which is not answered, [`Reply::Done`].
pub(crate) fn plain(reply: Reply) -> Answer {
    (reply, Vec::new())
}

/// What a request is going to do.
pub(crate) trait Plan: Send + Sized + 'static {
    /// What the step makes.
    type Made: Send + 'static;

    /// What it is about, and so its step.
    fn subject(&self) -> Subject;

    fn needs(&self) -> Needs;

    /// Enters what was made; `memory` is what was held for it. All or nothing.
    fn commit(
        self,
        registry: &mut Registry,
        made: Self::Made,
        memory: Charge,
    ) -> Result<Answer, Failed>;
}

/// What takes long.
pub(crate) trait Makes<T>: FnOnce() -> Result<T> + Send + 'static {}

impl<T, F: FnOnce() -> Result<T> + Send + 'static> Makes<T> for F {}

/// What is held for a request until its step is done.
pub(crate) struct Needs {
    pub uid: u32,
    /// Of ports.
    pub names: Vec<String>,
    pub places: Option<HeldPlaces>,
    /// A place among the persistent ports of the user.
    pub persistent: bool,
    /// Bytes of the user.
    pub memory: u64,
}

impl Needs {
    /// The turn of its subject is enough.
    pub fn nothing(uid: u32) -> Needs {
        Needs { uid, names: Vec::new(), places: None, persistent: false, memory: 0 }
    }
}

/// Why a commit failed, and what is to be closed.
pub(crate) struct Failed {
    /// `None`: the books are not those of which the plan was made.
    error: Option<Error>,
    left: Option<Box<Left>>,
}

/// What is to be closed.
struct Left {
    what: Box<dyn Any + Send>,
    /// It has these, and they are freed when it is closed.
    rings: Option<(RegionKey, Vec<Ring>)>,
}

impl Left {
    fn new(what: impl Send + 'static) -> Option<Box<Left>> {
        Some(Box::new(Left { what: Box::new(what), rings: None }))
    }
}

impl Failed {
    pub fn new(error: Error, left: impl Send + 'static) -> Failed {
        Failed { error: Some(error), left: Left::new(left) }
    }

    /// Nothing is left to be closed.
    pub fn undone(error: Error) -> Failed {
        Failed { error: Some(error), left: None }
    }

    /// Another plan is to be made.
    pub fn again(left: impl Send + 'static) -> Failed {
        Failed { error: None, left: Left::new(left) }
    }

    /// This is to be closed after that.
    pub fn and(self, more: impl Send + 'static) -> Failed {
        let Failed { error, left } = self;
        let left = match left.map(|left| *left) {
            Some(Left { what, rings }) => {
                Some(Box::new(Left { what: Box::new((what, more)), rings }))
            }
            None => Left::new(more),
        };
        Failed { error, left }
    }

    /// These are freed when all is closed.
    pub fn with_rings(mut self, region: RegionKey, rings: Vec<Ring>) -> Failed {
        if let Some(left) = &mut self.left {
            left.rings = Some((region, rings));
        }
        self
    }
}

/// A request whose step is being done.
pub(crate) struct Acting {
    plan: Box<dyn Commit>,
    held: Needs,
    /// Whether the request goes on after the commit.
    is_part: bool,
}

/// A plan of some kind.
trait Commit: Send {
    fn commit(self: Box<Self>, registry: &mut Registry, outcome: Outcome) -> Result<Answer>;
}

impl<P: Plan> Commit for P {
    fn commit(self: Box<Self>, registry: &mut Registry, outcome: Outcome) -> Result<Answer> {
        let Ok(outcome) = outcome.downcast::<Result<(P::Made, Charge)>>() else {
            return Err(lost());
        };
        let (made, memory) = (*outcome)?;
        registry.enter(*self, made, memory)
    }
}

impl Registry {
    /// The port that is found by `key`. Where a request holds that name, the one at hand fails, and
    /// is begun again when the name is free, or a port's.
    pub(crate) fn named(&mut self, key: &str) -> Result<Option<PortId>> {
        match self.ports.holder(key) {
            Some(subject) => Err(self.deferred.wait_for_others(subject.clone())),
            None => Ok(self.ports.named(key)),
        }
    }

    /// Holds what a plan needs, and has its step done: the request that is being answered fails until
    /// then, goes on with the commit, and is answered.
    ///
    /// What takes its time to close is the step's alone, which is dropped where it was done: a plan is
    /// dropped here.
    pub(crate) fn carry_out<P: Plan>(&mut self, plan: P, step: impl Makes<P::Made>) -> Error {
        let work = self.hold_for(plan, step, false);
        work.map_or_else(|error| error, |work| self.deferred.wait_for_work(work))
    }

    /// The same of a plan for a part of a request, which is begun again after the commit.
    pub(crate) fn carry_out_part<P: Plan>(&mut self, plan: P, step: impl Makes<P::Made>) -> Error {
        let work = self.hold_for(plan, step, true);
        work.map_or_else(|error| error, |work| self.deferred.wait_for_work(work))
    }

    fn hold_for<P: Plan>(
        &mut self,
        plan: P,
        step: impl Makes<P::Made>,
        is_part: bool,
    ) -> Result<Work> {
        let subject = plan.subject();
        self.deferred.await_turn(&subject)?;
        let held = plan.needs();
        for name in &held.names {
            self.named(name)?;
        }
        crate::fault::step();
        let memory = self.regions.charge(held.uid, held.memory)?;
        if let Some(places) = &held.places {
            self.bridges.hold(places)?;
        }
        if held.persistent {
            self.ports.hold_persistent(held.uid);
        }
        held.names.iter().for_each(|name| self.ports.hold(name, &subject));
        self.deferred.progress.acting = Some(Acting { plan: Box::new(plan), held, is_part });
        let run = move || -> Result<(P::Made, Charge)> { Ok((step()?, memory)) };
        Ok(Work::new(subject, run))
    }

    /// Commits a plan whose step is done, or takes no time. What is left if it fails is closed off the loop.
    pub(crate) fn enter<P: Plan>(
        &mut self,
        plan: P,
        made: P::Made,
        memory: Charge,
    ) -> Result<Answer> {
        let subject = plan.subject();
        plan.commit(self, made, memory).map_err(|Failed { error, left }| {
            if let Some(left) = left {
                let Left { what, rings } = *left;
                self.deferred.close_with_rings(subject.clone(), what, rings, &mut self.regions);
            }
            error.unwrap_or_else(|| self.deferred.wait_for_others(subject))
        })
    }

    /// The step of the request that is being answered is done. `None`: it was a part of it.
    pub(crate) fn commit(&mut self) -> Result<Option<Answer>> {
        self.regions.begin_request();
        self.handle_events();
        let Some(acting) = self.deferred.progress.acting.take() else { return Err(lost()) };
        // From here to the end of the commit nothing else is answered.
        self.let_go_of_held(&acting);
        let outcome = self.deferred.take_result();
        let Acting { plan, is_part, .. } = acting;
        plan.commit(self, outcome).map(|answer| (!is_part).then_some(answer))
    }

    /// What a request holds is anybody's.
    pub(crate) fn let_go_of_held(&mut self, Acting { held, .. }: &Acting) {
        held.names.iter().for_each(|name| self.ports.let_go(name));
        held.places.iter().for_each(|places| self.bridges.let_go(places));
        if held.persistent {
            self.ports.let_go_persistent(held.uid);
        }
    }
}

fn lost() -> Error {
    Error::new(Cause::System(libc::EIO), "what was set up is lost").remedy("try again")
}
