//! What a successful registration gives to the client: where everything is, and the file
//! descriptors to reach it.

use ringway_abi::Dir;
use ringway_kring::Offsets;
use ringway_mirror::MirrorMode;
use ringway_region::{Layout, Span, Timestamps};
use serde::{Deserialize, Serialize};

use crate::{options::Options, registration::Registration, version::Shown};

/// Place of a descriptor among those that travel with a reply.
pub type FdIndex = u16;

/// A binding, as the client sees it. Descriptor 0 of the reply is the region's memfd.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Grant {
    /// The port, by its full name.
    pub name: String,
    /// What kind of port it is.
    pub kind: PortKind,
    /// Id of the region.
    pub mem_id: u16,
    /// Where the region's parts are. The client checks it against the memfd's size.
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
    /// Extra buffers that the client is to list, from `ni_bufs_head` on (S-MEM-9). Only a registration
    /// is answered with them.
    pub extra_bufs: Vec<Span>,
    /// For ports of switches: the user whose the switch is, if it is another than the one who asks,
    /// and not root: that user decides where frames go.
    pub switch_owner: Option<u32>,
}

/// What kind of port it is, for display.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PortKind {
    /// A port of a switch.
    Vale,
    /// An end of a pipe.
    Pipe,
    /// A port that moves no packets.
    Null,
    /// A network interface, or the stack behind it.
    Nic,
    /// A monitor of another port.
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
    /// Its direction, seen from the client.
    pub dir: Dir,
    /// Index within the port and direction.
    pub index: u16,
    /// Ring object within the region.
    pub object: u32,
    /// Slots of the ring.
    pub num_slots: u32,
    /// The doorbell that the program of this ring sleeps on.
    pub doorbell: FdIndex,
    /// What moves its packets.
    pub link: RingBackend,
}

/// What moves the ring's packets, and how to reach it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum RingBackend {
    /// The null driver, which moves none.
    Null,
    /// The same, but what is sent vanishes.
    Sink,
    /// A switch's worker.
    Served {
        /// What the worker sleeps on.
        worker: FdIndex,
    },
    /// The other end of a pipe.
    Pipe {
        /// Its ring object, in the same region.
        object: u32,
        /// Slots of that ring.
        num_slots: u32,
        /// What its program sleeps on.
        doorbell: FdIndex,
    },
    /// The kernel, through an AF_XDP socket.
    Xdp {
        /// The interface's queue that the socket is bound to.
        queue: u32,
        /// The socket, bound.
        socket: FdIndex,
        /// The XDP program's link. A client that holds it keeps the traffic coming when the daemon has
        /// died, and could detach it under other users of the interface: so only root and the
        /// daemon's own user get it.
        program: Option<FdIndex>,
        /// Entries of the socket's fill, completion, rx and tx ring.
        sizes: [u32; 4],
        /// The socket leads to the host's stack.
        host: bool,
        /// A packet may have several buffers.
        frags: bool,
        /// A packet to be sent may have so many at most. `None`: 18, as where the kernel copies.
        #[serde(with = "Shown::<7>", default)]
        max_segs: Option<u32>,
        /// The interface is an end of a pair, as of veth: the other end may have a smaller MTU.
        #[serde(with = "Shown::<7>", default)]
        is_pair: bool,
        /// A packet's checksum may be partial.
        partial_csum: bool,
        /// What is received has timestamps.
        timestamps: bool,
    },
    /// The kernel, through an AF_PACKET socket.
    Packet {
        /// The interface's queue.
        queue: u32,
        /// The socket, bound; for rx rings with a ring of blocks.
        socket: FdIndex,
        /// As for [`Xdp`](RingBackend::Xdp).
        program: Option<FdIndex>,
        /// Bytes of a block, and how many blocks.
        blocks: [u32; 2],
        /// Which timestamps the client is to put down.
        timestamps: Option<Timestamps>,
    },
    /// The process that moves the packets of the monitored port.
    Monitor {
        /// That is a switch's worker.
        served: bool,
    },
}

/// A monitor of a ring, for the process that moves the packets of that ring: it feeds the
/// monitor's ring.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MirrorGrant {
    /// What is copied or exchanged.
    pub mode: MirrorMode,
    /// Of the ring that is monitored, and of the monitor's.
    pub offsets: [Offsets; 2],
    /// Where the monitor's ring is; `None`: in the region of the ring that is monitored.
    pub memory: Option<MirrorMemory>,
    /// Ring object within that region.
    pub object: u32,
    /// The number of the ring, of all that are ever made in that region.
    pub id: u32,
    /// Slots of the ring.
    pub num_slots: u32,
    /// What the monitor's program sleeps on.
    pub doorbell: FdIndex,
}

/// Another region.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct MirrorMemory {
    /// The region.
    pub memfd: FdIndex,
    /// Id of the region.
    pub mem_id: u16,
    /// Where the region's parts are.
    pub layout: Layout,
}
