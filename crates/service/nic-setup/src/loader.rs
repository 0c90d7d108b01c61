//! Programs with rules for queues: loaded, and put in the place of others.
//!
//! An interface has an XDP program, or one beside its traffic control ([`IngressRedirect`](crate::IngressRedirect)).
//! With each change of a rule it is made anew.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::generate::Place;
use crate::ingress_redirect::RedirectLoader;
use crate::operation::LoadRules;
use crate::parcel::Fd;
use crate::program::{QUEUES, XdpLoader};
use crate::rule::{PackedRules, QueueRules};
use crate::tc::Attachment;
use crate::{Error, QueueRule, helper, sys};

/// Makes programs with filters and action programs for an interface, without touching what is attached there: to load one
/// takes as long as the verifier does, so another thread may do it.
#[derive(Clone, Serialize, Deserialize)]
pub struct Loader(Maker);

#[derive(Clone, Serialize, Deserialize)]
enum Maker {
    Xdp(Arc<XdpLoader>),
    Redirect(Arc<RedirectLoader>),
}

impl From<&Arc<XdpLoader>> for Loader {
    fn from(loader: &Arc<XdpLoader>) -> Loader {
        Loader(Maker::Xdp(loader.clone()))
    }
}

impl From<&Arc<RedirectLoader>> for Loader {
    fn from(loader: &Arc<RedirectLoader>) -> Loader {
        Loader(Maker::Redirect(loader.clone()))
    }
}

/// A program with rules for queues that is loaded, and not attached.
pub struct LoadedRules {
    program: Fd,
    verified: u32,
    rules: QueueRules,
}

/// By which the program of an interface is attached.
#[derive(Clone)]
pub(crate) enum Entry {
    Xdp(Arc<Fd>),
    Tc(Arc<Attachment>),
}

/// See [`XdpProgram::installer`](crate::XdpProgram::installer).
#[derive(Clone)]
pub struct Installer {
    entry: Entry,
    loader: Loader,
    before: QueueRules,
}

/// Rules that an [`Installer`] has put in the place of others. Those are put back when it is dropped, which
/// takes as long, unless it has been adopted ([`XdpProgram::adopt`](crate::XdpProgram::adopt)).
pub struct InstalledRules {
    rules: QueueRules,
    by: Option<Installer>,
}

impl Installer {
    pub(crate) fn new(entry: Entry, loader: Loader, before: QueueRules) -> Installer {
        Installer { entry, loader, before }
    }

    /// Loads rules and puts them in the place of those that are there.
    pub fn install(self, rules: QueueRules) -> Result<InstalledRules, Error> {
        let loaded = self.loader.load(rules)?;
        self.put(&loaded)?;
        Ok(InstalledRules { rules: loaded.rules, by: Some(self) })
    }

    fn put(&self, loaded: &LoadedRules) -> Result<(), Error> {
        let program = loaded.program.as_fd();
        let put = match &self.entry {
            Entry::Xdp(link) => sys::link_update(link.as_fd(), program),
            Entry::Tc(attachment) => attachment.update(program),
        };
        put.map_err(Error::refused(
            self.loader.interface(),
            "the program of its received frames cannot be replaced",
            "open the port again",
        ))
    }
}

impl InstalledRules {
    /// They stay.
    pub(crate) fn adopted(mut self) -> QueueRules {
        self.by = None;
        std::mem::take(&mut self.rules)
    }

    /// Whether they were made by this loader.
    pub(crate) fn are_by(&self, loader: &Loader) -> bool {
        self.by.as_ref().is_some_and(|by| by.loader.is(loader))
    }
}

impl Drop for InstalledRules {
    fn drop(&mut self) {
        let Some(by) = self.by.take() else { return };
        // They were verified when they were installed. Where the interface was let go of, none matter.
        if let Ok(before) = by.loader.load(by.before.clone()) {
            let _ = by.put(&before);
        }
    }
}

