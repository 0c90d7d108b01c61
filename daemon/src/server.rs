//! The loop: connections come, ask, and go.

use std::{collections::HashMap, io, mem::MaybeUninit, sync::Arc, time::Instant};

use ringway_ipc::{receive_request, refuse, send_reply};
use ringway_proto::{Cause, Error as RegistryError, Reply, Request};
use ringway_region::LostPages;
use ringway_registry::{
    Accounts, Caller, Done, Handle, LostRegion, Netns, Progress, Registry, Step, Subject, Work,
};
use rustix::{
    event::{PollFd, PollFlags, Timespec, epoll, poll},
    fd::{AsFd, OwnedFd},
    net::{AddressFamily, SocketFlags, SocketType, socketpair},
    process::getuid,
};

use crate::{
    closer::{Closer, Kind},
    config::{Config, Error as ConfigError},
    guard::guarded_in,
    janitor::Notes,
    listener::{Arrival, Listener, Peer},
    pace::Pace,
    peer::{User, namespace},
    service_manager::ServiceManager,
    state::StateFile,
    workers::{Finished, Workers},
};

mod handover;

use handover::Restoring;

/// Connections looked at together.
const EVENTS: usize = 256;

const LISTENER: u64 = 0;
const SIGNALS: u64 = 1;
const INTERFACES: u64 = 2;
const CLOSER: u64 = 3;
const LOST_PAGES: u64 = 4;
const WORKERS: u64 = 5;
const FIRST_CLIENT: u64 = 6;
/// For whom there is work that no client waits for.
const NO_CLIENT: u64 = LISTENER;

struct Client {
    fd: OwnedFd,
    user: User,
    handle: Handle,
    /// What it has asked, while that takes long: it is not listened to meanwhile.
    pending: Option<Pending>,
}

/// A request that is being answered.
struct Pending {
    request: Request,
    caller: Caller,
    reply_to: OwnedFd,
    progress: Progress,
    /// The answer, while what is to be closed first is not yet.
    answer: Option<Answer>,
    /// How much of that there is.
    closing: usize,
}

type Answer = Result<(Reply, Vec<OwnedFd>), RegistryError>;

pub struct Server {
    listener: Listener,
    /// Watched through `epoll`.
    _signals: OwnedFd,
    epoll: OwnedFd,
    registry: Registry,
    nic_uids: Vec<u32>,
    grants: Vec<(String, Vec<u32>)>,
    /// Who shares threads that close things.
    accounts: Arc<Accounts>,
    clients: HashMap<u64, Client>,
    last: u64,
    /// What clients have sent is closed by it, and nowhere else.
    closer: Closer,
    /// Pages of regions that could not be had.
    lost_pages: LostPages,
    /// Who is not listened to before the closer has caught up: clients, and the listener.
    resting: Vec<u64>,
    /// What outlives a system daemon.
    state: Option<StateFile>,
    /// Of writing it.
    pace: Pace,
    /// What is being set up again, by the keys that its work has.
    being_restored: HashMap<u64, Restoring>,
    /// The handle for that.
    own_handle: Handle,
    workers: Workers,
    /// Clients whose requests wait for work of others about a subject, in the order in which they came.
    queued: Vec<(Subject, u64)>,
    /// Work that is going on.
    working: usize,
}

impl Server {
    /// `signals`: those that end it.
    pub fn new(
        listener: Listener,
        signals: OwnedFd,
        config: Config,
    ) -> Result<Server, Box<dyn std::error::Error>> {
        ringway_registry::keep_doorbells()?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let watch = |fd: &dyn AsFd, key| {
            epoll::add(&epoll, fd.as_fd(), epoll::EventData::new_u64(key), epoll::EventFlags::IN)
        };
        watch(&listener, LISTENER)?;
        watch(&signals, SIGNALS)?;
        let nic_uids = Self::nic_uids(&listener, &config)?;
        let grants = config.grants()?;
        let settings = config.settings(listener.is_private());
        let accounts = settings.accounts.clone();
        let mut registry = Registry::new(settings);
        registry.defer_closings();
        registry.set_janitor(Arc::new(Notes::default()));
        watch(&registry.events()?, INTERFACES)?;
        let closer = Closer::new()?;
        watch(&closer, CLOSER)?;
        let lost_pages = LostPages::watch()?;
        watch(&lost_pages, LOST_PAGES)?;
        let workers = Workers::new()?;
        watch(&workers, WORKERS)?;
        let clients = HashMap::new();
        let state = (!listener.is_private()).then(|| StateFile::beside(listener.path()));
        let own_handle = registry.open();
        Ok(Server {
            listener,
            _signals: signals,
            epoll,
            registry,
            nic_uids,
            grants,
            accounts,
            clients,
            last: FIRST_CLIENT,
            closer,
            lost_pages,
            resting: Vec::new(),
            state,
            pace: Pace::new(Instant::now()),
            being_restored: HashMap::new(),
            own_handle,
            workers,
            queued: Vec::new(),
            working: 0,
        })
    }

