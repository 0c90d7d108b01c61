//! What was granted or refused: the events of requests and connections, and the clients that follow them.

use std::{
    fmt::{self, Write},
    time::{Duration, Instant},
};

use ringway_proto::{Cause, Error, EventKind, Level, PortInfo, PortKind, Reply, Request};
use ringway_registry::{Looked, Notice};

use super::{
    Server,
    requests::{Answer, Pending},
};
use crate::{
    log::{self, By, Entry, log},
    peer::User,
    ready::For,
    workers::Waiter,
};

/// What to do about descriptors that do not close.
const STUCK_REMEDY: &str = "abort the user's file system (FUSE) that does not answer, as root, at its \
                            /sys/fs/fuse/connections/*/abort";

/// What a request is to do, if an operator may want to know of it.
struct Act {
    level: Level,
    kind: EventKind,
    /// What is done: `opened`.
    done: &'static str,
    /// More about it.
    detail: String,
}

impl Act {
    fn of(request: &Request) -> Option<Act> {
        let act = |kind, done| Some(Act { level: Level::Info, kind, done, detail: String::new() });
        let with = |kind, done, detail: &str| {
            Some(Act { level: Level::Info, kind, done, detail: detail.into() })
        };
        match request {
            Request::Register { .. } => act(EventKind::PortOpen, "opened"),
            Request::NewInterface { .. } => act(EventKind::PortNew, "made as a persistent port"),
            Request::DeleteInterface { .. } => act(EventKind::PortDelete, "deleted"),
            Request::SwitchAttach { .. } => act(EventKind::Attach, "attached"),
            Request::SwitchDetach { .. } => act(EventKind::Detach, "detached"),
            Request::SwitchDetachAll { ports, .. } => {
                with(EventKind::Detach, "freed of ports", &ports.join(", "))
            }
            Request::SwitchPoll { enable: true, .. } => act(EventKind::Switch, "polled"),
            Request::SwitchPoll { enable: false, .. } => act(EventKind::Switch, "no longer polled"),
            Request::SwitchNew { .. } => act(EventKind::Switch, "made to stay"),
            Request::SwitchDelete { .. } => act(EventKind::Switch, "deleted"),
            Request::SwitchForward { .. } => act(EventKind::Switch, "given another way to forward"),
            Request::SwitchMulticast { multicast, .. } => {
                with(EventKind::Switch, "given another way with groups", multicast.name())
            }
            Request::SwitchMirrorAdd { mirror, .. } => {
                with(EventKind::Switch, "given a mirror", &mirror.name)
            }
            Request::SwitchMirrorDelete { mirror, .. } => {
                with(EventKind::Switch, "freed of a mirror", mirror)
            }
            Request::SwitchPort { .. } => act(EventKind::Switch, "given other settings"),
            Request::SwitchAddressAdd { port, .. } => {
                with(EventKind::Switch, "given a static address", port)
            }
            Request::SwitchAddressDelete { .. } => act(EventKind::Switch, "freed of an address"),
            Request::SwitchAddressesFlush { .. } => act(EventKind::Switch, "freed of addresses"),
            Request::SetFilter { filter: Some(filter), .. } => {
                with(EventKind::Filter, "given a filter", &filter.text)
            }
            Request::SetFilter { filter: None, .. } => {
                act(EventKind::Filter, "freed of its filter")
            }
            Request::SetAction { action: Some(action), .. } => {
                with(EventKind::Filter, "given an action program", &action.text)
            }
            Request::SetAction { action: None, .. } => {
                act(EventKind::Filter, "freed of its action program")
            }
            Request::RedirectQueues { queues, to_program, .. } => {
                let done = if *to_program { "given queues" } else { "freed of queues" };
                with(EventKind::Filter, done, &format!("{queues:?}"))
            }
            Request::Steer { queue, .. } => {
                with(EventKind::Steer, "given flows to steer", &format!("queue {queue}"))
            }
            _ => None,
        }
    }
}

impl Server {
    /// The user and process of an event about a client.
    pub(super) fn by(&self, user: &User) -> By {
        let uid = user.account;
        By { uid, pid: user.pid(), account: self.accounts.of(uid) }
    }

    /// What has come of a client's request.
    pub(super) fn note_answer(&self, pending: &Pending, answer: &Answer) {
        self.note_duration(pending);
        let (request, by) = (&pending.request, pending.by);
        match (request, answer) {
            (Request::Unregister, Ok(_)) => {
                pending.closes.iter().for_each(|port| note_close(port, by));
            }
            (_, Ok((reply, _))) => self.note_done(pending, reply),
            (_, Err(error)) => note_refused(request, by, error),
        }
    }

