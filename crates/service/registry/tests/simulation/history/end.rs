//! The end of a history: all is answered, and nothing is left.

use std::{collections::BTreeSet, sync::atomic::Ordering::Relaxed};

use ringway_proto::{Reply, Request};
use ringway_registry::{Caller, Netns};

use super::{Client, Going, History, USERS};
use crate::{requests::INTERFACES, requests::PERSISTENT};

impl History {
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
