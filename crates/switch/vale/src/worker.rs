//! The bridge's thread: rounds over the ports, and sleep when there is nothing to do.
#![expect(
    clippy::indexing_slicing,
    reason = "`members` never shrinks, a port has a stall for each of its tx rings, and `forward` has sent no more frames than there are"
)]

mod commands;
pub(crate) mod leaving;
mod panics;
mod periodic;
#[cfg(feature = "stepped")]
pub mod stepped;
mod turn;

use std::{io, sync::Arc};

use rustix::{
    event::{Timespec, epoll},
    fd::OwnedFd,
    thread::{CpuSet, sched_getaffinity},
};

use crate::{
    bridge_port::BridgePort,
    budget::{Budget, Turn},
    casualties::Casualties,
    clock::{Clock, Millis},
    counters::PortCounters,
    forwarding::{Forwarding, Function},
    loop_probe::LoopProbe,
    lossless_queue::LosslessQueue,
    mailbox::Mailbox,
    multicast::{Multicast, Snooping},
    rounds::SharedRounds,
    switch_mirror::Mirroring,
    vnet::Converter,
};
use ringway_fastpath::FastPath;
use ringway_kring::{BusyPoll, Waiter, Yielding, prepare};
use ringway_switch_port::{Burst, Frame, PortIndex};

/// Ports of one bridge at most (S-VALE-2).
pub const MAX_PORTS: usize = 254;

/// Rounds without work before the worker sleeps: about as long as a wake-up takes, so that
/// a steady stream never pays for one.
const IDLE_ROUNDS: u32 = 64;

/// Busy rounds between two updates of the counters that others see.
const COUNTER_ROUNDS: u32 = 1024;

/// Busy rounds between two looks at the clock, and two rounds that are measured: some milliseconds at most.
const CLOCK_ROUNDS: u32 = 64;

/// In epoll, the worker's own doorbell; ports are known by their index.
const OWN_DOORBELL: u64 = u64::MAX;

/// The thread's state; its methods are called by that thread alone.
pub struct Worker {
    mailbox: Arc<Mailbox>,
    casualties: Arc<Casualties>,
    rounds: Arc<SharedRounds>,
    epoll: OwnedFd,
    members: Vec<Option<Box<BridgePort>>>,
    /// Of those that have places.
    counters: Vec<Option<Arc<PortCounters>>>,
    /// Ports that were given up, and keep their places.
    lost: Vec<PortIndex>,
    /// A port's turn has ended in a panic.
    panicked: bool,
    function: Function,
    converter: Converter,
    clock: Clock,
    /// As of the last look at the clock.
    now: Millis,
    any_lossless: bool,
    any_vlan: bool,
    /// Some port has a filter.
    any_filter: bool,
    /// How many ports there are, and what each may cost in a round.
    attached: u64,
    turn_of_one: Turn,
    /// How often a packet is copied that goes to all of them and to their monitors.
    flood_copies: u64,
    /// How many ports send it by a system call.
    flood_calls: u64,
    /// Frames as a receiver is to have them, kept for the allocation.
    retagged: Vec<Frame>,
    /// An empty burst, kept for its allocations.
    spare: Burst<'static>,
    /// Of what a port sends that has monitors, kept for the allocation.
    copy: Vec<u8>,
    probe: LoopProbe,
    multicast: Multicast,
    /// If frames for groups go to their members alone.
    snooping: Option<Box<Snooping>>,
    /// If ports are mirrored.
    mirroring: Option<Box<Mirroring>>,
    /// Hosts are to be asked for their groups.
    asks: bool,
    /// What a program in the kernel forwards by, if there is one.
    fast: Option<Arc<FastPath>>,
    /// The port by which a frame of the worker's has come back, and that by which it had left.
    came_back: Option<[PortIndex; 2]>,
    busy_rounds: u32,
    /// Whether the last round has found something, and what rounds have cost since all ports were looked at.
    worked: bool,
    since_all: u64,
    busy_poll: BusyPoll,
    yielding: Yielding,
    /// Port that the next round begins with.
    first: usize,
    /// Not to sleep.
    polling: bool,
    /// Where the worker ran before it began to poll.
    everywhere: CpuSet,
}

