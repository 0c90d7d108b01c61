//! The stack behind a NIC, as its port's host rings (S-HOST).

use std::os::fd::AsFd;
use std::sync::{Arc, atomic::Ordering::Relaxed};

use ringway_abi::Dir;
use ringway_nic_setup::{EgressFilter, EgressFilterLoad, EgressRedirect, HostEnd, Interface};
use ringway_proto::{Error, FilterInfo, Reply, Result};
use ringway_region::Region;
use rustix::fd::BorrowedFd;

use crate::{
    charge::Charge,
    kinds::{
        nic::Nic,
        nic_sockets::{Sockets, open_all},
    },
    netns::OpenNetns,
    port::{Port, PortId, add_spares, split_host},
    queues::{RxAttachment, Socket, check_buffers, lend},
    registry::Registry,
    rx_redirect::Installed,
    setup_error::nic_error,
    subject::{NicKey, Subject},
    transaction::{Answer, Failed, Needs, Plan, plain},
};

/// The host rings of a NIC at work: the program's end of its stack, and the sockets there.
pub(crate) struct NicStack {
    // First the interface goes, and with it the kernel's hold on the buffers.
    pub end: HostEnd,
    attachment: RxAttachment,
    sockets: Sockets,
    /// What of the stack's traffic comes up; the rest goes its way.
    pub filter: Option<HostFilter>,
}

pub(crate) struct HostFilter {
    installed: Arc<Installed>,
    loaded: EgressFilter,
}

/// A filter for the host rings of a NIC that is to be loaded.
#[derive(Clone)]
pub(crate) struct HostFilterLoad {
    installed: Arc<Installed>,
    load: EgressFilterLoad,
    /// Where what the stack sends is redirected from then on, unless it is already.
    begin: Option<(OpenNetns, Interface)>,
}

/// The same, loaded; in force if something was begun with it.
pub(crate) struct LoadedHostFilter {
    pub filter: HostFilter,
    pub begun: Option<EgressRedirect>,
}

impl HostFilterLoad {
    pub fn new(
        nic: &Nic,
        stack: &NicStack,
        installed: &Arc<Installed>,
        has_begun: bool,
    ) -> HostFilterLoad {
        let load = EgressFilter::of(&nic.interface, &stack.end, &installed.kernel);
        let begin = (!has_begun).then(|| (nic.netns.clone(), nic.interface.clone()));
        HostFilterLoad { installed: installed.clone(), load, begin }
    }

    /// Takes as long as the verifier does.
    pub fn load(self) -> Result<LoadedHostFilter> {
        let HostFilterLoad { installed, load, begin } = self;
        let loaded = load.load().map_err(nic_error)?;
        let begun = match begin {
            Some((netns, interface)) => {
                let begin = || EgressRedirect::begin_filtered(&interface, &loaded);
                Some(netns.inside(begin)?.map_err(nic_error)?)
            }
            None => None,
        };
        Ok(LoadedHostFilter { filter: HostFilter { installed, loaded }, begun })
    }
}

impl NicStack {
    pub fn filter(&self) -> Option<&EgressFilter> {
        self.filter.as_ref().map(|filter| &filter.loaded)
    }

    /// The filter, with what it has counted.
    pub fn filter_info(&self) -> Option<FilterInfo> {
        let filter = self.filter.as_ref()?;
        Some(FilterInfo { host: true, ..filter.installed.info(Vec::new()) })
    }

    pub fn installed(&self) -> Option<&Arc<Installed>> {
        self.filter.as_ref().map(|filter| &filter.installed)
    }

    /// What the client of a host ring holds: it keeps the ring connected with the stack.
    pub fn link_fd(&self, dir: Dir) -> BorrowedFd<'_> {
        match dir {
            Dir::Tx => self.end.inject_fd(),
            Dir::Rx => self.attachment.link_fd(),
        }
    }

    /// The socket of a pair of host rings.
    pub fn socket(&self, ring: u32) -> Option<&Socket> {
        self.sockets.get(ring)
    }
}

/// The host rings of a NIC's port are going to be connected with the stack behind it, which is a part of a request.
pub(crate) struct ConnectStack {
    id: PortId,
    key: NicKey,
    /// Of the host rings.
    counts: [u16; 2],
    /// How many buffers the sockets reach.
    reach: u32,
}

/// How the stack is opened.
struct StackOpening {
    // The caller may have moved to another namespace, where the number is another interface's.
    netns: OpenNetns,
    interface: Interface,
    queues: u32,
    memory: Arc<Region>,
    slots: u32,
    reach: u32,
}

/// The program's end of the stack, and the sockets there.
pub(crate) struct OpenedStack {
    // In the order of the fields of `NicStack`.
    end: HostEnd,
    attachment: RxAttachment,
    sockets: Sockets,
}

