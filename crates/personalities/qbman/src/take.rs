//! How frames are taken from the queues that wait on a channel.

use crate::{
    Manager, Stage, Status, channel::Channel, entry::Room, listing::Listing, lock::lock,
    queue::Place,
};

/// Frames that are taken from a queue in a row, while others wait.
const TURN: usize = 3;
/// Queues that are taken off a work queue at once, at most.
const AT_ONCE: usize = 8;

/// The taker of frames of scheduled queues: a portal, or an interface.
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
            // Takers that have gone to sleep while these were off are woken.
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
                out.hold(number, taken, true);
            }
            _ => self.manager.list(number, &mut state, listing),
        }
    }

    /// Takes more frames of a queue that the portal holds.
    pub fn take_held(&self, number: u32, out: &mut impl Room) {
        let Some(queue) = self.manager.queues.get(number) else { return };
        let mut state = lock(&queue.state);
        let is_held = self.portal.is_some_and(|portal| state.place == Place::Held(portal));
        if !is_held || state.stage != Stage::Scheduled || state.is_off || state.retiring.is_some() {
            return;
        }
        let room = out.room();
        let taken = state.take(&self.manager.groups, number, room, Status::HELD, out);
        out.hold(number, taken, false);
    }
}
