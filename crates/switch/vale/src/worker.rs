//! The bridge's thread: rounds over the ports, and sleep when there is nothing to do.
#![expect(
    clippy::indexing_slicing,
    reason = "`members` never shrinks, a port has a stall for each of its tx rings, and `forward` has sent no more frames than there are"
)]

mod commands;
pub(crate) mod leaving;
mod panics;
#[cfg(feature = "stepped")]
pub mod stepped;

use std::{io, sync::Arc};

use rustix::{
    event::{Timespec, epoll},
    fd::OwnedFd,
    thread::{CpuSet, sched_getaffinity},
};

use crate::{
    beside::Passed,
    bridge_port::{BridgePort, Members, count_lost},
    budget::{Budget, Turn},
    casualties::Casualties,
    clock::{Clock, Millis},
    copies::hand_over_copies,
    counters::PortCounters,
    forward::{ForwardCtx, FromInterface, TxRewrite, account, deliver, forward},
    forwarding::{Forwarding, Function},
    loop_probe::LoopProbe,
    lossless_queue::{Held, LosslessQueue, Sender, Stall},
    mailbox::Mailbox,
    multicast::{Multicast, Outgoing, Snooping},
    rounds::SharedRounds,
    sources::check_interface,
    switch_mirror::Mirroring,
    vnet::Converter,
};
use ringway_fastpath::FastPath;
use ringway_kring::{BusyPoll, Waiter, Yielding, prepare};
use ringway_switch_port::{Burst, Delivered, Drops, Frame, FrameStatus, PortIndex, Source};

/// Ports of one bridge at most (S-VALE-2).
pub const MAX_PORTS: usize = 254;

/// Rounds without work before the worker sleeps: about as long as a wake-up takes, so that
/// a steady stream never pays for one.
const IDLE_ROUNDS: u32 = 64;

/// Busy rounds between two updates of the counters that others see.
const COUNTER_ROUNDS: u32 = 1024;

/// Busy rounds between two looks at the clock, and two rounds that are measured: some milliseconds at most.
const CLOCK_ROUNDS: u32 = 64;

/// In epoll, the worker's own doorbell; ports are known by their index.
const OWN_DOORBELL: u64 = u64::MAX;

/// The thread's state; its methods are called by that thread alone.
pub struct Worker {
    mailbox: Arc<Mailbox>,
    casualties: Arc<Casualties>,
    rounds: Arc<SharedRounds>,
    epoll: OwnedFd,
    members: Vec<Option<Box<BridgePort>>>,
    /// Of those that have places.
    counters: Vec<Option<Arc<PortCounters>>>,
    /// Ports that were given up, and keep their places.
    lost: Vec<PortIndex>,
    /// A port's turn has ended in a panic.
    panicked: bool,
    function: Function,
    converter: Converter,
    clock: Clock,
    /// As of the last look at the clock.
    now: Millis,
    any_lossless: bool,
    any_vlan: bool,
    /// Some port has a filter.
    any_filter: bool,
    /// How many ports there are, and what each may cost in a round.
    attached: u64,
    turn_of_one: Turn,
    /// How often a packet is copied that goes to all of them and to their monitors.
    flood_copies: u64,
    /// Frames as a receiver is to have them, kept for the allocation.
    retagged: Vec<Frame>,
    /// An empty burst, kept for its allocations.
    spare: Burst<'static>,
    /// Of what a port sends that has monitors, kept for the allocation.
    copy: Vec<u8>,
    probe: LoopProbe,
    multicast: Multicast,
    /// If frames for groups go to their members alone.
    snooping: Option<Box<Snooping>>,
    /// If ports are mirrored.
    mirroring: Option<Box<Mirroring>>,
    /// Hosts are to be asked for their groups.
    asks: bool,
    /// What a program in the kernel forwards by, if there is one.
    fast: Option<Arc<FastPath>>,
    /// The port by which a frame of the worker's has come back, and that by which it had left.
    came_back: Option<[PortIndex; 2]>,
    busy_rounds: u32,
    /// Whether the last round has found something, and what rounds have cost since all ports were looked at.
    worked: bool,
    since_all: u64,
    busy_poll: BusyPoll,
    yielding: Yielding,
    /// Port that the next round begins with.
    first: usize,
    /// Not to sleep.
    polling: bool,
    /// Where the worker ran before it began to poll.
    everywhere: CpuSet,
}

