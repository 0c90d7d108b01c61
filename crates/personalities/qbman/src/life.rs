//! How a queue comes and goes.

use crate::{
    Error, Leftover, Manager, Message, Rejection, Settings, Snapshot, Stage,
    channel::Wake,
    listing::Listing,
    lock::lock,
    order::Ordered,
    queue::{Place, Retiring, State},
};

/// How a queue begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// It keeps its frames.
    Parked,
    /// It hands them on.
    Scheduled,
}

/// How far a retirement has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retired {
    /// The queue is retired, and nothing was left in it but what order restoration keeps back.
    Now(Leftover),
    /// The portal gets a message, [`Message::Retired`].
    Later,
}

impl Manager {
    /// Changes the settings of a queue that is out of service or parked. Those of a queue out of service are the
    /// defaults before.
    ///
    /// # Errors
    /// [`Error::NoQueue`], [`Error::State`]; [`Error::NoChannel`], and nothing has changed.
    pub fn init(
        &self,
        queue: u32,
        schedule: Schedule,
        change: impl FnOnce(&mut Settings),
    ) -> Result<(), Error> {
        let place = self.queue(queue)?;
        let mut window = lock(&place.window);
        let mut state = lock(&place.state);
        let is_new = state.stage == Stage::OutOfService;
        if !is_new && state.stage != Stage::Parked {
            return Err(Error::State(queue));
        }
        let mut settings = if is_new { Settings::default() } else { state.settings };
        change(&mut settings);
        self.channel(settings.channel)?;
        settings.work_queue &= 7;
        // Frames count with the overhead that they came with.
        state.change_group(&self.groups, None);
        let group = settings.group.take();
        state.settings = settings;
        state.change_group(&self.groups, group);
        state.weigh();
        if is_new {
            state.sequence = 0;
            state.is_off = false;
            drop(window.reset());
        }
        state.stage = match schedule {
            Schedule::Parked => Stage::Parked,
            Schedule::Scheduled => Stage::Scheduled,
        };
        let mut listing = Listing::new();
        self.list(queue, &mut state, &mut listing);
        drop((state, window));
        listing.finish(self);
        Ok(())
    }

    /// Makes a parked queue hand its frames on.
    ///
    /// # Errors
    /// [`Error::NoQueue`], [`Error::State`].
    pub fn schedule(&self, queue: u32) -> Result<(), Error> {
        let mut state = lock(&self.queue(queue)?.state);
        if state.stage != Stage::Parked {
            return Err(Error::State(queue));
        }
        state.stage = Stage::Scheduled;
        let mut listing = Listing::new();
        self.list(queue, &mut state, &mut listing);
        drop(state);
        listing.finish(self);
        Ok(())
    }

    /// Stops a scheduled queue handing on its frames, or has it go on.
    ///
    /// # Errors
    /// [`Error::NoQueue`], [`Error::State`] of a queue that is out of service or retired.
    pub fn flow_control(&self, queue: u32, is_on: bool) -> Result<(), Error> {
        let mut state = lock(&self.queue(queue)?.state);
        if matches!(state.stage, Stage::OutOfService | Stage::Retired) {
            return Err(Error::State(queue));
        }
        state.is_off = !is_on;
        if !is_on {
            self.unlist(queue, &mut state);
        }
        let mut listing = Listing::new();
        self.list(queue, &mut state, &mut listing);
        drop(state);
        listing.finish(self);
        Ok(())
    }

    /// Takes a queue off its work queue.
    fn unlist(&self, queue: u32, state: &mut State) {
        if state.place != Place::Listed {
            return;
        }
        state.place = Place::Idle;
        if let Ok(channel) = self.channel(state.settings.channel) {
            channel.remove(queue, state.settings.work_queue);
        }
    }

    /// Retires a queue: it takes no frames any more, and hands none on by itself. `portal` gets the messages of it; with
    /// none, nobody is told.
    ///
    /// # Errors
    /// [`Error::NoQueue`], [`Error::State`].
    pub fn retire(&self, queue: u32, portal: Option<u8>) -> Result<Retired, Error> {
        let place = self.queue(queue)?;
        let mut window = lock(&place.window);
        let mut state = lock(&place.state);
        if !matches!(state.stage, Stage::Parked | Stage::Scheduled) || state.retiring.is_some() {
            return Err(Error::State(queue));
        }
        let kept: Vec<Ordered> = window.reset().collect();
        drop(window);
        let order = !kept.is_empty();
        let is_held = matches!(state.place, Place::Held(_));
        self.unlist(queue, &mut state);
        let (done, mut wake) = if is_held {
            state.retiring = Some((portal, order));
            (Retired::Later, Wake::default())
        } else if state.frames.is_empty() {
            state.stage = Stage::Retired;
            (Retired::Now(Leftover { frames: false, order }), Wake::default())
        } else {
            (Retired::Later, self.finish_retiring(queue, &mut state, portal, order))
        };
        let tag = state.settings.context_b;
        drop(state);
        for it in &kept {
            wake.and(self.reject_ordered(it, queue, Rejection::OrderRetired));
        }
        // Behind the message that it is retired, where there is one.
        if order && !is_held {
            wake.and(self.post(portal, Message::OrderEmpty { queue, tag }));
        }
        wake.now();
        Ok(done)
    }

