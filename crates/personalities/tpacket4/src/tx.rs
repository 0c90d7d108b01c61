//! Transmitting: from the program's frames into what the socket is bound to.

mod stack;
#[cfg(test)]
mod tests;

use std::{
    os::fd::RawFd,
    time::{Duration, Instant},
};

use ringway::{Binding, NS_MOREFRAG};
use ringway_abi::Dir;
use ringway_kring::{BusyPoll, Prepared, Sleeper, Sources, Waiter, Woken, prepare};
use ringway_region::RingView;

use crate::{
    area::{AHEAD, Area},
    desc::{Desc, DescRing},
    device::Device,
    pause::{Opened, Pausable},
};

const BAD: u8 = libc::EBADF as u8;
const TOO_LONG: u8 = libc::EMSGSIZE as u8;

/// How long a kick that does not wait rests where there is no room, at most: its program tries again, and what makes room
/// may need this CPU. The proposal's benchmark gives as many frames to receive into as have come back by its next kick, so
/// that each kick that leaves frames behind costs it some for good; without any left it stands still.
const REST: Duration = Duration::from_millis(1);

/// The program's transmit ring, and where its packets go.
pub struct Transmitter {
    queue: Pausable<TxQueue>,
    device: Device,
}

impl Transmitter {
    pub fn new(queue: TxQueue, device: Device) -> Transmitter {
        Transmitter { queue: Pausable::new(queue), device }
    }

    pub fn device(&self) -> &Device {
        &self.device
    }

    /// After this nothing reads from the program's memory, not even a call of another thread that is in progress.
    pub fn stop(&self) {
        self.queue().closed = true;
    }

    /// When this returns, nothing looks at the program's memory before [`resume`](Self::resume).
    pub fn pause(&self) {
        self.queue.pause();
    }

    /// Goes on; or if the memory is `gone`, nothing looks at it any more.
    pub fn resume(&self, gone: bool) {
        self.queue.resume(|queue| queue.closed |= gone);
    }

    fn queue(&self) -> Opened<'_, TxQueue> {
        self.queue.lock()
    }

    /// Sends what the program has handed over. EAGAIN: the port has no room for all of it.
    pub fn kick(&self, waits: bool) -> Result<(), i32> {
        let mut rested = false;
        loop {
            if self.queue().pump(&self.device) {
                return Ok(());
            }
            if self.device.has_gone(Dir::Tx) {
                return Err(libc::ENETDOWN);
            }
            if rested && !waits {
                return Err(libc::EAGAIN);
            }
            let mut waiting = Waiting(self);
            let Prepared::Armed(armed) = prepare(&mut waiting) else { continue };
            let rest = if waits { self.device.rest(Dir::Tx) } else { Some(REST) };
            let deadline = rest.map(|rest| Instant::now() + rest);
            rested = true;
            match armed.sleep(deadline) {
                Ok(Woken::HungUp) => return Err(libc::ENETDOWN),
                Ok(_) => {}
                Err(error) => return Err(error.raw_os_error().unwrap_or(libc::EIO)),
            }
        }
    }

    /// Sends what there is, and says whether descriptors have come back. `None`: none will.
    pub fn look(&self) -> Option<bool> {
        let mut queue = self.queue();
        let all = queue.pump(&self.device);
        let ready = queue.ring.has_completed();
        if ready || all || !self.device.has_gone(Dir::Tx) { Some(ready) } else { None }
    }

    pub fn position(&self) -> u32 {
        self.queue().ring.position()
    }

    pub fn wait_sources(&self, add: &mut dyn FnMut(RawFd, i16)) {
        self.device.poll_sources(add);
    }
}

/// A kick that waits for room.
struct Waiting<'t>(&'t Transmitter);

impl Waiter for Waiting<'_> {
    fn look(&mut self) -> bool {
        self.0.queue().pump(&self.0.device) || self.0.device.has_gone(Dir::Tx)
    }

    fn arm(&mut self) -> bool {
        self.0.device.arm(Dir::Tx)
    }

    fn pass_on(&mut self) {
        self.0.device.disarm(Dir::Tx);
    }

    fn busy_poll(&self) -> Option<&BusyPoll> {
        self.0.device.busy_poll()
    }
}

impl Sleeper for Waiting<'_> {
    fn sources<'s>(&'s self, sources: &mut Sources<'s>) {
        self.0.device.add_sources(Dir::Tx, sources);
    }
}

/// What became of the packet at the front.
enum Step {
    /// It takes so many of the port's slots; 0 where it was not good.
    Taken(u32),
    /// There is none, or not all of it.
    NoPacket,
    /// The port has no room for it.
    NoRoom,
}

/// The program's descriptors and frames.
pub struct TxQueue {
    ring: DescRing,
    area: Area,
    /// The descriptors of a packet that has several.
    packet: Vec<Desc>,
    /// `PACKET_LOSS`: what is not good comes back without an error.
    loss: bool,
    /// Nothing is read from the frames: the program may have unmapped them.
    closed: bool,
}

impl TxQueue {
    pub fn new(ring: DescRing, area: Area) -> TxQueue {
        TxQueue { ring, area, packet: Vec::new(), loss: false, closed: false }
    }

    /// What is not good comes back without an error, if `loss` is set: as sent.
    pub fn with_loss(self, loss: bool) -> TxQueue {
        TxQueue { loss, ..self }
    }

    /// The error of what is not good.
    fn error(&self, error: u8) -> u8 {
        if self.loss { 0 } else { error }
    }

