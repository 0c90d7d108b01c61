//! What a port counts.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// What a port took in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivered {
    pub packets: u64,
    pub bytes: u64,
}

impl Delivered {
    /// One more packet of `bytes` bytes.
    #[inline]
    pub fn add(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
    }

    /// The same without a header of so many bytes in front of each packet, which is for the switch alone.
    #[inline]
    #[must_use]
    pub fn without(self, header_len: u8) -> Delivered {
        let headers = self.packets * u64::from(header_len);
        Delivered { bytes: self.bytes.saturating_sub(headers), ..self }
    }
}

impl AddAssign for Delivered {
    #[inline]
    fn add_assign(&mut self, Delivered { packets, bytes }: Delivered) {
        self.packets += packets;
        self.bytes += bytes;
    }
}

/// What of the packets that a port took in was not received, where the kernel has the last word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unsent {
    /// The kernel has refused them since the last call: they are counted as dropped.
    pub refused: Delivered,
    /// They wait for the kernel to take them.
    pub waiting: Delivered,
}

/// Packets dropped, by reason, since the port was attached. The place is the port itself:
/// the sender for the first six, `spoofed`, `bad_source`, `over_rate` and the four of storms, the receiver for the last two but for
/// what an interface could not take in, and either for `vlan`, `denied`, and `too_short` at an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drops {
    /// The destination is the sender itself, has gone, or there is no other port.
    pub no_destination: u64,
    /// A slot named a buffer that does not exist: the first slot of a packet loses the packet, a
    /// later one arrives empty (S-VALE-9). Also packets of too many slots.
    pub bad_slot: u64,
    /// Shorter than an Ethernet header.
    pub too_short: u64,
    /// The indices of a ring were outside it, or a receiver claimed to have released what it did not
    /// have.
    pub bad_index: u64,
    /// The bridge's forwarding function dropped it.
    pub filtered: u64,
    /// The virtio-net header asked for what cannot be done to the frame behind it.
    pub bad_offload: u64,
    /// Of a VLAN that the port may not send to, or not receive; or with a broken tag.
    pub vlan: u64,
    /// Its source address is none that the port may send with.
    pub spoofed: u64,
    /// A network interface has received it with a source address that is a group's, or zero.
    pub bad_source: u64,
    /// More than the port may send.
    pub over_rate: u64,
    /// The filter of the port that sent it, or of the port that it was for, does not match it.
    pub denied: u64,
    /// It would have been flooded, and the port may not flood more.
    pub storm: u64,
    /// The same, and the port may not flood more broadcasts, more frames for other groups, or more for addresses that
    /// are not known.
    pub storm_broadcast: u64,
    pub storm_multicast: u64,
    pub storm_unknown: u64,
    /// The receiver had no free slot; or the kernel none for what a network interface received, or was to send: the
    /// link is down, too.
    pub ring_full: u64,
    /// A slot of the packet was longer than its buffer; or the packet did not fit the NIC, or a
    /// piece of it the receiver's buffer (S-SYNC-9).
    pub too_long: u64,
}

impl Drops {
    /// All that is counted by the reasons for which frames that a port has sent are lost before the switch has them.
    /// Others are counted by the same reasons, but not while the port is asked for what it has sent.
    #[inline]
    pub fn before_switch(&self) -> u64 {
        self.ring_full + self.too_long + self.too_short + self.bad_offload
    }
}
