//! Rings of ports that have gone, while a switch still forwards what their programs had sent.
//!
//! Whoever closes a port is answered at once. Its rings keep their buffers, and count for their user,
//! until the switch's worker does not touch them any more.

use std::{io, sync::Arc};

use ringway_kring::Doorbell;
use ringway_vale::Draining;
use rustix::{event::epoll, fd::OwnedFd};

use crate::{
    port::{PortId, Ring, free_ring},
    regions::RegionKey,
    registry::Registry,
};

/// In the epoll of a registry's events, the doorbell that workers ring; ports are known by their ids.
const DOORBELL: u64 = u64::MAX;

/// Rings that a worker still reads.
struct Leftover {
    draining: Draining,
    region: RegionKey,
    rings: Vec<Ring>,
}

/// All of them.
#[derive(Default)]
pub(crate) struct Leftovers {
    all: Vec<Leftover>,
    /// What a worker rings when it has done with some. Only where something listens to events.
    doorbell: Option<Arc<Doorbell>>,
}

impl Leftovers {
    /// From now on `epoll` hears when a worker has done with rings.
    /// Returns what is rung then, the first time.
    pub fn listen(&mut self, epoll: &OwnedFd) -> io::Result<Option<Arc<Doorbell>>> {
        if self.doorbell.is_none() {
            let doorbell = Arc::new(Doorbell::new()?);
            let data = epoll::EventData::new_u64(DOORBELL);
            epoll::add(epoll, doorbell.as_ref(), data, epoll::EventFlags::IN)?;
            self.doorbell = Some(doorbell.clone());
            return Ok(Some(doorbell));
        }
        Ok(None)
    }

    pub fn doorbell(&self) -> Option<Arc<Doorbell>> {
        self.doorbell.clone()
    }

    /// The rings that count for regions, each with its region.
    pub fn rings(&self) -> impl Iterator<Item = (RegionKey, &[Ring])> {
        self.all.iter().map(|leftover| (leftover.region, leftover.rings.as_slice()))
    }

    /// Whether rings of that region are among them.
    pub fn any_in(&self, region: RegionKey) -> bool {
        self.all.iter().any(|leftover| leftover.region == region)
    }
}

impl Registry {
    /// Frees the rings of a port when its worker does not touch them any more.
    pub(crate) fn free_rings_after(&mut self, id: PortId, draining: Option<Draining>) {
        let Some(draining) = draining.filter(Draining::is_going_on) else {
            return self.free_rings(id);
        };
        let Some(port) = self.ports.get_mut(id) else { return };
        port.host.open = false;
        let rings = port.tx.drain(..).chain(port.rx.drain(..)).collect();
        let region = port.region;
        self.regions.hold(region);
        self.leftovers.all.push(Leftover { draining, region, rings });
    }

    /// Frees what no worker touches any more, and gives up the ports that workers have lost.
    pub(crate) fn hear_workers(&mut self) {
        // Without a doorbell, each look is as good as the last.
        if self.leftovers.doorbell.as_ref().is_none_or(|doorbell| doorbell.drain()) {
            self.give_up_lost_ports();
        }
        let over = |leftover: &mut Leftover| !leftover.draining.is_going_on();
        for Leftover { region, rings, .. } in self.leftovers.all.extract_if(.., over) {
            let book = self.regions.get(region);
            rings.iter().for_each(|ring| free_ring(book, ring));
            // They hold the region, which may be freed now.
            drop(rings);
            self.regions.release(region);
        }
    }
}
