//! What a NIC's MTU costs the programs of its port: frames that do not fit their buffers are lost.

use ringway_abi::Dir;
use ringway_nic_setup::zero_copy_room;
use ringway_proto::{Error, Result};

use crate::{
    kinds::nic::Nic,
    port::{Port, PortId},
    registry::Registry,
};

impl Nic {
    /// Buffers that a frame on its way to a port's programs may have, at most, and the bytes of one.
    /// `None`: the port has no queues.
    pub(super) fn frame_room(registry: &Registry, port: &Port) -> Option<[u32; 2]> {
        let nic = port.get::<Nic>()?;
        let sockets = nic.sockets.as_ref()?;
        let layout = registry.regions.region(port.region).layout();
        let buffers = match registry.shared.get(&nic.key)?.takes_frags() {
            true => sockets.max_frags().min(registry.settings.nic_slots.saturating_sub(1)).max(1),
            false => 1,
        };
        // Alone in a buffer, a frame has what every driver receives there.
        let size = match sockets.are_zero_copy() && buffers == 1 {
            true => zero_copy_room(layout.bufs.size),
            false => layout.data_size(),
        };
        Some([buffers, size])
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
        let lost = |what, room: u32| {
            (longest > room).then(|| format!("frames of more than {room} bytes are lost{what}"))
        };
        let of_nic = room.filter(|_| receives).and_then(|[buffers, size]| lost("", buffers * size));
        let of_host =
            port.host.open.then_some(size).and_then(|size| lost(" on its host rings", size));
        let all: Vec<_> = of_nic.into_iter().chain(of_host).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    /// S-REG-9: a frame has a buffer, or several where the kernel can do that, but no more than it
    /// sends in one.
    pub(super) fn check_mtu(registry: &Registry, id: PortId) -> Result<()> {
        let port = registry.port(id);
        let Some([buffers, size]) = Nic::frame_room(registry, port) else { return Ok(()) };
        let Some(nic) = port.get::<Nic>() else { return Ok(()) };
        let (interface, room) = (&nic.interface, buffers * size);
        let needed = interface.longest_frame();
        if needed <= room {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "{0}: frames of {needed} bytes do not fit {buffers} {1} of {size}; \
             `ip link set {0} mtu {2}` or less, or open it for sending alone, or in packet mode: \
             netmap:{0}@mode=packet",
            interface.name,
            if buffers == 1 { "buffer" } else { "buffers" },
            room - 14
        )))
    }
}
