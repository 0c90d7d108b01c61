//! The kinds of ports: what makes a port what it is, one file for each.
//!
//! The registry's own code knows ports, rings, names and regions, and asks a port's [`PortBackend`]
//! where the answer depends on the kind. A new kind is a file here with its state and its backend,
//! and a line in [`OPENERS`], which says when a registration is for it.

use std::{any::Any, ops::Range};

use ringway_abi::Dir;
use ringway_nic_setup::Link;
use ringway_proto::{
    ActionInfo, Cause, Error, FilterInfo, Offsets, PortKind, Registration, Result, RingBackend,
};

use crate::{
    added_queues::QueueCount,
    bind_reply::Fds,
    bridges::BridgePortRef,
    caller::Caller,
    device_losses::DeviceLosses,
    name::PortName,
    nic_mode::ModeRequest,
    port::{Port, PortId, Shape},
    queues::Socket,
    registry::Registry,
    selection::Selection,
    settings::Settings,
    subject::Subject,
};

pub(crate) mod attach_nic;
pub(crate) mod attach_persistent;
pub(crate) mod attached;
pub(crate) mod connect_host;
pub(crate) mod make_persistent;
pub(crate) mod monitor;
pub(crate) mod nic;
pub(crate) mod nic_filters;
pub(crate) mod nic_intake;
pub(crate) mod nic_mtu;
pub(crate) mod nic_queues;
pub(crate) mod nic_receiving;
pub(crate) mod nic_sockets;
pub(crate) mod nic_stack;
pub(crate) mod null;
pub(crate) mod open_queues;
pub(crate) mod parent;
pub(crate) mod persistent;
pub(crate) mod persistent_host;
pub(crate) mod persistent_switch;
pub(crate) mod pipe;
pub(crate) mod vale;

/// Who may claim a registration, in the order in which they are asked (S-REG-2).
const OPENERS: [Opener; 7] = [
    null::Null::open,
    monitor::Monitor::open,
    pipe::Pipe::open,
    vale::Vale::open,
    persistent::Persistent::open,
    parent::Parent::open,
    nic::Nic::open,
];

type Opener = fn(&mut Registry, &OpenRequest<'_>) -> Result<Option<PortId>>;

/// What a registration asks for, before there is a port.
#[derive(Clone, Copy)]
pub(crate) struct OpenRequest<'a> {
    pub caller: &'a Caller,
    pub name: &'a str,
    pub reg: &'a Registration,
    /// No program is to have the port: of a switch it is on none.
    pub is_question: bool,
}

impl<'a> OpenRequest<'a> {
    /// What the name stands for.
    pub fn port_name(&self) -> Result<PortName<'a>> {
        PortName::parse(self.name, Cause::NoRoom)
    }
}

/// A ring of a port that a binding is given.
pub(crate) struct RingAt<'a> {
    pub registry: &'a Registry,
    pub port: &'a Port,
    pub dir: Dir,
    pub index: u16,
}

impl RingAt<'_> {
    /// Its number among the host rings, if it is one.
    pub fn host(&self) -> Option<u32> {
        let nic = self.port.nic_rings(self.dir).len() as u32;
        u32::from(self.index).checked_sub(nic)
    }
}

/// What only some kinds can tell about a port, for display.
#[derive(Default)]
pub(crate) struct KindInfo {
    pub mode: Option<String>,
    pub mtu: Option<u32>,
    /// Queues whose frames are redirected to programs.
    pub queues: Vec<u32>,
    pub filters: Vec<FilterInfo>,
    pub actions: Vec<ActionInfo>,
}

/// Whether the objects of a port's region may be handed out anew.
pub(crate) enum RingUse {
    /// Something uses them.
    InUse,
    /// The port has none of them.
    NoRings,
    /// Only a switch serves the rings, which can be made anew.
    Served(BridgePortRef),
}

/// What the registry asks of a kind of port.
///
/// Questions go to the kind's state. What changes the registry's book is given the registry and the
/// port's id instead, because it may touch other ports as well.
pub(crate) trait PortBackend: Acts + Any + Send {
    // --- What clients and users are told

    /// The kind's name; `None` for what no program can open and no user is shown.
    fn display_kind(&self) -> Option<PortKind>;

