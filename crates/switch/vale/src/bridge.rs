//! A bridge as its owner has it: a worker's thread, and the commands that it is given.

use std::{
    io,
    sync::{Arc, OnceLock, mpsc},
    thread::JoinHandle,
};

use ringway_abi::Dir;
use ringway_fastpath::FastPath;

use crate::{
    casualties::{Casualties, Lost},
    clock::Clock,
    config::PortConfig,
    counters::PortCounters,
    draining::{Draining, Left, Remainder},
    forwarding::{Forwarding, Function},
    function::Forward,
    mailbox::{Command, LearnedPage, Mailbox},
    multicast::{GroupPage, Multicast},
    rounds::{Rounds, SharedRounds},
    switch_mirror::SwitchMirror,
    table::{AddressFilter, StaticAddress},
    worker::Worker,
};
use ringway_kring::{Doorbell, Offsets};
use ringway_switch_port::{Port, PortIndex, PortMirrors};

/// What each worker of this process does first.
static CONFINEMENT: OnceLock<fn() -> io::Result<()>> = OnceLock::new();

/// Has the worker of each bridge that starts from now on call `confine` on its own thread before it
/// has a port: to give up what a worker does not need. A bridge whose worker cannot do so does not
/// start. The first call counts.
pub fn confine_workers(confine: fn() -> io::Result<()>) {
    let _ = CONFINEMENT.set(confine);
}

/// A running bridge. Dropping it stops the worker and lets go of its ports.
pub struct Bridge {
    mailbox: Arc<Mailbox>,
    casualties: Arc<Casualties>,
    rounds: Arc<SharedRounds>,
    thread: Option<JoinHandle<()>>,
}

impl Bridge {
    /// Starts a worker with no ports, which learns. `name` is shown as the thread's name.
    pub fn start(name: &str) -> io::Result<Bridge> {
        Bridge::start_with(name, &Forwarding::default(), Clock::default())
    }

    /// As [`start`](Self::start), with another forwarding function, and another clock.
    pub fn start_with(name: &str, forwarding: &Forwarding, clock: Clock) -> io::Result<Bridge> {
        let mailbox = Arc::new(Mailbox::new(Doorbell::new()?));
        let worker = Worker::new(mailbox.clone(), forwarding, clock)?;
        let (casualties, rounds) = (worker.casualties(), worker.rounds());
        let (answer, confined) = mpsc::channel();
        let run = move || {
            ringway_kring::identify_thread();
            let result = CONFINEMENT.get().map_or(Ok(()), |confine| confine());
            let is_confined = result.is_ok();
            // The bridge waits for it.
            let _ = answer.send(result);
            if is_confined {
                worker.run();
            }
        };
        let thread = std::thread::Builder::new().name(name.into()).spawn(run)?;
        confined.recv().map_err(io::Error::other)??;
        Ok(Bridge { mailbox, casualties, rounds, thread: Some(thread) })
    }

    /// From now on `doorbell` is rung when the worker has given up a port, or ends, because of a panic.
    pub fn report_to(&self, doorbell: Arc<Doorbell>) {
        self.casualties.report_to(doorbell);
    }

    /// What was lost by panics of the worker since the last call.
    pub fn take_lost(&self) -> Lost {
        self.casualties.take()
    }