    fn note_done(&self, pending: &Pending, reply: &Reply) {
        let (request, by) = (&pending.request, pending.by);
        let Some(Act { mut level, kind, done, detail }) = Act::of(request) else { return };
        let (mut name, mut mode, mut netns) = (request.name().to_owned(), None, None);
        match (request, reply) {
            (Request::Register { .. }, Reply::Granted(grant)) => {
                name.clone_from(&grant.name);
                if grant.kind == PortKind::Nic {
                    let port = self.registry.bound_port(pending.handle);
                    (mode, netns) = port.map_or((None, None), |port| (port.mode, port.netns));
                } else {
                    level = Level::Debug;
                }
            }
            (Request::SwitchAttach { .. }, _) => mode = self.registry.attached_mode(&name),
            _ => {}
        }
        let mut text = format!("{name}: {done} by {}", Requester(by));
        for more in [&detail, mode.as_ref().unwrap_or(&String::new())] {
            if !more.is_empty() {
                text.push_str(": ");
                text.push_str(more);
            }
        }
        let entry = Entry::new(level, kind, text).by(by).at(&name);
        let entry = entry.mode(mode.unwrap_or_default()).netns(netns);
        log(if level == Level::Debug { entry } else { entry.audit() });
    }

    /// A client's connection, with the port that it had, has gone.
    pub(super) fn note_end(&self, handle: ringway_registry::Handle, user: &User) {
        if let Some(port) = self.registry.bound_port(handle) {
            note_close(&port, self.by(user));
        }
    }

    /// A client was not let in.
    pub(super) fn note_not_admitted(&self, user: &User, error: &Error) {
        let by = self.by(user);
        let text = format!("a connection of {} was refused: {error}", Requester(by));
        log(Entry::warn(EventKind::Refused, text).by(by).cause(name_of(error.cause)).audit());
    }

    /// The closer does not get on with what programs of an account have sent: no client is let in.
    pub(super) fn note_full(&self, account: u32, count: usize) {
        let text = format!(
            "no connections are accepted before descriptors are closed that programs have sent; {count} are of \
             user {account}: {STUCK_REMEDY}"
        );
        let by = By { uid: account, pid: None, account };
        log(Entry::error(EventKind::Refused, text).by(by));
    }

    /// The same of the account of this user alone, which is not listened to.
    pub(super) fn note_behind(&self, user: &User) {
        let text = format!(
            "descriptors that programs of the user have sent are not closed yet: requests of the user are not read \
             before they are; if that lasts, {STUCK_REMEDY}"
        );
        log(Entry::warn(EventKind::Refused, text).by(self.by(user)));
    }

    /// What the registry has for an operator.
    pub(super) fn note(&self, notice: Notice) {
        let Notice { level, kind, uid, port, netns, text } = notice;
        let entry = Entry::new(level, kind, text).at(&port).netns(netns);
        log(match uid {
            Some(uid) => entry.by(By { uid, pid: None, account: self.accounts.of(uid) }),
            None => entry,
        });
    }

    /// Tells of ports that have begun to lose frames, or do no more; when to look again.
    pub(super) fn watch_drops(&mut self) -> Option<Duration> {
        let (notices, again) = self.drop_watch.look(&mut self.registry, Instant::now());
        notices.into_iter().for_each(|notice| self.note(notice));
        again
    }

    /// Tells of interfaces that receive what their ports do not get, or do no more; when to look again.
    pub(super) fn watch_received(&mut self) -> Option<Duration> {
        let Looked { notices, work, again } =
            self.receive_watch.look(&mut self.registry, Instant::now());
        notices.into_iter().for_each(|notice| self.note(notice));
        if let Some(work) = work {
            // Without a thread the next look reads them.
            let _ = self.start(Waiter::Nobody, work);
        }
        again
    }

    /// A request took long.
    fn note_duration(&self, pending: &Pending) {
        let Some((took, waited)) = pending.timing.slow(Instant::now()) else { return };
        let (by, name) = (pending.by, pending.request.name());
        let mut text = format!("{} of {}", FirstWord::of(&pending.request), Requester(by));
        // A text has room.
        let _ = match name {
            "" => write!(text, " took {:.1} s", took.as_secs_f64()),
            name => write!(text, " for {name} took {:.1} s", took.as_secs_f64()),
        };
        if let Some((what, time)) = waited {
            let _ = write!(text, "; it waited {:.1} s for {what}", time.as_secs_f64());
        }
        log(Entry::warn(EventKind::SlowRequest, text).by(by).at(name));
    }

