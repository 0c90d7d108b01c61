//! The bridge's thread: rounds over the ports, sleep when there is nothing to do, commands
//! from the registry.

#[cfg(fuzzing)]
pub mod by_hand;

use std::{
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::*},
        mpsc,
    },
    thread::JoinHandle,
};

use ringway_abi::Dir;
use ringway_kring::Bell;
use rustix::{
    event::{Timespec, epoll},
    fd::{AsFd, OwnedFd},
    thread::{CpuSet, sched_getaffinity, sched_setaffinity},
};

use crate::{
    clock::{Clock, Millis},
    config::PortConfig,
    forward::{Craft, Member, Passage, account, forward},
    frame::{Burst, Frame, Source},
    function::{Forward, Forwarding, Function},
    gate::{Gate, Sender, Stall},
    offsets::Offsets,
    port::{Port, PortCounters, PortIndex, PortTaps},
    vlan::Vlan,
    vnet::Converter,
};

/// Ports of one bridge at most (S-VALE-2).
pub const MAX_PORTS: usize = 254;

/// Rounds without work before the worker sleeps: about as long as a wake-up takes, so that
/// a steady stream never pays for one.
const IDLE_ROUNDS: u32 = 64;

/// Busy rounds between two updates of the counters that others see.
const COUNTER_ROUNDS: u32 = 1024;

/// Busy rounds between two looks at the clock: some milliseconds at most.
const CLOCK_ROUNDS: u32 = 64;

/// Turns that a port's tx ring has before the port goes: the longest of rings is empty then.
const LAST_BURSTS: usize = 128;

/// In epoll, the worker's own bell; ports are known by their index.
const OWN_BELL: u64 = u64::MAX;

enum Command {
    Attach(Box<dyn Port>, PortConfig, Arc<PortCounters>, mpsc::Sender<Option<PortIndex>>),
    Configure(PortIndex, PortConfig, mpsc::Sender<bool>),
    SetOffsets(PortIndex, Dir, usize, Option<Offsets>, mpsc::Sender<()>),
    Replace(PortIndex, Box<dyn Port>, mpsc::Sender<bool>),
    Detach(PortIndex, mpsc::Sender<()>),
    Use(Box<Function>, mpsc::Sender<()>),
    SetTaps(PortIndex, PortTaps, mpsc::Sender<()>),
    Count(mpsc::Sender<()>),
    Poll(Vec<usize>, mpsc::Sender<()>),
    Stop,
}

struct Mailbox {
    /// `None`: nobody carries them out any more.
    commands: Mutex<Option<Vec<Command>>>,
    waiting: AtomicBool,
    bell: Bell,
}

impl Mailbox {
    fn new() -> io::Result<Mailbox> {
        let (commands, waiting) = (Mutex::new(Some(Vec::new())), AtomicBool::new(false));
        Ok(Mailbox { commands, waiting, bell: Bell::new()? })
    }
}

/// A running bridge. Dropping it stops the worker and lets go of its ports.
pub struct Bridge {
    mailbox: Arc<Mailbox>,
    thread: Option<JoinHandle<()>>,
}

impl Bridge {
    /// Starts a worker with no ports, which learns. `name` is shown as the thread's name.
    pub fn start(name: &str) -> io::Result<Bridge> {
        Bridge::start_with(name, &Forwarding::default(), Clock::default())
    }

    /// As [`start`](Self::start), with another forwarding function, and another clock.
    pub fn start_with(name: &str, forwarding: &Forwarding, clock: Clock) -> io::Result<Bridge> {
        let mailbox = Arc::new(Mailbox::new()?);
        let worker = Worker::new(mailbox.clone(), forwarding, clock)?;
        let thread = std::thread::Builder::new().name(name.into()).spawn(move || worker.run())?;
        Ok(Bridge { mailbox, thread: Some(thread) })
    }

    /// Attaches a port at the first free index. `None` when the bridge is full, or when the
    /// kernel refuses to listen for the port.
    pub fn attach(
        &self,
        port: Box<dyn Port>,
        config: PortConfig,
        counters: Arc<PortCounters>,
    ) -> Option<PortIndex> {
        self.ask(|answer| Command::Attach(port, config, counters, answer)).flatten()
    }

    /// Changes the settings of a running port. False if there is no such port. What was
    /// learned of the port is forgotten.
    pub fn configure(&self, index: PortIndex, config: PortConfig) -> bool {
        self.ask(|answer| Command::Configure(index, config, answer)).unwrap_or(false)
    }

