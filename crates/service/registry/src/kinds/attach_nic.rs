//! A NIC joins a bridge (S-VALE-16), as a [transaction](crate::transaction).

use std::sync::Arc;

use ringway_nic_setup::{
    EgressRedirect, HostEnd, Interface, Link, LinkState, LinkWatch, LossCounter, losses,
    open_nic_port,
};
use ringway_proto::{Error, NicMode, Reply, Result};
use ringway_switch_port::Port as BridgePort;
use ringway_vale::PortConfig;

use crate::{
    added_queues::QueueCount,
    bridged_nic::{BridgedNic, memory_of},
    bridges::{BridgePortRef, Bridges, HeldPlaces},
    caller::Caller,
    charge::Charge,
    device_losses::DeviceLosses,
    fast_switch::FastSwitch,
    interfaces::{allowed_all, look_up, nic_key, not_private},
    keys::plain_key,
    kinds::{
        attached::{Attach, Attached, Attachment, Egress},
        nic::ring_counts,
        persistent::stack_name,
    },
    lasting::LastingNetns,
    link_events::watch,
    netns::OpenNetns,
    nic_mode::ModeRequest,
    port::PortId,
    regions::RegionKey,
    registry::Registry,
    setup_error::nic_error,
    subject::{NicKey, Subject},
    transaction::{Answer, Failed, Makes, Needs, Plan, plain},
};

/// What is known of the interface.
pub(crate) struct Facts {
    interface: Interface,
    netns: OpenNetns,
}

/// What is going to be attached, and where.
pub(crate) struct AttachNic {
    uid: u32,
    bridge: String,
    /// By which the port is found: its name on the bridge, and its interface's.
    full: String,
    key: String,
    nic: NicKey,
    interface: Interface,
    netns: OpenNetns,
    lasting_netns: LastingNetns,
    /// Whether the stack behind it comes along, as a second port.
    stack: bool,
    /// This and no other, or the best there is.
    mode: Option<NicMode>,
}

/// The NIC, and the stack behind it, as ports of a bridge.
pub(crate) struct Opened {
    watch: LinkWatch,
    losses: Option<Vec<LossCounter>>,
    nic: BridgedNic,
    egress: Egress,
    stack_port: Option<Box<dyn BridgePort>>,
}

/// The NIC has its places, and is watched for the port that is about to be made.
struct Joined {
    id: PortId,
    region: RegionKey,
    bridge_port: BridgePortRef,
    losses: Option<Vec<LossCounter>>,
    attachment: Attachment,
}

impl Facts {
    /// As long as the interface has not been looked up, the request fails, without a lasting change.
    pub fn of(caller: &Caller, ifname: &str) -> Result<Facts> {
        let interface = look_up(ifname, caller)?;
        allowed_all(caller, ifname)?;
        not_private(&interface)?;
        Ok(Facts { interface, netns: OpenNetns::of(&caller.netns)? })
    }

    /// What the interface is called, whichever of its names was asked for.
    pub fn name(&self) -> &str {
        &self.interface.name
    }
}

impl AttachNic {
    /// An interface, as the caller calls it, joins a bridge by the name `full`.
    pub fn plan(
        registry: &Registry,
        caller: &Caller,
        (bridge, ifname, full): (&str, &str, &str),
        how: &Attach,
        facts: Facts,
    ) -> Result<AttachNic> {
        let Facts { interface, netns } = facts;
        if !interface.ethernet {
            // A loopback would give back what it is sent, to be sent round for ever.
            return Err(Error::invalid("no Ethernet interface, so it cannot be on a switch")
                .at(ifname)
                .remedy("attach one that `ip link` shows as link/ether"));
        }
        if !how.all_rings {
            return Err(Error::invalid("a NIC is attached with all its rings").at(full));
        }
        let plan = AttachNic {
            uid: caller.uid,
            bridge: bridge.into(),
            full: full.into(),
            key: plain_key(&interface.name, caller),
            nic: nic_key(caller, &interface),
            interface,
            netns,
            lasting_netns: LastingNetns::of(&caller.netns),
            stack: how.stack,
            mode: how.mode,
        };
        plan.check_names(registry).map_err(|e| e.at(ifname))?;
        let memory = plan.needs().memory;
        registry.bridges.check_room(bridge, plan.uid, plan.ports())?;
        registry.regions.check_asked(plan.uid, memory).map_err(|e| e.at(full))?;
        Ok(plan)
    }

    pub fn carry_out(self, registry: &mut Registry) -> Error {
        let step = self.step(&mut registry.bridges);
        registry.carry_out(self, step)
    }

    fn step(&self, bridges: &mut Bridges) -> impl Makes<Opened> + use<> {
        let (netns, interface) = (self.netns.clone(), self.interface.clone());
        let (request, stack) = (self.request(), self.stack);
        let fast = bridges.fast_switch(&self.bridge, self.nic.0);
        move || {
            let fast = fast.as_ref().map_err(|why| *why);
            netns.inside(|| open(&interface, request, stack, fast)).flatten()
        }
    }

    fn check_names(&self, registry: &Registry) -> Result<()> {
        let mut there =
            [&self.key, &self.full].into_iter().filter_map(|name| registry.ports.named(name));
        let Some(port) = there.next().and_then(|id| registry.ports.get(id)) else { return Ok(()) };
        let problem = match port.get::<Attached>() {
            Some(_) => format!("attached to a switch already, as {}", port.name),
            None => "open, or attached to a switch already".into(),
        };
        Err(Error::busy(problem).at(&self.interface.name).remedy("close or detach it first"))
    }