    fn finish_retiring(
        &self,
        queue: u32,
        state: &mut State,
        portal: Option<u8>,
        order: bool,
    ) -> Wake {
        state.stage = Stage::Retired;
        state.place = Place::Idle;
        state.retiring = None;
        let left = Leftover { frames: !state.frames.is_empty(), order };
        self.post(portal, Message::Retired { queue, tag: state.settings.context_b, left })
    }

    /// A portal lets go of a queue that it held.
    pub(crate) fn let_go(&self, portal: u8, queue: u32, park: bool, listing: &mut Listing) {
        let Some(place) = self.queues.get(queue) else { return };
        let mut state = lock(&place.state);
        if state.place != Place::Held(portal) {
            return;
        }
        state.place = Place::Idle;
        match state.retiring {
            Some((teller, order)) => {
                listing.wake(self.finish_retiring(queue, &mut state, teller, order));
                if order {
                    let tag = state.settings.context_b;
                    listing.wake(self.post(teller, Message::OrderEmpty { queue, tag }));
                }
            }
            None if park && state.stage == Stage::Scheduled => {
                state.stage = Stage::Parked;
                let tag = state.settings.context_b;
                listing.wake(self.post(Some(portal), Message::Parked { queue, tag }));
            }
            None => self.list(queue, &mut state, listing),
        }
    }

    /// Takes a retired queue out of service.
    ///
    /// # Errors
    /// [`Error::NoQueue`], [`Error::State`], [`Error::NotEmpty`].
    pub fn out_of_service(&self, queue: u32) -> Result<(), Error> {
        let mut state = lock(&self.queue(queue)?.state);
        if state.stage != Stage::Retired {
            return Err(Error::State(queue));
        }
        if !state.frames.is_empty() {
            return Err(Error::NotEmpty(queue));
        }
        state.change_group(&self.groups, None);
        state.stage = Stage::OutOfService;
        Ok(())
    }

    /// Takes a queue out of service whatever its state. Its frames are handed to `dropped`.
    ///
    /// # Errors
    /// [`Error::NoQueue`].
    pub fn shut_down(
        &self,
        queue: u32,
        mut dropped: impl FnMut(crate::Frame),
    ) -> Result<(), Error> {
        let place = self.queue(queue)?;
        let mut window = lock(&place.window);
        let mut state = lock(&place.state);
        self.unlist(queue, &mut state);
        let kept: Vec<_> = window.reset().collect();
        state.change_group(&self.groups, None);
        let frames = std::mem::take(&mut state.frames);
        state.bytes = 0;
        state.place = Place::Idle;
        state.retiring = Retiring::None;
        state.stage = Stage::OutOfService;
        drop((state, window));
        self.groups.news().now();
        frames.into_iter().chain(kept.into_iter().map(|it| it.frame)).for_each(&mut dropped);
        Ok(())
    }

    /// How a queue is now.
    ///
    /// # Errors
    /// [`Error::NoQueue`].
    pub fn snapshot(&self, queue: u32) -> Result<Snapshot, Error> {
        let place = self.queue(queue)?;
        let (expected, kept_back) = {
            let window = lock(&place.window);
            (window.expected(), window.kept() as u32)
        };
        let state = lock(&place.state);
        Ok(Snapshot {
            stage: state.stage,
            is_listed: state.place == Place::Listed,
            is_held: matches!(state.place, Place::Held(_)),
            frames: state.frames.len() as u32,
            bytes: state.bytes,
            sequence: state.sequence,
            expected,
            kept_back,
        })
    }

    /// The settings of a queue.
    ///
    /// # Errors
    /// [`Error::NoQueue`].
    pub fn settings(&self, queue: u32) -> Result<Settings, Error> {
        Ok(lock(&self.queue(queue)?.state).settings)
    }
}
