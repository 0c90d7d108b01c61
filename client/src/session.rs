//! One open handle: a connection to the daemon, or another way to a registry.

use std::sync::Arc;

use ringway_proto::{Connector, Reply, Request, Transport};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::{error::Error, monitors::Ask};

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

    /// A handle from elsewhere.
    pub fn over(connector: &dyn Connector) -> Session {
        Session::Other(connector.connect())
    }

    /// Asks, and waits for the answer.
    pub fn call(&self, request: Request) -> Result<(Reply, Vec<OwnedFd>), Error> {
        match self {
            Session::Daemon(connection) => Ok(ringway_ipc::call(connection, &request)?),
            Session::Other(transport) => Ok(transport.call(request)?),
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
    pub(crate) fn asker(&self) -> Result<Arc<Ask>, Error> {
        Ok(match (self, self.copy()?) {
            (Session::Other(transport), _) => {
                // It must not keep the handle open.
                let transport = Arc::downgrade(transport);
                Arc::new(move |request| transport.upgrade()?.call(request.clone()).ok())
            }
            (Session::Daemon(_), connection) => {
                Arc::new(move |request| ringway_ipc::call(connection.as_ref()?, request).ok())
            }
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
