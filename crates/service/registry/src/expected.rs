//! What a daemon before this one had, an interface that has gone, or a declared interface, and what is not there
//! yet.
//!
//! Switches come back at once, with their settings, so that no port joins one without. Interfaces and
//! persistent ports are set up by the requests that their users could make, one after the other, with the
//! rights that the users have now; one that cannot be had is tried again, and keeps its place meanwhile. The
//! interface of a container goes with it, and comes again with the next start: its place waits for
//! an interface of that name, and is given up after some minutes, as many never come back.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use ringway_nic_setup::LinkWatch;
use ringway_proto::{Error, EventKind, Level, Request, Result};

use crate::{
    bridges::Bridges,
    caller::Caller,
    lasting::{LastingAttachment, LastingDevice, LastingNetns, LastingPort},
    notices::Notice,
};

mod restore;

/// From one attempt to the next: soon at first, because what is left of a daemon that was killed takes
/// the kernel some time to clear away.
const SOONEST: Duration = Duration::from_millis(20);
const LATEST: Duration = Duration::from_secs(1);
/// Attempts after which the operator is told.
const QUIET: u32 = 4;
/// What attempts may take of the time.
const SHARE: u32 = 20;
/// How long a place on a switch waits for an interface that has gone.
const PATIENCE: Duration = Duration::from_secs(600);
/// As many places wait at most: each takes a descriptor.
const WAITING: usize = 64;

/// Something that is to be tried now.
#[derive(Debug)]
pub struct Due {
    id: u64,
    began: Instant,
    /// Who asks.
    pub uid: u32,
    /// Where the names of interfaces are meant.
    pub netns: LastingNetns,
    /// A socket there, if there is one.
    pub socket: Option<Arc<LinkWatch>>,
    pub request: Request,
    /// It was there before.
    comes_back: bool,
}

/// What is to come back.
#[derive(Clone, Debug)]
enum What {
    Port(LastingPort),
    Attachment(LastingAttachment),
}

impl What {
    fn uid(&self) -> u32 {
        match self {
            What::Port(port) => port.uid,
            What::Attachment(attachment) => attachment.uid,
        }
    }

    fn name(&self) -> &str {
        match self {
            What::Port(port) => &port.name,
            What::Attachment(attachment) => &attachment.name,
        }
    }

    fn netns(&self) -> LastingNetns {
        match self {
            What::Port(port) => port.netns,
            What::Attachment(attachment) => attachment.netns,
        }
    }

    fn request(&self) -> Request {
        match self {
            What::Port(LastingPort { name, shape, .. }) => {
                Request::NewInterface { name: name.clone(), shape: *shape }
            }
            What::Attachment(LastingAttachment { name, stack, mode, .. }) => {
                Request::SwitchAttach {
                    name: name.clone(),
                    stack: *stack,
                    all_rings: true,
                    mem_id: 0,
                    mode: *mode,
                }
            }
        }
    }

    /// Whether it was there before: what is declared may not have been.
    fn comes_back(&self) -> bool {
        !matches!(self, What::Attachment(LastingAttachment { never_there: true, .. }))
    }

    /// The persistent port or interface, and its switch.
    fn on_switch(&self) -> Option<(&str, &str)> {
        match self {
            What::Port(_) => None,
            What::Attachment(attachment) => {
                attachment.name.split_once(':').map(|(bridge, port)| (port, bridge))
            }
        }
    }
}

struct Item {
    id: u64,
    what: What,
    /// `None`: it is being tried.
    due: Option<Instant>,
    attempts: u32,
    /// It keeps its place, and is not tried.
    is_held: bool,
    /// An interface that has gone: when it is given up, and what had watched it.
    until: Option<(Instant, Arc<LinkWatch>)>,
    why: String,
    /// The last attempt failed, and not because the interface is missing.
    is_refused: bool,
    /// What the operator was told.
    told: String,
}

impl Item {
    /// How users are told that it is not on its switch.
    fn absence(&self) -> &'static str {
        match (self.what.comes_back(), self.is_refused) {
            (true, _) => "not back yet",
            (false, false) => "not there yet",
            (false, true) => "not attached",
        }
    }
}