impl Worker {
    pub fn new(mailbox: Arc<Mailbox>, forwarding: &Forwarding, clock: Clock) -> io::Result<Worker> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let data = epoll::EventData::new_u64(OWN_DOORBELL);
        epoll::add(&epoll, mailbox.doorbell(), data, epoll::EventFlags::IN)?;
        Ok(Worker {
            mailbox,
            casualties: Arc::default(),
            rounds: Arc::default(),
            epoll,
            members: Vec::new(),
            counters: Vec::new(),
            lost: Vec::new(),
            panicked: false,
            function: Function::new(forwarding),
            converter: Converter::default(),
            clock,
            now: 0,
            any_lossless: false,
            any_vlan: false,
            any_filter: false,
            attached: 0,
            turn_of_one: Turn::of_one(0),
            flood_copies: 0,
            retagged: Vec::new(),
            spare: Burst::default(),
            copy: Vec::new(),
            probe: LoopProbe::new(),
            multicast: Multicast::default(),
            snooping: None,
            mirroring: None,
            asks: false,
            fast: None,
            came_back: None,
            busy_rounds: 0,
            worked: false,
            since_all: 0,
            busy_poll: BusyPoll::new(),
            yielding: Yielding::new(),
            first: 0,
            polling: false,
            everywhere: sched_getaffinity(None)?,
        })
    }

    /// Where it says which ports it has given up.
    pub fn casualties(&self) -> Arc<Casualties> {
        self.casualties.clone()
    }

    /// Where it says how long its rounds take.
    pub fn rounds(&self) -> Arc<SharedRounds> {
        self.rounds.clone()
    }

    /// Until it is told to stop.
    fn serve_all(&mut self) {
        let mut idle_rounds = 0;
        self.look_at_clock();
        loop {
            if self.mailbox.has_mail() && !self.run_commands() {
                return;
            }
            if self.round() {
                idle_rounds = 0;
                if self.busy_rounds.is_multiple_of(CLOCK_ROUNDS) {
                    self.measured_round();
                }
                continue;
            }
            if idle_rounds == 0 {
                self.flush_idle();
            }
            idle_rounds += 1;
            if idle_rounds + 1 < IDLE_ROUNDS {
                std::hint::spin_loop();
                continue;
            }
            if self.polling {
                // As after a sleep: the wait for a lossless port ends although nothing moves.
                self.look_at_clock();
                idle_rounds = 1;
                continue;
            }
            idle_rounds = 0;
            if !prepare(&mut Idle(self)).is_ready() {
                self.sleep();
            }
        }
    }

    /// Another round, which is measured if there is work.
    #[cold]
    fn measured_round(&mut self) {
        let fine = self.clock.fine();
        let begun = fine();
        if self.round() {
            self.rounds.add(fine().saturating_sub(begun));
        }
    }

    /// There is nothing more to do: makes all that was done visible.
    fn flush_idle(&mut self) {
        self.members.iter_mut().flatten().for_each(|m| m.flush(true));
        self.members.iter_mut().flatten().for_each(|m| m.complete(true));
        self.publish_counters();
    }

    /// Serves every port once, [but for](Self::looks_at_all) those that rest. Returns whether any had sent
    /// something. The next round begins behind the first that had: so each of several senders is the first in its turn to find what a slow receiver
    /// has freed. If a sender waits for a command to be carried out, however many ports are busy, it ends
    /// at the next port, and the round after it begins there.
    fn round(&mut self) -> bool {
        let (mut worked, mut any_sent) = (self.asks, false);
        if self.asks {
            self.ask_for_groups();
        }
        let ports = self.members.len();
        let first = self.first.min(ports);
        let all = self.looks_at_all();
        for index in (first..ports).chain(0..first) {
            if !all && self.members[index].as_ref().is_none_or(|member| member.rests()) {
                continue;
            }
            let Some(mut source) = self.members[index].take() else { continue };
            if source.port.take_back() {
                (worked, source.dirty) = (true, true);
            }
            let index = index as PortIndex;
            let mut budget = Budget::new(self.turn_of_one, self.clock.fine());
            let news = self.turn(index, &mut source, &mut budget);
            let is_quiet = !news && !source.is_awaited();
            source.quiet = if is_quiet { source.quiet.saturating_add(1) } else { 0 };
            self.since_all = self.since_all.saturating_add(budget.spent(self.turn_of_one));
            if news && !any_sent {
                self.first = usize::from(index) + 1;
            }
            (worked, any_sent) = (worked | news, any_sent | news);
            match source.leaving {
                None => self.members[usize::from(index)] = Some(source),
                Some(_) => self.after_turn(index, source, news),
            }
            if self.mailbox.has_mail() {
                (worked, self.first) = (true, usize::from(index) + 1);
                if all {
                    // The rest of them are looked at in the next round.
                    self.since_all = u64::MAX;
                }
                break;
            }
        }
        if self.panicked {
            self.give_up_ports();
        }
        if let Some(pair) = self.came_back.take() {
            self.block(pair);
        }
        if worked {
            self.busy_rounds = self.busy_rounds.wrapping_add(1);
            if self.busy_rounds.is_multiple_of(CLOCK_ROUNDS) {
                self.look_at_clock();
            }
            if self.busy_rounds.is_multiple_of(COUNTER_ROUNDS) {
                self.publish_counters();
            }
            let (mut no_room, mut asks) = (false, false);
            for member in self.members.iter_mut().flatten() {
                // Where nothing more came: a program does not wait because others are busy.
                if member.dirty || member.notify_next_round {
                    if member.has_had_no_room() {
                        (no_room, asks) = (true, asks | member.is_worth_a_yield());
                    }
                    member.flush(!member.dirty);
                }
            }
            for member in self.members.iter_mut().flatten() {
                if member.dirty || member.notify_next_round {
                    if asks {
                        (0..member.held.len()).for_each(|ring| member.port.ask_to_yield(ring));
                    }
                    member.complete(!member.dirty);
                    member.notify_next_round = std::mem::take(&mut member.dirty);
                }
            }
            if no_room {
                // Its program may be waiting for this processor.
                self.yielding.once();
            }
        }
        self.worked = worked;
        worked
    }

    /// Whether a round looks at all ports. Where many have sent nothing for a while, looking at them would
    /// cost more than what the others send: while there is work it is done from time to time, and takes about a
    /// fifth of the worker's time. So a port that begins to send waits up to half a microsecond for each port of
    /// the switch, and a turn, longer than a busy port. Without work all are looked at.
    fn looks_at_all(&mut self) -> bool {
        /// Ports that do not count.
        const FEW: u64 = 8;
        /// Work for each port between two looks at all: a look takes some 100 ns where the memory of its ring is
        /// in no cache.
        const WORK: u64 = 16 << 10;
        let all = !self.worked || self.attached <= FEW || self.since_all >= self.attached * WORK;
        if all {
            self.since_all = 0;
        }
        all
    }

    /// Serves the rings of a port, as far as `budget` goes; the next turn begins with the ring behind, or,
    /// if it was long enough for all, behind the first that had sent something: as in a [round](Self::round).
    /// Returns whether any had.
    fn serve_rings(
        &mut self,
        index: PortIndex,
        source: &mut BridgePort,
        budget: &mut Budget,
    ) -> bool {
        let rings = source.held.len();
        let behind = |ring| if ring + 1 < rings { ring + 1 } else { 0 };
        let mut worked = false;
        let mut ring = source.next_ring;
        for _ in 0..rings {
            if budget.is_spent() {
                source.next_ring = ring;
                return worked;
            }
            let news = self.serve(index, source, ring, budget);
            if news && !worked {
                source.next_ring = behind(ring);
            }
            worked |= news;
            ring = behind(ring);
        }
        worked
    }

    fn serve(
        &mut self,
        index: PortIndex,
        source: &mut BridgePort,
        ring: usize,
        budget: &mut Budget,
    ) -> bool {
        let was_stalled = source.held[ring].and_then(|held| held.stall);
        if was_stalled.is_some_and(|stall| self.holds((index, ring), &stall)) {
            budget.charge_look(0);
            return false;
        }
        let BridgePort {
            port,
            config,
            totals,
            dirty,
            held,
            vlans,
            is_guarded,
            guard,
            filter_in,
            is_limited,
            rate,
            storm,
            mirrors,
            shown,
            floods,
            loops_with,
            is_fast,
            in_order,
            beside,
            ..
        } = source;
        let from = Source { port: index, ring, header_len: config.header_len, as_sent: false };
        if !port.may_have_sent(ring) {
            budget.charge_look(0);
            self.hold(&mut held[ring], (index, ring), None);
            return false;
        }
        let can_wait = port.can_wait();
        let mut burst = std::mem::take(&mut self.spare).recycle(from);
        burst.limit = budget.burst_bytes();
        burst.swaps = config.swap_buffers;
        if *shown > 0 {
            // Copied for the switch, and for each monitor.
            burst.limit /= (*shown as u32).saturating_add(1);
        }
        if mirrors.of_sent != 0 {
            burst.limit /= mirrors.of_sent.count_ones() + 1;
        }
        if *floods && !can_wait {
            // What it sends is mostly copied so often, and all of a burst goes in this turn.
            burst.limit /= (self.flood_copies as u32).max(1);
        }
        // One frame is taken at least, or none ever would be.
        burst.limit = burst.limit.max(1);
        let begun = if *is_fast { in_order.look(&self.fast, index, &mut **port) } else { None };
        let found = port.collect(ring, &mut burst, &mut totals.drops);
        budget.charge_look(found);
        if found == 0 {
            self.spare = burst.recycle(from);
            if let (Some(begun), Some(fast)) = (begun, &self.fast) {
                let members = &mut self.members;
                let have_left = || have_left(members);
                if in_order.note_none(begun, self.now, index, fast, have_left) {
                    in_order.note_lost(count_lost(&mut **port, &mut totals.drops));
                }
            }
            self.hold(&mut held[ring], (index, ring), None);
            return false;
        }
        let mut has_it = Passed::default();
        if begun.is_some() {
            has_it = beside.of(in_order.received());
            in_order.note_found(found);
        }
        if loops_with.is_some() {
            // As what is dropped behind it: sent, too.
            burst.read_headers();
            account(&burst.frames, totals);
            if burst.source.as_sent {
                totals.sent_bytes -= kernels_headers(&burst, burst.frames.len());
            }
            let fine = burst.frames.iter().filter(|frame| frame.status == FrameStatus::Fine);
            totals.drops.filtered += fine.count() as u64;
            self.spare = burst.recycle(from);
            port.release(ring);
            *dirty = true;
            return true;
        }
        // Monitors see what the others get, and filters see that too, although the sender may write to it meanwhile.
        let mut copy = Vec::new();
        let is_copied = *shown > 0 || self.any_filter || mirrors.of_sent != 0;
        if is_copied {
            copy = std::mem::take(&mut self.copy);
            // Each time, also of what does not go on yet.
            let bytes = burst.pieces.iter().map(|(_, len)| u64::from(*len)).sum();
            budget.charge(Delivered { packets: 0, bytes }, 1);
            burst = burst.private(&mut copy);
        }
        burst.read_headers();
        if config.is_interface {
            check_interface(&mut burst);
        }
        if config.may_loop()
            && let Some(left) = self.probe.check(&mut burst, self.any_vlan.then_some(&*vlans))
        {
            self.came_back = Some([index, left]);
        }
        if *is_guarded {
            if let Some(filter) = filter_in {
                filter.check(&mut burst, budget);
            }
            if let Some(guard) = guard {
                guard.check(&mut burst);
            }
        }
        let untagged = !self.any_vlan || vlans.classify(&mut burst);
        if *is_limited {
            if let Some(most) = config.max_addresses
                && let Function::Learning(function) = &mut self.function
            {
                function.check(&mut burst, most);
            }
            if let Some(rate) = rate {
                rate.check(&mut burst, held[ring].is_some_and(|held| !held.reached.is_empty()));
            }
        }
        let mut mirroring = self.mirroring.as_deref_mut().filter(|_| mirrors.of_sent != 0);
        if let Some(mirroring) = &mut mirroring {
            mirroring.begin(index, held[ring].map_or(0, |held| held.copied));
        }
        let mut ctx = ForwardCtx {
            burst: &burst,
            others: &mut self.members,
            rewrite: TxRewrite {
                retagged: (self.any_vlan || self.any_filter).then_some(&mut self.retagged),
                untagged,
                converter: &mut self.converter,
                mirroring,
                drops: &mut totals.drops,
            },
            // What waited goes on where it stopped, also when no port is lossless any more.
            waits: can_wait && (self.any_lossless || was_stalled.is_some()),
            yields: can_wait,
            attached: self.attached,
            flood_copies: self.flood_copies,
            interface: config.may_loop().then_some(FromInterface {
                // The host's stack decides by itself what it sends.
                groups: if config.is_interface { config.group_forward } else { u16::MAX },
            }),
            isolated: config.isolated,
            storm: storm.as_mut(),
            beside: has_it,
            flooded: 0,
            flooded_in: 0,
            budget,
            now: self.now,
            reached: held[ring].map(|held| held.reached).unwrap_or_default(),
            kept_to_link: false,
            snooping: self.snooping.as_deref_mut(),
            only: None,
        };
        let (sent, mut now_held) = match &mut self.function {
            Function::Learning(f) => forward(f, &mut ctx),
            Function::Static(f) => forward(f, &mut ctx),
            Function::Hash(f) => forward(f, &mut ctx),
            Function::Flood(f) => forward(f, &mut ctx),
            Function::Own(f) => forward(&mut **f, &mut ctx),
        };
        *floods = ctx.flooded > 0;
        if config.may_loop() {
            self.probe.note_flooded(ctx.flooded, ctx.flooded_in);
        }
        if let Some(mirroring) = self.mirroring.as_mut().filter(|_| mirrors.of_sent != 0) {
            if let (Some(held), Some(frame)) = (&mut now_held, burst.frames.get(sent)) {
                held.copied = mirroring.having(frame);
            }
            let (members, converter) = (&mut self.members, &mut self.converter);
            let (may_loop, vlan) =
                hand_over_copies(mirroring, &burst, sent, members, converter, budget);
            if config.may_loop() {
                self.probe.note_flooded(may_loop, vlan);
            }
        }
        let before = totals.sent_bytes;
        account(&burst.frames[..sent], totals);
        if burst.source.as_sent {
            totals.sent_bytes -= kernels_headers(&burst, sent);
        }
        if let Function::Learning(function) = &mut self.function {
            totals.unlearned += function.count_unlearned(&burst.frames[..sent], index);
            if *is_fast && function.take_moved() {
                note_moved(&mut self.members, self.fast.as_deref(), Some(index));
            }
        }
        if *is_limited && let Some(rate) = rate {
            rate.pay(&burst, sent);
        }
        let taken = Delivered { packets: sent as u64, bytes: totals.sent_bytes - before };
        budget.charge(taken, *shown);
        let held_from = now_held.map(|_| u32::from(burst.frames[sent].start));
        if is_copied {
            let seen = (*shown > 0).then(|| burst.slots(sent));
            self.spare = burst.recycle(from);
            if let Some(seen) = seen {
                port.show_sent(ring, &copy, &seen);
            }
            self.copy = copy;
        } else {
            self.spare = burst.recycle(from);
        }
        match held_from {
            None => port.release(ring),
            Some(slots) => port.release_some(ring, slots),
        }
        // A packet that has reached one more port is progress, too.
        let reached = |held: Option<Held>| held.map(|held| held.reached).unwrap_or_default();
        let worked = sent > 0 || now_held.is_none() || reached(now_held) != reached(held[ring]);
        let is_stalled = now_held.is_some_and(|held| held.stall.is_some());
        if is_stalled != was_stalled.is_some() {
            port.hold_back(ring, is_stalled);
        }
        self.hold(&mut held[ring], (index, ring), now_held);
        *dirty |= worked;
        worked
    }

    /// Whether `sender` has to wait for a lossless port as before.
    fn holds(&mut self, sender: Sender, stall: &Stall) -> bool {
        let to = self.members[usize::from(stall.to)].as_mut();
        to.is_some_and(|to| to.holds(sender, stall, self.now))
    }

    /// Notes what keeps `sender` now.
    #[inline]
    fn hold(&mut self, place: &mut Option<Held>, sender: Sender, new: Option<Held>) {
        if place.is_some() || new.is_some() {
            self.change_held(place, sender, new);
        }
    }

    #[cold]
    fn change_held(&mut self, place: &mut Option<Held>, sender: Sender, new: Option<Held>) {
        let old = std::mem::replace(place, new).and_then(|held| held.stall);
        let Some(old) = old else { return };
        let new = new.and_then(|held| held.stall);
        if new.is_some_and(|new| (new.to, new.ring) == (old.to, old.ring)) {
            return;
        }
        let to = self.members[usize::from(old.to)].as_mut();
        if let Some(lossless) = to.and_then(|to| to.lossless_queues.get_mut(old.ring)) {
            lossless.leave(sender);
        }
    }

    fn look_at_clock(&mut self) {
        let before = std::mem::replace(&mut self.now, self.clock.now());
        if self.probe.is_due() {
            self.look_for_loops();
        }
        if before / 1000 != self.now / 1000 {
            self.probe.tick();
            self.show_probe();
            self.function.as_dyn().tick((self.now / 1000) as u32);
            if self.snooping.is_some() {
                self.look_at_groups();
            }
        }
    }

    /// Forgets what hosts have not said again, and notes what they are to be asked.
    #[cold]
    fn look_at_groups(&mut self) {
        let Some(snooping) = &mut self.snooping else { return };
        snooping.tick(self.now);
        self.asks = snooping.has_queries();
    }

    /// Asks hosts for their groups, for as long as a port's turn: the rest is for the next rounds.
    #[cold]
    #[inline(never)]
    fn ask_for_groups(&mut self) {
        let mut budget = Budget::new(self.turn_of_one, self.clock.fine());
        while !budget.is_spent() {
            let query = self.snooping.as_mut().and_then(|it| it.next_query(self.now));
            let Some(query) = query else {
                self.asks = false;
                return;
            };
            self.ask(query, &mut budget);
        }
    }

    fn ask(&mut self, Outgoing { to, vlan, is_v6, mut frame }: Outgoing, budget: &mut Budget) {
        budget.charge_group(frame.len(), 0);
        budget.charge_ports(self.members.len() as u64);
        let mut burst = std::mem::take(&mut self.spare).recycle(Source::default());
        burst.push_private(&mut frame);
        burst.end_frame();
        burst.read_headers();
        burst.frames.iter_mut().for_each(|frame| frame.vid = vlan);
        let mut rewrite = TxRewrite {
            retagged: (self.any_vlan || self.any_filter).then_some(&mut self.retagged),
            untagged: true,
            converter: &mut self.converter,
            mirroring: None,
            drops: &mut Drops::default(),
        };
        for (index, member) in (0..).zip(&mut self.members) {
            let Some(member) = member.as_deref_mut().filter(|it| it.receives()) else { continue };
            if to.contains(index) && member.vlans.has(vlan) {
                let denied = member.totals.drops.denied;
                deliver(member, (0, true), &burst.frames, &burst, &mut rewrite, budget);
                let passes = member.totals.drops.denied == denied;
                if let Some(snooping) = &mut self.snooping {
                    snooping.note_own((vlan, is_v6), index, passes);
                }
            }
        }
        self.spare = burst.recycle(Source::default());
    }

    /// Sends a frame of the worker's own by each port behind which there may be a loop.
    #[cold]
    fn look_for_loops(&mut self) {
        self.probe.begin();
        self.show_probe();
        for (index, member) in (0..).zip(&mut self.members) {
            let Some(member) = member else { continue };
            if !member.config.may_loop() || !member.is_open() {
                continue;
            }
            let Some(is_tagged) = member.vlans.is_tagged(self.probe.vlan()) else { continue };
            let mut bytes = self.probe.frame(index, is_tagged);
            let mut burst = std::mem::take(&mut self.spare).recycle(Source::default());
            burst.push_private(&mut bytes);
            burst.end_frame();
            burst.read_headers();
            member.deliver_own(&burst);
            self.spare = burst.recycle(Source::default());
        }
    }

    /// The program in the kernel lets the worker's own frames come back.
    fn show_probe(&self) {
        if let Some(fast) = &self.fast {
            fast.set_probe(self.probe.secret());
        }
    }

    /// Blocks the first of two interfaces, by which what has left by the other has come back, unless another switch
    /// is about to.
    #[cold]
    fn block(&mut self, [port, other]: [PortIndex; 2]) {
        if let Some(Some(member)) = self.members.get_mut(usize::from(port))
            && self.probe.end()
        {
            member.loops_with = Some(other);
            self.forget(port);
            self.refresh_fast_path();
            self.publish_counters();
            self.casualties.tell();
        }
    }

    /// One system call, however many ports there are: so the descriptors stay in epoll, and are not
    /// listed for every sleep.
    fn sleep(&mut self) {
        let mut events = [epoll::Event {
            flags: epoll::EventFlags::empty(),
            data: epoll::EventData::new_u64(0),
        }; 16];
        let timeout = self.timeout();
        let notified = epoll::wait(&self.epoll, &mut events, timeout.as_ref()).unwrap_or(0);
        self.look_at_clock();
        for event in events.iter().take(notified) {
            match event.data.u64() {
                OWN_DOORBELL => drop(self.mailbox.doorbell().drain()),
                index => {
                    if let Some(Some(member)) = self.members.get(index as usize) {
                        member.port.drain();
                    }
                }
            }
        }
    }

    /// How long to sleep at most: until the wait for a lossless port ends, or hosts are asked for their groups.
    fn timeout(&mut self) -> Option<Timespec> {
        let lossless_queues =
            self.members.iter().flatten().flat_map(|member| &member.lossless_queues);
        let ends = lossless_queues.filter_map(LosslessQueue::deadline);
        // Seconds are whole where groups are looked at.
        let asks = self.snooping.as_ref().and_then(|it| it.deadline(self.now));
        let end = ends.chain(asks.map(|at| at.next_multiple_of(1000))).min()?;
        self.look_at_clock();
        if self.asks {
            return Some(timespec(0));
        }
        Some(timespec(end.saturating_sub(self.now).max(1)))
    }

    fn publish_counters(&mut self) {
        for (index, (member, counters)) in self.members.iter_mut().zip(&self.counters).enumerate() {
            if let (Some(member), Some(counters)) = (member, counters) {
                let index = index as PortIndex;
                member.count_learning(self.function.as_dyn().take_counters(index));
                member.totals.known = match &self.function {
                    Function::Learning(function) => function.known(index).into(),
                    _ => 0,
                };
                member.settle();
                member.tell_lost();
                member.publish(index, self.fast.as_deref(), counters);
                counters.store_state(member.state());
            }
        }
    }
}

