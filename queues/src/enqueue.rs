//! The way in: frames are taken by a queue, or rejected.

use std::mem;

use crate::{
    Error, Frame, Manager, Message, Rejection, Stage,
    channel::Wake,
    lock,
    order::Ordered,
    queue::{Place, State},
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
    pub fn enqueue(&self, queue: u32, frame: Frame) -> Result<(), Rejection> {
        let mut result = Ok(());
        self.enqueue_all(&[(queue, frame)], |_, _, why| result = Err(why));
        result
    }

    /// Puts frames into their queues, those that follow each other with the same queue at once. `rejected` gets those
    /// that were not taken, with their queues: they are still the caller's.
    pub fn enqueue_all(
        &self,
        frames: &[(u32, Frame)],
        mut rejected: impl FnMut(Frame, u32, Rejection),
    ) {
        let mut wake = Wake::default();
        for run in frames.chunk_by(|(queue, _), (next, _)| queue == next) {
            let Some((queue, _)) = run.first() else { continue };
            let mut refused = Vec::new();
            wake.and(self.feed(
                *queue,
                run,
                |(_, frame)| *frame,
                |it, why| refused.push((*it, why)),
            ));
            for ((queue, frame), why) in refused {
                rejected(frame, queue, why);
            }
        }
        wake.and(self.groups.news());
        wake.now();
    }

    /// Puts frames into one queue, under its lock.
    #[inline]
    pub(crate) fn feed<'a, T: 'a>(
        &self,
        queue: u32,
        run: &'a [T],
        frame: impl Fn(&T) -> Frame,
        mut rejected: impl FnMut(&'a T, Rejection),
    ) -> Wake {
        let Some(place) = self.queues.get(queue) else {
            run.iter().for_each(|it| rejected(it, Rejection::NoService));
            return Wake::default();
        };
        let mut state = lock(&place.state);
        let service = state.check_service();
        for it in run {
            let taken = service.and_then(|()| state.push(&self.groups, frame(it)));
            if let Err(why) = taken {
                rejected(it, why);
            }
        }
        self.list(queue, &mut state)
    }

    /// Has a queue served, if there is something in it and nobody knows.
    #[inline]
    pub(crate) fn list(&self, queue: u32, state: &mut State) -> Wake {
        if !state.is_ready() {
            return Wake::default();
        }
        let Ok(channel) = self.channel(state.settings.channel) else { return Wake::default() };
        state.place = Place::Listed;
        channel.push(queue, state.settings.work_queue)
    }

    /// Puts a frame into a queue by way of an order restoration point.
    pub(crate) fn feed_in_order(
        &self,
        command: &Command,
        order: Order,
        origin: Option<u8>,
    ) -> Result<Wake, Rejection> {
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
        let what = Ordered {
            queue: command.queue,
            frame: command.frame,
            tag: command.tag,
            origin,
            sequence: order.sequence,
        };
        let mut wake = Wake::default();
        // With the window's lock: or frames that leave now could be overtaken.
        window.admit(settings, order.kind, order.is_last, what, |leaving| {
            wake.and(self.feed_one(&leaving, order.point));
        })?;
        Ok(wake)
    }

    fn feed_one(&self, leaving: &Ordered, point: u32) -> Wake {
        let mut refusal = None;
        let run = std::slice::from_ref(leaving);
        let mut wake = self.feed(leaving.queue, run, |it| it.frame, |_, why| refusal = Some(why));
        if let Some(why) = refusal {
            wake.and(self.reject_ordered(leaving, point, why));
        }
        wake
    }

    /// Tells who has sent a frame into an order restoration point that it is not taken.
    pub(crate) fn reject_ordered(&self, it: &Ordered, point: u32, why: Rejection) -> Wake {
        let order = Some((point, it.sequence));
        let (frame, queue, tag) = (it.frame, it.queue, it.tag);
        self.post(it.origin, Message::Rejected { frame, queue, tag, why, order })
    }

    /// Executes what a portal has asked for, in order; `consumed` gets the entries that are done with then. Rejections
    /// become messages to the portal.
    pub(crate) fn execute(
        &self,
        portal: u8,
        commands: &mut Vec<Command>,
        mut consumed: impl FnMut(Consume),
    ) {
        let mut wake = Wake::default();
        let plain = |command: &Command| command.order.is_none();
        let joins =
            |one: &Command, next: &Command| one.queue == next.queue && plain(one) && plain(next);
        let origin = Some(portal);
        for run in commands.chunk_by(joins) {
            let Some(first) = run.first() else { continue };
            let mut refused = Vec::new();
            match first.order {
                None => {
                    let refuse = |it: &Command, why| refused.push((*it, why));
                    wake.and(self.feed(first.queue, run, |it| it.frame, refuse));
                }
                Some(order) => match self.feed_in_order(first, order, origin) {
                    Ok(more) => wake.and(more),
                    Err(why) if order.kind == OrderKind::Frame => refused.push((*first, why)),
                    Err(_) => {}
                },
            }
            for (Command { frame, queue, tag, order, .. }, why) in mem::take(&mut refused) {
                let order = order.map(|order| (order.point, order.sequence));
                wake.and(self.post(origin, Message::Rejected { frame, queue, tag, why, order }));
            }
            run.iter().filter_map(|command| command.consume).for_each(&mut consumed);
        }
        commands.clear();
        wake.and(self.groups.news());
        wake.now();
    }

    /// A queue that there may be.
    ///
    /// # Errors
    /// [`Error::NoQueue`].
    pub(crate) fn queue(&self, number: u32) -> Result<&crate::queue::Queue, Error> {
        self.queues.get_or_make(number).ok_or(Error::NoQueue(number))
    }
}
