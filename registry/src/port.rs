//! A port and its rings, on the registry's side.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};

use ringway_abi::Dir;
use ringway_kring::{Doorbell, Kring, Offsets};
use ringway_proto::{Error, PortKind, Result};
use ringway_region::RingInit;
use ringway_vale::PortConfig;
use ringway_xdp::Link;

use crate::{
    attached::Attachment,
    bridges::BridgePortRef,
    host::HostRings,
    monitors::Watch,
    nic::Nic,
    persistent::Device,
    regions::{RegionBook, RegionKey, Regions},
};

/// Names a port in the registry's book.
pub(crate) type PortId = u64;

/// One ring of a port.
pub(crate) struct Ring {
    pub kring: Kring,
    /// What the program of this ring sleeps on.
    pub doorbell: Arc<Doorbell>,
    pub users: u32,
    pub exclusive: bool,
    /// Where packets begin in their buffers, if not at the start.
    pub offsets: Option<Offsets>,
}

/// What makes a port the kind it is.
pub(crate) enum Kind {
    /// Rings served by a bridge worker. With a device: made by VALE_NEWIF, stays unbound.
    Vale {
        place: Option<BridgePortRef>,
        worker: Arc<Doorbell>,
        device: Option<Box<Device>>,
    },
    /// One end; the pair lives and dies together.
    Pipe {
        parent: PortId,
        peer: PortId,
    },
    /// Only there to be the parent of pipes.
    Parent,
    /// `sink`: it takes what is sent.
    Null {
        sink: bool,
    },
    Nic(Box<Nic>),
    /// Fed by whoever moves another port's packets; `None` when that has left netmap mode.
    Monitor {
        watch: Option<Watch>,
    },
    /// A NIC on a bridge: its rings are the kernel's, and the bridge has them. `polling`: the
    /// processors on which the bridge looks for its packets without sleep, as long as it is up.
    Attached {
        place: BridgePortRef,
        polling: Option<Vec<usize>>,
        link: Link,
        rings: u32,
        attachment: Box<Attachment>,
    },
}

/// A port.
pub(crate) struct Port {
    pub name: String,
    pub uid: u32,
    /// Another user whose it is, too.
    pub shared_with: Option<u32>,
    pub kind: Kind,
    pub region: RegionKey,
    pub tx: Vec<Ring>,
    pub rx: Vec<Ring>,
    /// Which of them are host rings.
    pub host: HostRings,
    /// Its interface has gone: its rings stand still, and nobody finds it any more.
    pub gone: bool,
    /// Handles bound to it.
    pub bindings: u32,
    /// Pipes that have it as parent.
    pub children: u32,
    /// How a VALE port takes part in the bridge that it is on.
    pub config: PortConfig,
    /// Whether anybody has its receive rings, those of the host apart.
    pub receives: Arc<AtomicBool>,
}

/// Counts of rings and slots, tx before rx.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub rings: [u32; 2],
    pub slots: [u32; 2],
}

impl Shape {
    /// Whether any of a selection of rings, tx before rx, is a host ring.
    pub fn has_host(&self, rings: &[Vec<u16>; 2]) -> bool {
        let beyond = |side: usize| rings[side].iter().any(|&i| u32::from(i) >= self.rings[side]);
        beyond(0) || beyond(1)
    }
}

impl Port {
    /// Whether its programs may hold what directs an interface's traffic, which is not theirs alone:
    /// those of root and of this process's own user.
    pub fn may_keep_traffic(&self) -> bool {
        self.uid == 0 || self.uid == rustix::process::getuid().as_raw()
    }

    pub fn rings(&self, dir: Dir) -> &[Ring] {
        match dir {
            Dir::Tx => &self.tx,
            Dir::Rx => &self.rx,
        }
    }

    pub fn rings_mut(&mut self, dir: Dir) -> &mut Vec<Ring> {
        match dir {
            Dir::Tx => &mut self.tx,
            Dir::Rx => &mut self.rx,
        }
    }

    /// The rings of one direction but for the host's.
    pub fn nic_rings(&self, dir: Dir) -> &[Ring] {
        let rings = self.rings(dir);
        &rings[..rings.len() - self.host.made(dir)]
    }

    /// The host rings of one direction, as far as they have been made.
    pub fn host_rings(&self, dir: Dir) -> &[Ring] {
        let rings = self.rings(dir);
        &rings[rings.len() - self.host.made(dir)..]
    }

