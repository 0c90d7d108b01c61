//! Names that requests would take, of those that policy reserves for others.

use ringway_proto::{Cause, Error, Request, Result};

use crate::{
    bridges::Bridges,
    caller::Caller,
    name::PortName,
    reserved::{NamePattern, for_others},
};

/// The pattern that reserves for others what the request would take, if one does.
pub(crate) fn reserved<'a>(
    bridges: &Bridges,
    caller: &'a Caller,
    request: &Request,
) -> Option<&'a NamePattern> {
    if caller.reservations.is_empty() {
        return None;
    }
    let (switch, port) = taken(request)?;
    let by_others = |port| for_others(&caller.reservations, switch, port);
    // The first port of a switch makes it.
    let makes_switch = port.is_none() || bridges.locate(switch, "").is_none();
    let by_port = port.and_then(|port| by_others(Some(port)));
    by_port.or_else(|| if makes_switch { by_others(None) } else { None })
}

/// Refuses what would take a name that is reserved for others.
pub(crate) fn check(bridges: &Bridges, caller: &Caller, request: &Request) -> Result<()> {
    let Some(pattern) = reserved(bridges, caller, request) else { return Ok(()) };
    let problem = format!("reserved for other users: `{pattern}` of the daemon's configuration");
    Err(Error::new(Cause::Denied, problem).at(request.name()).remedy(format!(
        "use another name, or ask the operator to add you to the [[reserve]] of {pattern}"
    )))
}

/// The switch that a request would make, or change; or the port of it that the request would make,
/// or use.
fn taken(request: &Request) -> Option<(&str, Option<&str>)> {
    match request {
        Request::Register { name, .. }
        | Request::PortGeometry { name, .. }
        | Request::Pools { name, .. }
        | Request::SwitchAttach { name, .. }
        | Request::SetHeaderLen { name, .. } => {
            // An end of a pipe stands for its parent.
            let mut name = name.as_str();
            while let Ok(PortName::Pipe { parent, .. }) = PortName::parse(name, Cause::Invalid) {
                name = parent;
            }
            name.split_once(':').map(|(switch, port)| (switch, Some(port)))
        }
        Request::SwitchPort { name, .. } | Request::SwitchPoll { name, .. } => {
            name.split_once(':').map(|(switch, _)| (switch, None))
        }
        Request::SwitchNew { bridge, .. }
        | Request::SwitchDelete { bridge }
        | Request::SwitchForward { bridge, .. }
        | Request::SwitchMulticast { bridge, .. }
        | Request::SwitchMirrorAdd { bridge, .. }
        | Request::SwitchMirrorDelete { bridge, .. }
        | Request::SwitchAddressAdd { bridge, .. }
        | Request::SwitchAddressDelete { bridge, .. }
        | Request::SwitchAddressesFlush { bridge, .. } => Some((bridge, None)),
        _ => None,
    }
}
