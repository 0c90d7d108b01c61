//! Where packets go: the forwarding function decides, the others receive.
#![expect(
    clippy::indexing_slicing,
    reason = "runs of a burst lie within it, and `admit` takes no more frames than it is given"
)]

use crate::{
    beside::Passed,
    bridge_port::{BridgePort, Members},
    budget::Budget,
    clock::Millis,
    counters::Totals,
    function::{Forward, Packet, Verdict},
    lossless_queue::{Held, PortSet, Stall},
    multicast::{Scope, Snooping},
    storm::Storm,
    switch_mirror::Mirroring,
    vlan::vlan_of,
    vnet::Converter,
};
use ringway_switch_port::{Burst, Delivered, Drops, Frame, FrameStatus, PortIndex, link_local};

/// What else is looked at if the source is an interface.
#[derive(Clone, Copy)]
pub(crate) struct FromInterface {
    /// The link-local groups that it passes on to others.
    pub groups: u16,
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
    /// How many of them send it by a system call.
    pub flood_calls: u64,
    /// If it comes from an interface.
    pub interface: Option<FromInterface>,
    /// Whether the source is kept from those that are isolated, too.
    pub isolated: bool,
    /// If it may not flood as much as it likes.
    pub storm: Option<&'a mut Storm>,
    /// The port that has the packets already, where they are for it, too.
    pub beside: Passed,
    /// Frames that were flooded.
    pub flooded: u64,
    /// The VLAN of the last of them, where they come from an interface.
    pub flooded_in: u16,
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
    /// Ports whose frames of a VLAN have no tag get those of the burst as they are: it has no tags, or these are not
    /// looked at.
    pub untagged: bool,
    pub converter: &'a mut Converter,
    /// If there are mirrors that may show what is sent.
    pub mirroring: Option<&'a mut Mirroring>,
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

impl FromInterface {
    /// The way of a frame: that of `decide`, and to other interfaces only if it is not for its link alone.
    #[inline(never)]
    fn decide(&self, frame: &Frame, decide: impl FnOnce() -> RouteKey) -> RouteKey {
        let is_kept = |last| self.groups >> last & 1 == 0;
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
    let interface = passage.interface;
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
        let mut next = run.first().map(|frame| self.scope(frame)).unwrap_or_default();
        while begin < run.len() {
            if begin > 0 && self.yields && self.budget.is_spent() {
                return Err((begin, Held::default()));
            }
            let scope = next;
            let mut end = begin + 1;
            while let Some(frame) = run.get(end) {
                next = self.scope(frame);
                if next != scope || scope.query.is_some() {
                    break;
                }
                end += 1;
            }
            let heard = scope.query.filter(|_| self.may_flood(&run[begin..end]));
            self.only = scope.only;
            let outcome = self.flood_run(&run[begin..end]);
            self.only = None;
            outcome.map_err(|(done, held)| (begin + done, held))?;
            if let Some(heard) = heard {
                let missed = self.missed(&run[begin]);
                if let Some(snooping) = &mut self.snooping {
                    snooping.note_heard(heard, missed, self.now);
                }
            }
            begin = end;
        }
        Ok(())
    }

    fn scope(&mut self, frame: &Frame) -> Scope {
        let scope = |it: &mut &mut Snooping| {
            it.scope(frame, self.burst, self.beside.all, self.now, self.budget)
        };
        self.snooping.as_mut().map(scope).unwrap_or_default()
    }

    /// Whether the port's limits let a frame pass, which is not counted. What has gone a part of its way was paid for.
    #[cold]
    fn may_flood(&mut self, frame: &[Frame]) -> bool {
        let is_paid = !self.reached.is_empty();
        self.storm.as_mut().is_none_or(|storm| is_paid || storm.allowance().take(frame) > 0)
    }

