//! NIC ports: the privileged half. The registry makes the rings, the AF_XDP sockets and the
//! XDP program; the client runs them.

use ringway_abi::nmreq_register;
use ringway_xdp::{Interface, Mode, NicPort, RingSizes, XdpProgram, Xsk, XskConfig, in_netns};
use rustix::fd::OwnedFd;

use crate::{
    bridges::Place,
    error::{Error, Result},
    name::plain_key,
    port::{Kind, PortId, Shape, make_rings},
    regions::Regions,
    registry::{Caller, Registry},
};

/// A NIC that ports are made of.
pub(crate) struct Nic {
    pub interface: Interface,
    /// Held so that the namespace, and the number that it is known by, stay.
    _netns: Option<OwnedFd>,
    /// Present while in netmap mode: from the first binding to the last.
    pub active: Option<Active>,
}

/// The kernel's side of a NIC in netmap mode.
pub(crate) struct Active {
    /// Held, here and by every client, for as long as the traffic is to come to us.
    pub program: XdpProgram,
    /// One a queue.
    pub sockets: Vec<Xsk>,
}

impl Active {
    /// The mode, and why it is no better one.
    pub fn describe(&self) -> String {
        let Some(socket) = self.sockets.first() else { return "no queues".into() };
        let mut text = socket.mode.to_string();
        for (mode, why) in &socket.refused {
            text.push_str(&format!("; not {mode}: {why}"));
        }
        text
    }
}

impl Nic {
    /// Rings and slots that the port has, in netmap mode or not.
    pub fn shape(&self, slots: u32) -> Shape {
        let queues = self.interface.queues();
        Shape { rings: [queues; 2], slots: [slots; 2] }
    }
}

/// Whether the caller's network namespace has an interface of that name.
pub(crate) fn exists(name: &str, caller: &Caller) -> Result<bool> {
    match look_up(name, caller) {
        Ok(_) => Ok(true),
        Err(error) if error.errno == libc::ENXIO => Ok(false),
        Err(error) => Err(error),
    }
}

fn look_up(name: &str, caller: &Caller) -> Result<Interface> {
    if name.is_empty() || name.len() >= crate::name::IFNAMSIZ || name.contains('/') {
        return Err(Error::absent(format!("{name}: no network interface can have this name")));
    }
    inside(caller, || Interface::by_name(name))?.map_err(nic_error)
}

/// Runs `f` in the caller's network namespace.
pub(crate) fn inside<T: Send>(caller: &Caller, f: impl FnOnce() -> T + Send) -> Result<T> {
    match caller.netns() {
        None => Ok(f()),
        Some(ns) => in_netns(ns, f).map_err(|e| {
            Error::new(
                libc::EPERM,
                format!(
                    "cannot enter the caller's network namespace: {e}; run ringwayd there, or \
                     with CAP_SYS_ADMIN"
                ),
            )
        }),
    }
}

pub(crate) fn nic_error(error: ringway_xdp::Error) -> Error {
    use ringway_xdp::Error as Xdp;
    let errno = match &error {
        Xdp::NoInterface { .. } => libc::ENXIO,
        Xdp::NoQueue { .. } => libc::EINVAL,
        Xdp::QueueBusy { .. } | Xdp::Occupied { .. } => libc::EBUSY,
        Xdp::Privileges { .. } => libc::EPERM,
        Xdp::Attach { .. } => libc::EOPNOTSUPP,
        Xdp::Refused { cause, .. } => cause.raw_os_error().unwrap_or(libc::EIO),
    };
    Error::new(errno, error.to_string())
}

pub(crate) fn allowed(caller: &Caller, name: &str) -> Result<()> {
    if caller.may_use_nics {
        return Ok(());
    }
    Err(Error::new(
        libc::EPERM,
        format!(
            "{name}: this daemon does not grant you network interfaces; ask its operator to \
             add you to nic_users in its configuration"
        ),
    ))
}

impl Registry {
    /// The port of a network interface, not in netmap mode yet if it is new.
    pub(crate) fn nic_port(&mut self, caller: &Caller, name: &str, mem_id: u16) -> Result<PortId> {
        let interface = look_up(name, caller)?;
        allowed(caller, name)?;
        let key = plain_key(&interface.name, caller);
        if let Some(&id) = self.names.get(&key) {
            return self.owned(id, caller);
        }
        let netns = caller.netns().map(|ns| ns.try_clone_to_owned()).transpose();
        let netns = netns.map_err(|e| Error::io("cannot keep the network namespace", e))?;
        let region = match mem_id {
            0 => self.regions.global(caller.uid)?,
            id => self.regions.by_id(id, caller.uid)?,
        };
        // The kernel leaves room in front of data: other regions have none (S-MEM-3 allows us
        // to take the global one then; the output tells).
        let region = match self.regions.get(region).region.layout().headroom {
            0 => self.regions.global(caller.uid)?,
            _ => region,
        };
        let kind = Kind::Nic(Box::new(Nic { interface, _netns: netns, active: None }));
        Ok(self.add_port(name, Some(key), caller.uid, region, kind))
    }

    /// Readies a port for a binding: a NIC that is not in netmap mode goes there. `host`: the
    /// binding has host rings.
    pub(crate) fn activate(&mut self, id: PortId, caller: &Caller, host: bool) -> Result<()> {
        if matches!(self.port(id).kind, Kind::Nic(_)) {
            self.activate_nic(id, caller)?;
        }
        if host { self.open_host(id) } else { Ok(()) }
    }

