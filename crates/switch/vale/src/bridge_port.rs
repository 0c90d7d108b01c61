//! A port as the worker has it: with what the bridge knows of it.
#![expect(
    clippy::indexing_slicing,
    reason = "rings of a lossless port are remainders of their number"
)]

use crate::{
    access::Access,
    beside::Beside,
    bucket::{Bucket, RateLimit},
    budget::Budget,
    clock::{Fine, Millis},
    config::PortConfig,
    counters::{ByWorker, PortCounters, PortState, Totals},
    draining::Leaving,
    function::LearningCounters,
    in_order::InOrder,
    lossless_queue::{Held, LosslessQueue, Sender, Stall},
    own_frames::{self, OwnFrames},
    sources::SourceGuard,
    storm::Storm,
    switch_mirror::MirrorMarks,
    vlan::PortVlans,
    vnet::most_slots,
};
use ringway_fastpath::{FastCounts, FastPath, FastPort, Filters, Limit};
use ringway_mirror::Mirrors;
use ringway_switch_port::{
    Burst, Delivered, Drops, Frame, KernelWay, Port, PortIndex, PortMirrors, Room, Unsent, wrapped,
};

/// A port with what the bridge knows of it.
pub(crate) struct BridgePort {
    pub port: Box<dyn Port>,
    pub config: PortConfig,
    pub totals: Totals,
    /// What its program knows of it: packets that found no room, and that were too long.
    told: [u64; 2],
    /// What it had received when its senders were asked to yield, and how often they were since.
    asked_at: u64,
    asked: u32,
    /// What of it the kernel has not taken yet.
    waiting: Delivered,
    own_frames: OwnFrames,
    /// Something was delivered, or freed, since the last flush.
    pub dirty: bool,
    /// As much in an earlier round: a program that waits for it may not have been woken yet.
    pub notify_next_round: bool,
    /// Turns in a row in which it had sent nothing.
    pub quiet: u8,
    pub vlans: PortVlans,
    /// It may not send with any address, or not all frames.
    pub is_guarded: bool,
    /// If it may not send with any address.
    pub guard: Option<SourceGuard>,
    /// If it may not send all frames.
    pub filter_in: Option<Access>,
    /// If it does not get all.
    pub filter_out: Option<Access>,
    /// It has a limit of addresses, or of what it sends.
    pub is_limited: bool,
    /// If it may not send as much as it likes, and no program in the kernel sees to that.
    pub rate: Option<Bucket>,
    /// If it may not flood as much as it likes.
    pub storm: Option<Storm>,
    /// For each receive ring, if it is lossless.
    pub lossless_queues: Vec<LosslessQueue>,
    /// For each sending ring: what keeps its next packet, if it has gone a part of its way.
    pub held: Vec<Option<Held>>,
    /// The ring that its next turn begins with.
    pub next_ring: usize,
    /// What mirrors have to do with it.
    pub mirrors: MirrorMarks,
    /// How often a packet is copied that it gets: for itself, and for its monitors.
    pub copies: u64,
    /// 1 if a system call sends it, else 0.
    pub calls: u64,
    /// How often one that it sends is, for its monitors.
    pub shown: u64,
    /// Some of its monitors take buffers that its program releases.
    pub swaps: bool,
    /// Whether its last burst had frames for all.
    pub floods: bool,
    /// If it is one end of a loop: the port that is the other. It sends and receives nothing.
    pub loops_with: Option<PortIndex>,
    /// A program in the kernel receives beside the worker.
    pub is_fast: bool,
    pub in_order: InOrder,
    pub beside: Beside,
    /// Why the worker forwards for it all the same.
    pub by_worker: Option<ByWorker>,
    /// What that had counted of the port's place before.
    pub counted_before: FastCounts,
    /// If it goes.
    pub leaving: Option<Leaving>,
    /// The worker is at it: a panic meanwhile is over this port.
    pub in_hand: bool,
}

impl BridgePort {
    /// Whether it has sent nothing for a while, so that not each round need look at it.
    pub fn rests(&self) -> bool {
        const LEAST: u8 = 16;
        self.quiet >= LEAST
    }

    /// Whether each round is to look at it although it has sent nothing: what it has sent waits for a lossless port, or
    /// monitors wait for what its program releases.
    pub fn is_awaited(&self) -> bool {
        self.swaps || self.held.iter().flatten().any(|held| held.stall.is_some())
    }