/// Whether there is no such interface, and not another reason.
fn is_missing(error: &Error) -> bool {
    let missing = ringway_nic_setup::Error::NoInterface { interface: String::new() };
    error.problem == missing.problem()
}

/// The book of all that is to come back.
#[derive(Default)]
pub struct Expected {
    items: Vec<Item>,
    last: u64,
    /// Whether it is another than it was.
    pub(crate) changed: bool,
}

impl Expected {
    /// What is to be tried now, if there is something: begin (`Registry::begin`) it for the user, with the
    /// rights that the user has now, and tell (`tried`) what has come of it.
    pub fn due(&mut self, now: Instant) -> Option<Due> {
        let is_due = |item: &&Item| {
            let is_due = item.due.is_some_and(|due| due <= now) && !item.is_held;
            is_due && !self.waits_for_port(&item.what)
        };
        let id = self.items.iter().find(is_due)?.id;
        let item = self.item(id)?;
        item.due = None;
        let (uid, netns) = (item.what.uid(), item.what.netns());
        let socket = item.until.as_ref().map(|(_, watch)| watch.clone());
        let (request, comes_back) = (item.what.request(), item.what.comes_back());
        Some(Due { id, began: now, uid, netns, socket, request, comes_back })
    }

    /// Whether something is still to come back. No user has given it up meanwhile.
    pub fn is_wanted(&self, due: &Due) -> bool {
        self.items.iter().any(|item| item.id == due.id)
    }

    /// What has come of something that was due. Returns what the operator is to know.
    fn tried(&mut self, due: &Due, outcome: Result<()>, now: Instant) -> Option<Notice> {
        let item = self.item(due.id)?;
        let Err(error) = outcome else { return None };
        let pause = SOONEST.saturating_mul(1 << item.attempts.min(16)).min(LATEST);
        let took = now.saturating_duration_since(due.began);
        // What is left of the daemon before is cleared away soon.
        let pause = if item.attempts < QUIET { pause } else { pause.max(took * SHARE) };
        item.due = Some(now + pause);
        item.attempts = item.attempts.saturating_add(1);
        item.why = error.to_string();
        item.is_refused = !is_missing(&error);
        if item.attempts <= QUIET || item.told == item.why {
            return None;
        }
        item.told = item.why.clone();
        let (name, uid, absence) = (item.what.name(), item.what.uid(), item.absence());
        let text = format!("{name} of user {uid} is {absence}, and is tried again: {error}");
        Some(Notice::new(Level::Warn, EventKind::NotBack, text).at(name).of_user(uid))
    }

    /// How long until something is due.
    pub fn next_due(&self, now: Instant) -> Option<Duration> {
        let waits = |item: &&Item| !item.is_held && !self.waits_for_port(&item.what);
        let next = self.items.iter().filter(waits).filter_map(|item| item.due).min()?;
        Some(next.saturating_duration_since(now))
    }

    /// Whether all that is to come back has been tried.
    pub fn all_tried(&self) -> bool {
        let untried =
            |item: &Item| item.attempts == 0 && !item.is_held && !self.waits_for_port(&item.what);
        !self.is_being_tried() && !self.items.iter().any(untried)
    }

    /// What has that name keeps its place, and is not tried: `why`, as users see it. Whether there is such.
    pub fn hold(&mut self, name: &str, why: &str) -> bool {
        let mut items: Vec<_> =
            self.items.iter_mut().filter(|item| item.what.name() == name).collect();
        items.iter_mut().for_each(|item| (item.is_held, item.why) = (true, why.to_owned()));
        !items.is_empty()
    }

    /// Whether what has that name is held.
    pub fn is_held(&self, name: &str) -> bool {
        self.items.iter().any(|item| item.is_held && item.what.name() == name)
    }

    fn push(&mut self, what: What, now: Instant) {
        self.push_until(None, what, now);
    }

    fn push_until(&mut self, until: Option<(Instant, Arc<LinkWatch>)>, what: What, now: Instant) {
        self.last += 1;
        let (due, why, told) = (Some(now), "not tried yet".into(), String::new());
        let (id, attempts, is_held, is_refused) = (self.last, 0, false, false);
        let item = Item { id, what, due, attempts, is_held, until, why, is_refused, told };
        self.items.push(item);
    }

