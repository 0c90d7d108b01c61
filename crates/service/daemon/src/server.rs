//! The loop: connections come, ask, and go.

use std::{
    collections::HashMap,
    io,
    mem::{self, MaybeUninit},
    sync::Arc,
    time::{Duration, Instant},
};

use ringway_nic_setup::kept;
use ringway_proto::EventKind;
use ringway_region::LostPages;
use ringway_registry::{
    Accounts, Caller, DropWatch, Handle, LostRegion, Netns, ReceiveWatch, Registry, Reserved,
    Subject,
};
use rustix::{
    event::{Timespec, epoll},
    fd::{AsFd, OwnedFd},
};

use crate::{
    closer::Closer,
    guard::guarded_in,
    helper::Launcher,
    janitor::Notes,
    listener::Listener,
    log::{self, By, Entry, log},
    pace::Pace,
    peer::User,
    policy::{Policy, Rules},
    ready::{For, Ready},
    request_times::RequestTimes,
    service_manager::ServiceManager,
    state::StateFile,
    unread::Unread,
    workers::{Waiter, Workers},
};

mod connections;
mod declared;
mod events;
mod handover;
mod reload;
mod requests;
mod timing;

use handover::Restoring;
pub use reload::Reading;
use reload::Reload;
use requests::Pending;

/// Connections looked at together.
const EVENTS: usize = 256;

const LISTENER: u64 = 0;
const SIGNALS: u64 = 1;
const INTERFACES: u64 = 2;
const CLOSER: u64 = 3;
const LOST_PAGES: u64 = 4;
const WORKERS: u64 = 5;
const HANGUPS: u64 = 6;
const RELOADED: u64 = 7;
const NEWS: u64 = 8;
const LAUNCHER: u64 = 9;
const FIRST_CLIENT: u64 = 10;

/// How long a private daemon stays when nobody needs it: who closes a port and opens the next finds it again.
const LINGER: Duration = Duration::from_millis(200);

struct Client {
    fd: OwnedFd,
    user: User,
    handle: Handle,
    /// Those of the process that connected, which the kernel tells by the first connection alone: the others are
    /// pairs that this process has made. None if they are not known.
    groups: Arc<[u32]>,
    /// Names that policy reserves, as they concern the user.
    reservations: Arc<[Reserved]>,
    /// What it has asked, while that takes long: it is not listened to meanwhile.
    pending: Option<Pending>,
    /// How much is being closed that its next answer waits for.
    closing: usize,
    /// Its other connection, on which it may ask when this one has gone.
    barrier: Option<u64>,
}

/// Signals to the process, as descriptors that are readable when there is one.
pub struct Signals {
    /// What ends the daemon.
    pub end: OwnedFd,
    /// SIGHUP: the configuration is to be read again.
    pub hangup: Option<OwnedFd>,
}

pub struct Server {
    listener: Listener,
    signals: Signals,
    epoll: OwnedFd,
    registry: Registry,
    rules: Rules,
    /// Starts what reads the configuration again.
    launcher: Option<Arc<Launcher>>,
    reload: Reload,
    /// Who shares threads that close things.
    accounts: Arc<Accounts>,
    clients: HashMap<u64, Client>,
    /// Those of them that are to be served.
    ready: Ready,
    last: u64,
    /// What clients have sent is closed by it, and nowhere else.
    closer: Closer,
    /// Answers that they have not read yet.
    unread: Unread,
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
    drop_watch: DropWatch,
    receive_watch: ReceiveWatch,
    /// The handle for that.
    own_handle: Handle,
    workers: Workers,
    /// Clients whose requests wait for work of others about a subject, in the order in which they came.
    queued: Vec<(Subject, u64)>,
    /// Readable when there are events that clients wait for.
    news: OwnedFd,
    /// Those clients.
    followers: Vec<u64>,
    /// Work that is going on.
    working: usize,
    /// How long requests took.
    request_times: RequestTimes,
}

