//! A NIC on a bridge (S-VALE-16): its rings are the kernel's, and the bridge has them.

use std::ops::Range;

use ringway_nic_setup::{
    EgressRedirect, HostEnd, Link, LinkState, STACK_PORT_MEMORY, SWITCHED_PORT_MEMORY,
    SwitchedStack, longest_frame,
};
use ringway_proto::{Error, NicMode, PortKind, Result, RingBackend};

use crate::{
    added_queues::QueueCount,
    bind_reply::Fds,
    bridged_nic::Held,
    bridges::{BridgePortRef, Bridges},
    caller::Caller,
    charge::Charge,
    descriptors::{BRIDGED, EGRESS_REDIRECT, HOST_END, SWITCHED_STACK, WATCH, tc_filters},
    device_losses::DeviceLosses,
    kinds::{KindInfo, PortBackend, RingAt, RingUse, monitor::Monitor},
    lasting::LastingNetns,
    port::{Port, PortId, Shape},
    ports::Ports,
    registry::Registry,
    settings::Settings,
    setup_error::nic_error,
    subject::{NicKey, Subject},
};

/// How an interface or a persistent port is to join a switch; see [`Request::SwitchAttach`].
///
/// [`Request::SwitchAttach`]: ringway_proto::Request::SwitchAttach
pub(crate) struct Attach {
    pub stack: bool,
    pub all_rings: bool,
    pub mem_id: u16,
    pub mode: Option<NicMode>,
}

/// A NIC on a bridge.
pub(crate) struct Attached {
    pub bridge_port: BridgePortRef,
    /// The interface.
    pub key: NicKey,
    /// The processors on which the bridge looks for its packets without sleep, as long as it is up.
    pub polling: Option<Vec<usize>>,
    pub link: Link,
    /// Tx before rx, as the interface has queues.
    pub rings: [u32; 2],
    pub queue_count: QueueCount,
    pub netns: LastingNetns,
    pub losses: DeviceLosses,
    /// The mode that its user asked for.
    pub asked_mode: Option<NicMode>,
    /// It had gone, and came back by itself: its user may not know, and attach it by hand.
    pub returned: bool,
    pub attachment: Attachment,
}

impl PortBackend for Attached {
    fn display_kind(&self) -> Option<PortKind> {
        Some(PortKind::Nic)
    }

    fn link(&self, at: &RingAt<'_>, _fds: &mut Fds) -> Result<RingBackend> {
        self.check_bind(at.port).map(|()| RingBackend::Null)
    }

    fn shape(&self, settings: &Settings, _port: &Port) -> Shape {
        Shape { rings: self.rings, slots: [settings.nic_slots; 2] }
    }

    fn info(&self, registry: &Registry, _port: &Port) -> KindInfo {
        let mode = Some(registry.bridges.describe_path(&self.bridge_port, self.mode()));
        KindInfo { mode, mtu: Some(self.link.mtu), ..KindInfo::default() }
    }

    fn descriptors(&self, _registry: &Registry, _port: &Port) -> usize {
        let Attachment { nic, egress, .. } = &self.attachment;
        WATCH
            + BRIDGED
            + nic.descriptors
            + egress.descriptors()
            + tc_filters()
            + self.losses.descriptors()
    }

    fn device_losses(&self) -> Option<&DeviceLosses> {
        Some(&self.losses)
    }

    fn stack_dropped(&self, _registry: &Registry) -> u64 {
        match &self.attachment.egress {
            Egress::Redirect(redirect, _) => redirect.dropped(),
            Egress::Switched(_) => 0,
        }
    }

    fn added_queues(&self, _port: &Port) -> Range<u32> {
        if self.attachment.nic.is_by_queue() { self.queue_count.without_rings() } else { 0..0 }
    }

    fn queue_count(&mut self) -> Option<&mut QueueCount> {
        Some(&mut self.queue_count)
    }

    fn how_to_reopen(&self) -> &'static str {
        "detach the interface, and attach it again"
    }

    fn is_watched(&self) -> bool {
        true
    }

    fn closes_slowly(&self, _port: &Port) -> Option<Subject> {
        Some(self.key.into())
    }

    fn check_bind(&self, port: &Port) -> Result<()> {
        let name = &port.name;
        Err(Error::busy("attached to a switch, which has its frames").at(name).remedy(format!(
            "watch them with a monitor, `ringway capture {name}/rt`; for a program, detach it, which cuts it \
             off the switch"
        )))
    }

    fn bridge_ports(&self) -> Vec<BridgePortRef> {
        self.places().cloned().collect()
    }

    fn is_set_up(&self) -> bool {
        true
    }

    fn is_switchs_own(&self) -> bool {
        true
    }

    /// Its rings are the kernel's.
    fn ring_use(&self, _port: &Port) -> RingUse {
        RingUse::NoRings
    }

    fn mirrors_changed(registry: &mut Registry, id: PortId, _generation: u32) {
        let Some(nic) = registry.ports.get(id).and_then(|port| port.get::<Attached>()) else {
            return;
        };
        let [tx, rx] = nic.rings;
        let mirrors = Monitor::queue_mirrors(registry, id, tx.max(rx));
        registry.bridges.set_mirrors(&nic.bridge_port, mirrors);
    }

    fn link_changed(registry: &mut Registry, id: PortId, link: Link) {
        if link.state == LinkState::Gone {
            return Attached::detach(registry, id);
        }
        if let Some(nic) = registry.ports.port_mut(id).get_mut::<Attached>() {
            nic.link = link;
            nic.apply_polling(&mut registry.bridges);
            nic.apply_link(&mut registry.bridges);
        }
    }
}

