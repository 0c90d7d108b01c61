//! A registry with its clients, its work and the interfaces, one step after the other.

mod clients;
mod declared;
mod end;
mod work;

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use ringway_nic_setup::simulated::{Fate, Kernel};
use ringway_proto::{Error, Grant, Reply, Request};
use ringway_region::Sizes;
use ringway_registry::{
    Caller, Done, Due, Handle, Lasting, Progress, Registry, Settings, Subject, Work, clock,
};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fd::OwnedFd,
};

use crate::{
    random::Random,
    requests::{INTERFACES, PERSISTENT},
};

/// Clients at once, at most.
const CLIENTS: usize = 40;

/// Pieces of work for a request, at most: a registration with a filter, host rings and several queues has 9 where
/// interfaces come and go.
const MOST_PIECES: usize = 12;

/// The users; the first is root.
const USERS: [u32; 4] = [0, 1001, 1002, 1003];

type Answer = Result<(Reply, Vec<OwnedFd>), Error>;

/// How likely failures are: one in so many operations, and one in so many steps.
#[derive(Clone, Copy, Debug)]
pub struct Unkindness {
    pub operations: usize,
    pub panics: usize,
}

struct Client {
    id: u64,
    handle: Handle,
    uid: u32,
    pending: Option<Pending>,
    /// What is being closed that its answer waits for.
    closing: usize,
    /// What it was given.
    kept: Vec<OwnedFd>,
    /// Of the port that it has.
    name: Option<String>,
    /// What it can write to.
    grant: Option<Box<Grant>>,
    /// It is none: the daemon sets that up again.
    due: Option<Due>,
}

struct Pending {
    request: Request,
    caller: Caller,
    progress: Progress,
    state: State,
    /// Pieces of work that were done for it.
    pieces: usize,
}

enum State {
    /// It goes on when its turn comes.
    Ready,
    Working,
    Waits(Subject),
    Answered(Answer),
}

/// What work is done for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiter {
    Request(u64),
    Answer(u64),
    Nobody,
}

enum Going {
    Begun(Work),
    Ended(Done),
}

pub struct History {
    random: Random,
    unkind: Unkindness,
    kernel: Arc<Kernel>,
    registry: Registry,
    clients: Vec<Client>,
    work: Vec<(Waiter, Going)>,
    /// Requests that wait, in the order in which they came.
    waiting: Vec<(Subject, u64)>,
    /// What clients that have gone have given to others.
    inherited: Vec<OwnedFd>,
    last: u64,
    /// What happened, for a failure.
    log: Vec<String>,
    /// The handle of what is set up again.
    own: Handle,
    fates: Arc<AtomicU64>,
    /// Whether operations are expected; and those that hold up all others.
    is_working: Arc<AtomicBool>,
    misplaced: Arc<Mutex<Vec<String>>>,
    /// Kinds of requests that were answered, and not refused.
    pub answered: BTreeSet<String>,
    now: Instant,
    /// How much of the log a failure shows.
    pub shown: usize,
    /// What a daemon that is started now finds.
    saved: Option<Lasting>,
}

impl History {
    pub fn new(seed: u64, unkind: Unkindness, kernel: &Arc<Kernel>) -> History {
        let mut registry = new_registry();
        let own = registry.open();
        let mut history = History {
            random: Random(seed),
            unkind,
            kernel: kernel.clone(),
            registry,
            clients: Vec::new(),
            work: Vec::new(),
            waiting: Vec::new(),
            inherited: Vec::new(),
            last: 0,
            log: Vec::new(),
            own,
            fates: Arc::new(AtomicU64::new(seed)),
            is_working: Arc::default(),
            misplaced: Arc::default(),
            answered: BTreeSet::new(),
            now: Instant::now(),
            shown: 60,
            saved: None,
        };
        history.be_unkind(unkind.operations);
        kernel.reset();
        for (at, name) in INTERFACES.into_iter().enumerate() {
            kernel.add(name, 2, at != 2);
        }
        clock::tell(history.now);
        history
    }

    /// From now on so many operations fail; 0: none.
    fn be_unkind(&mut self, one_in: usize) {
        let (fates, is_working) = (self.fates.clone(), self.is_working.clone());
        let misplaced = self.misplaced.clone();
        self.kernel.on_operation(move |operation| {
            if !is_working.load(Relaxed) {
                let mut misplaced = misplaced.lock().expect("no thread has panicked");
                misplaced.push(operation.to_owned());
            }
            let mut random = Random(fates.load(Relaxed));
            let fails = one_in > 0 && random.one_in(one_in);
            let fate = match random.below(3) {
                _ if !fails => Fate::Done,
                0 => Fate::Lost,
                _ => Fate::Refused(random.of(&[
                    libc::ENOMEM,
                    libc::EBUSY,
                    libc::EPERM,
                    libc::ENODEV,
                    libc::EMFILE,
                    libc::EINVAL,
                ])),
            };
            fates.store(random.0, Relaxed);
            fate
        });
    }

    fn note(&mut self, what: String) {
        self.log.push(what);
    }

    /// All that has happened.
    pub fn trace(&self) -> Vec<String> {
        self.log.clone()
    }

