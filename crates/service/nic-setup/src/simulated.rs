//! A kernel whose network interfaces are numbers, in the place of a [helper](crate::Helper): for simulations.
//!
//! Interfaces, what is attached to them, which sockets are bound and which pairs there are is kept here. Sockets,
//! maps and memory are the kernel's own, made and bound to nothing, so all else works as ever: rings are mapped,
//! maps are set, and what holds something attached is a descriptor. [`Kernel::held`] tells what is still held.
//!
//! Each operation may fail, before or after it was carried out, as [`Kernel::on_operation`] decides.

use std::{
    collections::{BTreeMap, VecDeque},
    fs::File,
    io,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
        unix::net::{UnixDatagram, UnixStream},
    },
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use ringway_xdp::XskSocket;
use rustix::{
    event::{PollFd, PollFlags, Timespec, epoll, poll},
    net::{AddressFamily, sockopt::socket_domain},
};

use crate::{
    AttachMode, DeviceSettings, EgressRedirect, Error, Helper, IngressDrop, Interface, LinkWatch,
    Parcel, Promiscuous, QUEUES, XdpProgram, Xsk,
    helper::{operation_of, use_helper},
    host::HostParts,
    ingress_redirect::RedirectParts,
    operation::{BindXsk, MakePair, Operation},
    pair::{OuterEnd, Pair},
    parcel::{Fd, pack},
    rtnl::Message,
    sys,
    tc::{Attachment, Hook},
};

/// What becomes of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is carried out.
    Done,
    /// The kernel refuses it, with that errno.
    Refused(i32),
    /// It is carried out, but its result is lost with the process that did it.
    Lost,
}

/// What takes the frames that a device receives, as [`Kernel::held`] calls it.
const XDP: &str = "xdp";
const INGRESS: &str = "ingress";
const SWITCH: &str = "switch";

/// Whether operations go to a simulated kernel.
static IS_ON: AtomicBool = AtomicBool::new(false);

pub(crate) fn is_on() -> bool {
    IS_ON.load(Relaxed)
}

/// Whether it is a link of a simulated kernel: these are sockets.
pub(crate) fn is_link(fd: BorrowedFd<'_>) -> bool {
    is_on() && socket_domain(fd) == Ok(AddressFamily::UNIX)
}

/// Its program is detached, though others may have the link.
pub(crate) fn detach(link: BorrowedFd<'_>) -> io::Result<()> {
    rustix::io::write(link, b"d")?;
    Ok(())
}

/// See the module.
pub struct Kernel(Mutex<State>);

type Decide = Box<dyn FnMut(&str) -> Fate + Send>;

struct State {
    /// By index.
    devices: BTreeMap<u32, Interface>,
    /// Indices that no device has; the kernel has given none of them away for longer than the first.
    free: VecDeque<u32>,
    held: Vec<Held>,
    watches: Vec<Watched>,
    /// Lists the sockets that are bound, as long as any process has them.
    sockets: OwnedFd,
    bound: BTreeMap<u64, (u32, u32)>,
    last: u64,
    decide: Decide,
}

/// Something that is there as long as a descriptor.
struct Held {
    what: &'static str,
    /// Of which device, and for a pair, the indices of both ends.
    device: u32,
    pair: Option<[u32; 2]>,
    /// The other end of the descriptor's socket.
    end: UnixStream,
}

struct Watched {
    device: u32,
    to: UnixDatagram,
}