    /// The ports of a frame's VLAN that do not get it although it is flooded.
    #[cold]
    fn missed(&mut self, frame: &Frame) -> PortSet {
        let mut missed = PortSet::default();
        self.budget.charge_ports(self.attached);
        for (port, to) in (0..).zip(self.others.iter()) {
            let Some(to) = to.as_deref().filter(|_| self.beside.all != Some(port)) else {
                continue;
            };
            let filter = to.filter_out.as_ref();
            if let Some(filter) = filter {
                filter.charge(1, self.budget);
            }
            let passes = |frame: Frame| filter.is_none_or(|it| it.passes(&frame, self.burst));
            let gets_it = to.receives()
                && !(self.isolated && to.config.isolated)
                && to.vlans.retagged(frame, self.burst).is_some_and(passes);
            if to.vlans.has(frame.vid) && !gets_it {
                missed.insert(port);
            }
        }
        missed
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
            self.affords(run, self.flood_copies, self.flood_calls)
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

    /// How many packets of a run may be delivered to so many ports, or to one and so many monitors, and sent by so many
    /// system calls. What is converted costs more than its copy.
    fn affords(&self, run: &[Frame], copies: u64, calls: u64) -> usize {
        let conversion = if self.burst.source.header_len == 0 { 1 } else { CONVERSION };
        self.budget.affords(run.iter().map(|frame| frame.len), copies * conversion, calls)
    }

    fn flood(&mut self, run: &[Frame]) {
        self.budget.charge_ports(self.attached);
        let mut reached = self.beside.all.is_some();
        for (port, to) in (0..).zip(self.others.iter_mut()) {
            let Some(to) = to.as_deref_mut().filter(|_| self.beside.all != Some(port)) else {
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
        if self.beside.own == Some(port) {
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
        let afforded = match copied_once || !self.yields {
            true => run.len(),
            false => self.budget.affords(lengths, copies, to.calls).max(1),
        };
        let now = &run[..afforded];
        let fitting = to.admit(ring, now, self.burst, self.now, true, self.budget);
        deliver(to, (ring, false), &now[..fitting], self.burst, &mut self.rewrite, self.budget);
        let Some(frame) = run.get(fitting) else { return Ok(()) };
        let stall = (fitting < now.len()).then(|| {
            let ring = to.lossless_queue_of(ring);
            Stall { to: port, ring, count: to.needs(ring, frame, self.burst) }
        });
        Err((fitting, Held { stall, reached, ..Held::default() }))
    }

    /// Floods a packet to those who have room, as far as the turn goes, and waits for the first that
    /// has none.
    fn flood_in_steps(&mut self, frame: &Frame) -> Result<(), Held> {
        let mut reached = std::mem::take(&mut self.reached);
        if let Some(beside) = self.beside.all {
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
                return Err(Held { stall: missing, reached, ..Held::default() });
            }
            let queue = missing.is_none();
            if to.admit(0, frame, self.burst, self.now, queue, self.budget) == 1 {
                deliver(to, (0, true), frame, self.burst, &mut self.rewrite, self.budget);
                reached.insert(port);
                done = true;
            } else {
                self.budget.charge_offer(1, Delivered::default(), 0, 0);
                let ring = to.lossless_queue_of(0);
                let count = to.needs(ring, &frame[0], self.burst);
                missing = missing.or(Some(Stall { to: port, ring, count }));
            }
        }
        self.count_unless(missing.is_some() || !reached.is_empty(), std::slice::from_ref(frame));
        match missing {
            Some(_) => Err(Held { stall: missing, reached, ..Held::default() }),
            None => Ok(()),
        }
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
    let TxRewrite { retagged, untagged, converter, mirroring, drops } = rewrite;
    to.in_hand = true;
    let goes_as_it_is = || {
        let of_one_vlan = run.first().is_some_and(|frame| to.vlans.is_untagged(frame.vid));
        *untagged && of_one_vlan && to.filter_out.is_none()
    };
    let run = match retagged {
        None => run,
        Some(_) if goes_as_it_is() => run,
        Some(room) => {
            to.vlans.retag(run, burst, room, &mut to.totals.drops);
            if let Some(filter) = &to.filter_out {
                filter.retain(room, burst, &mut to.totals.drops, budget);
            }
            &room[..]
        }
    };
    if let Some(mirroring) = mirroring {
        mirroring.note_received(to.mirrors.of_received, run);
    }
    hand_to(to, (ring, to_all), run, burst, converter, drops, budget);
}

/// The same for frames that are as the port gets them.
#[inline(always)]
pub(crate) fn hand_to(
    to: &mut BridgePort,
    (ring, to_all): (usize, bool),
    run: &[Frame],
    burst: &Burst<'_>,
    converter: &mut Converter,
    drops: &mut Drops,
    budget: &mut Budget,
) -> Delivered {
    to.in_hand = true;
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
    budget.charge_offer(run.len(), delivered, to.copies, to.calls);
    let Delivered { packets, bytes } = delivered;
    to.totals.received_packets += packets;
    to.totals.received_bytes += bytes;
    // Also if it had no room: its program is told.
    to.dirty = true;
    to.in_hand = false;
    delivered
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
                FrameStatus::CameBack => totals.drops.filtered += 1,
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
            (frame(FrameStatus::CameBack, 60, 0), 1, 60, Drops { filtered: 1, ..drops }),
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
                filtered: twice(drops.filtered),
                denied: twice(drops.denied),
                bad_source: twice(drops.bad_source),
                ..drops
            };
            assert_eq!(totals.drops, expected, "{:?}", frame.status);
        }
    }
}
