//! One open handle: a connection to the daemon, or another way to a registry.

use std::sync::{Arc, Weak};

use ringway_ipc::Answer;
use ringway_proto::{Cause, Connector, MirrorGrant, PortInfo, Reply, Request, Transport};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::{error::Error, monitors::Ask, pages::all_pages};

/// What an open `/dev/netmap` is: it can be bound to one port. Dropping it lets the port go.
pub enum Session {
    /// A connection to the daemon.
    Daemon(OwnedFd),
    /// Another way, without a socket.
    Other(Arc<dyn Transport>),
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Session::Daemon(connection) => f.debug_tuple("Daemon").field(connection).finish(),
            Session::Other(_) => f.write_str("Other"),
        }
    }
}

impl Session {
    /// Connects to the daemon; a private one is started if there is none.
    pub fn connect() -> Result<Session, Error> {
        Ok(Session::Daemon(ringway_ipc::connect()?))
    }

    /// Connects to the daemon, and fails if there is none.
    pub fn connect_running() -> Result<Session, Error> {
        Ok(Session::Daemon(ringway_ipc::connect_running()?))
    }

    /// Connects to the system daemon, and fails if there is none.
    pub fn connect_system() -> Result<Session, Error> {
        Ok(Session::Daemon(ringway_ipc::connect_system()?))
    }

    /// A handle from elsewhere.
    pub fn over(connector: &dyn Connector) -> Session {
        Session::Other(connector.connect())
    }

    /// No handle any more, of a port with this name.
    pub(crate) fn closed(name: &str) -> Session {
        Session::Other(Arc::new(Closed(name.into())))
    }

    /// The ports that the registry tells this program of.
    pub(crate) fn ports(&self) -> Result<Vec<PortInfo>, Error> {
        all_pages(0, |from| self.call(Request::Ports { from }).map(|(page, _)| page))
    }

    /// Asks, and waits for the answer that belongs to such a request.
    pub fn call<T: Answer>(&self, request: Request) -> Result<(T, Vec<OwnedFd>), Error> {
        match self {
            Session::Daemon(connection) => Ok(ringway_ipc::call(connection, &request)?),
            Session::Other(transport) => {
                let (reply, fds) = transport.call(request)?;
                Ok((T::of(reply).ok_or(ringway_ipc::Error::Malformed)?, fds))
            }
        }
    }

    /// A copy of the connection, for a binding. It must go when the session goes: only with the last
    /// copy the port is let go.
    pub(crate) fn copy(&self) -> Result<Option<Arc<OwnedFd>>, Error> {
        let copy = self.connection().map(|connection| connection.try_clone_to_owned()).transpose();
        let copy =
            copy.map_err(Error::system("cannot duplicate a descriptor (see `ulimit -n`)"))?;
        Ok(copy.map(Arc::new))
    }

    /// For a binding that asks by itself, on a [copy](Self::copy) of the connection.
    pub(crate) fn asker(&self) -> Result<Arc<dyn Ask>, Error> {
        Ok(match (self, self.copy()?) {
            // It must not keep the handle open.
            (Session::Other(transport), _) => Arc::new(Local(Arc::downgrade(transport))),
            (Session::Daemon(_), connection) => Arc::new(Connection(connection)),
        })
    }

    /// The connection, which hangs up when the daemon ends.
    pub fn connection(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Session::Daemon(connection) => Some(connection.as_fd()),
            Session::Other(_) => None,
        }
    }
}

/// What was open under this name.
struct Closed(String);

impl Transport for Closed {
    fn call(&self, _: Request) -> ringway_proto::Result<(Reply, Vec<OwnedFd>)> {
        Err(closed(&self.0))
    }
}

/// Nothing can be had of a port that the program has closed.
pub(crate) fn closed(name: &str) -> ringway_proto::Error {
    let error = ringway_proto::Error::new(Cause::Gone, "the port has been closed");
    error.at(name).remedy("open it again")
}

/// Asks the daemon.
struct Connection(Option<Arc<OwnedFd>>);

impl Connection {
    fn call<T: Answer>(&self, request: Request) -> Option<(T, Vec<OwnedFd>)> {
        ringway_ipc::call(self.0.as_ref()?, &request).ok()
    }
}

impl Ask for Connection {
    fn mirrors(&self, request: Request) -> Option<(Vec<MirrorGrant>, Vec<OwnedFd>)> {
        self.call(request)
    }

    fn socket(&self, request: Request) -> Option<OwnedFd> {
        self.call::<()>(request)?.1.pop()
    }
}

/// Asks the registry of a handle, while that is open.
struct Local(Weak<dyn Transport>);

impl Local {
    fn call<T: Answer>(&self, request: Request) -> Option<(T, Vec<OwnedFd>)> {
        let (reply, fds) = self.0.upgrade()?.call(request).ok()?;
        Some((T::of(reply)?, fds))
    }
}

impl Ask for Local {
    fn mirrors(&self, request: Request) -> Option<(Vec<MirrorGrant>, Vec<OwnedFd>)> {
        self.call(request)
    }

    fn socket(&self, request: Request) -> Option<OwnedFd> {
        self.call::<()>(request)?.1.pop()
    }
}
