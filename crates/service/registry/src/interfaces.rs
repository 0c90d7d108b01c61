//! Network interfaces as a caller names them: where they are looked up, and which of them policy grants.

use ringway_nic_setup::Interface;
use ringway_proto::{Cause, Error, Options, Result};

use crate::{
    caller::Caller, name::pipe_parent, netns::Netns, nic_mode::ModeRequest, subject::NicKey,
};

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
        let refused = Error::absent("no network interface can have this name").at(name);
        return Err(refused.remedy("name it as `ip link` does"));
    }
    caller.lookups.interface(&caller.netns, name)
}

/// Refuses a part of the daemon's own way to another interface: what passes by it would go round, or be missing there.
pub(crate) fn not_private(interface: &Interface) -> Result<()> {
    match interface.is_private() {
        true => Err(Error::invalid(
            "the daemon has made that interface, and leads another one's frames by it",
        )
        .at(&interface.name)
        .remedy("use that one: `ringway ports` shows it")),
        false => Ok(()),
    }
}

/// What a caller wants of an interface, by the options of a registration.
pub(crate) fn mode_request(caller: &Caller, options: &Options) -> ModeRequest {
    let &Options { mode, timestamps, .. } = options;
    // A grant by name is for interfaces of this process's namespace.
    let may_have_packet = may_use_all(caller);
    ModeRequest { mode, timestamps, may_have_packet, ..ModeRequest::ANY }
}

/// The caller as it is to be seen where it names an interface that policy grants it by name, and has
/// none of that name where it is: in this process's network namespace.
pub(crate) fn granted(caller: &Caller, name: &str) -> Result<Option<Caller>> {
    let base = pipe_parent(name).unwrap_or(name);
    if !caller.granted.iter().any(|granted| granted == base)
        // Whoever is elsewhere has interfaces of its own.
        || !caller.netns.is_own() && exists_if_known(base, caller)?
    {
        return Ok(None);
    }
    // A caller that may use all of them does not depend on the grant of this one.
    let by_grant = (!caller.may_use_nics).then(|| base.to_string());
    let granted = by_grant.iter().cloned().collect();
    let (uid, lookups, reservations) =
        (caller.uid, caller.lookups.clone(), caller.reservations.clone());
    let (netns, may_use_nics) = (Netns::Own, true);
    Ok(Some(Caller { uid, netns, may_use_nics, granted, by_grant, reservations, lookups }))
}

/// What a user asks for of an interface.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// Queues of its own, which a grant by name is for.
    Queues,
    /// What concerns others who use the interface, too, or a new one: `nic_users` alone may.
    Whole,
}

pub(crate) fn allowed(caller: &Caller, name: &str) -> Result<()> {
    // The name of a request may be another interface's than that of the grant.
    let is_granted = caller.by_grant.as_ref().is_none_or(|granted| granted == name);
    match caller.may_use_nics && is_granted {
        true => Ok(()),
        false => Err(refusal(caller, name, Extent::Queues)),
    }
}

/// Whether policy grants the caller interfaces, and not just one by its name.
fn may_use_all(caller: &Caller) -> bool {
    caller.may_use_nics && caller.by_grant.is_none()
}

/// For what concerns others who use the interface, too, as its attachment to a switch does, or makes a
/// new one.
pub(crate) fn allowed_all(caller: &Caller, name: &str) -> Result<()> {
    if may_use_all(caller) { Ok(()) } else { Err(refusal(caller, name, Extent::Whole)) }
}

