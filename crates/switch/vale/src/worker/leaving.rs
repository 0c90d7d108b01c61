//! A port that goes, or makes room for another: its program may have ended right after it had sent
//! something, which is forwarded first (S-VALE-5, S-LIFE-6).
//!
//! What it has sent by then is all that is forwarded: another holder of its memory may go on. Most of
//! the time this is done before the registry is answered. What takes longer is done in the port's
//! turns among those of the others; meanwhile it receives nothing, and has its place.
#![expect(
    clippy::indexing_slicing,
    reason = "`members` and `counters` have as many entries, never shrink, and the index is that of an entry"
)]

use ringway_switch_port::{Frame, FrameStatus, Port, PortIndex, Source};
use rustix::{event::epoll, fd::AsFd};

use super::{Worker, turn::header_bytes};
use crate::{
    bridge_port::BridgePort,
    budget::{Budget, Turn},
    clock::Millis,
    draining::{Leaving, Left, Remainder},
    forward::account,
};

/// A port that takes longer than this loses what is left: its packets are old by now.
const PATIENCE: Millis = 2000;

impl Worker {
    /// Begins to take a port out; `successor` is to have its place. False if there is no such port.
    pub(super) fn leave(
        &mut self,
        index: PortIndex,
        successor: Option<Box<dyn Port>>,
        remainder: Remainder,
        left: Left,
    ) -> bool {
        self.publish_counters();
        let place = usize::from(index);
        let Some(mut member) = self.members.get_mut(place).and_then(Option::take) else {
            if successor.is_none() && self.lost.contains(&index) {
                self.lost.retain(|lost| *lost != index);
                self.counters[place] = None;
            }
            return false;
        };
        match &mut member.leaving {
            Some(leaving) => {
                leaving.successor = successor;
                leaving.left.push(left);
            }
            None => {
                self.look_at_clock();
                let until = self.now + PATIENCE;
                member.port.seal();
                member.lossless_queues.clear();
                member.leaving = Some(Leaving { until, successor, left: vec![left] });
            }
        }
        let mut budget = Budget::new(Turn::LAST, self.clock.fine());
        while self.turn(index, &mut member, &mut budget) && !budget.is_spent() {}
        // A port that keeps nothing back, such as an interface, goes on for ever.
        let waits = remainder == Remainder::Forward && member.port.can_wait();
        if budget.is_spent() && waits {
            self.members[place] = Some(member);
        } else {
            if remainder == Remainder::Forward {
                self.lose_what_waits(&mut member);
            }
            self.finish(index, member);
        }
        if self.panicked {
            self.give_up_ports();
        }
        for other in self.members.iter_mut().flatten() {
            other.flush(true);
            other.complete(true);
        }
        true
    }

    /// A port that goes has had a turn, in which it has `worked` or had nothing to do any more.
    pub(super) fn after_turn(
        &mut self,
        index: PortIndex,
        mut member: Box<BridgePort>,
        worked: bool,
    ) {
        let over = |leaving: &Leaving| !worked || leaving.until <= self.now;
        if member.leaving.as_ref().is_some_and(over) {
            self.lose_what_waits(&mut member);
            self.finish(index, member);
        } else {
            self.members[usize::from(index)] = Some(member);
        }
    }

    /// What a program leaves in a ring whose first packet waits for a lossless port gives way to what others send:
    /// it is lost, and counted at that port. What it leaves in other rings when patience has ended is counted at its
    /// own. How much there is was [sealed](Self::leave).
    fn lose_what_waits(&mut self, member: &mut BridgePort) {
        let BridgePort { port, held, totals, config, .. } = member;
        let source = Source { header_len: config.header_len, ..Source::default() };
        for (ring, held) in held.iter().enumerate() {
            let stall = held.and_then(|held| held.stall);
            // Where nothing can be held back, more comes all the time.
            if stall.is_none() && !port.can_wait() {
                continue;
            }
            let has_reached = held.is_some_and(|held| !held.reached.is_empty());
            let mut lost = 0;
            loop {
                let mut burst = std::mem::take(&mut self.spare).recycle(source);
                burst.limit = u32::MAX;
                let found = port.collect(ring, &mut burst, &mut totals.drops);
                account(&burst.frames, totals);
                totals.sent_bytes -= header_bytes(&burst, burst.frames.len());
                let fine = |frame: &&Frame| frame.status == FrameStatus::Fine;
                lost += burst.frames.iter().filter(fine).count() as u64;
                self.spare = burst.recycle(Source::default());
                if found == 0 {
                    break;
                }
                port.release(ring);
            }
            match stall.and_then(|stall| self.members[usize::from(stall.to)].as_mut()) {
                Some(to) => to.totals.drops.ring_full += lost,
                None => totals.drops.no_destination += lost - u64::from(has_reached && lost > 0),
            }
        }
    }

    /// No sender waits for the port any more, and it waits for no receiver.
    fn finish(&mut self, index: PortIndex, mut member: Box<BridgePort>) {
        // A program that waits for what the port was given does not wait for us any more.
        member.flush(true);
        member.complete(true);
        member.discard();
        member.count_lost();
        member.count_learning(self.function.as_dyn().take_counters(index));
        let lossless_queues =
            self.members.iter_mut().flatten().flat_map(|member| &mut member.lossless_queues);
        lossless_queues.for_each(|lossless| lossless.forget(index));
        let successor = member.leaving.as_mut().and_then(|leaving| leaving.successor.take());
        match successor {
            Some(port) => {
                let mut new = BridgePort::new(port, member.config.clone(), self.clock.fine());
                new.go_on_from(member.totals);
                // Another port does not begin with another burst.
                (new.rate, new.storm) = (member.rate.take(), member.storm.take());
                (new.copies, new.shown, new.swaps) = (member.copies, member.shown, member.swaps);
                self.members[usize::from(index)] = Some(Box::new(new));
                if let Some(snooping) = &mut self.snooping {
                    snooping.forget(index);
                }
            }
            None => {
                self.forget(index);
                let _ = epoll::delete(&self.epoll, member.port.doorbell().as_fd());
                if let Some(counters) = self.counters[usize::from(index)].take() {
                    member.publish(index, self.fast.as_deref(), &counters);
                }
            }
        }
        let BridgePort { port, leaving, .. } = *member;
        match leaving.as_ref().and_then(|leaving| leaving.left.last()) {
            Some(left) if !port.can_wait() => left.hand_over(port),
            _ => drop(port),
        }
        // The owner hears of it when the port has been let go of.
        drop(leaving);
        self.refresh_flags();
    }
}
