//! Requests and replies.

use ringway_abi::Dir;
use ringway_flow::Flow;
use serde::{Deserialize, Serialize};

use crate::{
    action::Action,
    daemon::DaemonInfo,
    event::{EventPage, Level},
    filter::{Filter, RxSelector},
    grant::{Grant, MirrorGrant},
    info::{
        BridgeInfo, DeviceCounter, NameConflict, PortInfo, RegionInfo, RegionPosition, RingInfo,
    },
    nic_mode::NicMode,
    options::Options,
    parameters::Parameters,
    pools::Pools,
    registration::{PortGeometry, PortShape, Registration},
    steering::Steered,
    switch::{
        AddressInfo, Forwarding, GroupInfo, Multicast, Polling, PortSettings, SwitchMirror,
        SwitchPosition,
    },
};

/// What a client may ask.
///
/// A `name` is that of the port, with its switch's where it has one; `mem_id` the region that it is, or is
/// to be, in, or 0.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[allow(missing_docs)] // The variants say what their fields are.
pub enum Request {
    /// Bind this handle to a port (S-REG).
    Register { name: String, registration: Registration, options: Box<Options> },
    /// Undo the registration of this handle: an option failed that the client carries out.
    Unregister,
    /// What is this handle bound to? For a process that was handed an open descriptor.
    Describe,
    /// Another connection, unbound. A client that has closed this one and is answered on the other
    /// knows that the daemon has seen it, and has let go of what no other process holds.
    Barrier,
    /// Which monitors has a ring that this handle is bound to, now that it says that this has changed?
    Mirrors { dir: Dir, index: u16 },
    /// The way to the stack behind this handle's port, for transparent mode: a socket.
    Stack,

    /// Rings, slots and memory of a port (S-MEM-11).
    PortGeometry { name: String, mem_id: u16 },
    /// The pools of a port's region (S-MEM-12); without a name, those of region `mem_id`.
    Pools { name: String, mem_id: u16 },
    /// Make a persistent port: a port, and a network device of that name (S-VALE-12).
    NewInterface { name: String, shape: PortShape },
    /// Delete a persistent port (S-VALE-15).
    DeleteInterface { name: String },
    /// Set the bytes of the virtio-net header in front of each packet of a port (S-VHDR-1).
    SetHeaderLen { name: String, len: u32 },
    /// That length (S-VHDR-1).
    HeaderLen { name: String },

    /// Attach an interface or a persistent port to a switch, under its full name `vale0:eth0`
    /// (S-VALE-16). `stack`: with the host's stack behind it as a second port. `all_rings` is false
    /// where the client wants less than all of an interface, which is refused. The interface is to be
    /// in this mode, and no other.
    SwitchAttach { name: String, stack: bool, all_rings: bool, mem_id: u16, mode: Option<NicMode> },
    /// Take such a port off its switch (S-VALE-17).
    SwitchDetach { name: String },
    /// Where is the port of that name? Without a name: the first port at that position or after it
    /// (S-VALE-18).
    SwitchFind { name: String, from: SwitchPosition },
    /// Have processors poll an attached interface, or not any more (S-VALE-19).
    SwitchPoll { name: String, enable: bool, polling: Polling },
    /// Make a switch that stays although it has no ports.
    SwitchNew {
        /// Its name.
        bridge: String,
        /// Each program's port that joins it may send with one source address only.
        one_address: bool,
    },
    /// Take all attached NICs and host stacks off a switch, and let it go with its last port.
    SwitchDelete { bridge: String },
    /// Choose the forwarding function of a switch.
    SwitchForward { bridge: String, forwarding: Forwarding },
    /// Change how a port of a switch, by its full name, takes part.
    SwitchPort { name: String, settings: PortSettings },
    /// All switches with their ports and counters.
    Switches {
        /// The first port of the page.
        from: SwitchPosition,
    },
    /// All ports.
    Ports {
        /// The number of the first port of the page, or one before it.
        from: u64,
    },
    /// The rings of a port, by its number in the answer to [`Ports`](Request::Ports).
    Rings {
        /// The number of the port.
        port: u64,
        /// The first ring of the page.
        from: u32,
    },
    /// All regions.
    Regions {
        /// The first region of the page, or one before it.
        from: RegionPosition,
    },

