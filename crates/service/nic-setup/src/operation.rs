//! All that the helper does for the broker: the protocol between them.
//!
//! An operation names an interface, or brings the descriptors that it is about. What it may do is what this
//! file says: no operation takes an address or a path, and a program only as a user may give one, which the
//! helper [checks](crate::Action) again and loads without the privilege to see the kernel's memory. So a broker that an attacker
//! controls can have no other program loaded and no other file opened.

use std::{os::fd::AsFd, sync::Arc, thread};

use ringway_action::Program;
use ringway_flow::Flow;
use ringway_region::Mapping;
use ringway_xdp::{FrameMemory, RingSizes};
use rustix::fd::OwnedFd;
use serde::{Deserialize, Serialize};

use crate::{
    AttachMode, DeviceSettings, EgressRedirect, Error, Filter, IngressDrop, IngressRedirect,
    Interface, LinkWatch, Loader, Mode, OuterEnd, PairConfig, Promiscuous, QUEUES, RxSocket,
    Source, TxSocket, XdpProgram, Xsk, XskConfig, action,
    generate::Target,
    helper::Run,
    host,
    ingress_redirect::RedirectParts,
    losses::{LossCounter, losses_here, received_here},
    netns, packet,
    pair::{self, Pair},
    parcel::{self, Fd, Parcel},
    program::Made,
    rule::PackedRules,
    steer::{self, Plan},
    switch::{self, SwitchParts},
    sys,
    tc::Hook,
    tc::{self, Attachment, Lease},
    xsk::{BindConfig, RingSizesDef},
};

/// The operations, each with how it is packed when it has been carried out.
macro_rules! operations {
    ($($name:ident),* $(,)?) => {
        /// One of them.
        #[derive(Serialize, Deserialize)]
        pub(crate) enum Operation {
            $($name($name),)*
        }

        impl Operation {
            /// Its own name.
            #[cfg(feature = "simulated")]
            pub fn name(&self) -> &'static str {
                match self {
                    $(Operation::$name(_) => stringify!($name),)*
                }
            }

            /// For messages.
            pub fn interface(&self) -> &str {
                match self {
                    $(Operation::$name(operation) => operation.interface(),)*
                }
            }

            /// Carries it out; what has come of it, as a `Result`.
            pub fn carry_out(self) -> std::io::Result<Parcel> {
                match self {
                    $(Operation::$name(operation) => parcel::pack(&operation.run()),)*
                }
            }
        }

        $(impl From<$name> for Operation {
            fn from(operation: $name) -> Operation {
                Operation::$name(operation)
            }
        })*
    };
}

operations! {
    LookUp, Watch, ReadLosses, ReadReceived, NetnsCookie, NetnsOf, NamedNetns,
    AttachProgram, LoadRules, MakeXsk, BindXsk,
    OpenRxSocket, OpenMessages, OpenTxSocket, HasTcx, BeginIngressDrop, BeginIngressRedirect, HoldPromiscuous,
    MakeSwitchProgram, AttachSwitchProgram,
    BeginEgressRedirect, LoadEgressFilter, MakeHostEnd,
    MakePair, LookAtDevice, RemovePair,
    MakeFilter, MakeAction,
    MakePlan, CarryOutPlan, UndoPlan,
}

/// See [`Interface::by_name`].
#[derive(Serialize, Deserialize)]
pub(crate) struct LookUp {
    pub name: String,
}

impl Run for LookUp {
    type Output = Interface;
    const QUICK: bool = true;

    fn interface(&self) -> &str {
        &self.name
    }

    fn run(self) -> Result<Interface, Error> {
        Interface::by_name_here(&self.name)
    }
}

/// See [`LinkWatch::open`].
#[derive(Serialize, Deserialize)]
pub(crate) struct Watch {
    pub interface: Interface,
}

impl Run for Watch {
    type Output = LinkWatch;
    const QUICK: bool = true;

    fn interface(&self) -> &str {
        &self.interface.name
    }

    fn run(self) -> Result<LinkWatch, Error> {
        LinkWatch::open_here(&self.interface)
    }
}

/// See [`losses`](crate::losses()). Not quick: a driver may ask its card.
#[derive(Serialize, Deserialize)]
pub(crate) struct ReadLosses {
    pub name: String,
    pub index: u32,
}

