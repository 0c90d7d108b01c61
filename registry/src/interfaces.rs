//! Network interfaces as a caller names them: where they are looked up, and which of them policy grants.

use std::sync::Arc;

use ringway_nic_setup::{Interface, in_netns};
use ringway_proto::{Cause, Error, Options, Result};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::{netns::Netns, nic_mode::ModeRequest, registry::Caller, shared_nic::NicKey};

/// A network namespace, for work that is done later; `None`: this process's.
#[derive(Clone)]
pub(crate) struct OpenNetns(Option<Arc<OwnedFd>>);

impl OpenNetns {
    /// A caller's, which is [found](Netns::known) first.
    pub fn of(netns: &Netns) -> Result<OpenNetns> {
        if let Netns::Unknown(why) = netns.known() {
            let problem = format!("no names of network interfaces are known here: {why}");
            return Err(Error::new(Cause::Denied, problem));
        }
        let netns = netns.other_fd().map(|ns| ns.try_clone_to_owned()).transpose();
        let netns = netns.map_err(|e| Error::io("cannot keep the network namespace", e))?;
        Ok(OpenNetns(netns.map(Arc::new)))
    }

    /// Runs `f` there.
    pub fn inside<T: Send>(&self, f: impl FnOnce() -> T + Send) -> Result<T> {
        enter(self.0.as_ref().map(|ns| ns.as_fd()), f)
    }
}

/// What tells an interface of the caller's network namespace from all others.
pub(crate) fn nic_key(caller: &Caller, interface: &Interface) -> NicKey {
    (caller.netns_id().unwrap_or(0), interface.index)
}

/// Whether the caller's network namespace has an interface of that name.
pub(crate) fn exists(name: &str, caller: &Caller) -> Result<bool> {
    // Ports of switches and pipes are asked for all the time, and are called like interfaces by mistake alone:
    // a look-up waits for whoever changes interfaces.
    if !caller.netns.may_have(name) {
        return Ok(false);
    }
    match look_up(name, caller) {
        Ok(_) => Ok(true),
        Err(error) if error.cause == Cause::NoPort => Ok(false),
        Err(error) => Err(error),
    }
}

/// The same, and none where no interface can be looked up: a user namespace has made the caller's network
/// namespace, say. Fails as long as the answer is not at hand.
pub(crate) fn exists_if_known(name: &str, caller: &Caller) -> Result<bool> {
    match exists(name, caller) {
        Err(_) if !caller.lookups.is_any_wanted() => Ok(false),
        known => known,
    }
}

/// The interface that the caller means. As long as it has not been looked up, the request fails, without a
/// lasting change; see [`Lookups`](crate::lookups::Lookups).
pub(crate) fn look_up(name: &str, caller: &Caller) -> Result<Interface> {
    if name.is_empty() || name.len() >= crate::name::IFNAMSIZ || name.contains(['/', ':']) {
        return Err(Error::absent("no network interface can have this name").at(name));
    }
    caller.lookups.interface(&caller.netns, name)
}

/// Runs `f` in that network namespace; `None`: this process's.
pub(crate) fn enter<T: Send>(
    netns: Option<BorrowedFd<'_>>,
    f: impl FnOnce() -> T + Send,
) -> Result<T> {
    match netns {
        None => Ok(f()),
        Some(ns) => in_netns(ns, f).map_err(|e| match e.raw_os_error() {
            Some(errno @ libc::EAGAIN) => {
                Error::new(Cause::System(errno), format!("ringwayd gets no further thread: {e}"))
                    .remedy("raise its limit of processes (TasksMax= of its unit, RLIMIT_NPROC)")
            }
            _ => {
                let problem = format!("cannot enter the caller's network namespace: {e}");
                Error::new(Cause::Denied, problem)
                    .remedy("run ringwayd there, or with CAP_SYS_ADMIN")
            }
        }),
    }
}

pub(crate) fn nic_error(error: ringway_nic_setup::Error) -> Error {
    use ringway_nic_setup::Error as Setup;
    let cause = match &error {
        Setup::NoInterface { .. } => Cause::NoPort,
        Setup::NoQueue { .. } => Cause::Invalid,
        Setup::QueueBusy { .. } | Setup::Occupied { .. } => Cause::Busy,
        Setup::Privileges { .. } => Cause::Denied,
        Setup::Attach { .. } => Cause::Unsupported,
        Setup::Netns { cause, .. } if cause.raw_os_error() != Some(libc::EAGAIN) => Cause::Denied,
        Setup::Netns { cause, .. } => Cause::of(cause),
        Setup::Helper { .. } => Cause::System(libc::EIO),
        Setup::Refused { cause, .. } => Cause::of(cause),
    };
    Error::new(cause, error.problem()).at(error.interface()).remedy(error.remedy())
}

/// What a caller wants of the interface `name`, by the options of a registration.
pub(crate) fn mode_request(caller: &Caller, name: &str, options: &Options) -> ModeRequest {
    let &Options { mode, timestamps, .. } = options;
    // A grant by name is for interfaces of this process's namespace.
    ModeRequest { mode, timestamps, may_have_packet: may_use_all(caller, name) }
}

/// The caller as it is to be seen where it names an interface that policy grants it by name, and has
/// none of that name where it is: in this process's network namespace.
pub(crate) fn granted(caller: &Caller, name: &str) -> Result<Option<Caller>> {
    let base = name.split(['{', '}']).next().unwrap_or_default();
    if !caller.granted.iter().any(|granted| granted == base)
        // Whoever is elsewhere has interfaces of its own.
        || !caller.netns.is_own() && exists_if_known(base, caller)?
    {
        return Ok(None);
    }
    // A caller that may use all of them does not depend on the grant of this one.
    let granted = if caller.may_use_nics { Vec::new() } else { vec![base.into()] };
    let (uid, lookups) = (caller.uid, caller.lookups.clone());
    Ok(Some(Caller { uid, netns: Netns::Own, may_use_nics: true, granted, lookups }))
}

pub(crate) fn allowed(caller: &Caller, name: &str) -> Result<()> {
    if caller.may_use_nics {
        return Ok(());
    }
    let remedy = format!(
        "ask its operator to add you to nic_users in its configuration, or to a [[grant]] of {name}"
    );
    let problem = "this daemon does not grant you network interfaces";
    Err(Error::new(Cause::Denied, problem).at(name).remedy(remedy))
}

/// Whether policy grants the caller interfaces, and not just this one by its name.
fn may_use_all(caller: &Caller, name: &str) -> bool {
    // What needs no namespace first, for many callers have none found yet.
    let by_name = caller.granted.iter().any(|granted| granted == name) && caller.netns.is_own();
    caller.may_use_nics && !by_name
}

/// For what concerns others who use the interface, too, or makes a new one.
pub(crate) fn allowed_all(caller: &Caller, name: &str) -> Result<()> {
    allowed(caller, name)?;
    if may_use_all(caller, name) {
        return Ok(());
    }
    Err(Error::new(Cause::Denied, "you are granted its queues alone")
        .at(name)
        .remedy("ask the daemon's operator to add you to nic_users in its configuration"))
}
