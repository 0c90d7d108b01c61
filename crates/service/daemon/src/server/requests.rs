//! Requests: each goes as far as it can at once, and on when the work that it waits for is done.

use std::time::{Duration, Instant};

use ringway_ipc::{Received, receive_request, send_reply};
use ringway_proto::{Cause, Error, EventKind, PortInfo, Reply, Request};
use ringway_registry::{Caller, Done, Handle, Progress, Step, Subject, Work};
use rustix::{
    event::{PollFd, PollFlags, Timespec, epoll, poll},
    fd::{AsFd, OwnedFd},
};

use super::{
    Client, Server,
    timing::{Timing, What},
};
use crate::{
    closer::Kind,
    guard::guarded_in,
    log::{By, Entry, log},
    peer::namespace,
    ready::For,
    request_times::kind,
    workers::{Finished, Waiter},
};

/// A request that is being answered.
pub(super) struct Pending {
    /// Of the messages: what it is answered in.
    version: u8,
    pub(super) request: Request,
    caller: Caller,
    reply_to: OwnedFd,
    progress: Progress,
    pub(super) handle: Handle,
    pub(super) by: By,
    /// The port that it closes, if it closes one.
    pub(super) closes: Option<PortInfo>,
    pub(super) timing: Timing,
    /// The answer, while what is to be closed first is not yet.
    answer: Option<Answer>,
}

pub(super) type Answer = Result<(Reply, Vec<OwnedFd>), Error>;

impl Server {
    /// Takes the next request of a client, and listens to it again unless that takes long. True if it has gone.
    pub(super) fn serve(&mut self, key: u64) -> bool {
        let gone = self.take_request(key);
        let is_listening = |client: &Client| client.pending.is_none();
        if !self.resting.contains(&key) && self.clients.get(&key).is_some_and(is_listening) {
            self.watch(key, epoll::EventFlags::IN);
        }
        gone
    }

