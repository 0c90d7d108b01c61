//! A NIC on a bridge (S-VALE-16): its rings are the kernel's, and the bridge has them.

use std::sync::Arc;

use ringway_fastpath::FastPath;
use ringway_nic_setup::{
    EgressRedirect, HostEnd, Interface, Link, LinkState, LinkWatch, LossCounter, STACK_PORT_MEMORY,
    SWITCHED_PORT_MEMORY, SwitchedStack, longest_frame, losses, open_nic_port,
};
use ringway_proto::{Cause, Error, NicMode, PortKind, Result, RingBackend};
use ringway_switch_port::Port as BridgePort;
use ringway_vale::PortConfig;

use crate::{
    bind_reply::Fds,
    bridged_nic::{BridgedNic, Held, memory_of},
    bridges::{BridgePortRef, Bridges},
    caller::Caller,
    charge::Charge,
    descriptors::{BRIDGED, EGRESS_REDIRECT, HOST_END, SWITCHED_STACK, WATCH, tc_filters},
    device_losses::DeviceLosses,
    fast_switch::FastSwitch,
    interfaces::{OpenNetns, allowed_attach, look_up, nic_error, nic_key},
    kinds::{KindInfo, PortBackend, RingAt, RingUse, monitor::Monitor, persistent::stack_name},
    lasting::LastingNetns,
    link_events::watch,
    name::plain_key,
    nic_mode::ModeRequest,
    port::{Port, PortId, Shape},
    ports::Ports,
    registry::Registry,
    settings::Settings,
    shared_nic::NicKey,
    subject::Subject,
    switch_ports::Attach,
};

/// A NIC on a bridge.
pub(crate) struct Attached {
    pub bridge_port: BridgePortRef,
    /// The interface.
    key: NicKey,
    /// The processors on which the bridge looks for its packets without sleep, as long as it is up.
    pub polling: Option<Vec<usize>>,
    pub link: Link,
    pub rings: u32,
    pub netns: LastingNetns,
    losses: DeviceLosses,
    /// The mode that its user asked for.
    pub asked_mode: Option<NicMode>,
    /// It had gone, and came back by itself: its user may not know, and attach it by hand.
    pub returned: bool,
    attachment: Attachment,
}

impl PortBackend for Attached {
    fn display_kind(&self) -> Option<PortKind> {
        Some(PortKind::Nic)
    }

    fn link(&self, at: &RingAt<'_>, _fds: &mut Fds) -> Result<RingBackend> {
        self.check_bind(at.port).map(|()| RingBackend::Null)
    }

