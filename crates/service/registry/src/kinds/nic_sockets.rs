//! The sockets of a NIC's port, one for each of its queues.

use std::sync::Arc;

use ringway_nic_setup::Interface;
use ringway_proto::{Error, NicMode, Refusals, Result};
use ringway_region::Region;

use crate::{
    arrivals::Arrivals,
    nic_mode::{ModeRequest, describe},
    queues::{Entry, OpenedQueues, Opening, RxAttachment, Socket},
    rx_redirect::RxRule,
};

/// The sockets of a port, by queue: of those queues that its programs have had since it went into
/// netmap mode.
pub(crate) struct Sockets {
    by_queue: Vec<Option<Socket>>,
    /// Which frames are redirected to them.
    pub rx_rules: Vec<RxRule>,
    /// Whether frames come to them.
    pub arrivals: Arrivals,
}

/// What a port's programs do with queues.
#[derive(Clone, Copy)]
pub(super) struct Uses {
    pub sends: bool,
    pub receives: bool,
}

impl Sockets {
    pub(super) fn none(queues: u32) -> Sockets {
        let by_queue = (0..queues).map(|_| None).collect();
        let rx_rules = vec![RxRule::default(); queues as usize];
        Sockets { by_queue, rx_rules, arrivals: Arrivals::default() }
    }

    /// The socket of a queue, if the port has it.
    pub fn get(&self, queue: u32) -> Option<&Socket> {
        self.by_queue.get(queue as usize)?.as_ref()
    }

    /// The sockets, each with its queue.
    pub(crate) fn all(&self) -> impl Iterator<Item = (u32, &Socket)> + Clone {
        (0..).zip(&self.by_queue).filter_map(|(queue, socket)| Some((queue, socket.as_ref()?)))
    }

    pub(super) fn set(&mut self, queue: u32, socket: Socket) {
        crate::fault::step();
        if let Some(entry) = self.by_queue.get_mut(queue as usize) {
            *entry = Some(socket);
        }
    }

    pub(super) fn take(&mut self, queue: u32) -> Option<Socket> {
        crate::fault::step();
        self.by_queue.get_mut(queue as usize)?.take()
    }

    /// Descriptors that they hold.
    pub fn descriptors(&self) -> usize {
        self.by_queue.iter().flatten().map(Socket::descriptors).sum()
    }

    /// Whether the kernel copies what all of them receive into buffers of the port.
    pub(super) fn copy_frags(&self) -> bool {
        let copies = |socket: &Socket| matches!(socket.mode(), NicMode::Copy | NicMode::Generic);
        self.by_queue.iter().flatten().all(|socket| copies(socket) && socket.frags())
    }

    /// Whether each receives what comes by its queue, and no more.
    pub(super) fn are_of_queues(&self) -> bool {
        self.by_queue.iter().flatten().any(|socket| socket.mode() != NicMode::Packet)
    }

    /// The mode, which is the same for all of them.
    pub fn mode(&self) -> Option<NicMode> {
        self.by_queue.iter().flatten().next().map(Socket::mode)
    }

    /// The mode, and why it is no better one: what was `refused` to the program that opened the
    /// interface first.
    pub fn describe(&self, refused: &Refusals) -> String {
        self.mode().map_or("no queues".into(), |mode| describe(mode.name(), refused))
    }
}

/// The sockets of all queues of an interface that no other port has, and what redirects frames to them. A
/// slot is a packet there. The kernel reaches the first `reach` buffers. Runs in the interface's network namespace,
/// which has nothing but this interface: so an AF_PACKET socket does, too.
pub(crate) fn open_all(
    interface: &Interface,
    region: &Arc<Region>,
    slots: u32,
    reach: u32,
) -> Result<(RxAttachment, Sockets)> {
    let opening = Opening {
        reach,
        tx: Vec::new(),
        rx: Vec::new(),
        timestamps: false,
        interface: interface.clone(),
        queues: (0..interface.queues()).collect(),
        region: region.clone(),
        slots,
        frags: false,
        redirects_egress: false,
        receives: false,
    };
    let opened = opening.open(Entry::First(ModeRequest::ANY))?;
    let OpenedQueues { first, sockets: opened, .. } = opened;
    let (attachment, _) =
        first.ok_or_else(|| Error::absent("no queue was opened").at(&interface.name))?;
    let mut sockets = Sockets::none(interface.queues());
    for (entry, socket) in sockets.by_queue.iter_mut().zip(opened) {
        *entry = Some(socket);
    }
    Ok((attachment, sockets))
}