impl Kernel {
    /// From now on, for as long as this process lives, the operations of this crate go to this kernel. `indices`:
    /// those that its devices may have, of which AF_PACKET sockets are bound to some.
    ///
    /// # Errors
    /// Those of `epoll_create(2)`.
    pub fn start(indices: impl IntoIterator<Item = u32>) -> io::Result<Arc<Kernel>> {
        let state = State {
            devices: BTreeMap::new(),
            free: indices.into_iter().collect(),
            held: Vec::new(),
            watches: Vec::new(),
            sockets: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            bound: BTreeMap::new(),
            last: 0,
            decide: Box::new(|_| Fate::Done),
        };
        let kernel = Arc::new(Kernel(Mutex::new(state)));
        use_helper(Calls(kernel.clone()));
        IS_ON.store(true, Relaxed);
        Ok(kernel)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on it decides what becomes of each operation, which it is told the name of.
    pub fn on_operation(&self, decide: impl FnMut(&str) -> Fate + Send + 'static) {
        self.state().decide = Box::new(decide);
    }

    /// A new device, which is up. `native`: its driver has XDP. False: there is one of that name, or there is no
    /// index left.
    pub fn add(&self, name: &str, queues: u32, native: bool) -> bool {
        let mut state = self.state();
        if state.named(name).is_some() {
            return false;
        }
        let driver = if native { "simulated" } else { "" };
        state.add(name, queues, driver).is_some()
    }

    /// All devices go; those that come get the same indices as those that came first.
    pub fn reset(&self) {
        let mut state = self.state();
        while let Some((&index, _)) = state.devices.first_key_value() {
            state.remove(index);
        }
        state.free.make_contiguous().sort_unstable();
    }

    /// A device goes, and all that is attached to it.
    pub fn remove(&self, name: &str) {
        let mut state = self.state();
        if let Some(index) = state.named(name) {
            state.remove(index);
        }
    }

    /// Changes a device, and tells those that watch it. False: there is none of that name.
    pub fn change(&self, name: &str, change: impl FnOnce(&mut Interface)) -> bool {
        let mut state = self.state();
        let Some(index) = state.named(name) else { return false };
        if let Some(device) = state.devices.get_mut(&index) {
            change(device);
        }
        state.tell(index);
        true
    }

    /// What is attached, bound or made, and still held by anybody, each with the index of its device.
    pub fn held(&self) -> Vec<(&'static str, u32)> {
        let mut state = self.state();
        state.reap();
        let bound = state.bound.values().map(|&(device, _)| ("socket", device));
        let mut held: Vec<_> =
            state.held.iter().map(|held| (held.what, held.device)).chain(bound).collect();
        held.sort_unstable();
        held
    }

    /// The index of a device.
    pub fn index(&self, name: &str) -> Option<u32> {
        self.state().named(name)
    }
}

/// What this crate's functions call.
struct Calls(Arc<Kernel>);

impl Helper for Calls {
    fn call(&self, request: Parcel, _quick: bool) -> io::Result<Parcel> {
        let operation = operation_of(request)?;
        let mut state = self.0.state();
        state.reap();
        // The one is asked once in a process, and the other is told by every kernel.
        let fate = match &operation {
            Operation::HasTcx(_) | Operation::NetnsCookie(_) => Fate::Done,
            other => (state.decide)(other.name()),
        };
        match fate {
            Fate::Done => state.carry_out(operation),
            Fate::Refused(errno) => {
                let cause = io::Error::from_raw_os_error(errno);
                let interface = operation.interface();
                let refused = Error::refused(interface, "the kernel refuses it", "try again");
                pack::<Result<(), Error>>(&Err(refused(cause)))
            }
            Fate::Lost => {
                drop(state.carry_out(operation));
                Err(io::ErrorKind::ConnectionReset.into())
            }
        }
    }
}

impl State {
    fn named(&self, name: &str) -> Option<u32> {
        self.devices.iter().find(|(_, device)| device.name == name).map(|(&index, _)| index)
    }

    fn add(&mut self, name: &str, queues: u32, driver: &str) -> Option<Interface> {
        let index = self.free.pop_front()?;
        let device = Interface {
            name: name.into(),
            index,
            mtu: 1500,
            mac: [2, 0, 0, 0, 0, index as u8],
            ethernet: true,
            has_headers: true,
            up: true,
            rx_queues: queues,
            tx_queues: queues,
            driver: driver.into(),
            software: false,
            zero_copy: false,
        };
        self.devices.insert(index, device.clone());
        Some(device)
    }