/// Says what the caller is granted, and what would help: never what the caller has already.
fn refusal(caller: &Caller, name: &str, extent: Extent) -> Error {
    let is_named = caller.granted.iter().any(|granted| granted == name);
    let is_elsewhere = is_named && !caller.netns.is_own();
    let problem = match (is_named, extent) {
        (true, _) if is_elsewhere => {
            "you are granted the interface of this name in the daemon's network namespace, and this is another"
        }
        (true, _) => "you are granted its queues alone",
        (false, _) if caller.granted.is_empty() => {
            "this daemon does not grant you network interfaces"
        }
        (false, _) => "this daemon does not grant you this interface",
    };
    let listed = "ask the daemon's operator to add you to nic_users in its configuration";
    let remedy = match extent {
        Extent::Queues if is_elsewhere => format!("rename one of the two, or {listed}"),
        Extent::Queues => format!("{listed}, or to a [[grant]] of {name}"),
        Extent::Whole => listed.into(),
    };
    Error::new(Cause::Denied, problem).at(name).remedy(remedy)
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use ringway_proto::{Registration, Request};

    use super::*;
    use crate::{registry::Registry, settings::Settings};

    /// A grant of `lo` is for `lo` and its pipes: an interface may have the name of a pipe, too.
    #[test]
    fn a_grant_is_for_one_name() {
        let mut caller = Caller::new(1234, Netns::Own);
        caller.granted = vec!["lo".into()];
        for name in ["lo", "lo{x", "lo}x", "lo{0"] {
            let caller = granted(&caller, name).unwrap().unwrap();
            allowed(&caller, "lo").unwrap();
            for other in [name, "lo{y", "eth7"].into_iter().filter(|other| *other != "lo") {
                let refused = allowed(&caller, other).unwrap_err();
                assert_eq!(refused.cause, Cause::Denied, "{name}: {other}");
            }
            for whole in [name, "lo"] {
                let refused = allowed_all(&caller, whole).unwrap_err();
                assert_eq!(refused.cause, Cause::Denied, "{name}: {whole}");
            }
            assert!(!mode_request(&caller, &Options::default()).may_have_packet, "{name}");
        }
        for other in ["lo{x{y", "lox", "l"] {
            assert!(granted(&caller, other).unwrap().is_none(), "{other}");
        }
        caller.may_use_nics = true;
        let caller = granted(&caller, "lo{x").unwrap().unwrap();
        allowed_all(&caller, "lo{x").unwrap();
        assert!(mode_request(&caller, &Options::default()).may_have_packet);
    }

    /// No refusal tells a user to ask for what the user has, or denies it.
    #[test]
    fn a_refusal_says_what_is_granted_and_what_would_help() {
        let mut registry = Registry::new(Settings::default());
        let open = || Request::Register {
            name: "lo".into(),
            registration: Registration::default(),
            options: Box::default(),
        };
        let attach = || Request::SwitchAttach {
            name: "vale0:lo".into(),
            stack: false,
            all_rings: true,
            mem_id: 0,
            mode: None,
        };
        let steer = || Request::Steer { interface: "lo".into(), queue: 0, flows: Vec::new() };
        let other = || {
            // It has a `lo` for certain.
            Netns::known_as(File::open("/proc/self/ns/net").unwrap().into(), Some(7))
        };
        let (no_grant, no_nics) = ("[[grant]]", "does not grant");
        for (granted, netns, request, words, without) in [
            (
                &[][..],
                Netns::Own,
                open(),
                &["you network interfaces", "nic_users", no_grant][..],
                &[][..],
            ),
            (&[], Netns::Own, attach(), &["you network interfaces", "nic_users"], &[no_grant]),
            (&[], Netns::Own, steer(), &["you network interfaces", "nic_users"], &[no_grant]),
            (
                &["eth7"],
                Netns::Own,
                open(),
                &["this interface", "[[grant]] of lo"],
                &["network interfaces"],
            ),
            (
                &["lo"],
                Netns::Own,
                attach(),
                &["its queues alone", "nic_users"],
                &[no_grant, no_nics],
            ),
            (
                &["lo"],
                Netns::Own,
                steer(),
                &["its queues alone", "nic_users"],
                &[no_grant, no_nics],
            ),
            (&["lo"], other(), open(), &["network namespace", "rename"], &[no_grant, no_nics]),
            (&["lo"], other(), steer(), &["network namespace", "nic_users"], &[no_grant, no_nics]),
        ] {
            let mut caller = Caller::new(1234, netns);
            caller.granted = granted.iter().map(|name| name.to_string()).collect();
            let handle = registry.open();
            let refused = registry.call(handle, &caller, request.clone()).unwrap_err();
            assert_eq!(refused.cause, Cause::Denied, "{refused}");
            let said = refused.to_string();
            for word in words {
                assert!(said.contains(word), "{granted:?} {request:?}: no {word:?} in {said:?}");
            }
            for word in without {
                assert!(!said.contains(word), "{granted:?} {request:?}: {word:?} in {said:?}");
            }
        }
    }
}
