//! One batch after another: from the input to the outputs, and from group to group.

use std::{ops::Range, time::Duration};

use ringway::{Interest, Port, Slots};

use crate::{
    bundle::Bundle,
    choose::{Choose, HEAD, LOOKED_AT, scaled},
    output::{Counters, Hand, Output, Stock},
    parcel::Parcel,
};

/// Buffers taken at once from the longest queue when there are no more, and those that it keeps.
const REVOKED: usize = 150;
const KEPT: usize = 64;
/// How many slots ahead of the present one packets are prefetched.
const AHEAD: u32 = 8;
/// Slots that an output's consumer may send in its turn.
const TURN: usize = 256;

/// Chooses the output of a packet, of the first group.
pub enum Share<C> {
    /// One output, or two.
    One(C),
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

pub struct Balancer<C> {
    pub input: Port,
    groups: Vec<Vec<Output>>,
    share: Share<C>,
    stock: Stock,
    bundle: Bundle,
    received: Received,
    /// Packets taken before outputs are looked at.
    batch: u32,
    /// Looks at outputs all the time.
    busy: bool,
    /// The input's ring that the next batch begins with.
    first_ring: usize,
    turn: Turn,
    /// Something waits to be sent for which the input has no room.
    lacks_room: bool,
}

/// Whose turn it is to send by the input, and how many slots are left of it.
#[derive(Clone, Copy)]
struct Turn {
    output: usize,
    left: usize,
}

impl Turn {
    fn of(output: usize) -> Turn {
        Turn { output, left: TURN }
    }
}

impl<C: Choose> Balancer<C> {
    /// The buffers of `stock` belong to the input's region, and go back to the input at the end.
    pub fn new(
        input: Port,
        stock: Vec<u32>,
        mut groups: Vec<Vec<Output>>,
        share: Share<C>,
    ) -> Balancer<C> {
        if let [before @ .., _] = &mut groups[..] {
            before.iter_mut().flatten().for_each(Output::passes_on);
        }
        Balancer {
            input,
            groups,
            share,
            stock,
            bundle: Bundle::default(),
            received: Received::default(),
            batch: 1024,
            busy: false,
            first_ring: 0,
            turn: Turn::of(0),
            lacks_room: false,
        }
    }

    /// At most so many packets at once; `busy` is for programs that do not sleep.
    pub fn with_batch(self, batch: u32, busy: bool) -> Balancer<C> {
        Balancer { batch, busy, ..self }
    }

    pub fn is_busy(&self) -> bool {
        self.busy
    }

    pub fn outputs(&self) -> impl Iterator<Item = &Output> {
        self.groups.iter().flatten()
    }

    pub fn outputs_mut(&mut self) -> impl Iterator<Item = &mut Output> {
        self.groups.iter_mut().flatten()
    }

    /// The input, and the ports of the outputs.
    pub fn ports_mut(&mut self) -> impl Iterator<Item = &mut Port> {
        let outputs = self.groups.iter_mut().flatten().map(|output| &mut output.port);
        std::iter::once(&mut self.input).chain(outputs)
    }

    /// The input was closed and is open again. What waits for outputs was in its old memory, and is dropped; `stock`
    /// is of the new one.
    pub fn input_reopened(&mut self, stock: Vec<u32>) {
        let Balancer { input, groups, stock: old, .. } = self;
        for output in groups.iter_mut().flatten() {
            output.revoke(output.queued(), old);
            output.reopened(input, false);
        }
        *old = stock;
        self.first_ring = 0;
    }

    /// The port of an output was closed, or is open again.
    pub fn output_reopened(&mut self, output: usize) {
        if let Some(output) = self.groups.iter_mut().flatten().nth(output) {
            output.reopened(&self.input, true);
        }
    }

    /// The outputs of the first group, to add and to remove some if it is the only one, and what shares out among them.
    pub fn first_group(&mut self) -> (&mut Vec<Output>, &mut Share<C>) {
        (&mut self.groups[0], &mut self.share)
    }