impl Run for ReadLosses {
    type Output = Vec<LossCounter>;

    fn interface(&self) -> &str {
        &self.name
    }

    fn run(self) -> Result<Vec<LossCounter>, Error> {
        losses_here(&self.name, self.index)
    }
}

/// See [`received`](crate::received()). Not quick either.
#[derive(Serialize, Deserialize)]
pub(crate) struct ReadReceived {
    pub name: String,
    pub index: u32,
}

impl Run for ReadReceived {
    type Output = u64;

    fn interface(&self) -> &str {
        &self.name
    }

    fn run(self) -> Result<u64, Error> {
        received_here(&self.name, self.index)
    }
}

/// See [`netns_cookie`](crate::netns_cookie).
#[derive(Serialize, Deserialize)]
pub(crate) struct NetnsCookie;

impl Run for NetnsCookie {
    type Output = u64;
    const QUICK: bool = true;

    fn interface(&self) -> &str {
        ""
    }

    fn run(self) -> Result<u64, Error> {
        netns::cookie_here().map_err(netns::unknown)
    }
}

/// See [`netns_of`](crate::netns_of). The socket is a client's: it is asked for its namespace, and never
/// read.
#[derive(Serialize, Deserialize)]
pub(crate) struct NetnsOf {
    pub socket: Fd,
}

impl Run for NetnsOf {
    type Output = Fd;
    const QUICK: bool = true;

    fn interface(&self) -> &str {
        ""
    }

    fn run(self) -> Result<Fd, Error> {
        netns::netns_of_here(self.socket.as_fd()).map(Fd).map_err(netns::unknown)
    }
}

/// See [`named_netns`](crate::named_netns).
#[derive(Serialize, Deserialize)]
pub(crate) struct NamedNetns {
    pub cookie: u64,
}

impl Run for NamedNetns {
    type Output = Fd;
    const QUICK: bool = true;

    fn interface(&self) -> &str {
        ""
    }

    fn run(self) -> Result<Fd, Error> {
        netns::named_netns_here(self.cookie).map(Fd).map_err(netns::unknown)
    }
}

/// See [`XdpProgram::attach_as`].
#[derive(Serialize, Deserialize)]
pub(crate) struct AttachProgram {
    pub interface: Interface,
    pub modes: Vec<AttachMode>,
    pub what: Made,
}

impl Run for AttachProgram {
    type Output = XdpProgram;

    fn interface(&self) -> &str {
        &self.interface.name
    }

    fn run(self) -> Result<XdpProgram, Error> {
        let AttachProgram { interface, modes, what } = self;
        XdpProgram::attach_here(&interface, &modes, what)
    }
}

/// See [`Loader::load`].
#[derive(Serialize, Deserialize)]
pub(crate) struct LoadRules {
    pub loader: Loader,
    pub rules: PackedRules,
}

impl Run for LoadRules {
    /// The program, and the instructions that the verifier looked at.
    type Output = (Fd, u32);

    fn interface(&self) -> &str {
        self.loader.interface()
    }

    fn run(self) -> Result<(Fd, u32), Error> {
        if self.rules.queues() > QUEUES as usize {
            return Err(self.loader.too_many_queues());
        }
        self.loader.load_here(&self.rules.unpack())
    }
}

/// See [`Xsk::open_all`]: its sockets, bound to nothing yet.
#[derive(Serialize, Deserialize)]
pub(crate) struct MakeXsk {
    pub interface: Interface,
    pub queues: Vec<u32>,
    /// A memfd that is sealed, and which part of it the memory is.
    pub memfd: Fd,
    pub offset: u64,
    pub length: u64,
    pub chunk_size: u32,
    #[serde(with = "RingSizesDef")]
    pub sizes: RingSizes,
}

impl Run for MakeXsk {
    type Output = Vec<Fd>;

    fn interface(&self) -> &str {
        &self.interface.name
    }

