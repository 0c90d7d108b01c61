//! What users cost this process in descriptors: no user may take so many that none are left for the
//! others.
//!
//! Counted are what a user's ports, regions and connections hold. What a single call needs for a
//! moment, such as copies that go with a reply, is not: leave room for that beside what all users
//! together may have.
use ringway_proto::{Cause, Error, Request, Result};

use crate::{handles::Handle, port::Port, registry::Registry};

/// A bridge: what its worker sleeps on, and the doorbell that wakes it.
pub(crate) const BRIDGE: usize = 2;
/// An XDP program: its link, and the maps of sockets and of the mark.
pub(crate) const PROGRAM: usize = 3;
/// What redirects what the stack sends: a program, its link and its two maps.
pub(crate) const EGRESS_REDIRECT: usize = 4;

/// What an interface takes besides, where the kernel has no tcx: for what redirects, and for what keeps frames from the
/// stack in packet mode.
pub(crate) fn tc_filters() -> usize {
    2 * ringway_nic_setup::tc_filter_descriptors()
}
/// An interface that is watched: for the news of links, and for those of queues.
pub(crate) const WATCH: usize = 2;
/// An interface on a bridge, besides a socket for each queue: program, promiscuous mode, doorbell, timer.
pub(crate) const BRIDGED: usize = PROGRAM + 3;
/// A private pair: the namespace of its inner end.
pub(crate) const PAIR: usize = 1;
/// The end of a NIC's stack: the pair and the program there.
pub(crate) const HOST_END: usize = PAIR + PROGRAM;

/// A stack that a switch's program has, besides its end: two sockets, doorbell, the link and the program's map of places.
pub(crate) const SWITCHED_STACK: usize = 5;

/// An XDP program that is for one interface alone: the namespace of that.
pub(crate) const BOUND: usize = 1;
/// An interface with flows that are steered: its namespace, also for another janitor.
pub(crate) const STEERED: usize = 2;

/// Whether a request asks for something that takes up descriptors, however many.
pub(crate) fn takes_some(request: &Request) -> bool {
    matches!(
        request,
        Request::Register { .. }
            | Request::Stack
            | Request::SwitchAttach { .. }
            | Request::NewInterface { .. }
            | Request::SwitchNew { .. }
            | Request::SetFilter { .. }
            | Request::SetAction { .. }
            | Request::Steer { .. }
    )
}

impl Registry {
    /// Descriptors that user `uid` takes up, with those who share the user's account; a socket that a
    /// program of theirs keeps counts as one.
    pub fn descriptors(&self, uid: u32) -> usize {
        let of_port = |port: &Port| port.all_rings().count() + port.backend.descriptors(self, port);
        let accounts = &self.settings.accounts;
        let account = accounts.of(uid);
        let same = |uid| accounts.of(uid) == account;
        self.handles.connections(same)
            + self.regions.of(uid)
            + self.bridges.kept_by(same) * BRIDGE
            + self.steerings.of(same) * STEERED
            + self.kept_sockets.of(same)
            + self.ports.of(same).map(of_port).sum::<usize>()
    }

    /// As [`open`](Registry::open), for a connection of user `uid`, which costs a descriptor.
    ///
    /// EMFILE if the user has as many already as
    /// [`descriptors_per_user`](crate::Settings::descriptors_per_user).
    pub fn admit(&mut self, uid: u32) -> Result<Handle> {
        self.check_descriptors(uid, 1)?;
        Ok(self.handles.open(Some(uid)))
    }

    /// EMFILE if the user may not have `more` as well.
    pub(crate) fn check_descriptors(&self, uid: u32, more: usize) -> Result<()> {
        let (used, limit) = (self.descriptors(uid), self.settings.descriptors_per_user);
        if used.saturating_add(more) <= limit {
            return Ok(());
        }
        let whose = self.settings.accounts.name(uid);
        let problem = format!(
            "the programs of {whose} take up {used} of the {limit} descriptors that each user \
             may have of the daemon"
        );
        Err(Error::new(Cause::TooManyDescriptors, problem).remedy(
            "close ports, ask for fewer rings, or raise descriptors_per_user in the daemon's \
             configuration",
        ))
    }
}
