//! virtio-net headers: how many bytes of one a VALE port has in front of its packets (S-VHDR-1).

use ringway_proto::{Cause, Error, Result};

use crate::{
    bridges::Bridges,
    caller::Caller,
    interfaces,
    keys::plain_key,
    kinds::{persistent::Persistent, pipe::pipe_keys},
    name::PortName,
    port::PortId,
    ports::Ports,
    regions::Regions,
};

const LENGTHS: [u32; 3] = [0, 10, 12];

/// Sets the length of a port's virtio-net header. Packets that are in the port's rings already keep the
/// header that they have.
pub(crate) fn set(
    ports: &mut Ports,
    bridges: &mut Bridges,
    regions: &Regions,
    caller: &Caller,
    name: &str,
    len: u32,
) -> Result<()> {
    let is_vale = |id: &PortId| ports.port(*id).backend.switch_side().is_some();
    let id = ports.named(name).filter(is_vale);
    let id = id.ok_or_else(|| Error::absent("there is no such VALE port").at(name))?;
    ports.managed(id, caller)?;
    if !LENGTHS.contains(&len) {
        return Err(Error::invalid(format!(
            "a virtio-net header has 0, 10 or 12 bytes, not {len}"
        ))
        .at(name));
    }
    let port = ports.port_mut(id);
    port.config.header_len = len as u8;
    if len != 0 {
        // It stays when the header goes.
        port.config.max_frame = regions.region(port.region).layout().data_size();
    }
    let (header_len, max_frame) = (port.config.header_len, port.config.max_frame);
    // Also of the bridge that is its program.
    let first = port.backend.switch_side().and_then(|side| side.bridge_port.clone());
    let second = port.get::<Persistent>().and_then(|port| port.device.second.clone());
    for bridge_port in first.iter().chain(&second) {
        bridges.change(&bridge_port.bridge, bridge_port.index, |config| {
            (config.header_len, config.max_frame) = (header_len, max_frame);
        });
    }
    Ok(())
}

/// The length of a port's virtio-net header. Makes no ports.
pub(crate) fn get(ports: &Ports, caller: &Caller, name: &str) -> Result<u32> {
    let absent = |cause| Error::new(cause, format!("{name}: there is no such port"));
    let known = match PortName::parse(name, Cause::NoPort)? {
        PortName::Vale { .. } => ports.named(name),
        PortName::Pipe { parent, id, master } => {
            let [first, second] = pipe_keys(parent, id, caller)?;
            let end = ports.named(if master { &first } else { &second });
            return end.map(|_| 0).ok_or_else(|| absent(Cause::NoDevice));
        }
        PortName::Plain(_) => ports.named(&plain_key(name, caller)),
    };
    match known {
        Some(id) => Ok(ports.port(id).config.header_len.into()),
        None if interfaces::exists(name, caller)? => Ok(0),
        None => Err(absent(Cause::NoPort)),
    }
}