    /// The users who may open NICs, besides root. In a private daemon its user may: the kernel asks for
    /// the privileges.
    fn nic_uids(listener: &Listener, config: &Config) -> Result<Vec<u32>, ConfigError> {
        let mut uids = config.nic_uids()?;
        if listener.is_private() {
            uids.push(getuid().as_raw());
        }
        Ok(uids)
    }

    /// A user with the rights that the configuration gives; `uid` is what it calls the user.
    fn caller(&self, account: u32, uid: u32, netns: Netns) -> Caller {
        let granted = self.grants.iter().filter(|(_, users)| users.contains(&uid));
        Caller {
            uid: account,
            netns,
            may_use_nics: account == 0 || self.nic_uids.contains(&uid),
            granted: granted.map(|(interface, _)| interface.clone()).collect(),
        }
    }

    /// Serves until a signal, or, a private daemon, until nobody needs it.
    pub fn run(mut self, manager: &ServiceManager) -> io::Result<()> {
        self.take_over();
        self.let_in();
        manager.ready();
        let longest_sleep = manager.longest_sleep();
        loop {
            manager.alive();
            let mut events = [const { MaybeUninit::<epoll::Event>::uninit() }; EVENTS];
            let again = guarded_in(&mut self.registry, "housekeeping", Registry::housekeeping)
                .ok()
                .flatten();
            self.go_on_with_memory();
            self.restore_due();
            let due = self.registry.next_due(Instant::now());
            let again = [again, due, self.keep_state()].into_iter().flatten().min();
            let again = again.and_then(|time| Timespec::try_from(time).ok());
            let sleep = [longest_sleep, again].into_iter().flatten().min();
            let (events, _) = match epoll::wait(&self.epoll, &mut events, sleep.as_ref()) {
                Err(rustix::io::Errno::INTR) => continue,
                result => result?,
            };
            // A client that closes one port and then asks for something finds it closed: those
            // who have gone come first, and after each answer we look who else has.
            let mut changed = false;
            let gone = |event: &&epoll::Event| {
                let flags = event.flags;
                flags.contains(epoll::EventFlags::HUP)
            };
            for event in events.iter().filter(gone) {
                self.let_go(event.data.u64());
                changed = true;
            }
            for event in events.iter().filter(|event| !gone(event)) {
                match event.data.u64() {
                    LISTENER => self.let_in(),
                    SIGNALS => {
                        manager.stopping();
                        self.write_state();
                        self.listener.close();
                        return Ok(());
                    }
                    INTERFACES => {
                        // What it was about is looked at again with the next request.
                        let _ = guarded_in(
                            &mut self.registry,
                            "a look at interfaces",
                            Registry::handle_events,
                        );
                        changed = true;
                    }
                    CLOSER => self.listen_again(),
                    LOST_PAGES => {
                        self.give_up_lost_regions();
                        changed = true;
                    }
                    WORKERS => {
                        self.go_on();
                        changed = true;
                    }
                    key => changed |= self.serve(key),
                }
            }
            for notice in self.registry.notices() {
                eprintln!("ringwayd: {notice}");
            }
            self.start_closings(NO_CLIENT);
            if changed && self.may_leave() {
                match self.listener.leave() {
                    Ok(()) => return Ok(()),
                    Err(peer) => self.admit(peer),
                }
            }
        }
    }

