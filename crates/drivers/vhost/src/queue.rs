//! A virtqueue: what the front end says of it, and its ring once it runs.

use std::{
    os::fd::OwnedFd,
    sync::Arc,
    time::{Duration, Instant},
};

use rustix::io::Errno;

use crate::{
    chain::{Fault, Taken, Used, Way},
    features::{EVENTS, Features, INDIRECT, PACKED},
    memory::GuestMemory,
    packed::Packed,
    split::Split,
};

/// Chains that are taken at once, so that the memory of all is on its way while one is copied.
pub(crate) const FETCHED: usize = 32;

/// Slots of a queue, at most.
pub(crate) const MAX_SIZE: u32 = 32_768;

/// Where the parts of a queue are, by the guest's addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Places {
    pub descriptors: u64,
    /// The available ring, or the driver area.
    pub available: u64,
    /// The used ring, or the device area.
    pub used: u64,
}

/// Whether a notification was asked for at `event`, and the index has gone from `before` to `now`.
pub(crate) fn needs_event(event: u16, now: u16, before: u16) -> bool {
    now.wrapping_sub(event).wrapping_sub(1) < now.wrapping_sub(before)
}

#[derive(Debug)]
enum Ring {
    Split(Split),
    Packed(Packed),
}

/// Does the same for either layout.
macro_rules! each {
    ($ring:expr, $inner:ident => $do:expr) => {
        match $ring {
            Ring::Split($inner) => $do,
            Ring::Packed($inner) => $do,
        }
    };
}

/// A queue, as the front end sets it up.
#[derive(Debug)]
pub(crate) struct Queue {
    way: Way,
    size: u32,
    /// The monitor's addresses of the parts.
    user: Option<Places>,
    base: u32,
    pub(crate) kick: Option<Arc<OwnedFd>>,
    pub(crate) call: Option<OwnedFd>,
    pub(crate) error: Option<OwnedFd>,
    /// The front end has started it.
    started: bool,
    enabled: bool,
    ring: Option<Ring>,
    fault: Option<Fault>,
    /// Chains that go back with the next [`publish`](Self::publish).
    done: Vec<Used>,
    /// Since when it has offered too little.
    starved: Option<Instant>,
}

impl Queue {
    pub fn new(way: Way) -> Queue {
        Queue {
            way,
            size: 0,
            user: None,
            base: 0,
            kick: None,
            call: None,
            error: None,
            started: false,
            enabled: false,
            ring: None,
            fault: None,
            done: Vec::new(),
            starved: None,
        }
    }

    /// Descriptors that it has.
    pub fn size(&self) -> u32 {
        self.size
    }

    pub fn set_size(&mut self, size: u32) -> bool {
        let fits = (1..=MAX_SIZE).contains(&size);
        if fits {
            self.size = size;
        }
        fits
    }

    /// The parts, by the monitor's addresses.
    pub fn set_places(&mut self, user: Places) {
        self.user = Some(user);
    }

    pub fn set_base(&mut self, base: u32) {
        self.base = base;
    }

    pub fn set_enabled(&mut self, enabled: bool) {
        self.enabled = enabled;
    }

    /// From now on it is used, when all is known that it takes.
    pub fn start(&mut self) {
        self.started = true;
        self.fault = None;
        self.starved = None;
    }

    /// It is not touched any more. Where to go on.
    pub fn stop(&mut self) -> u32 {
        self.keep_base();
        self.started = false;
        self.ring = None;
        self.fault = None;
        (self.kick, self.call) = (None, None);
        self.base
    }

    fn keep_base(&mut self) {
        if let Some(ring) = &self.ring {
            self.base = each!(ring, ring => ring.base());
        }
    }

    /// Finds the parts in this memory, which is new or has changed. False where they are not in it.
    pub fn find(&mut self, memory: &Arc<GuestMemory>, features: Features) -> bool {
        let [packed, events, indirect] =
            [PACKED, EVENTS, INDIRECT].map(|feature| features.has(feature));
        self.keep_base();
        self.ring = None;
        let Some(user) = self.user.filter(|_| self.started) else { return true };
        let place = |at| memory.guest_address(at);
        let places = || {
            Some(Places {
                descriptors: place(user.descriptors)?,
                available: place(user.available)?,
                used: place(user.used)?,
            })
        };
        let Some(places) = places() else { return false };
        let size = self.size as u16;
        self.ring = match packed {
            true => {
                // A guest that has tables uses them for all that is more than one descriptor.
                let ring = Packed::new(memory, size, &places, self.base, events, indirect);
                ring.map(Ring::Packed)
            }
            // Its places are counted beyond its size, which a power of two alone divides.
            false if !size.is_power_of_two() => None,
            false => {
                let base = self.base as u16;
                Split::new(memory, size, &places, base, events).map(Ring::Split)
            }
        };
        self.ring.is_some()
    }

    /// Whether it is used now.
    pub fn is_running(&self) -> bool {
        self.ring.is_some() && self.fault.is_none()
    }

    /// Whether frames are to go by it.
    pub fn is_ready(&self) -> bool {
        self.is_running() && self.enabled
    }

    /// Whether the guest offers a chain; where more is [awaited](Self::await_more), a further one.
    pub fn is_offered(&mut self) -> bool {
        if self.fault.is_some() {
            return false;
        }
        let offered = match &mut self.ring {
            None => Ok(false),
            Some(Ring::Split(ring)) => ring.is_offered(),
            Some(Ring::Packed(ring)) => Ok(ring.is_offered()),
        };
        self.found(offered).unwrap_or(false)
    }