/// Whether the kernel has taken all that was delivered where a program forwards beside the worker.
#[cold]
fn have_left(members: &mut Members) -> bool {
    members.iter_mut().flatten().filter(|member| member.is_fast).all(|member| member.has_left())
}

/// An address has moved to this port, or to any.
#[cold]
pub(crate) fn note_moved(members: &mut Members, fast: Option<&FastPath>, to: Option<PortIndex>) {
    let Some(fast) = fast else { return };
    for (index, member) in (0..).zip(members) {
        if let Some(member) = member {
            member.beside.note_moved(to, || fast.begun_by_now(index));
        }
    }
}

/// So long, as the kernel has it.
fn timespec(millis: Millis) -> Timespec {
    Timespec { tv_sec: (millis / 1000) as i64, tv_nsec: (millis % 1000) as i64 * 1_000_000 }
}

/// Bytes of the headers that an interface's first `sent` frames have for the switch alone: its bytes are those on the
/// wire.
#[cold]
#[inline(never)]
fn kernels_headers(burst: &Burst<'_>, sent: usize) -> u64 {
    let frames = burst.frames[..sent].iter().filter(|frame| frame.len > 0).count();
    frames as u64 * u64::from(burst.source.header_len)
}

/// A worker without work.
struct Idle<'w>(&'w mut Worker);