    /// The kernel registers addresses of the process that asks. So the memory is mapped here for as long:
    /// then the kernel has its pages.
    fn run(self) -> Result<Vec<Fd>, Error> {
        let refused = || {
            Error::refused(
                &self.interface.name,
                "its frame memory cannot be mapped",
                "free memory, or raise the limit of open files",
            )
        };
        let invalid = || refused()(std::io::Error::from_raw_os_error(libc::EINVAL));
        let end = self.offset.checked_add(self.length).ok_or_else(invalid)?;
        let mapping = Mapping::open(&self.memfd, end as usize).map_err(refused())?;
        let memory = FrameMemory::of_mapping(&mapping, self.offset as usize).ok_or_else(invalid)?;
        let make = |&queue: &u32| {
            Xsk::make_here(&XskConfig {
                interface: &self.interface,
                queue,
                memory,
                chunk_size: self.chunk_size,
                sizes: self.sizes,
                frags: false,
                modes: &[],
            })
        };
        sys::populate(memory);
        let made = self.queues.iter().map(make).collect();
        unmap_elsewhere(mapping);
        made
    }
}

/// The same, by now with what the kernel is to receive into.
#[derive(Serialize, Deserialize)]
pub(crate) struct BindXsk {
    pub interface: Interface,
    pub queues: Vec<u32>,
    /// One for each queue.
    pub sockets: Vec<Fd>,
    pub chunk_size: u32,
    #[serde(with = "RingSizesDef")]
    pub sizes: RingSizes,
    pub frags: bool,
    pub modes: Vec<Mode>,
}

impl Run for BindXsk {
    type Output = Vec<Xsk>;

    fn interface(&self) -> &str {
        &self.interface.name
    }

    fn run(self) -> Result<Vec<Xsk>, Error> {
        let bind = |(&queue, socket)| {
            let config = BindConfig {
                interface: &self.interface,
                queue,
                chunk_size: self.chunk_size,
                sizes: self.sizes,
                frags: self.frags,
                modes: &self.modes,
            };
            Xsk::bind_here(&config, socket)
        };
        self.queues.iter().zip(self.sockets).map(bind).collect()
    }
}

/// Takes apart a map of many pages while what was done with it is answered.
fn unmap_elsewhere(mapping: Mapping) {
    // Where there can be no thread, it is done here.
    let _ = thread::Builder::new().name("unmap".into()).spawn(move || drop(mapping));
}

/// See [`RxSocket::open`].
#[derive(Serialize, Deserialize)]
pub(crate) struct OpenRxSocket {
    pub interface: String,
    pub ifindex: u32,
    pub queue: u32,
    pub queues: u32,
    pub ignored_mark: u32,
    pub hardware_time: bool,
}

impl Run for OpenRxSocket {
    type Output = RxSocket;

    fn interface(&self) -> &str {
        &self.interface
    }

    fn run(self) -> Result<RxSocket, Error> {
        RxSocket::open_here(&Source {
            interface: &self.interface,
            ifindex: self.ifindex,
            queue: self.queue,
            queues: self.queues,
            ignored_mark: self.ignored_mark,
            hardware_time: self.hardware_time,
        })
    }
}

/// As above, for messages.
#[derive(Serialize, Deserialize)]
pub(crate) struct OpenMessages {
    pub interface: String,
    pub ignored_mark: u32,
}

impl Run for OpenMessages {
    type Output = Fd;
    const QUICK: bool = true;

    fn interface(&self) -> &str {
        &self.interface
    }

    fn run(self) -> Result<Fd, Error> {
        packet::open_messages_here(&self.interface, self.ignored_mark)
    }
}

/// See [`TxSocket::open`].
#[derive(Serialize, Deserialize)]
pub(crate) struct OpenTxSocket {
    pub interface: String,
    pub ifindex: u32,
}

impl Run for OpenTxSocket {
    type Output = TxSocket;
    const QUICK: bool = true;

    fn interface(&self) -> &str {
        &self.interface
    }

    fn run(self) -> Result<TxSocket, Error> {
        TxSocket::open_here(&self.interface, self.ifindex)
    }
}

/// See [`tc`].
#[derive(Serialize, Deserialize)]
pub(crate) struct HasTcx;

impl Run for HasTcx {
    type Output = bool;
    const QUICK: bool = true;

    fn interface(&self) -> &str {
        ""
    }

    fn run(self) -> Result<bool, Error> {
        Ok(tc::has_tcx_here())
    }
}

/// See [`IngressDrop::begin`].
#[derive(Serialize, Deserialize)]
pub(crate) struct BeginIngressDrop {
    pub interface: Interface,
    pub lease: Option<Lease>,
}

