//! Rings of ports that have gone, while a switch still forwards what their programs had sent.
//!
//! Whoever closes a port is answered at once. Its rings keep their buffers, and count for their user,
//! until the switch's worker does not touch them any more.

use std::{io, sync::Arc};

use ringway_kring::Doorbell;
use ringway_proto::Result;
use ringway_vale::Draining;
use rustix::{event::epoll, fd::OwnedFd};

use crate::{
    kinds::{monitor::Monitor, vale::served_side},
    port::{Port, PortId, Ring},
    regions::{RegionKey, Regions},
    registry::Registry,
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

impl Registry {
    /// Has ports that have stayed served again, with rings made anew if no program uses their region.
    pub(crate) fn drained(&mut self, drained: Drained) {
        drained.iter().for_each(|(_, region)| self.reclaim_region(*region));
        for (id, _) in drained {
            if !self.leftovers.any_of(id) {
                self.serve_again(id);
            }
        }
    }

    fn serve_again(&mut self, id: PortId) {
        let Some(port) = self.ports.get(id).filter(|port| port.all_rings().next().is_some()) else {
            return;
        };
        let Some(side) = port.backend.switch_side() else { return };
        if let (Some(bridge_port), Some(served)) = (side.bridge_port.clone(), served_side(port)) {
            self.bridges.replace(&bridge_port, Box::new(served));
            Monitor::update_mirrors_if_any(self, id);
        }
    }

    /// Fails as long as what the last program of a port has sent is being forwarded.
    pub(crate) fn await_drained(&mut self, id: PortId) -> Result<()> {
        if !self.leftovers.any_of(id) {
            return Ok(());
        }
        let account = self.regions.account_of(self.port(id).region);
        self.deferred.await_memory(account)
    }

    /// Requests that [wait](crate::Step::Wait) for memory and may be begun again: some has been freed, or
    /// nothing is left to wait for.
    pub fn has_freed(&mut self, accounts: &[u32]) -> Vec<u32> {
        let any = self.regions.take_freed();
        let is_ready = |&account: &u32| any || !self.leftovers.is_freeing(account, &self.regions);
        accounts.iter().copied().filter(is_ready).collect()
    }
}
