//! Frames that were taken from queues, and where they go.

use std::ops::BitOr;

use crate::Frame;

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
    /// The last `count` entries are of a queue that is held: from these on if that `is_new`.
    fn hold(&mut self, _queue: u32, _count: usize, _is_new: bool) {}
}
