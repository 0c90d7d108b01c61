//! What there is by now of what [lasts](crate::lasting).

use ringway_proto::PortShape;

use crate::{
    bridges::Bridges,
    expected::Expected,
    kinds::{
        attached::Attached,
        persistent::{Persistent, Stack},
    },
    lasting::{Lasting, LastingAttachment, LastingDevice, LastingPort},
    port::Port,
    ports::Ports,
    registry::Registry,
};

impl Registry {
    /// Whether what is to outlive the registry may have changed since it was last asked for.
    pub fn lasting_changed(&self) -> bool {
        self.bridges.lasting_changed || self.expected.changed
    }

    /// What is to outlive the registry by now, if that may have changed since the last call.
    pub fn lasting(&mut self) -> Option<Lasting> {
        let changed = self.lasting_changed();
        (self.bridges.lasting_changed, self.expected.changed) = (false, false);
        changed.then(|| Lasting::of(&self.ports, &self.bridges, &self.expected))
    }

    /// Takes note of what the devices of persistent ports are set to by now: before the registry ends, so
    /// that they have it again.
    pub fn look_at_devices(&mut self) {
        for (_, port) in self.ports.iter_mut() {
            let Some(Persistent { device, .. }) = port.get_mut() else { continue };
            let now = device.pair.device_settings().ok().map(LastingDevice::from);
            // One that cannot be looked at has what it had.
            if now.is_some() && now != device.settings {
                device.settings = now;
                self.bridges.lasting_changed = true;
            }
        }
    }
}

impl Lasting {
    pub(crate) fn of(ports: &Ports, bridges: &Bridges, expected: &Expected) -> Lasting {
        // A port is on its first switch before a second one becomes its program.
        let (mut attached, mut seconds) = (Vec::new(), Vec::new());
        for (bridge, name) in bridges.visible_ports() {
            let Some((attachment, second)) = lasting_attachment(ports, bridge, name) else {
                continue;
            };
            if second { &mut seconds } else { &mut attached }.push(attachment);
        }
        attached.append(&mut seconds);
        attached.extend(expected.attachments());
        let stays = |bridge: &str| {
            let on_it = |name: &str| name.split_once(':').is_some_and(|(on, _)| on == bridge);
            attached.iter().any(|attachment: &LastingAttachment| on_it(&attachment.name))
        };
        let switches = bridges.lasting(stays);
        let persistent = ports.iter().filter_map(|(_, port)| lasting_port(port));
        Lasting { ports: persistent.chain(expected.ports()).collect(), switches, attached }
    }
}

/// What stays on a bridge by the name of `full`, and whether the bridge is its second.
pub(crate) fn lasting_attachment(
    ports: &Ports,
    bridge: &str,
    full: &str,
) -> Option<(LastingAttachment, bool)> {
    let port = ports.get(ports.named(full)?)?;
    let attachment = |netns, stack, mode, polling, renamed| LastingAttachment {
        name: full.into(),
        uid: port.uid,
        netns,
        stack,
        mode,
        polling,
        never_there: false,
        renamed,
        absent: false,
    };
    if let Some(nic) = port.get::<Attached>() {
        let (stack, polling) = (nic.has_stack(), nic.polling.clone());
        let now = nic.losses.interface_name();
        let renamed = (full.split_once(':')?.1 != now).then(|| now.to_owned());
        return Some((attachment(nic.netns, stack, nic.asked_mode, polling, renamed), false));
    }
    let Persistent { netns, device, .. } = port.get()?;
    let stack = matches!(&device.stack, Stack::Bridge { at, .. } if at.bridge == bridge);
    let second = device.second.as_ref().is_some_and(|second| second.bridge == bridge);
    Some((attachment(*netns, stack, None, None, None), second))
}

/// A persistent port as it is made again. Its region is its own: others are not there any more.
pub(crate) fn lasting_port(port: &Port) -> Option<LastingPort> {
    let Persistent { side, netns, device, .. } = port.get()?;
    let [tx_rings, rx_rings] = side.shape.rings.map(|rings| rings as u16);
    let [tx_slots, rx_slots] = side.shape.slots;
    let shape = PortShape { tx_slots, rx_slots, tx_rings, rx_rings, mem_id: 0 };
    let (name, uid) = (port.name.clone(), port.uid);
    Some(LastingPort { name, uid, netns: *netns, shape, device: device.settings })
}
