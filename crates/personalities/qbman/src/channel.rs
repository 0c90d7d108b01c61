//! Channels: eight work queues of frame queues, and which of them is served next.

use std::{
    collections::VecDeque,
    mem,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU16, AtomicU32, Ordering::Relaxed},
    },
};

use crate::{Notifier, listing::Row, lock::lock};

/// Work queues of a channel, the most urgent first.
pub const WORK_QUEUES: usize = 8;

/// Those that are served in turns; those of a row are served when those of the rows above are empty.
const CLASSES: [std::ops::Range<usize>; 4] = [0..1, 1..2, 2..5, 5..8];

/// How a channel chooses among its work queues: strictly between {0}, {1}, {2, 3, 4} and {5, 6, 7}, in turns within
/// each of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arbitration {
    /// Queues that are served in a row from a work queue while others of its class wait; 0 means 1.
    pub weights: [u8; WORK_QUEUES],
    /// After so many times that a class was passed over although it had frames, it is served once: it ages. 0: never.
    pub ageing: u16,
}

impl Default for Arbitration {
    fn default() -> Arbitration {
        Arbitration { weights: [1; WORK_QUEUES], ageing: 0 }
    }
}

#[derive(Default)]
struct WorkQueues {
    lists: [VecDeque<u32>; WORK_QUEUES],
    /// Lists that are not empty: a bit for each.
    filled: u8,
    arbitration: Arbitration,
    /// For each class: the place whose turn it is, and how often it may still go.
    turns: [(usize, u8); CLASSES.len()],
    /// How often a class was passed over.
    ages: [u16; CLASSES.len()],
    sleepers: Vec<Arc<Notifier>>,
}

/// Those to be woken, without the locks that the news came under.
#[must_use]
#[derive(Default)]
pub(crate) struct Wake(pub Vec<Arc<Notifier>>);

impl Wake {
    #[inline]
    pub fn now(self) {
        if self.0.is_empty() {
            return;
        }
        for sleeper in self.0 {
            sleeper.raise();
        }
    }

    #[inline]
    pub fn and(&mut self, more: Wake) {
        if !more.0.is_empty() {
            self.0.extend(more.0);
        }
    }
}

#[derive(Default)]
#[repr(align(64))]
pub(crate) struct Channel {
    /// How many queues are on it: to be read without the lock.
    waiting: AtomicU32,
    /// For that of a pool: its bit among those that something is on.
    pool: Option<(Arc<AtomicU16>, u16)>,
    inner: Mutex<WorkQueues>,
}

impl WorkQueues {
    /// The lists of a class that are not empty.
    fn filled_of(&self, class: usize) -> u8 {
        let all = CLASSES.get(class).map_or(0, |range| (1 << range.end) - (1 << range.start));
        self.filled & all as u8
    }

    fn class_has(&self, class: usize) -> bool {
        self.filled_of(class) != 0
    }

    /// Adds a queue to a list.
    fn push(&mut self, place: usize, queue: u32) {
        if let Some(list) = self.lists.get_mut(place) {
            list.push_back(queue);
            self.filled |= 1 << place;
        }
    }

    /// The class to be served.
    fn class(&mut self) -> Option<usize> {
        let first = (0..CLASSES.len()).find(|class| self.class_has(*class))?;
        if self.arbitration.ageing == 0 {
            return Some(first);
        }
        let mut chosen = first;
        for class in first + 1..CLASSES.len() {
            if !self.class_has(class) {
                continue;
            }
            let ageing = self.arbitration.ageing;
            let Some(age) = self.ages.get_mut(class) else { continue };
            *age += 1;
            if *age >= ageing && chosen == first {
                chosen = class;
                *age = 0;
            }
        }
        Some(chosen)
    }