    /// Takes chains until there are none, the queue is faulty, or `taken` has `most`.
    pub fn take<'m>(&mut self, memory: &'m GuestMemory, taken: &mut Taken<'m>, most: usize) {
        let way = self.way;
        let Some(ring) = self.ring.as_mut().filter(|_| self.fault.is_none()) else { return };
        let result = each!(ring, ring => ring.take(memory, way, taken, most));
        if self.found(result).is_none() {
            taken.end_at_chain();
        }
    }

    /// How many chains are offered. They are not taken.
    pub fn count_offered(&mut self, memory: &GuestMemory) -> u64 {
        let (mut taken, mut all) = (Taken::with_capacity(FETCHED), Vec::new());
        let most = self.size as usize;
        while all.len() < most {
            taken.clear();
            self.take(memory, &mut taken, FETCHED.min(most - all.len()));
            if taken.chains.is_empty() {
                break;
            }
            all.extend(taken.chains.iter().map(|(chain, _)| *chain));
        }
        all.iter().rev().for_each(|chain| self.take_back(&[*chain]));
        all.len() as u64
    }

    /// All that is offered was taken, and was too little: from now on more is waited for. The caller takes back what it took.
    pub fn await_more(&mut self) {
        if let Some(ring) = &mut self.ring {
            each!(ring, ring => ring.await_more());
        }
        self.starved.get_or_insert_with(Instant::now);
    }

    /// For how long it has offered too little.
    pub fn has_starved_for(&self) -> Duration {
        self.starved.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Whether it has offered too little, and more is waited for.
    pub fn is_starved(&self) -> bool {
        self.starved.is_some()
    }

    /// What it offers was enough.
    pub fn is_served(&mut self) {
        self.starved = None;
    }

    /// The last chains that were taken come again.
    pub fn take_back(&mut self, chains: &[Used]) {
        if let Some(ring) = &mut self.ring {
            each!(ring, ring => ring.take_back(chains));
        }
    }

    /// A chain goes back with the next [`publish`](Self::publish).
    #[inline]
    pub fn put(&mut self, used: Used) {
        self.done.push(used);
    }

    /// Gives back what was [put](Self::put), and tells the guest if it wants to be told.
    pub fn publish(&mut self) {
        let Some(ring) = &mut self.ring else {
            self.done.clear();
            return;
        };
        if !self.done.is_empty() {
            each!(ring, ring => ring.give_back(&self.done));
            self.done.clear();
        }
        if each!(ring, ring => ring.take_notice()) {
            self.tell_guest();
        }
    }

    /// Interrupts the guest.
    pub fn tell_guest(&self) {
        if let Some(call) = &self.call {
            notify(call);
        }
    }

    /// Whether the guest is to tell what it offers. The caller looks once more then.
    pub fn listen(&mut self, on: bool) {
        if let Some(ring) = self.ring.as_mut().filter(|_| self.fault.is_none()) {
            each!(ring, ring => ring.listen(on));
        }
    }

    /// Forgets what the guest has told. What cannot be read has told nothing, and would do so again: it is let go.
    pub fn drain_kick(&mut self) -> bool {
        let mut count = [0; 8];
        match self.kick.as_ref().map(|kick| rustix::io::read(kick, &mut count)) {
            None | Some(Err(Errno::AGAIN | Errno::INTR)) => false,
            Some(Ok(1..)) => true,
            Some(Ok(0) | Err(_)) => {
                self.kick = None;
                false
            }
        }
    }

    /// What is wrong with it, once.
    pub fn fault(&self) -> Option<Fault> {
        self.fault
    }

    fn found<T>(&mut self, result: Result<T, Fault>) -> Option<T> {
        match result {
            Ok(found) => Some(found),
            Err(fault) => {
                self.fault = Some(fault);
                if let Some(error) = &self.error {
                    notify(error);
                }
                None
            }
        }
    }
}

fn notify(event: &OwnedFd) {
    loop {
        match rustix::io::write(event, &1u64.to_ne_bytes()) {
            Err(Errno::INTR) => {}
            // Full, it is readable all the same; closed at the other end, nobody listens.
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Queue, needs_event};
    use crate::chain::Way;

    /// What is readable for ever and tells nothing would be looked at for ever.
    #[test]
    fn a_kick_that_has_ended_is_let_go() {
        let mut queue = Queue::new(Way::Out);
        let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::NONBLOCK).unwrap();
        queue.kick = Some(read.into());
        assert!(!queue.drain_kick() && queue.kick.is_some());
        rustix::io::write(&write, &[0; 8]).unwrap();
        assert!(queue.drain_kick() && queue.kick.is_some());
        drop(write);
        assert!(!queue.drain_kick() && queue.kick.is_none());
    }

    /// Against a plain model: the event is one of those between the two.
    #[test]
    fn an_event_between_the_two_is_told() {
        for before in [0u16, 1, 7, 65_530] {
            for steps in 0..20u16 {
                let now = before.wrapping_add(steps);
                for offset in 0..30u16 {
                    let event = before.wrapping_sub(5).wrapping_add(offset);
                    let passed = (0..steps).any(|step| before.wrapping_add(step) == event);
                    assert_eq!(needs_event(event, now, before), passed, "{event} {now} {before}");
                }
            }
        }
    }
}