    fn activate_nic(&mut self, id: PortId, caller: &Caller) -> Result<()> {
        let slots = self.settings.nic_slots;
        let port = self.ports.get(&id).expect("looked up just before");
        let region = port.region;
        let Kind::Nic(nic) = &port.kind else { return Ok(()) };
        if nic.active.is_some() {
            return Ok(());
        }
        let (interface, shape) = (nic.interface.clone(), nic.shape(slots));
        check_mtu(&interface, &mut self.regions, region)?;
        let [tx, rx] = make_rings(&mut self.regions, region, shape)?;
        let memory = self.regions.get(region).region.clone();
        let opened = inside(caller, || open_queues(&interface, &memory, slots));
        match opened.and_then(|opened| opened.map_err(nic_error)) {
            Ok(active) => {
                let port = self.port_mut(id);
                (port.tx, port.rx) = (tx, rx);
                if let Kind::Nic(nic) = &mut port.kind {
                    nic.active = Some(active);
                }
                Ok(())
            }
            Err(error) => {
                let book = self.regions.get(region);
                tx.iter().chain(&rx).for_each(|ring| crate::port::free_ring(book, ring));
                Err(error)
            }
        }
    }

    /// Gives the NIC back to the stack: its last binding has gone.
    pub(crate) fn deactivate(&mut self, id: PortId) {
        if let Kind::Nic(nic) = &mut self.port_mut(id).kind {
            // First the kernel lets go of the buffers, then they are free.
            nic.active = None;
            self.free_rings(id);
        }
    }

    /// Gives a NIC on a bridge back to the stack. Returns the place it had.
    pub(crate) fn detach_nic(&mut self, id: PortId) -> u32 {
        let Kind::Attached { place, .. } = &self.port(id).kind else {
            unreachable!("only attached NICs are detached")
        };
        let place = place.clone();
        self.bridges.detach(&place);
        self.remove(id);
        place.index.into()
    }

    /// A NIC joins a bridge (S-VALE-16).
    pub(crate) fn attach_nic(
        &mut self,
        caller: &Caller,
        bridge: &str,
        ifname: &str,
        full: &str,
        reg: &nmreq_register,
    ) -> Result<Place> {
        use ringway_abi::{NR_REG_ALL_NIC, NR_REG_NIC_SW};
        let interface = look_up(ifname, caller).map_err(|e| Error { errno: libc::EINVAL, ..e })?;
        allowed(caller, ifname)?;
        let modes = [NR_REG_ALL_NIC, NR_REG_NIC_SW];
        if reg.nr_ringid != 0 || !modes.contains(&reg.nr_mode) {
            return Err(Error::invalid(format!("{full}: a NIC is attached with all its rings")));
        }
        if reg.nr_mode == NR_REG_NIC_SW {
            return Err(Error::new(
                libc::EOPNOTSUPP,
                format!("{full}: host rings are not supported yet; attach without the host stack"),
            ));
        }
        let key = plain_key(&interface.name, caller);
        if self.names.contains_key(&key) {
            return Err(Error::busy(format!(
                "{ifname}: open, or attached to a bridge already; close or detach it first"
            )));
        }
        let port = inside(caller, || NicPort::open(&interface))?.map_err(nic_error)?;
        let region = self.regions.global(caller.uid)?;
        let attached = self.bridges.attach(bridge, full, Box::new(port));
        let place = attached.inspect_err(|_| self.regions.drop_unused(region))?;
        let kind =
            Kind::Attached { place: place.clone(), polling: false, rings: interface.queues() };
        let id = self.add_port(full, Some(key), caller.uid, region, kind);
        self.names.insert(full.into(), id);
        Ok(place)
    }
}

/// S-REG-9, for buffers that hold a frame each.
fn check_mtu(
    interface: &Interface,
    regions: &mut Regions,
    region: crate::regions::RegionKey,
) -> Result<()> {
    let room = regions.get(region).region.layout().data_size();
    let needed = interface.mtu + 14;
    if needed <= room {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "{0}: frames of {needed} bytes do not fit buffers of {room}; \
         `ip link set {0} mtu {1}` or less",
        interface.name,
        room - 14
    )))
}

fn open_queues(
    interface: &Interface,
    region: &ringway_region::Region,
    slots: u32,
) -> Result<Active, ringway_xdp::Error> {
    let mut program = XdpProgram::attach(interface)?;
    let (base, len) = region.buffer_area();
    // One more place than slots: a ring of n slots has at most n - 1 on loan.
    let entries = slots.next_power_of_two();
    let mut sockets = Vec::new();
    for queue in 0..interface.queues() {
        let config = XskConfig {
            interface,
            queue,
            umem: std::ptr::NonNull::slice_from_raw_parts(base, len),
            chunk_size: region.layout().bufs.size,
            sizes: RingSizes { fill: entries, completion: entries, rx: entries, tx: entries },
            modes: Mode::preference(program.mode()),
        };
        // SAFETY: the buffer area is a shared mapping that the region keeps for as long as
        // the port, and thus the socket, exists; it is reached by raw pointers only.
        let xsk = unsafe { Xsk::open(&config) }?;
        program.set_queue(queue, &xsk)?;
        sockets.push(xsk);
    }
    Ok(Active { program, sockets })
}