    /// Rings and slots, those of the host apart.
    pub fn shape(&self) -> Shape {
        let rings = [Dir::Tx, Dir::Rx].map(|dir| self.nic_rings(dir));
        let slots = |rings: &[Ring]| rings.first().map_or(0, |r| r.kring.ring().num_slots());
        Shape { rings: rings.map(|rings| rings.len() as u32), slots: rings.map(slots) }
    }

    pub fn display_kind(&self) -> Option<PortKind> {
        match self.kind {
            Kind::Vale { .. } => Some(PortKind::Vale),
            Kind::Pipe { .. } => Some(PortKind::Pipe),
            Kind::Parent => None,
            Kind::Attached { .. } => Some(PortKind::Nic),
            Kind::Null { .. } => Some(PortKind::Null),
            Kind::Nic(_) => Some(PortKind::Nic),
            Kind::Monitor { .. } => Some(PortKind::Monitor),
        }
    }

    /// Tells the bridge whether deliveries to this port make sense (S-VALE-10).
    pub fn update_receives(&self) {
        let bound = self.nic_rings(Dir::Rx).iter().any(|r| r.users > 0);
        let joined = matches!(&self.kind, Kind::Vale { device: Some(d), .. } if d.is_joined());
        self.receives.store(bound || joined, Relaxed);
    }
}

impl Port {
    /// Makes the rings anew that the port has, in a region of which nothing is taken but by ports
    /// that are made anew as well. Nobody may have them, or serve them.
    pub fn renew_rings(&mut self, book: &mut RegionBook) {
        const AS_BEFORE: &str = "there was as much before";
        for (dir, rings) in [(Dir::Tx, &mut self.tx), (Dir::Rx, &mut self.rx)] {
            for (index, ring) in (0..).zip(rings) {
                let num_slots = ring.kring.ring().num_slots();
                let object = book.take_ring().expect(AS_BEFORE);
                let bufs = book.take_bufs(num_slots).expect(AS_BEFORE);
                let init = RingInit { dir, ringid: index, num_slots };
                ring.kring = Kring::create(&book.region, object, &init, &bufs).expect(AS_BEFORE);
                ring.offsets = None;
            }
        }
    }
}

/// Makes one fresh ring. `bufs`: its buffers, or `None` to take new ones.
pub(crate) fn make_ring(
    book: &mut RegionBook,
    dir: Dir,
    index: u32,
    slots: u32,
    bufs: Option<&[u32]>,
) -> Result<(Ring, Vec<u32>)> {
    let doorbell = Doorbell::new().map_err(|e| Error::io("cannot create a doorbell", e))?;
    let max = book.region.layout().max_slots();
    if slots == 0 || slots > max {
        return Err(Error::no_memory(format!(
            "{slots} slots do not fit a ring of region {}; ask for 1 to {max}",
            book.region.mem_id()
        )));
    }
    let object = book.take_ring()?;
    let taken = match bufs {
        Some(bufs) => Ok(bufs.to_vec()),
        None => book.take_bufs(slots),
    };
    let taken = match taken {
        Ok(bufs) => bufs,
        Err(error) => {
            book.give_ring(object);
            return Err(error);
        }
    };
    let init = RingInit { dir, ringid: index as u16, num_slots: slots };
    let kring = Kring::create(&book.region, object, &init, &taken)
        .expect("object and slots were checked above");
    Ok((
        Ring { kring, doorbell: Arc::new(doorbell), users: 0, exclusive: false, offsets: None },
        taken,
    ))
}

/// Makes all rings of a port, or none.
pub(crate) fn make_rings(
    regions: &mut Regions,
    region: RegionKey,
    shape: Shape,
) -> Result<[Vec<Ring>; 2]> {
    let book = regions.get(region);
    let mut made = [Vec::new(), Vec::new()];
    for (side, dir) in [Dir::Tx, Dir::Rx].into_iter().enumerate() {
        for index in 0..shape.rings[side] {
            match make_ring(book, dir, index, shape.slots[side], None) {
                Ok((ring, _)) => made[side].push(ring),
                Err(error) => {
                    made.into_iter().flatten().for_each(|ring| free_ring(book, &ring));
                    return Err(error);
                }
            }
        }
    }
    Ok(made)
}

/// Frees a ring with the buffers that are in its slots now (S-MEM-10).
pub(crate) fn free_ring(book: &mut RegionBook, ring: &Ring) {
    let view = ring.kring.ring();
    for i in 0..view.num_slots() {
        book.give_buf(view.slot(i).buf_idx);
    }
    book.give_ring(ring.kring.object());
}
