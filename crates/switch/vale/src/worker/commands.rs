//! What the worker does when the registry asks.
#![expect(
    clippy::indexing_slicing,
    reason = "`members` and `counters` have as many entries, never shrink, and the index is that of an entry; of VLANs, a remainder"
)]

use std::sync::Arc;

use ringway_abi::Dir;
use ringway_fastpath::{FastPath, FastPort, VLAN_WORDS};
use rustix::{event::epoll, thread::sched_setaffinity};

use super::{MAX_PORTS, Worker, turn::note_moved};
use crate::{
    bridge_port::BridgePort,
    budget::Turn,
    config::PortConfig,
    counters::{ByWorker, PortCounters},
    forwarding::Function,
    in_order::InOrder,
    lossless_queue::PortSet,
    mailbox::Command,
    multicast::{Multicast, Snooping},
    switch_mirror::{Mirroring, SwitchMirror},
    table::{AddressFilter, StaticAddress},
    vlan::Vlan,
};
use ringway_kring::Offsets;
use ringway_switch_port::{Port, PortIndex, PortMirrors};

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
                Command::ConfigureAll(changes, answer) => {
                    self.configure_all(changes);
                    let _ = answer.send(());
                }
                Command::Leave { index, successor, remainder, left, answer } => {
                    let _ = answer.send(self.leave(index, successor, remainder, left));
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
                Command::Share(fast, answer) => {
                    self.share(fast);
                    let _ = answer.send(());
                }
                Command::Count(answer) => {
                    self.look_at_clock();
                    self.members.iter_mut().flatten().for_each(|member| member.count_lost());
                    self.publish_counters();
                    let _ = answer.send(());
                }
                Command::Learned { from, most, answer } => {
                    // What has aged meanwhile is not known any more.
                    self.look_at_clock();
                    let page = match &self.function {
                        Function::Learning(function) => function.list(from, most),
                        _ => Default::default(),
                    };
                    let _ = answer.send(page);
                }
                Command::SetStatics(all, answer) => {
                    self.set_static_addresses(all);
                    let _ = answer.send(());
                }
                Command::Statics(answer) => {
                    let all = match &self.function {
                        Function::Learning(function) => function.statics().to_vec(),
                        _ => Vec::new(),
                    };
                    let _ = answer.send(all);
                }
                Command::Flush(which, answer) => {
                    let _ = answer.send(self.flush_learned(&which));
                }
                Command::SetMulticast(multicast, answer) => {
                    self.set_multicast(multicast);
                    let _ = answer.send(());
                }
                Command::Groups { from, most, answer } => {
                    // What has aged meanwhile is not known any more.
                    self.look_at_clock();
                    let snooping = self.snooping.as_ref();
                    let page = snooping.map(|it| it.list(from, most, self.now));
                    let _ = answer.send(page.unwrap_or_default());
                }
                Command::SetSwitchMirrors(mirrors, answer) => {
                    self.set_switch_mirrors(mirrors);
                    let _ = answer.send(());
                }
                Command::SwitchMirrors(answer) => {
                    let mirrors = self.mirroring.as_ref();
                    let _ = answer.send(mirrors.map(|it| it.all().collect()).unwrap_or_default());
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

    /// Only a bridge that learns has them.
    pub(super) fn set_static_addresses(&mut self, all: Vec<StaticAddress>) {
        if let Function::Learning(function) = &mut self.function {
            function.set_statics(all);
            note_moved(&mut self.members, self.fast.as_deref(), None);
        }
    }

    pub(super) fn flush_learned(&mut self, which: &AddressFilter) -> usize {
        match &mut self.function {
            Function::Learning(function) => function.flush(which),
            _ => 0,
        }
    }

    pub(super) fn set_multicast(&mut self, multicast: Multicast) {
        self.multicast = multicast;
        self.snooping = None;
        self.refresh_snooping();
    }

    /// Has frames for groups go to members, or not, as the bridge is to.
    fn refresh_snooping(&mut self) {
        let learns = matches!(self.function, Function::Learning(_));
        if self.multicast == Multicast::Flood || !learns {
            self.snooping = None;
            return;
        }
        let snooping = self.snooping.get_or_insert_with(|| Box::new(Snooping::new()));
        let is_router = |member: &BridgePort| member.config.multicast_router;
        let mut routers = PortSet::default();
        for (index, member) in (0..).zip(&self.members) {
            if member.as_deref().is_some_and(is_router) {
                routers.insert(index);
            }
        }
        snooping.set_routers(routers);
        // Those that an operator has chosen: what is not told about VLANs is in all with a tag.
        let asks = self.multicast == Multicast::Querier;
        let mut vlans = [0; VLAN_WORDS];
        for member in self.members.iter().flatten().filter(|_| asks) {
            if let Some(vlan) = member.vlans.untagged() {
                vlans[usize::from(vlan >> 6) % VLAN_WORDS] |= 1 << (vlan & 63);
            }
            if member.config.vlan != Vlan::Unaware {
                vlans.iter_mut().zip(member.vlans.tagged()).for_each(|(all, its)| *all |= its);
            }
        }
        snooping.ask_in(&vlans, self.now);
    }

    /// Other machines are behind a port than before, or none.
    pub(super) fn forget(&mut self, port: PortIndex) {
        self.function.as_dyn().forget(port);
        if let Some(snooping) = &mut self.snooping {
            snooping.forget(port);
        }
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
        // A port that was given up has its place until it is detached.
        let free = self.counters.iter().position(Option::is_none).unwrap_or(self.counters.len());
        if free >= MAX_PORTS {
            return None;
        }
        let data = epoll::EventData::new_u64(free as u64);
        let mut events = epoll::EventFlags::IN;
        events.set(epoll::EventFlags::ET, port.is_edge_triggered());
        epoll::add(&self.epoll, port.doorbell(), data, events).ok()?;
        if free == self.members.len() {
            self.members.push(None);
            self.counters.push(None);
        }
        let mut member = BridgePort::new(port, config, self.clock.fine());
        if let Some(fast) = &self.fast {
            member.counted_before = fast.counts(free as PortIndex);
            member.in_order = InOrder::new(fast.begun(free as PortIndex));
        }
        self.members[free] = Some(Box::new(member));
        self.counters[free] = Some(counters);
        if let Some(snooping) = &mut self.snooping {
            snooping.forget(free as PortIndex);
        }
        self.refresh_flags();
        Some(free as PortIndex)
    }

    pub(super) fn configure(&mut self, index: PortIndex, config: PortConfig) -> bool {
        let is_there = self.configure_member(index, config);
        if is_there {
            self.refresh_flags();
        }
        is_there
    }

    pub(super) fn configure_all(&mut self, changes: Vec<(PortIndex, PortConfig)>) {
        // The program in the kernel goes on meanwhile: what it would forward for these comes here.
        for (index, _) in &changes {
            let Some(Some(member)) = self.members.get_mut(usize::from(*index)) else { continue };
            if let Some(fast) = &self.fast {
                let begun = fast.set_port(*index, None, member.fast_limit(), member.filters());
                member.beside.set(None, begun);
            }
        }
        for (index, config) in changes {
            self.configure_member(index, config);
        }
        self.refresh_flags();
    }

    /// All but what the bridge notes of its ports together. False: there is none.
    fn configure_member(&mut self, index: PortIndex, config: PortConfig) -> bool {
        let Some(Some(member)) = self.members.get_mut(usize::from(index)) else { return false };
        if config.max_frame != member.config.max_frame {
            member.newest().set_max_frame(config.max_frame);
        }
        // Nobody is behind it any more, or not in that VLAN, or not with that address.
        let before = &member.config;
        let goes_down = config.is_down && !before.is_down;
        let is_another = before.vlan != config.vlan
            || before.sources != config.sources
            || config.is_down != before.is_down;
        member.configure(config, self.clock.fine());
        if goes_down {
            member.discard();
        }
        if is_another {
            self.forget(index);
        }
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
            member.newest().set_offsets(dir, ring, offsets);
        }
    }

    pub(super) fn set_mirrors(&mut self, index: PortIndex, mirrors: PortMirrors) {
        if let Some(Some(member)) = self.members.get_mut(usize::from(index)) {
            // What the old ones were given is announced first.
            member.flush(true);
            member.complete(true);
            member.set_mirrors(mirrors);
            self.refresh_flags();
        }
    }

    pub(super) fn set_switch_mirrors(&mut self, mirrors: Vec<SwitchMirror>) {
        // What the old ones have copied is announced first.
        self.members.iter_mut().flatten().for_each(|member| member.flush(true));
        let before = std::mem::replace(&mut self.mirroring, Mirroring::new(mirrors));
        for held in self.members.iter_mut().flatten().flat_map(|member| &mut member.held).flatten()
        {
            held.copied = match (&before, &self.mirroring) {
                (Some(before), Some(now)) => before.among(now, held.copied),
                _ => 0,
            };
        }
        self.refresh_flags();
    }

    pub(super) fn use_function(&mut self, function: Function) {
        self.publish_counters();
        (self.function, self.snooping) = (function, None);
        self.refresh_snooping();
        self.function.as_dyn().tick((self.now / 1000) as u32);
        if let Some(fast) = self.fast.clone() {
            self.share(fast);
        }
    }

    /// Notes what no port needs, so that no packet pays for it.
    pub(super) fn refresh_flags(&mut self) {
        let mut members = self.members.iter().flatten();
        self.any_vlan = members.clone().any(|m| m.config.vlan != Vlan::Unaware);
        self.any_filter = members.clone().any(|m| m.filter_in.is_some() || m.filter_out.is_some());
        self.attached = members.clone().count() as u64;
        self.turn_of_one = Turn::of_one(self.attached);
        self.flood_copies = members.clone().map(|m| m.copies).sum();
        self.flood_calls = members.clone().map(|m| m.calls).sum();
        self.any_lossless = members.any(|m| !m.lossless_queues.is_empty());
        for (index, member) in (0..).zip(&mut self.members) {
            if let Some(member) = member {
                let mirroring = self.mirroring.as_mut();
                member.mirrors = mirroring.map(|it| it.marks(index)).unwrap_or_default();
            }
        }
        self.refresh_snooping();
        self.refresh_fast_path();
    }

    pub(super) fn share(&mut self, fast: Arc<FastPath>) {
        fast.clear();
        if let Function::Learning(function) = &mut self.function {
            function.share(fast.clone());
        }
        self.fast = Some(fast);
        self.refresh_fast_path();
    }

    /// Tells the program in the kernel which ports it may forward between.
    pub(super) fn refresh_fast_path(&mut self) {
        let Some(fast) = &self.fast else { return };
        let ageing = match &self.function {
            Function::Learning(function) => Some(function.ageing()),
            _ => None,
        };
        fast.set_rules(ageing.unwrap_or(0), self.any_vlan);
        let ports = self.fast_ports(fast, ageing.is_some());
        for (index, how) in ports.into_iter().enumerate() {
            let port = how.and_then(Result::ok);
            let limit = self.members[index].as_deref().and_then(BridgePort::fast_limit);
            if let Some(member) = &self.members[index] {
                fast.set_tagged(index as PortIndex, member.vlans.tagged());
            }
            let filters = self.members[index].as_deref().map_or([None; 2], BridgePort::filters);
            let begun = fast.set_port(index as PortIndex, port, limit, filters);
            if let (Some(member), Some(counters)) =
                (&mut self.members[index], &self.counters[index])
            {
                member.beside.set(port.and_then(|port| port.beside), begun);
                member.by_worker = how.and_then(Result::err);
                counters.store_state(member.state());
            }
        }
    }

    /// How the program may forward for each port, on a bridge that `learns` or not.
    fn fast_ports(&self, fast: &FastPath, learns: bool) -> Vec<Option<Result<FastPort, ByWorker>>> {
        let forwarding = if learns { Ok(()) } else { Err(ByWorker::Forwarding) };
        let of = |member: &BridgePort| {
            Some(member.fast_port(fast)?.and_then(|p| forwarding.map(|()| p)))
        };
        let mut ports: Vec<_> =
            self.members.iter().map(|place| place.as_deref().and_then(of)).collect();
        // Between an interface and its stack all passes, where the worker would let all pass.
        let passes = |index: usize| {
            let member = self.members[index].as_ref();
            let is_watched = member.is_some_and(|m| {
                let is_limited = m.storm.is_some() || m.config.max_addresses.is_some();
                m.is_guarded || m.filter_out.is_some() || is_limited
            });
            !self.any_vlan && !is_watched
        };
        for index in 0..ports.len() {
            let Some(Ok(port)) = ports[index] else { continue };
            let is_other = |how: &Option<Result<FastPort, ByWorker>>| {
                matches!(how, Some(Ok(other))
                    if (other.ifindex, other.is_stack) == (port.ifindex, !port.is_stack))
            };
            let other = ports.iter().position(is_other);
            let may_meet = |other: &Option<Result<FastPort, ByWorker>>| {
                !port.is_isolated || !matches!(other, Some(Ok(other)) if other.is_isolated)
            };
            let beside =
                other.filter(|other| passes(index) && passes(*other) && may_meet(&ports[*other]));
            let beside = beside.map(|other| other as PortIndex);
            ports[index] = Some(Ok(FastPort { beside, ..port }));
        }
        ports
    }
}