    /// Change which frames of an open NIC port are redirected to it: of one receive ring, or of all
    /// that programs have; without a name, of those that this handle has. `None`: all frames.
    SetFilter { name: String, rings: RxSelector, filter: Option<Filter> },
    /// Redirect the frames of receive queues to the programs that have their rings, or leave them to the
    /// stack: of all these queues, or of none if a program is missing.
    RedirectQueues { name: String, queues: Vec<u16>, to_program: bool },
    /// Keep everything but these flows off a queue of a NIC, as long as this handle is open.
    Steer { interface: String, queue: u16, flows: Vec<Flow> },

    /// What the daemon is configured to do for all ports (S-PARAM).
    Parameters,
    /// Take several ports off a switch, as [`SwitchDetach`](Request::SwitchDetach) does: all, or none
    /// if one of them cannot be.
    SwitchDetachAll { bridge: String, ports: Vec<String> },
    /// Change the action program of an open NIC port, as [`SetFilter`](Request::SetFilter) changes the filter.
    /// `None`: it has none.
    SetAction { name: String, rings: RxSelector, action: Option<Action> },
    /// Which names were asked for lately that are for others: root sees all, others see what they
    /// asked for and what is theirs.
    NameConflicts,
    /// Which address a switch knows behind which port.
    SwitchAddresses {
        /// The switch.
        bridge: String,
        /// The first address of the page.
        from: u32,
    },
    /// Which counters of losses of a NIC port's interface have grown since the port was opened.
    DeviceCounters {
        /// The number of the port, in the answer to [`Ports`](Request::Ports).
        port: u64,
        /// The first counter of the page, by its place among all that there were when the port was opened.
        from: u32,
    },
    /// Say which port of a switch that learns an address is behind: it neither ages nor moves.
    SwitchAddressAdd {
        /// The switch.
        bridge: String,
        /// The address.
        mac: [u8; 6],
        /// The VLAN that it is in; 0: none.
        vlan: u16,
        /// The port.
        port: String,
    },
    /// Have a switch forget an address, whether it was learned or added.
    SwitchAddressDelete {
        /// The switch.
        bridge: String,
        /// The address.
        mac: [u8; 6],
        /// The VLAN that it is in; 0: none.
        vlan: u16,
    },
    /// Have a switch forget what it has learned.
    SwitchAddressesFlush {
        /// The switch.
        bridge: String,
        /// Of this port alone.
        port: Option<String>,
        /// In this VLAN alone; 0: in none.
        vlan: Option<u16>,
        /// Addresses that were added, too.
        added: bool,
    },
    /// What is the daemon, and how long does it take?
    Daemon,
    /// Events of the daemon's log: root, and the user of a private daemon, see all, other users what concerns
    /// themselves.
    Events {
        /// The number of the first event of the page, or one before it.
        from: u64,
        /// Answer when there is something.
        wait: bool,
    },
    /// Have the daemon log what matters as much as this, and more.
    LogLevel(Level),
    /// Choose what becomes of frames for groups of IP on a switch that learns.
    SwitchMulticast {
        /// The switch.
        bridge: String,
        /// What becomes of them.
        multicast: Multicast,
    },
    /// Which port of a switch that snoops is in which group.
    SwitchGroups {
        /// The switch.
        bridge: String,
        /// The first entry of the page.
        from: u32,
    },
    /// Set a mirror of a switch. One of that name, with other settings, is not replaced.
    SwitchMirrorAdd {
        /// The switch.
        bridge: String,
        /// The mirror.
        mirror: Box<SwitchMirror>,
    },
    /// Remove a mirror of a switch.
    SwitchMirrorDelete {
        /// The switch.
        bridge: String,
        /// The name of the mirror.
        mirror: String,
    },
    /// This number, as the index of a port.
    #[cfg(feature = "next")]
    Next(u32),
}

