//! Which privileges the set-up needs, and which this thread lacks.

use std::borrow::Cow;
use std::fmt;

use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};
use serde::{Deserialize, Serialize};

/// Capabilities that are missing, and how to get them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// Their names, as in `capabilities(7)`.
    pub capabilities: Vec<Cow<'static, str>>,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let program = std::env::current_exe().unwrap_or_else(|_| "PATH/ringwayd".into());
        // All that a NIC takes, for `setcap` replaces what was there.
        let more = if self.capabilities.iter().any(|name| name == SYS_ADMIN) {
            ",cap_sys_admin"
        } else {
            ""
        };
        write!(
            f,
            "needs {}: run with sudo, or once \
             `sudo setcap cap_net_raw,cap_net_admin,cap_bpf{more}=ep {}`",
            self.capabilities.join(", "),
            program.display()
        )
    }
}

const SYS_ADMIN: &str = "CAP_SYS_ADMIN";

/// Checks what opening sockets (CAP_NET_RAW), attaching programs (CAP_NET_ADMIN) and loading them
/// (CAP_BPF, or CAP_SYS_ADMIN in its place) needs, in the effective set of this thread.
pub fn privileges() -> Result<(), Missing> {
    check(&[
        (CapabilitySet::NET_RAW, "CAP_NET_RAW"),
        (CapabilitySet::NET_ADMIN, "CAP_NET_ADMIN"),
        (CapabilitySet::BPF.union(CapabilitySet::SYS_ADMIN), "CAP_BPF"),
    ])
}

/// Checks what making interfaces (CAP_NET_ADMIN) and namespaces (CAP_SYS_ADMIN) needs.
pub fn device_privileges() -> Result<(), Missing> {
    check(&[(CapabilitySet::NET_ADMIN, "CAP_NET_ADMIN"), (CapabilitySet::SYS_ADMIN, SYS_ADMIN)])
}

fn check(needed: &[(CapabilitySet, &'static str)]) -> Result<(), Missing> {
    // Fails for a bad pid alone; no set at all then stands for no capability.
    let effective = capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.effective);
    let missing: Vec<_> = needed
        .iter()
        .filter(|(any_of, _)| !effective.intersects(*any_of))
        .map(|(_, name)| Cow::from(*name))
        .collect();
    if missing.is_empty() { Ok(()) } else { Err(Missing { capabilities: missing }) }
}

/// Runs `f` without the capabilities that let a thread load modules by asking for an interface.
///
/// # Errors
/// The kernel does not let the thread give them up: then `f` does not run.
pub(crate) fn unprivileged<T>(f: impl FnOnce() -> T) -> rustix::io::Result<T> {
    let loading = CapabilitySet::NET_ADMIN.union(CapabilitySet::SYS_MODULE);
    let before = capabilities(None)?;
    if !before.effective.intersects(loading) {
        return Ok(f());
    }
    let _restore = Restore(before);
    set_capabilities(
        None,
        CapabilitySets { effective: before.effective.difference(loading), ..before },
    )?;
    Ok(f())
}

/// Runs `f` with no more than loading a program for a network device takes: without CAP_PERFMON, which
/// CAP_SYS_ADMIN stands for, the verifier lets a program see nothing of the kernel's memory.
///
/// # Errors
/// The kernel does not let the thread give the others up: then `f` does not run.
pub(crate) fn without_perfmon<T>(f: impl FnOnce() -> T) -> rustix::io::Result<T> {
    let before = capabilities(None)?;
    let _restore = Restore(before);
    let loading = CapabilitySet::NET_ADMIN.union(CapabilitySet::BPF);
    let effective = before.effective.intersection(loading);
    set_capabilities(None, CapabilitySets { effective, ..before })?;
    Ok(f())
}

/// What a thread gets back, also after a panic.
struct Restore(CapabilitySets);

impl Drop for Restore {
    fn drop(&mut self) {
        // They are permitted still, so that it cannot be refused.
        let _ = set_capabilities(None, self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_loads_modules_is_given_up_for_a_while() {
        let effective = || capabilities(None).unwrap().effective;
        let before = effective();
        let meanwhile = unprivileged(effective).unwrap();
        let loading = CapabilitySet::NET_ADMIN.union(CapabilitySet::SYS_MODULE);
        assert!(!meanwhile.intersects(loading));
        assert_eq!(meanwhile, before.difference(loading));
        assert_eq!(effective(), before);
    }

    #[test]
    fn what_shows_the_kernels_memory_is_given_up_for_a_while() {
        let effective = || capabilities(None).unwrap().effective;
        let before = effective();
        let meanwhile = without_perfmon(effective).unwrap();
        let loading = CapabilitySet::NET_ADMIN.union(CapabilitySet::BPF);
        assert_eq!(meanwhile, before.intersection(loading));
        assert_eq!(effective(), before);
    }
}
