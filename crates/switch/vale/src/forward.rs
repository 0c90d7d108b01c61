//! Where packets go: the forwarding function decides, the others receive.
#![expect(
    clippy::indexing_slicing,
    reason = "runs of a burst lie within it, `admit` takes no more frames than it is given, and rings of a lossless port are remainders of their number"
)]

use std::cell::Cell;

use crate::{
    access::Access,
    beside::Beside,
    bucket::{Bucket, RateLimit},
    budget::Budget,
    clock::{Fine, Millis},
    config::PortConfig,
    counters::{ByWorker, PortCounters, PortState, Totals},
    function::{Forward, LearningCounters, Packet, Verdict},
    in_order::InOrder,
    loop_probe::{is_probe, left_by, probe_source},
    lossless_queue::{Held, LosslessQueue, PortSet, Sender, Stall},
    multicast::Snooping,
    sources::SourceGuard,
    storm::Storm,
    vlan::{PortVlans, vlan_of},
    vnet::{Converter, most_slots},
    worker::leaving::Leaving,
};
use ringway_fastpath::{FastCounts, FastPath, FastPort, Filters, Limit};
use ringway_mirror::Mirrors;
use ringway_switch_port::{
    Burst, Delivered, Drops, Frame, FrameStatus, KernelWay, Port, PortIndex, PortMirrors, Room,
    Unsent, link_local,
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
    /// How often a packet is copied that it gets: for itself, and for its monitors.
    pub copies: u64,
    /// How often one that it sends is, for its monitors.
    pub shown: u64,
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
            dirty: false,
            notify_next_round: false,
            next_ring: 0,
            copies: 1,
            shown: 0,
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

    /// Whether anything is delivered to it.
    pub fn receives(&self) -> bool {
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
        self.newest().set_mirrors(mirrors);
    }

    /// How a program in the kernel, which shares `fast`, may forward for it, or why not. `None`: there is none.
    pub fn fast_port(&self, fast: &FastPath) -> Option<Result<FastPort, ByWorker>> {
        let way = self.port.kernel_way().filter(|_| self.leaving.is_none())?;
        let why = [
            (self.loops_with.is_some(), ByWorker::Blocked),
            (self.config.is_down, ByWorker::NoLink),
            (self.shown > 0 || self.copies > 1, ByWorker::Monitored),
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
        let Unsent { refused, waiting } = self.port.unsent(&mut self.totals.drops);
        self.totals.take_received(refused);
        self.waiting = waiting;
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
        all.sent_packets += sent_packets + over_rate + denied_sent + bad_source;
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
        self.port.count_lost(&mut self.totals.drops);
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
    fn admit(
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
        let most = most_slots(&self.config, burst, room);
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
    fn needs(&mut self, ring: usize, frame: &Frame, burst: &Burst<'_>) -> u32 {
        let room = self.room(ring);
        most_slots(&self.config, burst, room)(frame)
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
    fn lossless_queue_of(&self, ring: usize) -> usize {
        ring % self.lossless_queues.len()
    }
}

/// The members by index; the one whose packets are on their way is out of its place.
pub(crate) type Members = [Option<Box<BridgePort>>];

/// What else is looked at if the source is an interface.
#[derive(Clone, Copy)]
pub(crate) struct FromInterface {
    /// The link-local groups that it passes on to others.
    pub groups: u16,
    /// The source of frames of the worker itself, and their VLAN.
    pub secret: Option<u64>,
    pub looks_in: u16,
}

/// Copies that a conversion costs about as much as: it reads, sums and writes.
const CONVERSION: u64 = 4;

/// A burst on its way through the bridge.
pub(crate) struct ForwardCtx<'a> {
    pub burst: &'a Burst<'a>,
    pub others: &'a mut Members,
    pub rewrite: TxRewrite<'a>,
    /// Whether there are lossless ports, or were when the first packet began to wait, and the source
    /// can wait for them.
    pub waits: bool,
    /// Whether the source keeps what it cannot send in this turn: also a packet that has reached some.
    pub yields: bool,
    /// Ports of the bridge.
    pub attached: u64,
    /// How often a packet is copied that goes to all of them and to their monitors.
    pub flood_copies: u64,
    /// If it comes from an interface.
    pub interface: Option<FromInterface>,
    /// Whether the source is kept from those that are isolated, too.
    pub isolated: bool,
    /// If it may not flood as much as it likes.
    pub storm: Option<&'a mut Storm>,
    /// The port that has the packets already, where they are for it, too.
    pub beside: Option<PortIndex>,
    /// Frames that were flooded.
    pub flooded: u64,
    /// The VLAN of the last of them, where they come from an interface.
    pub flooded_in: u16,
    /// The port by which a frame had left that has come back.
    pub came_back: Option<PortIndex>,
    /// The lowest source of frames of switches that look for loops, while this one does.
    pub probe: Option<u64>,
    /// What is left of the turn.
    pub budget: &'a mut Budget,
    pub now: Millis,
    /// Those who have the first packet already.
    pub reached: PortSet,
    /// Whether other interfaces do not get the packets at hand.
    pub kept_to_link: bool,
    /// If frames for groups go to their members alone.
    pub snooping: Option<&'a mut Snooping>,
    /// The ports that get the packets at hand, if not all.
    pub only: Option<PortSet>,
}

/// What it takes to give a receiver the frames as it is to have them.
pub(crate) struct TxRewrite<'a> {
    /// If any port is told about VLANs, or gets some frames only: room for those, with another tag or none.
    pub retagged: Option<&'a mut Vec<Frame>>,
    pub converter: &'a mut Converter,
    /// Of the source.
    pub drops: &'a mut Drops,
}

/// In a [`RouteKey`]: not to other interfaces.
const KEPT_TO_LINK: u64 = 4 << 32;

/// The way of a frame and its VLAN, in a number: neighbours are compared by it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct RouteKey(u64);

impl RouteKey {
    /// The bridge does not take it.
    const NONE: RouteKey = RouteKey(u64::MAX);

    #[inline]
    fn new(way: Verdict, vid: u16) -> RouteKey {
        let way = match way {
            Verdict::Port(port) => u64::from(port),
            Verdict::Ring(port, ring) => 1 << 32 | u64::from(ring) << 8 | u64::from(port),
            Verdict::Flood => 2 << 32,
            Verdict::Drop => 3 << 32,
        };
        RouteKey(way | u64::from(vid) << 40)
    }

    /// Flooded, but not to other interfaces.
    fn kept_to_link(self) -> RouteKey {
        if self.way() == Some(Verdict::Flood) { RouteKey(self.0 | KEPT_TO_LINK) } else { self }
    }

    #[inline]
    fn is_kept_to_link(self) -> bool {
        self.0 & KEPT_TO_LINK != 0
    }

    #[inline]
    fn way(self) -> Option<Verdict> {
        let (port, ring) = (self.0 as PortIndex, (self.0 >> 8) as u16);
        match self.0 >> 32 & 0xff {
            0 => Some(Verdict::Port(port)),
            1 => Some(Verdict::Ring(port, ring)),
            2 | 6 => Some(Verdict::Flood),
            3 => Some(Verdict::Drop),
            _ => None,
        }
    }
}

/// What is found in the frames of an interface.
struct InterfaceFrames {
    of: FromInterface,
    /// See [`ForwardCtx`].
    came_back: Cell<Option<PortIndex>>,
    probe: Cell<Option<u64>>,
}

impl InterfaceFrames {
    fn of(of: FromInterface) -> InterfaceFrames {
        InterfaceFrames { of, came_back: Cell::new(None), probe: Cell::new(None) }
    }

    /// The way of a frame: that of `decide`, unless it is the worker's own, and to other interfaces
    /// only if it is not for its link alone.
    #[inline(never)]
    fn decide(&self, frame: &Frame, decide: impl FnOnce() -> RouteKey) -> RouteKey {
        if let Some(secret) = self.of.secret {
            if let Some(left) = left_by(frame.src(), secret)
                && vlan_of(frame) == self.of.looks_in
            {
                self.came_back.set(Some(left));
                return RouteKey::new(Verdict::Drop, frame.vid);
            }
            if is_probe(frame.dst(), frame.src()) {
                let lowest = self.probe.get().unwrap_or(u64::MAX);
                self.probe.set(Some(lowest.min(probe_source(frame.src()))));
            }
        }
        let is_kept = |last| self.of.groups >> last & 1 == 0;
        let key = decide();
        if link_local(frame.dst()).is_some_and(is_kept) { key.kept_to_link() } else { key }
    }
}

/// Packets of the run that are done with, and what keeps the next.
type Stop = (usize, Held);

/// Sends the packets of a burst on their way. Returns how many are done with, and what keeps the
/// next. If that is no more than that the turn is over, at least one has reached one port more.
///
/// Neighbours mostly go the same way, so they are handed over in runs: the decision is made for
/// each packet, everything else once a run. The order of packets stays, per destination.
pub(crate) fn forward(
    function: &mut (impl Forward + ?Sized),
    passage: &mut ForwardCtx<'_>,
) -> (usize, Option<Held>) {
    let burst = passage.burst;
    let frames = &burst.frames[..];
    let interface = passage.interface.map(InterfaceFrames::of);
    let mut decide = |frame: &Frame| match frame.status {
        FrameStatus::Fine => {
            let packet = Packet { frame, burst };
            match &interface {
                None => RouteKey::new(function.decide(&packet), frame.vid),
                Some(interface) => {
                    interface.decide(frame, || RouteKey::new(function.decide(&packet), frame.vid))
                }
            }
        }
        _ => RouteKey::NONE,
    };
    let mut begin = 0;
    let mut next = frames.first().map(&mut decide);
    while let Some(course) = next {
        let mut end = begin + 1;
        // A packet that has gone half its way goes the rest alone.
        let alone = begin == 0 && !passage.reached.is_empty();
        next = loop {
            match frames.get(end).map(&mut decide) {
                Some(same) if same == course && !alone => end += 1,
                other => break other,
            }
        };
        // What goes nowhere costs nothing, and where its slots begin is not known.
        if let Some(way) = course.way() {
            passage.kept_to_link = course.is_kept_to_link();
            if begin > 0 && passage.yields && passage.budget.is_spent() {
                return (begin, Some(Held::default()));
            }
            if let Err((sent, held)) = passage.dispatch(way, &frames[begin..end]) {
                return (begin + sent, Some(held));
            }
        }
        if alone {
            passage.reached = PortSet::default();
        }
        begin = end;
    }
    if let Some(InterfaceFrames { came_back, probe, .. }) = &interface {
        (passage.came_back, passage.probe) = (came_back.get(), probe.get());
    }
    (frames.len(), None)
}

impl ForwardCtx<'_> {
    /// Hands a run of packets over. A receiver that is full counts what it loses.
    fn dispatch(&mut self, way: Verdict, run: &[Frame]) -> Result<(), Stop> {
        if way == Verdict::Flood {
            self.flooded += run.len() as u64;
            if let (Some(_), Some(last)) = (self.interface, run.last()) {
                self.flooded_in = vlan_of(last);
            }
        }
        match way {
            Verdict::Port(port) => self.send_to(port, self.burst.source.ring, run),
            Verdict::Ring(port, ring) => self.send_to(port, ring.into(), run),
            Verdict::Flood if self.snooping.is_some() => self.flood_to_members(run),
            Verdict::Flood => self.flood_run(run),
            Verdict::Drop => {
                self.rewrite.drops.filtered += run.len() as u64;
                Ok(())
            }
        }
    }

    /// Floods packets to all ports, or those for groups to the ports of their members.
    #[inline(never)]
    fn flood_to_members(&mut self, run: &[Frame]) -> Result<(), Stop> {
        let mut begin = 0;
        let mut next = run.first().and_then(|frame| self.scope(frame));
        while begin < run.len() {
            if begin > 0 && self.yields && self.budget.is_spent() {
                return Err((begin, Held::default()));
            }
            self.only = next;
            let mut end = begin + 1;
            while let Some(frame) = run.get(end) {
                next = self.scope(frame);
                if next != self.only {
                    break;
                }
                end += 1;
            }
            let outcome = self.flood_run(&run[begin..end]);
            self.only = None;
            outcome.map_err(|(done, held)| (begin + done, held))?;
            begin = end;
        }
        Ok(())
    }

    /// The ports that get a frame which is flooded, if not all.
    fn scope(&mut self, frame: &Frame) -> Option<PortSet> {
        self.snooping.as_mut()?.scope(frame, self.burst, self.now, self.budget)
    }

    fn flood_run(&mut self, run: &[Frame]) -> Result<(), Stop> {
        if self.storm.is_some() {
            self.flood_within_limit(run)
        } else {
            self.flood_as_afforded(run)
        }
    }

    /// Floods what the port may, and drops the rest.
    #[inline(never)]
    fn flood_within_limit(&mut self, run: &[Frame]) -> Result<(), Stop> {
        // What has gone a part of its way was paid for then.
        if !self.reached.is_empty() {
            return self.flood_as_afforded(run);
        }
        let Some(mut allowance) = self.storm.as_mut().map(|storm| storm.allowance()) else {
            return self.flood_as_afforded(run);
        };
        let mut begin = 0;
        while begin < run.len() {
            if begin > 0 && self.yields && self.budget.is_spent() {
                return Err((begin, Held::default()));
            }
            let end = begin + allowance.take(&run[begin..]);
            if begin < end {
                self.flood_and_pay(&run[begin..end])
                    .map_err(|(done, held)| (begin + done, held))?;
            }
            begin = end + allowance.refuse(&run[end..], self.rewrite.drops);
        }
        Ok(())
    }

    /// Floods what the port's limits let pass: what has reached a port is paid for.
    fn flood_and_pay(&mut self, run: &[Frame]) -> Result<(), Stop> {
        let outcome = self.flood_as_afforded(run);
        let flooded = match &outcome {
            Ok(()) => run.len(),
            Err((done, held)) => done + usize::from(!held.reached.is_empty()),
        };
        if let Some(storm) = &mut self.storm {
            storm.pay(&run[..flooded]);
        }
        outcome
    }

    /// Floods the run until the turn's budget is spent; the whole run if the source cannot wait.
    fn flood_as_afforded(&mut self, run: &[Frame]) -> Result<(), Stop> {
        if !self.yields {
            self.flood(run);
            return Ok(());
        }
        let now = if self.waits || !self.reached.is_empty() {
            0
        } else {
            self.affords(run, self.flood_copies)
        };
        let (run, rest) = run.split_at_checked(now).unwrap_or((run, &[]));
        if !run.is_empty() {
            self.flood(run);
        }
        for (i, frame) in (run.len()..).zip(rest) {
            if i > 0 && self.budget.is_spent() {
                return Err((i, Held::default()));
            }
            self.flood_in_steps(frame).map_err(|held| (i, held))?;
        }
        Ok(())
    }

    /// How many packets of a run may be delivered to so many ports, or to one and so many monitors.
    /// What is converted costs more than its copy.
    fn affords(&self, run: &[Frame], copies: u64) -> usize {
        let conversion = if self.burst.source.header_len == 0 { 1 } else { CONVERSION };
        self.budget.affords(run.iter().map(|frame| frame.len), copies * conversion)
    }

    fn flood(&mut self, run: &[Frame]) {
        self.budget.charge_ports(self.attached);
        let mut reached = self.beside.is_some();
        for (port, to) in (0..).zip(self.others.iter_mut()) {
            let Some(to) = to.as_deref_mut().filter(|_| self.beside != Some(port)) else {
                continue;
            };
            if to.receives()
                && !(self.kept_to_link && to.config.is_interface)
                && !(self.isolated && to.config.isolated)
                && self.only.is_none_or(|only| only.contains(port))
                && carries(&self.rewrite.retagged, to, run)
            {
                deliver(to, (0, true), run, self.burst, &mut self.rewrite, self.budget);
                reached = true;
            }
        }
        self.count_unless(reached, run);
    }

    fn send_to(&mut self, port: PortIndex, ring: usize, run: &[Frame]) -> Result<(), Stop> {
        if self.beside == Some(port) {
            return Ok(());
        }
        let to = self.others.get_mut(usize::from(port)).and_then(Option::as_deref_mut);
        let Some(to) = to.filter(|to| to.receives()) else {
            self.count_unless(false, run);
            return Ok(());
        };
        if !carries(&self.rewrite.retagged, to, run) {
            to.totals.drops.vlan += run.len() as u64;
            return Ok(());
        }
        if self.isolated && to.config.isolated {
            self.rewrite.drops.filtered += run.len() as u64;
            return Ok(());
        }
        // All of a burst may be copied once in a turn.
        let copied_once = to.copies == 1 && to.config.header_len == self.burst.source.header_len;
        if !self.waits && (copied_once || !self.yields) && self.reached.is_empty() {
            deliver(to, (ring, false), run, self.burst, &mut self.rewrite, self.budget);
            return Ok(());
        }
        let reached = std::mem::take(&mut self.reached);
        if reached.contains(port) {
            return Ok(());
        }
        let copies = to.copies + u64::from(!copied_once) * CONVERSION;
        let lengths = run.iter().map(|frame| frame.len);
        let all = copied_once || !self.yields;
        let afforded = if all { run.len() } else { self.budget.affords(lengths, copies).max(1) };
        let now = &run[..afforded];
        let fitting = to.admit(ring, now, self.burst, self.now, true, self.budget);
        deliver(to, (ring, false), &now[..fitting], self.burst, &mut self.rewrite, self.budget);
        let Some(frame) = run.get(fitting) else { return Ok(()) };
        let stall = (fitting < now.len()).then(|| {
            let ring = to.lossless_queue_of(ring);
            Stall { to: port, ring, count: to.needs(ring, frame, self.burst) }
        });
        Err((fitting, Held { stall, reached }))
    }

    /// Floods a packet to those who have room, as far as the turn goes, and waits for the first that
    /// has none.
    fn flood_in_steps(&mut self, frame: &Frame) -> Result<(), Held> {
        let mut reached = std::mem::take(&mut self.reached);
        if let Some(beside) = self.beside {
            reached.insert(beside);
        }
        self.budget.charge_ports(self.attached);
        let mut missing = None;
        let mut done = false;
        for (port, to) in (0..).zip(self.others.iter_mut()) {
            let Some(to) = to.as_deref_mut().filter(|to| to.receives()) else { continue };
            let frame = std::slice::from_ref(frame);
            if reached.contains(port)
                || self.kept_to_link && to.config.is_interface
                || self.isolated && to.config.isolated
                || self.only.is_some_and(|only| !only.contains(port))
                || !carries(&self.rewrite.retagged, to, frame)
            {
                continue;
            }
            if done && self.budget.is_spent() {
                // Who is queued is held, whatever else there is to do.
                return Err(Held { stall: missing, reached });
            }
            let queue = missing.is_none();
            if to.admit(0, frame, self.burst, self.now, queue, self.budget) == 1 {
                deliver(to, (0, true), frame, self.burst, &mut self.rewrite, self.budget);
                reached.insert(port);
                done = true;
            } else {
                self.budget.charge_offer(1, Delivered::default(), 0);
                let ring = to.lossless_queue_of(0);
                let count = to.needs(ring, &frame[0], self.burst);
                missing = missing.or(Some(Stall { to: port, ring, count }));
            }
        }
        self.count_unless(missing.is_some() || !reached.is_empty(), std::slice::from_ref(frame));
        if missing.is_some() { Err(Held { stall: missing, reached }) } else { Ok(()) }
    }

    fn count_unless(&mut self, reached: bool, run: &[Frame]) {
        if self.only.is_some() {
            // What no port has asked for is not lost.
            return;
        }
        if !reached && (self.kept_to_link || self.isolated) {
            self.rewrite.drops.filtered += run.len() as u64;
        } else if !reached {
            self.rewrite.drops.no_destination += run.len() as u64;
        }
    }
}

fn sender(burst: &Burst<'_>) -> Sender {
    (burst.source.port, burst.source.ring)
}

/// Whether the frames of `run`, if VLANs matter, belong to one that the port is in.
fn carries(retagged: &Option<&mut Vec<Frame>>, to: &BridgePort, run: &[Frame]) -> bool {
    retagged.is_none() || run.first().is_some_and(|frame| to.vlans.has(frame.vid))
}

/// `to_all`: other ports may get them as well.
pub(crate) fn deliver(
    to: &mut BridgePort,
    (ring, to_all): (usize, bool),
    run: &[Frame],
    burst: &Burst<'_>,
    rewrite: &mut TxRewrite<'_>,
    budget: &mut Budget,
) {
    let TxRewrite { retagged, converter, drops } = rewrite;
    to.in_hand = true;
    let run = match retagged {
        None => run,
        Some(room) => {
            to.vlans.retag(run, burst, room, &mut to.totals.drops);
            if let Some(filter) = &to.filter_out {
                filter.retain(room, burst, &mut to.totals.drops, budget);
            }
            &room[..]
        }
    };
    let alike = to.config.header_len == burst.source.header_len && !burst.apart;
    // Behind a header, a tag is for the converter to move.
    let edited = burst.source.header_len != 0 && run.iter().any(|frame| frame.skip != 0);
    let delivered = if alike && !edited {
        if to_all || !to.config.swap_buffers {
            to.port.deliver(ring, run, burst, &mut to.totals.drops)
        } else {
            to.port.hand_over(ring, run, burst, &mut to.totals.drops)
        }
    } else {
        converter.deliver(to, ring, run, burst, drops, budget)
    };
    budget.charge_offer(run.len(), delivered, to.copies);
    let Delivered { packets, bytes } = delivered;
    to.totals.received_packets += packets;
    to.totals.received_bytes += bytes;
    // Also if it had no room: its program is told.
    to.dirty = true;
    to.in_hand = false;
}

/// Counts what a port has sent, once its slots are given back.
pub(crate) fn account(frames: &[Frame], totals: &mut Totals) {
    let mut odd = false;
    for frame in frames {
        totals.sent_bytes += u64::from(frame.len);
        odd |= frame.status != FrameStatus::Fine || frame.bad_slots != 0;
    }
    totals.sent_packets += frames.len() as u64;
    if odd {
        for frame in frames {
            totals.drops.bad_slot += u64::from(frame.bad_slots);
            match frame.status {
                FrameStatus::Fine => {}
                FrameStatus::TooShort => totals.drops.too_short += 1,
                FrameStatus::Vlan => totals.drops.vlan += 1,
                FrameStatus::Spoofed => totals.drops.spoofed += 1,
                FrameStatus::Denied => totals.drops.denied += 1,
                FrameStatus::BadSource => totals.drops.bad_source += 1,
                FrameStatus::OverRate => totals.drops.over_rate += 1,
                FrameStatus::BadSlot => {
                    totals.drops.bad_slot += 1;
                    totals.sent_packets -= 1;
                }
                FrameStatus::TooLong => {
                    totals.drops.too_long += 1;
                    totals.sent_packets -= 1;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_tells_each_way_from_the_others() {
        let ports = [0, 1, 253].map(Verdict::Port);
        let rings = [(0, 0), (0, 1), (253, 0), (253, 255), (1, u16::MAX)]
            .map(|(port, ring)| Verdict::Ring(port, ring));
        let ways: Vec<_> =
            ports.into_iter().chain(rings).chain([Verdict::Flood, Verdict::Drop]).collect();
        let mut keys = Vec::new();
        for vid in [0, 1, 4094] {
            for way in &ways {
                let key = RouteKey::new(*way, vid);
                assert_eq!(key.way(), Some(*way));
                assert!(!key.is_kept_to_link());
                let kept = key.kept_to_link();
                assert_eq!(kept.way(), Some(*way));
                assert_eq!(kept.is_kept_to_link(), *way == Verdict::Flood, "{way:?}");
                assert!(kept.0 == key.0 || kept.is_kept_to_link());
                keys.extend([key.0, kept.0]);
            }
        }
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), 3 * (ways.len() + 1), "a flood has two");
        assert_eq!(RouteKey::NONE.way(), None);
        assert!(!keys.contains(&RouteKey::NONE.0));
    }

    /// What is counted of frames of each status, alone and behind fine ones.
    #[test]
    fn each_frame_is_counted_once() {
        let frame = |status, len, bad_slots| {
            let mut burst = Burst::default();
            burst.close(0, 0, bad_slots, status);
            Frame { len, ..burst.frames[0] }
        };
        let fine = frame(FrameStatus::Fine, 60, 0);
        let drops = Drops::default();
        let cases = [
            (fine, 1, 60, drops),
            (frame(FrameStatus::Fine, 60, 2), 1, 60, Drops { bad_slot: 2, ..drops }),
            (frame(FrameStatus::TooShort, 0, 0), 1, 0, Drops { too_short: 1, ..drops }),
            (
                frame(FrameStatus::TooShort, 0, 3),
                1,
                0,
                Drops { too_short: 1, bad_slot: 3, ..drops },
            ),
            (frame(FrameStatus::Vlan, 60, 0), 1, 60, Drops { vlan: 1, ..drops }),
            (frame(FrameStatus::Spoofed, 60, 0), 1, 60, Drops { spoofed: 1, ..drops }),
            (frame(FrameStatus::Denied, 60, 0), 1, 60, Drops { denied: 1, ..drops }),
            (frame(FrameStatus::BadSource, 60, 0), 1, 60, Drops { bad_source: 1, ..drops }),
            (frame(FrameStatus::OverRate, 60, 0), 1, 60, Drops { over_rate: 1, ..drops }),
            (frame(FrameStatus::BadSlot, 0, 0), 0, 0, Drops { bad_slot: 1, ..drops }),
            (frame(FrameStatus::TooLong, 0, 0), 0, 0, Drops { too_long: 1, ..drops }),
        ];
        for (frame, packets, bytes, drops) in cases {
            let mut totals = Totals { sent_packets: 10, sent_bytes: 1000, ..Totals::default() };
            account(&[fine, frame, frame], &mut totals);
            let twice = |count: u64| 2 * count;
            assert_eq!(totals.sent_packets, 11 + twice(packets), "{:?}", frame.status);
            assert_eq!(totals.sent_bytes, 1060 + twice(bytes), "{:?}", frame.status);
            let expected = Drops {
                bad_slot: twice(drops.bad_slot),
                too_short: twice(drops.too_short),
                too_long: twice(drops.too_long),
                vlan: twice(drops.vlan),
                spoofed: twice(drops.spoofed),
                over_rate: twice(drops.over_rate),
                denied: twice(drops.denied),
                bad_source: twice(drops.bad_source),
                ..drops
            };
            assert_eq!(totals.drops, expected, "{:?}", frame.status);
        }
    }
}
