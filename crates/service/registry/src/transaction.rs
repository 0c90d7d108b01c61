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

use std::any::Any;

use ringway_proto::{Cause, Error, Reply, Result};
use rustix::fd::OwnedFd;

use crate::{
    bridges::{Bridges, HeldPlaces},
    charge::Charge,
    deferred::{Outcome, Work},
    port::PortId,
    registry::Registry,
    subject::Subject,
};

/// What a request is going to do.
pub(crate) trait Plan: Send + Sized + 'static {
    /// What the step makes.
    type Made: Send + 'static;

    /// What the step is about.
    fn subject(&self) -> Subject;

    fn needs(&self) -> Needs;

    /// What takes long.
    fn step(&self, bridges: &mut Bridges)
    -> impl FnOnce() -> Result<Self::Made> + Send + use<Self>;

    /// Enters what was made; `memory` is what was held for it. All or nothing.
    fn commit(
        self,
        registry: &mut Registry,
        made: Self::Made,
        memory: Charge,
    ) -> Result<Reply, Failed>;
}

/// What is held for a request until its step is done.
pub(crate) struct Needs {
    pub uid: u32,
    /// Of ports.
    pub names: Vec<String>,
    pub places: Option<HeldPlaces>,
    /// Bytes of the user.
    pub memory: u64,
}

impl Needs {
    /// The turn of its subject is enough.
    pub fn nothing(uid: u32) -> Needs {
        Needs { uid, names: Vec::new(), places: None, memory: 0 }
    }
}

/// Why a commit failed, and what is to be closed.
pub(crate) struct Failed {
    /// `None`: the books are not those of which the plan was made.
    error: Option<Error>,
    left: Box<dyn Any + Send>,
}

impl Failed {
    pub fn new(error: Error, left: impl Send + 'static) -> Failed {
        Failed { error: Some(error), left: Box::new(left) }
    }

    /// Another plan is to be made.
    pub fn again(left: impl Send + 'static) -> Failed {
        Failed { error: None, left: Box::new(left) }
    }

    /// This is to be closed after that.
    pub fn and(self, more: impl Send + 'static) -> Failed {
        Failed { left: Box::new((self.left, more)), ..self }
    }
}

/// A request whose step is being done.
pub(crate) struct Acting {
    plan: Box<dyn Commit>,
    names: Vec<String>,
    places: Option<HeldPlaces>,
}

/// A plan of some kind.
trait Commit: Send {
    fn commit(self: Box<Self>, registry: &mut Registry, outcome: Outcome) -> Result<Reply>;
}

impl<P: Plan> Commit for P {
    fn commit(self: Box<Self>, registry: &mut Registry, outcome: Outcome) -> Result<Reply> {
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
    /// then, and goes on with the commit.
    pub(crate) fn carry_out<P: Plan>(&mut self, plan: P) -> Result<Reply> {
        let subject = plan.subject();
        self.deferred.await_turn(&subject)?;
        let Needs { uid, names, places, memory } = plan.needs();
        for name in &names {
            self.named(name)?;
        }
        crate::fault::step();
        let step = plan.step(&mut self.bridges);
        let memory = self.regions.charge(uid, memory)?;
        if let Some(places) = &places {
            self.bridges.hold(places)?;
        }
        names.iter().for_each(|name| self.ports.hold(name, &subject));
        self.deferred.progress.acting = Some(Acting { plan: Box::new(plan), names, places });
        let run = move || -> Result<(P::Made, Charge)> { Ok((step()?, memory)) };
        Err(self.deferred.wait_for_work(Work::new(subject, run)))
    }

    /// Commits a plan whose step is done, or takes no time. What is left if it fails is closed off the loop.
    pub(crate) fn enter<P: Plan>(
        &mut self,
        plan: P,
        made: P::Made,
        memory: Charge,
    ) -> Result<Reply> {
        let subject = plan.subject();
        plan.commit(self, made, memory).map_err(|Failed { error, left }| {
            self.deferred.close_off_loop(subject.clone(), left);
            error.unwrap_or_else(|| self.deferred.wait_for_others(subject))
        })
    }

    /// The step of the request that is being answered is done.
    pub(crate) fn commit(&mut self) -> Result<(Reply, Vec<OwnedFd>)> {
        self.regions.begin_request();
        self.handle_events();
        let Some(acting) = self.deferred.progress.acting.take() else { return Err(lost()) };
        // From here to the end of the commit nothing else is answered.
        self.let_go_of_held(&acting);
        let outcome = self.deferred.take_result();
        acting.plan.commit(self, outcome).map(|reply| (reply, Vec::new()))
    }

    /// What a request holds is anybody's.
    pub(crate) fn let_go_of_held(&mut self, Acting { names, places, .. }: &Acting) {
        names.iter().for_each(|name| self.ports.let_go(name));
        places.iter().for_each(|places| self.bridges.let_go(places));
    }
}

fn lost() -> Error {
    Error::new(Cause::System(libc::EIO), "what was set up is lost").remedy("try again")
}
