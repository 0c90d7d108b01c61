//! What can be wrong.

/// Why a command is refused. Nothing has changed then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Queues have numbers from 1 up to [`QUEUES`](crate::QUEUES) - 1.
    #[error("there is no queue {0}: numbers are from 1 to 16777215")]
    NoQueue(u32),
    /// Not a channel that queues can be put on.
    #[error(
        "there is no channel {0:#x}: portals have 0 to 0x1f, pools 0x21 to 0x2f, interfaces 0x40 to 0xff"
    )]
    NoChannel(u16),
    /// Not a congestion group.
    #[error("there is no congestion group {0}: numbers are from 0 to 255")]
    NoGroup(u32),
    /// Not a pool of buffers.
    #[error("there is no buffer pool {0}: numbers are from 0 to 63")]
    NoPool(u8),
    /// The queue's state does not allow it.
    #[error("queue {0} is not in a state that allows this: see how its life goes")]
    State(u32),
    /// Frames are left in the queue.
    #[error("queue {0} is not empty: take its frames by a volatile dequeue first")]
    NotEmpty(u32),
    /// A portal executes one volatile dequeue at a time.
    #[error("a volatile dequeue is under way on this portal: poll until it has expired")]
    Busy,
    /// All in use.
    #[error("all portals are in use: a thread that has finished gives its one back")]
    NoPortal,
    /// The pool has fewer buffers.
    #[error("buffer pool {0} has too few buffers: release some, or seed it with more")]
    Depleted(u8),
    /// The pool takes no more.
    #[error("buffer pool {0} is full")]
    Full(u8),
    /// An id of a range is in use.
    #[error("an id of the range is in use, or there is none such: reserve others")]
    Taken,
}

/// Why a frame was not taken by a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// Its congestion group is congested, and drops.
    Congested,
    /// The queue is out of service, retired, or there is none.
    NoService,
    /// Its sequence number is beyond the window.
    Early,
    /// Its sequence number is behind what is expected.
    Late,
    /// The queue is full.
    TailDrop,
    /// The order restoration point has been retired.
    OrderRetired,
    /// The queue is no order restoration point.
    NoOrder,
}