    /// Sends packets. False: some are left, for which there is no room.
    fn pump(&mut self, device: &Device) -> bool {
        match device {
            _ if self.closed => true,
            Device::Port(port) => self.fill_first(port.binding()),
            Device::Stack(stack) => self.send(stack.socket()),
        }
    }

    /// Moves packets into the port's first ring.
    fn fill_first(&mut self, binding: &Binding) -> bool {
        let Some(bound) = binding.rings(Dir::Tx).first() else { return true };
        self.fill(bound.kring().ring(), || {
            bound.sync();
        })
    }

    /// The same, into a ring that `sync` syncs.
    pub fn fill(&mut self, ring: &RingView, sync: impl Fn()) -> bool {
        // A program that hands over as fast as this takes must not hold the call for ever.
        let mut budget = self.ring.len() + 1;
        loop {
            let (head, tail, slots) = (ring.head(), ring.tail(), ring.num_slots());
            if head >= slots || tail >= slots {
                sync();
                return false;
            }
            let (mut at, mut room) = (head, ring.distance(head, tail));
            let plain = self.fill_plain(ring, at, room.min(budget));
            (at, room, budget) = (ring.advance(at, plain), room - plain, budget - plain);
            let mut all = false;
            while budget > 0 {
                match self.step(ring, at, room) {
                    Step::Taken(taken) => {
                        at = ring.advance(at, taken);
                        room -= taken;
                        budget -= 1;
                    }
                    Step::NoPacket => {
                        all = true;
                        break;
                    }
                    Step::NoRoom => break,
                }
            }
            ring.set_cur(at);
            ring.set_head(at);
            sync();
            if all || budget == 0 {
                return all;
            }
            if at == head && ring.tail() == tail {
                return false;
            }
        }
    }

    /// Moves packets as most are, each of one good descriptor, into slots from `at` on, of which there are `room`. Returns how
    /// many: up to the first that takes more.
    #[inline]
    fn fill_plain(&mut self, ring: &RingView, mut at: u32, room: u32) -> u32 {
        let (mut burst, bufs) = (self.ring.burst(), ring.bufs());
        let mut filled = 0;
        while filled < room {
            let Some(desc) = burst.peek().filter(|desc| !desc.goes_on()) else { break };
            let buffer = ring.plain_slot(at).buf_idx;
            let (Some(data), Some(to)) = (self.area.filled(&desc), bufs.get(buffer)) else { break };
            if data.size() > to.size() {
                break;
            }
            if let Some(next) = self.area.free(burst.ahead(AHEAD)) {
                next.prefetch();
            }
            to.copy_from(&data, data.size() as usize);
            ring.set_slot(at, buffer, data.size() as u16, 0);
            burst.give_back(desc.returned(0));
            at = ring.next(at);
            filled += 1;
        }
        filled
    }

    #[inline]
    fn step(&mut self, ring: &RingView, at: u32, room: u32) -> Step {
        let Some(desc) = self.ring.peek(0) else { return Step::NoPacket };
        if desc.goes_on() {
            return self.several(ring, at, room);
        }
        let Some(data) = self.area.filled(&desc) else {
            self.ring.give_back(desc.returned(self.error(BAD)));
            return Step::Taken(0);
        };
        if room == 0 {
            return Step::NoRoom;
        }
        let buffer = ring.slot(at).buf_idx;
        let Some(to) = ring.buf(buffer).filter(|to| data.size() <= to.size()) else {
            return self.several(ring, at, room);
        };
        to.copy_from(&data, data.size() as usize);
        ring.set_slot(at, buffer, data.size() as u16, 0);
        self.ring.give_back(desc.returned(0));
        Step::Taken(1)
    }

    /// A packet of several descriptors, or of a frame that takes several slots.
    #[cold]
    fn several(&mut self, ring: &RingView, at: u32, room: u32) -> Step {
        self.packet.clear();
        loop {
            let n = self.packet.len() as u32;
            let Some(desc) = self.ring.peek(n) else {
                // A ring that is full of a packet without an end will not have one.
                return if n < self.ring.len() { Step::NoPacket } else { self.refuse(TOO_LONG) };
            };
            self.packet.push(desc);
            if !desc.goes_on() {
                break;
            }
        }
        let size = ring.region().layout().data_size();
        let (area, mut slots) = (&self.area, 0);
        for desc in &self.packet {
            let Some(data) = area.filled(desc) else { return self.refuse(BAD) };
            slots += data.size().div_ceil(size);
        }
        if slots >= ring.num_slots() {
            return self.refuse(TOO_LONG);
        }
        if slots > room {
            return Step::NoRoom;
        }
        let mut to = at;
        for (n, desc) in self.packet.iter().enumerate() {
            let Some(data) = area.filled(desc) else { continue };
            let mut from = 0;
            while from < data.size() {
                let count = (data.size() - from).min(size);
                let last = n + 1 == self.packet.len() && from + count == data.size();
                let buffer = ring.slot(to).buf_idx;
                if let (Some(to), Some(part)) = (ring.buf(buffer), data.part(from, count)) {
                    to.copy_from(&part, count as usize);
                }
                ring.set_slot(to, buffer, count as u16, if last { 0 } else { NS_MOREFRAG });
                (to, from) = (ring.next(to), from + count);
            }
        }
        self.give_back(0);
        Step::Taken(slots)
    }

    /// The packet goes back as it is.
    fn refuse(&mut self, error: u8) -> Step {
        self.give_back(self.error(error));
        Step::Taken(0)
    }

    fn give_back(&mut self, error: u8) {
        for at in 0..self.packet.len() {
            self.ring.give_back(self.packet[at].returned(error));
        }
    }
}
