//! What users cost this process in descriptors: no user may take so many that none are left for the
//! others.
//!
//! Counted are what a user's ports, regions and connections hold. What a single call needs for a
//! moment, such as copies that go with a reply, is not: leave room for that beside what all users
//! together may have.

use ringway_abi::Dir;
use ringway_proto::{Error, Request, Result};

use crate::{
    persistent::{Device, Stack},
    port::{Kind, Port},
    registry::{Handle, Registry},
    shared_nic::SharedNic,
};

/// A bridge: what its worker sleeps on, and the doorbell that wakes it.
const BRIDGE: usize = 2;
/// An XDP program or one of tcx: its link and its map.
const PROGRAM: usize = 2;
/// What diverts what the stack sends: the program itself, too.
const DIVERSION: usize = PROGRAM + 1;
/// An interface that is watched.
const WATCH: usize = 1;
/// An interface on a bridge, besides a socket for each queue: program, promiscuous mode, doorbell, timer.
const BRIDGED: usize = PROGRAM + 3;
/// A private pair: the namespace of its inner end.
const PAIR: usize = 1;
/// The end of a NIC's stack: the pair and the program there.
const HOST_END: usize = PAIR + PROGRAM;

/// An XDP program that is for one interface alone: the namespace of that.
const BOUND: usize = 1;
/// An interface with flows that are steered: its namespace.
const STEERED: usize = 1;

impl Registry {
    /// Whether the port is an interface whose program is for that interface alone.
    fn has_own_program(&self, port: &Port) -> bool {
        let Kind::Nic(nic) = &port.kind else { return false };
        self.shared.get(&nic.key).is_some_and(SharedNic::is_bound)
    }

    /// Descriptors that user `uid` takes up.
    pub fn descriptors(&self, uid: u32) -> usize {
        let ports = self.ports.values().filter(|port| port.uid == uid).map(Port::descriptors);
        let bridges = self.bridges.kept_by(uid) * BRIDGE;
        let steered = self.steerings.of(uid) * STEERED;
        let bound =
            self.ports.values().filter(|port| port.uid == uid && self.has_own_program(port));
        self.connections(uid)
            + self.regions.of(uid)
            + bridges
            + steered
            + bound.count() * BOUND
            + ports.sum::<usize>()
    }

    /// As [`open`](Registry::open), for a connection of user `uid`, which costs a descriptor.
    ///
    /// EMFILE if the user has as many already as
    /// [`descriptors_per_user`](crate::Settings::descriptors_per_user).
    pub fn admit(&mut self, uid: u32) -> Result<Handle> {
        self.check_descriptors(uid, 1)?;
        Ok(self.open_for(uid))
    }

    /// EMFILE if the user may not make what the request asks for, whatever it costs. So nobody is
    /// above the limit by more than a single port.
    pub(crate) fn may_make(&self, uid: u32, request: &Request) -> Result<()> {
        match request {
            Request::Register { .. }
            | Request::Stack
            | Request::ValeAttach { .. }
            | Request::ValeNewif { .. }
            | Request::SwitchNew { .. }
            | Request::SetFilter { .. }
            | Request::Steer { .. } => self.check_descriptors(uid, 1),
            _ => Ok(()),
        }
    }

    /// EMFILE if the user may not have `more` as well.
    pub(crate) fn check_descriptors(&self, uid: u32, more: usize) -> Result<()> {
        let (used, limit) = (self.descriptors(uid), self.settings.descriptors_per_user);
        if used.saturating_add(more) <= limit {
            return Ok(());
        }
        Err(Error::new(
            libc::EMFILE,
            format!(
                "the programs of user {uid} take up {used} of the {limit} descriptors that each \
                 user may have of the daemon; close ports, ask for fewer rings, or raise \
                 descriptors_per_user in the daemon's configuration"
            ),
        ))
    }
}

impl Port {
    /// Descriptors that it holds, its region and the handles bound to it aside.
    fn descriptors(&self) -> usize {
        let doorbells = self.tx.len() + self.rx.len();
        doorbells
            + match &self.kind {
                Kind::Pipe { .. } | Kind::Parent | Kind::Null { .. } | Kind::Monitor { .. } => 0,
                Kind::Vale { device, .. } => {
                    1 + device.as_ref().map_or(0, |device| device.descriptors())
                }
                Kind::Nic(nic) => {
                    let queues = |sockets: usize| PROGRAM + sockets;
                    let host = self.host_rings(Dir::Tx).len().max(self.host_rings(Dir::Rx).len());
                    // And the namespace.
                    1 + WATCH
                        + nic.sockets.as_ref().map_or(0, |sockets| queues(sockets.descriptors()))
                        // What each counts in.
                        + nic.sockets.as_ref().map_or(0, |sockets| sockets.filters().len())
                        // What it shares with others counts as the user's own.
                        + DIVERSION
                        + nic.stack.as_ref().map_or(0, |stack| {
                            HOST_END + queues(host) + usize::from(stack.filter().is_some())
                        })
                }
                Kind::Attached { attachment, .. } => {
                    let stack = if attachment.has_stack() { HOST_END + BRIDGED + 1 } else { 0 };
                    WATCH + BRIDGED + attachment.descriptors() + DIVERSION + stack
                }
            }
    }
}

impl Device {
    fn descriptors(&self) -> usize {
        let stack = match self.stack {
            Stack::Nobody => 0,
            Stack::Bridge(_) => BRIDGED + 1,
            // And a doorbell.
            Stack::Rings(_) => BRIDGED + 1 + BRIDGE + 1,
        };
        // While it is on no bridge that a user knows of, it has one of its own.
        WATCH + PAIR + BRIDGE + stack
    }
}
