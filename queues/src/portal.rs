//! Portals: what one thread takes frames by.

use std::{
    ops::BitOr,
    sync::{Arc, atomic::Ordering::AcqRel},
};

use crate::{
    Command, Consume, Error, Frame, Manager, Message, Notifier, PORTALS, Pool, Stage, Volatile,
    channel::Channel, listing::Listing, lock, pool_channel, queue::Place,
};

/// Entries that a portal has at most, until it consumes some.
pub const RING: usize = 16;
/// Frames that are taken from a queue in a row, while others wait.
const TURN: usize = 3;
/// Queues that are taken off a work queue at once, at most.
const AT_ONCE: usize = 8;
/// Commands that wait for the end of a batch at most.
const COMMANDS: usize = RING;

/// What is known about an entry; or several together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status(pub u8);

impl Status {
    /// Nothing.
    pub const NONE: Status = Status(0);
    /// The queue is empty behind it.
    pub const EMPTY: Status = Status(0x80);
    /// The queue stays with the portal until its entries are consumed.
    pub const HELD: Status = Status(0x40);
    /// There is a frame in it.
    pub const FRAME: Status = Status(0x10);
    /// Of a volatile dequeue.
    pub const UNSCHEDULED: Status = Status(2);
    /// The volatile dequeue is over.
    pub const EXPIRED: Status = Status(1);

    /// Whether all that `other` says is so.
    pub fn has(self, other: Status) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for Status {
    type Output = Status;

    fn bitor(self, other: Status) -> Status {
        Status(self.0 | other.0)
    }
}

/// A frame that was taken from a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// It.
    pub frame: Frame,
    /// Of its queue.
    pub context_a: u64,
    /// Its queue.
    pub queue: u32,
    /// Of its queue.
    pub context_b: u32,
    /// 14 bits: how many were taken from the queue before.
    pub sequence: u16,
    /// What else there is to know.
    pub status: Status,
}

/// Where entries go.
pub(crate) trait Entries {
    fn push(&mut self, entry: Entry);
}

/// Entries for an interface's sender.
pub(crate) struct Rows<'e> {
    rows: &'e mut [Entry],
    taken: usize,
}

impl<'e> Rows<'e> {
    pub fn new(rows: &'e mut [Entry]) -> Rows<'e> {
        Rows { rows, taken: 0 }
    }

    pub fn taken(&self) -> usize {
        self.taken
    }
}

impl Entries for Rows<'_> {
    #[inline]
    fn push(&mut self, entry: Entry) {
        if let Some(row) = self.rows.get_mut(self.taken) {
            *row = entry;
            self.taken += 1;
        }
    }
}

impl Room for Rows<'_> {
    fn room(&self) -> usize {
        self.rows.len() - self.taken
    }
}

/// With an end.
pub(crate) trait Room: Entries {
    fn room(&self) -> usize;
    /// The last `count` entries are of a queue that is held.
    fn hold(&mut self, _queue: u32, _count: usize) {}
}

/// Entries that were taken and are not all consumed. Numbers run on; their places are modulo [`RING`].
#[derive(Default)]
pub(crate) struct Ring {
    entries: [Entry; RING],
    /// For each place: which of `holds` it belongs to, if it is not consumed.
    holds_of: [Option<u8>; RING],
    is_open: [bool; RING],
    /// Queues that are held, and by how many entries.
    holds: [(u32, u8); RING],
    /// The oldest that is not consumed, the next to be handed out, the next to be taken.
    oldest: usize,
    next: usize,
    end: usize,
    /// Entries of a round, at most.
    limit: usize,
}

// Places are modulo their number, and a hold is a place.
#[allow(clippy::indexing_slicing)]
impl Entries for Ring {
    #[inline]
    fn push(&mut self, entry: Entry) {
        let place = self.end % RING;
        self.entries[place] = entry;
        self.holds_of[place] = None;
        self.is_open[place] = true;
        self.end += 1;
    }
}

#[allow(clippy::indexing_slicing)]
impl Room for Ring {
    #[inline]
    fn room(&self) -> usize {
        let free = RING - (self.end - self.oldest);
        free.min(self.limit.saturating_sub(self.end - self.next))
    }

