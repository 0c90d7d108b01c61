//! Receiving: from what the socket is bound to into the program's frames.

mod stack;

use std::{
    num::NonZeroU64,
    os::fd::{AsFd, AsRawFd, OwnedFd, RawFd},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::*, fence},
    },
    time::{Duration, Instant},
};

use ringway::NS_MOREFRAG;
use ringway_abi::Dir;
use ringway_kring::{Prepared, Sleeper, Sources, Waiter, Woken, prepare};
use ringway_region::{Buf, RingView, Slot};
use rustix::{
    event::{EventfdFlags, PollFlags, eventfd},
    thread::set_current_timer_slack,
};

use crate::{
    abi::TP4_PKT_CONT,
    area::Area,
    desc::{Desc, DescRing},
    device::Device,
};

const BAD: u8 = libc::EBADF as u8;

/// How long the mover sleeps where packets wait and the program has no descriptor for them, which nothing tells: a part
/// of the time that they have waited, within these.
const PART: u32 = 16;
const FIRST_NAP: Duration = Duration::from_micros(1);
const LONGEST_NAP: Duration = Duration::from_millis(5);
/// Nanoseconds by which the kernel may stretch such a sleep; its own setting is more than twice as long.
const SLACK: NonZeroU64 = NonZeroU64::new(1_000).unwrap();

/// The program's receive ring, and what its packets come from.
pub struct Receiver {
    queue: Mutex<RxQueue>,
    device: Device,
    /// Wakes the mover.
    wake: OwnedFd,
    /// Wakes the program's polls.
    news: OwnedFd,
    /// A poll of the program's sleeps, or is about to.
    awaited: AtomicBool,
    stopping: AtomicBool,
    gone: AtomicBool,
    mover: Arc<Mover>,
}

/// Whether the mover runs.
#[derive(Default)]
struct Mover {
    runs: Mutex<bool>,
    ended: Condvar,
}

/// What a look at the port has come to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Found {
    Nothing,
    /// Packets have been moved.
    Packets,
    /// There are packets, and no descriptors for them.
    NoRoom,
}

impl Receiver {
    /// Receives from `device` into `ring`. A thread moves the packets while the program makes no call.
    pub fn start(ring: DescRing, area: Area, device: Device) -> Result<Arc<Receiver>, i32> {
        let event = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let (wake, news) = match (event(), event()) {
            (Ok(wake), Ok(news)) => (wake, news),
            (Err(error), _) | (_, Err(error)) => return Err(error.raw_os_error()),
        };
        let receiver = Arc::new(Receiver {
            queue: Mutex::new(RxQueue::new(ring, area, device.lost())),
            device,
            wake,
            news,
            awaited: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            gone: AtomicBool::new(false),
            mover: Arc::new(Mover { runs: Mutex::new(true), ended: Condvar::new() }),
        });
        let moving = receiver.clone();
        ringway_interpose::helper_thread(move || {
            moving.run();
            let mover = moving.mover.clone();
            drop(moving);
            *lock(&mover.runs) = false;
            mover.ended.notify_all();
        })?;
        Ok(receiver)
    }

