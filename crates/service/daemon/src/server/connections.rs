//! Connections: clients are let in, rest while too much of theirs is to be closed, and are let go.

use std::sync::Arc;

use ringway_ipc::refuse;
use ringway_proto::{Cause, Error, Reply};
use ringway_registry::{Handle, Registry};
use rustix::{
    event::epoll,
    fd::{AsFd, OwnedFd},
    net::{AddressFamily, SocketFlags, SocketType, socketpair},
};

use super::{Client, LISTENER, Server};
use crate::{
    closer::Kind,
    guard::guarded_in,
    hang_up::hang_up,
    listener::{Arrival, Peer},
    peer::User,
    reservations, sys,
    workers::Waiter,
};

/// Connections that are let in in a turn of the loop.
const AT_ONCE: usize = 64;

impl Server {
    /// Some of them: the others in the next turns.
    pub(super) fn let_in(&mut self) {
        for _ in 0..AT_ONCE {
            if let Some((account, count)) = self.closer.fullest() {
                self.note_full(account, count);
                return self.rest(LISTENER);
            }
            match self.listener.accept() {
                Some(Arrival::Client(peer)) => {
                    if self.admit(peer) {
                        return;
                    }
                }
                Some(Arrival::TurnedAway(peer)) => {
                    self.closer.await_progress();
                    if self.hang_up(peer.user.account, peer.fd) {
                        return self.rest(LISTENER);
                    }
                }
                None => return,
            }
        }
    }

    /// Ends a connection of this user. True: the closer closes it, and gives word if that is awaited.
    fn hang_up(&self, uid: u32, connection: OwnedFd) -> bool {
        hang_up(connection).is_some_and(|connection| {
            self.closer.close(self.accounts.of(uid), Kind::Known, [connection])
        })
    }

    /// Does not listen to a client, or for new ones, until there is word from the closer.
    pub(super) fn rest(&mut self, key: u64) {
        if self.watch(key, epoll::EventFlags::empty()) {
            self.resting.push(key);
        }
    }

    pub(super) fn listen_again(&mut self) {
        self.closer.drain();
        for key in std::mem::take(&mut self.resting) {
            self.watch(key, epoll::EventFlags::IN);
        }
    }

    /// A client is heard of once, until it is watched again: it is served when its turn comes. False: there is no
    /// such client, or the kernel will not.
    pub(super) fn watch(&self, key: u64, flags: epoll::EventFlags) -> bool {
        let fd = match key {
            LISTENER => Some(self.listener.as_fd()),
            key => self.clients.get(&key).map(|client| client.fd.as_fd()),
        };
        let data = epoll::EventData::new_u64(key);
        let flags = if key == LISTENER { flags } else { flags | epoll::EventFlags::ONESHOT };
        fd.is_some_and(|fd| epoll::modify(&self.epoll, fd, data, flags).is_ok())
    }

    /// Lets a client in, unless its user has too much already: then it is told so. If another of the user's had to
    /// be let go for that, which had gone, true: that was the user's turn.
    pub(super) fn admit(&mut self, peer: Peer) -> bool {
        let account = peer.user.account;
        let mut admitted = self.registry.admit(account);
        let gone = match admitted {
            Ok(_) => None,
            Err(_) => self.ready.next_gone(self.accounts.of(account)),
        };
        if let Some(gone) = gone {
            self.let_go(gone);
            admitted = self.registry.admit(account);
        }
        match admitted {
            Ok(handle) => {
                let groups = sys::peer_groups(peer.fd.as_fd()).unwrap_or_default();
                self.enter(peer, handle, groups.into());
            }
            Err(error) => {
                self.note_not_admitted(&peer.user, &error);
                refuse(&peer.fd, &error);
                self.hang_up(account, peer.fd);
            }
        }
        gone.is_some()
    }

    fn enter(&mut self, peer: Peer, handle: Handle, groups: Arc<[u32]>) {
        self.last += 1;
        let data = epoll::EventData::new_u64(self.last);
        // A client that cannot be watched is let go: its first call fails.
        let flags = epoll::EventFlags::IN | epoll::EventFlags::ONESHOT;
        if epoll::add(&self.epoll, &peer.fd, data, flags).is_ok() {
            let (fd, user) = (peer.fd, peer.user);
            let all = &self.rules.reservations;
            let reservations = reservations::of_connected(all, user.uid(), &groups);
            let (pending, closing, barrier) = (None, 0, None);
            let client =
                Client { fd, user, handle, groups, reservations, pending, closing, barrier };
            self.clients.insert(self.last, client);
        } else {
            self.registry.close(handle);
            self.hang_up(peer.user.account, peer.fd);
        }
    }

    /// Another connection for a client. It gets no answer there before the stack has what goes
    /// with the first.
    pub(super) fn barrier(&mut self, key: u64, user: User) -> Result<(Reply, Vec<OwnedFd>), Error> {
        let (kind, flags) = (SocketType::SEQPACKET, SocketFlags::CLOEXEC);
        let (fd, theirs) = socketpair(AddressFamily::UNIX, kind, flags, None).map_err(|e| {
            Error::new(
                Cause::System(e.raw_os_error()),
                format!("no further connection: {e}; raise the daemon's limit of open files"),
            )
        })?;
        let handle = self.registry.admit(user.account)?;
        let groups = self.clients.get(&key).map(|client| client.groups.clone());
        self.enter(Peer { fd, user }, handle, groups.unwrap_or_default());
        if let Some(client) = self.clients.get_mut(&key) {
            client.barrier = Some(self.last);
        }
        Ok((Reply::Done, vec![theirs]))
    }

    /// A client has gone, or is shown the door; what else it has sent goes along.
    pub(super) fn let_go(&mut self, key: u64) {
        if let Some(mut client) = self.clients.remove(&key) {
            self.ready.forget(self.accounts.of(client.user.account), key);
            if let Some(pending) = client.pending.take() {
                self.drop_request(pending);
            }
            self.followers.retain(|follower| *follower != key);
            // What they rest and wait for may take as long as others like.
            self.resting.retain(|resting| *resting != key);
            self.queued.retain(|(_, waiting)| *waiting != key);
            self.note_end(client.handle, &client.user);
            // After a panic there is still the handle.
            let close = |registry: &mut Registry| registry.close(client.handle);
            let what = "the end of a connection";
            let _ = guarded_in(&mut self.registry, what, close)
                .or_else(|_| guarded_in(&mut self.registry, what, close));
            let waiter = client.barrier.map_or(Waiter::Nobody, Waiter::Answer);
            self.start_endings(waiter);
            // Else it would tell of its end until it is closed.
            let _ = epoll::delete(&self.epoll, &client.fd);
            self.hang_up(client.user.account, client.fd);
        }
    }
}
