//! What a portal is told, beside frames: rejections, and queues that have changed.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::*},
    },
};

use crate::{Frame, Notifier, Rejection, channel::Wake, lock::lock};

/// Messages that wait for a portal at most, before its own enqueues wait.
const MOST: usize = 1 << 16;

/// What is left behind in a queue that is retired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leftover {
    /// Frames: to be taken by a volatile dequeue.
    pub frames: bool,
    /// Frames that order restoration kept back: they come back as rejections, then [`Message::OrderEmpty`].
    pub order: bool,
}

/// What has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// A frame that this portal has enqueued was not taken.
    Rejected {
        /// It; its buffer is the receiver's of this message.
        frame: Frame,
        /// Where it was to go.
        queue: u32,
        /// As in its command.
        tag: u32,
        /// Why not.
        why: Rejection,
        /// The order restoration point that it was to pass, and its sequence number.
        order: Option<(u32, u16)>,
    },
    /// A frame that an interface has enqueued was not taken.
    PortRejected {
        /// It; its buffer is the receiver's of this message.
        frame: Frame,
        /// Where it was to go.
        queue: u32,
        /// The number of the interface's engine.
        engine: u8,
        /// Why not.
        why: Rejection,
    },
    /// A queue is retired now.
    Retired {
        /// It.
        queue: u32,
        /// Its `context_b`.
        tag: u32,
        /// What is left in it.
        left: Leftover,
    },
    /// Order restoration of a retired queue keeps nothing back any more.
    OrderEmpty {
        /// The queue.
        queue: u32,
        /// Its `context_b`.
        tag: u32,
    },
    /// A queue is parked now, as a portal has asked for when it consumed its last entry.
    Parked {
        /// It.
        queue: u32,
        /// Its `context_b`.
        tag: u32,
    },
}

/// Messages for a portal.
#[derive(Default)]
pub(crate) struct Inbox {
    pub is_bound: AtomicBool,
    count: AtomicUsize,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    messages: VecDeque<Message>,
    sleeper: Option<Arc<Notifier>>,
}

impl Inbox {
    /// Adds a message, if anybody has the portal. Whoever posts for another portal is not held up by a full inbox: what is beyond is
    /// lost, which takes a portal that is not polled at all.
    pub fn post(&self, message: Message) -> Wake {
        self.offer(message, 2 * MOST).unwrap_or_default()
    }

    /// The same, but nothing is lost: `None` where nobody has the portal, or `MOST` messages wait already.
    pub fn offer_frame(&self, message: Message) -> Option<Wake> {
        self.offer(message, MOST)
    }

    fn offer(&self, message: Message, most: usize) -> Option<Wake> {
        let mut inner = lock(&self.inner);
        if inner.messages.len() >= most || !self.is_bound.load(Relaxed) {
            return None;
        }
        inner.messages.push_back(message);
        self.count.store(inner.messages.len(), Relaxed);
        Some(Wake(inner.sleeper.take().into_iter().collect()))
    }

    pub fn is_full(&self) -> bool {
        self.count.load(Relaxed) >= MOST
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count.load(Relaxed) == 0
    }

    pub fn pop(&self) -> Option<Message> {
        if self.is_empty() {
            return None;
        }
        let mut inner = lock(&self.inner);
        let message = inner.messages.pop_front();
        self.count.store(inner.messages.len(), Relaxed);
        message
    }

    /// Has a sleeper woken by the next message, if none is there.
    pub fn arm(&self, sleeper: &Arc<Notifier>) -> bool {
        let mut inner = lock(&self.inner);
        if !inner.messages.is_empty() {
            return false;
        }
        inner.sleeper = Some(sleeper.clone());
        true
    }

    pub fn disarm(&self) {
        lock(&self.inner).sleeper = None;
    }

    pub fn clear(&self) {
        self.empty(&mut lock(&self.inner));
    }

    /// Nobody has the portal any more, and the next one gets no message of before.
    pub fn leave(&self) {
        let mut inner = lock(&self.inner);
        self.empty(&mut inner);
        self.is_bound.store(false, Release);
    }

    fn empty(&self, inner: &mut Inner) {
        inner.messages.clear();
        inner.sleeper = None;
        self.count.store(0, Relaxed);
    }
}