    /// The work queue that is served next, and whether it is so until it is empty.
    fn next(&mut self) -> Option<(usize, bool)> {
        let class = self.class()?;
        let range = CLASSES.get(class)?.clone();
        let filled = self.filled_of(class);
        let is_only = filled.is_power_of_two() && self.arbitration.ageing == 0;
        let turn = self.turns.get_mut(class)?;
        let weight =
            |place: usize| self.arbitration.weights.get(place).map_or(1, |weight| (*weight).max(1));
        if filled.is_power_of_two() {
            // The others have nothing: its turn is the next, if it is not its already.
            let place = filled.trailing_zeros() as usize;
            if turn.1 == 0 || range.start + turn.0 != place {
                *turn = (place.saturating_sub(range.start), weight(place));
            }
            turn.1 -= 1;
            return Some((place, is_only));
        }
        for _ in 0..=range.len() {
            let place = range.start + turn.0;
            if turn.1 > 0 && filled >> place & 1 != 0 {
                turn.1 -= 1;
                return Some((place, is_only));
            }
            let next = if place + 1 < range.end { place + 1 } else { range.start };
            *turn = (next - range.start, weight(next));
        }
        None
    }

    /// Takes the next queue; and those behind it, if they are next whatever comes of it.
    fn pop(&mut self, queues: &mut [u32]) -> usize {
        let Some((place, is_only)) = self.next() else { return 0 };
        let Some(list) = self.lists.get_mut(place) else { return 0 };
        let most = if is_only { queues.len() } else { 1 };
        let taken = list.len().min(most);
        for (queue, place) in list.drain(..taken).zip(queues) {
            *place = queue;
        }
        if list.is_empty() {
            self.filled &= !(1 << place);
        }
        taken
    }
}

impl Channel {
    /// That of a pool, which has a bit set in `ready` while something is on it.
    pub fn of_pool(pool: u8, ready: Arc<AtomicU16>) -> Channel {
        Channel { pool: Some((ready, 1 << pool)), ..Channel::default() }
    }

    /// With the lock.
    #[inline]
    fn set_waiting(&self, waiting: u32) {
        let was = self.waiting.load(Relaxed);
        self.waiting.store(waiting, Relaxed);
        match &self.pool {
            Some((ready, bit)) if was == 0 && waiting > 0 => _ = ready.fetch_or(*bit, Relaxed),
            Some((ready, bit)) if was > 0 && waiting == 0 => _ = ready.fetch_and(!bit, Relaxed),
            _ => {}
        }
    }

    /// Puts queues at the ends of their work queues.
    pub fn push(&self, rows: &[Row]) -> Wake {
        let mut inner = lock(&self.inner);
        for row in rows {
            inner.push(row.work_queue.into(), row.queue);
        }
        self.set_waiting(self.waiting.load(Relaxed) + rows.len() as u32);
        match inner.sleepers.is_empty() {
            true => Wake::default(),
            false => Wake(mem::take(&mut inner.sleepers)),
        }
    }

    /// The next queues, as many as there is room for, or as are served in a row: how many, and whether others are
    /// waiting.
    #[inline]
    pub fn pop(&self, queues: &mut [u32]) -> (usize, bool) {
        if self.is_idle() { (0, false) } else { self.pop_waiting(queues) }
    }

    #[inline(never)]
    fn pop_waiting(&self, queues: &mut [u32]) -> (usize, bool) {
        let mut inner = lock(&self.inner);
        let count = inner.pop(queues);
        let left = self.waiting.load(Relaxed).saturating_sub(count as u32);
        self.set_waiting(left);
        (count, left > 0)
    }

    /// Takes a queue off, where it is on.
    pub fn remove(&self, queue: u32, work_queue: u8) {
        let mut inner = lock(&self.inner);
        let Some(list) = inner.lists.get_mut(usize::from(work_queue)) else { return };
        if let Some(place) = list.iter().position(|listed| *listed == queue) {
            list.remove(place);
            if list.is_empty() {
                inner.filled &= !(1 << work_queue);
            }
            self.set_waiting(self.waiting.load(Relaxed).saturating_sub(1));
        }
    }

