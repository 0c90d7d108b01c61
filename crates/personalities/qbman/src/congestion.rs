//! Congestion groups: what several queues hold together, and when that is too much.

use std::{
    mem,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering::*},
    },
};

use crate::{Error, Notifier, Rejection, channel::Wake, lock::lock};

/// Groups have numbers below this.
pub const GROUPS: usize = 256;

/// What is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    /// Bytes of frames.
    #[default]
    Bytes,
    /// Frames.
    Frames,
}

/// When a group is congested, and what happens then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupSettings {
    /// What is counted.
    pub unit: Unit,
    /// Congested from here on; never, without. The end of it is below 7/8 of that.
    pub threshold: Option<u64>,
    /// While congested, frames are rejected.
    pub drops: bool,
    /// Nothing is done with these: for an API's own fields.
    pub attributes: [u8; 25],
}

/// A congestion group.
#[derive(Debug, Default)]
pub struct Group {
    bytes: AtomicU64,
    frames: AtomicU64,
    /// A copy of what `settings` says, for reading without its lock: no threshold is the largest number.
    in_frames: AtomicBool,
    entry: AtomicU64,
    exit: AtomicU64,
    drops: AtomicBool,
    is_congested: AtomicBool,
    settings: Mutex<GroupSettings>,
}

impl Group {
    fn new() -> Group {
        Group { entry: AtomicU64::new(u64::MAX), ..Group::default() }
    }

    fn unit(&self) -> Unit {
        if self.in_frames.load(Relaxed) { Unit::Frames } else { Unit::Bytes }
    }

    /// How much there is now.
    pub fn count(&self) -> u64 {
        match self.unit() {
            Unit::Bytes => self.bytes.load(Relaxed),
            Unit::Frames => self.frames.load(Relaxed),
        }
    }

    /// Whether it is congested.
    pub fn is_congested(&self) -> bool {
        self.is_congested.load(Relaxed)
    }

    /// How it is set.
    pub fn settings(&self) -> GroupSettings {
        *lock(&self.settings)
    }

    fn set(&self, settings: GroupSettings) -> bool {
        let mut place = lock(&self.settings);
        *place = settings;
        let entry = settings.threshold.unwrap_or(u64::MAX);
        self.in_frames.store(settings.unit == Unit::Frames, Relaxed);
        self.drops.store(settings.drops, Relaxed);
        self.exit.store(entry - entry / 8, Relaxed);
        self.entry.store(entry, Relaxed);
        self.rose() | self.fell()
    }

    fn rose(&self) -> bool {
        self.count() >= self.entry.load(Relaxed) && !self.is_congested.swap(true, Relaxed)
    }

    fn fell(&self) -> bool {
        self.is_congested.load(Relaxed)
            && self.count() < self.exit.load(Relaxed)
            && self.is_congested.swap(false, Relaxed)
    }
}

/// All groups, and the portals that wait for changes of any.
pub(crate) struct Groups {
    groups: Box<[Group]>,
    /// A group has changed, and nobody was woken for it yet.
    changed: AtomicBool,
    sleepers: Mutex<Vec<Arc<Notifier>>>,
}

impl Groups {
    pub fn new() -> Groups {
        let groups = (0..GROUPS).map(|_| Group::new()).collect();
        Groups { groups, changed: AtomicBool::new(false), sleepers: Mutex::default() }
    }

    #[inline]
    pub fn get(&self, number: u8) -> Option<&Group> {
        self.groups.get(usize::from(number))
    }

    /// # Errors
    /// [`Error::NoGroup`].
    pub fn checked(&self, number: u32) -> Result<&Group, Error> {
        self.groups.get(number as usize).ok_or(Error::NoGroup(number))
    }

    fn note(&self, has_changed: bool) {
        if has_changed {
            self.changed.store(true, Release);
        }
    }

    /// Changes settings. What is in the group's queues stays counted.
    pub fn set(&self, group: &Group, settings: GroupSettings) {
        self.note(group.set(settings));
    }

    /// # Errors
    /// [`Rejection::Congested`].
    pub fn add(&self, group: &Group, weight: impl Fn(Unit) -> u64) -> Result<(), Rejection> {
        if group.drops.load(Relaxed) && group.is_congested() {
            return Err(Rejection::Congested);
        }
        self.add_anyway(group, weight);
        Ok(())
    }

    pub fn add_anyway(&self, group: &Group, weight: impl Fn(Unit) -> u64) {
        group.bytes.fetch_add(weight(Unit::Bytes), Relaxed);
        group.frames.fetch_add(weight(Unit::Frames), Relaxed);
        self.note(group.rose());
    }

    pub fn subtract(&self, group: &Group, weight: impl Fn(Unit) -> u64) {
        group.bytes.fetch_sub(weight(Unit::Bytes), Relaxed);
        group.frames.fetch_sub(weight(Unit::Frames), Relaxed);
        self.note(group.fell());
    }

    /// Those to be woken for changes since the last call.
    #[inline]
    pub fn news(&self) -> Wake {
        if !self.changed.load(Relaxed) || !self.changed.swap(false, AcqRel) {
            return Wake::default();
        }
        Wake(mem::take(&mut *lock(&self.sleepers)))
    }

    /// Has a sleeper woken by the next change, if what it sees is still so.
    pub fn arm(&self, sleeper: &Arc<Notifier>, is_unchanged: impl Fn() -> bool) -> bool {
        let mut sleepers = lock(&self.sleepers);
        if !sleepers.iter().any(|other| Arc::ptr_eq(other, sleeper)) {
            sleepers.push(sleeper.clone());
        }
        drop(sleepers);
        is_unchanged()
    }

    /// Takes a sleeper off.
    pub fn disarm(&self, sleeper: &Arc<Notifier>) {
        lock(&self.sleepers).retain(|other| !Arc::ptr_eq(other, sleeper));
    }
}
