//! Queues by number, made when they are first used.

use std::sync::OnceLock;

use crate::queue::Queue;

/// Numbers of queues are below this, and above 0.
pub const QUEUES: u32 = 1 << 24;

const PAGE: usize = 512;

/// Pages of queues. A queue that was used once keeps its place.
pub(crate) struct Table {
    pages: Box<[OnceLock<Box<[Queue]>>]>,
}

impl Table {
    pub fn new() -> Table {
        Table { pages: (0..QUEUES as usize / PAGE).map(|_| OnceLock::new()).collect() }
    }

    /// A queue that was made.
    #[inline]
    pub fn get(&self, number: u32) -> Option<&Queue> {
        let number = number as usize;
        self.pages.get(number / PAGE)?.get()?.get(number % PAGE)
    }

    /// A queue, made now if need be. There is no number 0.
    pub fn get_or_make(&self, number: u32) -> Option<&Queue> {
        if number == 0 {
            return None;
        }
        let page = self.pages.get(number as usize / PAGE)?;
        let page = page.get_or_init(|| (0..PAGE).map(|_| Queue::default()).collect());
        page.get(number as usize % PAGE)
    }
}
