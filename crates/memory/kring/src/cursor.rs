//! Validity of the program's cursors (S-SYNC-5): plain arithmetic, no memory.

/// `head` and `cur` as a program left them in its ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursors {
    /// The first slot that the program keeps.
    pub head: u32,
    /// Where the program wants to be woken.
    pub cur: u32,
}

/// The slots that the program may hold: `[start, end)` modulo `slots`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Where `head` stood at the last accepted sync.
    pub start: u32,
    /// The `tail` that the program was told.
    pub end: u32,
    /// Slots of the ring.
    pub slots: u32,
}

impl Window {
    /// Whether `head` and `cur` lie in the window, in this order.
    #[inline]
    pub fn admits(&self, c: Cursors) -> bool {
        if c.head >= self.slots || c.cur >= self.slots {
            return false;
        }
        let size = self.past_start(self.end);
        let head = self.past_start(c.head);
        let cur = self.past_start(c.cur);
        head <= cur && cur <= size
    }

    /// Slots from `start` to `i`. The window may come from memory that somebody scribbled
    /// over, so the arithmetic wraps: a wrong window admits the wrong cursors, no more.
    #[inline]
    fn past_start(&self, i: u32) -> u32 {
        let distance = i.wrapping_sub(self.start);
        if i >= self.start { distance } else { distance.wrapping_add(self.slots) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// S-SYNC-5 read literally: walk the slots of the window one by one.
    fn model(w: Window, c: Cursors) -> bool {
        let mut owned = vec![w.start];
        while *owned.last().unwrap() != w.end {
            owned.push((owned.last().unwrap() + 1) % w.slots);
        }
        let at = |i| owned.iter().position(|&o| o == i);
        matches!((at(c.head), at(c.cur)), (Some(h), Some(k)) if h <= k)
    }

    proptest! {
        #[test]
        fn s_sync_5(slots in 1u32..20, start in 0u32..20, end in 0u32..20, head in 0u32..25, cur in 0u32..25) {
            let w = Window { start: start % slots, end: end % slots, slots };
            let c = Cursors { head, cur };
            prop_assert_eq!(w.admits(c), model(w, c));
        }
    }
}
