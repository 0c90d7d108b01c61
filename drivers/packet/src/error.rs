//! What can go wrong while setting up, each with its interface, its cause and its remedy.

use std::io;

/// A refusal of the kernel. The data path has no errors: what it meets is counted on the ring.
#[derive(Debug, thiserror::Error)]
#[error("{interface}: {what}: {cause}; {remedy}")]
pub struct Error {
    pub interface: String,
    pub what: &'static str,
    pub cause: io::Error,
    pub remedy: &'static str,
}

impl Error {
    /// For `map_err`: `what` was refused.
    pub(crate) fn refused<E: Into<io::Error>>(
        interface: &str,
        what: &'static str,
        remedy: &'static str,
    ) -> impl FnOnce(E) -> Error {
        let interface = interface.to_owned();
        move |cause| Error { interface, what, cause: cause.into(), remedy }
    }
}