    /// The device goes, and its pair's other end with it.
    fn remove(&mut self, index: u32) {
        let pair = self.held.iter().filter_map(|held| held.pair).find(|pair| pair.contains(&index));
        for index in pair.unwrap_or([index; 2]) {
            if self.devices.remove(&index).is_some() {
                self.free.push_back(index);
            }
            self.watches.retain(|watch| {
                // It may have been closed.
                let _ = (watch.device == index).then(|| tell(&watch.to, index, None));
                watch.device != index
            });
            self.held.retain(|held| held.device != index);
            self.bound.retain(|_, (device, _)| *device != index);
        }
    }

    /// All watches of a device hear what it is.
    fn tell(&mut self, index: u32) {
        let Some(device) = self.devices.get(&index) else { return };
        self.watches
            .retain(|watch| watch.device != index || tell(&watch.to, index, Some(device)).is_ok());
    }

    /// What nobody holds any more has gone.
    fn reap(&mut self) {
        let ended = |held: &Held| {
            let mut fds = [PollFd::new(&held.end, PollFlags::IN)];
            let now = Timespec { tv_sec: 0, tv_nsec: 0 };
            // It was written to, or closed.
            poll(&mut fds, Some(&now)) == Ok(1)
        };
        let pairs: Vec<_> =
            self.held.iter().filter(|held| ended(held)).filter_map(|held| held.pair).collect();
        self.held.retain(|held| !ended(held));
        for pair in pairs {
            pair.into_iter().for_each(|index| self.remove(index));
        }
        let path = format!("/proc/self/fdinfo/{}", self.sockets.as_raw_fd());
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let id = |line: &str| {
            let (_, rest) = line.strip_prefix("tfd:")?.split_once("data:")?;
            u64::from_str_radix(rest.split_whitespace().next()?, 16).ok()
        };
        let there: Vec<u64> = text.lines().filter_map(id).collect();
        self.bound.retain(|id, _| there.contains(id));
    }

    /// A descriptor that holds something.
    fn hold(&mut self, what: &'static str, device: u32, pair: Option<[u32; 2]>) -> io::Result<Fd> {
        let (end, given) = UnixStream::pair()?;
        self.held.push(Held { what, device, pair, end });
        Ok(Fd(given.into()))
    }

    /// The same of a device that is there, and has none of `others`.
    fn attach(&mut self, what: &'static str, to: &Interface, others: &[&str]) -> Result<Fd, Error> {
        self.there(to)?;
        let mut there = self.held.iter().filter(|held| held.device == to.index);
        if there.any(|held| others.contains(&held.what)) {
            return Err(refused(&to.name, libc::EBUSY));
        }
        self.hold(what, to.index, None).map_err(failed(&to.name))
    }

    fn there(&self, interface: &Interface) -> Result<(), Error> {
        match self.devices.contains_key(&interface.index) {
            true => Ok(()),
            false => Err(refused(&interface.name, libc::ENODEV)),
        }
    }

