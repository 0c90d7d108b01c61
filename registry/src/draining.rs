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

    /// The regions that they are in.
    fn regions(&self) -> impl Iterator<Item = RegionKey> {
        self.all.iter().map(|leftover| leftover.region)
    }

    /// Whether rings of that region are among them.
    pub fn any_in(&self, region: RegionKey) -> bool {
        self.regions().any(|one| one == region)
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
        for leftover in self.leftovers.all.extract_if(.., over).collect::<Vec<_>>() {
            self.free_leftover(leftover.region, leftover.rings);
        }
    }

    fn free_leftover(&mut self, region: RegionKey, rings: Vec<Ring>) {
        let book = self.regions.get(region);
        rings.iter().for_each(|ring| free_ring(book, ring));
        // They hold the region, which may be freed now.
        drop(rings);
        self.regions.release(region);
        self.freed = true;
    }

    /// Whether anything is being freed of what programs of an account have closed.
    pub(crate) fn is_freeing(&self, account: u32) -> bool {
        let is_theirs = |region| self.regions.is_of(region, account);
        self.regions.is_freeing(account) || self.leftovers.regions().any(is_theirs)
    }

    /// Requests that [wait](crate::Step::Wait) for memory and may be begun again: some has been freed, or
    /// nothing is left to wait for.
    pub fn has_freed(&mut self, accounts: &[u32]) -> Vec<u32> {
        let any = std::mem::take(&mut self.freed);
        accounts.iter().copied().filter(|&account| any || !self.is_freeing(account)).collect()
    }

    /// Frees all that programs of an account have closed, however long that takes.
    pub(crate) fn free_all(&mut self, account: u32) {
        while self.regions.is_freeing(account) {
            self.regions.walk_lists();
        }
        let is_theirs = |leftover: &mut Leftover| self.regions.is_of(leftover.region, account);
        let theirs: Vec<_> = self.leftovers.all.extract_if(.., is_theirs).collect();
        for Leftover { draining, region, rings } in theirs {
            draining.wait();
            self.free_leftover(region, rings);
        }
    }
}
