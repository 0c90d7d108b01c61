//! One open handle: a connection to the daemon, or one in the registry of this process.

use std::sync::{Arc, Mutex};

use ringway_proto::{Reply, Request};
use ringway_registry::{Caller, Handle, Registry};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::{error::Error, monitors::Ask};

/// What an open `/dev/netmap` is: it can be bound to one port. Dropping it lets the port go.
#[derive(Debug)]
pub enum Session {
    /// A connection to the daemon.
    Daemon(OwnedFd),
    /// A handle in a registry of this process: no daemon, no socket.
    Local(Local),
}

/// A handle in a registry of this process.
pub struct Local {
    registry: Arc<Mutex<Registry>>,
    handle: Handle,
}

impl std::fmt::Debug for Local {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Local").field(&self.handle).finish()
    }
}

impl Session {
    /// Connects to the daemon; a private one is started if there is none.
    pub fn connect() -> Result<Session, Error> {
        Ok(Session::Daemon(ringway_ipc::connect()?))
    }

    /// A handle in `registry`.
    pub fn local(registry: &Arc<Mutex<Registry>>) -> Session {
        let handle = registry.lock().unwrap_or_else(|e| e.into_inner()).open();
        Session::Local(Local { registry: registry.clone(), handle })
    }

    /// Asks, and waits for the answer.
    pub fn call(&self, request: Request) -> Result<(Reply, Vec<OwnedFd>), Error> {
        match self {
            Session::Daemon(connection) => Ok(ringway_ipc::call(connection, &request)?),
            Session::Local(local) => {
                let mut registry = local.registry.lock().unwrap_or_else(|e| e.into_inner());
                Ok(registry.call(local.handle, &Caller::myself(), request)?)
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
    pub(crate) fn asker(&self) -> Result<Arc<Ask>, Error> {
        Ok(match self {
            Session::Daemon(_) => {
                let connection = self.copy()?.expect("it is one");
                Arc::new(move |request| ringway_ipc::call(&connection, request).ok())
            }
            Session::Local(Local { registry, handle }) => {
                let (registry, handle) = (registry.clone(), *handle);
                Arc::new(move |request| {
                    let mut registry = registry.lock().unwrap_or_else(|e| e.into_inner());
                    registry.call(handle, &Caller::myself(), request.clone()).ok()
                })
            }
        })
    }

    /// The connection, which hangs up when the daemon ends.
    pub fn connection(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Session::Daemon(connection) => Some(connection.as_fd()),
            Session::Local(_) => None,
        }
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        self.registry.lock().unwrap_or_else(|e| e.into_inner()).close(self.handle);
    }
}
