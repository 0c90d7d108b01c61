//! A registry for clients in its own process: no daemon, no socket.

use std::sync::{Arc, Mutex, MutexGuard};

use ringway_proto::{Connector, Reply, Request, Result, Transport};
use rustix::fd::OwnedFd;

use crate::{caller::Caller, handles::Handle, registry::Registry, settings::Settings};

/// A registry that this process shares with its clients.
#[derive(Clone)]
pub struct LocalRegistry(Arc<Mutex<Registry>>);

/// A handle in it.
struct LocalHandle {
    registry: LocalRegistry,
    handle: Handle,
}

impl LocalRegistry {
    pub fn new(settings: Settings) -> LocalRegistry {
        LocalRegistry(Arc::new(Mutex::new(Registry::new(settings))))
    }

    fn lock(&self) -> MutexGuard<'_, Registry> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }
}

impl Connector for LocalRegistry {
    fn connect(&self) -> Arc<dyn Transport> {
        let handle = self.lock().open();
        Arc::new(LocalHandle { registry: self.clone(), handle })
    }
}

impl Transport for LocalHandle {
    fn call(&self, request: Request) -> Result<(Reply, Vec<OwnedFd>)> {
        self.registry.lock().call(self.handle, &Caller::myself(), request)
    }
}

impl Drop for LocalHandle {
    fn drop(&mut self) {
        self.registry.lock().close(self.handle);
    }
}
