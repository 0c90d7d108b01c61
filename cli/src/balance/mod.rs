//! Shares the packets of one port out over groups of others.
//!
//! A packet goes to one output of the first group. When that output's consumer has released it, it
//! goes on to the next group, so that each group sees all packets. In the input's region nothing is
//! copied: buffers are exchanged. Outputs in other regions get copies; they are in no group but the last.

pub mod chooser;
mod output;
mod presence;

use crate::error::Result;
use crate::run_loop::RunLoop;
use chooser::{Chooser, LOOKED_AT, scaled};
pub use output::{Counters, Output};
use output::{Hand, Parcel, Stock};
pub use presence::Presence;
use ringway::{Interest, Port};
use std::time::{Duration, Instant};

/// Buffers taken at once from the longest queue when there are no more, and those that it keeps.
const REVOKED: usize = 150;
const KEPT: usize = 64;
/// Between two looks when nothing happens.
const PATIENCE: Duration = Duration::from_secs(1);

/// Who gets a packet, of the first group.
pub enum Share {
    /// One output, or the two of its addresses.
    One(Chooser),
    /// Every output.
    All,
}

/// What has been counted at the input.
#[derive(Clone, Copy, Debug, Default)]
pub struct Received {
    pub packets: u64,
    pub bytes: u64,
    pub non_ip: u64,
}

pub struct Balancer {
    pub input: Port,
    groups: Vec<Vec<Output>>,
    share: Share,
    stock: Stock,
    received: Received,
    presence: Option<Presence>,
    /// Packets taken before outputs are looked at.
    batch: u32,
    /// Looks at everything all the time instead of sleeping.
    busy: bool,
}

impl Balancer {
    /// The buffers of `stock` belong to the input's region, and go back to the input at the end.
    pub fn new(input: Port, stock: Vec<u32>, groups: Vec<Vec<Output>>, share: Share) -> Balancer {
        Balancer {
            input,
            groups,
            share,
            stock,
            received: Received::default(),
            presence: None,
            batch: 1024,
            busy: false,
        }
    }

    pub fn with_batch(self, batch: u32, busy: bool) -> Balancer {
        Balancer { batch, busy, ..self }
    }

    /// The share of outputs without a program at the other end goes to the others.
    pub fn with_presence(self, presence: Presence) -> Balancer {
        Balancer { presence: Some(presence), ..self }
    }

    pub fn outputs(&self) -> impl Iterator<Item = &Output> {
        self.groups.iter().flatten()
    }

    pub fn received(&self) -> Received {
        self.received
    }

    /// Extra buffers that nothing waits in.
    pub fn free_buffers(&self) -> usize {
        self.stock.len()
    }

    pub fn total(&self) -> Counters {
        let mut total = Counters::default();
        self.outputs().for_each(|output| total += output.counters);
        total
    }

    /// Shares out until the run is over. `report` is called again and again; it says when it is to be
    /// called at the latest.
    pub fn run(
        &mut self,
        run_loop: &RunLoop,
        mut report: impl FnMut(&Balancer, Instant) -> Result<Option<Instant>>,
    ) -> Result<()> {
        let mut now = run_loop.start;
        while !run_loop.is_over(now) {
            let moved = self.receive(now - run_loop.start) + self.hand_over();
            now = Instant::now();
            let due = report(self, now)?;
            if moved == 0 && !self.busy {
                self.wait(run_loop, due.unwrap_or(now + PATIENCE))?;
                now = Instant::now();
            }
        }
        Ok(())
    }

    /// Takes up to a batch of packets in and gives each to outputs of the first group; returns the
    /// slots that were taken.
    fn receive(&mut self, now: Duration) -> u32 {
        let Balancer { input, groups, share, stock, received, presence, .. } = self;
        if let (Share::One(chooser), Some(presence)) = (&mut *share, presence) {
            presence.update(chooser);
        }
        let (mut taken, mut left) = (0, self.batch);
        let mut bytes = [0; LOOKED_AT];
        for ring in 0..input.rx_rings() {
            let mut rx = input.rx(ring);
            rx.sync();
            let mut slots = rx.slots();
            let (mut at, end) = (0, slots.held());
            while at < end && left > 0 {
                received.packets += 1;
                received.bytes += u64::from(slots.get(at).len);
                let parcel = match share {
                    Share::One(chooser) => {
                        let read = slots.read(at, &mut bytes);
                        let choice = chooser.choose(&bytes[..read], now);
                        received.non_ip += u64::from(!choice.is_ip);
                        let parcel = Parcel::find(&slots, at, end, choice.hash);
                        if let Some(also) = choice.also {
                            make_room(groups, stock, also, parcel.count);
                            groups[0][also].take(&mut slots, parcel, stock, Hand::Copy);
                        }
                        make_room(groups, stock, choice.output, parcel.count);
                        groups[0][choice.output].take(&mut slots, parcel, stock, Hand::Exchange);
                        parcel
                    }
                    Share::All => {
                        let parcel = Parcel::find(&slots, at, end, 0);
                        let last = groups[0].len() - 1;
                        for to in 0..=last {
                            make_room(groups, stock, to, parcel.count);
                            let hand = if to == last { Hand::Exchange } else { Hand::Copy };
                            groups[0][to].take(&mut slots, parcel, stock, hand);
                        }
                        parcel
                    }
                };
                at += parcel.count;
                left -= 1;
            }
            slots.advance(at);
            taken += at;
        }
        taken
    }