/// What keeps a NIC and its stack apart.
pub(crate) struct Attachment {
    /// The port of the stack, where that is on the bridge.
    stack: Option<BridgePortRef>,
    egress: Egress,
    nic: Held,
    /// The memory of both.
    _charge: Charge,
}

impl Attachment {
    pub fn new(egress: Egress, nic: Held, charge: Charge) -> Attachment {
        Attachment { stack: None, egress, nic, _charge: charge }
    }

    /// The NIC has this place on the bridge.
    pub fn has_place(&self, place: &BridgePortRef) {
        self.nic.set_port(place.index);
    }

    /// From now on the stack sends to its port.
    pub fn begin_egress(&mut self) -> Result<()> {
        self.egress.begin().map_err(nic_error)
    }

    /// Which has this place.
    pub fn stack_has_place(&mut self, place: BridgePortRef) {
        self.egress.set_port(&place);
        self.stack = Some(place);
    }

    /// All places: the stack's, if it has one, and the NIC's.
    pub fn places<'a>(
        &'a self,
        of_nic: &'a BridgePortRef,
    ) -> impl Iterator<Item = &'a BridgePortRef> {
        self.stack.iter().chain([of_nic])
    }
}

impl Attached {
    /// The mode that the NIC is in, and why it is no better one.
    pub fn mode(&self) -> &str {
        &self.attachment.nic.mode
    }

    pub fn has_stack(&self) -> bool {
        self.attachment.stack.is_some()
    }

    /// The port's index, if it came back by itself and is attached by hand now as it was before: that is not
    /// refused, once.
    pub(crate) fn take_returned(
        ports: &mut Ports,
        id: PortId,
        caller: &Caller,
        how: &Attach,
    ) -> Option<u32> {
        let port = ports.port_mut(id);
        let is_theirs = port.uid == caller.uid;
        let nic = port.get_mut::<Attached>().filter(|_| is_theirs)?;
        let as_before = (how.stack, how.mode, LastingNetns::of(&caller.netns))
            == (nic.has_stack(), nic.asked_mode, nic.netns);
        let returned = as_before && std::mem::take(&mut nic.returned);
        returned.then(|| nic.bridge_port.index.into())
    }

    /// Its places on the bridge: its own, and its stack's.
    fn places(&self) -> impl Iterator<Item = &BridgePortRef> {
        self.attachment.places(&self.bridge_port)
    }
}

impl Attached {
    /// What the bridge sends to a NIC, and to the stack behind it, may be as long as the MTU allows
    /// now. Behind a NIC without a link there is nobody; and while it is set down, its stack hears nothing.
    fn apply_link(&self, bridges: &mut Bridges) {
        let max_frame = longest_frame(self.link.mtu);
        for bridge_port in self.places() {
            let is_nic = *bridge_port == self.bridge_port;
            bridges.change(&bridge_port.bridge, bridge_port.index, |config| {
                config.max_frame = max_frame;
                config.is_down = match self.link.state {
                    LinkState::Up => false,
                    LinkState::NoCarrier => is_nic,
                    LinkState::Down | LinkState::Gone => true,
                };
            });
        }
    }

    /// Gives a NIC on a bridge back to the stack.
    pub(crate) fn detach(registry: &mut Registry, id: PortId) {
        Monitor::end_all(registry, id);
        let Some(nic) = registry.ports.get(id).and_then(|port| port.get::<Attached>()) else {
            return;
        };
        let places = nic.places().filter_map(|place| registry.bridges.detach(place));
        let closed: Vec<_> = places.collect();
        registry.deferred.close_off_loop(nic.key, closed);
        registry.remove(id);
    }
}

/// What becomes of what the stack sends by the NIC.
pub(crate) enum Egress {
    /// It is dropped; or it goes to the host end, which is a port of the bridge.
    Redirect(EgressRedirect, Option<HostEnd>),
    /// The switch's program has it, and forwards what it knows.
    Switched(SwitchedStack),
}

impl Egress {
    /// Bytes that frames to and from the stack have.
    pub fn memory(&self) -> u64 {
        match self {
            Egress::Redirect(_, None) => 0,
            Egress::Redirect(_, Some(_)) => STACK_PORT_MEMORY,
            Egress::Switched(_) => SWITCHED_PORT_MEMORY,
        }
    }

    fn descriptors(&self) -> usize {
        match self {
            Egress::Redirect(_, None) => EGRESS_REDIRECT,
            Egress::Redirect(_, Some(_)) => EGRESS_REDIRECT + HOST_END + BRIDGED,
            Egress::Switched(_) => HOST_END + SWITCHED_STACK,
        }
    }

    /// From now on the stack sends to its port.
    fn begin(&mut self) -> std::result::Result<(), ringway_nic_setup::Error> {
        match self {
            Egress::Redirect(redirect, host) => redirect.redirect(host.as_ref(), None),
            Egress::Switched(_) => Ok(()),
        }
    }

    /// Which is this one.
    fn set_port(&self, port: &BridgePortRef) {
        if let Egress::Switched(switched) = self {
            switched.set_port(port.index);
        }
    }
}