    fn shape(&self, settings: &Settings, _port: &Port) -> Shape {
        Shape { rings: [self.rings; 2], slots: [settings.nic_slots; 2] }
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

    fn is_watched(&self) -> bool {
        true
    }

    fn closes_slowly(&self, _port: &Port) -> Option<Subject> {
        Some(self.key.into())
    }

    fn check_bind(&self, port: &Port) -> Result<()> {
        Err(Error::busy("attached to a switch").at(&port.name).remedy("detach it first"))
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
        let mirrors = Monitor::queue_mirrors(registry, id, nic.rings);
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
struct Attachment {
    /// The port of the stack, where that is on the bridge.
    stack: Option<BridgePortRef>,
    egress: Egress,
    nic: Held,
    /// The memory of both.
    _charge: Charge,
}

impl Attachment {
    /// Puts the NIC on a bridge, and the stack behind it: both or none. `place`: the user whose they are, the
    /// bridge, and the NIC's full name. An error has what is to be closed.
    fn join(
        &mut self,
        bridges: &mut Bridges,
        (uid, bridge, full): (u32, &str, &str),
        port: (Box<dyn BridgePort>, Option<Arc<FastPath>>),
        stack_port: Option<Box<dyn BridgePort>>,
        config: PortConfig,
    ) -> Result<BridgePortRef, (Error, Option<Box<dyn BridgePort>>)> {
        let of_nic = PortConfig { is_interface: true, ..config.clone() };
        let (port, table) = port;
        let bridge_port = bridges.attach_sharing(uid, bridge, full, port, of_nic, table);
        let bridge_port = bridge_port.map_err(|error| (error, None))?;
        self.nic.set_port(bridge_port.index);
        let Some(port) = stack_port else { return Ok(bridge_port) };
        let of_stack = PortConfig { leads_on: true, ..config };
        let begun = self.egress.begin().map_err(nic_error);
        let attached =
            begun.and_then(|()| bridges.attach(uid, bridge, &stack_name(full), port, of_stack));
        let stack = attached.map_err(|error| (error, bridges.detach(&bridge_port)))?;
        self.egress.set_port(&stack);
        self.stack = Some(stack);
        Ok(bridge_port)
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
        self.attachment.stack.iter().chain([&self.bridge_port])
    }
}

impl Attached {
    /// A NIC joins a bridge, with or without the stack behind it as a second port; in `mode` and no
    /// other, or in the best there is.
    pub(crate) fn attach(
        registry: &mut Registry,
        caller: &Caller,
        bridge: &str,
        ifname: &str,
        full: &str,
        how: &Attach,
    ) -> Result<BridgePortRef> {
        let interface =
            look_up(ifname, caller).map_err(|e| Error { cause: Cause::Invalid, ..e })?;
        allowed_attach(caller, ifname)?;
        if !interface.ethernet {
            // A loopback would give back what it is sent, to be sent round for ever.
            return Err(Error::invalid("no Ethernet interface, so it cannot be on a switch")
                .at(ifname)
                .remedy("attach one that `ip link` shows as link/ether"));
        }
        if !how.all_rings {
            return Err(Error::invalid("a NIC is attached with all its rings").at(full));
        }
        let key = plain_key(&interface.name, caller);
        if registry.ports.named(&key).is_some() {
            return Err(Error::busy("open, or attached to a switch already")
                .at(ifname)
                .remedy("close or detach it first"));
        }
        // Its sockets stay in this process.
        let request = ModeRequest { mode: how.mode, ..ModeRequest::ANY };
        let subject = Subject::from(nic_key(caller, &interface));
        // Before it is opened; and once more before the result is taken, which is undone elsewhere then.
        registry.bridges.check_room(bridge, caller.uid, 1 + usize::from(how.stack))?;
        if !registry.deferred.is_done(&subject) {
            let most = memory_of(&interface, request, how.stack);
            registry.regions.check_asked(caller.uid, most).map_err(|e| e.at(full))?;
        }
        let netns = OpenNetns::of(&caller.netns)?;
        let (within, wanted, stack) = (netns.clone(), interface.clone(), how.stack);
        let fast = registry.bridges.fast_switch(bridge, nic_key(caller, &interface).0);
        let open = move || {
            let fast = fast.as_ref().map_err(|why| *why);
            within.inside(|| open(&wanted, request, stack, fast)).flatten()
        };
        let opened = registry.deferred.make_off_loop(subject.clone(), open)??;
        let memory = opened.nic.held.memory + opened.egress.memory();
        let charge = registry.regions.charge(caller.uid, memory).map_err(|e| e.at(full))?;
        let region = registry.regions.global(caller.uid)?;
        let Opened { watch, losses, nic, egress, stack_port } = opened.take();
        let BridgedNic { port, held, fast, .. } = nic;
        let table = fast.map(|fast| fast.table.clone());
        let mut attachment = Attachment { stack: None, egress, nic: held, _charge: charge };
        // Who sends longer frames with headers has them cut to what fits the interface.
        let config = PortConfig { max_frame: interface.longest_frame(), ..PortConfig::default() };
        let place = (caller.uid, bridge, full);
        let joined =
            attachment.join(&mut registry.bridges, place, (port, table), stack_port, config);
        let bridge_port = match joined {
            Ok(bridge_port) => bridge_port,
            Err((error, port)) => {
                registry.regions.drop_unused(region);
                registry.deferred.close_off_loop(subject, (watch, attachment, port));
                return Err(error);
            }
        };
        let backend = Attached {
            bridge_port: bridge_port.clone(),
            key: nic_key(caller, &interface),
            polling: None,
            link: Link { state: LinkState::Up, mtu: interface.mtu },
            rings: interface.queues(),
            netns: LastingNetns::of(&caller.netns),
            losses: DeviceLosses::new(netns, interface.clone(), losses),
            asked_mode: how.mode,
            returned: false,
            attachment,
        };
        let id = registry.add_port(full, Some(key), caller.uid, region, backend);
        registry.ports.name(full, id);
        if let Err(error) = registry.watches.add(id, full, watch) {
            Attached::detach(registry, id);
            return Err(error);
        }
        Ok(bridge_port)
    }

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
enum Egress {
    /// It is dropped; or it goes to the host end, which is a port of the bridge.
    Redirect(EgressRedirect, Option<HostEnd>),
    /// The switch's program has it, and forwards what it knows.
    Switched(SwitchedStack),
}

impl Egress {
    /// Bytes that frames to and from the stack have.
    fn memory(&self) -> u64 {
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

/// The NIC, and the stack behind it, as ports of a bridge.
struct Opened {
    watch: LinkWatch,
    losses: Option<Vec<LossCounter>>,
    nic: BridgedNic,
    egress: Egress,
    stack_port: Option<Box<dyn BridgePort>>,
}

/// Opens them for the calling thread's network namespace.
fn open(
    interface: &Interface,
    request: ModeRequest,
    with_stack: bool,
    fast: std::result::Result<&Arc<FastSwitch>, &str>,
) -> Result<Opened> {
    let (watch, losses) = (watch(interface)?, losses(interface).ok());
    let nic = BridgedNic::open(interface, request, with_stack, fast)?;
    let (egress, stack_port) = open_egress(interface, &nic, with_stack).map_err(nic_error)?;
    Ok(Opened { watch, losses, nic, egress, stack_port })
}

fn open_egress(
    interface: &Interface,
    nic: &BridgedNic,
    with_stack: bool,
) -> std::result::Result<(Egress, Option<Box<dyn BridgePort>>), ringway_nic_setup::Error> {
    if let (true, Some(fast)) = (with_stack, &nic.fast) {
        let (stack, port) = fast.program.attach_stack(interface)?;
        return Ok((Egress::Switched(stack), Some(Box::new(port))));
    }
    let redirect = EgressRedirect::begin(interface)?;
    if !with_stack {
        return Ok((Egress::Redirect(redirect, None), None));
    }
    let mut end = HostEnd::new(interface, 1)?;
    end.set_inject_mark(nic.inject_mark);
    let port = end.inside(open_nic_port)?;
    Ok((Egress::Redirect(redirect, Some(end)), Some(Box::new(port))))
}