impl Run for BeginIngressDrop {
    type Output = IngressDrop;

    fn interface(&self) -> &str {
        &self.interface.name
    }

    fn run(self) -> Result<IngressDrop, Error> {
        IngressDrop::begin_here(&self.interface, self.lease)
    }
}

/// See [`IngressRedirect::begin`]: all but its pair.
#[derive(Serialize, Deserialize)]
pub(crate) struct BeginIngressRedirect {
    pub interface: Interface,
    pub beside_xdp: bool,
    pub lease: Option<Lease>,
}

impl Run for BeginIngressRedirect {
    type Output = RedirectParts;

    fn interface(&self) -> &str {
        &self.interface.name
    }

    fn run(self) -> Result<RedirectParts, Error> {
        IngressRedirect::begin_here(&self.interface, self.beside_xdp, self.lease)
    }
}

/// See [`SwitchProgram::new`](crate::SwitchProgram::new).
#[derive(Serialize, Deserialize)]
pub(crate) struct MakeSwitchProgram;

impl Run for MakeSwitchProgram {
    type Output = SwitchParts;

    fn interface(&self) -> &str {
        ""
    }

    fn run(self) -> Result<SwitchParts, Error> {
        switch::make_here()
    }
}

/// See [`SwitchProgram::attach`](crate::SwitchProgram::attach); a program of [`MakeSwitchProgram`].
#[derive(Serialize, Deserialize)]
pub(crate) struct AttachSwitchProgram {
    pub interface: Interface,
    pub hook: Hook,
    pub program: Fd,
    pub lease: Option<Lease>,
    /// Programs that may be there: those of the [daemon before](crate::kept).
    pub before: Vec<u32>,
}

impl Run for AttachSwitchProgram {
    type Output = Attachment;

    fn interface(&self) -> &str {
        &self.interface.name
    }

    fn run(self) -> Result<Attachment, Error> {
        let AttachSwitchProgram { interface, hook, program, lease, before } = self;
        switch::attach_here(&interface, hook, program.as_fd(), lease, &before)
    }
}

/// See [`Promiscuous::hold`].
#[derive(Serialize, Deserialize)]
pub(crate) struct HoldPromiscuous {
    pub interface: Interface,
}

impl Run for HoldPromiscuous {
    type Output = Promiscuous;

    fn interface(&self) -> &str {
        &self.interface.name
    }

    fn run(self) -> Result<Promiscuous, Error> {
        Promiscuous::hold_here(&self.interface)
    }
}

/// See [`EgressRedirect::begin`]; with a program of [`LoadEgressFilter`] it begins with that one.
#[derive(Serialize, Deserialize)]
pub(crate) struct BeginEgressRedirect {
    pub interface: Interface,
    pub program: Option<Fd>,
    pub lease: Option<Lease>,
}

impl Run for BeginEgressRedirect {
    type Output = EgressRedirect;

    fn interface(&self) -> &str {
        &self.interface.name
    }

    fn run(self) -> Result<EgressRedirect, Error> {
        let program = self.program.as_ref().map(|fd| fd.as_fd());
        EgressRedirect::begin_here(&self.interface, program, self.lease)
    }
}

/// See [`EgressFilterLoad::load`](crate::EgressFilterLoad::load).
#[derive(Serialize, Deserialize)]
pub(crate) struct LoadEgressFilter {
    pub interface: String,
    pub target: Target,
    pub filter: Arc<Filter>,
}

impl Run for LoadEgressFilter {
    type Output = Fd;

    fn interface(&self) -> &str {
        &self.interface
    }

    fn run(self) -> Result<Fd, Error> {
        host::load_filter_here(&self.interface, self.target, &self.filter)
    }
}

/// See [`HostEnd::new`](crate::HostEnd::new).
#[derive(Serialize, Deserialize)]
pub(crate) struct MakeHostEnd {
    pub interface: Interface,
    pub queues: u32,
    pub outer: OuterEnd,
}

impl Run for MakeHostEnd {
    type Output = host::HostParts;

    fn interface(&self) -> &str {
        &self.interface.name
    }

    fn run(self) -> Result<host::HostParts, Error> {
        host::make_here(&self.interface, self.queues, self.outer)
    }
}