    pub fn new(port: Box<dyn Port>, config: PortConfig, clock: Fine) -> BridgePort {
        let mut member = BridgePort {
            held: vec![None; port.tx_rings()],
            quiet: 0,
            lossless_queues: Vec::new(),
            vlans: PortVlans::new(&config.vlan),
            is_guarded: false,
            guard: None,
            is_limited: false,
            filter_in: None,
            filter_out: None,
            rate: None,
            storm: None,
            calls: port.sends_by_call().into(),
            is_fast: port.kernel_way().is_some(),
            in_order: InOrder::default(),
            beside: Beside::default(),
            by_worker: None,
            counted_before: FastCounts::default(),
            port,
            config: PortConfig::default(),
            totals: Totals::default(),
            told: [0; 2],
            asked_at: 0,
            asked: 0,
            waiting: Delivered::default(),
            own_frames: OwnFrames::default(),
            dirty: false,
            notify_next_round: false,
            next_ring: 0,
            mirrors: MirrorMarks::default(),
            copies: 1,
            shown: 0,
            swaps: false,
            floods: false,
            loops_with: None,
            leaving: None,
            in_hand: false,
        };
        member.configure(config, clock);
        member
    }

    /// Goes on counting where another port has stopped, of whose losses its program has been told.
    pub fn go_on_from(&mut self, totals: Totals) {
        (self.totals, self.told) = (totals, [totals.drops.ring_full, totals.drops.too_long]);
    }

    pub fn configure(&mut self, config: PortConfig, clock: Fine) {
        let rings = 0..config.lossless.map_or(0, |_| self.port.rx_rings());
        let patience = config.lossless.unwrap_or_default().patience_ms.into();
        self.lossless_queues = rings.clone().map(|_| LosslessQueue::new(patience)).collect();
        // From now on its client looks whether a sender waits.
        rings.for_each(|ring| self.port.await_room(ring));
        self.vlans = PortVlans::new(&config.vlan);
        // What it is bound to stays, whatever else changes.
        if config.sources != self.config.sources {
            self.guard = SourceGuard::new(&config.sources);
        }
        for (wanted, before, filter) in [
            (&config.filter_in, &self.config.filter_in, &mut self.filter_in),
            (&config.filter_out, &self.config.filter_out, &mut self.filter_out),
        ] {
            if wanted != before {
                *filter = wanted.as_deref().map(Access::new);
            }
        }
        // What is spent stays spent.
        if config.rate != self.config.rate {
            let rate = config.rate.filter(|_| !self.is_fast);
            self.rate = rate.map(|rate| Bucket::new(rate.limit(), clock));
        }
        self.storm = Storm::renewed(self.storm.take(), &self.config, &config, clock);
        self.is_guarded = self.guard.is_some() || self.filter_in.is_some();
        self.is_limited = self.rate.is_some() || config.max_addresses.is_some();
        if config.unblocked != self.config.unblocked {
            self.loops_with = None;
        }
        self.config = config;
    }

    /// What settings are for: the port, or what is to have its place.
    pub fn newest(&mut self) -> &mut dyn Port {
        let successor = self.leaving.as_mut().and_then(|leaving| leaving.successor.as_mut());
        &mut **successor.unwrap_or(&mut self.port)
    }

    /// Whether frames are forwarded to it.
    pub fn receives(&self) -> bool {
        !self.mirrors.is_target && self.is_open()
    }

    /// Whether anything is delivered to it.
    pub fn is_open(&self) -> bool {
        let is_deaf = self.config.is_down || self.loops_with.is_some();
        self.leaving.is_none() && !is_deaf && self.port.receives()
    }

    /// How it stands at the moment.
    pub fn state(&self) -> PortState {
        let waits_for =
            self.held.iter().flatten().find_map(|held| held.stall).map(|stall| stall.to);
        PortState { waits_for, loops_with: self.loops_with, by_worker: self.by_worker }
    }

    /// Has what its rings carry shown to these monitors.
    pub fn set_mirrors(&mut self, mirrors: PortMirrors) {
        let most = |rings: &[Mirrors]| rings.iter().map(Mirrors::len).max().unwrap_or(0) as u64;
        (self.shown, self.copies) = (most(&mirrors.tx), 1 + most(&mirrors.rx));
        self.swaps = mirrors.rx.iter().any(Mirrors::swaps);
        self.quiet = 0;
        self.newest().set_mirrors(mirrors);
    }

