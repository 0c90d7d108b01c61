//! A bridge without a thread: a fuzzer says what happens when, and finds it repeatable.

use std::{io, sync::Arc};

use ringway_abi::Dir;

use super::Worker;
use ringway_fastpath::FastPath;
use ringway_kring::{Doorbell, Offsets};
use ringway_switch_port::{Port, PortIndex, PortMirrors};

use crate::{
    AddressFilter, Clock, Draining, Forwarding, GroupEntry, Multicast, PortConfig, PortCounters,
    PortState, StaticAddress, SwitchMirror, Totals,
    draining::{Left, Remainder},
    forwarding::Function,
    mailbox::Mailbox,
};

/// A bridge that does nothing by itself.
pub struct SteppedBridge(Worker);

impl SteppedBridge {
    pub fn new(forwarding: &Forwarding, clock: Clock) -> io::Result<SteppedBridge> {
        Worker::new(Arc::new(Mailbox::new(Doorbell::new()?)), forwarding, clock).map(SteppedBridge)
    }

    /// As [`Bridge::attach`](crate::Bridge::attach).
    pub fn attach(&mut self, port: Box<dyn Port>, config: PortConfig) -> Option<PortIndex> {
        self.0.attach(port, config, Arc::new(PortCounters::default()))
    }

    /// As [`Bridge::configure`](crate::Bridge::configure).
    pub fn configure(&mut self, index: PortIndex, config: PortConfig) -> bool {
        self.0.configure(index, config)
    }

    /// As [`Bridge::share_table`](crate::Bridge::share_table).
    pub fn share_table(&mut self, fast: Arc<FastPath>) {
        self.0.share(fast);
    }

    /// As [`Bridge::set_offsets`](crate::Bridge::set_offsets).
    pub fn set_offsets(
        &mut self,
        index: PortIndex,
        dir: Dir,
        ring: usize,
        offsets: Option<Offsets>,
    ) {
        self.0.set_offsets(index, dir, ring, offsets);
    }

    /// As [`Bridge::set_mirrors`](crate::Bridge::set_mirrors).
    pub fn set_mirrors(&mut self, index: PortIndex, mirrors: PortMirrors) {
        self.0.set_mirrors(index, mirrors);
    }

    /// As [`Bridge::set_forwarding`](crate::Bridge::set_forwarding).
    pub fn set_forwarding(&mut self, forwarding: &Forwarding) {
        self.0.use_function(Function::new(forwarding));
    }

    /// As [`Bridge::set_static_addresses`](crate::Bridge::set_static_addresses).
    pub fn set_static_addresses(&mut self, all: Vec<StaticAddress>) {
        self.0.set_static_addresses(all);
    }

    /// As [`Bridge::flush_learned`](crate::Bridge::flush_learned).
    pub fn flush_learned(&mut self, which: &AddressFilter) -> usize {
        self.0.flush_learned(which)
    }

    /// As [`Bridge::set_multicast`](crate::Bridge::set_multicast).
    pub fn set_multicast(&mut self, multicast: Multicast) {
        self.0.set_multicast(multicast);
    }

    /// As [`Bridge::set_switch_mirrors`](crate::Bridge::set_switch_mirrors).
    pub fn set_switch_mirrors(&mut self, mirrors: Vec<SwitchMirror>) {
        self.0.set_switch_mirrors(mirrors);
    }

    /// All that is known of groups.
    pub fn groups(&self) -> Vec<GroupEntry> {
        let snooping = self.0.snooping.as_ref();
        snooping.map(|it| it.list(0, usize::MAX, self.0.now).0).unwrap_or_default()
    }

    /// As [`Bridge::leave`](crate::Bridge::leave), for a port that has no successor.
    pub fn detach(&mut self, index: PortIndex) -> Option<Draining> {
        let (left, draining) = Left::new(None);
        self.0.leave(index, None, Remainder::Forward, left).then_some(draining)
    }

    /// What a port has counted.
    pub fn totals(&self, index: PortIndex) -> Option<Totals> {
        self.0.members.get(usize::from(index))?.as_ref().map(|member| member.worker_totals())
    }

    /// What others see of a port's counters, also when it has gone.
    pub fn counters(&self, index: PortIndex) -> Option<Arc<PortCounters>> {
        self.0.counters.get(usize::from(index))?.clone()
    }

    /// How a port stands.
    pub fn state(&self, index: PortIndex) -> Option<PortState> {
        self.0.members.get(usize::from(index))?.as_ref().map(|member| member.state())
    }

    /// Serves every port once. Returns whether any had sent something.
    pub fn round(&mut self) -> bool {
        self.0.round()
    }

    /// What the worker does before it sleeps, and when it wakes up.
    pub fn flush_idle(&mut self) {
        self.0.flush_idle();
        self.0.members.iter_mut().flatten().for_each(|member| member.arm());
        self.0.look_at_clock();
    }
}