impl Waiter for Idle<'_> {
    /// The last of the idle rounds, and then the one that is made armed.
    fn look(&mut self) -> bool {
        self.0.round()
    }

    /// Nothing is drained here: epoll tells which doorbells were notified, and
    /// [`sleep`](Worker::sleep) drains those, before the next look. One that was notified before the
    /// worker has armed ends the sleep at once.
    fn arm(&mut self) -> bool {
        self.0.members.iter_mut().flatten().for_each(|m| m.arm());
        false
    }

    fn pass_on(&mut self) {}

    fn busy_poll(&self) -> Option<&BusyPoll> {
        Some(&self.0.busy_poll)
    }
}

/// However it ends, no caller waits for an answer from it any more.
impl Drop for Worker {
    fn drop(&mut self) {
        if let Some(fast) = &self.fast {
            fast.clear();
        }
        self.mailbox.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_has_seconds_and_the_rest() {
        for (millis, expected) in [
            (1, (0, 1_000_000)),
            (999, (0, 999_000_000)),
            (1000, (1, 0)),
            (61_234, (61, 234_000_000)),
        ] {
            let Timespec { tv_sec, tv_nsec } = timespec(millis);
            assert_eq!((tv_sec, tv_nsec), expected, "{millis}");
        }
    }
}