    /// How a program in the kernel, which shares `fast`, may forward for it, or why not. `None`: there is none.
    pub fn fast_port(&self, fast: &FastPath) -> Option<Result<FastPort, ByWorker>> {
        let way = self.port.kernel_way().filter(|_| self.leaving.is_none())?;
        let why = [
            (self.loops_with.is_some(), ByWorker::Blocked),
            (self.config.is_down, ByWorker::NoLink),
            (self.shown > 0 || self.copies > 1, ByWorker::Monitored),
            (self.mirrors.is_source, ByWorker::Mirrored),
            (self.mirrors.is_target, ByWorker::MirrorPort),
            (!self.lossless_queues.is_empty(), ByWorker::Lossless),
            (!fast.can_filter(self.filters()), ByWorker::Filtered),
        ];
        if let Some((_, why)) = why.into_iter().find(|(is_so, _)| *is_so) {
            return Some(Err(why));
        }
        let (ifindex, is_stack) = match way {
            KernelWay::Interface(ifindex) => (ifindex, false),
            KernelWay::Stack(ifindex) => (ifindex, true),
        };
        let (vid, max_frame) = (self.vlans.untagged(), self.config.max_frame);
        let is_isolated = self.config.isolated;
        Some(Ok(FastPort { ifindex, is_stack, is_isolated, beside: None, vid, max_frame }))
    }

