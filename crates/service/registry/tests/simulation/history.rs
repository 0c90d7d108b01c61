//! A registry with its clients, its work and the interfaces, one step after the other.

use std::{
    collections::BTreeSet,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use ringway_nic_setup::simulated::{Fate, Kernel};
use ringway_proto::{Error, Grant, Reply, Request};
use ringway_region::{NetifView, Region, RingView, Sizes};
use ringway_registry::{
    Caller, Done, Due, Handle, Lasting, Netns, Progress, Registry, Settings, Step, Subject, Work,
    clock, fault,
};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fd::OwnedFd,
};

use crate::{
    random::Random,
    requests::{self, INTERFACES, PERSISTENT},
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
            18 if self.random.one_in(40) => self.restart(),
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

    fn come(&mut self) {
        if self.clients.len() >= CLIENTS {
            return self.die();
        }
        let uid = self.random.of(&USERS);
        match self.registry.admit(uid) {
            Ok(handle) => {
                self.last += 1;
                let (id, kept) = (self.last, Vec::new());
                self.note(format!("{id} comes, of user {uid}"));
                let (pending, closing, name, grant, due) = (None, 0, None, None, None);
                self.clients.push(Client {
                    id,
                    handle,
                    uid,
                    pending,
                    closing,
                    kept,
                    name,
                    grant,
                    due,
                });
            }
            Err(error) => self.note(format!("none of user {uid}: {:?}", error.cause)),
        }
    }

    /// What was set up before, or has gone by itself, is set up as soon as it is due.
    fn set_up_again(&mut self) {
        while let Some(due) = self.registry.expected().due(self.now) {
            self.last += 1;
            let (id, uid) = (self.last, due.uid);
            self.note(format!("{id} sets up again {:?}", due.request));
            let mut caller = Caller::new(uid, Netns::Own);
            caller.may_use_nics = true;
            let (request, progress, state) =
                (due.request.clone(), Progress::default(), State::Ready);
            let pending = Some(Pending { request, caller, progress, state, pieces: 0 });
            let (handle, kept, name) = (self.own, Vec::new(), None);
            let client = Client {
                id,
                handle,
                uid,
                pending,
                closing: 0,
                kept,
                name,
                grant: None,
                due: Some(due),
            };
            self.clients.push(client);
            self.advance(self.clients.len() - 1);
        }
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

    fn ask(&mut self) {
        let is_idle = |client: &Client| client.pending.is_none() && client.due.is_none();
        let Some(at) = self.any(is_idle) else { return };
        let mut caller = Caller::new(self.clients[at].uid, Netns::Own);
        caller.may_use_nics = true;
        let request = match &self.clients[at].name {
            Some(name) => requests::of_a_port(&mut self.random, name),
            None => requests::request(&mut self.random),
        };
        self.note(format!("{} asks {request:?}", self.clients[at].id));
        let (progress, state) = (Progress::default(), State::Ready);
        self.clients[at].pending = Some(Pending { request, caller, progress, state, pieces: 0 });
        self.advance(at);
    }

    /// A request that is ready goes on.
    fn go_on(&mut self) {
        if let Some(at) = self.any(Client::is_ready) {
            self.advance(at);
        }
    }

    fn advance(&mut self, at: usize) {
        self.start_closings(Waiter::Nobody);
        let panics = self.unkind.panics > 0 && self.random.one_in(self.unkind.panics);
        let steps = self.random.below(30) as u32;
        let Client { id, handle, pending, due, .. } = &mut self.clients[at];
        let (id, handle) = (*id, *handle);
        if due.as_ref().is_some_and(|due| !self.registry.expected().is_wanted(due)) {
            return self.give_up(id);
        }
        let Some(mut pending) = pending.take() else { return };
        let Pending { request, caller, progress, .. } = &mut pending;
        let step = match panics {
            true => {
                self.panicking(steps, |registry| registry.begin(handle, caller, request, progress))
            }
            false => {
                Some(self.in_the_loop(|registry| registry.begin(handle, caller, request, progress)))
            }
        };
        let step = step.unwrap_or_else(|| Step::Answered(Err(Error::absent("a panic"))));
        let (state, what) = match step {
            Step::Answered(answer) => {
                let what = match &answer {
                    Ok((_, fds)) => format!("is answered with {} descriptors", fds.len()),
                    Err(error) => format!("is refused: {error}"),
                };
                (State::Answered(answer), what)
            }
            Step::Do(work) => {
                let what = format!("has {:?} done", work.subject());
                self.has_turn(id, work.subject());
                self.work.push((Waiter::Request(id), Going::Begun(work)));
                pending.pieces += 1;
                assert!(pending.pieces <= MOST_PIECES, "{what} once more after\n{}", self.tail());
                (State::Working, what)
            }
            Step::Wait(subject) => {
                let what = format!("waits for {subject:?}");
                self.waits(id, &subject);
                (State::Waits(subject), what)
            }
        };
        let is_answered = matches!(state, State::Answered(_));
        if is_answered {
            self.waiting.retain(|(_, other)| *other != id);
        }
        if matches!(state, State::Answered(Ok(_))) {
            self.answered.insert(kind(&pending.request));
        }
        pending.state = state;
        self.clients[at].pending = Some(pending);
        self.note(format!("{id} {what}"));
        if is_answered {
            self.start_closings(Waiter::Answer(id));
            self.answer(id);
        }
    }

    /// A request waits for the subject, and for no other.
    fn waits(&mut self, id: u64, about: &Subject) {
        self.waiting.retain(|(subject, other)| *other != id || subject == about);
        if !self.waiting.iter().any(|(_, other)| *other == id) {
            self.waiting.push((about.clone(), id));
        }
    }

    /// No other waits longer for the subject.
    fn has_turn(&mut self, id: u64, about: &Subject) {
        let is_pending = |id| self.clients.iter().any(|client| client.id == id);
        let mut line =
            self.waiting.iter().filter(|(subject, id)| subject == about && is_pending(*id));
        if let Some((_, first)) = line.next() {
            assert_eq!(*first, id, "{first} waits longer for {about:?} after\n{}", self.tail());
        }
        self.waiting.retain(|(_, other)| *other != id);
    }

    fn start_closings(&mut self, waiter: Waiter) {
        for work in self.registry.deferred().closings() {
            self.work.push((waiter, Going::Begun(work)));
            if let Waiter::Answer(id) = waiter
                && let Some(client) = self.clients.iter_mut().find(|client| client.id == id)
            {
                client.closing += 1;
            }
        }
    }

    /// A client has its answer, when all is closed that it waits for.
    fn answer(&mut self, id: u64) {
        let Some(client) = self.clients.iter_mut().find(|client| client.id == id) else { return };
        if client.closing > 0 {
            return;
        }
        let is_answered = |pending: &mut Pending| matches!(pending.state, State::Answered(_));
        let Some(pending) = client.pending.take_if(is_answered) else { return };
        let Pending { request, state, progress, .. } = pending;
        // Before a client has its answer.
        self.saved = self.registry.lasting().or_else(|| self.saved.take());
        if let Some(due) = client.due.take() {
            let outcome = match state {
                State::Answered(answer) => answer.map(drop),
                _ => Ok(()),
            };
            self.registry.tried_again(&due, outcome, self.now);
            self.clients.retain(|client| client.id != id);
            return self.in_the_loop(|registry| registry.end(progress));
        }
        if let State::Answered(Ok((reply, fds))) = state {
            match request {
                Request::Register { name, .. } => {
                    client.name = Some(name);
                    // The region is the first of what belongs to it.
                    client.kept.clear();
                    if let Reply::Granted(grant) = reply {
                        client.grant = Some(grant);
                    }
                }
                Request::Unregister => client.name = None,
                _ => {}
            }
            client.kept.extend(fds);
        }
        self.in_the_loop(|registry| registry.end(progress));
    }

    /// Does what may take long, apart from the registry.
    fn working<T>(&self, work: impl FnOnce() -> T) -> T {
        self.is_working.store(true, Relaxed);
        let result = work();
        self.is_working.store(false, Relaxed);
        result
    }

    /// Does what all others wait for: nothing is closed here that waits for the kernel.
    fn in_the_loop<T>(&mut self, what: impl FnOnce(&mut Registry) -> T) -> T {
        let before = self.kernel.held();
        let result = what(&mut self.registry);
        let after = self.kernel.held();
        let closed: Vec<_> = before.iter().filter(|held| !after.contains(held)).collect();
        assert!(closed.is_empty(), "{closed:?} closed in the loop after\n{}", self.tail());
        let misplaced = std::mem::take(&mut *self.misplaced.lock().expect("none has panicked"));
        assert!(misplaced.is_empty(), "{misplaced:?} in the loop after\n{}", self.tail());
        result
    }

    /// Panics after so many steps, if there are as many, and recovers: then what it takes does not matter.
    fn panicking<T>(&mut self, steps: u32, what: impl FnOnce(&mut Registry) -> T) -> Option<T> {
        self.is_working.store(true, Relaxed);
        fault::panic_after(steps);
        let result = catch_unwind(AssertUnwindSafe(|| what(&mut self.registry)));
        if !fault::no_panic() {
            self.note("it panics".into());
            self.registry.recover();
        }
        self.is_working.store(false, Relaxed);
        result.ok()
    }

    /// Something is not set up again after all.
    fn give_up(&mut self, id: u64) {
        let Some(at) = self.clients.iter().position(|client| client.id == id) else { return };
        let Client { pending, due, .. } = self.clients.swap_remove(at);
        if let Some(pending) = pending {
            self.registry.end(pending.progress);
        }
        if let Some(due) = due {
            self.registry.tried_again(&due, Err(Error::absent("it is lost")), self.now);
        }
        self.start_closings(Waiter::Nobody);
    }

    /// Some work is done, whose result comes later.
    fn run_work(&mut self) {
        let begun: Vec<_> =
            (0..self.work.len()).filter(|&at| matches!(self.work[at].1, Going::Begun(_))).collect();
        if begun.is_empty() {
            return;
        }
        let at = self.random.of(&begun);
        if let (waiter, Going::Begun(work)) = self.work.swap_remove(at) {
            self.note(format!("{:?} is done for {waiter:?}", work.subject()));
            let done = self.working(|| work.run());
            self.work.push((waiter, Going::Ended(done)));
        }
    }

    /// Its result comes.
    fn end_work(&mut self) {
        let ended: Vec<_> =
            (0..self.work.len()).filter(|&at| matches!(self.work[at].1, Going::Ended(_))).collect();
        if ended.is_empty() {
            return;
        }
        let at = self.random.of(&ended);
        if let (waiter, Going::Ended(done)) = self.work.swap_remove(at) {
            self.deliver(waiter, done);
        }
    }

    fn deliver(&mut self, waiter: Waiter, done: Done) {
        let subject = done.subject().clone();
        self.note(format!("{waiter:?} has the result about {subject:?}"));
        let wanted = match waiter {
            Waiter::Request(id) => self.clients.iter().position(|client| client.id == id),
            _ => None,
        };
        match wanted {
            Some(at) => {
                if let Some(pending) = &mut self.clients[at].pending {
                    pending.progress.put(done);
                    self.advance(at);
                }
            }
            None => self.in_the_loop(|registry| registry.discard(done)),
        }
        if let Waiter::Answer(id) = waiter {
            if let Some(client) = self.clients.iter_mut().find(|client| client.id == id) {
                client.closing -= 1;
            }
            self.answer(id);
        }
        self.resume(&subject);
    }

    fn resume(&mut self, about: &Subject) {
        for client in &mut self.clients {
            if let Some(pending) = &mut client.pending
                && matches!(&pending.state, State::Waits(subject) if subject == about)
            {
                pending.state = State::Ready;
            }
        }
    }

    /// What does some work ends without a result: its request is refused.
    fn lose_work(&mut self) {
        if self.work.is_empty() {
            return;
        }
        let at = self.random.below(self.work.len());
        let (waiter, going) = self.work.swap_remove(at);
        let subject = match &going {
            Going::Begun(work) => work.subject().clone(),
            Going::Ended(done) => done.subject().clone(),
        };
        self.note(format!("the work for {waiter:?} about {subject:?} is lost"));
        self.working(|| drop(going));
        self.registry.discard(Done::lost(subject.clone()));
        match waiter {
            Waiter::Request(id)
                if self.clients.iter().any(|client| client.id == id && client.due.is_some()) =>
            {
                self.give_up(id);
            }
            Waiter::Request(id) => {
                if let Some(client) = self.clients.iter_mut().find(|client| client.id == id)
                    && let Some(pending) = client.pending.take()
                {
                    self.registry.end(pending.progress);
                }
            }
            Waiter::Answer(id) => {
                if let Some(client) = self.clients.iter_mut().find(|client| client.id == id) {
                    client.closing -= 1;
                }
                self.answer(id);
            }
            Waiter::Nobody => {}
        }
        self.resume(&subject);
    }

    /// A client, which may have let go of its port by then, writes over what it shares.
    fn scribble(&mut self) {
        let Some(at) = self.any(|client| client.grant.is_some()) else { return };
        let Client { id, kept, grant: Some(grant), .. } = &self.clients[at] else { return };
        let memory = kept[0].try_clone().expect("there are descriptors");
        let region = Region::open(memory, grant.mem_id, grant.layout).expect("it is that region");
        let region = Arc::new(region);
        let random = &mut self.random;
        let bufs = grant.layout.bufs.total as usize + 3;
        for ring in &grant.rings {
            let Some(view) = RingView::new(&region, ring.object, ring.num_slots) else { continue };
            for slot in 0..ring.num_slots.min(4) {
                let of = [random.below(bufs) as u32, random.number() as u32];
                view.set_slot(slot, random.of(&of), random.number() as u16, random.number() as u16);
            }
        }
        let ifs = &grant.layout.ifs;
        let netif = (grant.netif_offset - ifs.offset) / u64::from(ifs.size);
        if let Some(netif) = NetifView::new(&region, netif as u32) {
            netif.set_bufs_head(random.below(bufs) as u32);
        }
        let id = *id;
        self.note(format!("{id} writes over its memory"));
    }

    fn die(&mut self) {
        if let Some(at) = self.any(|client| client.due.is_none()) {
            self.end_of(at);
        }
    }

    fn end_of(&mut self, at: usize) {
        let Client { id, handle, pending, kept, .. } = self.clients.swap_remove(at);
        self.note(format!("{id} dies"));
        self.in_the_loop(|registry| {
            if let Some(pending) = pending {
                registry.end(pending.progress);
            }
            registry.close(handle);
        });
        self.start_closings(Waiter::Nobody);
        // A child of it may have them yet.
        match self.random.one_in(4) {
            true => self.inherited.extend(kept),
            false => drop(kept),
        }
        if self.random.one_in(4) {
            self.inherited.clear();
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

    /// All clients go, all work ends, and what was made to stay is taken away: nothing is left. Returns the kinds
    /// of requests that were answered.
    pub fn end(mut self) -> BTreeSet<String> {
        self.be_unkind(0);
        self.unkind.panics = 0;
        self.finish_requests();
        while let Some(at) = self.clients.iter().position(|client| client.due.is_none()) {
            self.end_of(at);
            self.settle();
        }
        self.inherited.clear();
        for name in INTERFACES {
            self.kernel.remove(name);
        }
        self.finish_work();
        self.take_away_what_stays();
        self.finish_work();
        self.check();
        assert_eq!(self.registry.handles(), 1, "its own");
        if self.registry.keeps_something() {
            let ports = self.answered(Request::Ports { from: 0 });
            panic!("{ports:#?}\n{:#?} stay after\n{}", self.registry.lasting(), self.tail());
        }
        let empty = [Request::Ports { from: 0 }, Request::Regions { from: Default::default() }];
        for request in empty {
            let answer = self.answered(request);
            let is_empty = match &answer {
                Reply::Ports { ports, .. } => ports.is_empty(),
                Reply::Regions { regions, .. } => regions.is_empty(),
                _ => false,
            };
            assert!(is_empty, "{answer:#?} is left after\n{}", self.tail());
        }
        let (log, kernel, answered) = (self.tail(), self.kernel.clone(), self.answered);
        drop(self.registry);
        assert_eq!(kernel.held(), [], "after\n{log}");
        answered
    }

    /// Each request comes to its end when no others come, and nothing fails any more.
    fn finish_requests(&mut self) {
        let mut steps = 0;
        loop {
            steps += 1;
            assert!(steps < 10_000, "requests are begun again for ever after\n{}", self.tail());
            self.look_around();
            self.settle();
            self.check();
            if let Some(at) = self.any(Client::is_ready) {
                self.advance(at);
            } else if !self.finish_one() {
                break;
            }
        }
        let left = self.clients.iter().filter(|client| client.pending.is_some());
        let left: Vec<_> = left.map(|client| client.id).collect();
        assert!(left.is_empty(), "{left:?} are never answered after\n{}", self.tail());
    }

    fn finish_work(&mut self) {
        loop {
            self.look_around();
            self.settle();
            if !self.finish_one() {
                return;
            }
        }
    }

    /// Some work ends, and is delivered. False: there is none.
    fn finish_one(&mut self) -> bool {
        let Some((waiter, going)) = self.work.pop() else { return false };
        let done = match going {
            Going::Begun(work) => self.working(|| work.run()),
            Going::Ended(done) => done,
        };
        self.deliver(waiter, done);
        true
    }

    /// Asks as root, and waits for all that takes time.
    fn answered(&mut self, request: Request) -> Reply {
        let handle = self.registry.open();
        let mut caller = Caller::new(0, Netns::Own);
        caller.may_use_nics = true;
        self.is_working.store(true, Relaxed);
        let answer = self.registry.call(handle, &caller, request);
        self.is_working.store(false, Relaxed);
        self.registry.close(handle);
        answer.map_or_else(|error| panic!("{error}"), |(reply, _)| reply)
    }

    fn try_to(&mut self, uid: u32, request: Request) {
        let handle = self.registry.open();
        let mut caller = Caller::new(uid, Netns::Own);
        caller.may_use_nics = true;
        self.is_working.store(true, Relaxed);
        let answer = self.registry.call(handle, &caller, request.clone());
        self.is_working.store(false, Relaxed);
        self.note(format!(
            "{request:?}: {:?}",
            answer.map(drop).map_err(|error| error.to_string())
        ));
        self.registry.close(handle);
        self.finish_work();
    }

    fn take_away_what_stays(&mut self) {
        // A persistent port on two switches leaves the one before the other.
        for _ in 0..2 {
            let all = Request::Switches { from: Default::default() };
            let Reply::Switches { switches, .. } = self.answered(all) else {
                panic!("they are listed")
            };
            for switch in switches {
                for port in switch.ports {
                    self.try_to(0, Request::SwitchDetach { name: port.name });
                }
                self.try_to(0, Request::SwitchDelete { bridge: switch.name });
            }
        }
        for (name, uid) in PERSISTENT.into_iter().flat_map(|name| USERS.map(|uid| (name, uid))) {
            self.try_to(uid, Request::DeleteInterface { name: name.into() });
        }
    }
}

impl Client {
    fn is_ready(&self) -> bool {
        matches!(self.pending, Some(Pending { state: State::Ready, .. }))
    }

    fn waits_for_memory(&self) -> Option<u32> {
        match self.pending.as_ref().map(|pending| &pending.state) {
            Some(State::Waits(Subject::Memory(account))) => Some(*account),
            _ => None,
        }
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

fn kind(request: &Request) -> String {
    let shown = format!("{request:?}");
    shown.split([' ', '(']).next().unwrap_or_default().into()
}