    fn carry_out(&mut self, operation: Operation) -> io::Result<Parcel> {
        match operation {
            Operation::LookUp(o) => pack(&self.look_up(&o.name)),
            Operation::Watch(o) => pack(&self.watch(&o.interface)),
            Operation::ReadLosses(o) => match self.devices.contains_key(&o.index) {
                true => pack(&Ok::<Vec<crate::LossCounter>, Error>(Vec::new())),
                false => refuse(&o.name, libc::ENODEV),
            },
            Operation::ReadReceived(o) => match self.devices.contains_key(&o.index) {
                true => pack(&Ok::<u64, Error>(0)),
                false => refuse(&o.name, libc::ENODEV),
            },
            Operation::AttachProgram(o) => pack(&self.attach_program(&o.interface, &o.modes)),
            Operation::LoadRules(o) => match o.rules.queues() > QUEUES as usize {
                true => pack::<Result<(), Error>>(&Err(o.loader.too_many_queues())),
                false => pack(&nothing().map(|fd| (fd, 1u32))),
            },
            Operation::BindXsk(o) => pack(&self.bind(o)),
            Operation::HasTcx(_) => pack(&Ok::<bool, Error>(true)),
            Operation::BeginIngressDrop(o) => {
                let others = [INGRESS, SWITCH];
                pack(&self.attach(INGRESS, &o.interface, &others).and_then(|link| {
                    let attachment = Attachment::Tcx(link);
                    Ok(IngressDrop::of_parts(attachment, array(QUEUES + 1)?))
                }))
            }
            Operation::BeginIngressRedirect(o) => {
                let others = [INGRESS, SWITCH, if o.beside_xdp { SWITCH } else { XDP }];
                pack(&self.attach(INGRESS, &o.interface, &others).and_then(|link| {
                    Ok(RedirectParts::new(Attachment::Tcx(link), array(QUEUES + 1)?))
                }))
            }
            Operation::HoldPromiscuous(o) => pack(
                &self
                    .attach("promiscuous", &o.interface, &[])
                    .map(|Fd(socket)| Promiscuous::of_socket(o.interface.index, socket)),
            ),
            Operation::AttachSwitchProgram(o) => {
                let (what, others) = match o.hook {
                    Hook::Ingress => (SWITCH, &[XDP, INGRESS, SWITCH][..]),
                    Hook::Egress => ("switch's stack", &[][..]),
                };
                pack(&self.attach(what, &o.interface, others).map(Attachment::Tcx))
            }
            Operation::BeginEgressRedirect(o) => {
                pack(&self.attach("egress", &o.interface, &[]).and_then(|link| {
                    let name = o.interface.name.clone();
                    Ok(EgressRedirect::of_parts(
                        name,
                        Attachment::Tcx(link),
                        nothing()?,
                        [array(16)?, counter()?],
                    ))
                }))
            }
            Operation::LoadEgressFilter(_) => pack(&nothing()),
            Operation::MakeHostEnd(o) => pack(&self.host_end(&o.interface, o.queues)),
            Operation::MakePair(o) => pack(&self.pair(&o)),
            Operation::LookAtDevice(o) => pack(&self.settings(&o.name, o.inner)),
            Operation::RemovePair(o) => {
                self.remove(o.index);
                pack(&Ok::<(), Error>(()))
            }
            other => other.carry_out(),
        }
    }

    fn look_up(&self, name: &str) -> Result<Interface, Error> {
        let found = self.named(name).and_then(|index| self.devices.get(&index)).cloned();
        found.ok_or_else(|| Error::NoInterface { interface: name.into() })
    }

    fn watch(&mut self, interface: &Interface) -> Result<LinkWatch, Error> {
        let make = || -> io::Result<_> {
            let (to, socket) = UnixDatagram::pair()?;
            to.set_nonblocking(true)?;
            socket.set_nonblocking(true)?;
            tell(&to, interface.index, self.devices.get(&interface.index))?;
            Ok((to, socket))
        };
        let (to, socket) = make().map_err(failed(&interface.name))?;
        self.watches.push(Watched { device: interface.index, to });
        Ok(LinkWatch::of_socket(socket.into(), interface))
    }

    fn attach_program(
        &mut self,
        interface: &Interface,
        modes: &[AttachMode],
    ) -> Result<XdpProgram, Error> {
        let native = interface.driver == "simulated";
        let can = |mode: &&AttachMode| native || **mode == AttachMode::Generic;
        let Some(&mode) = modes.iter().find(can) else {
            return Err(refused(&interface.name, libc::EOPNOTSUPP));
        };
        let link = self.attach(XDP, interface, &[XDP, INGRESS, SWITCH])?;
        Ok(XdpProgram::of_parts(interface, mode, link, array(QUEUES)?, marks()?))
    }

    /// All sockets, or none.
    fn bind(&mut self, operation: BindXsk) -> Result<Vec<Xsk>, Error> {
        let BindXsk { interface, queues, sockets, sizes, modes, .. } = operation;
        self.there(&interface)?;
        let mut bound = Vec::new();
        for (queue, Fd(fd)) in queues.into_iter().zip(sockets) {
            let place = (interface.index, queue);
            if self.bound.values().any(|taken| *taken == place) {
                return Err(Error::QueueBusy { interface: interface.name, queue });
            }
            self.last += 1;
            let (data, flags) = (epoll::EventData::new_u64(self.last), epoll::EventFlags::ET);
            let listed = epoll::add(&self.sockets, &fd, data, flags);
            listed.map_err(io::Error::from).map_err(failed(&interface.name))?;
            self.bound.insert(self.last, place);
            let Some(&mode) = modes.last() else {
                return Err(refused(&interface.name, libc::EOPNOTSUPP));
            };
            let socket = XskSocket { fd, sizes, frags: false, max_segs: 1, is_pair: false };
            bound.push(Xsk { socket, mode, partial_csum: false, refused: Vec::new() });
        }
        Ok(bound)
    }