impl Worker {
    pub fn new(mailbox: Arc<Mailbox>, forwarding: &Forwarding, clock: Clock) -> io::Result<Worker> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let data = epoll::EventData::new_u64(OWN_DOORBELL);
        epoll::add(&epoll, mailbox.doorbell(), data, epoll::EventFlags::IN)?;
        Ok(Worker {
            mailbox,
            casualties: Arc::default(),
            rounds: Arc::default(),
            epoll,
            members: Vec::new(),
            counters: Vec::new(),
            lost: Vec::new(),
            panicked: false,
            function: Function::new(forwarding),
            converter: Converter::default(),
            clock,
            now: 0,
            any_lossless: false,
            any_vlan: false,
            any_filter: false,
            attached: 0,
            turn_of_one: Turn::of_one(0),
            flood_copies: 0,
            flood_calls: 0,
            retagged: Vec::new(),
            spare: Burst::default(),
            copy: Vec::new(),
            probe: LoopProbe::new(),
            multicast: Multicast::default(),
            snooping: None,
            mirroring: None,
            asks: false,
            fast: None,
            came_back: None,
            busy_rounds: 0,
            worked: false,
            since_all: 0,
            busy_poll: BusyPoll::new(),
            yielding: Yielding::new(),
            first: 0,
            polling: false,
            everywhere: sched_getaffinity(None)?,
        })
    }

    /// Where it says which ports it has given up.
    pub fn casualties(&self) -> Arc<Casualties> {
        self.casualties.clone()
    }

    /// Where it says how long its rounds take.
    pub fn rounds(&self) -> Arc<SharedRounds> {
        self.rounds.clone()
    }

    /// Until it is told to stop.
    fn serve_all(&mut self) {
        let mut idle_rounds = 0;
        self.look_at_clock();
        loop {
            if self.mailbox.has_mail() && !self.run_commands() {
                return;
            }
            if self.round() {
                idle_rounds = 0;
                if self.busy_rounds.is_multiple_of(CLOCK_ROUNDS) {
                    self.measured_round();
                }
                continue;
            }
            if idle_rounds == 0 {
                self.flush_idle();
            }
            idle_rounds += 1;
            if idle_rounds + 1 < IDLE_ROUNDS {
                std::hint::spin_loop();
                continue;
            }
            if self.polling {
                // As after a sleep: the wait for a lossless port ends although nothing moves.
                self.look_at_clock();
                idle_rounds = 1;
                continue;
            }
            idle_rounds = 0;
            if !prepare(&mut Idle(self)).is_ready() {
                self.sleep();
            }
        }
    }

    /// Another round, which is measured if there is work.
    #[cold]
    fn measured_round(&mut self) {
        let fine = self.clock.fine();
        let begun = fine();
        if self.round() {
            self.rounds.add(fine().saturating_sub(begun));
        }
    }

    /// There is nothing more to do: makes all that was done visible.
    fn flush_idle(&mut self) {
        self.members.iter_mut().flatten().for_each(|m| m.flush(true));
        self.members.iter_mut().flatten().for_each(|m| m.complete(true));
        self.publish_counters();
    }

    /// Serves every port once, [but for](Self::looks_at_all) those that rest. Returns whether any had sent
    /// something. The next round begins behind the first that had: so each of several senders is the first in its turn to find what a slow receiver
    /// has freed. If a sender waits for a command to be carried out, however many ports are busy, it ends
    /// at the next port, and the round after it begins there.
    fn round(&mut self) -> bool {
        let (mut worked, mut any_sent) = (self.asks, false);
        if self.asks {
            self.ask_for_groups();
        }
        let ports = self.members.len();
        let first = self.first.min(ports);
        let all = self.looks_at_all();
        for index in (first..ports).chain(0..first) {
            if !all && self.members[index].as_ref().is_none_or(|member| member.rests()) {
                continue;
            }
            let Some(mut source) = self.members[index].take() else { continue };
            if source.port.take_back() {
                (worked, source.dirty) = (true, true);
            }
            let index = index as PortIndex;
            let mut budget = Budget::new(self.turn_of_one, self.clock.fine());
            let news = self.turn(index, &mut source, &mut budget);
            let is_quiet = !news && !source.is_awaited();
            source.quiet = if is_quiet { source.quiet.saturating_add(1) } else { 0 };
            self.since_all = self.since_all.saturating_add(budget.spent(self.turn_of_one));
            if news && !any_sent {
                self.first = usize::from(index) + 1;
            }
            (worked, any_sent) = (worked | news, any_sent | news);
            match source.leaving {
                None => self.members[usize::from(index)] = Some(source),
                Some(_) => self.after_turn(index, source, news),
            }
            if self.mailbox.has_mail() {
                (worked, self.first) = (true, usize::from(index) + 1);
                if all {
                    // The rest of them are looked at in the next round.
                    self.since_all = u64::MAX;
                }
                break;
            }
        }
        if self.panicked {
            self.give_up_ports();
        }
        if let Some(pair) = self.came_back.take() {
            self.block(pair);
        }
        if worked {
            self.busy_rounds = self.busy_rounds.wrapping_add(1);
            if self.busy_rounds.is_multiple_of(CLOCK_ROUNDS) {
                self.look_at_clock();
            }
            if self.busy_rounds.is_multiple_of(COUNTER_ROUNDS) {
                self.publish_counters();
            }
            let (mut no_room, mut asks) = (false, false);
            for member in self.members.iter_mut().flatten() {
                // Where nothing more came: a program does not wait because others are busy.
                if member.dirty || member.notify_next_round {
                    if member.has_had_no_room() {
                        (no_room, asks) = (true, asks | member.is_worth_a_yield());
                    }
                    member.flush(!member.dirty);
                }
            }
            for member in self.members.iter_mut().flatten() {
                if member.dirty || member.notify_next_round {
                    if asks {
                        (0..member.held.len()).for_each(|ring| member.port.ask_to_yield(ring));
                    }
                    member.complete(!member.dirty);
                    member.notify_next_round = std::mem::take(&mut member.dirty);
                }
            }
            if no_room {
                // Its program may be waiting for this processor.
                self.yielding.once();
            }
        }
        self.worked = worked;
        worked
    }

    /// Whether a round looks at all ports. Where many have sent nothing for a while, looking at them would
    /// cost more than what the others send: while there is work it is done from time to time, and takes about a
    /// fifth of the worker's time. So a port that begins to send waits up to half a microsecond for each port of
    /// the switch, and a turn, longer than a busy port. Without work all are looked at.
    fn looks_at_all(&mut self) -> bool {
        /// Ports that do not count.
        const FEW: u64 = 8;
        /// Work for each port between two looks at all: a look takes some 100 ns where the memory of its ring is
        /// in no cache.
        const WORK: u64 = 16 << 10;
        let all = !self.worked || self.attached <= FEW || self.since_all >= self.attached * WORK;
        if all {
            self.since_all = 0;
        }
        all
    }

    /// One system call, however many ports there are: so the descriptors stay in epoll, and are not
    /// listed for every sleep.
    fn sleep(&mut self) {
        let mut events = [epoll::Event {
            flags: epoll::EventFlags::empty(),
            data: epoll::EventData::new_u64(0),
        }; 16];
        let timeout = self.timeout();
        let notified = epoll::wait(&self.epoll, &mut events, timeout.as_ref()).unwrap_or(0);
        self.look_at_clock();
        for event in events.iter().take(notified) {
            match event.data.u64() {
                OWN_DOORBELL => drop(self.mailbox.doorbell().drain()),
                index => {
                    if let Some(Some(member)) = self.members.get(index as usize) {
                        member.port.drain();
                    }
                }
            }
        }
    }

    /// How long to sleep at most: until the wait for a lossless port ends, or hosts are asked for their groups.
    fn timeout(&mut self) -> Option<Timespec> {
        let lossless_queues =
            self.members.iter().flatten().flat_map(|member| &member.lossless_queues);
        let ends = lossless_queues.filter_map(LosslessQueue::deadline);
        // Seconds are whole where groups are looked at.
        let asks = self.snooping.as_ref().and_then(|it| it.deadline(self.now));
        let end = ends.chain(asks.map(|at| at.next_multiple_of(1000))).min()?;
        self.look_at_clock();
        if self.asks {
            return Some(timespec(0));
        }
        Some(timespec(end.saturating_sub(self.now).max(1)))
    }

    fn publish_counters(&mut self) {
        for (index, (member, counters)) in self.members.iter_mut().zip(&self.counters).enumerate() {
            if let (Some(member), Some(counters)) = (member, counters) {
                let index = index as PortIndex;
                member.count_learning(self.function.as_dyn().take_counters(index));
                member.totals.known = match &self.function {
                    Function::Learning(function) => function.known(index).into(),
                    _ => 0,
                };
                member.settle();
                member.tell_lost();
                member.publish(index, self.fast.as_deref(), counters);
                counters.store_state(member.state());
            }
        }
    }
}