    /// Places on the bridge.
    fn ports(&self) -> usize {
        1 + usize::from(self.stack)
    }

    /// Its sockets stay in this process.
    fn request(&self) -> ModeRequest {
        ModeRequest { mode: self.mode, ..ModeRequest::ANY }
    }

    /// Does what may fail, and takes no time.
    fn join(
        &self,
        registry: &mut Registry,
        opened: Opened,
        memory: Charge,
    ) -> Result<Joined, Failed> {
        let AttachNic { uid, full, .. } = self;
        let bytes = opened.nic.held.memory + opened.egress.memory();
        let charged = self.check_names(registry).and_then(|()| {
            let memory = registry.regions.recharge(*uid, memory, bytes);
            memory.map_err(|e| e.at(full))
        });
        let charged = charged.and_then(|charge| Ok((charge, registry.regions.global(*uid)?)));
        let (charge, region) = match charged {
            Ok(charged) => charged,
            Err(error) => return Err(Failed::new(error, opened)),
        };
        let Opened { watch, losses, nic, egress, stack_port } = opened;
        let BridgedNic { port, held, fast, .. } = nic;
        let table = fast.map(|fast| fast.table.clone());
        let mut attachment = Attachment::new(egress, held, charge);
        let id = registry.ports.next_id();
        let bridges = &mut registry.bridges;
        let failed = match self.take_places(bridges, &mut attachment, (port, table), stack_port) {
            Ok(bridge_port) => match registry.watches.add(id, full, watch) {
                Ok(()) => return Ok(Joined { id, region, bridge_port, losses, attachment }),
                Err(error) => {
                    let places = attachment.places(&bridge_port);
                    let closed: Vec<_> = places.filter_map(|place| bridges.detach(place)).collect();
                    Failed::new(error, closed)
                }
            },
            Err(failed) => failed.and(watch),
        };
        registry.regions.drop_unused(region);
        Err(failed.and(attachment))
    }

    /// The NIC's place on the bridge, and one for the stack behind it: both or none.
    fn take_places(
        &self,
        bridges: &mut Bridges,
        attachment: &mut Attachment,
        (port, table): (Box<dyn BridgePort>, Option<Arc<ringway_fastpath::FastPath>>),
        stack_port: Option<Box<dyn BridgePort>>,
    ) -> Result<BridgePortRef, Failed> {
        let AttachNic { uid, bridge, full, interface, .. } = self;
        // Longer frames with headers are cut to what fits the interface.
        let config = PortConfig { max_frame: interface.longest_frame(), ..PortConfig::default() };
        let of_nic = PortConfig { is_interface: true, ..config.clone() };
        let place = match bridges.attach_interface(*uid, bridge, full, port, of_nic, table) {
            Ok(place) => place,
            Err((error, port)) => return Err(Failed::new(error, (port, stack_port))),
        };
        attachment.has_place(&place);
        let Some(port) = stack_port else { return Ok(place) };
        let of_stack = PortConfig { leads_on: true, ..config };
        let stack = match attachment.begin_egress() {
            Ok(()) => {
                let name = stack_name(full);
                bridges.attach_interface(*uid, bridge, &name, port, of_stack, None)
            }
            Err(error) => Err((error, Some(port))),
        };
        match stack {
            Ok(stack) => {
                attachment.stack_has_place(stack);
                Ok(place)
            }
            Err((error, port)) => Err(Failed::new(error, (port, bridges.detach(&place)))),
        }
    }

    /// Enters the port. Nothing of it fails.
    fn enter(self, registry: &mut Registry, joined: Joined) -> Reply {
        let Joined { id, region, bridge_port, losses, attachment } = joined;
        let AttachNic { uid, bridge, full, key, interface, netns, .. } = self;
        let by_itself = registry.expected.comes_by_itself(&full);
        let index = bridge_port.index.into();
        let backend = Attached {
            bridge_port,
            key: self.nic,
            polling: None,
            link: Link { state: LinkState::Up, mtu: interface.mtu },
            rings: ring_counts(&interface),
            queue_count: QueueCount::of(&interface),
            netns: self.lasting_netns,
            losses: DeviceLosses::new(netns, interface, losses, 0),
            asked_mode: self.mode,
            returned: by_itself,
            attachment,
        };
        let added = registry.add_port(&full, Some(key), uid, region, backend);
        debug_assert_eq!(added, id, "it is watched by that id");
        registry.ports.name(&full, id);
        let Registry { ports, bridges, expected, .. } = registry;
        if let Some(cpus) = expected.attached_again(&bridge, &full, bridges)
            && let Some(nic) = ports.port_mut(id).get_mut::<Attached>()
        {
            nic.set_polling(Some(cpus), bridges);
        }
        Reply::Index(index)
    }
}

impl Plan for AttachNic {
    type Made = Opened;

    fn subject(&self) -> Subject {
        self.nic.into()
    }

    fn needs(&self) -> Needs {
        let (bridge, uid, ports) = (self.bridge.clone(), self.uid, self.ports());
        Needs {
            names: vec![self.full.clone(), self.key.clone()],
            places: Some(HeldPlaces { bridge, uid, ports }),
            memory: memory_of(&self.interface, self.request(), self.stack),
            ..Needs::nothing(uid)
        }
    }

    fn commit(
        self,
        registry: &mut Registry,
        opened: Opened,
        memory: Charge,
    ) -> Result<Answer, Failed> {
        let joined = self.join(registry, opened, memory)?;
        Ok(plain(self.enter(registry, joined)))
    }
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
