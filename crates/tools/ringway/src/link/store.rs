//! The frames that are on their way, in memory that is allocated before the first one.

use crate::sys;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Bytes of memory for one frame's times and place.
const BYTES_PER_FRAME: usize = 256;

/// When a frame is due, and its number. Those due at one time leave in the order in which they came.
type Due = (u64, u64);

/// Frames, ordered by when they are due.
///
/// Their bytes lie one behind the other in a ring. The memory of frames that have left is free again when
/// those before them have left, too.
#[derive(Debug)]
pub struct Store {
    bytes: Box<[u8]>,
    frames: VecDeque<Frame>,
    most: usize,
    /// The number of the first of `frames`.
    first: u64,
    /// Where the next frame's bytes go.
    end: usize,
    /// Frames that are due after all those before them, and the others.
    in_order: VecDeque<Due>,
    early: BinaryHeap<Reverse<Due>>,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    start: usize,
    length: usize,
    has_left: bool,
}

impl Store {
    /// Allocates memory for so many bytes of frames; there may be one frame for each 256 of them.
    /// `huge`: in huge pages, where the kernel has any.
    pub fn new(memory: usize, huge: bool) -> Store {
        let memory = memory.max(BYTES_PER_FRAME);
        let most = memory / BYTES_PER_FRAME;
        let mut bytes = vec![0; memory].into_boxed_slice();
        if huge {
            sys::advise_huge_pages(&mut bytes);
        }
        // Written to, so that each page is there before a frame needs it.
        bytes.fill(0xff);
        Store {
            bytes,
            frames: VecDeque::with_capacity(most),
            most,
            first: 0,
            end: 0,
            in_order: VecDeque::with_capacity(most),
            early: BinaryHeap::with_capacity(most),
        }
    }

    /// Whether a frame of so many bytes would be taken in. An empty store takes any frame that it can ever take.
    pub fn has_room(&self, length: usize) -> bool {
        self.frames.is_empty() || (self.frames.len() < self.most && self.place(length).is_some())
    }

    /// Frames that there is room for.
    pub fn most(&self) -> usize {
        self.most
    }

    /// Takes a frame in; returns the place for its bytes, or `None` if there is no memory for it.
    #[inline]
    pub fn push(&mut self, due: u64, length: usize) -> Option<&mut [u8]> {
        if self.frames.len() == self.most {
            return None;
        }
        let start = self.place(length)?;
        let number = self.first + self.frames.len() as u64;
        self.frames.push_back(Frame { start, length, has_left: false });
        self.end = start + length;
        match self.in_order.back() {
            Some(&(last, _)) if due < last => self.early.push(Reverse((due, number))),
            _ => self.in_order.push_back((due, number)),
        }
        self.bytes.get_mut(start..start + length)
    }

    /// Where so many bytes are free in one piece. The place never ends where the first frame starts: else a
    /// full ring would look like an empty one.
    fn place(&self, length: usize) -> Option<usize> {
        let Some(first) = self.frames.front() else {
            return (length <= self.bytes.len()).then_some(0);
        };
        let wraps = self.end <= first.start;
        match wraps {
            true => (self.end + length < first.start).then_some(self.end),
            false if self.end + length <= self.bytes.len() => Some(self.end),
            false => (length < first.start).then_some(0),
        }
    }

    fn next(&self) -> Option<(Due, bool)> {
        let in_order = self.in_order.front().map(|&due| (due, false));
        let early = self.early.peek().map(|&Reverse(due)| (due, true));
        match (in_order, early) {
            (Some(a), Some(b)) => Some(if b.0 < a.0 { b } else { a }),
            (a, b) => a.or(b),
        }
    }

    /// When the next frame is due.
    #[inline]
    pub fn due(&self) -> Option<u64> {
        self.next().map(|((due, _), _)| due)
    }

    /// The frame that is due next, and when.
    #[inline]
    pub fn peek(&self) -> Option<(u64, &[u8])> {
        let ((due, number), _) = self.next()?;
        let frame = self.frames.get((number - self.first) as usize)?;
        Some((due, self.bytes.get(frame.start..frame.start + frame.length)?))
    }

    /// The frame that was due next has left.
    #[inline]
    pub fn pop(&mut self) {
        let Some(((_, number), is_early)) = self.next() else { return };
        if is_early {
            self.early.pop();
        } else {
            self.in_order.pop_front();
        }
        if let Some(frame) = self.frames.get_mut((number - self.first) as usize) {
            frame.has_left = true;
        }
        while self.frames.front().is_some_and(|frame| frame.has_left) {
            self.frames.pop_front();
            self.first += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn memory_is_used_to_the_last_byte_and_again() {
        let mut store = Store::new(1024, false);
        assert_eq!(store.most(), 4);
        for round in 0..10 {
            assert_eq!(store.due(), None);
            for n in 0..4 {
                assert_eq!(store.push(round, 256).unwrap().len(), 256, "{n}");
            }
            assert!(store.push(round, 0).is_none(), "no more than four frames");
            (0..4).for_each(|_| store.pop());
        }
        assert!(store.push(0, 1025).is_none());
        assert!(store.push(0, 1024).is_some());
        assert!(store.push(0, 1).is_none());
    }

    #[derive(Clone, Debug)]
    enum Step {
        Push { due: u64, length: usize },
        Pop,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            3 => (0u64..50, 0usize..400).prop_map(|(due, length)| Step::Push { due, length }),
            2 => Just(Step::Pop),
        ]
    }

    proptest! {
        /// Held against a list: frames come out by their times and then by their numbers, with their own
        /// bytes, whatever else is written meanwhile; and are refused only while memory is taken.
        #[test]
        fn it_is_a_sorted_list(steps in proptest::collection::vec(step(), 1..400), memory in 256usize..4000) {
            let mut store = Store::new(memory, false);
            let mut list: Vec<(u64, u8, usize)> = Vec::new();
            let mut number = 0u8;
            for step in steps {
                match step {
                    Step::Push { due, length } => {
                        number = number.wrapping_add(1);
                        match store.push(due, length) {
                            Some(place) => {
                                prop_assert_eq!(place.len(), length);
                                place.fill(number);
                                list.push((due, number, length));
                            }
                            None => prop_assert!(!list.is_empty() || length > memory.max(256)),
                        }
                    }
                    Step::Pop => {
                        store.pop();
                        // The first of the least: the list is in the order of arrival.
                        if let Some(at) = (0..list.len()).min_by_key(|&at| list[at].0) {
                            list.remove(at);
                        }
                    }
                }
                let next = list.iter().min_by_key(|entry| entry.0);
                prop_assert_eq!(store.due(), next.map(|entry| entry.0));
                match (store.peek(), next) {
                    (Some((due, bytes)), Some(&(wanted, number, length))) => {
                        prop_assert_eq!((due, bytes.len()), (wanted, length));
                        prop_assert!(bytes.iter().all(|byte| *byte == number));
                    }
                    (None, None) => (),
                    (got, wanted) => prop_assert!(false, "{got:?} for {wanted:?}"),
                }
            }
        }
    }
}