    /// How long rounds of the worker took, of one in 64 in which there was work.
    pub fn rounds(&self) -> Rounds {
        self.rounds.read()
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

    /// Changes the settings of several running ports at once: no frame is forwarded by some of the new settings and
    /// some of the old.
    pub fn configure_all(&self, changes: Vec<(PortIndex, PortConfig)>) {
        self.ask(|answer| Command::ConfigureAll(changes, answer));
    }

    /// Sets the offsets of a ring of a running port; `None` for none. Does nothing if there is no
    /// such ring.
    pub fn set_offsets(&self, index: PortIndex, dir: Dir, ring: usize, offsets: Option<Offsets>) {
        self.ask(|answer| Command::SetOffsets(index, dir, ring, offsets, answer));
    }

    /// Puts `port` in the place of a running port, which sleeps on the same doorbell. The settings and
    /// the counters stay, and what was learned. What the old one has sent is forwarded first; when
    /// this returns, the worker does not touch it any more. False if there is no such port.
    pub fn replace(&self, index: PortIndex, port: Box<dyn Port>) -> bool {
        self.leave(index, Some(port), Remainder::Forward, None).is_some_and(|draining| {
            draining.wait();
            true
        })
    }

    /// Takes a port out, and forgets what was learned of it. What it has sent is forwarded first.
    /// When this returns, the worker does not touch it any more.
    pub fn detach(&self, index: PortIndex) {
        if let Some(draining) = self.leave(index, None, Remainder::Forward, None) {
            draining.wait();
        }
    }

    /// Begins to take a port out, or to put `successor` in its place, and returns within some
    /// milliseconds, mostly when all is done. What is left of what the port has sent is forwarded
    /// in its turns, or lost, as `remainder` says. The worker touches the port as long as the answer
    /// says; then it rings `doorbell`. `None` if there is no such port.
    pub fn leave(
        &self,
        index: PortIndex,
        successor: Option<Box<dyn Port>>,
        remainder: Remainder,
        doorbell: Option<Arc<Doorbell>>,
    ) -> Option<Draining> {
        let (left, draining) = Left::new(doorbell);
        let command = |answer| Command::Leave { index, successor, remainder, left, answer };
        self.ask(command).unwrap_or(false).then_some(draining)
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

    /// From now on a program in the kernel forwards by the same table, between [ports whose interfaces have
    /// it](ringway_switch_port::Configure::kernel_way), as long as the bridge learns.
    pub fn share_table(&self, fast: Arc<FastPath>) {
        self.ask(|answer| Command::Share(fast, answer));
    }

    /// Shows what a port's rings carry to these monitors. When this returns, the worker does
    /// not touch those it had before.
    pub fn set_mirrors(&self, index: PortIndex, mirrors: PortMirrors) {
        self.ask(|answer| Command::SetMirrors(index, mirrors, answer));
    }

    /// Has the counters of all ports brought up to date.
    pub fn count(&self) {
        self.ask(Command::Count);
    }

    /// The same, without waiting: the answer comes when it is done.
    pub fn begin_count(&self) -> mpsc::Receiver<()> {
        let (answer, done) = mpsc::channel();
        self.mailbox.post(Command::Count(answer));
        done
    }

    /// What asks for addresses that were learned and have not aged, on any thread: some `most`, from position
    /// `from` on (0 at first), and the position of the next if there are more. It waits for the worker as
    /// long as a turn takes; `None`: the worker has gone.
    pub fn learned(
        &self,
        from: usize,
        most: usize,
    ) -> impl FnOnce() -> Option<LearnedPage> + Send + use<> {
        let mailbox = self.mailbox.clone();
        move || ask(&mailbox, |answer| Command::Learned { from, most, answer })
    }

    /// From now on these addresses are [static](StaticAddress), and no others, as long as the bridge has its
    /// forwarding function, if that learns.
    pub fn set_static_addresses(&self, all: Vec<StaticAddress>) {
        self.ask(|answer| Command::SetStatics(all, answer));
    }

    /// Those addresses; `None`: the worker has gone.
    pub fn static_addresses(&self) -> Option<Vec<StaticAddress>> {
        self.ask(Command::Statics)
    }

    /// Forgets such addresses that were learned; returns how many.
    pub fn flush_learned(&self, which: AddressFilter) -> usize {
        self.ask(|answer| Command::Flush(which, answer)).unwrap_or(0)
    }

    /// From now on this becomes of frames for groups of IP, where the bridge learns. It begins with nothing known of
    /// groups.
    pub fn set_multicast(&self, multicast: Multicast) {
        self.ask(|answer| Command::SetMulticast(multicast, answer));
    }

    /// What asks for what is known of groups, as [`learned`](Self::learned) does for addresses.
    pub fn groups(
        &self,
        from: usize,
        most: usize,
    ) -> impl FnOnce() -> Option<GroupPage> + Send + use<> {
        let mailbox = self.mailbox.clone();
        move || ask(&mailbox, |answer| Command::Groups { from, most, answer })
    }

    /// From now on these are the bridge's own mirrors, up to [so many](crate::MAX_MIRRORS), and no others.
    pub fn set_switch_mirrors(&self, mirrors: Vec<SwitchMirror>) {
        self.ask(|answer| Command::SetSwitchMirrors(mirrors, answer));
    }

    /// Those mirrors; `None`: the worker has gone.
    pub fn switch_mirrors(&self) -> Option<Vec<SwitchMirror>> {
        self.ask(Command::SwitchMirrors)
    }

    /// Polling mode: the worker moves to the processors `cpus` and does not sleep. An empty list
    /// ends it.
    pub fn poll(&self, cpus: Vec<usize>) {
        self.ask(|answer| Command::Poll(cpus, answer));
    }

    /// Posts a command and waits for the answer; `None` if the worker has gone.
    fn ask<T>(&self, command: impl FnOnce(mpsc::Sender<T>) -> Command) -> Option<T> {
        ask(&self.mailbox, command)
    }
}

fn ask<T>(mailbox: &Mailbox, command: impl FnOnce(mpsc::Sender<T>) -> Command) -> Option<T> {
    let (answer, done) = mpsc::channel();
    mailbox.post(command(answer));
    done.recv().ok()
}

impl Drop for Bridge {
    fn drop(&mut self) {
        self.mailbox.post(Command::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
