//! Volatile dequeues: frames of one queue, parked or retired, on request.

use crate::{Entry, Error, Manager, Stage, Status, entry::Entries, lock, queue::Place, ring::Ring};

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

impl Manager {
    /// Whether a volatile dequeue may begin.
    pub(crate) fn check_volatile(&self, queue: u32) -> Result<(), Error> {
        let state = lock(&self.queue(queue)?.state);
        let is_free = matches!(state.stage, Stage::Parked | Stage::Retired);
        if is_free && !matches!(state.place, Place::Held(_)) {
            Ok(())
        } else {
            Err(Error::State(queue))
        }
    }

    /// Takes frames for a volatile dequeue, as many as there is room for: whether it has expired. The last entry says so
    /// then; it has no frame if the queue was empty.
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
        let taken = state.take(&self.groups, number, most, Status::UNSCHEDULED, ring);
        if let Some(left) = &mut request.frames {
            *left = left.saturating_sub(taken as u32);
        }
        if taken == 0 {
            ring.push(Entry {
                queue: number,
                context_a: state.settings.context_a,
                context_b: state.settings.context_b,
                status: Status::UNSCHEDULED | Status::EMPTY | Status::EXPIRED,
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