    /// How the program of a ring reaches what moves its packets.
    fn link(&self, at: &RingAt<'_>, fds: &mut Fds) -> Result<RingBackend>;

    /// Rings and slots, those of the host apart, whether they have been made yet or not.
    fn shape(&self, _settings: &Settings, port: &Port) -> Shape {
        port.made_shape()
    }

    fn info(&self, _registry: &Registry, _port: &Port) -> KindInfo {
        KindInfo::default()
    }

    /// What closing the port is about, if the kernel takes its time for that.
    fn closes_slowly(&self, _port: &Port) -> Option<Subject> {
        None
    }

    /// What its interface loses.
    fn device_losses(&self) -> Option<&DeviceLosses> {
        None
    }

    /// The inode number of its interface's network namespace.
    fn netns(&self, _registry: &Registry) -> Option<u64> {
        self.device_losses().and_then(DeviceLosses::netns)
    }

    /// Frames that the stack has sent by its interface while the host rings were not open.
    fn stack_dropped(&self, _registry: &Registry) -> u64 {
        0
    }

    /// Queues that its interface has got since, and that it has no rings for.
    fn added_queues(&self, _port: &Port) -> Range<u32> {
        0..0
    }

    /// By what these are known, for changes.
    fn queue_count(&mut self) -> Option<&mut QueueCount> {
        None
    }

    /// What gives it rings for them.
    fn how_to_reopen(&self) -> &'static str {
        "close the port in all programs, and open it again"
    }

    /// Whether its interface is watched, as long as that is there.
    fn is_watched(&self) -> bool {
        false
    }

    /// The kernel's socket behind a ring, which counts what it drops; `index` counts host rings apart.
    fn socket(&self, _host: bool, _index: u32) -> Option<&Socket> {
        None
    }

    // --- What it costs

    /// Descriptors of this process that the port holds besides the doorbells of its rings.
    fn descriptors(&self, _registry: &Registry, _port: &Port) -> usize {
        0
    }

    // --- What a registration may ask for

    /// Whether programs may have rings of the port now.
    fn check_bind(&self, _port: &Port) -> Result<()> {
        Ok(())
    }

    /// Host rings that the port has for a binding, tx before rx.
    fn asked_host(&self, port: &Port, _reg: &Registration) -> [u16; 2] {
        port.host.counts
    }

    /// Extra buffers that a binding is given at most.
    fn max_extra_bufs(&self, _port: &Port) -> u32 {
        u32::MAX
    }

    /// Whether packets may begin at offsets in their buffers; `receives`: also in receive rings.
    fn check_offsets(&self, _port: &Port, _asked: &Offsets, _receives: bool) -> Result<()> {
        Ok(())
    }

    // --- What it is tied to

    /// The port at the other end, whose rings are this one's.
    fn peer(&self) -> Option<PortId> {
        None
    }

    /// The port whose region it lives in, and which stays as long as it does.
    fn parent(&self) -> Option<PortId> {
        None
    }

    /// Whether a switch has it, and no program can: its packets move without one.
    fn is_switchs_own(&self) -> bool {
        false
    }

    /// Its side of a switch, for ports that a switch's worker serves.
    fn switch_side(&self) -> Option<&vale::SwitchSide> {
        None
    }

    fn switch_side_mut(&mut self) -> Option<&mut vale::SwitchSide> {
        None
    }

    /// Whether a switch is its program.
    fn is_joined(&self) -> bool {
        false
    }

    /// Its places on switches.
    fn bridge_ports(&self) -> Vec<BridgePortRef> {
        self.switch_side().and_then(|side| side.bridge_port.clone()).into_iter().collect()
    }

    /// Whether the worker of a switch of its own has lost it.
    fn has_lost_worker(&self) -> bool {
        false
    }

    /// Whether a user set the port up to stay without programs.
    fn is_set_up(&self) -> bool {
        false
    }

    /// Whether the port stays although no binding and no child refers to it.
    fn stays(&self, _registry: &Registry) -> bool {
        self.is_set_up()
    }

    fn ring_use(&self, _port: &Port) -> RingUse {
        RingUse::InUse
    }

    // --- What happens to it

