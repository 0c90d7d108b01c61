//! What the daemon gives up before it listens to anybody.

use std::{collections::HashSet, io, path::Path};

use caps::{CapSet, Capability};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::{files, filter};
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

/// Drops every capability that is not needed to set interfaces up, for good.
pub fn apply() -> Result<(), caps::errors::CapsError> {
    keep(&NEEDED)
}

/// Drops every capability, and confines the process to what the broker does; `own`: the directory of its
/// files. To be called before it has other threads.
///
/// # Errors
/// Those of `capset(2)`, `landlock(7)` and `seccomp(2)`.
pub fn broker(own: &Path) -> io::Result<()> {
    let needed: &[Capability] = if has_free_maps() { &[] } else { &[Capability::CAP_BPF] };
    keep(needed).map_err(io::Error::other)?;
    files::restrict(own).map_err(io::Error::other)?;
    filter::broker()
}

/// Whether a process may use BPF maps and links that it has a descriptor of, whatever
/// `kernel.unprivileged_bpf_disabled` is: Linux 5.19.
fn has_free_maps() -> bool {
    let uname = rustix::system::uname();
    let mut parts = uname.release().to_bytes().split(|byte| !byte.is_ascii_digit());
    let mut number = || std::str::from_utf8(parts.next()?).ok()?.parse::<u32>().ok();
    // A release that tells nothing is a kernel of somebody's own, and no old one.
    number().zip(number()).is_none_or(|release| release >= (5, 19))
}

/// Reads files as the process that reads the configuration again does: by their permissions alone, and not by root's
/// privilege to read all.
pub fn as_reader<T>(read: impl FnOnce() -> T) -> T {
    let of_files = [Capability::CAP_DAC_OVERRIDE, Capability::CAP_DAC_READ_SEARCH];
    let has = |cap: &Capability| caps::has_cap(None, CapSet::Effective, *cap).unwrap_or(false);
    let had: Vec<_> = of_files.into_iter().filter(has).collect();
    had.iter().for_each(|cap| _ = caps::drop(None, CapSet::Effective, *cap));
    let value = read();
    had.iter().for_each(|cap| _ = caps::raise(None, CapSet::Effective, *cap));
    value
}

fn keep(needed: &[Capability]) -> Result<(), caps::errors::CapsError> {
    let has = caps::read(None, CapSet::Permitted)?;
    let keep: HashSet<_> = needed.iter().copied().filter(|cap| has.contains(cap)).collect();
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
    Ok(())
}

/// Descriptors that a daemon needs at least: its own, and those of an interface that is set up.
const LEAST: u64 = 64;

/// The limit of descriptors is too low.
#[derive(Debug, thiserror::Error)]
#[error(
    "the daemon may have {may} descriptors open, and needs {LEAST} at least; raise the limit: \
     LimitNOFILE= of its unit, or `ulimit -n` where it is started"
)]
pub struct TooFewDescriptors {
    may: u64,
}

/// Takes as many descriptors as the limits allow.
///
/// # Errors
/// They are too few for a daemon.
pub fn take_descriptors() -> Result<(), TooFewDescriptors> {
    let files = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: files.maximum, ..files });
    match getrlimit(Resource::Nofile).current {
        Some(may) if may < LEAST => Err(TooFewDescriptors { may }),
        _ => Ok(()),
    }
}