    /// For what it sends, and for what it gets.
    pub fn filters(&self) -> Filters<'_> {
        let PortConfig { filter_in, filter_out, .. } = &self.config;
        [filter_in, filter_out].map(|filter| filter.as_ref().map(|it| it.program.insns()))
    }

    /// What a program in the kernel lets it send.
    pub fn fast_limit(&self) -> Option<Limit> {
        self.config.rate.filter(|_| self.is_fast).map(RateLimit::limit)
    }

    /// Tells others what went through it, past the worker included.
    pub fn publish(&self, index: PortIndex, fast: Option<&FastPath>, counters: &PortCounters) {
        match fast.filter(|_| self.is_fast) {
            None => counters.store(&self.worker_totals()),
            Some(fast) => counters.store(&self.all_totals(index, fast)),
        }
    }

    /// What went through it by the worker.
    pub fn worker_totals(&self) -> Totals {
        let mut totals = self.totals;
        totals.take_received(self.waiting);
        totals
    }

    /// Learns what the kernel has made of what was delivered.
    pub fn settle(&mut self) {
        let drops = &mut self.totals.drops;
        let before = [drops.too_long, drops.ring_full];
        let unsent = self.port.unsent(drops);
        let Unsent { refused, waiting } =
            self.own_frames.without(unsent, self.totals.received_packets);
        let own = unsent.refused.packets - refused.packets;
        if own > 0 {
            own_frames::uncount(own, before, drops);
        }
        self.totals.take_received(refused);
        self.waiting = waiting;
    }

    /// Delivers a frame of the worker's own, which no counter has.
    pub fn deliver_own(&mut self, burst: &Burst<'_>) {
        self.in_hand = true;
        let delivered = self.port.deliver(0, &burst.frames, burst, &mut Drops::default());
        self.own_frames.add(delivered, self.totals.received_packets);
        self.in_hand = false;
        self.dirty = true;
    }

    /// Whether the kernel has taken, or refused, all that was delivered.
    pub fn has_left(&mut self) -> bool {
        self.settle();
        self.waiting.packets == 0
    }

    /// The link is down, or the port goes: what waits is lost.
    pub fn discard(&mut self) {
        self.port.discard();
        self.settle();
    }

    #[inline(never)]
    fn all_totals(&self, index: PortIndex, fast: &FastPath) -> Totals {
        let FastCounts {
            sent_packets,
            sent_bytes,
            received_packets,
            received_bytes,
            too_long,
            reordered,
            not_copied,
            isolated,
            over_rate,
            denied_sent,
            denied_received,
            refused_bytes,
            bad_source,
        } = fast.counts(index).since(self.counted_before);
        let mut all = self.worker_totals();
        all.sent_packets += sent_packets + over_rate + denied_sent + bad_source + not_copied;
        all.sent_bytes += sent_bytes + refused_bytes;
        all.received_packets += received_packets;
        all.received_bytes += received_bytes;
        all.reordered += reordered;
        all.drops.too_long += too_long;
        all.drops.ring_full += not_copied;
        all.drops.filtered += isolated;
        all.drops.over_rate += over_rate;
        all.drops.bad_source += bad_source;
        all.drops.denied += denied_sent + denied_received;
        all
    }

    /// Counts what the forwarding function has of it.
    pub fn count_learning(&mut self, LearningCounters { moved, unlearned }: LearningCounters) {
        self.totals.moved += moved;
        self.totals.unlearned += unlearned;
    }

    /// Counts what was lost where the port does not look with every packet.
    pub fn count_lost(&mut self) {
        let lost = count_lost(&mut *self.port, &mut self.totals);
        self.in_order.note_lost(lost);
    }

    /// Whether a program's port had no room since the program was [told](Self::tell_lost).
    pub fn has_had_no_room(&self) -> bool {
        !self.config.is_interface && self.totals.drops.ring_full != self.told[0]
    }

    /// Whether its senders are asked to yield, since its program may be waiting for their processor: it has taken
    /// something since they were asked, or they were asked a few times only.
    #[cold]
    pub fn is_worth_a_yield(&mut self) -> bool {
        const MOST: u32 = 8;
        if self.asked_at != self.totals.received_packets {
            (self.asked_at, self.asked) = (self.totals.received_packets, 0);
        }
        self.asked = (self.asked + 1).min(MOST + 1);
        self.asked <= MOST
    }

    /// Tells the port's program what was lost on the way to it.
    pub fn tell_lost(&mut self) {
        let now = [self.totals.drops.ring_full, self.totals.drops.too_long];
        if now != self.told {
            let before = std::mem::replace(&mut self.told, now);
            self.port.tell_lost([now[0] - before[0], now[1] - before[1]]);
        }
    }

    /// Makes deliveries visible; see [`PacketIo`](ringway_switch_port::PacketIo).
    pub fn flush(&mut self, idle: bool) {
        self.in_hand = true;
        self.tell_lost();
        self.port.flush(idle);
        self.in_hand = false;
    }

    /// Makes freed slots visible.
    pub fn complete(&mut self, idle: bool) {
        self.in_hand = true;
        self.port.complete(idle);
        self.in_hand = false;
    }

    /// Announces that the worker is about to sleep.
    pub fn arm(&mut self) {
        self.in_hand = true;
        self.port.arm();
        for (ring, lossless) in self.lossless_queues.iter().enumerate() {
            if lossless.deadline().is_some() {
                self.port.await_room(ring);
            }
        }
        self.in_hand = false;
    }

    /// What a lossless receive ring has room for.
    fn room(&mut self, ring: usize) -> Room {
        self.in_hand = true;
        let room = self.port.room(ring);
        self.in_hand = false;
        room
    }

    /// How many of `frames` may be delivered on `ring`; their sender waits for the others, in the
    /// queue if `queue`.
    pub fn admit(
        &mut self,
        ring: usize,
        frames: &[Frame],
        burst: &Burst<'_>,
        now: Millis,
        queue: bool,
        budget: &mut Budget,
    ) -> usize {
        if self.lossless_queues.is_empty() {
            return frames.len();
        }
        let lossless = self.lossless_queue_of(ring);
        let room = self.room(lossless);
        let most = most_slots(&self.config, &self.vlans, burst, room);
        let (vlans, filter) = (&self.vlans, &self.filter_out);
        if let Some(filter) = filter {
            filter.charge(frames.len(), budget);
        }
        let passes = |frame: &Frame| {
            filter.as_ref().is_none_or(|filter| {
                vlans.retagged(frame, burst).is_some_and(|frame| filter.passes(&frame, burst))
            })
        };
        let most = |frame: &Frame| if passes(frame) { most(frame) } else { 0 };
        self.lossless_queues[lossless].admit(sender(burst), frames, most, room, now, queue)
    }

    /// How many slots of receive ring `ring` a frame has to wait for.
    pub fn needs(&mut self, ring: usize, frame: &Frame, burst: &Burst<'_>) -> u32 {
        let room = self.room(ring);
        most_slots(&self.config, &self.vlans, burst, room)(frame)
    }

    /// Whether `sender` still has to wait, as `stall` says.
    pub fn holds(&mut self, sender: Sender, stall: &Stall, now: Millis) -> bool {
        if stall.ring >= self.lossless_queues.len() || !self.receives() {
            return false;
        }
        let room = self.room(stall.ring);
        self.lossless_queues[stall.ring].holds(sender, stall.count, room, now)
    }

    /// The receive ring that a packet for `ring` is for. The port is lossless.
    pub fn lossless_queue_of(&self, ring: usize) -> usize {
        wrapped(ring, self.lossless_queues.len())
    }
}

/// Counts what the kernel has lost on the way to the worker, which the port has sent as well; how many that found no room.
pub(crate) fn count_lost(port: &mut dyn Port, totals: &mut Totals) -> u64 {
    let before = totals.drops;
    port.count_lost(&mut totals.drops);
    totals.sent_packets += totals.drops.before_switch() - before.before_switch();
    totals.drops.ring_full - before.ring_full
}

/// The members by index; the one whose packets are on their way is out of its place.
pub(crate) type Members = [Option<Box<BridgePort>>];

fn sender(burst: &Burst<'_>) -> Sender {
    (burst.source.port, burst.source.ring)
}
