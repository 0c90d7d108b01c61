//! The way from a client to a registry.

use std::{os::fd::OwnedFd, sync::Arc};

use crate::{
    error::Result,
    request::{Reply, Request},
};

/// An open handle of a registry. When it is dropped, the handle is closed.
pub trait Transport: Send + Sync {
    /// Asks, and waits for the answer and the descriptors that belong to it.
    ///
    /// # Errors
    /// What the registry says.
    fn call(&self, request: Request) -> Result<(Reply, Vec<OwnedFd>)>;
}

/// Where handles come from.
pub trait Connector: Send + Sync {
    /// A new handle, bound to nothing.
    fn connect(&self) -> Arc<dyn Transport>;
}
