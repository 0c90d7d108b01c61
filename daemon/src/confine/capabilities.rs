//! What the daemon gives up before it listens to anybody.

use std::collections::HashSet;

use caps::{CapSet, Capability};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::sys;

/// All that setting up NIC ports takes: AF_XDP sockets, XDP programs, pinned memory, and
/// entering the network namespace of the caller.
const NEEDED: [Capability; 5] = [
    Capability::CAP_NET_ADMIN,
    Capability::CAP_NET_RAW,
    Capability::CAP_BPF,
    Capability::CAP_SYS_ADMIN,
    Capability::CAP_IPC_LOCK,
];

/// A private daemon leaves the network namespace of the program that happened to start it, which
/// would not end while the daemon is in it. False where it may not.
pub fn leave_netns() -> bool {
    sys::leave_netns().is_ok()
}

/// Drops every capability that is not needed, for good, and takes as many descriptors as the
/// limits allow.
pub fn apply() -> Result<(), caps::errors::CapsError> {
    let has = caps::read(None, CapSet::Permitted)?;
    let keep: HashSet<_> = NEEDED.into_iter().filter(|cap| has.contains(cap)).collect();
    caps::clear(None, CapSet::Ambient)?;
    // Dropping from the bounding set needs a capability itself; an ordinary user has none,
    // and nothing to drop.
    if caps::has_cap(None, CapSet::Effective, Capability::CAP_SETPCAP)? {
        for cap in caps::read(None, CapSet::Bounding)?.difference(&keep) {
            caps::drop(None, CapSet::Bounding, *cap)?;
        }
    }
    caps::set(None, CapSet::Inheritable, &HashSet::new())?;
    caps::set(None, CapSet::Effective, &keep)?;
    caps::set(None, CapSet::Permitted, &keep)?;
    let _ = rustix::thread::set_no_new_privs(true);

    let files = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: files.maximum, ..files });
    Ok(())
}
