//! The driver of one ring: which one, by what the grant says of it.

use std::sync::Arc;

use ringway_abi::Dir;
use ringway_kring::{Accepted, Doorbell, Driver, Kring};
use ringway_packet::{Geometry, PacketRx, PacketTx};
use ringway_proto::{FdIndex, RingBackend, RingGrant};
use ringway_region::Region;
use ringway_ring::{Monitor, Null, PipeRx, PipeTx, Sink, WorkerServed};
use ringway_xdp::{KickOutcome, Lost, MAX_FRAGS, RingSizes, XdpRx, XdpTx, kick_rx};
use rustix::{
    fd::{BorrowedFd, OwnedFd},
    net::sockopt::socket_error,
};

use crate::error::Error;

/// A driver that this program runs by itself: nothing at the other end of the ring is anybody else's.
pub(crate) trait LocalDriver: Driver + Send + Sync {
    /// Ends what it writes; what was lost is counted.
    #[cfg(feature = "files")]
    fn finish(&self, _kring: &Kring) {}

    /// Why nothing moves any more through the port `name`, if that is so.
    fn check(&self, _kring: &Kring, _name: &str) -> Result<(), Error> {
        Ok(())
    }
}

impl LocalDriver for Null {}
impl LocalDriver for Sink {}

/// Every kind of driver, chosen by a predictable branch rather than a call through a table.
pub(crate) enum RingDriver {
    Local(Box<dyn LocalDriver>),
    WorkerServed(WorkerServed),
    PipeTx(PipeTx),
    PipeRx(PipeRx),
    Monitor(Monitor),
    XdpTx(XdpTx),
    XdpRx(XdpRx),
    PacketTx(PacketTx),
    PacketRx(PacketRx),
}

impl Driver for RingDriver {
    // Where there are monitors it is called in a second place, and a call is a tenth of a sync.
    #[inline(always)]
    fn sync(&self, kring: &Kring, accepted: Accepted) {
        match self {
            RingDriver::PipeTx(driver) => driver.sync(kring, accepted),
            RingDriver::PipeRx(driver) => driver.sync(kring, accepted),
            RingDriver::WorkerServed(driver) => driver.sync(kring, accepted),
            RingDriver::Monitor(driver) => driver.sync(kring, accepted),
            RingDriver::XdpTx(driver) => driver.sync(kring, accepted),
            RingDriver::XdpRx(driver) => driver.sync(kring, accepted),
            RingDriver::PacketTx(driver) => driver.sync(kring, accepted),
            RingDriver::PacketRx(driver) => driver.sync(kring, accepted),
            RingDriver::Local(driver) => driver.sync(kring, accepted),
        }
    }

    #[inline]
    fn fails(&self, kring: &Kring) -> bool {
        match self {
            RingDriver::Local(driver) => driver.fails(kring),
            RingDriver::Monitor(driver) => driver.fails(kring),
            _ => false,
        }
    }
}

impl std::fmt::Debug for RingDriver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            RingDriver::Local(_) => "local",
            RingDriver::WorkerServed(_) => "served",
            RingDriver::PipeTx(_) | RingDriver::PipeRx(_) => "pipe",
            RingDriver::Monitor(_) => "monitor",
            RingDriver::XdpTx(_) | RingDriver::XdpRx(_) => "xdp",
            RingDriver::PacketTx(_) | RingDriver::PacketRx(_) => "packet",
        })
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

    pub fn doorbell(&mut self, index: FdIndex) -> Option<Arc<Doorbell>> {
        self.take(index).map(|fd| Arc::new(fd.into()))
    }
}