    /// Gives the consumers what is theirs, and the next group what they have released; returns
    /// the slots that moved.
    fn hand_over(&mut self) -> u32 {
        let mut moved = 0;
        for at in 0..self.groups.len() {
            for output in 0..self.groups[at].len() {
                let from = &self.groups[at][output];
                let always = self.busy || from.queued() > 0 || from.is_busy();
                moved += settle(&mut self.groups, &mut self.stock, at, output, always);
            }
        }
        // The outputs first: buffers of theirs are on their way back.
        for ring in 0..self.input.rx_rings() {
            self.input.rx(ring).sync();
        }
        moved
    }

    /// Waits for packets, and for room where some are queued or are to be passed on.
    fn wait(&mut self, run_loop: &RunLoop, until: Instant) -> Result<()> {
        let last = self.groups.len() - 1;
        let mut wanted = vec![(&mut self.input, Interest::Rx)];
        for (at, group) in self.groups.iter_mut().enumerate() {
            for output in group {
                if output.queued() > 0 || (at < last && output.is_busy()) {
                    output.await_release();
                    wanted.push((&mut output.port, Interest::Tx));
                }
            }
        }
        run_loop.wait(&mut wanted, until)
    }

    /// Waits until the consumers have taken everything, as long as they take something, and ends files
    /// that are written.
    pub fn finish(&mut self, run_loop: &RunLoop) -> Result<()> {
        let mut give_up = Instant::now() + PATIENCE;
        while !run_loop.is_interrupted() && Instant::now() < give_up {
            if self.hand_over() > 0 {
                give_up = Instant::now() + PATIENCE;
                continue;
            }
            let outputs = self.groups.iter_mut().flatten();
            let mut busy: Vec<_> = outputs
                .filter(|output| output.queued() > 0 || output.is_busy())
                .map(|output| {
                    output.await_release();
                    (&mut output.port, Interest::Tx)
                })
                .collect();
            if busy.is_empty() {
                break;
            }
            run_loop.wait(&mut busy, give_up)?;
        }
        let outputs = self.groups.iter_mut().flatten();
        let written: Vec<_> = outputs.map(|output| output.port.finish_file()).collect();
        written.into_iter().try_for_each(|written| Ok(written?))
    }

    /// Returns all buffers to where they came from.
    pub fn close(&mut self) {
        self.groups.iter_mut().flatten().for_each(|output| output.abandon(&mut self.stock));
        self.input.return_extra_bufs(self.stock.drain(..));
    }
}

/// Before an output of the first group takes so many slots: what makes room in its ring, or buffers to
/// wait in.
fn make_room(groups: &mut [Vec<Output>], stock: &mut Stock, output: usize, slots: u32) {
    if groups[0][output].is_congested(slots) {
        settle(groups, stock, 0, output, true);
    }
    if groups[0][output].is_congested(slots) {
        replenish(groups, stock, slots as usize);
    }
}

/// Has an output and its consumer exchange what they have for each other, passes on to the next
/// group what was released, and fills the room with what waits; returns the slots that moved.
fn settle(
    groups: &mut [Vec<Output>],
    stock: &mut Stock,
    group: usize,
    output: usize,
    always: bool,
) -> u32 {
    groups[group][output].sync(always);
    if group + 1 < groups.len() {
        let released = groups[group][output].new_releases();
        let congested = groups[group + 1].iter().any(|next| next.is_congested(released));
        if released > 0 && congested {
            replenish(groups, stock, released as usize);
        }
    }
    let (before, after) = groups.split_at_mut(group + 1);
    let this = &mut before[group][output];
    let mut moved = this.released(|slots, parcel| {
        if let Some(next) = after.first_mut() {
            let to = scaled(parcel.hash, next.len());
            next[to].take(slots, parcel, stock, Hand::Exchange);
        }
    });
    moved += this.drain(stock);
    this.sync(false);
    moved
}

/// Takes buffers from the longest queue if there are too few.
fn replenish(groups: &mut [Vec<Output>], stock: &mut Stock, wanted: usize) {
    if stock.len() >= wanted {
        return;
    }
    if let Some(longest) = groups.iter_mut().flatten().max_by_key(|output| output.queued()) {
        let count = longest.queued().saturating_sub(KEPT).min(REVOKED);
        longest.revoke(count, stock);
    }
}