    /// Whose region has lost pages loses what is in it, and is told by the end of the connection.
    fn give_up_lost_regions(&mut self) {
        self.lost_pages.drain();
        let lost =
            guarded_in(&mut self.registry, "the end of a region", Registry::give_up_lost_regions);
        for LostRegion { mem_id, uid, handles } in lost.into_iter().flatten() {
            eprintln!(
                "ringwayd: there were no pages for region {mem_id} of user {uid}: its ports are closed"
            );
            let theirs =
                |(&key, client): (&u64, &Client)| handles.contains(&client.handle).then_some(key);
            for key in self.clients.iter().filter_map(theirs).collect::<Vec<_>>() {
                self.let_go(key);
            }
        }
    }

    fn may_leave(&self) -> bool {
        let idle = self.clients.is_empty() && self.working == 0;
        self.listener.is_private() && idle && !self.registry.keeps_something()
    }

    fn let_in(&mut self) {
        loop {
            if self.closer.is_full() {
                return self.rest(LISTENER);
            }
            match self.listener.accept() {
                Some(Arrival::Client(peer)) => self.admit(peer),
                Some(Arrival::TurnedAway(peer)) => {
                    self.closer.await_progress();
                    if self.closer.close(
                        self.accounts.of(peer.user.account),
                        Kind::Known,
                        [peer.fd],
                    ) {
                        return self.rest(LISTENER);
                    }
                }
                None => return,
            }
        }
    }

    /// Does not listen to a client, or for new ones, until there is word from the closer.
    fn rest(&mut self, key: u64) {
        if self.watch(key, epoll::EventFlags::empty()) {
            self.resting.push(key);
        }
    }

    fn listen_again(&mut self) {
        self.closer.drain();
        for key in std::mem::take(&mut self.resting) {
            self.watch(key, epoll::EventFlags::IN);
        }
    }

    /// False: there is no such client, or the kernel will not.
    fn watch(&self, key: u64, flags: epoll::EventFlags) -> bool {
        let fd = match key {
            LISTENER => Some(self.listener.as_fd()),
            key => self.clients.get(&key).map(|client| client.fd.as_fd()),
        };
        let data = epoll::EventData::new_u64(key);
        fd.is_some_and(|fd| epoll::modify(&self.epoll, fd, data, flags).is_ok())
    }

    /// Lets a client in, unless its user has too much already: then it is told so.
    fn admit(&mut self, peer: Peer) {
        match self.enter(peer) {
            Ok(()) => {}
            Err((peer, error)) => {
                refuse(&peer.fd, &error);
                self.closer.close(self.accounts.of(peer.user.account), Kind::Known, [peer.fd]);
            }
        }
    }

    fn enter(&mut self, peer: Peer) -> Result<(), (Peer, RegistryError)> {
        let handle = match self.registry.admit(peer.user.account) {
            Ok(handle) => handle,
            Err(error) => return Err((peer, error)),
        };
        self.last += 1;
        let data = epoll::EventData::new_u64(self.last);
        // A client that cannot be watched is let go: its first call fails.
        if epoll::add(&self.epoll, &peer.fd, data, epoll::EventFlags::IN).is_ok() {
            let (fd, user) = (peer.fd, peer.user);
            self.clients.insert(self.last, Client { fd, user, handle, pending: None });
        } else {
            self.registry.close(handle);
            self.closer.close(self.accounts.of(peer.user.account), Kind::Known, [peer.fd]);
        }
        Ok(())
    }

    /// Another connection for a client.
    fn barrier(&mut self, user: User) -> Result<(Reply, Vec<OwnedFd>), RegistryError> {
        let (kind, flags) = (SocketType::SEQPACKET, SocketFlags::CLOEXEC);
        let (fd, theirs) = socketpair(AddressFamily::UNIX, kind, flags, None).map_err(|e| {
            RegistryError::new(
                Cause::System(e.raw_os_error()),
                format!("no further connection: {e}; raise the daemon's limit of open files"),
            )
        })?;
        self.enter(Peer { fd, user }).map_err(|(_, error)| error)?;
        Ok((Reply::Done, vec![theirs]))
    }