    /// Goes on by one step. The books agree before and after it.
    pub fn step(&mut self) {
        let time = self.random.of(&[0, 0, 1, 10, 100, 1000, 10_000]);
        self.now += Duration::from_millis(time);
        if self.random.one_in(1000) {
            self.now += Duration::from_secs(700);
        }
        clock::tell(self.now);
        self.set_up_again();
        match self.random.below(20) {
            0..2 => self.come(),
            2..7 => self.ask(),
            7..10 => self.run_work(),
            10..13 => self.end_work(),
            13..16 => self.go_on(),
            16 if self.random.one_in(2) => self.scribble(),
            16 => self.die(),
            17 => self.change_interface(),
            18 if self.random.one_in(8) => self.lose_work(),
            18 if self.random.one_in(8) => self.lose_device(),
            18 if self.random.one_in(40) => self.restart(),
            18 if self.random.one_in(12) => self.declare(),
            _ => self.look_around(),
        }
        self.settle();
        self.check();
    }

    fn check(&self) {
        let wrong = self.registry.disagreements();
        assert!(wrong.is_empty(), "{wrong:#?} after\n{}", self.tail());
    }

    /// The last things that have happened.
    pub fn tail(&self) -> String {
        let from = self.log.len().saturating_sub(self.shown);
        self.log[from..].join("\n")
    }

    /// Switches let go of ports on threads of their own: the next step comes after that.
    fn settle(&mut self) {
        while self.registry.is_draining() {
            let events = self.registry.events().expect("it is there");
            let mut fds = [PollFd::from_borrowed_fd(events, PollFlags::IN)];
            let patience = Timespec { tv_sec: 10, tv_nsec: 0 };
            let heard = poll(&mut fds, Some(&patience));
            assert_eq!(heard, Ok(1), "a switch keeps a port's rings");
            self.registry.handle_events();
        }
        let waiting: Vec<u32> = self.clients.iter().filter_map(Client::waits_for_memory).collect();
        for account in self.registry.has_freed(&waiting) {
            self.resume(&Subject::Memory(account));
        }
        for subject in self.registry.deferred().stirred() {
            self.resume(&subject);
        }
        while self.registry.housekeeping().is_some_and(|again| again.is_zero()) {}
    }

    /// The daemon ends as by SIGKILL, and another has what is in its file.
    fn restart(&mut self) {
        self.note("the daemon is killed".into());
        let mut clients = std::mem::take(&mut self.clients);
        for client in &mut clients {
            if self.random.one_in(4) {
                self.inherited.append(&mut client.kept);
            }
        }
        let (work, old) =
            (std::mem::take(&mut self.work), std::mem::replace(&mut self.registry, new_registry()));
        self.working(|| drop((clients, work, old)));
        self.own = self.registry.open();
        let saved = self.saved.clone().filter(|_| !self.random.one_in(10)).unwrap_or_default();
        let wrong = self.registry.restore(saved, self.now);
        assert!(wrong.is_empty(), "{wrong:?} after\n{}", self.tail());
        self.saved = self.registry.lasting().or_else(|| self.saved.take());
    }

    fn any(&mut self, is_it: impl Fn(&Client) -> bool) -> Option<usize> {
        let those: Vec<_> =
            (0..self.clients.len()).filter(|&at| is_it(&self.clients[at])).collect();
        (!those.is_empty()).then(|| self.random.of(&those))
    }

    /// The device of a persistent port goes.
    fn lose_device(&mut self) {
        let name = self.random.of(&PERSISTENT);
        if self.kernel.index(name).is_some() {
            self.note(format!("the device {name} goes"));
            self.kernel.remove(name);
        }
    }

    fn change_interface(&mut self) {
        let name = self.random.of(&INTERFACES);
        let there = self.kernel.index(name).is_some();
        match self.random.below(6) {
            0 if there => {
                self.note(format!("{name} goes"));
                self.kernel.remove(name);
            }
            1 if there => {
                let up = self.random.one_in(2);
                self.note(format!("{name} is up: {up}"));
                self.kernel.change(name, |device| device.up = up);
            }
            2 if there => {
                let mtu = self.random.of(&[1280, 1500, 9000]);
                self.note(format!("{name} has MTU {mtu}"));
                self.kernel.change(name, |device| device.mtu = mtu);
            }
            3 if there => {
                self.note(format!("{name} is renamed, and has its name again"));
                self.kernel.change(name, |device| device.name = "other".into());
                if self.random.one_in(2) {
                    self.registry.handle_events();
                }
                self.kernel.change("other", |device| device.name = name.into());
            }
            _ if !there => {
                self.note(format!("{name} comes"));
                self.kernel.add(name, 2, name != "n2");
            }
            _ => {}
        }
    }

    fn look_around(&mut self) {
        self.in_the_loop(Registry::handle_events);
        self.start_closings(Waiter::Nobody);
    }
}

fn new_registry() -> Registry {
    let settings = Settings {
        max_bridges: 8,
        nic_slots: 16,
        global_region: Sizes { buf_num: 4096, ..Sizes::GLOBAL },
        descriptors_per_user: 400,
        ..Settings::default()
    };
    let mut registry = Registry::new(settings);
    registry.deferred().defer_closings();
    registry.events().expect("there are descriptors");
    registry
}