    fn hold(&mut self, queue: u32, count: usize) {
        let known = self.holds.iter().position(|(held, entries)| *held == queue && *entries > 0);
        let place = known.or_else(|| self.holds.iter().position(|(_, entries)| *entries == 0));
        // There are as many as there are entries.
        let Some(hold) = place else { return };
        self.holds[hold].0 = queue;
        self.holds[hold].1 += count as u8;
        for place in self.end - count..self.end {
            self.holds_of[place % RING] = Some(hold as u8);
        }
    }
}

#[allow(clippy::indexing_slicing)]
impl Ring {
    pub fn last_mut(&mut self) -> Option<&mut Entry> {
        if self.end > self.oldest { self.entries.get_mut((self.end - 1) % RING) } else { None }
    }

    /// Closes an entry: the queue that nothing holds any more.
    #[inline]
    fn close(&mut self, place: usize) -> Option<u32> {
        let is_open = self.is_open.get_mut(place)?;
        // Those that were not handed out yet are not the program's to consume.
        if !*is_open || (place + RING - self.oldest % RING) % RING >= self.next - self.oldest {
            return None;
        }
        *is_open = false;
        while self.oldest < self.next && !self.is_open[self.oldest % RING] {
            self.oldest += 1;
        }
        let hold = &mut self.holds[usize::from(self.holds_of[place].take()?)];
        hold.1 -= 1;
        (hold.1 == 0).then_some(hold.0)
    }
}

/// Who takes frames of scheduled queues: a portal, or an interface.
pub(crate) struct Taker<'m> {
    pub manager: &'m Manager,
    pub portal: Option<u8>,
}

impl Taker<'_> {
    /// Takes frames of the queues of a channel, until there is no room, or nothing left.
    pub fn take_from(&self, channel: &Channel, out: &mut impl Room) {
        let mut queues = [0; AT_ONCE];
        while out.room() > 0 {
            // Each of them takes a turn: there is room for all.
            let most = (out.room() / TURN).clamp(1, AT_ONCE);
            let (count, others) = channel.pop(queues.get_mut(..most).unwrap_or_default());
            if count == 0 {
                break;
            }
            let is_alone = count == 1 && !others;
            let mut listing = Listing::new();
            for queue in queues.iter().take(count) {
                self.take_queue(*queue, is_alone, out, &mut listing);
            }
            // Those who have gone to sleep while these were off are woken.
            if !listing.is_empty() {
                listing.finish(self.manager);
            }
        }
    }

    #[inline]
    fn take_queue(&self, number: u32, is_alone: bool, out: &mut impl Room, listing: &mut Listing) {
        let Some(queue) = self.manager.queues.get(number) else { return };
        let mut state = lock(&queue.state);
        // It may have gone, or stopped, since it was put on the work queue.
        if state.place != Place::Listed || state.stage != Stage::Scheduled {
            return;
        }
        state.place = Place::Idle;
        let most = if is_alone { out.room() } else { out.room().min(TURN) };
        let holder = self.portal.filter(|_| state.settings.hold_active);
        let status = if holder.is_some() { Status::HELD } else { Status::NONE };
        let taken = state.take(&self.manager.groups, number, most, status, out);
        match holder {
            Some(portal) if taken > 0 => {
                state.place = Place::Held(portal);
                out.hold(number, taken);
            }
            _ => self.manager.list(number, &mut state, listing),
        }
    }

    /// Takes more frames of a queue that the portal holds.
    fn take_held(&self, number: u32, out: &mut impl Room) {
        let Some(queue) = self.manager.queues.get(number) else { return };
        let mut state = lock(&queue.state);
        let is_held = self.portal.is_some_and(|portal| state.place == Place::Held(portal));
        if !is_held || state.stage != Stage::Scheduled || state.is_off || state.retiring.is_some() {
            return;
        }
        let room = out.room();
        let taken = state.take(&self.manager.groups, number, room, Status::HELD, out);
        out.hold(number, taken);
    }
}

/// What a thread takes frames by, from its own channel and from those of its pools, and by volatile dequeues; and
/// enqueues by. Dropping it gives it back: entries that are left are consumed, messages are lost.
pub struct Portal<'m> {
    manager: &'m Manager,
    number: u8,
    /// A bit for each pool.
    pools: u16,
    /// The pool that is looked at first.
    first: u8,
    stops: u32,
    ring: Ring,
    volatile: Option<Volatile>,
    commands: Vec<Command>,
    /// Queues that nothing holds any more, once the commands are executed; and whether they are parked.
    released: Vec<(u32, bool)>,
}

