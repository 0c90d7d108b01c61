//! The driver of one ring: which one, by what the grant says of it.

use std::sync::Arc;

use ringway_abi::Dir;
use ringway_drivers::{Null, PipeRx, PipeTx, Served};
use ringway_kring::{Accepted, Bell, Driver, Kring};
use ringway_region::Region;
use ringway_registry::{FdIndex, Link, RingGrant};
use rustix::fd::OwnedFd;

/// Every kind of driver, chosen by a predictable branch rather than a call through a table.
#[derive(Debug)]
pub(crate) enum RingDriver {
    Null(Null),
    Served(Served),
    PipeTx(PipeTx),
    PipeRx(PipeRx),
}

impl Driver for RingDriver {
    #[inline]
    fn sync(&self, kring: &Kring, accepted: Accepted) {
        match self {
            RingDriver::PipeTx(driver) => driver.sync(kring, accepted),
            RingDriver::PipeRx(driver) => driver.sync(kring, accepted),
            RingDriver::Served(driver) => driver.sync(kring, accepted),
            RingDriver::Null(driver) => driver.sync(kring, accepted),
        }
    }
}

/// The descriptors of a grant, each taken once.
pub(crate) struct GrantFds(Vec<Option<OwnedFd>>);

impl GrantFds {
    pub fn new(fds: Vec<OwnedFd>) -> GrantFds {
        GrantFds(fds.into_iter().map(Some).collect())
    }

    pub fn take(&mut self, index: FdIndex) -> Option<OwnedFd> {
        self.0.get_mut(usize::from(index))?.take()
    }

    fn bell(&mut self, index: FdIndex) -> Option<Arc<Bell>> {
        self.take(index).map(|fd| Arc::new(fd.into()))
    }
}

impl RingDriver {
    /// The driver of the ring that `grant` describes; `None` if the grant does not add up.
    pub fn new(region: &Arc<Region>, grant: &RingGrant, fds: &mut GrantFds) -> Option<RingDriver> {
        Some(match grant.link {
            Link::Null => RingDriver::Null(Null),
            Link::Served { worker } => RingDriver::Served(Served { worker: fds.bell(worker)? }),
            Link::Pipe { object, num_slots, bell } => {
                if num_slots != grant.num_slots {
                    return None;
                }
                let bell = fds.bell(bell)?;
                match grant.dir {
                    Dir::Tx => RingDriver::PipeTx(PipeTx {
                        peer: Kring::open(region, object, Dir::Rx, num_slots)?,
                        receiver: bell,
                    }),
                    Dir::Rx => RingDriver::PipeRx(PipeRx {
                        peer: Kring::open(region, object, Dir::Tx, num_slots)?,
                        sender: bell,
                    }),
                }
            }
            Link::Xdp { .. } => return None,
        })
    }
}