    /// Takes the next request of a client. True if it has gone.
    fn serve(&mut self, key: u64) -> bool {
        let Some(Client { fd, user, pending, .. }) = self.clients.get(&key) else { return true };
        if pending.is_some() {
            return false;
        }
        let user = *user;
        let uid = user.account;
        if self.closer.is_behind(self.accounts.of(uid)) {
            self.rest(key);
            return false;
        }
        let mut useless = Vec::new();
        let received = receive_request(fd, &mut useless);
        // Nobody waits for the answer; where the machine is busy, others would wait for the work.
        let gone = matches!(received, Ok(Some(_))) && has_gone(fd);
        self.closer.close(self.accounts.of(uid), Kind::Unknown, useless);
        match received {
            Ok(Some(received)) => {
                let netns = namespace(received.reply_to.as_fd(), &user);
                let caller = self.caller(uid, user.uid(), netns);
                let (request, reply_to) = (received.request, received.reply_to);
                let progress = Progress::default();
                let (answer, closing) = (None, 0);
                let pending = Pending { request, caller, reply_to, progress, answer, closing };
                if gone {
                    self.drop_request(pending);
                    self.let_go(key);
                } else if matches!(pending.request, Request::Barrier) {
                    let answer = self.barrier(user);
                    self.answer(pending, answer);
                } else {
                    self.advance(key, pending);
                }
                gone
            }
            Ok(None) => false,
            Err(_) => {
                self.let_go(key);
                true
            }
        }
    }

    /// Answers the request of a client as far as that takes no time.
    fn advance(&mut self, key: u64, mut pending: Pending) {
        let Some(client) = self.clients.get_mut(&key) else { return self.drop_request(pending) };
        let handle = client.handle;
        // What others have let go of is no matter of this client's.
        self.start_closings(NO_CLIENT);
        let Pending { request, caller, progress, .. } = &mut pending;
        let step = guarded_in(&mut self.registry, "a request", |registry| {
            registry.begin(handle, caller, request, progress)
        });
        match step {
            Ok(Step::Answered(answer)) => self.answer_when_closed(key, pending, answer),
            Err(error) => self.answer_when_closed(key, pending, Err(error)),
            Ok(Step::Do(work)) => match self.start(key, work) {
                Ok(()) => self.suspend(key, pending),
                Err(error) => self.answer(pending, Err(error)),
            },
            Ok(Step::Wait(subject)) => {
                self.queued.push((subject, key));
                self.suspend(key, pending);
            }
        }
    }

    fn start(&mut self, key: u64, work: Work) -> Result<(), RegistryError> {
        let subject = work.subject().clone();
        self.working += 1;
        self.workers.start(key, work).map_err(|e| {
            // Others wait for the subject.
            self.workers.report(NO_CLIENT, Ok(Done::lost(subject)));
            let error = RegistryError::io("the daemon has no thread for this", e);
            error.remedy("raise its limit of tasks")
        })
    }

    /// Starts to close what is to be closed; how much that is.
    fn start_closings(&mut self, key: u64) -> usize {
        let mut started = 0;
        for work in self.registry.closings() {
            // Without a thread it is closed here.
            started += usize::from(self.start(key, work).is_ok());
        }
        started
    }

    /// Tells a client what has come of its request, as soon as all is closed that it has let go of: then
    /// the client finds the interface as it was.
    fn answer_when_closed(&mut self, key: u64, mut pending: Pending, answer: Answer) {
        match self.start_closings(key) {
            0 => self.answer(pending, answer),
            closing => {
                (pending.answer, pending.closing) = (Some(answer), closing);
                self.suspend(key, pending);
            }
        }
    }

    /// Something that a client waits for is closed.
    fn closed(&mut self, key: u64) {
        let pending = self.clients.get_mut(&key).and_then(|client| client.pending.as_mut());
        let Some(pending) = pending else { return };
        pending.closing = pending.closing.saturating_sub(1);
        if pending.closing > 0 {
            return;
        }
        let pending = self.clients.get_mut(&key).and_then(|client| client.pending.take());
        if let Some(mut pending) = pending
            && let Some(answer) = pending.answer.take()
        {
            self.answer(pending, answer);
            self.watch(key, epoll::EventFlags::IN);
        }
    }

