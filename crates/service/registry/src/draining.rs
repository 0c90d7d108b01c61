//! Rings of ports that have gone, while a switch still forwards what their programs had sent.
//!
//! Whoever closes a port is answered at once. Its rings keep their buffers, and count for their user,
//! until the switch's worker does not touch them any more.

use std::{io, sync::Arc};

use ringway_kring::Doorbell;
use ringway_vale::Draining;
use rustix::{event::epoll, fd::OwnedFd};

use crate::{
    port::{Port, PortId, Ring},
    regions::{RegionKey, Regions},
};

/// In the epoll of a registry's events, the doorbell that workers ring; ports are known by their ids.
const DOORBELL: u64 = u64::MAX;

/// Rings that a worker still reads.
struct Leftover {
    draining: Draining,
    region: RegionKey,
    rings: Vec<Ring>,
    /// Whose they were. If it stays, it is on its bridge without rings until then.
    port: PortId,
}

/// Ports whose rings no worker touches any more, each with its region.
pub(crate) type Drained = Vec<(PortId, RegionKey)>;

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

    /// Whether a worker may have done with rings, or lost ports, since the last look.
    pub fn heard(&self) -> bool {
        // Without a doorbell, each look is as good as the last.
        self.doorbell.as_ref().is_none_or(|doorbell| doorbell.drain())
    }

    /// Frees the rings of a port when its worker does not touch them any more.
    pub fn free_rings_after(
        &mut self,
        id: PortId,
        port: &mut Port,
        draining: Option<Draining>,
        regions: &mut Regions,
    ) {
        let Some(draining) = draining.filter(Draining::is_going_on) else {
            return regions.free_rings_of(port);
        };
        let (region, rings) = (port.region, port.take_rings());
        regions.hold(region);
        self.all.push(Leftover { draining, region, rings, port: id });
    }

    /// The region of a port without programs, whose rings are counted with it, is to be handed out anew when
    /// its worker does not touch it any more.
    pub fn reclaim_after(
        &mut self,
        id: PortId,
        region: RegionKey,
        draining: Draining,
        regions: &mut Regions,
    ) {
        regions.hold(region);
        self.all.push(Leftover { draining, region, rings: Vec::new(), port: id });
    }

    /// Frees what no worker touches any more: call [`Registry::drained`] with what it returns.
    #[must_use]
    pub fn free_done(&mut self, regions: &mut Regions) -> Drained {
        let over = |leftover: &mut Leftover| !leftover.draining.is_going_on();
        free(self.all.extract_if(.., over).collect(), regions)
    }

    /// Frees all that programs of an account have closed, however long that takes: call
    /// [`Registry::drained`] with what it returns.
    #[must_use]
    pub fn free_all(&mut self, account: u32, regions: &mut Regions) -> Drained {
        while regions.is_freeing(account) {
            regions.walk_lists();
        }
        let is_theirs = |leftover: &mut Leftover| regions.is_of(leftover.region, account);
        let theirs: Vec<_> = self.all.extract_if(.., is_theirs).collect();
        theirs.iter().for_each(|leftover| leftover.draining.wait());
        free(theirs, regions)
    }

    /// Whether rings that a port had are among them.
    pub fn any_of(&self, id: PortId) -> bool {
        self.all.iter().any(|leftover| leftover.port == id)
    }

    /// Whether anything is being freed of what programs of an account have closed.
    pub fn is_freeing(&self, account: u32, regions: &Regions) -> bool {
        let is_theirs = |leftover: &Leftover| regions.is_of(leftover.region, account);
        regions.is_freeing(account) || self.all.iter().any(is_theirs)
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

fn free(drained: Vec<Leftover>, regions: &mut Regions) -> Drained {
    let free = |Leftover { region, rings, port, .. }| {
        regions.free_leftover(region, rings);
        (port, region)
    };
    drained.into_iter().map(free).collect()
}