impl Server {
    /// `launcher` starts what takes privileges that this process has not.
    pub fn new(
        listener: Listener,
        signals: Signals,
        policy: Policy,
        launcher: Option<Arc<Launcher>>,
    ) -> Result<Server, Box<dyn std::error::Error>> {
        ringway_registry::keep_doorbells()?;
        if let Some(problem) = ringway_registry::slow_doorbells() {
            let text = format!("to wake a program takes 25 microseconds longer: {problem}");
            log(Entry::warn(EventKind::Config, text));
        }
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let watch = |fd: &dyn AsFd, key| {
            epoll::add(&epoll, fd.as_fd(), epoll::EventData::new_u64(key), epoll::EventFlags::IN)
        };
        watch(&listener, LISTENER)?;
        watch(&signals.end, SIGNALS)?;
        if let Some(hangup) = &signals.hangup {
            watch(hangup, HANGUPS)?;
        }
        if let Some(launcher) = &launcher {
            launcher.watch(&epoll, LAUNCHER)?;
        }
        let Policy { rules, settings } = policy;
        let accounts = settings.accounts.clone();
        let request_times = RequestTimes::new(settings.memory_per_user);
        let unread = Unread::new(settings.descriptors_per_user);
        let mut registry = Registry::new(settings);
        registry.deferred().defer_closings();
        let janitor = Arc::new(Notes::new(launcher.clone()));
        registry.set_janitor(janitor.clone());
        ringway_nic_setup::use_guard(janitor);
        watch(&registry.events()?, INTERFACES)?;
        let closer = Closer::new()?;
        watch(&closer, CLOSER)?;
        let lost_pages = LostPages::watch()?;
        watch(&lost_pages, LOST_PAGES)?;
        let workers = Workers::new()?;
        watch(&workers, WORKERS)?;
        let news = log::news()?;
        watch(&news, NEWS)?;
        let clients = HashMap::new();
        let state = (!listener.is_private()).then(|| StateFile::beside(listener.path()));
        let own_handle = registry.open();
        Ok(Server {
            listener,
            signals,
            epoll,
            registry,
            rules,
            launcher,
            reload: Reload::default(),
            accounts,
            clients,
            ready: Ready::default(),
            last: FIRST_CLIENT,
            closer,
            unread,
            lost_pages,
            resting: Vec::new(),
            state,
            pace: Pace::new(Instant::now()),
            being_restored: HashMap::new(),
            drop_watch: DropWatch::default(),
            receive_watch: ReceiveWatch::default(),
            own_handle,
            workers,
            queued: Vec::new(),
            news,
            followers: Vec::new(),
            working: 0,
            request_times,
        })
    }

    /// A user with the rights that the configuration gives; `uid` is what it calls the user.
    fn caller(
        &self,
        account: u32,
        uid: u32,
        netns: Netns,
        reservations: Arc<[Reserved]>,
    ) -> Caller {
        let granted = self.rules.grants.iter().filter(|(_, users)| users.contains(&uid));
        let mut caller = Caller::new(account, netns);
        caller.may_use_nics = account == 0 || self.rules.nic_uids.contains(&uid);
        caller.granted = granted.map(|(interface, _)| interface.clone()).collect();
        if account != 0 {
            caller.reservations = reservations;
        }
        caller
    }