    /// The input; the outputs are closed.
    pub fn into_input(self) -> Port {
        self.input
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

    /// Takes up to a batch of packets in and gives each to outputs of the first group; returns the
    /// slots that were taken. Where the input has several rings, each begins a batch in its turn:
    /// so a busy one does not keep the others' packets waiting.
    pub fn receive(&mut self, now: Duration) -> u32 {
        let Balancer { input, groups, share, stock, bundle, received, first_ring, .. } = self;
        if let Share::One(chooser) = share {
            chooser.refresh();
        }
        // What the next group goes by stays with each packet.
        let bundles = groups.len() == 1;
        bundle.set_outputs(groups[0].len());
        let (mut taken, mut left) = (0, self.batch);
        let mut bytes = [0; LOOKED_AT];
        let rings = input.rx_rings();
        let begin = std::mem::take(first_ring).min(rings);
        for ring in (begin..rings).chain(0..begin) {
            let before = left;
            let mut rx = input.rx(ring);
            rx.sync();
            let mut slots = rx.slots();
            let (mut at, end) = (0, slots.held());
            while at < end && left > 0 {
                if bundles && let Share::One(chooser) = share {
                    let most = end.min(at.saturating_add(left));
                    let before = at;
                    at = gather(chooser, bundle, received, &slots, at..most);
                    left -= at - before;
                    if !bundle.reaches(at) {
                        hand_out(bundle, groups, stock, &mut slots);
                        continue;
                    }
                    if at == most {
                        break;
                    }
                }
                if at + AHEAD < end {
                    slots.prefetch(at + AHEAD);
                }
                let first = slots.get(at);
                received.packets += 1;
                received.bytes += u64::from(first.len);
                match share {
                    Share::One(chooser) => {
                        let read = slots.read(at, &mut bytes);
                        let choice = chooser.choose(&bytes[..read], now);
                        received.non_ip += u64::from(!choice.is_ip);
                        let parcel = Parcel::find(&slots, at, first, end, choice.hash);
                        received.bytes += parcel.bytes_behind_first(&slots);
                        at += parcel.count;
                        left -= 1;
                        let Some(mut output) = choice.output else { continue };
                        if bundles && parcel.count == 1 && choice.is_final() {
                            if !bundle.reaches(parcel.at) {
                                hand_out(bundle, groups, stock, &mut slots);
                            }
                            bundle.add(parcel.at, output);
                            continue;
                        }
                        hand_out(bundle, groups, stock, &mut slots);
                        if let Some(also) = choice.also {
                            make_room(groups, stock, also, parcel.count);
                            groups[0][also].take(&mut slots, parcel, stock, Hand::Copy);
                        }
                        make_room(groups, stock, output, parcel.count);
                        if choice.spills && groups[0][output].is_congested(parcel.count) {
                            output = with_room(groups, stock, output, parcel.count);
                        }
                        groups[0][output].take(&mut slots, parcel, stock, Hand::Exchange);
                    }
                    Share::All => {
                        let parcel = Parcel::find(&slots, at, first, end, 0);
                        received.bytes += parcel.bytes_behind_first(&slots);
                        let last = groups[0].len() - 1;
                        for to in 0..=last {
                            make_room(groups, stock, to, parcel.count);
                            let hand = if to == last { Hand::Exchange } else { Hand::Copy };
                            groups[0][to].take(&mut slots, parcel, stock, hand);
                        }
                        at += parcel.count;
                        left -= 1;
                    }
                }
            }
            hand_out(bundle, groups, stock, &mut slots);
            slots.advance(at);
            taken += at;
            if left == 0 && before > 0 {
                // One that has had less than a batch has the next.
                *first_ring = if before == self.batch { ring + 1 } else { ring };
            }
        }
        taken
    }

    /// Sends by the input what consumers have put into their ends of the outputs; returns how many
    /// slots. Where room is scarce, each consumer that has something has the same share of it. A
    /// packet with a slot that no buffer of the input holds counts as dropped at its output.
    pub fn send(&mut self) -> usize {
        let (input, outputs) = (&mut self.input, &mut self.groups[0]);
        let mut sent = 0;
        self.lacks_room = false;
        for _ in 0..outputs.len() {
            if self.turn.output >= outputs.len() {
                self.turn = Turn::of(0);
            }
            let Turn { output, left } = self.turn;
            let Output { port, counters, .. } = &mut outputs[output];
            let (mut rx, mut tx) = (port.rx(0), input.tx(0));
            let waiting = rx.sync();
            if waiting > 0 && tx.space() < left {
                tx.sync();
            }
            let room = tx.space();
            let count = rx.whole(room.min(left));
            counters.dropped += rx.forward(&mut tx, count, false).misfits;
            if count > 0 {
                rx.sync();
            }
            sent += count;
            if room < left && count < waiting {
                self.turn.left -= count;
                self.lacks_room = true;
                break;
            }
            self.turn = Turn::of(output + 1);
        }
        if self.lacks_room {
            // Some slots may be free, and too few for a packet. Before the sync: what that finds is news.
            input.tx(0).slots().await_more();
        }
        if sent > 0 {
            input.tx(0).sync();
        }
        sent
    }

    /// Gives the consumers what is theirs, and the next group what they have released; returns
    /// the slots that moved.
    pub fn hand_over(&mut self) -> u32 {
        self.hand_over_where(|_| true)
    }

    /// The same for consumers that get half a ring by it, or behind whose rings packets wait. Each time that a consumer
    /// is woken costs both CPUs; and while it takes one half, the other is filled.
    pub fn hand_over_halves(&mut self) -> u32 {
        self.hand_over_where(|output| output.is_half_filled() || output.queued() > 0)
    }

    fn hand_over_where(&mut self, is_due: impl Fn(&Output) -> bool) -> u32 {
        let mut moved = 0;
        for at in 0..self.groups.len() {
            for output in 0..self.groups[at].len() {
                let from = &self.groups[at][output];
                if !is_due(from) {
                    continue;
                }
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

    /// What there is to wait for: packets, and room where some are queued or are to be passed on.
    pub fn awaited(&mut self) -> Vec<(&mut Port, Interest)> {
        let last = self.groups.len() - 1;
        let mut awaited = vec![(&mut self.input, Interest::Rx)];
        for (at, group) in self.groups.iter_mut().enumerate() {
            for output in group {
                if output.queued() > 0 || (at < last && output.is_busy()) {
                    output.await_release();
                    awaited.push((&mut output.port, Interest::Tx));
                }
            }
        }
        awaited
    }

    /// What there is to wait for where consumers [send](Self::send): packets, from either side, or
    /// room for those that wait for it.
    pub fn awaited_both_ways(&mut self) -> Vec<(&mut Port, Interest)> {
        if self.lacks_room {
            return vec![(&mut self.input, Interest::Both)];
        }
        let outputs = self.groups.iter_mut().flatten().map(|output| &mut output.port);
        [&mut self.input].into_iter().chain(outputs).map(|port| (port, Interest::Rx)).collect()
    }

    /// What there is to wait for at the end: that consumers take what they have.
    pub fn unfinished(&mut self) -> Vec<(&mut Port, Interest)> {
        let outputs = self.groups.iter_mut().flatten();
        let busy = outputs.filter(|output| output.queued() > 0 || output.is_busy());
        busy.map(|output| {
            output.await_release();
            (&mut output.port, Interest::Tx)
        })
        .collect()
    }

    /// Returns all buffers to where they came from.
    pub fn close(&mut self) {
        self.groups.iter_mut().flatten().for_each(|output| output.abandon(&mut self.stock));
        self.input.return_extra_bufs(self.stock.drain(..));
    }
}

/// Adds the packets in these slots to the bundle, as far as it reaches and their first bytes decide. Returns the first slot
/// that it has not added.
#[inline]
fn gather<C: Choose>(
    chooser: &mut C,
    bundle: &mut Bundle,
    received: &mut Received,
    slots: &Slots<'_>,
    places: Range<u32>,
) -> u32 {
    let (first, mut bytes) = (places.start, 0);
    let reached = first..places.end.min(bundle.end(first));
    let end = slots.scan(reached, |at, slot, head: &[u8; HEAD]| {
        let head = &head[..HEAD.min(slot.len.into())];
        let Some(output) = chooser.choose_at_once(head) else { return false };
        bundle.add(at, output);
        bytes += u64::from(slot.len);
        true
    });
    received.packets += u64::from(end - first);
    received.bytes += bytes;
    end
}

/// Gives each output of the first group its packets of a bundle.
fn hand_out(
    bundle: &mut Bundle,
    groups: &mut [Vec<Output>],
    stock: &mut Stock,
    from: &mut Slots<'_>,
) {
    bundle.take(|output, places| {
        make_room(groups, stock, output, places.left());
        groups[0][output].take_all(from, places, stock);
    });
}

/// Before an output of the first group takes so many slots: what makes room in its ring, or buffers to
/// wait in.
#[inline]
fn make_room(groups: &mut [Vec<Output>], stock: &mut Stock, output: usize, slots: u32) {
    if groups[0][output].is_congested(slots) {
        find_room(groups, stock, output, slots);
    }
}

#[cold]
fn find_room(groups: &mut [Vec<Output>], stock: &mut Stock, output: usize, slots: u32) {
    settle(groups, stock, 0, output, true);
    if groups[0][output].is_congested(slots) {
        replenish(groups, stock, slots as usize);
    }
}

/// The next output that has room for so many slots, in turn; the first if none has.
fn with_room(groups: &mut [Vec<Output>], stock: &mut Stock, first: usize, slots: u32) -> usize {
    let count = groups[0].len();
    for output in (first + 1..count).chain(0..first) {
        make_room(groups, stock, output, slots);
        if !groups[0][output].is_congested(slots) {
            return output;
        }
    }
    first
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
