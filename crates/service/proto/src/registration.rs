//! What a handle asks of a port when it registers, and what it has got.

use serde::{Deserialize, Serialize};

/// Which of a port's rings a handle is to have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RingSelection {
    /// All but the host rings.
    #[default]
    All,
    /// The host rings: those of the stack behind an interface.
    Host,
    /// All, the host rings included.
    AllAndHost,
    /// The tx and the rx ring of this index; where a direction has fewer, its first.
    One(u16),
    /// The same of the host rings.
    OneHost(u16),
    /// A null port with the rings that are asked for: nothing moves its packets. What is sent
    /// stays in the ring, or is dropped at once.
    Null {
        /// Whether what is sent is dropped at once.
        sink: bool,
    },
    /// An end of a pipe by something else than its name: refused, since the name says it.
    PipeEnd,
    /// A number that selects nothing: refused, but only after everything about the port that is wrong
    /// (S-REG-1).
    Other(u32),
}

/// What a monitor wants of the port that it monitors. Nothing: it is no monitor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Monitor {
    /// What the port sends.
    pub tx: bool,
    /// What it receives.
    pub rx: bool,
    /// Both, by exchanging buffers in place of copying.
    pub zero_copy: bool,
}

impl Monitor {
    /// Whether it wants anything.
    pub fn is_asked(self) -> bool {
        self.tx || self.rx || self.zero_copy
    }
}

/// A registration. In a request zeros stand for defaults; in a grant the numbers are those that the
/// port has (S-REG-7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registration {
    /// Which of the port's rings.
    pub rings: RingSelection,
    /// Of the chosen rings, leave out the tx rings.
    pub without_tx: bool,
    /// Of the chosen rings, leave out the rx rings.
    pub without_rx: bool,
    /// No other handle may have the same rings.
    pub exclusive: bool,
    /// What it monitors of the port.
    pub monitor: Monitor,
    /// The program knows that packets may begin with a virtio-net header.
    pub accept_header: bool,
    /// Slots of each tx ring, if this makes the port.
    pub tx_slots: u32,
    /// Slots of each rx ring, if this makes the port.
    pub rx_slots: u32,
    /// Tx rings, if this makes the port.
    pub tx_rings: u16,
    /// Rx rings, if this makes the port.
    pub rx_rings: u16,
    /// Host tx rings, if no program has the interface open yet.
    pub host_tx_rings: u16,
    /// Host rx rings, likewise.
    pub host_rx_rings: u16,
    /// The region that the port is to live in.
    pub mem_id: u16,
    /// Buffers besides those in slots. Fewer may be granted.
    pub extra_bufs: u32,
    /// A word of the client's own. It means nothing to the registry, and comes back with every grant
    /// of the handle, in whichever process.
    pub client_word: u64,
}

/// Rings, slots and region of a port that is to be made, or was. In a request zeros stand for
/// defaults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortShape {
    /// Slots of each tx ring.
    pub tx_slots: u32,
    /// Slots of each rx ring.
    pub rx_slots: u32,
    /// Tx rings, without host rings.
    pub tx_rings: u16,
    /// Rx rings, without host rings.
    pub rx_rings: u16,
    /// Id of the region.
    pub mem_id: u16,
}

/// Rings, slots and memory of a port that is there, or that opening it would make.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortGeometry {
    /// Bytes of the region that programs map.
    pub memsize: u64,
    /// Slots of each tx ring.
    pub tx_slots: u32,
    /// Slots of each rx ring.
    pub rx_slots: u32,
    /// Tx rings, without host rings.
    pub tx_rings: u16,
    /// Rx rings, without host rings.
    pub rx_rings: u16,
    /// Host tx rings.
    pub host_tx_rings: u16,
    /// Host rx rings.
    pub host_rx_rings: u16,
    /// Id of the region.
    pub mem_id: u16,
}