    /// Ends the mover, and waits for that: then nothing writes to the program's memory any more.
    pub fn stop(&self) {
        self.stopping.store(true, SeqCst);
        ring_bell(&self.wake);
        let mut runs = lock(&self.mover.runs);
        while *runs {
            runs = self.mover.ended.wait(runs).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Moves what there is, and says whether the program has something to receive. `None`: nothing will come.
    pub fn look(&self) -> Option<bool> {
        let mut queue = lock(&self.queue);
        let found = self.pump(&mut queue);
        let ready = queue.ring.has_received();
        drop(queue);
        if found == Found::Packets {
            self.announce();
        }
        if ready || !self.gone.load(Relaxed) { Some(ready) } else { None }
    }

    pub fn position(&self) -> u32 {
        lock(&self.queue).ring.position()
    }

    /// Packets delivered, and lost, since the last time.
    pub fn take_statistics(&self) -> [u64; 2] {
        let lost = self.device.lost();
        lock(&self.queue).take_statistics(lost)
    }

    /// A poll is about to sleep on the [news](Self::news). True if there were some.
    pub fn arm(&self) -> bool {
        let drained = drain(&self.news);
        self.awaited.store(true, SeqCst);
        fence(SeqCst);
        drained
    }

    /// A poll does not sleep after all.
    pub fn disarm(&self) {
        ring_bell(&self.news);
    }

    pub fn news(&self) -> RawFd {
        self.news.as_raw_fd()
    }

    fn announce(&self) {
        fence(SeqCst);
        if self.awaited.load(Relaxed) && self.awaited.swap(false, SeqCst) {
            ring_bell(&self.news);
        }
    }

    fn pump(&self, queue: &mut RxQueue) -> Found {
        let binding = match &self.device {
            Device::Port(port) => port.binding(),
            Device::Stack(stack) => {
                let found = stack.with_listener(|listener| queue.take_heard(listener));
                if found == Some(Found::Packets) {
                    stack.link().heard();
                }
                return found.unwrap_or(Found::Nothing);
            }
        };
        binding.sync(Dir::Rx);
        let mut found = Found::Nothing;
        for bound in binding.rings(Dir::Rx) {
            match queue.take(bound.kring().ring()) {
                Found::Nothing => {}
                Found::NoRoom if found == Found::Packets => {}
                other => found = other,
            }
        }
        found
    }

    /// The mover. It sleeps rather than looks again: a program that looks at its ring all the time has a CPU for
    /// itself, and on a machine with few the kernel prefers a thread that was asleep.
    fn run(&self) {
        // Without it the naps are longer.
        let _ = set_current_timer_slack(Some(SLACK));
        let mut no_room_since = None;
        while !self.stopping.load(SeqCst) {
            let found = self.pump(&mut lock(&self.queue));
            if found != Found::NoRoom {
                no_room_since = None;
            }
            match found {
                Found::Packets => self.announce(),
                Found::NoRoom => {
                    let now = Instant::now();
                    let waited = now - *no_room_since.get_or_insert(now);
                    let nap = (waited / PART).clamp(FIRST_NAP, LONGEST_NAP);
                    self.sleep_until(Some(now + nap));
                }
                Found::Nothing => self.wait(),
            }
        }
    }

    /// Sleeps until there may be packets.
    fn wait(&self) {
        if self.gone.load(Relaxed) {
            return self.sleep_until(None);
        }
        let woken = match prepare(&mut Waiting(self)) {
            Prepared::Ready => return,
            Prepared::Armed(armed) => {
                armed.sleep(self.device.rest(Dir::Rx).map(|rest| Instant::now() + rest))
            }
        };
        drain(&self.wake);
        if matches!(woken, Ok(Woken::HungUp) | Err(_)) || self.device.has_gone(Dir::Rx) {
            self.gone.store(true, Relaxed);
            self.announce();
        }
    }

    /// Sleeps until it is woken.
    fn sleep_until(&self, deadline: Option<Instant>) {
        let mut alone = Alone(self);
        if let Prepared::Armed(armed) = prepare(&mut alone) {
            let _ = armed.sleep(deadline);
        }
        drain(&self.wake);
    }
}

/// The mover, which waits for packets.
struct Waiting<'r>(&'r Receiver);

impl Waiter for Waiting<'_> {
    fn look(&mut self) -> bool {
        let found = self.0.pump(&mut lock(&self.0.queue));
        if found == Found::Packets {
            self.0.announce();
        }
        found != Found::Nothing || self.0.stopping.load(SeqCst)
    }

    fn arm(&mut self) -> bool {
        self.0.device.arm(Dir::Rx)
    }

