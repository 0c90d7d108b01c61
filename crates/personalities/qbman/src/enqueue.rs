//! The way in: frames are taken by a queue, or rejected.

use crate::{
    Error, Frame, Manager, Message, Rejection, Settings, Stage,
    channel::Wake,
    listing::{Listing, Row},
    lock::lock,
    order::Ordered,
    queue::{Place, Queue, State},
};

/// What a portal does with a frame, in the order in which it said so.
#[derive(Clone, Copy, Debug, Default)]
pub struct Command {
    /// Where it goes.
    pub queue: u32,
    /// It.
    pub frame: Frame,
    /// Comes back with a rejection.
    pub tag: u32,
    /// By way of an order restoration point.
    pub order: Option<Order>,
    /// Consumes an entry of the portal then.
    pub consume: Option<Consume>,
}

/// A place in a sequence.
#[derive(Clone, Copy, Debug)]
pub struct Order {
    /// The queue that restores order.
    pub point: u32,
    /// 14 bits, as in the entry that the frame came with.
    pub sequence: u16,
    /// What it is.
    pub kind: OrderKind,
    /// No other has the same number.
    pub is_last: bool,
}

/// What is said about a sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderKind {
    /// Here is its frame.
    Frame,
    /// It has none.
    Hole,
    /// It is the next one.
    Advance,
}

/// An entry of a portal that is done with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Consume {
    /// Its place, below [`RING`](crate::RING).
    pub place: usize,
    /// If its queue is held active, it is parked.
    pub park: bool,
}

impl Manager {
    /// Puts a frame into a queue.
    ///
    /// # Errors
    /// Why it was not taken: it is still the caller's.
    #[inline]
    pub fn enqueue(&self, queue: u32, frame: Frame) -> Result<(), Rejection> {
        let mut result = Ok(());
        let mut listing = Listing::new();
        self.feed(queue, [frame], |frame| *frame, &mut listing, |_, why| result = Err(why));
        listing.finish(self);
        result
    }

    /// Puts frames into their queues, those that follow each other with the same queue at once. `rejected` gets those
    /// that were not taken, with their queues: they are still the caller's.
    pub fn enqueue_all(
        &self,
        frames: &[(u32, Frame)],
        mut rejected: impl FnMut(Frame, u32, Rejection),
    ) {
        let mut listing = Listing::new();
        let mut refused = Vec::new();
        for run in frames.chunk_by(|(queue, _), (next, _)| queue == next) {
            let Some((queue, _)) = run.first() else { continue };
            let refuse = |(queue, frame): &(u32, Frame), why| refused.push((*frame, *queue, why));
            self.feed(*queue, run, |(_, frame)| *frame, &mut listing, refuse);
        }
        listing.finish(self);
        for (frame, queue, why) in refused {
            rejected(frame, queue, why);
        }
    }

    /// Puts frames into one queue, under its lock.
    #[inline]
    pub(crate) fn feed<T>(
        &self,
        queue: u32,
        run: impl IntoIterator<Item = T>,
        frame: impl Fn(&T) -> Frame,
        listing: &mut Listing,
        mut rejected: impl FnMut(T, Rejection),
    ) {
        let Some(place) = self.queues.get(queue) else {
            run.into_iter().for_each(|it| rejected(it, Rejection::NoService));
            return;
        };
        let mut state = lock(&place.state);
        let service = state.check_service();
        for it in run {
            let taken = service.and_then(|()| state.push(&self.groups, frame(&it)));
            if let Err(why) = taken {
                rejected(it, why);
            }
        }
        self.list(queue, &mut state, listing);
    }

    /// Has a queue served, if there is something in it and nobody knows.
    #[inline]
    pub(crate) fn list(&self, queue: u32, state: &mut State, listing: &mut Listing) {
        if state.is_ready() {
            state.place = Place::Listed;
            let Settings { channel, work_queue, .. } = state.settings;
            listing.add(self, Row { queue, channel, work_queue: work_queue.into() });
        }
    }