    fn take_request(&mut self, key: u64) -> bool {
        let Some(Client { fd, user, pending, reservations, handle, .. }) = self.clients.get(&key)
        else {
            return true;
        };
        if pending.is_some() {
            return false;
        }
        let (user, reservations, handle) = (*user, reservations.clone(), *handle);
        let uid = user.account;
        let account = self.accounts.of(uid);
        if self.closer.is_behind(account) {
            self.note_behind(&user);
            self.rest(key);
            return false;
        }
        if uid != 0 && self.unread.is_behind(account) {
            let text = "programs of the user have not read what they were answered: requests of the user are not \
                        read before they have";
            log(Entry::warn(EventKind::Refused, text).by(self.by(&user)));
            self.rest(key);
            return false;
        }
        let mut useless = Vec::new();
        let received = receive_request(fd, &mut useless);
        // No client waits for the answer; on a busy machine clients would wait for the work.
        let gone = matches!(received, Ok(Some(_))) && has_gone(fd);
        self.closer.close(self.accounts.of(uid), Kind::Unknown, useless);
        match received {
            Ok(Some(received)) => {
                let netns = namespace(received.reply_to.as_fd(), &user, &self.closer, account);
                let caller = self.caller(uid, user.uid(), netns, reservations);
                let Received { version, request, reply_to } = received;
                let progress = Progress::default();
                let closes = match request {
                    Request::Unregister => self.registry.bound_port(handle),
                    _ => None,
                };
                let (by, timing) = (self.by(&user), Timing::of(&request, Instant::now()));
                let pending = Pending {
                    version,
                    request,
                    caller,
                    reply_to,
                    progress,
                    handle,
                    by,
                    closes,
                    timing,
                    answer: None,
                };
                if gone {
                    self.drop_request(pending);
                    self.let_go(key);
                } else if matches!(pending.request, Request::Barrier) {
                    let answer = self.barrier(key, user);
                    self.answer(pending, answer);
                } else if matches!(pending.request, Request::Daemon) {
                    let answer = Ok((Reply::Daemon(self.request_times.info()), Vec::new()));
                    self.answer(pending, answer);
                } else if let Request::LogLevel(level) = pending.request {
                    let answer = self.set_log_level(level, pending.by);
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
        if matches!(pending.request, Request::Events { .. }) {
            return self.answer_events(key, pending);
        }
        let Some(client) = self.clients.get_mut(&key) else { return self.drop_request(pending) };
        let handle = client.handle;
        pending.timing.go_on(Instant::now());
        // What others have let go of is no matter of this client's.
        self.start_closings(Waiter::Nobody);
        let Pending { request, caller, progress, .. } = &mut pending;
        let step = guarded_in(&mut self.registry, "a request", |registry| {
            registry.begin(handle, caller, request, progress)
        });
        match step {
            Ok(Step::Answered(answer)) => self.answer_when_closed(key, pending, answer),
            Err(error) => self.answer_when_closed(key, pending, Err(error)),
            Ok(Step::Do(work)) => {
                pending.timing.wait(What::Work(work.subject().clone()), Instant::now());
                match self.start(Waiter::Request(key), work) {
                    Ok(()) => self.suspend(key, pending),
                    Err(error) => self.answer(pending, Err(error)),
                }
            }
            Ok(Step::Wait(subject)) => {
                pending.timing.wait(What::Work(subject.clone()), Instant::now());
                self.queued.push((subject, key));
                self.suspend(key, pending);
            }
        }
    }

    pub(super) fn start(&mut self, waiter: Waiter, work: Work) -> Result<(), Error> {
        let subject = work.subject().clone();
        self.working += 1;
        self.workers.start(waiter, work).map_err(|e| {
            // Others wait for the subject.
            self.workers.report(Waiter::Nobody, Ok(Done::lost(subject)));
            let error = Error::io("the daemon has no thread for this", e);
            error.remedy("raise its limit of tasks")
        })
    }

    /// Starts to close what is to be closed.
    pub(super) fn start_closings(&mut self, waiter: Waiter) {
        let closings = self.registry.deferred().closings();
        self.start_all(closings, waiter);
    }

    /// The same of what keeps traffic away from the stack alone.
    pub(super) fn start_endings(&mut self, waiter: Waiter) {
        let endings = self.registry.deferred().endings();
        self.start_all(endings, waiter);
    }

    fn start_all(&mut self, closings: Vec<Work>, waiter: Waiter) {
        for work in closings {
            // Without a thread it is closed here.
            let started = self.start(waiter, work).is_ok();
            if let Waiter::Answer(key) = waiter
                && let Some(client) = self.clients.get_mut(&key)
            {
                client.closing += usize::from(started);
            }
        }
    }

    /// Tells a client what has come of its request, as soon as all is closed that it has let go of: then
    /// the client finds the interface as it was.
    fn answer_when_closed(&mut self, key: u64, mut pending: Pending, answer: Answer) {
        self.start_closings(Waiter::Answer(key));
        if self.clients.get(&key).is_some_and(|client| client.closing > 0) {
            pending.timing.wait(What::Closing, Instant::now());
            pending.answer = Some(answer);
            self.suspend(key, pending);
        } else {
            self.answer(pending, answer);
        }
    }

    /// Something is closed that a client's answer waits for.
    fn closed(&mut self, key: u64) {
        let Some(client) = self.clients.get_mut(&key) else { return };
        client.closing = client.closing.saturating_sub(1);
        if client.closing > 0 {
            return;
        }
        let answered = client.pending.take_if(|pending| pending.answer.is_some());
        if let Some(mut pending) = answered
            && let Some(answer) = pending.answer.take()
        {
            pending.timing.go_on(Instant::now());
            self.answer(pending, answer);
            self.watch(key, epoll::EventFlags::IN);
        }
    }

    /// A client's request cannot be answered yet.
    pub(super) fn suspend(&mut self, key: u64, pending: Pending) {
        self.watch(key, epoll::EventFlags::empty());
        match self.clients.get_mut(&key) {
            Some(client) => client.pending = Some(pending),
            None => self.drop_request(pending),
        }
    }

    /// Goes on with a client's request, and listens to the client again if it could be answered.
    pub(super) fn resume(&mut self, key: u64, outcome: Option<Result<Done, Error>>) {
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
            return;
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
    pub(super) fn go_on(&mut self) {
        for Finished { waiter, outcome } in self.workers.collect() {
            self.working = self.working.saturating_sub(1);
            let (subject, outcome) = match outcome {
                Ok(done) => (done.subject().clone(), Ok(done)),
                Err((subject, error)) => {
                    self.registry.discard(Done::lost(subject.clone()));
                    (subject, Err(error))
                }
            };
            match (waiter, outcome) {
                (Waiter::Request(key), outcome) => self.resume(key, Some(outcome)),
                (Waiter::Nobody | Waiter::Answer(_), Ok(done)) => self.registry.discard(done),
                (Waiter::Nobody | Waiter::Answer(_), Err(_)) => {}
            }
            if let Waiter::Answer(key) = waiter {
                self.closed(key);
            }
            self.resume_queued(|about| *about == subject);
        }
    }

    /// The requests go on that wait for others which have gone without their turn.
    pub(super) fn go_on_without_others(&mut self) {
        loop {
            let stirred = self.registry.deferred().stirred();
            if stirred.is_empty() {
                return;
            }
            self.resume_queued(|about| stirred.contains(about));
        }
    }

    /// The requests go on that wait for memory which may have been freed by now.
    pub(super) fn go_on_with_memory(&mut self) {
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

    /// Those who waited are served when their turns come.
    fn resume_queued(&mut self, is_over: impl Fn(&Subject) -> bool) {
        for (about, key) in std::mem::take(&mut self.queued) {
            if !is_over(&about) || !self.is_to_go_on(key, &about) {
                self.queued.push((about, key));
            } else if self.clients.contains_key(&key) {
                self.is_ready(key, For::Resumption);
            } else {
                self.resume(key, None);
            }
        }
    }

    /// Whether it is the turn of a request, or of what is set up again, that waits for this.
    fn is_to_go_on(&mut self, key: u64, about: &Subject) -> bool {
        let pending = self.clients.get(&key).and_then(|client| client.pending.as_ref());
        let progress = match pending {
            Some(pending) => Some(&pending.progress),
            None => self.being_restored.get(&key).map(|restoring| &restoring.progress),
        };
        progress.is_none_or(|progress| self.registry.deferred().is_to_go_on(progress, about))
    }

    /// Tells a client what has come of its request.
    pub(super) fn answer(&mut self, pending: Pending, answer: Answer) {
        self.keep_state();
        let account = self.accounts.of(pending.caller.uid);
        let answer = match self.may_have(&pending, &answer) {
            true => answer,
            false => self.refuse_descriptors(&pending, too_much_unread(account)),
        };
        self.note_answer(&pending, &answer);
        let descriptors = answer.as_ref().map_or(0, |(_, fds)| fds.len());
        let mut sent = send_reply(&pending.reply_to, pending.version, answer);
        if sent.as_ref().is_err_and(|e| e.raw_os_error() == Some(libc::ETOOMANYREFS)) {
            let answer = self.refuse_descriptors(&pending, too_many_unread());
            self.note_answer(&pending, &answer);
            sent = send_reply(&pending.reply_to, pending.version, answer);
        }
        if let Some(took) = pending.timing.took(Instant::now()) {
            self.request_times.add(kind(&pending.request), took);
        }
        let reply_to = self.end_request(pending);
        let done_with = match sent {
            Ok(bytes) => self.unread.add(account, reply_to, descriptors, bytes, Instant::now()),
            Err(_) => Some(reply_to),
        };
        self.closer.close(account, Kind::Known, done_with);
    }

    /// Whether the client may have such an answer, by what its user has unread. Root's may have all.
    fn may_have(&mut self, pending: &Pending, answer: &Answer) -> bool {
        let Ok((reply, fds)) = answer else { return true };
        let is_large = !fds.is_empty() || is_list(reply);
        let uid = pending.caller.uid;
        uid == 0 || !is_large || !self.unread.is_full(self.accounts.of(uid))
    }

    /// The client does not get the descriptors that it was to have: so what was granted with them must not be.
    fn refuse_descriptors(&mut self, pending: &Pending, error: Error) -> Answer {
        if matches!(pending.request, Request::Register { .. }) {
            let (handle, caller) = (pending.handle, &pending.caller);
            let _ = guarded_in(&mut self.registry, "the end of a grant", |registry| {
                registry.begin(handle, caller, &Request::Unregister, &mut Progress::default())
            });
        }
        Err(error)
    }

    /// Closes the sockets of answers that were read. Returns when to look again, if there are others.
    pub(super) fn look_at_unread(&mut self) -> Option<Duration> {
        let again = self.unread.look(Instant::now());
        let read = self.unread.read();
        if !read.is_empty() {
            // Their users may not have been listened to.
            self.listen_again();
        }
        for (account, socket) in read {
            self.closer.close(account, Kind::Known, [socket]);
        }
        again
    }

    /// A request is not answered any more.
    pub(super) fn drop_request(&mut self, pending: Pending) {
        let account = self.accounts.of(pending.caller.uid);
        let reply_to = self.end_request(pending);
        self.closer.close(account, Kind::Known, [reply_to]);
    }

    /// A request has ended. Returns the socket for its answer, which this thread is not to close.
    fn end_request(&mut self, pending: Pending) -> OwnedFd {
        let Pending { caller, reply_to, progress, .. } = pending;
        let _ = guarded_in(&mut self.registry, "the end of a request", |registry| {
            registry.end(progress)
        });
        // If it has a copy of the socket, the closer gets that, too.
        drop(caller);
        reply_to
    }
}

/// Answers that may be long.
fn is_list(reply: &Reply) -> bool {
    matches!(
        reply,
        Reply::Switches { .. }
            | Reply::Ports { .. }
            | Reply::Rings { .. }
            | Reply::Regions { .. }
            | Reply::NameConflicts(_)
            | Reply::SwitchAddresses { .. }
            | Reply::SwitchGroups { .. }
            | Reply::Daemon(_)
            | Reply::DeviceCounters { .. }
            | Reply::Events(_)
    )
}

fn too_much_unread(account: u32) -> Error {
    let problem =
        format!("programs of user {account} have not read the answers that they have got");
    Error::new(Cause::TooManyDescriptors, problem).remedy("have them read, or end them")
}

/// ETOOMANYREFS: another program of the daemon's user may have sent them.
fn too_many_unread() -> Error {
    let problem = "the kernel carries no more descriptors of the daemon's user: programs have not taken \
                   those that were sent to them";
    Error::new(Cause::TooManyDescriptors, problem).remedy(
        "end those programs, or raise the daemon's limit of open files (LimitNOFILE= of its unit)",
    )
}

/// Whether all have closed the other end of a connection.
fn has_gone(connection: &OwnedFd) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let mut fds = [PollFd::new(connection, PollFlags::empty())];
    poll(&mut fds, Some(&now)) == Ok(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a user has not read of these counts before there is more.
    #[test]
    fn long_answers_are_lists() {
        for long in [
            Reply::SwitchGroups { groups: Vec::new(), next: None },
            Reply::SwitchAddresses { addresses: Vec::new(), next: None },
            Reply::Daemon(Default::default()),
        ] {
            assert!(is_list(&long), "{long:?}");
        }
        assert!(!is_list(&Reply::Done));
    }
}