/// So long, as the kernel has it.
fn timespec(millis: Millis) -> Timespec {
    Timespec { tv_sec: (millis / 1000) as i64, tv_nsec: (millis % 1000) as i64 * 1_000_000 }
}

/// A worker without work.
struct Idle<'w>(&'w mut Worker);

impl Waiter for Idle<'_> {
    /// The last of the idle rounds, and then the one that is made armed.
    fn look(&mut self) -> bool {
        self.0.round()
    }

    /// Nothing is drained here: epoll tells which doorbells were notified, and
    /// [`sleep`](Worker::sleep) drains those, before the next look. One that was notified before the
    /// worker has armed ends the sleep at once.
    fn arm(&mut self) -> bool {
        self.0.members.iter_mut().flatten().for_each(|m| m.arm());
        false
    }

    fn pass_on(&mut self) {}

    fn busy_poll(&self) -> Option<&BusyPoll> {
        Some(&self.0.busy_poll)
    }
}

/// However it ends, no caller waits for an answer from it any more.
impl Drop for Worker {
    fn drop(&mut self) {
        if let Some(fast) = &self.fast {
            fast.clear();
        }
        self.mailbox.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_has_seconds_and_the_rest() {
        for (millis, expected) in [
            (1, (0, 1_000_000)),
            (999, (0, 999_000_000)),
            (1000, (1, 0)),
            (61_234, (61, 234_000_000)),
        ] {
            let Timespec { tv_sec, tv_nsec } = timespec(millis);
            assert_eq!((tv_sec, tv_nsec), expected, "{millis}");
        }
    }
}
