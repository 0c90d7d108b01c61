//! A frame queue: frames in the order in which they came, and the state of the queue.

use std::{collections::VecDeque, sync::Mutex};

use crate::{
    Entry, Frame, OrderSettings, Rejection, Status, Unit, congestion::Groups, entry::Entries,
    order::Window,
};

/// Frames that a queue holds at most: more are rejected as by a tail drop.
pub const LONGEST_QUEUE: usize = 1 << 20;

/// Where frames of a queue go, and which of them it takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The channel that the queue waits on.
    pub channel: u16,
    /// Its work queue there: 0 to 7, the most urgent first.
    pub work_queue: u8,
    /// A portal that takes frames keeps the queue until it has consumed them.
    pub hold_active: bool,
    /// The most that it holds.
    pub tail_drop: Option<TailDrop>,
    /// The congestion group that its frames count in.
    pub group: Option<u8>,
    /// It is an order restoration point: sequence numbers of its frames put others in order.
    pub order: Option<OrderSettings>,
    /// Added to each frame's length, where `overhead_in_queue` and `overhead_in_group` say so.
    pub overhead: i8,
    /// For the tail drop.
    pub overhead_in_queue: bool,
    /// For the congestion group.
    pub overhead_in_group: bool,
    /// Handed on with each frame.
    pub context_a: u64,
    /// Handed on with each frame.
    pub context_b: u32,
    /// Nothing is done with these: for an API's own fields.
    pub attributes: [u8; 24],
}

/// What a queue holds at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TailDrop {
    /// Bytes.
    pub bytes: u64,
}

/// Where a queue is in its life.
///
/// ```text
///   OutOfService -- init --> Parked <-- init, schedule, park --> Scheduled -- retire --> Retired --> OutOfService
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// Takes no frames.
    #[default]
    OutOfService,
    /// Takes frames; hands them on by volatile dequeues.
    Parked,
    /// Takes frames, and hands them on.
    Scheduled,
    /// Takes no frames; hands on what is left by volatile dequeues.
    Retired,
}

/// How a queue is at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Its state.
    pub stage: Stage,
    /// On a work queue, of frames that wait.
    pub is_listed: bool,
    /// With a portal that holds it.
    pub is_held: bool,
    /// Frames in it.
    pub frames: u32,
    /// Their bytes.
    pub bytes: u64,
    /// The sequence number of the next frame that is taken.
    pub sequence: u16,
    /// The sequence number that its order restoration expects.
    pub expected: u16,
    /// Frames that order restoration keeps back.
    pub kept_back: u32,
}

/// Which part holds a scheduled queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Place {
    /// Nobody: it is empty, or not scheduled.
    #[default]
    Idle,
    /// Its work queue.
    Listed,
    /// A portal.
    Held(u8),
}

/// A retirement that waits for a portal to let go of the queue: whom to tell, and whether order restoration kept
/// something back.
pub(crate) type Retiring = Option<(Option<u8>, bool)>;

#[derive(Default)]
pub(crate) struct State {
    pub settings: Settings,
    pub stage: Stage,
    pub place: Place,
    pub is_off: bool,
    pub retiring: Retiring,
    pub frames: VecDeque<Frame>,
    /// Bytes in it, with overhead.
    pub bytes: u64,
    pub sequence: u16,
}

/// On a cache line of its own.
#[derive(Default)]
#[repr(align(64))]
pub(crate) struct Queue {
    pub state: Mutex<State>,
    pub window: Mutex<Window>,
}

/// Sequence numbers have 14 bits.
pub(crate) const SEQUENCE: u16 = 0x3fff;

impl State {
    fn weight(&self, frame: &Frame, with_overhead: bool) -> u64 {
        let overhead = if with_overhead { self.settings.overhead.into() } else { 0 };
        u64::from(frame.length()).saturating_add_signed(overhead)
    }

    fn in_group(&self, frame: &Frame, unit: Unit) -> u64 {
        match unit {
            Unit::Frames => 1,
            Unit::Bytes => self.weight(frame, self.settings.overhead_in_group),
        }
    }

    /// Whether frames are waiting that a portal may take.
    pub fn is_ready(&self) -> bool {
        self.stage == Stage::Scheduled
            && self.place == Place::Idle
            && !self.is_off
            && !self.frames.is_empty()
    }

    /// Whether it is open for frames.
    ///
    /// # Errors
    /// [`Rejection::NoService`].
    #[inline]
    pub fn check_service(&self) -> Result<(), Rejection> {
        match self.stage {
            Stage::Parked | Stage::Scheduled if self.retiring.is_none() => Ok(()),
            _ => Err(Rejection::NoService),
        }
    }

    /// Takes a frame in.
    ///
    /// # Errors
    /// Why not, except for being out of service.
    #[inline]
    pub fn push(&mut self, groups: &Groups, frame: Frame) -> Result<(), Rejection> {
        let weight = self.weight(&frame, self.settings.overhead_in_queue);
        if self.frames.len() >= LONGEST_QUEUE
            || self.settings.tail_drop.is_some_and(|most| self.bytes + weight > most.bytes)
        {
            return Err(Rejection::TailDrop);
        }
        if let Some(group) = self.settings.group.and_then(|group| groups.get(group)) {
            groups.add(group, |unit| self.in_group(&frame, unit))?;
        }
        self.bytes += weight;
        self.frames.push_back(frame);
        Ok(())
    }

    /// Hands frames on, as many as there is room for and as are wanted; how many.
    #[inline]
    pub fn take(
        &mut self,
        groups: &Groups,
        number: u32,
        most: usize,
        status: Status,
        out: &mut impl Entries,
    ) -> usize {
        let count = self.frames.len().min(most);
        let (context_a, context_b) = (self.settings.context_a, self.settings.context_b);
        let group = self.settings.group.and_then(|group| groups.get(group));
        for left in (0..count).rev() {
            let Some(frame) = self.frames.pop_front() else { break };
            self.bytes =
                self.bytes.saturating_sub(self.weight(&frame, self.settings.overhead_in_queue));
            if let Some(group) = group {
                groups.subtract(group, |unit| self.in_group(&frame, unit));
            }
            let is_last = left == 0 && self.frames.is_empty();
            let status = status | if is_last { Status::EMPTY } else { Status::NONE };
            out.push(Entry {
                frame,
                context_a,
                queue: number,
                context_b,
                sequence: self.sequence,
                status: status | Status::FRAME,
            });
            self.sequence = (self.sequence + 1) & SEQUENCE;
        }
        count
    }

    /// Moves what its frames weigh from its congestion group to another.
    pub fn change_group(&mut self, groups: &Groups, to: Option<u8>) {
        let total = |unit: Unit| -> u64 {
            self.frames.iter().map(|frame| self.in_group(frame, unit)).sum()
        };
        if let Some(group) = self.settings.group.and_then(|group| groups.get(group)) {
            groups.subtract(group, total);
        }
        if let Some(group) = to.and_then(|group| groups.get(group)) {
            groups.add_anyway(group, total);
        }
        self.settings.group = to;
    }

    /// Weighs its frames again, as the settings have changed.
    pub fn weigh(&mut self) {
        let with_overhead = self.settings.overhead_in_queue;
        self.bytes = self.frames.iter().map(|frame| self.weight(frame, with_overhead)).sum();
    }
}