impl Request {
    /// The name that it is about, if any.
    pub fn name(&self) -> &str {
        match self {
            Request::Register { name, .. }
            | Request::PortGeometry { name, .. }
            | Request::Pools { name, .. }
            | Request::NewInterface { name, .. }
            | Request::DeleteInterface { name }
            | Request::SetHeaderLen { name, .. }
            | Request::HeaderLen { name }
            | Request::SwitchAttach { name, .. }
            | Request::SwitchDetach { name }
            | Request::SwitchFind { name, .. }
            | Request::SwitchPoll { name, .. }
            | Request::SetFilter { name, .. }
            | Request::SetAction { name, .. }
            | Request::RedirectQueues { name, .. }
            | Request::SwitchPort { name, .. }
            | Request::Steer { interface: name, .. } => name,
            Request::SwitchNew { bridge, .. }
            | Request::SwitchDelete { bridge }
            | Request::SwitchDetachAll { bridge, .. }
            | Request::SwitchForward { bridge, .. }
            | Request::SwitchMulticast { bridge, .. }
            | Request::SwitchGroups { bridge, .. }
            | Request::SwitchMirrorAdd { bridge, .. }
            | Request::SwitchMirrorDelete { bridge, .. }
            | Request::SwitchAddresses { bridge, .. }
            | Request::SwitchAddressAdd { bridge, .. }
            | Request::SwitchAddressDelete { bridge, .. }
            | Request::SwitchAddressesFlush { bridge, .. } => bridge,
            Request::Unregister
            | Request::Describe
            | Request::Barrier
            | Request::Mirrors { .. }
            | Request::Stack
            | Request::Switches { .. }
            | Request::Ports { .. }
            | Request::Rings { .. }
            | Request::DeviceCounters { .. }
            | Request::Regions { .. }
            | Request::Parameters
            | Request::Daemon
            | Request::NameConflicts
            | Request::Events { .. }
            | Request::LogLevel(_) => "",
            #[cfg(feature = "next")]
            Request::Next(_) => "",
        }
    }
}

/// The answer to a [`Request`], where it succeeded. Descriptors travel beside it: what refers to one
/// does so by its place among them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Reply {
    /// There is nothing to say.
    Done,
    /// What the handle is bound to.
    Granted(Box<Grant>),
    /// The monitors, those that take buffers from one another in their order.
    Mirrors(Vec<MirrorGrant>),
    /// Rings and memory of a port.
    PortGeometry(PortGeometry),
    /// The pools of a region.
    Pools(Pools),
    /// A persistent port as it has become.
    NewInterface(PortShape),
    /// Bytes of the virtio-net header of a port: 0, 10 or 12.
    HeaderLen(u32),
    /// Index of a port within its switch.
    Index(u32),
    /// A port of a switch.
    SwitchFound {
        /// Its full name.
        name: String,
        /// Where it is.
        at: SwitchPosition,
    },
    /// All switches.
    Switches {
        /// They, each with its ports; of the first one and of the last, a part of them perhaps.
        switches: Vec<BridgeInfo>,
        /// Where the next page begins, if there is one.
        next: Option<SwitchPosition>,
    },
    /// All ports.
    Ports {
        /// They, by their numbers.
        ports: Vec<PortInfo>,
        /// Where the next page begins, if there is one.
        next: Option<u64>,
    },
    /// The rings of a port.
    Rings {
        /// They: tx before rx, those of the host last.
        rings: Vec<RingInfo>,
        /// Where the next page begins, if there is one.
        next: Option<u32>,
    },
    /// All regions.
    Regions {
        /// They, by user and id.
        regions: Vec<RegionInfo>,
        /// Where the next page begins, if there is one.
        next: Option<RegionPosition>,
    },
    /// What was changed to keep other traffic off the queue.
    Steered(Steered),
    /// The parameters of netmap's module, as they are here.
    Parameters(Parameters),
    /// Names that users could not have, because they are for others.
    NameConflicts(Vec<NameConflict>),
    /// The addresses that a switch knows.
    SwitchAddresses {
        /// They, in no order.
        addresses: Vec<AddressInfo>,
        /// Where the next page begins, if there is one.
        next: Option<u32>,
    },
    /// Counters of an interface that have grown.
    DeviceCounters {
        /// They, the interface's before the driver's.
        counters: Vec<DeviceCounter>,
        /// Where the next page begins, if there is one.
        next: Option<u32>,
    },
    /// The daemon.
    Daemon(DaemonInfo),
    /// A part of the log.
    Events(EventPage),
    /// What a switch knows of groups.
    SwitchGroups {
        /// Queriers and routers, ports that get all groups, and members of groups.
        groups: Vec<GroupInfo>,
        /// Where the next page begins, if there is one.
        next: Option<u32>,
    },
}