impl RingDriver {
    /// The driver of the ring that `grant` describes; `None` if the grant does not add up.
    pub fn new(region: &Arc<Region>, grant: &RingGrant, fds: &mut GrantFds) -> Option<RingDriver> {
        Some(match grant.link {
            RingBackend::Null => RingDriver::Local(Box::new(Null)),
            RingBackend::Sink => RingDriver::Local(Box::new(Sink)),
            RingBackend::Monitor { .. } => RingDriver::Monitor(Monitor),
            RingBackend::Served { worker } => {
                RingDriver::WorkerServed(WorkerServed::new(fds.doorbell(worker)?))
            }
            RingBackend::Pipe { object, num_slots, doorbell } => {
                if num_slots != grant.num_slots {
                    return None;
                }
                let doorbell = fds.doorbell(doorbell)?;
                match grant.dir {
                    Dir::Tx => RingDriver::PipeTx(PipeTx {
                        peer: Kring::open(region, object, Dir::Rx, num_slots)?,
                        receiver: doorbell,
                    }),
                    Dir::Rx => RingDriver::PipeRx(PipeRx {
                        peer: Kring::open(region, object, Dir::Tx, num_slots)?,
                        sender: doorbell,
                    }),
                }
            }
            RingBackend::Xdp {
                socket,
                sizes: [fill, completion, rx, tx],
                host,
                frags,
                max_segs,
                is_pair,
                partial_csum,
                timestamps,
                ..
            } => {
                let socket = Arc::new(fds.take(socket)?);
                let sizes = RingSizes { fill, completion, rx, tx };
                let layout = region.layout();
                match grant.dir {
                    Dir::Tx => {
                        let driver = XdpTx::new(socket, sizes, layout).ok()?;
                        let max_segs = if frags { max_segs.unwrap_or(MAX_FRAGS) } else { 1 };
                        let driver = driver.with_frags(max_segs);
                        let driver = if is_pair { driver.of_pair() } else { driver };
                        RingDriver::XdpTx(if host { driver.to_host() } else { driver })
                    }
                    Dir::Rx => {
                        let driver = XdpRx::new(socket, sizes, layout).ok()?;
                        let driver = if frags { driver.with_frags() } else { driver };
                        let driver =
                            if partial_csum { driver.with_csum_completion() } else { driver };
                        let driver = if timestamps { driver.with_timestamps() } else { driver };
                        RingDriver::XdpRx(if host { driver.from_host() } else { driver })
                    }
                }
            }
            RingBackend::Packet { socket, blocks: [block_size, blocks], timestamps, .. } => {
                let socket = Arc::new(fds.take(socket)?);
                let (geometry, layout) = (Geometry { block_size, blocks }, region.layout());
                match grant.dir {
                    Dir::Tx => RingDriver::PacketTx(PacketTx::new(socket, layout)),
                    Dir::Rx => {
                        let driver = PacketRx::new(socket, geometry, layout).ok()?;
                        RingDriver::PacketRx(driver.with_timestamps(timestamps))
                    }
                }
            }
        })
    }

    /// What the kernel has dropped before it reached the ring, where the ring does not count it.
    pub fn lost(&self, kring: &Kring) -> Lost {
        match self {
            RingDriver::XdpRx(driver) => driver.lost(),
            RingDriver::XdpTx(driver) => driver.lost(),
            RingDriver::PacketRx(driver) => {
                driver.count_drops(kring);
                Lost::default()
            }
            _ => Lost::default(),
        }
    }

    /// Whether something has happened to the interface that the kernel says once: that it has gone
    /// down, or away. Until then every wait for an AF_PACKET socket ends at once.
    pub fn has_failed(&self) -> bool {
        let RingDriver::PacketRx(driver) = self else { return false };
        socket_error(driver.wait_fd()).is_ok_and(|error| error.is_err())
    }

    /// Whether the kernel says that the interface has gone whose packets it moves.
    pub fn has_lost_interface(&self) -> bool {
        match self {
            RingDriver::XdpTx(_) | RingDriver::XdpRx(_) => {
                self.socket().is_some_and(|socket| kick_rx(socket) == Ok(KickOutcome::Gone))
            }
            RingDriver::PacketTx(_) | RingDriver::PacketRx(_) => {
                self.socket().is_some_and(ringway_packet::has_lost_interface)
            }
            _ => false,
        }
    }

    /// The driver that this program runs by itself, if it is one.
    pub fn local(&self) -> Option<&dyn LocalDriver> {
        match self {
            RingDriver::Local(driver) => Some(&**driver),
            _ => None,
        }
    }

    /// The kernel's socket, where it is the kernel that moves the packets.
    pub fn socket(&self) -> Option<BorrowedFd<'_>> {
        match self {
            RingDriver::XdpTx(driver) => Some(driver.wait_fd()),
            RingDriver::XdpRx(driver) => Some(driver.wait_fd()),
            RingDriver::PacketTx(driver) => Some(driver.wait_fd()),
            RingDriver::PacketRx(driver) => Some(driver.wait_fd()),
            _ => None,
        }
    }
}
