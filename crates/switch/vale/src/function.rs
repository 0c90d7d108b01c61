//! The forwarding function of a bridge: what decides where a packet goes (S-VALE-20).
//!
//! A bridge learns by default. The other built-in functions are chosen by a [`Forwarding`](crate::Forwarding),
//! while the bridge runs; a program that runs bridges in its own process can write its own:
//!
//! ```
//! use ringway_vale::{Bridge, Forward, Packet, Verdict};
//!
//! /// Joins ports 0 and 1 like a cable, and keeps the frames of others out.
//! struct Cable;
//!
//! impl Forward for Cable {
//!     fn decide(&mut self, packet: &Packet<'_>) -> Verdict {
//!         match packet.source() {
//!             0 => Verdict::Port(1),
//!             1 => Verdict::Port(0),
//!             _ => Verdict::Drop,
//!         }
//!     }
//! }
//!
//! let bridge = Bridge::start("vale-cable")?;
//! bridge.set_function(Box::new(Cable));
//! # Ok::<(), std::io::Error>(())
//! ```

use ringway_switch_port::{Burst, Frame, HEADER, PortIndex};

/// An Ethernet address, in the order of its bytes on the wire.
pub type Mac = [u8; 6];

/// Decides where packets go. It runs on the bridge's thread, for one packet after the other:
/// what it spends, every port of the bridge waits for.
pub trait Forward: Send {
    /// Where `packet` goes. A packet that had to wait for a lossless port is shown again.
    fn decide(&mut self, packet: &Packet<'_>) -> Verdict;

    /// A port was taken off the bridge, or its place in it changed: what was learned of it no
    /// longer holds. Its index may be another port's next.
    fn forget(&mut self, _port: PortIndex) {}

    /// What it has counted of a port since the last call.
    fn take_counters(&mut self, _port: PortIndex) -> LearningCounters {
        LearningCounters::default()
    }

    /// It is `seconds` by the bridge's clock. Called whenever that changes, while there is
    /// traffic, and before the traffic that ends a drain.
    fn tick(&mut self, _seconds: u32) {}
}

/// What a function that learns counts of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LearningCounters {
    /// Addresses that were behind another port until this one sent with them.
    pub moved: u64,
    /// Packets whose source was not learned, because the port has too many addresses, or it is a static
    /// address of another port.
    pub unlearned: u64,
}

/// Where a packet goes. One that is sent to its own source, or to a port that is not there, is
/// dropped, and counted there as `no_destination`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// To a port, on the ring of the same number as it came from, modulo those there are
    /// (S-VALE-8).
    Port(PortIndex),
    /// To a port, on a ring of this number, modulo those there are.
    Ring(PortIndex, u16),
    /// To every other port, on ring 0.
    Flood,
    /// Nowhere; counted at its source as `filtered`.
    Drop,
}

/// A packet as a forwarding function sees it.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    pub(crate) frame: &'a Frame,
    pub(crate) burst: &'a Burst<'a>,
}

impl Packet<'_> {
    /// The port that sent it.
    #[inline]
    pub fn source(&self) -> PortIndex {
        self.burst.source.port
    }

    /// The ring that it was sent on.
    #[inline]
    pub fn ring(&self) -> usize {
        self.burst.source.ring
    }

    /// Destination address.
    pub fn dst(&self) -> Mac {
        bytes_of(self.frame.dst())
    }

    /// Source address.
    pub fn src(&self) -> Mac {
        bytes_of(self.frame.src())
    }

    /// The VLAN that it belongs to; 0 if to none, or if no port of the bridge knows of VLANs.
    #[inline]
    pub fn vlan(&self) -> u16 {
        self.frame.vid
    }

    /// Flags of its first slot, as the program set them: `NS_NO_LEARN` and the port bits are
    /// for forwarding functions, and the built-in ones ignore them (S-FLAGS-NS_NO_LEARN). 0 if it came
    /// from a NIC.
    #[inline]
    pub fn flags(&self) -> u16 {
        self.frame.flags
    }

    /// Bytes altogether, with the virtio-net header if its source has one.
    pub fn length(&self) -> u32 {
        self.frame.len
    }

    /// Copies the first bytes of its Ethernet frame, as far as they are in one slot; returns how
    /// many. The first [`HEADER`] are those that the receiver gets; those behind may be changed by the sender
    /// after they were looked at.
    pub fn peek(&self, to: &mut [u8]) -> usize {
        let Some((buf, len)) = self.burst.begin(self.frame) else { return 0 };
        let n = buf.copy_to(len as usize, to);
        let read = n.min(HEADER);
        to.iter_mut().zip(self.frame.header()).take(read).for_each(|(to, byte)| *to = byte);
        n
    }
}

fn bytes_of(mac: u64) -> Mac {
    let [a, b, c, d, e, f, ..] = mac.to_le_bytes();
    [a, b, c, d, e, f]
}

pub(crate) fn number_of([a, b, c, d, e, f]: Mac) -> u64 {
    u64::from_le_bytes([a, b, c, d, e, f, 0, 0])
}
