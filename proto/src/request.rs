//! Requests and replies: the vocabulary of the daemon's socket.

use ringway_abi::{
    Dir, nmreq_pools_info, nmreq_port_info_get, nmreq_register, nmreq_vale_list, nmreq_vale_newif,
    nmreq_vale_polling,
};
use ringway_flow::Flow;
use serde::{Deserialize, Serialize};

use crate::{
    filter::{Filter, RxSelector},
    grant::{Grant, MirrorGrant},
    info::{BridgeInfo, PortInfo, RegionInfo, RingInfo},
    nic_mode::NicMode,
    options::Options,
    steering::Steered,
    switch::{Forwarding, PortSettings},
};

/// What a client may ask. The first group is netmap's, the second Ringway's own.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Request {
    /// Bind this handle to a port (S-REG).
    Register { name: String, reg: nmreq_register, options: Box<Options> },
    /// Undo the registration of this handle: an option failed that the client carries out.
    Unregister,
    /// What is this handle bound to? For a process that was handed an open fd.
    Describe,
    /// Another connection, unbound. Who has closed this one and is answered on the other knows that
    /// the daemon has seen it, and has let go of what nobody else holds.
    Barrier,
    /// Who monitors a ring that this handle is bound to, now that it says that this has changed?
    Mirrors { dir: Dir, index: u16 },
    /// The way to the stack behind this handle's port, for transparent mode: a socket.
    Stack,
    /// S-MEM-11.
    PortInfo { name: String, mem_id: u16 },
    /// S-MEM-12.
    PoolsInfo { name: String, mem_id: u16 },
    /// S-VALE-16. An interface is to be in this mode, and no other.
    ValeAttach { name: String, reg: nmreq_register, mode: Option<NicMode> },
    /// S-VALE-17.
    ValeDetach { name: String },
    /// S-VALE-18.
    ValeList { name: String, from: nmreq_vale_list },
    /// S-VALE-12.
    ValeNewif { name: String, conf: nmreq_vale_newif },
    /// S-VALE-15.
    ValeDelif { name: String },
    /// S-VHDR-1.
    PortHdrSet { name: String, len: u32 },
    /// S-VHDR-1.
    PortHdrGet { name: String },
    /// S-VALE-19: on if `enable`.
    ValePolling { name: String, enable: bool, conf: nmreq_vale_polling },

    /// Make a bridge that stays although it has no ports.
    SwitchNew { bridge: String },
    /// Take all attached NICs and host stacks off a bridge, and let it go with its last port.
    SwitchDelete { bridge: String },
    /// Choose the forwarding function of a bridge.
    SwitchForward { bridge: String, forwarding: Forwarding },
    /// Change how a port of a bridge, by its full name, takes part.
    SwitchPort { name: String, settings: PortSettings },
    /// All bridges with their ports and counters.
    Switches,
    /// All ports.
    Ports,
    /// The rings of a port, by its number in the answer to [`Ports`](Request::Ports).
    Rings { port: u64 },
    /// All regions.
    Regions,

    /// Change which frames of an open NIC port are led to it: of one receive ring, or of all that
    /// programs have; without a name, of those that this handle has. `None`: all frames.
    SetFilter { name: String, rings: RxSelector, filter: Option<Filter> },
    /// Lead the frames of a receive queue to the program that has its ring, or to the stack.
    RedirectQueue { name: String, ring: u16, lead: bool },
    /// Keep everything but these flows off a queue of a NIC, as long as this handle is open.
    Steer { interface: String, queue: u16, flows: Vec<Flow> },
}

impl Request {
    /// The name that it is about, if any.
    pub fn name(&self) -> &str {
        match self {
            Request::Register { name, .. }
            | Request::PortInfo { name, .. }
            | Request::PoolsInfo { name, .. }
            | Request::ValeAttach { name, .. }
            | Request::ValeDetach { name }
            | Request::ValeList { name, .. }
            | Request::ValeNewif { name, .. }
            | Request::ValeDelif { name }
            | Request::PortHdrSet { name, .. }
            | Request::PortHdrGet { name }
            | Request::ValePolling { name, .. }
            | Request::SetFilter { name, .. }
            | Request::RedirectQueue { name, .. }
            | Request::SwitchPort { name, .. }
            | Request::Steer { interface: name, .. } => name,
            Request::SwitchNew { bridge }
            | Request::SwitchDelete { bridge }
            | Request::SwitchForward { bridge, .. } => bridge,
            Request::Unregister
            | Request::Describe
            | Request::Barrier
            | Request::Mirrors { .. }
            | Request::Stack
            | Request::Switches
            | Request::Ports
            | Request::Rings { .. }
            | Request::Regions => "",
        }
    }
}

/// The answer to a [`Request`], where it succeeded.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Reply {
    Done,
    Granted(Box<Grant>),
    /// The monitors, those who take buffers from one another in their order.
    Mirrors(Vec<MirrorGrant>),
    PortInfo(nmreq_port_info_get),
    PoolsInfo(nmreq_pools_info),
    /// Index of a port within its bridge.
    Index(u32),
    ValeList {
        name: String,
        at: nmreq_vale_list,
    },
    Newif(nmreq_vale_newif),
    /// Length of the virtio-net header of a port.
    PortHdr(u32),
    Switches(Vec<BridgeInfo>),
    Ports(Vec<PortInfo>),
    Rings(Vec<RingInfo>),
    Regions(Vec<RegionInfo>),
    Steered(Steered),
}