    /// Sets the offsets of a ring of a running port; `None` for none. Does nothing if there is no
    /// such ring.
    pub fn set_offsets(&self, index: PortIndex, dir: Dir, ring: usize, offsets: Option<Offsets>) {
        self.ask(|answer| Command::SetOffsets(index, dir, ring, offsets, answer));
    }

    /// Puts `port` in the place of a running port, which sleeps on the same bell. The settings and
    /// the counters stay, and what was learned. What the old one has sent is forwarded first; when
    /// this returns, the worker does not touch it any more. False if there is no such port.
    pub fn replace(&self, index: PortIndex, port: Box<dyn Port>) -> bool {
        self.ask(|answer| Command::Replace(index, port, answer)).unwrap_or(false)
    }

    /// Takes a port out, and forgets what was learned of it. What it has sent is forwarded first.
    /// When this returns, the worker does not touch it any more.
    pub fn detach(&self, index: PortIndex) {
        self.ask(|answer| Command::Detach(index, answer));
    }

    /// Changes the forwarding function. The new one starts with nothing learned.
    pub fn set_forwarding(&self, forwarding: &Forwarding) {
        let function = Box::new(Function::new(forwarding));
        self.ask(|answer| Command::Use(function, answer));
    }

    /// Has a function of the caller's own decide where packets go.
    pub fn set_function(&self, function: Box<dyn Forward>) {
        let function = Box::new(Function::Own(function));
        self.ask(|answer| Command::Use(function, answer));
    }

    /// Shows what a port's rings carry to these monitors. When this returns, the worker does
    /// not touch those it had before.
    pub fn set_taps(&self, index: PortIndex, taps: PortTaps) {
        self.ask(|answer| Command::SetTaps(index, taps, answer));
    }

    /// Has the counters of all ports brought up to date.
    pub fn count(&self) {
        self.ask(Command::Count);
    }

    /// Posts a command and waits for the answer; `None` if the worker has gone.
    fn ask<T>(&self, command: impl FnOnce(mpsc::Sender<T>) -> Command) -> Option<T> {
        let (answer, done) = mpsc::channel();
        self.post(command(answer));
        done.recv().ok()
    }

    /// Polling mode: the worker moves to the processors `cpus` and does not sleep. An empty list
    /// ends it.
    pub fn poll(&self, cpus: Vec<usize>) {
        self.ask(|answer| Command::Poll(cpus, answer));
    }