impl Manager {
    /// A portal that nobody uses: any, or this one.
    ///
    /// # Errors
    /// [`Error::NoPortal`].
    pub fn portal(&self, number: Option<u8>) -> Result<Portal<'_>, Error> {
        let wanted = |candidate: &u8| number.is_none_or(|number| number == *candidate);
        let number = (0..PORTALS).filter(wanted).find(|number| {
            let inbox = self.inboxes.get(usize::from(*number));
            inbox.is_some_and(|inbox| !inbox.is_bound.swap(true, AcqRel))
        });
        let number = number.ok_or(Error::NoPortal)?;
        Ok(Portal {
            manager: self,
            number,
            pools: 0,
            first: 0,
            stops: 0,
            ring: Ring::default(),
            volatile: None,
            commands: Vec::with_capacity(COMMANDS),
            released: Vec::with_capacity(2 * RING),
        })
    }
}

impl<'m> Portal<'m> {
    /// Its number, which is the one of its own channel.
    pub fn number(&self) -> u8 {
        self.number
    }

    /// The pools that it takes frames of: a bit for each, 1 to 15.
    pub fn pools(&self) -> u16 {
        self.pools
    }

    /// Takes frames of these pools from now on.
    pub fn set_pools(&mut self, pools: u16) {
        self.pools = pools & 0xfffe;
    }

    /// Takes no frames until [`start`](Portal::start) was called as often.
    pub fn stop(&mut self) {
        self.stops = self.stops.saturating_add(1);
    }

    /// Takes back one [`stop`](Portal::stop).
    pub fn start(&mut self) {
        self.stops = self.stops.saturating_sub(1);
    }

    fn channels(&self) -> impl Iterator<Item = &'m Channel> + use<'m> {
        let (pools, first, manager) = (self.pools, self.first, self.manager);
        let own = manager.channel(self.number.into()).ok();
        let pools = (0..15)
            .map(move |step| (first + step) % 15 + 1)
            .filter(move |pool| pools >> pool & 1 != 0);
        let pools = pools.filter_map(move |pool| manager.channel(pool_channel(Pool(pool))?).ok());
        own.into_iter().chain(pools)
    }

    /// Sees to it that up to `limit` entries are there to be handed out, as far as there is room: how many there are.
    pub fn fill(&mut self, limit: usize) -> usize {
        if self.stops == 0 {
            self.ring.limit = limit;
            if self.volatile.is_some_and(|request| !request.is_last) {
                self.fill_volatile();
            }
            if self.ring.room() > 0 {
                self.fill_scheduled();
            }
            if self.ring.room() > 0 {
                self.fill_volatile();
            }
        }
        (self.ring.end - self.ring.next).min(limit)
    }

    fn fill_volatile(&mut self) {
        let room = self.ring.room();
        if room > 0
            && let Some(request) = &mut self.volatile
            && self.manager.take_volatile(request, &mut self.ring, room)
        {
            self.volatile = None;
        }
    }

    fn fill_scheduled(&mut self) {
        let taker = Taker { manager: self.manager, portal: Some(self.number) };
        for channel in self.channels() {
            taker.take_from(channel, &mut self.ring);
        }
        if self.pools != 0 {
            self.first = (self.first + 1) % 15;
        }
        for (queue, _) in self.ring.holds.into_iter().filter(|(_, entries)| *entries > 0) {
            if self.ring.room() > 0 {
                taker.take_held(queue, &mut self.ring);
            }
        }
        self.manager.groups.news().now();
    }

    /// The next entry that was not handed out, and its place.
    pub fn peek(&self) -> Option<(usize, &Entry)> {
        let place = self.ring.next % RING;
        if self.ring.next < self.ring.end {
            Some((place, self.ring.entries.get(place)?))
        } else {
            None
        }
    }

    /// Hands it out: it is to be consumed.
    pub fn advance(&mut self) {
        if self.ring.next < self.ring.end {
            self.ring.next += 1;
        }
    }

    /// Takes the entry back that was handed out last, if it is not consumed: it is the next again.
    pub fn retract(&mut self) {
        let last = self.ring.next.wrapping_sub(1);
        if self.ring.next > self.ring.oldest && self.ring.is_open.get(last % RING) == Some(&true) {
            self.ring.next = last;
        }
    }

