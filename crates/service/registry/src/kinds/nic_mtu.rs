//! What a NIC's MTU costs the programs of its port: frames that do not fit their buffers are lost.

use ringway_abi::Dir;
use ringway_proto::Result;

use crate::{
    kinds::nic::Nic,
    port::{Port, PortId},
    queues::{frame_room, too_long},
    registry::Registry,
};

impl Nic {
    /// Buffers that a frame on its way to a port's programs may have, at most, and the bytes of one.
    /// `None`: the port has no queues.
    pub(super) fn frame_room(registry: &Registry, port: &Port) -> Option<[u32; 2]> {
        let nic = port.get::<Nic>()?;
        let sockets = nic.sockets.as_ref()?;
        let sockets = sockets.all().map(|(_, socket)| socket);
        let takes_frags = registry.shared.get(&nic.key)?.takes_frags();
        let layout = registry.regions.region(port.region).layout();
        Some(frame_room(sockets, takes_frags, layout, registry.settings.nic_slots))
    }

    /// The same of a frame that is received: what the kernel copies has as many buffers as it takes.
    fn receive_room(registry: &Registry, port: &Port) -> Option<[u32; 2]> {
        let [buffers, size] = Nic::frame_room(registry, port)?;
        let is_copied = port.get::<Nic>()?.sockets.as_ref()?.copy_frags();
        let most = registry.settings.nic_slots.saturating_sub(1);
        Some([if buffers > 1 && is_copied { most } else { buffers }, size])
    }

    /// What the interface's MTU, which may have changed since the port was opened, costs its
    /// programs.
    pub(super) fn lost_by_mtu(registry: &Registry, port: &Port) -> Option<String> {
        let room = Nic::receive_room(registry, port);
        let receives = port.nic_rings(Dir::Rx).iter().any(|ring| ring.users > 0);
        let longest = port.get::<Nic>()?.interface.longest_frame();
        let size = registry.regions.region(port.region).layout().data_size();
        let beyond = |room: u32, what| {
            (longest > room).then(|| format!("frames of more than {room} bytes {what}"))
        };
        // A driver may receive more than each has room for.
        let of_nic = room.filter(|_| receives);
        let of_nic = of_nic.and_then(|[buffers, size]| beyond(buffers * size, "may be lost"));
        let of_host = port.host.open.then_some(size);
        let of_host = of_host.and_then(|size| beyond(size, "are lost on its host rings"));
        let all: Vec<_> = of_nic.into_iter().chain(of_host).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    /// S-REG-9: a frame has a buffer, or several where the kernel can do that, but no more than it
    /// sends in one.
    pub(super) fn check_mtu(registry: &Registry, id: PortId) -> Result<()> {
        let port = registry.port(id);
        let Some(room) = Nic::frame_room(registry, port) else { return Ok(()) };
        let Some(nic) = port.get::<Nic>() else { return Ok(()) };
        let layout = registry.regions.region(port.region).layout();
        match too_long(&nic.interface, room, layout, true) {
            Some(error) => Err(error.at(&nic.interface.name)),
            None => Ok(()),
        }
    }
}