    /// A client's request cannot be answered yet.
    fn suspend(&mut self, key: u64, pending: Pending) {
        self.watch(key, epoll::EventFlags::empty());
        match self.clients.get_mut(&key) {
            Some(client) => client.pending = Some(pending),
            None => self.drop_request(pending),
        }
    }

    /// Goes on with a client's request, and listens to the client again if it could be answered.
    fn resume(&mut self, key: u64, outcome: Option<Result<Done, RegistryError>>) {
        if let Some(restoring) = self.being_restored.remove(&key) {
            return self.go_on_restoring(key, restoring, outcome);
        }
        let client = self.clients.get_mut(&key);
        let pending =
            client.and_then(|client| client.pending.take_if(|pending| pending.answer.is_none()));
        let Some(mut pending) = pending else {
            if let Some(Ok(done)) = outcome {
                self.registry.discard(done);
            }
            return self.closed(key);
        };
        match outcome {
            Some(Err(error)) => self.answer(pending, Err(error)),
            Some(Ok(done)) => {
                pending.progress.put(done);
                self.advance(key, pending);
            }
            None => self.advance(key, pending),
        }
        if self.clients.get(&key).is_some_and(|client| client.pending.is_none()) {
            self.watch(key, epoll::EventFlags::IN);
        }
    }

    /// Work is finished: the requests that waited for it go on, and those that wait for the same subject.
    fn go_on(&mut self) {
        for Finished { client, outcome } in self.workers.collect() {
            self.working = self.working.saturating_sub(1);
            let (subject, outcome) = match outcome {
                Ok(done) => (done.subject().clone(), Ok(done)),
                Err((subject, error)) => {
                    self.registry.discard(Done::lost(subject.clone()));
                    (subject, Err(error))
                }
            };
            self.resume(client, Some(outcome));
            self.resume_queued(|about| *about == subject);
        }
    }

    /// The requests go on that wait for memory which may have been freed by now.
    fn go_on_with_memory(&mut self) {
        let account = |(about, _): &(Subject, u64)| match about {
            Subject::Memory(account) => Some(*account),
            _ => None,
        };
        let waiting: Vec<_> = self.queued.iter().filter_map(account).collect();
        let ready = self.registry.has_freed(&waiting);
        if !ready.is_empty() {
            self.resume_queued(|about| ready.iter().any(|&one| *about == Subject::Memory(one)));
        }
    }

    fn resume_queued(&mut self, is_over: impl Fn(&Subject) -> bool) {
        for (about, key) in std::mem::take(&mut self.queued) {
            match is_over(&about) {
                true => self.resume(key, None),
                false => self.queued.push((about, key)),
            }
        }
    }

    /// Tells a client what has come of its request.
    fn answer(&mut self, pending: Pending, answer: Answer) {
        self.keep_state();
        send_reply(&pending.reply_to, answer);
        self.drop_request(pending);
    }

    /// A request is not answered any more.
    fn drop_request(&mut self, pending: Pending) {
        let Pending { caller, reply_to, progress, .. } = pending;
        let _ = guarded_in(&mut self.registry, "the end of a request", |registry| {
            registry.end(progress)
        });
        self.closer.close(self.accounts.of(caller.uid), Kind::Known, [reply_to]);
    }

    /// A client has gone, or is shown the door; what else it has sent goes along.
    fn let_go(&mut self, key: u64) {
        if let Some(mut client) = self.clients.remove(&key) {
            if let Some(pending) = client.pending.take() {
                self.drop_request(pending);
            }
            // After a panic there is still the handle.
            let close = |registry: &mut Registry| registry.close(client.handle);
            let what = "the end of a connection";
            let _ = guarded_in(&mut self.registry, what, close)
                .or_else(|_| guarded_in(&mut self.registry, what, close));
            // Else it would tell of its end until it is closed.
            let _ = epoll::delete(&self.epoll, &client.fd);
            self.closer.close(self.accounts.of(client.user.account), Kind::Known, [client.fd]);
        }
    }
}

/// Whether all have closed the other end of a connection.
fn has_gone(connection: &OwnedFd) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let mut fds = [PollFd::new(connection, PollFlags::empty())];
    poll(&mut fds, Some(&now)) == Ok(1)
}