    fn host_end(&mut self, interface: &Interface, queues: u32) -> Result<HostParts, Error> {
        self.there(interface)?;
        let pair = self.pair(&MakePair {
            name: format!("rwhost{}", interface.index),
            mtu: interface.mtu,
            mac: None,
            queues,
            outer: OuterEnd::Internal,
        })?;
        let inject = self.attach("inject", pair.outer(), &[])?;
        Ok(HostParts::new(pair, queues, Attachment::Tcx(inject), array(16)?))
    }

    fn pair(&mut self, what: &MakePair) -> Result<Pair, Error> {
        let MakePair { name, mtu, mac, queues, .. } = what;
        if self.named(name).is_some() {
            return Err(refused(name, libc::EEXIST));
        }
        let none = || refused(name, libc::ENFILE);
        let inner = self.add("inner0", *queues, "simulated").ok_or_else(none)?;
        let Some(outer) = self.add(name, *queues, "simulated") else {
            self.remove(inner.index);
            return Err(none());
        };
        let outer = Interface { mtu: *mtu, mac: mac.unwrap_or(outer.mac), ..outer };
        self.devices.insert(outer.index, outer.clone());
        let ends = [inner.index, outer.index];
        let netns = self.hold("pair", inner.index, Some(ends)).map_err(failed(name))?;
        Ok(Pair::new(netns, Interface { name: name.clone(), mtu: *mtu, ..inner }, outer))
    }

    /// Of the other end of the pair that has that inner end.
    fn settings(&self, name: &str, inner: u32) -> Result<DeviceSettings, Error> {
        let pair = self.held.iter().filter_map(|held| held.pair).find(|pair| pair.contains(&inner));
        let outer = pair.and_then(|[_, outer]| self.devices.get(&outer));
        let settings = outer.map(|outer| DeviceSettings { mac: outer.mac, mtu: outer.mtu });
        settings.ok_or_else(|| refused(name, libc::ENODEV))
    }
}

fn failed(interface: &str) -> impl FnOnce(io::Error) -> Error {
    Error::refused(interface, "it cannot be had", "raise the limit of open files")
}

fn refused(interface: &str, errno: i32) -> Error {
    failed(interface)(io::Error::from_raw_os_error(errno))
}

fn refuse(interface: &str, errno: i32) -> io::Result<Parcel> {
    pack::<Result<(), Error>>(&Err(refused(interface, errno)))
}

/// A descriptor in the place of a program's.
fn nothing() -> Result<Fd, Error> {
    File::open("/dev/null").map(|file| Fd(file.into())).map_err(failed(""))
}

fn array(entries: u32) -> Result<Fd, Error> {
    sys::array(entries).map(Fd).map_err(failed(""))
}

/// A map for a counter.
fn counter() -> Result<Fd, Error> {
    sys::array_of(8, 1).map(Fd).map_err(failed(""))
}

/// A map for a mark, of two words of eight bytes.
fn marks() -> Result<Fd, Error> {
    sys::array_of(16, 1).map(Fd).map_err(failed(""))
}

/// Says to a watch what has become of a device.
fn tell(to: &UnixDatagram, index: u32, device: Option<&Interface>) -> io::Result<()> {
    let Some(Interface { name, mtu, up, .. }) = device else {
        return Message::new(libc::RTM_DELLINK, 0, index).send_on(to.as_fd());
    };
    let flags = if *up { libc::IFF_UP | libc::IFF_RUNNING } else { 0 };
    Message::new(libc::RTM_NEWLINK, 0, index)
        .flags(flags, 0)
        .number(libc::IFLA_MTU, *mtu)
        .text(libc::IFLA_IFNAME, name)
        .send_on(to.as_fd())
}