    /// What has waited for too long for something that was tried just now: on which switch, and its name. What is
    /// `declared` is waited for as long as it is.
    fn given_up(
        &mut self,
        due: &Due,
        now: Instant,
        declared: impl Fn(&str) -> bool,
    ) -> Option<(String, String)> {
        let at = self.items.iter().position(|item| item.id == due.id)?;
        let item = self.items.get(at)?;
        item.until.as_ref().filter(|(until, _)| *until <= now && !declared(item.what.name()))?;
        let what = self.items.remove(at).what;
        self.changed = true;
        let (_, bridge) = what.on_switch()?;
        Some((bridge.to_owned(), what.name().to_owned()))
    }

    pub(crate) fn ports(&self) -> impl Iterator<Item = LastingPort> {
        self.items.iter().filter_map(|item| match &item.what {
            What::Port(port) => Some(port.clone()),
            What::Attachment(_) => None,
        })
    }

    pub(crate) fn attachments(&self) -> impl Iterator<Item = LastingAttachment> {
        self.items.iter().filter_map(|item| match &item.what {
            What::Port(_) => None,
            What::Attachment(it) => {
                Some(LastingAttachment { absent: true, renamed: None, ..it.clone() })
            }
        })
    }

    /// What is to be on a switch by the name of `full`.
    pub(crate) fn attachment(&self, full: &str) -> Option<&LastingAttachment> {
        self.items.iter().find_map(|item| match &item.what {
            What::Attachment(attachment) if attachment.name == full => Some(attachment),
            _ => None,
        })
    }

    /// Whether it is a persistent port that is not back itself.
    fn waits_for_port(&self, what: &What) -> bool {
        let Some((port, _)) = what.on_switch() else { return false };
        self.items.iter().any(|item| match &item.what {
            What::Port(it) => it.name == port && it.uid == what.uid() && it.netns == what.netns(),
            What::Attachment(_) => false,
        })
    }

    /// Whether there is something for whose sake the daemon is to stay: not what has gone by itself.
    pub(crate) fn is_needed(&self) -> bool {
        self.items.iter().any(|item| item.until.is_none())
    }

    fn is_being_tried(&self) -> bool {
        self.items.iter().any(|item| item.due.is_none())
    }

    fn item(&mut self, id: u64) -> Option<&mut Item> {
        self.items.iter_mut().find(|item| item.id == id)
    }

    /// Whether there were any.
    fn forget(&mut self, is_it: impl Fn(&What) -> bool) -> bool {
        let before = self.items.len();
        self.items.retain(|item| !is_it(&item.what));
        let forgot = self.items.len() < before;
        self.changed |= forgot;
        forgot
    }
}

/// What requests find, and change.
impl Expected {
    /// EBUSY if another user's interface is to come back by that name.
    pub(crate) fn check_not_expected(&self, caller: &Caller, full: &str) -> Result<()> {
        match self.attachment(full) {
            Some(it) if ![it.uid, 0].contains(&caller.uid) => Err(is_expected(it)),
            _ => Ok(()),
        }
    }

    /// EBUSY if something that is no program's is to come back by that name.
    pub(crate) fn check_free_for_program(&self, full: &str) -> Result<()> {
        match self.attachment(full) {
            Some(it) => Err(is_expected(it)),
            None => Ok(()),
        }
    }

    /// What the device of a persistent port of the caller's was set to that is to come back by that name.
    pub(crate) fn device_before(&self, caller: &Caller, name: &str) -> Option<LastingDevice> {
        if self.items.is_empty() {
            return None;
        }
        let netns = LastingNetns::of(&caller.netns);
        let is_it = |it: &LastingPort| it.name == name && it.uid == caller.uid && it.netns == netns;
        let port = self.ports().find(is_it)?;
        port.device.filter(LastingDevice::is_possible)
    }

