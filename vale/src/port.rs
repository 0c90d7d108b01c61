//! What a bridge asks of a port, and what it counts.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ringway_abi::Dir;
use ringway_mirror::Mirrors;
use rustix::fd::BorrowedFd;
use serde::{Deserialize, Serialize};

use crate::{
    frame::{Burst, Frame},
    offsets::Offsets,
};

/// Place of a port in its bridge: 0..=253.
pub type PortIndex = u8;

/// A port of a bridge, as the bridge's worker uses it. "Sent" and "received" are the port's
/// own view: the bridge collects what the port sent and delivers what it is to receive.
pub trait Port: Send {
    /// Adds to `burst` what the port has sent since the last [`release`](Port::release), up
    /// to the size of a burst. Returns the number of slots looked at, 0 if there is nothing.
    fn collect<'a>(&'a mut self, ring: usize, burst: &mut Burst<'a>, drops: &mut Drops) -> u32;

    /// Takes the slots of the last [`collect`](Port::collect) as done with.
    fn release(&mut self, ring: usize);

    /// As [`release`](Port::release), for the first `slots` only: the others wait for a lossless
    /// port, and are collected again. Only called if the port [`can_wait`](Port::can_wait).
    fn release_some(&mut self, ring: usize, _slots: u32) {
        self.release(ring);
    }

    /// Whether it keeps what is not released: if not, a full port loses it, lossless or not.
    fn can_wait(&self) -> bool {
        false
    }

    /// Tells whether what is left of a ring after [`release_some`](Port::release_some) waits for
    /// somebody else.
    fn hold_back(&mut self, _ring: usize, _held: bool) {}

    /// Rings that the port sends on.
    fn tx_rings(&self) -> usize;

    /// Whether anybody would see what is delivered.
    fn receives(&self) -> bool;

    /// Rings that the port receives on.
    fn rx_rings(&self) -> usize {
        1
    }

    /// What its receive ring `ring`, one of those there are, has room for. By default there is no
    /// telling, and nobody waits for it.
    fn room(&mut self, _ring: usize) -> Room {
        Room { free: u32::MAX, slots: u32::MAX }
    }

    /// Asks to hear the doorbell when slots of that ring are freed.
    fn await_room(&self, _ring: usize) {}

    /// Copies packets of `burst` to the port's receive ring `ring`, modulo those it has, in
    /// their order. It counts what it cannot deliver in `drops`.
    fn deliver(
        &mut self,
        ring: usize,
        frames: &[Frame],
        burst: &Burst<'_>,
        drops: &mut Drops,
    ) -> Delivered;

    /// Whether there is room for `slots` more. If not, the rest of the burst is lost, too
    /// (S-VALE-10). A port that says so always may lose some of the packets that belong together.
    fn has_room(&mut self, _ring: usize, _slots: u32, _burst: &Burst<'_>) -> bool {
        true
    }

    /// Has a ring find the data of its slots at offsets, or at the start of the buffers again. Ports
    /// that have no slots have no offsets.
    fn set_offsets(&mut self, _dir: Dir, _ring: usize, _offsets: Option<Offsets>) {}

    /// [`PortConfig::max_frame`](crate::PortConfig::max_frame) has changed: from now on frames of up to
    /// so many bytes, without a VLAN tag, are to be delivered, and no longer ones, where it is not
    /// buffers but an interface that says how long they may be.
    fn set_max_frame(&mut self, _bytes: u32) {}

    /// Makes deliveries visible. `idle` says that the bridge has nothing more to do: whoever
    /// waits is to be woken, however little there is.
    fn flush(&mut self, idle: bool);

    /// Makes freed slots visible, after all deliveries are: what has left a port has arrived
    /// (S-VALE-5). `idle` as for [`flush`](Port::flush).
    fn complete(&mut self, _idle: bool) {}

    /// Learns which receive slots the program has released, where it matters at once. Returns
    /// whether there was anything to learn.
    fn take_back(&mut self) -> bool {
        false
    }

    /// From now on, what the port's rings carry is shown to these monitors and to no others. A
    /// port that has no rings of a program has no monitors.
    fn set_mirrors(&mut self, mirrors: PortMirrors) {
        drop(mirrors);
    }

