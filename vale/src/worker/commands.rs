//! What the worker does when the registry asks.
#![expect(
    clippy::indexing_slicing,
    reason = "`members` and `counters` have as many entries, never shrink, and the index is that of an entry"
)]

use std::sync::Arc;

use ringway_abi::Dir;
use rustix::{event::epoll, fd::AsFd, thread::sched_setaffinity};

use super::{MAX_PORTS, Worker};
use crate::{
    config::PortConfig, counters::PortCounters, forward::BridgePort, function::Function,
    mailbox::Command, vlan::Vlan,
};
use ringway_bridge_port::{Port, PortIndex, PortMirrors};
use ringway_kring::Offsets;

/// Turns that a port's tx ring has before the port goes: the longest of rings is empty then.
const LAST_BURSTS: usize = 128;

impl Worker {
    /// Carries out what the registry asked for. False: stop.
    pub(super) fn run_commands(&mut self) -> bool {
        for command in self.mailbox.take() {
            match command {
                Command::Attach(port, config, counters, answer) => {
                    let _ = answer.send(self.attach(port, config, counters));
                }
                Command::Configure(index, config, answer) => {
                    let _ = answer.send(self.configure(index, config));
                }
                Command::Replace(index, port, answer) => {
                    let _ = answer.send(self.replace(index, port));
                }
                Command::Detach(index, answer) => {
                    self.detach(index);
                    let _ = answer.send(());
                }
                Command::SetOffsets(index, dir, ring, offsets, answer) => {
                    self.set_offsets(index, dir, ring, offsets);
                    let _ = answer.send(());
                }
                Command::Use(function, answer) => {
                    self.use_function(*function);
                    let _ = answer.send(());
                }
                Command::SetMirrors(index, mirrors, answer) => {
                    self.set_mirrors(index, mirrors);
                    let _ = answer.send(());
                }
                Command::Count(answer) => {
                    self.members.iter_mut().flatten().for_each(|member| member.count_lost());
                    self.tell_counters();
                    let _ = answer.send(());
                }
                Command::Poll(cpus, answer) => {
                    self.poll(&cpus);
                    let _ = answer.send(());
                }
                Command::Stop => return false,
            }
        }
        true
    }

    fn poll(&mut self, cpus: &[usize]) {
        self.polling = !cpus.is_empty();
        let mut set = self.everywhere;
        if self.polling {
            set.clear();
            cpus.iter().for_each(|cpu| set.set(*cpu));
        }
        // It fails where these processors are not ours to use: then the worker polls elsewhere.
        let _ = sched_setaffinity(None, &set);
    }

    pub(super) fn attach(
        &mut self,
        port: Box<dyn Port>,
        config: PortConfig,
        counters: Arc<PortCounters>,
    ) -> Option<PortIndex> {
        let free = self.members.iter().position(Option::is_none).unwrap_or(self.members.len());
        if free >= MAX_PORTS {
            return None;
        }
        let data = epoll::EventData::new_u64(free as u64);
        epoll::add(&self.epoll, port.doorbell(), data, epoll::EventFlags::IN).ok()?;
        if free == self.members.len() {
            self.members.push(None);
            self.counters.push(None);
        }
        self.members[free] = Some(Box::new(BridgePort::new(port, config)));
        self.counters[free] = Some(counters);
        self.refresh_flags();
        Some(free as PortIndex)
    }

    pub(super) fn configure(&mut self, index: PortIndex, config: PortConfig) -> bool {
        let Some(Some(member)) = self.members.get_mut(usize::from(index)) else { return false };
        if config.max_frame != member.config.max_frame {
            member.port.set_max_frame(config.max_frame);
        }
        member.configure(config);
        self.function.as_dyn().forget(index);
        self.refresh_flags();
        true
    }

    pub(super) fn set_offsets(
        &mut self,
        index: PortIndex,
        dir: Dir,
        ring: usize,
        offsets: Option<Offsets>,
    ) {
        if let Some(Some(member)) = self.members.get_mut(usize::from(index)) {
            member.port.set_offsets(dir, ring, offsets);
        }
    }

    pub(super) fn set_mirrors(&mut self, index: PortIndex, mirrors: PortMirrors) {
        if let Some(Some(member)) = self.members.get_mut(usize::from(index)) {
            // What the old ones were given is announced first.
            member.port.flush(true);
            member.port.complete(true);
            member.port.set_mirrors(mirrors);
        }
    }

    pub(super) fn use_function(&mut self, function: Function) {
        self.function = function;
        self.function.as_dyn().tick((self.now / 1000) as u32);
    }

    fn replace(&mut self, index: PortIndex, port: Box<dyn Port>) -> bool {
        let Some(old) = self.take_out(index) else { return false };
        let mut new = BridgePort::new(port, old.config);
        new.totals = old.totals;
        self.members[usize::from(index)] = Some(Box::new(new));
        self.refresh_flags();
        true
    }

    pub(super) fn detach(&mut self, index: PortIndex) {
        if let Some(member) = self.take_out(index) {
            self.function.as_dyn().forget(index);
            let _ = epoll::delete(&self.epoll, member.port.doorbell().as_fd());
            if let Some(counters) = self.counters[usize::from(index)].take() {
                counters.store(&member.totals);
            }
            self.refresh_flags();
        }
    }

    /// Finishes with a port: no sender waits for it any more, and it waits for no receiver.
    fn take_out(&mut self, index: PortIndex) -> Option<Box<BridgePort>> {
        self.tell_counters();
        let mut member = self.members.get_mut(usize::from(index)).and_then(Option::take)?;
        self.drain(index, &mut member);
        // A program that waits for what the port was given does not wait for us any more.
        member.port.flush(true);
        member.port.complete(true);
        member.count_lost();
        let lossless_queues =
            self.members.iter_mut().flatten().flat_map(|member| &mut member.lossless_queues);
        lossless_queues.for_each(|lossless| lossless.forget(index));
        Some(member)
    }

    /// Forwards what a port that goes has sent: its program may have ended right after it
    /// (S-VALE-5, S-LIFE-6). No more than a ring holds: another holder of its memory may go on.
    fn drain(&mut self, index: PortIndex, member: &mut BridgePort) {
        for ring in 0..member.port.tx_rings() {
            (0..LAST_BURSTS).take_while(|_| self.serve(index, member, ring)).count();
        }
        for other in self.members.iter_mut().flatten() {
            other.port.flush(true);
            other.port.complete(true);
        }
    }

    /// Notes what no port needs, so that no packet pays for it.
    fn refresh_flags(&mut self) {
        let mut members = self.members.iter().flatten();
        self.any_vlan = members.clone().any(|m| m.config.vlan != Vlan::Unaware);
        self.any_lossless = members.any(|m| !m.lossless_queues.is_empty());
    }
}
