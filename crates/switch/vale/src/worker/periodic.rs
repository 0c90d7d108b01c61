//! What the worker does from time to time: it looks at the clock, asks hosts for their groups, and looks for loops.

use ringway_switch_port::{Drops, PortIndex, Source};

use super::Worker;
use crate::{
    budget::Budget,
    forward::{TxRewrite, deliver},
    multicast::Outgoing,
};

impl Worker {
    pub(super) fn look_at_clock(&mut self) {
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
    pub(super) fn ask_for_groups(&mut self) {
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
    pub(super) fn show_probe(&self) {
        if let Some(fast) = &self.fast {
            fast.set_probe(self.probe.secret());
        }
    }

    /// Blocks the first of two interfaces, by which what has left by the other has come back, unless another switch
    /// is about to.
    #[cold]
    pub(super) fn block(&mut self, [port, other]: [PortIndex; 2]) {
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
}