    fn pass_on(&mut self) {
        self.0.device.disarm(Dir::Rx);
    }
}

impl Sleeper for Waiting<'_> {
    fn sources<'s>(&'s self, sources: &mut Sources<'s>) {
        let Receiver { device, wake, .. } = self.0;
        sources.add(wake.as_fd(), PollFlags::IN);
        device.add_sources(Dir::Rx, sources);
    }
}

/// The mover, which waits for nothing but to be woken.
struct Alone<'r>(&'r Receiver);

impl Waiter for Alone<'_> {
    fn look(&mut self) -> bool {
        self.0.stopping.load(SeqCst)
    }

    fn arm(&mut self) -> bool {
        false
    }

    fn pass_on(&mut self) {}
}

impl Sleeper for Alone<'_> {
    fn sources<'s>(&'s self, sources: &mut Sources<'s>) {
        sources.add(self.0.wake.as_fd(), PollFlags::IN);
    }
}

fn ring_bell(eventfd: &OwnedFd) {
    let _ = rustix::io::write(eventfd, &1u64.to_ne_bytes());
}

fn drain(eventfd: &OwnedFd) -> bool {
    rustix::io::read(eventfd, &mut [0; 8]).is_ok()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The program's descriptors and frames.
pub struct RxQueue {
    ring: DescRing,
    area: Area,
    packets: u64,
    dropped: u64,
    /// Of the port's losses, those that the program was told.
    told_lost: u64,
    /// Frames of a packet that takes several.
    frames: Vec<u64>,
}

impl RxQueue {
    pub fn new(ring: DescRing, area: Area, lost: u64) -> RxQueue {
        RxQueue { ring, area, packets: 0, dropped: 0, told_lost: lost, frames: Vec::new() }
    }

    fn take_statistics(&mut self, lost: u64) -> [u64; 2] {
        let dropped = std::mem::take(&mut self.dropped) + lost.saturating_sub(self.told_lost);
        self.told_lost = lost;
        [std::mem::take(&mut self.packets) + dropped, dropped]
    }

    /// Moves packets out of a ring of the port.
    pub fn take(&mut self, ring: &RingView) -> Found {
        let (head, tail, slots) = (ring.head(), ring.tail(), ring.num_slots());
        if head >= slots || tail >= slots || head == tail {
            return Found::Nothing;
        }
        // Before anything is given back: what was handed over before counts as such.
        self.ring.outstanding();
        let (mut at, mut left) = (head, ring.distance(head, tail));
        let payload = self.area.payload();
        let mut stopped = Found::Packets;
        while left > 0 {
            let slot = ring.slot(at);
            let taken = match slot.flags & NS_MOREFRAG == 0 && u32::from(slot.len) <= payload {
                true if self.one(ring, &slot) => Ok(1),
                true => Err(Found::NoRoom),
                false => self.several(ring, at, left),
            };
            match taken {
                Ok(taken) => (at, left) = (ring.advance(at, taken), left - taken),
                Err(found) => {
                    stopped = found;
                    break;
                }
            }
        }
        ring.set_cur(at);
        ring.set_head(at);
        if at == head { stopped } else { Found::Packets }
    }

    /// The next frame that the program has given for packets. What it names that is none goes back. `None`: there is
    /// none.
    #[inline]
    fn next_frame(&mut self) -> Option<u64> {
        for _ in 0..self.ring.len() {
            let desc = self.ring.peek(0)?;
            if self.area.has_frame(desc.idx) {
                return Some(desc.idx);
            }
            self.ring.give_back(desc.returned(BAD));
        }
        None
    }

    /// A packet of one slot, which a frame holds. False: there is no frame for it.
    #[inline]
    fn one(&mut self, ring: &RingView, slot: &Slot) -> bool {
        let Some(source) = ring.buf(slot.buf_idx).filter(|_| slot.len != 0) else { return true };
        self.put(&source, u32::from(slot.len).min(source.size()))
    }

    /// The first `len` bytes of a packet, which a frame holds. False: there is no frame for it.
    #[inline]
    fn put(&mut self, source: &Buf<'_>, len: u32) -> bool {
        let Some(idx) = self.next_frame() else { return false };
        if let Some(frame) = self.area.free(idx) {
            frame.copy_from(source, len as usize);
        }
        self.packets += 1;
        self.give_back(idx, len, 0);
        true
    }

    #[inline]
    fn give_back(&mut self, idx: u64, len: u32, flags: u8) {
        let offset = self.area.data_offset() as u16;
        self.ring.give_back(Desc { idx, len, offset, error: 0, flags });
    }

    /// A packet of several slots, or longer than a frame, which begins at slot `at`. Returns how many of the `left`
    /// slots are done with, or what is missing: its end, or frames.
    #[cold]
    fn several(&mut self, ring: &RingView, at: u32, left: u32) -> Result<u32, Found> {
        let goes_on = |n: &u32| ring.slot(ring.advance(at, *n)).flags & NS_MOREFRAG != 0;
        let slots = (0..left).take_while(goes_on).count() as u32 + 1;
        if slots > left {
            // A ring that is full of a packet without an end will not have one.
            return if left + 1 >= ring.num_slots() { Ok(left) } else { Err(Found::Nothing) };
        }
        if self.next_frame().is_none() {
            return Err(Found::NoRoom);
        }
        let parts = (0..slots).map(|n| ring.slot(ring.advance(at, n)));
        let len: u32 = parts.clone().map(|slot| u32::from(slot.len)).sum();
        if self.reserve(len) {
            let parts = parts.map(|slot| (ring.buf(slot.buf_idx), u32::from(slot.len)));
            self.fill(parts, len);
            self.packets += 1;
        } else {
            self.dropped += 1;
        }
        Ok(slots)
    }

    /// Finds frames for `len` bytes. False: the program has not given enough.
    fn reserve(&mut self, len: u32) -> bool {
        let Some(needed) = (len.max(1) - 1).checked_div(self.area.payload()) else { return false };
        self.frames.clear();
        let mut bad = 0;
        while self.frames.len() <= needed as usize {
            let Some(desc) = self.ring.peek(self.frames.len() as u32 + bad) else { return false };
            match self.area.has_frame(desc.idx) {
                true => self.frames.push(desc.idx),
                false => bad += 1,
            }
        }
        // Those that name no frame go first: the packet's are behind one another.
        let found = self.frames.len() as u32 + bad;
        let all = (0..found).filter_map(|n| self.ring.peek(n));
        let bad: Vec<Desc> = all.filter(|desc| !self.area.has_frame(desc.idx)).collect();
        bad.iter().for_each(|desc| self.ring.give_back(desc.returned(BAD)));
        true
    }

    /// Copies the parts of a packet, each with its length, into the frames that were found for it.
    fn fill<'b>(&mut self, parts: impl Iterator<Item = (Option<Buf<'b>>, u32)>, len: u32) {
        let (area, payload) = (&self.area, self.area.payload());
        let mut done = 0;
        for (part, length) in parts {
            let mut from = 0;
            while from < length {
                let (frame, at) = (done / payload, done % payload);
                let count = (length - from).min(payload - at);
                let source = part.as_ref().and_then(|part| part.part(from, count));
                let to = self.frames.get(frame as usize).and_then(|idx| area.free(*idx));
                if let (Some(source), Some(to)) = (source, to.and_then(|to| to.part(at, count))) {
                    to.copy_from(&source, count as usize);
                }
                (from, done) = (from + count, done + count);
            }
        }
        let mut left = len;
        for at in 0..self.frames.len() {
            let (idx, count) = (self.frames[at], left.min(payload));
            left -= count;
            self.give_back(idx, count, if left > 0 { TP4_PKT_CONT } else { 0 });
        }
    }
}