impl StackOpening {
    fn open(self) -> Result<OpenedStack> {
        let StackOpening { netns, interface, queues, memory, slots, reach } = self;
        let end = netns.inside(|| HostEnd::new(&interface, queues))?.map_err(nic_error)?;
        // A packet has one slot there (S-HOST-3, S-HOST-4).
        let open = |inner: &Interface| Ok(open_all(inner, &memory, slots, reach));
        let (attachment, sockets) = end.inside(open).map_err(nic_error)??;
        Ok(OpenedStack { end, attachment, sockets })
    }
}

impl ConnectStack {
    /// Fails until that is done. The host rings have just been made, and get their spare buffers here: where
    /// there are too few, nothing is opened.
    pub fn carry_out(registry: &mut Registry, id: PortId) -> Result<()> {
        let slots = registry.settings.nic_slots;
        let port = registry.port(id);
        let Some(nic) = port.get::<Nic>() else { return Ok(()) };
        if registry.shared.get(&nic.key).is_some_and(|shared| shared.stack.is_some()) {
            return Err(Error::busy("another user's programs have its host stack")
                .at(&nic.interface.name)
                .remedy("end them, or do without host rings"));
        }
        let memory = registry.regions.region(port.region).clone();
        // Host rings have no other road.
        check_buffers(&nic.interface, &memory)?;
        let (key, netns, interface) = (nic.key, nic.netns.clone(), nic.interface.clone());
        let (region, counts) = (port.region, port.host.counts);
        let book = registry.regions.get(region);
        registry.ports.port_mut(id).host_rings_mut().try_for_each(|ring| add_spares(book, ring))?;
        let reach = book.reach(slots);
        let plan = ConnectStack { id, key, counts, reach };
        let queues = plan.queues();
        let opening = StackOpening { netns, interface, queues, memory, slots, reach };
        Err(registry.carry_out_part(plan, move || opening.open()))
    }

    fn queues(&self) -> u32 {
        self.counts.into_iter().max().unwrap_or(0).into()
    }

    /// Makes the host rings, if they can be those that the sockets were opened for. They were made for the plan, too,
    /// and others may have what they had.
    fn make_rings(&self, registry: &mut Registry) -> bool {
        let Registry { settings, ports, regions, shared, .. } = registry;
        let port = ports.port_mut(self.id);
        if port.bindings == 0 {
            port.host.counts = self.counts;
        }
        let is_taken = shared.get(&self.key).is_some_and(|shared| shared.stack.is_some());
        if is_taken || port.host.open || port.host.counts != self.counts {
            return false;
        }
        let (slots, book) = (port.shape(settings).slots, regions.get(port.region));
        let made = port.make_host_rings(slots, book);
        let made = made
            .and_then(|()| port.host_rings_mut().try_for_each(|ring| add_spares(book, ring)))
            .is_ok_and(|()| port.all_host_rings().all(|ring| ring.is_within(self.reach)));
        if !made {
            port.free_host_rings(book);
        }
        made
    }

    /// Gives the kernel the buffers of the rings: the pair's driver copies, and looks for them with each frame.
    fn lend(&self, port: &Port, memory: &Region, sockets: &Sockets) -> Result<()> {
        port.all_host_rings().for_each(|ring| {
            ring.kring.owner().in_umem.store(self.reach, Relaxed);
        });
        let (_, rings) = split_host(&port.rx, port.host.made(Dir::Rx));
        for (queue, ring) in (0..).zip(rings) {
            let Some(Socket::Xdp(xsk)) = sockets.get(queue) else { continue };
            let (socket, sizes) = (xsk.socket.fd.as_fd(), xsk.socket.sizes);
            lend(&ring.kring, memory, socket, sizes, false).map_err(|e| {
                Error::io("its host rings cannot be filled", e)
                    .at(&port.name)
                    .remedy("free memory, or raise the limit of open files")
            })?;
        }
        Ok(())
    }
}

impl Plan for ConnectStack {
    type Made = OpenedStack;

    fn subject(&self) -> Subject {
        self.key.into()
    }

    fn needs(&self) -> Needs {
        // The port's user has the memory by its region.
        Needs::nothing(0)
    }

    fn commit(
        self,
        registry: &mut Registry,
        mut opened: OpenedStack,
        _memory: Charge,
    ) -> Result<Answer, Failed> {
        if let Err(error) = registry.port(self.id).check_there() {
            return Err(Failed::new(error, opened));
        }
        if !self.make_rings(registry) {
            return Err(Failed::again(opened));
        }
        let port = registry.ports.port_mut(self.id);
        let memory = registry.regions.region(port.region);
        if let Err(error) = self.lend(port, memory, &opened.sockets) {
            return Err(Failed::new(error, opened).with_rings(port.region, port.take_host_rings()));
        }
        let all = vec![true; self.queues() as usize];
        opened.sockets.redirect(&mut opened.attachment, &all);
        crate::fault::step();
        if let Some(nic) = port.get_mut::<Nic>() {
            let OpenedStack { end, attachment, sockets } = opened;
            nic.stack = Some(NicStack { end, attachment, sockets, filter: None });
        }
        crate::fault::step();
        registry.shared.entry(self.key).or_default().stack = Some(self.id);
        Ok(plain(Reply::Done))
    }
}
