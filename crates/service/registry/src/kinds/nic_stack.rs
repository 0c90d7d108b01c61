//! The stack behind a NIC, as its port's host rings (S-HOST).

use std::os::fd::AsFd;
use std::sync::{Arc, atomic::Ordering::Relaxed};

use ringway_abi::Dir;
use ringway_nic_setup::{EgressFilter, EgressFilterLoad, EgressRedirect, HostEnd, Interface};
use ringway_proto::{Error, FilterInfo, Result};
use rustix::fd::BorrowedFd;

use crate::{
    kinds::{
        nic::Nic,
        nic_sockets::{Sockets, open_all},
    },
    netns::OpenNetns,
    port::{PortId, add_spares, split_host, state_mut},
    queues::{RxAttachment, Socket, check_buffers, lend},
    registry::Registry,
    rx_redirect::Installed,
    setup_error::nic_error,
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

impl NicStack {
    /// Connects the host rings of a NIC with the stack behind it.
    pub(crate) fn connect(registry: &mut Registry, id: PortId) -> Result<()> {
        let slots = registry.settings.nic_slots;
        let port = registry.port(id);
        let Some(nic) = port.get::<Nic>() else { return Ok(()) };
        if registry.shared.get(&nic.key).is_some_and(|shared| shared.stack.is_some()) {
            return Err(Error::busy("another user's programs have its host stack")
                .at(&nic.interface.name)
                .remedy("end them, or do without host rings"));
        }
        let region = port.region;
        let memory = registry.regions.region(region).clone();
        // Host rings have no other road.
        check_buffers(&nic.interface, &memory)?;
        let queues = port.host.counts.into_iter().max().unwrap_or(0).into();
        let book = registry.regions.get(region);
        if let Some(port) = registry.ports.get_mut(id) {
            port.host_rings_mut().try_for_each(|ring| add_spares(book, ring))?;
        }
        let reach = book.reach(slots);
        let Some(nic) = registry.port(id).get::<Nic>() else { return Ok(()) };
        // The caller may have moved to another namespace, where the number is another interface's.
        let (key, netns, interface) = (nic.key, nic.netns.clone(), nic.interface.clone());
        let open = move || -> Result<_> {
            let end = netns.inside(|| HostEnd::new(&interface, queues))?.map_err(nic_error)?;
            // A slot is a packet there (S-HOST-3, S-HOST-4).
            let open = |inner: &Interface| Ok(open_all(inner, &memory, slots, reach));
            let (attachment, sockets) = end.inside(open).map_err(nic_error)??;
            Ok((end, attachment, sockets, reach))
        };
        let mut opened = registry.deferred.make_off_loop(key, open)??;
        let (_, attachment, sockets, reach) = &mut *opened;
        let reach = *reach;
        registry.port(id).check_there()?;
        let Some(port) = registry.ports.get_mut(id) else { return Ok(()) };
        // The rings are made anew each time that the request is begun, so they get their buffers here: the pair's
        // driver copies, and looks for them with each frame. Others may have what they had, and the sockets reach less
        // than that.
        if !port.all_host_rings().all(|ring| ring.is_within(reach)) {
            drop(opened);
            return NicStack::connect(registry, id);
        }
        port.all_host_rings().for_each(|ring| ring.kring.owner().in_umem.store(reach, Relaxed));
        let (_, rings) = split_host(&port.rx, port.host.made(Dir::Rx));
        let memory = registry.regions.region(port.region);
        for (queue, ring) in (0..).zip(rings) {
            let Some(Socket::Xdp(xsk)) = sockets.get(queue) else { continue };
            let lent = lend(&ring.kring, memory, xsk.socket.fd.as_fd(), xsk.socket.sizes, false);
            lent.map_err(|e| {
                Error::io("its host rings cannot be filled", e)
                    .at(&port.name)
                    .remedy("free memory, or raise the limit of open files")
            })?;
        }
        sockets.redirect(attachment, &vec![true; queues as usize]);
        let Some(nic) = state_mut::<Nic>(&mut port.backend) else { return Ok(()) };
        crate::fault::step();
        let (end, attachment, sockets, _) = opened.take();
        nic.stack = Some(NicStack { end, attachment, sockets, filter: None });
        crate::fault::step();
        registry.shared.entry(key).or_default().stack = Some(id);
        Ok(())
    }
}