    fn post(&self, command: Command) {
        match &mut *self.mailbox.commands.lock().unwrap_or_else(|e| e.into_inner()) {
            Some(commands) => commands.push(command),
            // With the command goes the sender of its answer: whoever waits for it learns.
            None => return,
        }
        self.mailbox.waiting.store(true, Release);
        self.mailbox.bell.ring();
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        self.post(Command::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// However it ends, nobody waits for an answer from it any more.
impl Drop for Worker {
    fn drop(&mut self) {
        self.mailbox.commands.lock().unwrap_or_else(|e| e.into_inner()).take();
    }
}

struct Worker {
    mailbox: Arc<Mailbox>,
    epoll: OwnedFd,
    members: Vec<Option<Box<Member>>>,
    counters: Vec<Option<Arc<PortCounters>>>,
    function: Function,
    converter: Converter,
    clock: Clock,
    /// As of the last look at the clock.
    now: Millis,
    any_lossless: bool,
    any_vlan: bool,
    /// Frames as a receiver is to have them, kept for the allocation.
    dressed: Vec<Frame>,
    /// An empty burst, kept for its allocations.
    spare: Burst<'static>,
    busy_rounds: u32,
    /// Port that the next round begins with.
    first: usize,
    /// Not to sleep.
    polling: bool,
    /// Where the worker ran before it began to poll.
    everywhere: CpuSet,
}

impl Worker {
    fn new(mailbox: Arc<Mailbox>, forwarding: &Forwarding, clock: Clock) -> io::Result<Worker> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let data = epoll::EventData::new_u64(OWN_BELL);
        epoll::add(&epoll, &mailbox.bell, data, epoll::EventFlags::IN)?;
        Ok(Worker {
            mailbox,
            epoll,
            members: Vec::new(),
            counters: Vec::new(),
            function: Function::new(forwarding),
            converter: Converter::default(),
            clock,
            now: 0,
            any_lossless: false,
            any_vlan: false,
            dressed: Vec::new(),
            spare: Burst::default(),
            busy_rounds: 0,
            first: 0,
            polling: false,
            everywhere: sched_getaffinity(None)?,
        })
    }

    fn run(mut self) {
        let mut idle_rounds = 0;
        self.look_at_clock();
        loop {
            if self.mailbox.waiting.load(Acquire) && !self.obey() {
                return;
            }
            if self.round() {
                idle_rounds = 0;
                continue;
            }
            if idle_rounds == 0 {
                self.rest();
            }
            idle_rounds += 1;
            if idle_rounds < IDLE_ROUNDS {
                std::hint::spin_loop();
                continue;
            }
            if self.polling {
                // As after a sleep: patience ends although nothing moves.
                self.look_at_clock();
                idle_rounds = 1;
                continue;
            }
            idle_rounds = 0;
            self.members.iter_mut().flatten().for_each(|m| m.arm());
            if !self.round() {
                self.sleep();
            }
        }
    }

    /// There is nothing more to do: makes all that was done visible.
    fn rest(&mut self) {
        self.members.iter_mut().flatten().for_each(|m| m.port.flush(true));
        self.members.iter_mut().flatten().for_each(|m| m.port.complete(true));
        self.tell_counters();
    }

    /// Serves every port once. Returns whether any had sent something. If somebody waits for a
    /// command to be carried out, however many ports are busy, it ends at the next port, and the
    /// round after it begins there.
    fn round(&mut self) -> bool {
        let mut worked = false;
        let ports = self.members.len();
        let first = std::mem::take(&mut self.first).min(ports);
        for index in (first..ports).chain(0..first) {
            let Some(mut source) = self.members[index].take() else { continue };
            if source.port.take_back() {
                (worked, source.touched) = (true, true);
            }
            for ring in 0..source.port.tx_rings() {
                worked |= self.serve(index as PortIndex, &mut source, ring);
            }
            self.members[index] = Some(source);
            if self.mailbox.waiting.load(Relaxed) {
                (worked, self.first) = (true, index + 1);
                break;
            }
        }
        if worked {
            self.busy_rounds = self.busy_rounds.wrapping_add(1);
            if self.busy_rounds.is_multiple_of(CLOCK_ROUNDS) {
                self.look_at_clock();
            }
            if self.busy_rounds.is_multiple_of(COUNTER_ROUNDS) {
                self.tell_counters();
            }
            for member in self.members.iter_mut().flatten() {
                // Where nothing more came: nobody is kept waiting because others are busy.
                if member.touched || member.owed {
                    member.port.flush(!member.touched);
                }
            }
            for member in self.members.iter_mut().flatten() {
                if member.touched || member.owed {
                    member.port.complete(!member.touched);
                    member.owed = std::mem::take(&mut member.touched);
                }
            }
        }
        worked
    }

    fn serve(&mut self, index: PortIndex, source: &mut Member, ring: usize) -> bool {
        let stall = source.stalls[ring];
        if stall.is_some_and(|stall| self.holds((index, ring), &stall)) {
            return false;
        }
        let Member { port, config, totals, touched, stalls, lanes, .. } = source;
        let from = Source { port: index, ring, header_len: config.header_len };
        let waits = self.any_lossless && port.can_wait();
        let mut burst = std::mem::take(&mut self.spare).recycle(from);
        if port.collect(ring, &mut burst, &mut totals.drops) == 0 {
            self.spare = burst.recycle(from);
            self.stall(&mut stalls[ring], (index, ring), None);
            return false;
        }
        burst.read_headers();
        if self.any_vlan {
            lanes.classify(&mut burst);
        }
        let mut passage = Passage {
            burst: &burst,
            others: &mut self.members,
            craft: Craft {
                dressed: self.any_vlan.then_some(&mut self.dressed),
                converter: &mut self.converter,
                drops: &mut totals.drops,
            },
            waits,
            now: self.now,
            reached: stall.map(|stall| stall.reached).unwrap_or_default(),
        };
        let (sent, stop) = match &mut self.function {
            Function::Learning(f) => forward(f, &mut passage),
            Function::Static(f) => forward(f, &mut passage),
            Function::Hash(f) => forward(f, &mut passage),
            Function::Flood(f) => forward(f, &mut passage),
            Function::Own(f) => forward(&mut **f, &mut passage),
        };
        account(&burst.frames[..sent], totals);
        let held_from = stop.map(|_| u32::from(burst.frames[sent].start));
        self.spare = burst.recycle(from);
        match held_from {
            None => port.release(ring),
            Some(slots) => port.release_some(ring, slots),
        }
        // A packet that has reached one more port is progress, too.
        let reached = |stall: Option<Stall>| stall.map(|stall| stall.reached).unwrap_or_default();
        let worked = sent > 0 || stop.is_none() || reached(stop) != reached(stall);
        if stop.is_some() != stall.is_some() {
            port.hold_back(ring, stop.is_some());
        }
        self.stall(&mut stalls[ring], (index, ring), stop);
        *touched |= worked;
        worked
    }

    /// Whether `sender` has to wait for a lossless port as before.
    fn holds(&mut self, sender: Sender, stall: &Stall) -> bool {
        let to = self.members[usize::from(stall.to)].as_mut();
        to.is_some_and(|to| to.holds(sender, stall, self.now))
    }

    /// Notes what `sender` waits for now.
    fn stall(&mut self, place: &mut Option<Stall>, sender: Sender, new: Option<Stall>) {
        let Some(old) = std::mem::replace(place, new) else { return };
        if new.is_some_and(|new| (new.to, new.ring) == (old.to, old.ring)) {
            return;
        }
        let to = self.members[usize::from(old.to)].as_mut();
        if let Some(gate) = to.and_then(|to| to.gates.get_mut(old.ring)) {
            gate.leave(sender);
        }
    }

    fn look_at_clock(&mut self) {
        let before = std::mem::replace(&mut self.now, self.clock.now());
        if before / 1000 != self.now / 1000 {
            self.function.as_dyn().tick((self.now / 1000) as u32);
        }
    }

    fn sleep(&mut self) {
        let mut events = [epoll::Event {
            flags: epoll::EventFlags::empty(),
            data: epoll::EventData::new_u64(0),
        }; 16];
        let patience = self.patience();
        let heard = epoll::wait(&self.epoll, &mut events, patience.as_ref()).unwrap_or(0);
        self.look_at_clock();
        for event in &events[..heard] {
            match event.data.u64() {
                OWN_BELL => {
                    self.mailbox.bell.silence();
                }
                index => {
                    if let Some(Some(member)) = self.members.get(index as usize) {
                        member.port.silence();
                    }
                }
            }
        }
    }

    /// How long to sleep at most: until patience with a lossless port ends.
    fn patience(&mut self) -> Option<Timespec> {
        let gates = self.members.iter().flatten().flat_map(|member| &member.gates);
        let end = gates.filter_map(Gate::deadline).min()?;
        self.look_at_clock();
        let millis = end.saturating_sub(self.now).max(1);
        Some(Timespec {
            tv_sec: (millis / 1000) as i64,
            tv_nsec: (millis % 1000) as i64 * 1_000_000,
        })
    }

    /// Carries out what the registry asked for. False: stop.
    fn obey(&mut self) -> bool {
        self.mailbox.waiting.store(false, Relaxed);
        let commands = {
            let mut mailbox = self.mailbox.commands.lock().unwrap_or_else(|e| e.into_inner());
            mailbox.as_mut().map(std::mem::take).unwrap_or_default()
        };
        for command in commands {
            match command {
                Command::Attach(port, config, counters, answer) => {
                    let _ = answer.send(self.attach(port, config, counters));
                }
                Command::Configure(index, config, answer) => {
                    let _ = answer.send(self.configure(index, config));
                }
                Command::Replace(index, port, answer) => {
                    let _ = answer.send(self.replace(index, port));
                }
                Command::Detach(index, answer) => {
                    self.detach(index);
                    let _ = answer.send(());
                }
                Command::SetOffsets(index, dir, ring, offsets, answer) => {
                    self.set_offsets(index, dir, ring, offsets);
                    let _ = answer.send(());
                }
                Command::Use(function, answer) => {
                    self.use_function(*function);
                    let _ = answer.send(());
                }
                Command::SetTaps(index, taps, answer) => {
                    self.set_taps(index, taps);
                    let _ = answer.send(());
                }
                Command::Count(answer) => {
                    self.members.iter_mut().flatten().for_each(|member| member.count_lost());
                    self.tell_counters();
                    let _ = answer.send(());
                }
                Command::Poll(cpus, answer) => {
                    self.poll(&cpus);
                    let _ = answer.send(());
                }
                Command::Stop => return false,
            }
        }
        true
    }

    fn poll(&mut self, cpus: &[usize]) {
        self.polling = !cpus.is_empty();
        let mut set = self.everywhere;
        if self.polling {
            set.clear();
            cpus.iter().for_each(|cpu| set.set(*cpu));
        }
        // It fails where these processors are not ours to use: then the worker polls elsewhere.
        let _ = sched_setaffinity(None, &set);
    }

    fn attach(
        &mut self,
        port: Box<dyn Port>,
        config: PortConfig,
        counters: Arc<PortCounters>,
    ) -> Option<PortIndex> {
        let free = self.members.iter().position(Option::is_none).unwrap_or(self.members.len());
        if free >= MAX_PORTS {
            return None;
        }
        let data = epoll::EventData::new_u64(free as u64);
        epoll::add(&self.epoll, port.bell(), data, epoll::EventFlags::IN).ok()?;
        if free == self.members.len() {
            self.members.push(None);
            self.counters.push(None);
        }
        self.members[free] = Some(Box::new(Member::new(port, config)));
        self.counters[free] = Some(counters);
        self.take_stock();
        Some(free as PortIndex)
    }

    fn configure(&mut self, index: PortIndex, config: PortConfig) -> bool {
        let Some(Some(member)) = self.members.get_mut(usize::from(index)) else { return false };
        if config.max_frame != member.config.max_frame {
            member.port.set_max_frame(config.max_frame);
        }
        member.configure(config);
        self.function.as_dyn().forget(index);
        self.take_stock();
        true
    }

    fn set_offsets(&mut self, index: PortIndex, dir: Dir, ring: usize, offsets: Option<Offsets>) {
        if let Some(Some(member)) = self.members.get_mut(usize::from(index)) {
            member.port.set_offsets(dir, ring, offsets);
        }
    }

    fn set_taps(&mut self, index: PortIndex, taps: PortTaps) {
        if let Some(Some(member)) = self.members.get_mut(usize::from(index)) {
            // What the old ones were given is announced first.
            member.port.flush(true);
            member.port.complete(true);
            member.port.set_taps(taps);
        }
    }

    fn use_function(&mut self, function: Function) {
        self.function = function;
        self.function.as_dyn().tick((self.now / 1000) as u32);
    }

    fn replace(&mut self, index: PortIndex, port: Box<dyn Port>) -> bool {
        let Some(old) = self.take_out(index) else { return false };
        let mut new = Member::new(port, old.config);
        new.totals = old.totals;
        self.members[usize::from(index)] = Some(Box::new(new));
        self.take_stock();
        true
    }

    fn detach(&mut self, index: PortIndex) {
        if let Some(member) = self.take_out(index) {
            self.function.as_dyn().forget(index);
            let _ = epoll::delete(&self.epoll, member.port.bell().as_fd());
            if let Some(counters) = self.counters[usize::from(index)].take() {
                counters.store(&member.totals);
            }
            self.take_stock();
        }
    }

    /// Finishes with a port: nobody waits for it, or is waited for by it, any more.
    fn take_out(&mut self, index: PortIndex) -> Option<Box<Member>> {
        self.tell_counters();
        let mut member = self.members.get_mut(usize::from(index)).and_then(Option::take)?;
        self.drain(index, &mut member);
        // Whoever waits for what it was given is not waiting for us any more.
        member.port.flush(true);
        member.port.complete(true);
        member.count_lost();
        let gates = self.members.iter_mut().flatten().flat_map(|member| &mut member.gates);
        gates.for_each(|gate| gate.forget(index));
        Some(member)
    }

    /// Forwards what a port that goes has sent: its program may have ended right after it
    /// (S-VALE-5, S-LIFE-6). No more than a ring holds: another holder of its memory may go on.
    fn drain(&mut self, index: PortIndex, member: &mut Member) {
        for ring in 0..member.port.tx_rings() {
            (0..LAST_BURSTS).take_while(|_| self.serve(index, member, ring)).count();
        }
        for other in self.members.iter_mut().flatten() {
            other.port.flush(true);
            other.port.complete(true);
        }
    }

    /// Notes what no port needs, so that no packet pays for it.
    fn take_stock(&mut self) {
        let mut members = self.members.iter().flatten();
        self.any_vlan = members.clone().any(|m| m.config.vlan != Vlan::Unaware);
        self.any_lossless = members.any(|m| !m.gates.is_empty());
    }

    fn tell_counters(&self) {
        for (member, counters) in self.members.iter().zip(&self.counters) {
            if let (Some(member), Some(counters)) = (member, counters) {
                counters.store(&member.totals);
            }
        }
    }
}
