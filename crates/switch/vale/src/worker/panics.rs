//! A panic of the worker costs the ports that it had in hand, and no others.
//!
//! No port is meant to be able to make the worker panic; one that does has met a bug. The port whose
//! turn it was, and the one that was given packets, are given up: the worker does not touch them any
//! more, and their owner is told. The state of the others is their own, so they go on. Where no port
//! can be named, the worker ends, and all its ports are lost.
#![expect(
    clippy::indexing_slicing,
    reason = "`members` and `counters` have as many entries, and the index is that of an entry"
)]

use std::panic::{AssertUnwindSafe, catch_unwind};

use ringway_switch_port::{Burst, PortIndex};
use rustix::{event::epoll, fd::AsFd};

use super::Worker;
use crate::{bridge_port::BridgePort, budget::Budget, vnet::Converter};

impl Worker {
    /// Until it is told to stop, or a panic leaves it without a port to blame.
    pub fn run(mut self) {
        loop {
            match catch_unwind(AssertUnwindSafe(|| self.serve_all())) {
                Ok(()) => return,
                Err(_) => {
                    let recovered = catch_unwind(AssertUnwindSafe(|| self.give_up_ports()));
                    if !recovered.unwrap_or(false) {
                        return self.casualties.add([], true);
                    }
                }
            }
        }
    }

    /// As [`serve_rings`](Self::serve_rings). A port over which that panics is marked, and has nothing
    /// more to send.
    pub(super) fn turn(
        &mut self,
        index: PortIndex,
        source: &mut BridgePort,
        budget: &mut Budget,
    ) -> bool {
        let serve = || self.serve_rings(index, source, budget);
        catch_unwind(AssertUnwindSafe(serve)).unwrap_or_else(|_| {
            source.in_hand = true;
            self.panicked = true;
            false
        })
    }

    /// Gives up the ports that were in hand when the worker panicked. False: there were none.
    pub(super) fn give_up_ports(&mut self) -> bool {
        self.panicked = false;
        // What was under way is lost.
        (self.spare, self.converter) = (Burst::default(), Converter::default());
        self.retagged.clear();
        self.copy.clear();
        let mut lost = Vec::new();
        for (index, place) in self.members.iter_mut().enumerate() {
            // One that is missing was in hand, unless its place is empty, or kept for one lost before.
            let is_missing = place.is_none() && self.counters[index].is_some();
            let was_in_hand = place.as_ref().is_some_and(|member| member.in_hand);
            if !(was_in_hand || is_missing && !self.lost.contains(&(index as PortIndex))) {
                continue;
            }
            if let Some(member) = place.take() {
                // One that is missing has a doorbell here that means nothing any more.
                let _ = epoll::delete(&self.epoll, member.port.doorbell().as_fd());
            }
            lost.push(index as PortIndex);
        }
        for &index in &lost {
            let waiting =
                self.members.iter_mut().flatten().flat_map(|member| &mut member.lossless_queues);
            waiting.for_each(|lossless| lossless.forget(index));
            self.forget(index);
        }
        self.refresh_flags();
        self.lost.extend(&lost);
        let found = !lost.is_empty();
        if found {
            self.casualties.add(lost, false);
        }
        found
    }
}