/// See [`PrivatePair::new`](crate::PrivatePair::new).
#[derive(Serialize, Deserialize)]
pub(crate) struct MakePair {
    pub name: String,
    pub mtu: u32,
    pub mac: Option<[u8; 6]>,
    pub queues: u32,
    pub outer: OuterEnd,
}

impl Run for MakePair {
    type Output = Pair;

    fn interface(&self) -> &str {
        &self.name
    }

    fn run(self) -> Result<Pair, Error> {
        let MakePair { name, mtu, mac, queues, outer } = self;
        pair::make_here(&PairConfig { name: &name, mtu, mac, queues, outer })
    }
}

/// See [`PrivatePair::device_settings`](crate::PrivatePair::device_settings); in the network namespace of
/// the inner end.
#[derive(Serialize, Deserialize)]
pub(crate) struct LookAtDevice {
    pub name: String,
    pub inner: u32,
}

impl Run for LookAtDevice {
    type Output = DeviceSettings;
    const QUICK: bool = true;

    fn interface(&self) -> &str {
        &self.name
    }

    fn run(self) -> Result<DeviceSettings, Error> {
        pair::settings_here(&self.name, self.inner)
    }
}

/// Removes both ends of a pair, in the network namespace of the inner one. Another interface of that number
/// stays.
#[derive(Serialize, Deserialize)]
pub(crate) struct RemovePair {
    pub index: u32,
}

impl Run for RemovePair {
    type Output = ();

    fn interface(&self) -> &str {
        ""
    }

    fn run(self) -> Result<(), Error> {
        pair::remove_here(self.index);
        Ok(())
    }
}

/// See [`Filter::new`].
#[derive(Serialize, Deserialize)]
pub(crate) struct MakeFilter {
    pub interface: String,
}

impl Run for MakeFilter {
    /// What it counts in.
    type Output = Fd;

    fn interface(&self) -> &str {
        &self.interface
    }

    fn run(self) -> Result<Fd, Error> {
        crate::filter::counters_here(&self.interface).map(Fd)
    }
}

/// See [`Action::new`](crate::Action::new).
#[derive(Serialize, Deserialize)]
pub(crate) struct MakeAction {
    pub interface: String,
    #[serde(serialize_with = "action::insns", deserialize_with = "action::checked")]
    pub program: Program,
}

impl Run for MakeAction {
    /// What it counts in, and the instructions that the verifier looked at.
    type Output = (Fd, u32);

    fn interface(&self) -> &str {
        &self.interface
    }

    fn run(self) -> Result<(Fd, u32), Error> {
        action::make_here(&self.interface, &self.program)
    }
}

/// See [`Plan::make`].
#[derive(Serialize, Deserialize)]
pub(crate) struct MakePlan {
    pub interface: String,
    pub queue: u32,
    pub flows: Vec<Flow>,
}

impl Run for MakePlan {
    type Output = Result<Plan, steer::Error>;

    fn interface(&self) -> &str {
        &self.interface
    }

    fn run(self) -> Result<Result<Plan, steer::Error>, Error> {
        Ok(Plan::make_here(&self.interface, self.queue, &self.flows))
    }
}

/// One step of [`Plan::carry_out`], which ends when there is none left.
#[derive(Serialize, Deserialize)]
pub(crate) struct CarryOutPlan {
    pub plan: Plan,
    pub step: steer::Step,
}

impl Run for CarryOutPlan {
    /// The place of a rule.
    type Output = Result<u32, steer::Error>;

    fn interface(&self) -> &str {
        self.plan.interface()
    }

    fn run(self) -> Result<Result<u32, steer::Error>, Error> {
        Ok(self.plan.carry_out_here(self.step))
    }
}

/// See [`Plan::undo`].
#[derive(Serialize, Deserialize)]
pub(crate) struct UndoPlan {
    pub plan: Plan,
}

impl Run for UndoPlan {
    type Output = ();

    fn interface(&self) -> &str {
        self.plan.interface()
    }

    fn run(self) -> Result<(), Error> {
        self.plan.undo_here();
        Ok(())
    }
}

/// The descriptor alone.
impl From<Fd> for OwnedFd {
    fn from(fd: Fd) -> OwnedFd {
        fd.0
    }
}
