//! By which ports are found that are known by the name of an interface.

use crate::caller::Caller;

/// The key of a port that is known by the name of an interface: it belongs to a user, and to a
/// network namespace.
pub(crate) fn plain_key(name: &str, caller: &Caller) -> String {
    key_of(name, caller.uid, caller)
}

/// The same for a port of user `uid`, where the caller is.
pub(crate) fn key_of(name: &str, uid: u32, caller: &Caller) -> String {
    match caller.netns_id() {
        None => format!("{name}\0{uid}"),
        Some(ns) => format!("{name}\0{uid}\0{ns}"),
    }
}