    /// Is done with an entry. Nothing happens if it was consumed before, or was not handed out. What was enqueued before is
    /// in its queue before anybody gets more of a queue that this lets go: so that waits for what was put off.
    #[inline]
    pub fn consume(&mut self, entry: Consume) {
        if let Some(queue) = self.ring.close(entry.place) {
            self.released.push((queue, entry.park));
            if self.commands.is_empty() {
                self.let_go();
            }
        }
    }

    fn let_go(&mut self) {
        if self.released.is_empty() {
            return;
        }
        let mut listing = Listing::new();
        for (queue, park) in self.released.drain(..) {
            self.manager.let_go(self.number, queue, park, &mut listing);
        }
        listing.finish(self.manager);
    }

    /// Begins a volatile dequeue.
    ///
    /// # Errors
    /// [`Error::Busy`] while one is under way; [`Error::NoQueue`]; [`Error::State`] of a queue that is neither parked nor
    /// retired.
    pub fn volatile(&mut self, request: Volatile) -> Result<(), Error> {
        if self.volatile.is_some() {
            return Err(Error::Busy);
        }
        self.manager.check_volatile(request.queue)?;
        self.volatile = Some(request);
        Ok(())
    }

    /// Enqueues a frame, now; or later, with others, but before [`flush`](Portal::flush) returns. What is enqueued by one
    /// portal is in the queues in that order.
    ///
    /// # Errors
    /// [`Error::Busy`]: messages must be read first.
    #[inline]
    pub fn enqueue(&mut self, command: Command, is_later: bool) -> Result<(), Error> {
        if self.commands.len() >= COMMANDS {
            self.flush();
        }
        if self.commands.len() >= COMMANDS {
            return Err(Error::Busy);
        }
        self.commands.push(command);
        if !is_later {
            self.flush();
        }
        Ok(())
    }

    /// Executes what was put off.
    #[inline]
    pub fn flush(&mut self) {
        if self.commands.is_empty() || self.inbox().is_full() {
            return;
        }
        let Portal { manager, number, ring, commands, released, .. } = self;
        manager.execute(*number, commands, |entry| {
            released.extend(ring.close(entry.place).map(|queue| (queue, entry.park)));
        });
        self.let_go();
    }

    /// Whether all commands were executed.
    pub fn is_flushed(&self) -> bool {
        self.commands.is_empty()
    }

    fn inbox(&self) -> &'m crate::message::Inbox {
        // There is one for each number.
        #[allow(clippy::indexing_slicing)]
        &self.manager.inboxes[usize::from(self.number)]
    }

    /// The next message.
    pub fn message(&self) -> Option<Message> {
        self.inbox().pop()
    }

    /// Whether there are messages.
    pub fn has_messages(&self) -> bool {
        !self.inbox().is_empty()
    }

    /// Whether frames may be there to be taken.
    pub fn has_frames(&self) -> bool {
        self.ring.next < self.ring.end
            || self.stops == 0
                && (self.volatile.is_some() || self.channels().any(|channel| !channel.is_idle()))
    }

    /// Has `sleeper` raised when frames come, once; not if some are there: `false`.
    pub fn arm_frames(&self, sleeper: &Arc<Notifier>) -> bool {
        // All of them, or what a channel has later is not noticed.
        let armed = self.channels().filter(|channel| channel.arm(sleeper)).count();
        armed == self.channels().count() && !self.has_frames()
    }

    /// Has `sleeper` raised when messages come, once; not if some are there: `false`.
    pub fn arm_messages(&self, sleeper: &Arc<Notifier>) -> bool {
        self.inbox().arm(sleeper)
    }

    /// Has `sleeper` raised when a congestion group changes, once; not if it is not `is_unchanged`: `false`.
    pub fn arm_congestion(&self, sleeper: &Arc<Notifier>, is_unchanged: impl Fn() -> bool) -> bool {
        self.manager.groups.arm(sleeper, is_unchanged)
    }

    /// Takes a sleeper off all of these.
    pub fn disarm(&self, sleeper: &Arc<Notifier>) {
        self.channels().for_each(|channel| channel.disarm(sleeper));
        self.inbox().disarm();
        self.manager.groups.disarm(sleeper);
    }
}

impl Drop for Portal<'_> {
    fn drop(&mut self) {
        self.ring.next = self.ring.end;
        (0..RING).for_each(|place| self.consume(Consume { place, park: false }));
        self.inbox().clear();
        self.flush();
        let inbox = self.inbox();
        inbox.clear();
        inbox.is_bound.store(false, std::sync::atomic::Ordering::Release);
    }
}
