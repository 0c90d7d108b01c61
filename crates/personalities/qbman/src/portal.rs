//! Portals: what one thread takes frames by.

use std::{
    iter,
    sync::{
        Arc,
        atomic::Ordering::{AcqRel, Relaxed},
    },
};

use crate::{
    Command, Consume, Entry, Error, Manager, Message, Notifier, PORTALS, Pool, RING, Volatile,
    channel::Channel, entry::Room, listing::Listing, pool_channel, ring::Ring, take::Taker,
};

/// Commands that wait for the end of a batch at most.
const COMMANDS: usize = RING;

/// What a thread takes frames by, from its own channel and from those of its pools, and by volatile dequeues; and
/// enqueues by. Dropping it gives it back: entries that are left are consumed, messages are lost.
pub struct Portal<'m> {
    manager: &'m Manager,
    number: u8,
    /// A bit for each pool.
    pools: u16,
    /// Pools beyond this are looked at first: 0 to 14.
    first: u8,
    stops: u32,
    ring: Ring,
    volatile: Option<Volatile>,
    commands: Vec<Command>,
    /// Queues that nothing holds any more, once the commands are executed; and whether they are parked.
    released: Vec<(u32, bool)>,
}

/// The places of the bits that are set, the lowest first.
fn bits(mut set: u16) -> impl Iterator<Item = u8> {
    iter::from_fn(move || {
        let place = set.trailing_zeros() as u8;
        set &= set.wrapping_sub(1);
        (place < 16).then_some(place)
    })
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

    fn own(&self) -> Option<&'m Channel> {
        self.manager.channel(self.number.into()).ok()
    }

    /// The channels of some pools, from that on whose turn it is.
    fn channels_of(&self, pools: u16) -> impl Iterator<Item = &'m Channel> + use<'m> {
        let manager = self.manager;
        let earlier = pools & ((2 << self.first) - 1);
        [pools & !earlier, earlier].into_iter().flat_map(bits).filter_map(move |pool| {
            let channel = pool_channel(Pool(pool))?;
            manager.channel(channel).ok()
        })
    }

    fn channels(&self) -> impl Iterator<Item = &'m Channel> + use<'m> {
        self.own().into_iter().chain(self.channels_of(self.pools))
    }

    /// Those of its pools that something is on.
    fn ready(&self) -> u16 {
        self.pools & self.manager.ready.load(Relaxed)
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
        if let Some(own) = self.own() {
            taker.take_from(own, &mut self.ring);
        }
        let ready = self.ready();
        if ready != 0 {
            for channel in self.channels_of(ready) {
                taker.take_from(channel, &mut self.ring);
            }
            self.first = (self.first + 1) % 15;
        }
        if self.ring.held > 0 {
            for (queue, _) in self.ring.holds.into_iter().filter(|(_, entries)| *entries > 0) {
                if self.ring.room() > 0 {
                    taker.take_held(queue, &mut self.ring);
                }
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
                && (self.volatile.is_some()
                    || self.ready() != 0
                    || self.own().is_some_and(|channel| !channel.is_idle()))
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
        self.inbox().leave();
    }
}