    /// Whether a persistent port of the caller's is to come back by that name: what has it now is what is
    /// left of the one before.
    pub(crate) fn is_expected_port(&self, caller: &Caller, name: &str) -> bool {
        let is_it = |it: &LastingPort| it.name == name && it.uid == caller.uid;
        let netns = || LastingNetns::of(&caller.netns);
        self.ports().any(|it| is_it(&it) && it.netns == netns())
    }

    /// Whether an interface that had gone is being attached to a switch without a user's request.
    pub(crate) fn comes_by_itself(&self, full: &str) -> bool {
        let is_it = |what: &What| what.on_switch().is_some() && what.name() == full;
        let is_tried = |item: &Item| item.until.is_some() && item.due.is_none();
        self.items.iter().any(|item| is_it(&item.what) && is_tried(item))
    }

    /// Something is on a switch again, or anew. Returns the processors that it is to be polled on.
    pub(crate) fn attached_again(
        &mut self,
        bridge: &str,
        full: &str,
        bridges: &mut Bridges,
    ) -> Option<Vec<usize>> {
        let polling = self.attachment(full).and_then(|it| it.polling.clone());
        self.forget(|what| what.on_switch().is_some() && what.name() == full);
        self.changed = true;
        bridges.expect_no_more(bridge, full);
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        polling.filter(|list| list.iter().all(|cpu| *cpu < cpus))
    }

    /// A persistent port is back, or a new one has its name.
    pub(crate) fn made_again(&mut self, uid: u32, netns: LastingNetns, name: &str) {
        self.changed = true;
        if self.items.is_empty() {
            return;
        }
        self.forget(|what| match what {
            What::Port(it) => it.name == name && it.uid == uid && it.netns == netns,
            What::Attachment(_) => false,
        });
    }

    /// Gives up what is to come back to a switch by the name of `full`. `None`: nothing is; else whether the
    /// caller may.
    pub(crate) fn give_up_attachment(
        &mut self,
        caller: &Caller,
        full: &str,
        bridges: &mut Bridges,
    ) -> Option<Result<()>> {
        let it = self.attachment(full)?;
        if ![it.uid, 0].contains(&caller.uid) {
            return Some(Err(is_expected(it)));
        }
        self.forget(|what| what.on_switch().is_some() && what.name() == full);
        let bridge = full.split_once(':').map_or(full, |(bridge, _)| bridge);
        bridges.expect_no_more(bridge, full);
        Some(Ok(()))
    }

    /// Gives up a persistent port of the caller's that is to come back, and its places on switches. False:
    /// there is none of that name.
    pub(crate) fn give_up_port(
        &mut self,
        caller: &Caller,
        name: &str,
        bridges: &mut Bridges,
    ) -> bool {
        if self.items.is_empty() {
            return false;
        }
        let netns = LastingNetns::of(&caller.netns);
        let theirs = |what: &What| [what.uid(), 0].contains(&caller.uid) && what.netns() == netns;
        let is_it = |what: &What| matches!(what, What::Port(port) if port.name == name);
        if !self.forget(|what| is_it(what) && theirs(what)) {
            return false;
        }
        let places: Vec<_> = self.items.iter().map(|item| &item.what).cloned().collect();
        for what in places.iter().filter(|what| theirs(what)) {
            if let Some((port, bridge)) = what.on_switch().filter(|(port, _)| *port == name) {
                let full = format!("{bridge}:{port}");
                self.forget(|what| what.name() == full);
                bridges.expect_no_more(bridge, &full);
            }
        }
        true
    }

    /// Why something is not on a switch yet, as users see it.
    pub(crate) fn absence(&self, full: &str) -> Option<String> {
        let is_it = |item: &&Item| item.what.on_switch().is_some() && item.what.name() == full;
        let item = self.items.iter().find(is_it)?;
        Some(format!("{}: {}", item.absence(), item.why))
    }
}

fn is_expected(LastingAttachment { name, uid, never_there, .. }: &LastingAttachment) -> Error {
    let comes = if *never_there { "is to be attached" } else { "is to come back" };
    Error::busy(format!("the interface of user {uid} {comes} there"))
        .at(name)
        .remedy(format!("`ringway switch detach` gives it up: {name}"))
}
