//! Clients: they come, ask, are answered, and die.

use std::sync::Arc;

use ringway_proto::{Error, Reply, Request};
use ringway_region::{NetifView, Region, RingView};
use ringway_registry::{Caller, Netns, Progress, Step, Subject};

use super::{CLIENTS, Client, Going, History, MOST_PIECES, Pending, State, USERS, Waiter};
use crate::requests;

impl History {
    pub(super) fn come(&mut self) {
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
    pub(super) fn set_up_again(&mut self) {
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

    pub(super) fn ask(&mut self) {
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
    pub(super) fn go_on(&mut self) {
        if let Some(at) = self.any(Client::is_ready) {
            self.advance(at);
        }
    }

    pub(super) fn advance(&mut self, at: usize) {
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

    /// A client has its answer, when all is closed that it waits for.
    pub(super) fn answer(&mut self, id: u64) {
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

    /// Something is not set up again after all.
    pub(super) fn give_up(&mut self, id: u64) {
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

    /// A client, which may have let go of its port by then, writes over what it shares.
    pub(super) fn scribble(&mut self) {
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

    pub(super) fn die(&mut self) {
        if let Some(at) = self.any(|client| client.due.is_none()) {
            self.end_of(at);
        }
    }

    pub(super) fn end_of(&mut self, at: usize) {
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
}

impl Client {
    pub(super) fn is_ready(&self) -> bool {
        matches!(self.pending, Some(Pending { state: State::Ready, .. }))
    }

    pub(super) fn waits_for_memory(&self) -> Option<u32> {
        match self.pending.as_ref().map(|pending| &pending.state) {
            Some(State::Waits(Subject::Memory(account))) => Some(*account),
            _ => None,
        }
    }
}

fn kind(request: &Request) -> String {
    let shown = format!("{request:?}");
    shown.split([' ', '(']).next().unwrap_or_default().into()
}
