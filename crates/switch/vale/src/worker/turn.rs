//! A port's turn: what its rings have sent is taken, looked at, and forwarded.
#![expect(
    clippy::indexing_slicing,
    reason = "`members` never shrinks, a port has a stall for each of its tx rings, and `forward` has sent no more frames than there are"
)]

use ringway_fastpath::FastPath;
use ringway_switch_port::{Burst, Delivered, FrameStatus, PortIndex, Source};

use super::Worker;
use crate::{
    beside::Passed,
    bridge_port::{BridgePort, Members, count_lost},
    budget::Budget,
    copies::hand_over_copies,
    forward::{ForwardCtx, FromInterface, TxRewrite, account, forward},
    forwarding::Function,
    lossless_queue::{Held, Sender, Stall},
    sources::check_interface,
};

impl Worker {
    /// Forwards what the port's rings have sent, until `budget` is spent. If it is, the next turn begins with the first
    /// ring that was not served, else with the ring behind the first that had sent something, as in a
    /// [round](Self::round). Returns whether any ring had sent something.
    pub(super) fn serve_rings(
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
            burst.per_frame = Budget::per_copy(self.flood_copies, self.flood_calls);
        }
        // One frame is taken at least, or none ever would be.
        burst.limit = burst.limit.max(1);
        let begun = if *is_fast { in_order.look(&self.fast, index, &mut **port) } else { None };
        let before = totals.drops.before_switch();
        let found = port.collect(ring, &mut burst, &mut totals.drops);
        totals.sent_packets += totals.drops.before_switch() - before;
        budget.charge_look(found);
        if found == 0 {
            self.spare = burst.recycle(from);
            if let (Some(begun), Some(fast)) = (begun, &self.fast) {
                let members = &mut self.members;
                let have_left = || have_left(members);
                if in_order.note_none(begun, self.now, index, fast, have_left) {
                    in_order.note_lost(count_lost(&mut **port, totals));
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
            totals.sent_bytes -= header_bytes(&burst, burst.frames.len());
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
            flood_calls: self.flood_calls,
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
        totals.sent_bytes -= header_bytes(&burst, sent);
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
}

/// Whether the kernel has taken all that was delivered where a program forwards beside the worker.
#[cold]
fn have_left(members: &mut Members) -> bool {
    members.iter_mut().flatten().filter(|member| member.is_fast).all(|member| member.has_left())
}

/// Bytes of the headers that a port's first `sent` frames have for the switch alone: its bytes are those on the wire.
#[inline]
pub(super) fn header_bytes(burst: &Burst<'_>, sent: usize) -> u64 {
    match u32::from(burst.source.header_len) {
        0 => 0,
        header => burst.frames[..sent].iter().map(|frame| u64::from(frame.len.min(header))).sum(),
    }
}

/// An address has moved to this port, or to any.
#[cold]
pub(super) fn note_moved(members: &mut Members, fast: Option<&FastPath>, to: Option<PortIndex>) {
    let Some(fast) = fast else { return };
    for (index, member) in (0..).zip(members) {
        if let Some(member) = member {
            member.beside.note_moved(to, || fast.begun_by_now(index));
        }
    }
}