    /// Puts a frame into a queue by way of an order restoration point.
    fn feed_in_order(
        &self,
        command: &Command,
        order: Order,
        origin: Option<u8>,
        listing: &mut Listing,
    ) -> Result<(), Rejection> {
        let point = self.queues.get(order.point).ok_or(Rejection::NoOrder)?;
        let mut window = lock(&point.window);
        let settings = {
            let state = lock(&point.state);
            match state.stage {
                Stage::OutOfService => return Err(Rejection::NoOrder),
                Stage::Retired => return Err(Rejection::OrderRetired),
                _ if state.retiring.is_some() => return Err(Rejection::OrderRetired),
                _ => state.settings.order.ok_or(Rejection::NoOrder)?,
            }
        };
        let Command { queue, frame, tag, .. } = *command;
        let what = Ordered { queue, frame, tag, origin, sequence: order.sequence };
        // With the window's lock: or frames that leave now could be overtaken.
        window.admit(settings, order.kind, order.is_last, what, |leaving| {
            let mut refusal = None;
            let refuse = |_, why| refusal = Some(why);
            self.feed(leaving.queue, [leaving], |it| it.frame, listing, refuse);
            if let Some(why) = refusal {
                listing.wake(self.reject_ordered(&leaving, order.point, why));
            }
        })
    }

    /// Tells the sender of a frame into an order restoration point that it is not taken.
    pub(crate) fn reject_ordered(&self, it: &Ordered, point: u32, why: Rejection) -> Wake {
        let order = Some((point, it.sequence));
        let (frame, queue, tag) = (it.frame, it.queue, it.tag);
        self.post(it.origin, Message::Rejected { frame, queue, tag, why, order })
    }

    /// Executes what a portal has asked for: what goes into one queue in that order, and at once. `consumed` gets the entries
    /// that are done with then. Rejections become messages to the portal.
    pub(crate) fn execute(
        &self,
        portal: u8,
        commands: &mut Vec<Command>,
        mut consumed: impl FnMut(Consume),
    ) {
        let origin = Some(portal);
        let mut listing = Listing::new();
        let mut refused = Vec::new();
        let mut left = commands.as_mut_slice();
        while let Some(first) = left.first().copied() {
            let mut run = 1;
            match first.order {
                None => {
                    run = gather(left, |other| other.queue == first.queue && other.order.is_none());
                    let own = left.get(..run).unwrap_or_default();
                    let refuse = |it: &Command, why| refused.push((*it, why));
                    self.feed(first.queue, own, |it| it.frame, &mut listing, refuse);
                }
                Some(order) => match self.feed_in_order(&first, order, origin, &mut listing) {
                    Err(why) if order.kind == OrderKind::Frame => refused.push((first, why)),
                    _ => {}
                },
            }
            let (done, others) = left.split_at_mut(run);
            done.iter().filter_map(|command| command.consume).for_each(&mut consumed);
            left = others;
        }
        commands.clear();
        for (Command { frame, queue, tag, order, .. }, why) in refused {
            let order = order.map(|order| (order.point, order.sequence));
            listing.wake(self.post(origin, Message::Rejected { frame, queue, tag, why, order }));
        }
        listing.finish(self);
    }

    /// A queue that there may be.
    ///
    /// # Errors
    /// [`Error::NoQueue`].
    pub(crate) fn queue(&self, number: u32) -> Result<&Queue, Error> {
        self.queues.get_or_make(number).ok_or(Error::NoQueue(number))
    }
}

/// Moves those that belong together to the front, up to the first that goes by way of an order restoration point; each in
/// their order. How many.
fn gather(commands: &mut [Command], belongs: impl Fn(&Command) -> bool) -> usize {
    let mut count = 0;
    for place in 0..commands.len() {
        match commands.get(place) {
            Some(command) if belongs(command) => {
                if place > count {
                    commands.get_mut(count..=place).unwrap_or_default().rotate_right(1);
                }
                count += 1;
            }
            Some(command) if command.order.is_none() => {}
            _ => break,
        }
    }
    count
}