    /// Counts what was lost where the port does not look with every packet, such as in the kernel: when
    /// somebody wants to know, and before the port goes.
    fn count_lost(&mut self, _drops: &mut Drops) {}

    /// Announces that the worker is about to sleep.
    fn arm(&mut self);

    /// What the worker listens to while it sleeps.
    fn doorbell(&self) -> BorrowedFd<'_>;

    /// Called when the worker has heard the doorbell, before it looks for work.
    fn drain(&self);
}

/// The mirrors of a port's rings, in the order of the rings.
#[derive(Debug, Default)]
pub struct PortMirrors {
    pub tx: Vec<Mirrors>,
    pub rx: Vec<Mirrors>,
}

/// Slots of a receive ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Those that are free.
    pub free: u32,
    /// Those that would be, if all were.
    pub slots: u32,
}

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
}

/// Packets dropped, by reason, since the port was attached. The place is the port itself:
/// the sender for the first six, the receiver for the last two but for what an interface could not
/// take in, and either for `vlan`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drops {
    /// The destination is the sender itself, has gone, or there is no other port.
    pub no_destination: u64,
    /// A slot named a buffer that does not exist, or more bytes than a buffer holds: the first
    /// slot of a packet loses the packet, a later one arrives empty (S-VALE-9). Also packets of
    /// too many slots.
    pub bad_slot: u64,
    /// Shorter than an Ethernet header.
    pub too_short: u64,
    /// The ring's indices were outside the ring.
    pub bad_index: u64,
    /// The bridge's forwarding function dropped it.
    pub filtered: u64,
    /// The virtio-net header asked for what cannot be done to the frame behind it.
    pub bad_offload: u64,
    /// Of a VLAN that the port may not send to, or not receive; or with a broken tag, or one more
    /// behind that which would have come off.
    pub vlan: u64,
    /// The receiver had no free slot; or the kernel none for what a network interface received.
    pub ring_full: u64,
    /// The packet did not fit the NIC; or a piece of it did not fit the receiver's buffer, and
    /// arrived empty (S-VALE-11).
    pub too_long: u64,
}

/// What went through a port of a bridge, in packets and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// From the port into the bridge.
    pub sent_packets: u64,
    pub sent_bytes: u64,
    /// From the bridge to the port.
    pub received_packets: u64,
    pub received_bytes: u64,
    pub drops: Drops,
}

macro_rules! counters {
    ($($field:ident $(. $sub:ident)?),* $(,)?) => {
        /// [`Totals`] that one thread adds to and others read.
        #[derive(Debug, Default)]
        pub struct PortCounters { values: [AtomicU64; [$(stringify!($field)),*].len()] }

        impl PortCounters {
            /// Replaces the totals. For the worker only.
            pub(crate) fn store(&self, t: &Totals) {
                let new = [$(t.$field $(. $sub)?),*];
                for (value, new) in self.values.iter().zip(new) {
                    value.store(new, Relaxed);
                }
            }

            /// The totals as the worker last stored them.
            pub fn totals(&self) -> Totals {
                let mut t = Totals::default();
                let mut values = self.values.iter().map(|v| v.load(Relaxed));
                $(t.$field $(. $sub)? = values.next().unwrap_or(0);)*
                t
            }
        }
    };
}

counters!(
    sent_packets,
    sent_bytes,
    received_packets,
    received_bytes,
    drops.no_destination,
    drops.bad_slot,
    drops.too_short,
    drops.bad_index,
    drops.filtered,
    drops.bad_offload,
    drops.vlan,
    drops.ring_full,
    drops.too_long,
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_keep_every_field() {
        let totals = Totals {
            sent_packets: 1,
            sent_bytes: 2,
            received_packets: 3,
            received_bytes: 4,
            drops: Drops {
                no_destination: 5,
                bad_slot: 6,
                too_short: 7,
                bad_index: 8,
                filtered: 9,
                bad_offload: 10,
                vlan: 13,
                ring_full: 11,
                too_long: 12,
            },
        };
        let counters = PortCounters::default();
        counters.store(&totals);
        assert_eq!(counters.totals(), totals);
    }
}