impl LoadedRules {
    /// Instructions that the verifier looked at, each way through the program counted; kernels older than
    /// 5.16 do not tell, then it is the instructions that the program has.
    pub fn verified(&self) -> u32 {
        self.verified
    }
}

impl Loader {
    /// Loads a program with these rules, which takes as long as the verifier does. The caller may be
    /// in any network namespace.
    pub fn load(&self, rules: QueueRules) -> Result<LoadedRules, Error> {
        let packed = PackedRules::of(&rules);
        let (program, verified) = helper::run(LoadRules { loader: self.clone(), rules: packed })?;
        Ok(LoadedRules { program, verified, rules })
    }

    /// Whether its programs have action programs: those look at XDP's frames.
    pub fn takes_actions(&self) -> bool {
        matches!(self.0, Maker::Xdp(_))
    }

    pub(crate) fn interface(&self) -> &str {
        match &self.0 {
            Maker::Xdp(loader) => loader.interface(),
            Maker::Redirect(loader) => loader.interface(),
        }
    }

    pub(crate) fn too_many_queues(&self) -> Error {
        match &self.0 {
            Maker::Xdp(loader) => loader.too_many_queues(),
            Maker::Redirect(loader) => loader.too_many_queues(),
        }
    }

    fn is(&self, other: &Loader) -> bool {
        match (&self.0, &other.0) {
            (Maker::Xdp(one), Maker::Xdp(other)) => Arc::ptr_eq(one, other),
            (Maker::Redirect(one), Maker::Redirect(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }

    /// The program with these rules, and the instructions that the verifier looked at.
    pub(crate) fn load_here(&self, rules: &[QueueRule]) -> Result<(Fd, u32), Error> {
        let what = match (&self.0, rules.iter().any(|rule| rule.action.is_some())) {
            (Maker::Xdp(_), true) => "the action program cannot be put into the XDP program",
            (Maker::Xdp(_), false) => "the filter cannot be put into the XDP program",
            (Maker::Redirect(_), true) => "packet mode has no action programs",
            (Maker::Redirect(_), false) => "the filter cannot be put beside the traffic control",
        };
        let places = places(rules);
        let program = match &self.0 {
            Maker::Xdp(loader) => loader.program(&places),
            Maker::Redirect(loader) => loader.program(&places),
        };
        let program = program.map_err(Error::refused(
            self.interface(),
            what,
            "ask for less at once; `ringway doctor` tells what the kernel lacks",
        ))?;
        let verified = sys::verified_insns(program.as_fd()).unwrap_or(u32::MAX);
        Ok((Fd(program), verified))
    }
}

/// What frames go through, each rule once, with the queues that have it.
fn places(rules: &[QueueRule]) -> Vec<Place<'_>> {
    let mut places: Vec<(&QueueRule, Place<'_>)> = Vec::new();
    for (queue, rule) in (0..).zip(rules).filter(|(_, rule)| !rule.is_empty()) {
        match places.iter_mut().find(|(other, _)| other.is(rule)) {
            Some((_, place)) => place.queues.push(queue),
            None => {
                let (action, filter) = (rule.action.as_deref(), rule.filter.as_deref());
                places.push((rule, Place { action, filter, queues: vec![queue] }));
            }
        }
    }
    places.into_iter().map(|(_, place)| place).collect()
}

/// That a queue is beyond those that a program knows.
pub(crate) fn beyond(interface: &str, what: &'static str) -> impl FnOnce(io::Error) -> Error {
    let remedy = format!(
        "use one of its first {QUEUES} queues, as netmap:{interface}~0, or have it use no more: \
         `ethtool -L {interface} combined {QUEUES}`, or `rx {QUEUES} tx {QUEUES}` for drivers that count these apart"
    );
    let interface = interface.to_owned();
    move |cause| Error::Refused { interface, what: what.into(), cause, remedy: remedy.into() }
}
