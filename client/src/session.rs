//! One open handle: a connection to the daemon, or one in the registry of this process.

use std::sync::{Arc, Mutex};

use ringway_registry::{Caller, Handle, Registry, Reply, Request};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::error::Error;

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
        Ok(Session::Daemon(ringway_wire::connect()?))
    }

    /// A handle in `registry`.
    pub fn local(registry: &Arc<Mutex<Registry>>) -> Session {
        let handle = registry.lock().unwrap_or_else(|e| e.into_inner()).open();
        Session::Local(Local { registry: registry.clone(), handle })
    }

    /// Asks, and waits for the answer.
    pub fn call(&self, request: Request) -> Result<(Reply, Vec<OwnedFd>), Error> {
        match self {
            Session::Daemon(connection) => Ok(ringway_wire::call(connection, &request)?),
            Session::Local(local) => {
                let mut registry = local.registry.lock().unwrap_or_else(|e| e.into_inner());
                Ok(registry.call(local.handle, &Caller::myself(), request)?)
            }
        }
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