    /// Readies the port for a binding of the rings `wanted`, tx before rx.
    fn bind(
        _registry: &mut Registry,
        _id: PortId,
        _wanted: &Selection,
        _request: ModeRequest,
    ) -> Result<()>
    where
        Self: Sized,
    {
        Ok(())
    }

    /// A binding has its rings. The flags of its registration may have outputs.
    fn bound(_registry: &mut Registry, _id: PortId, _reg: &mut Registration)
    where
        Self: Sized,
    {
    }

    /// The users of its rings are others than before.
    fn users_changed(_registry: &mut Registry, _id: PortId)
    where
        Self: Sized,
    {
    }

    /// The last binding has gone; the port may stay.
    fn unbind(_registry: &mut Registry, _id: PortId)
    where
        Self: Sized,
    {
    }

    /// Nothing refers to the port: it goes, with what only it held.
    fn reclaim(registry: &mut Registry, id: PortId)
    where
        Self: Sized,
    {
        registry.regions.free_rings_of(registry.ports.port_mut(id));
        registry.remove(id);
    }

    /// Connects host rings, which have just been made, with the stack.
    fn connect_host(_registry: &mut Registry, _id: PortId) -> Result<()>
    where
        Self: Sized,
    {
        Ok(())
    }

    /// No program has a host ring any more. False: they stay.
    fn disconnect_host(_registry: &mut Registry, _id: PortId) -> bool
    where
        Self: Sized,
    {
        true
    }

    /// Offsets of a ring have changed.
    fn offsets_changed(_registry: &mut Registry, _id: PortId, _dir: Dir, _ring: usize)
    where
        Self: Sized,
    {
    }

    /// The monitors of the port are others than before: `generation` tells so to what drives its rings.
    fn mirrors_changed(registry: &mut Registry, id: PortId, generation: u32)
    where
        Self: Sized,
    {
        registry.port(id).all_rings().for_each(|ring| ring.kring.set_monitors(generation));
    }

    /// What has become of the network interface that the port is tied to.
    fn link_changed(_registry: &mut Registry, _id: PortId, _link: Link)
    where
        Self: Sized,
    {
    }
}

/// The half of a [`PortBackend`] that acts, for a port whose kind is not known.
pub(crate) trait Acts {
    fn actions(&self) -> Actions;
}

impl<B: PortBackend> Acts for B {
    fn actions(&self) -> Actions {
        Actions {
            bind: B::bind,
            bound: B::bound,
            users_changed: B::users_changed,
            unbind: B::unbind,
            reclaim: B::reclaim,
            connect_host: B::connect_host,
            disconnect_host: B::disconnect_host,
            offsets_changed: B::offsets_changed,
            mirrors_changed: B::mirrors_changed,
            link_changed: B::link_changed,
        }
    }
}

/// See the functions of [`PortBackend`] with these names.
#[derive(Clone, Copy)]
pub(crate) struct Actions {
    pub bind: fn(&mut Registry, PortId, &Selection, ModeRequest) -> Result<()>,
    pub bound: fn(&mut Registry, PortId, &mut Registration),
    pub users_changed: fn(&mut Registry, PortId),
    pub unbind: fn(&mut Registry, PortId),
    pub reclaim: fn(&mut Registry, PortId),
    pub connect_host: fn(&mut Registry, PortId) -> Result<()>,
    pub disconnect_host: fn(&mut Registry, PortId) -> bool,
    pub offsets_changed: fn(&mut Registry, PortId, Dir, usize),
    pub mirrors_changed: fn(&mut Registry, PortId, u32),
    pub link_changed: fn(&mut Registry, PortId, Link),
}

impl Registry {
    /// The port that a registration names, made if it is of a kind that can be (S-REG-2).
    pub(crate) fn look_up(&mut self, request: &OpenRequest<'_>) -> Result<PortId> {
        for open in OPENERS {
            if let Some(id) = open(self, request)? {
                return Ok(id);
            }
        }
        Err(Error::absent(format!("{}: there is no such port", request.name)))
    }

    /// What changes the book on behalf of a port.
    pub(crate) fn actions(&self, id: PortId) -> Actions {
        self.port(id).backend.actions()
    }
}