    /// Serves until a signal, or, a private daemon, until nobody needs it.
    pub fn run(mut self, manager: &ServiceManager) -> io::Result<()> {
        self.take_over();
        self.declare();
        self.let_in();
        manager.ready();
        let longest_sleep = manager.longest_sleep();
        // The program that has started a private daemon may have been killed since.
        let mut idle_since = self.listener.is_private().then(Instant::now);
        loop {
            manager.alive();
            let mut events = [const { MaybeUninit::<epoll::Event>::uninit() }; EVENTS];
            let again = guarded_in(&mut self.registry, "housekeeping", Registry::housekeeping)
                .ok()
                .flatten();
            self.go_on_with_memory();
            self.restore_due();
            self.go_on_without_others();
            let due = self.next_due();
            let leave = idle_since.map(|since: Instant| LINGER.saturating_sub(since.elapsed()));
            let (drops, received) = (self.watch_drops(), self.watch_received());
            let unread = self.look_at_unread();
            let again = [again, due, drops, received, unread, self.keep_state(), leave];
            let again = again.into_iter().flatten().min();
            // Those who are ready are served after a look at who else is.
            let again = if self.ready.is_empty() { again } else { Some(Duration::ZERO) };
            let again = again.and_then(|time| Timespec::try_from(time).ok());
            let sleep = [longest_sleep, again].into_iter().flatten().min();
            let (events, _) = match epoll::wait(&self.epoll, &mut events, sleep.as_ref()) {
                Err(rustix::io::Errno::INTR) => continue,
                result => result?,
            };
            let (mut changed, mut are_more_there) = (false, false);
            for event in events.iter() {
                let flags = event.flags;
                match event.data.u64() {
                    LISTENER => are_more_there = true,
                    SIGNALS => {
                        self.end(manager, "a signal");
                        return Ok(());
                    }
                    LAUNCHER if manager.is_there() => {
                        let problem = "what starts its helpers (ringwayd-launch) has ended";
                        let text =
                            format!("{problem}; the service manager starts the daemon again");
                        log(Entry::error(EventKind::Process, text));
                        self.end(manager, problem);
                        return Err(io::Error::other(problem));
                    }
                    LAUNCHER => {
                        const ENDED: &str = "what starts its helpers (ringwayd-launch) has ended: what is set up goes \
                                             on, without another helper should one end, and the configuration \
                                             cannot be read again";
                        self.request_times.degrade(ENDED);
                        let text = format!("{ENDED}; restart the daemon");
                        log(Entry::error(EventKind::Process, text));
                    }
                    HANGUPS => self.begin_reload(manager),
                    RELOADED => self.finish_reload(manager),
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
                    NEWS => self.wake_followers(),
                    WORKERS => {
                        self.go_on();
                        changed = true;
                    }
                    key if flags.contains(epoll::EventFlags::HUP) => self.is_ready(key, For::End),
                    key => self.is_ready(key, For::Request),
                }
            }
            // After a look at who has gone: newcomers of the same user may want their room.
            if are_more_there {
                self.let_in();
            }
            changed |= self.serve_one_of_each();
            for notice in self.registry.notices() {
                self.note(notice);
            }
            self.start_closings(Waiter::Nobody);
            if !self.may_leave() {
                idle_since = None;
            } else if changed || !self.followers.is_empty() {
                idle_since = idle_since.or_else(|| Some(Instant::now()));
            }
            if idle_since.is_some_and(|since| since.elapsed() >= LINGER) {
                match self.listener.leave() {
                    Ok(()) => {
                        self.note_stop("no program needs it");
                        return Ok(());
                    }
                    Err(peer) => _ = self.admit(peer),
                }
            }
        }
    }

    /// Ends a daemon that another one may follow.
    fn end(mut self, manager: &ServiceManager, why: &str) {
        manager.stopping();
        self.note_stop(why);
        self.write_last_state();
        self.listener.close();
        if kept::are_any() {
            // As after a kill: what this would end goes on, in case that another daemon follows.
            mem::forget(self);
        }
    }

    fn is_ready(&mut self, key: u64, what: For) {
        if let Some(client) = self.clients.get(&key) {
            self.ready.add(self.accounts.of(client.user.account), key, what);
        }
    }

    /// Serves one client of each account that has any to be served. True if something may have ended.
    fn serve_one_of_each(&mut self) -> bool {
        let mut changed = false;
        for account in self.ready.accounts() {
            changed |= match self.ready.next_of(account) {
                Some((key, For::End)) => {
                    self.let_go(key);
                    true
                }
                Some((key, For::Resumption)) => {
                    self.resume(key, None);
                    true
                }
                Some((key, For::Request)) => self.serve(key),
                None => false,
            };
        }
        changed
    }

    /// Whose region has lost pages loses what is in it, and is told by the end of the connection.
    fn give_up_lost_regions(&mut self) {
        self.lost_pages.drain();
        let lost =
            guarded_in(&mut self.registry, "the end of a region", Registry::give_up_lost_regions);
        for LostRegion { mem_id, uid, handles } in lost.into_iter().flatten() {
            let text = format!(
                "there were no pages for region {mem_id} of user {uid}: its ports are closed"
            );
            let by = By { uid, pid: None, account: self.accounts.of(uid) };
            log(Entry::error(EventKind::Memory, text).by(by));
            let theirs =
                |(&key, client): (&u64, &Client)| handles.contains(&client.handle).then_some(key);
            for key in self.clients.iter().filter_map(theirs).collect::<Vec<_>>() {
                self.let_go(key);
            }
        }
    }

    fn note_stop(&mut self, why: &str) {
        let notices = self.drop_watch.look_now(&mut self.registry, Instant::now());
        notices.into_iter().for_each(|notice| self.note(notice));
        log(Entry::info(EventKind::DaemonStop, format_args!("the daemon ends: {why}")));
        self.answer_followers();
    }

    fn may_leave(&self) -> bool {
        // A client that only follows the log needs no daemon.
        let idle = self.clients.len() == self.followers.len() && self.working == 0;
        self.listener.is_private() && idle && !self.registry.keeps_something()
    }
}
