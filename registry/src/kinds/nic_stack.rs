//! The stack behind a NIC, as its port's host rings (S-HOST).

use std::sync::Arc;

use ringway_abi::Dir;
use ringway_nic_setup::{EgressRedirect, Filter, HostEnd};
use ringway_proto::{Error, FilterInfo, Result};
use rustix::fd::BorrowedFd;

use crate::{
    interfaces::nic_error,
    kinds::{
        nic::Nic,
        nic_sockets::{Sockets, open_all},
    },
    port::{PortId, split_host, state_mut},
    queues::{RxAttachment, Socket, check_buffers},
    registry::Registry,
    rx_redirect::Installed,
};

/// The host rings of a NIC at work: the program's end of its stack, and the sockets there.
pub(crate) struct NicStack {
    // First the interface goes, and with it the kernel's hold on the buffers.
    pub end: HostEnd,
    attachment: RxAttachment,
    sockets: Sockets,
    /// What of the stack's traffic comes up; the rest goes its way.
    filter: Option<Arc<Installed>>,
}

impl NicStack {
    pub fn filter(&self) -> Option<&Arc<Filter>> {
        self.filter.as_ref().map(|filter| &filter.kernel)
    }

    /// The filter, with what it has counted.
    pub fn filter_info(&self) -> Option<FilterInfo> {
        let info = |filter: &Arc<Installed>| FilterInfo { host: true, ..filter.info(Vec::new()) };
        self.filter.as_ref().map(info)
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
        let port = registry.ports.get_mut(id);
        let Some(nic) = port.and_then(|port| port.get_mut::<Nic>()) else { return Ok(()) };
        let Some(mut stack) = nic.stack.take() else { return Ok(()) };
        let shared = registry.shared.entry(nic.key).or_default();
        let before = std::mem::replace(&mut stack.filter, installed);
        let done = match stack.filter() {
            Some(filter) if shared.egress_redirect.is_none() => nic
                .inside(|| EgressRedirect::begin_filtered(&nic.interface, &stack.end, filter))
                .and_then(|begun| begun.map_err(nic_error))
                .map(|egress_redirect| shared.egress_redirect = Some(egress_redirect)),
            _ => shared.connect(Some(&mut stack)),
        };
        if done.is_err() {
            stack.filter = before;
        }
        nic.stack = Some(stack);
        done
    }

    /// Connects the host rings of a NIC with the stack behind it.
    pub(crate) fn connect(registry: &mut Registry, id: PortId) -> Result<()> {
        let slots = registry.settings.nic_slots;
        let Some(port) = registry.ports.get_mut(id) else { return Ok(()) };
        let (_, rings) = split_host(&port.rx, port.host.made(Dir::Rx));
        let Some(nic) = state_mut::<Nic>(&mut port.backend) else { return Ok(()) };
        let shared = registry.shared.entry(nic.key).or_default();
        if shared.stack.is_some() {
            return Err(Error::busy("another user's programs have its host stack")
                .at(&nic.interface.name)
                .remedy("end them, or do without host rings"));
        }
        let memory = &registry.regions.get(port.region).region;
        // Host rings have no other road.
        check_buffers(&nic.interface, memory)?;
        let queues = port.host.counts.into_iter().max().unwrap_or(0).into();
        // The caller may have moved to another namespace, where the number is another interface's.
        let end = nic.inside(|| HostEnd::new(&nic.interface, queues))?.map_err(nic_error)?;
        // A slot is a packet there (S-HOST-3, S-HOST-4).
        let open = |inner: &_| Ok(open_all(inner, memory, rings, slots));
        let (mut attachment, mut sockets) = end.inside(open).map_err(nic_error)??;
        sockets.redirect(&mut attachment, &vec![true; queues as usize]);
        nic.stack = Some(NicStack { end, attachment, sockets, filter: None });
        shared.stack = Some(id);
        Ok(())
    }
}