    /// Whether a user sees all that is logged, and may say how much that is.
    fn is_operator(&self, by: By) -> bool {
        by.uid == 0 || self.listener.is_private()
    }

    /// Answers a request for events, or has it wait for some.
    pub(super) fn answer_events(&mut self, key: u64, mut pending: Pending) {
        let Request::Events { from, wait } = &mut pending.request else { return };
        let seen_by = (!self.is_operator(pending.by)).then_some(pending.by.uid);
        let page = log::page(*from, seen_by);
        if *wait && page.events.is_empty() && !page.more {
            // What others see is not looked at again.
            *from = page.next;
            self.followers.push(key);
            log::await_news(true);
            return self.suspend(key, pending);
        }
        self.answer(pending, Ok((Reply::Events(page), Vec::new())));
    }

    /// There are more events: clients that wait for some are served when their turns come.
    pub(super) fn wake_followers(&mut self) {
        let _ = rustix::io::read(&self.news, &mut [0; 8]);
        log::await_news(false);
        for key in std::mem::take(&mut self.followers) {
            self.is_ready(key, For::Resumption);
        }
    }

    /// Clients that wait have what there is before the daemon ends.
    pub(super) fn answer_followers(&mut self) {
        for key in std::mem::take(&mut self.followers) {
            let client = self.clients.get_mut(&key);
            if let Some(mut pending) = client.and_then(|client| client.pending.take()) {
                if let Request::Events { wait, .. } = &mut pending.request {
                    *wait = false;
                }
                self.answer_events(key, pending);
            }
        }
    }

    /// Chooses what is logged.
    pub(super) fn set_log_level(&mut self, level: Level, by: By) -> Answer {
        if !self.is_operator(by) {
            return Err(Error::new(Cause::Denied, "root alone chooses what the daemon logs")
                .remedy("ask the operator"));
        }
        // It is told at each level.
        let louder = level.max(log::level());
        log::set_level(louder);
        let text = format!("log level set to {level} by {}", Requester(by));
        log(Entry::info(EventKind::Config, text).by(by).audit());
        log::set_level(level);
        Ok((Reply::Done, Vec::new()))
    }
}

fn note_close(port: &PortInfo, by: By) {
    let text = format!("{}: closed by {}", port.name, Requester(by));
    let kind = EventKind::PortClose;
    log(match port.kind {
        PortKind::Nic => Entry::info(kind, text).by(by).at(&port.name).netns(port.netns).audit(),
        _ => Entry::new(Level::Debug, kind, text).by(by).at(&port.name),
    });
}

fn note_refused(request: &Request, by: By, error: &Error) {
    let Some(act) = Act::of(request) else { return };
    let level = match error.cause {
        Cause::Denied | Cause::NoRoom | Cause::TooManyDescriptors => Level::Warn,
        _ => Level::Info,
    };
    let name = request.name();
    let detail = match act.detail.as_str() {
        "" => String::new(),
        detail => format!(" ({detail})"),
    };
    // It may be about one of several ports.
    let why = match error.port.as_str() {
        port if port.is_empty() || port == name => error.without_port().to_string(),
        _ => error.to_string(),
    };
    let text = format!("{name}: not {}{detail} for {}: {why}", act.done, Requester(by));
    let entry = Entry::new(level, EventKind::Refused, text).by(by).at(name);
    log(entry.cause(name_of(error.cause)).audit());
}

/// As the protocol has it: `Denied`, `System(16)`.
fn name_of(cause: Cause) -> String {
    format!("{cause:?}")
}

/// The user and process that made a request, as text.
struct Requester(By);

impl fmt::Display for Requester {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let By { uid, pid, .. } = self.0;
        match pid {
            Some(pid) => write!(f, "user {uid}, process {pid}"),
            None => write!(f, "user {uid}"),
        }
    }
}

/// The name of a variant: what follows it is not even written.
struct FirstWord(String);

impl FirstWord {
    fn of(what: &impl fmt::Debug) -> String {
        let mut word = FirstWord(String::new());
        // It fails behind the word.
        let _ = write!(word, "{what:?}");
        word.0
    }
}

impl Write for FirstWord {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let length = text.bytes().take_while(u8::is_ascii_alphanumeric).count();
        self.0.push_str(text.get(..length).unwrap_or_default());
        if length == text.len() { Ok(()) } else { Err(fmt::Error) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_told_by_its_name() {
        assert_eq!(FirstWord::of(&Request::Barrier), "Barrier");
        let request = Request::SwitchDelete { bridge: "vale0".into() };
        assert_eq!(FirstWord::of(&request), "SwitchDelete");
    }
}
