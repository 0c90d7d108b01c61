//! The network namespace that an interface is in, and the names that namespaces have.

use crate::error::{Error, Result};
use crate::sys;
pub use ringway_live_capture::namespace::here;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::{self, File};
use std::os::fd::AsFd;
use std::panic::resume_unwind;
use std::path::{Component, Path};
use std::thread;

/// Where `ip netns` keeps the names of namespaces.
const NAMES: &str = "/run/netns";

/// A network namespace.
pub enum Namespace {
    /// That of this process.
    Own,
    /// A namespace that has a name in `ip netns`.
    Named(String),
}

impl Namespace {
    /// Calls `f` in the namespace: on a thread of its own, if it is not that of this process.
    pub fn enter<T: Send>(&self, f: impl FnOnce() -> T + Send) -> Result<T> {
        let Namespace::Named(name) = self else { return Ok(f()) };
        // A name is one part of a path, and not `..`.
        let mut parts = Path::new(name).components();
        let is_name = matches!(parts.next(), Some(Component::Normal(_))) && parts.next().is_none();
        let path = Path::new(NAMES).join(name);
        let file = match File::open(&path) {
            Ok(file) if is_name => file,
            _ => {
                return Err(Error::Value(format!(
                    "{name}: there is no such network namespace; `ip netns` shows those there are"
                )));
            }
        };
        let enter = || {
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).map_err(
                |error| {
                    Error::Value(format!(
                        "{name}: the network namespace cannot be entered: {error}; run this as root"
                    ))
                },
            )?;
            Ok(f())
        };
        thread::scope(|scope| scope.spawn(enter).join())
            .unwrap_or_else(|panic| resume_unwind(panic))
    }
}

/// The name of the namespace that the kernel knows by this number, if it has a name, and may be entered.
pub fn name_of(cookie: u64) -> Option<String> {
    let entries = fs::read_dir(NAMES).ok()?.flatten();
    let mut names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.find(|name| {
        let found = Namespace::Named(name.clone()).enter(sys::netns_cookie);
        matches!(found, Ok(Ok(found)) if found == cookie)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_without_a_name_has_none() {
        assert!(sys::netns_cookie().unwrap() > 0);
        assert_eq!(name_of(u64::MAX), None);
    }

    #[test]
    fn names_are_no_paths() {
        for name in ["", "..", ".", "a/b", "../self", "no-such-namespace"] {
            let error = Namespace::Named(name.into()).enter(|| ()).unwrap_err();
            assert!(error.to_string().contains("no such network namespace"), "{name}: {error}");
        }
        assert_eq!(Namespace::Own.enter(|| 7).unwrap(), 7);
    }
}
