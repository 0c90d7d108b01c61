//! The stack behind a NIC, as its port's host rings (S-HOST).

use std::os::fd::AsFd;
use std::sync::{Arc, atomic::Ordering::Relaxed};

use ringway_abi::Dir;
use ringway_nic_setup::{EgressFilter, EgressRedirect, HostEnd, Interface};
use ringway_proto::{Error, FilterInfo, Result};
use rustix::fd::BorrowedFd;

use crate::{
    kinds::{
        nic::Nic,
        nic_sockets::{Sockets, open_all},
    },
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
    filter: Option<HostFilter>,
}

struct HostFilter {
    installed: Arc<Installed>,
    loaded: EgressFilter,
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
    /// Installs a filter for the host rings of a NIC, which has some; `None`: all that the stack sends
    /// comes up, while programs have tx rings.
    pub(crate) fn set_filter(
        registry: &mut Registry,
        id: PortId,
        installed: Option<Arc<Installed>>,
    ) -> Result<()> {
        let Some(nic) = registry.port(id).get::<Nic>() else { return Ok(()) };
        let Some(stack) = &nic.stack else { return Ok(()) };
        let now = stack.filter.as_ref().map(|filter| Arc::as_ptr(&filter.installed));
        if now == installed.as_ref().map(Arc::as_ptr) {
            return Ok(());
        }
        let key = nic.key;
        let begun =
            registry.shared.get(&key).is_some_and(|shared| shared.egress_redirect.is_some());
        let mut made = None;
        if let Some(installed) = installed.clone() {
            let load = EgressFilter::of(&nic.interface, &stack.end, &installed.kernel);
            let (netns, interface) = (nic.netns.clone(), nic.interface.clone());
            let work = move || -> Result<_> {
                let loaded = load.load().map_err(nic_error)?;
                if begun {
                    return Ok((loaded, None));
                }
                let begin = netns.inside(|| EgressRedirect::begin_filtered(&interface, &loaded))?;
                let begin = begin.map_err(nic_error)?;
                Ok((loaded, Some(begin)))
            };
            made = Some((installed, registry.deferred.make_off_loop(key, work)??));
        }
        registry.port(id).check_there()?;
        let shared = registry.shared.entry(key).or_default();
        let has_none = shared.egress_redirect.is_none();
        if has_none && made.as_ref().is_some_and(|(_, made)| made.1.is_none()) {
            // It has ended meanwhile.
            return NicStack::set_filter(registry, id, installed);
        }
        crate::fault::step();
        let (filter, begin) = match made {
            Some((installed, made)) => {
                let (loaded, begin) = made.take();
                (Some(HostFilter { installed, loaded }), begin)
            }
            None => (None, None),
        };
        if let Some(redirect) = begin {
            shared.egress_redirect = Some(redirect);
        }
        let port = registry.ports.get_mut(id);
        let Some(nic) = port.and_then(|port| port.get_mut::<Nic>()) else { return Ok(()) };
        let Some(stack) = &mut nic.stack else { return Ok(()) };
        let before = std::mem::replace(&mut stack.filter, filter);
        match shared.connect(Some(stack)) {
            Ok(None) => Ok(()),
            Ok(Some(ending)) => {
                registry.deferred.end_off_loop(key, ending);
                Ok(())
            }
            Err(error) => {
                stack.filter = before;
                Err(error)
            }
        }
    }

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