    /// Whether nothing is on it, as far as can be seen from here.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.waiting.load(Relaxed) == 0
    }

    /// Has a sleeper woken by the next queue, if none is there yet.
    pub fn arm(&self, sleeper: &Arc<Notifier>) -> bool {
        let mut inner = lock(&self.inner);
        if inner.filled != 0 {
            return false;
        }
        if !inner.sleepers.iter().any(|other| Arc::ptr_eq(other, sleeper)) {
            inner.sleepers.push(sleeper.clone());
        }
        true
    }

    /// Takes a sleeper off.
    pub fn disarm(&self, sleeper: &Arc<Notifier>) {
        lock(&self.inner).sleepers.retain(|other| !Arc::ptr_eq(other, sleeper));
    }

    /// The queues on each work queue.
    pub fn lengths(&self) -> [u32; WORK_QUEUES] {
        let inner = lock(&self.inner);
        let mut lengths = [0; WORK_QUEUES];
        for (length, list) in lengths.iter_mut().zip(&inner.lists) {
            *length = list.len() as u32;
        }
        lengths
    }

    pub fn arbitrate(&self, arbitration: Arbitration) {
        lock(&self.inner).arbitration = arbitration;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(channel: &Channel, queue: u32, work_queue: u16) -> usize {
        channel.push(&[Row { queue, channel: 0, work_queue }]).0.len()
    }

    fn pop(channel: &Channel) -> Option<(u32, bool)> {
        let mut queue = [0];
        let (count, others) = channel.pop(&mut queue);
        (count == 1).then_some((queue[0], others))
    }

    /// What is served when 100 queues wait on each of some work queues, by their work queues.
    fn served(arbitration: Arbitration, work_queues: &[u16], count: usize) -> Vec<u32> {
        let channel = Channel::default();
        channel.arbitrate(arbitration);
        for work_queue in work_queues {
            (0..100).for_each(|_| assert_eq!(push(&channel, (*work_queue).into(), *work_queue), 0));
        }
        (0..count).map(|_| pop(&channel).unwrap().0).collect()
    }

    #[test]
    fn classes_are_strict_and_fair_within() {
        let all: Vec<u16> = (0..8).collect();
        let order = served(Arbitration::default(), &all, 800);
        assert_eq!(order[..100], [0; 100]);
        assert_eq!(order[100..200], [1; 100]);
        for rounds in order[200..500].chunks(3) {
            let mut round = rounds.to_vec();
            round.sort_unstable();
            assert_eq!(round, [2, 3, 4]);
        }
        assert!(order[500..].iter().all(|queue| *queue >= 5));
    }

    #[test]
    fn several_are_taken_at_once_where_that_changes_nothing() {
        let channel = Channel::default();
        for (queue, work_queue) in [(1, 0), (2, 0), (3, 2), (4, 2), (5, 3), (6, 7), (7, 7)] {
            push(&channel, queue, work_queue);
        }
        let mut queues = [0; 3];
        for (expected, others) in
            [(vec![1, 2], true), (vec![5], true), (vec![3, 4], true), (vec![6, 7], false)]
        {
            let (count, left) = channel.pop(&mut queues);
            assert_eq!((&queues[..count], left), (&expected[..], others));
        }
        assert_eq!(channel.pop(&mut queues), (0, false));
    }

    #[test]
    fn weights_count_within_a_class() {
        let weights = [1, 1, 1, 3, 1, 1, 1, 1];
        let order = served(Arbitration { weights, ageing: 0 }, &[3, 4], 80);
        assert_eq!(order.iter().filter(|queue| **queue == 3).count(), 60);
    }

    #[test]
    fn a_class_that_is_passed_over_ages() {
        let ageing = Arbitration { ageing: 4, ..Arbitration::default() };
        let order = served(ageing, &[0, 7], 40);
        assert_eq!(order.iter().filter(|queue| **queue == 7).count(), 10);
        let never = served(Arbitration::default(), &[0, 7], 40);
        assert!(never.iter().all(|queue| *queue == 0));
    }

    #[test]
    fn a_sleeper_is_woken_once_by_the_first_queue() {
        let channel = Channel::default();
        let sleeper = Arc::new(Notifier::new().unwrap());
        assert!(channel.arm(&sleeper) && channel.arm(&sleeper));
        assert_eq!(push(&channel, 1, 0), 1);
        assert_eq!(push(&channel, 2, 0), 0);
        assert!(!channel.arm(&sleeper));
        channel.remove(1, 0);
        channel.remove(1, 0);
        assert_eq!(pop(&channel), Some((2, false)));
        assert!(channel.arm(&sleeper));
        channel.disarm(&sleeper);
        assert_eq!(push(&channel, 1, 0), 0);
    }
}
