//! Volatile dequeues: frames of one queue, parked or retired, on request.

use crate::{
    Entry, Error, Manager, Stage, Status,
    entry::Entries,
    lock::lock,
    queue::{Place, State},
    ring::Ring,
};

/// A request for frames of a queue that is not scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Volatile {
    /// The queue.
    pub queue: u32,
    /// Frames at most; `None`: until it is empty.
    pub frames: Option<u32>,
    /// Frames of scheduled queues come first.
    pub is_last: bool,
}

impl State {
    /// Whether frames are taken by volatile dequeues.
    fn is_by_hand(&self) -> bool {
        matches!(self.stage, Stage::Parked | Stage::Retired)
            && !matches!(self.place, Place::Held(_))
    }
}

impl Manager {
    /// Whether a volatile dequeue may begin.
    pub(crate) fn check_volatile(&self, queue: u32) -> Result<(), Error> {
        let state = lock(&self.queue(queue)?.state);
        state.is_by_hand().then_some(()).ok_or(Error::State(queue))
    }

    /// Takes frames for a volatile dequeue, as many as there is room for: whether it has expired. The last entry says so
    /// then; it has no frame if the queue was empty, or is scheduled since.
    pub(crate) fn take_volatile(
        &self,
        request: &mut Volatile,
        ring: &mut Ring,
        room: usize,
    ) -> bool {
        let Some(place) = self.queues.get(request.queue) else { return true };
        let mut state = lock(&place.state);
        let most = request.frames.map_or(room, |left| room.min(left as usize));
        let number = request.queue;
        let taken = match state.is_by_hand() {
            true => state.take(&self.groups, number, most, Status::UNSCHEDULED, ring),
            false => 0,
        };
        if let Some(left) = &mut request.frames {
            *left = left.saturating_sub(taken as u32);
        }
        if taken == 0 {
            let is_empty = state.frames.is_empty();
            let empty = if is_empty { Status::EMPTY } else { Status::NONE };
            ring.push(Entry {
                queue: number,
                context_a: state.settings.context_a,
                context_b: state.settings.context_b,
                status: Status::UNSCHEDULED | empty | Status::EXPIRED,
                ..Entry::default()
            });
            return true;
        }
        let expired = state.frames.is_empty() || request.frames == Some(0);
        if expired && let Some(last) = ring.last_mut() {
            last.status = last.status | Status::EXPIRED;
        }
        expired
    }
}
