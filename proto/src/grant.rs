//! What a successful registration gives to the client: where everything is, and the file
//! descriptors to reach it.

use ringway_abi::Dir;
use ringway_kring::Offsets;
use ringway_mirror::MirrorMode;
use ringway_region::{Layout, Timestamps};
use serde::{Deserialize, Serialize};

use crate::{options::Options, registration::Registration};

/// Place of a descriptor among those that travel with a reply.
pub type FdIndex = u16;

/// A binding, as the client sees it. Descriptor 0 of the reply is the region's memfd.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Grant {
    pub name: String,
    pub kind: PortKind,
    pub mem_id: u16,
    pub layout: Layout,
    /// Byte of the region at which the handle's interface begins.
    pub netif_offset: u64,
    /// The registration as it was granted (S-REG-7).
    pub registration: Registration,
    /// Its options, likewise.
    pub options: Options,
    /// The rings that this binding has, tx before rx.
    pub rings: Vec<RingGrant>,
    /// Whether receive rings are stamped with the time at every sync (S-SYNC-10).
    pub timestamps: bool,
}

/// What kind of port it is, for display.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PortKind {
    Vale,
    Pipe,
    Null,
    Nic,
    Monitor,
}

impl std::fmt::Display for PortKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            PortKind::Vale => "vale",
            PortKind::Pipe => "pipe",
            PortKind::Null => "null",
            PortKind::Nic => "nic",
            PortKind::Monitor => "monitor",
        })
    }
}

/// One ring of a binding.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RingGrant {
    pub dir: Dir,
    /// Index within the port and direction.
    pub index: u16,
    /// Ring object within the region.
    pub object: u32,
    pub num_slots: u32,
    /// The doorbell that the program of this ring sleeps on.
    pub doorbell: FdIndex,
    pub link: RingBackend,
}

/// Who moves the ring's packets, and how to reach them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum RingBackend {
    /// Nobody: the null driver.
    Null,
    /// Nobody, but what is sent vanishes.
    Sink,
    /// A bridge worker, which sleeps on `worker`.
    Served { worker: FdIndex },
    /// The other end of a pipe: its ring, and what its program sleeps on.
    Pipe { object: u32, num_slots: u32, doorbell: FdIndex },
    /// The kernel, through an AF_XDP socket bound to `queue`. Holding the program's link keeps
    /// the traffic coming when the daemon has died; whoever holds it could also detach it, under
    /// other users of the interface, so only root and the daemon's own user get it.
    /// `host`: the socket leads to the host's stack. `frags`: a packet may have several buffers.
    /// `partial_csum`: its checksum may be.
    /// `timestamps`: what is received has them.
    Xdp {
        queue: u32,
        socket: FdIndex,
        program: Option<FdIndex>,
        sizes: [u32; 4],
        host: bool,
        frags: bool,
        partial_csum: bool,
        timestamps: bool,
    },
    /// The kernel, through an AF_PACKET socket: for rx rings with a ring of `blocks`, their size and
    /// how many. `program` as above.
    /// `timestamps`: what the client is to put down.
    Packet {
        queue: u32,
        socket: FdIndex,
        program: Option<FdIndex>,
        blocks: [u32; 2],
        timestamps: Option<Timestamps>,
    },
    /// Whoever moves the packets of the monitored port; `served`: that is a bridge worker.
    Monitor { served: bool },
}

/// A monitor of a ring, for the process that moves the packets of that ring: it feeds the
/// monitor's ring.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MirrorGrant {
    pub mode: MirrorMode,
    /// Of the ring that is monitored, and of the monitor's.
    pub offsets: [Offsets; 2],
    /// Where the monitor's ring is; `None`: in the region of the ring that is monitored.
    pub memory: Option<MirrorMemory>,
    /// Ring object within that region, and which of the rings that are ever made there.
    pub object: u32,
    pub id: u32,
    pub num_slots: u32,
    /// What the monitor's program sleeps on.
    pub doorbell: FdIndex,
}

/// Another region.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct MirrorMemory {
    pub memfd: FdIndex,
    pub mem_id: u16,
    pub layout: Layout,
}
