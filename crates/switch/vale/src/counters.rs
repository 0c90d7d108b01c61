//! What the bridge counts for each of its ports.

use std::sync::atomic::{AtomicU16, AtomicU64, Ordering::Relaxed};

use ringway_switch_port::{Delivered, Drops, PortIndex};
use serde::{Deserialize, Serialize};

/// What went through a port of a bridge, in packets and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// From the port into the bridge, also where they were lost.
    pub sent_packets: u64,
    pub sent_bytes: u64,
    /// From the bridge to the port.
    pub received_packets: u64,
    pub received_bytes: u64,
    /// Addresses that are behind the port by now, as far as they were learned.
    pub known: u64,
    /// Addresses that were behind another port until this one sent with them: a machine has moved,
    /// or the port claims to be its neighbour.
    pub moved: u64,
    /// Packets whose source was not learned, because the port has too many addresses (what is sent to these
    /// is flooded), or it is a static address of another port.
    pub unlearned: u64,
    /// Packets that a program in the kernel has sent past the worker, which had not got through with earlier
    /// ones of the port.
    pub reordered: u64,
    pub drops: Drops,
}

impl Totals {
    /// So much of what the port took in was not received, or not yet.
    pub(crate) fn take_received(&mut self, Delivered { packets, bytes }: Delivered) {
        self.received_packets = self.received_packets.saturating_sub(packets);
        self.received_bytes = self.received_bytes.saturating_sub(bytes);
    }
}

/// Why the worker forwards all that a port sends and receives, although a program in the kernel could.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum ByWorker {
    Monitored = 1,
    Lossless,
    Blocked,
    NoLink,
    Filtered,
    /// The switch does not forward by what it has learned.
    Forwarding,
    /// A mirror shows what it sends or receives.
    Mirrored,
    /// It gets the copies of a mirror.
    MirrorPort,
}

impl ByWorker {
    const ALL: [ByWorker; 8] = [
        ByWorker::Monitored,
        ByWorker::Lossless,
        ByWorker::Blocked,
        ByWorker::NoLink,
        ByWorker::Filtered,
        ByWorker::Forwarding,
        ByWorker::Mirrored,
        ByWorker::MirrorPort,
    ];
}

/// How a port stands at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortState {
    /// The lossless port that what it has sent waits for.
    pub waits_for: Option<PortIndex>,
    /// It is blocked: what had left the bridge by this port came back by it.
    pub loops_with: Option<PortIndex>,
    /// Of a port beside which a program in the kernel forwards.
    pub by_worker: Option<ByWorker>,
}

/// The first two are 0, or a port's index + 1; the last is 0, or a [`ByWorker`].
#[derive(Debug, Default)]
struct SharedState {
    waits_for: AtomicU16,
    loops_with: AtomicU16,
    by_worker: AtomicU16,
}

impl PortCounters {
    /// Replaces the state. For the worker only.
    pub(crate) fn store_state(&self, state: PortState) {
        let number = |port: Option<PortIndex>| port.map_or(0, |port| u16::from(port) + 1);
        self.state.waits_for.store(number(state.waits_for), Relaxed);
        self.state.loops_with.store(number(state.loops_with), Relaxed);
        self.state.by_worker.store(state.by_worker.map_or(0, |why| why as u16), Relaxed);
    }

    /// How the port stood when the worker last told.
    pub fn state(&self) -> PortState {
        let port = |number: &AtomicU16| number.load(Relaxed).checked_sub(1).map(|n| n as PortIndex);
        let SharedState { waits_for, loops_with, by_worker } = &self.state;
        let by_worker = by_worker.load(Relaxed);
        let by_worker = ByWorker::ALL.into_iter().find(|why| *why as u16 == by_worker);
        PortState { waits_for: port(waits_for), loops_with: port(loops_with), by_worker }
    }
}

macro_rules! counters {
    ($($field:ident $(. $sub:ident)?),* $(,)?) => {
        /// [`Totals`] that one thread adds to and others read.
        #[derive(Debug, Default)]
        pub struct PortCounters {
            values: [AtomicU64; [$(stringify!($field)),*].len()],
            state: SharedState,
        }

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
    known,
    moved,
    unlearned,
    reordered,
    drops.no_destination,
    drops.bad_slot,
    drops.too_short,
    drops.bad_index,
    drops.filtered,
    drops.bad_offload,
    drops.vlan,
    drops.spoofed,
    drops.bad_source,
    drops.denied,
    drops.over_rate,
    drops.storm,
    drops.storm_broadcast,
    drops.storm_multicast,
    drops.storm_unknown,
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
            known: 17,
            moved: 14,
            unlearned: 15,
            reordered: 21,
            drops: Drops {
                no_destination: 5,
                bad_slot: 6,
                too_short: 7,
                bad_index: 8,
                filtered: 9,
                bad_offload: 10,
                vlan: 13,
                spoofed: 16,
                denied: 20,
                over_rate: 18,
                storm: 19,
                storm_broadcast: 22,
                storm_multicast: 23,
                storm_unknown: 24,
                bad_source: 25,
                ring_full: 11,
                too_long: 12,
            },
        };
        let counters = PortCounters::default();
        counters.store(&totals);
        assert_eq!(counters.totals(), totals);
    }

    #[test]
    fn counters_keep_the_state() {
        let counters = PortCounters::default();
        assert_eq!(counters.state(), PortState::default());
        let ports = [None, Some(0), Some(1), Some(253), Some(PortIndex::MAX)];
        for (n, waits_for) in ports.into_iter().enumerate() {
            let loops_with = ports[(n + 1) % ports.len()];
            for by_worker in ByWorker::ALL.into_iter().map(Some).chain([None]) {
                let state = PortState { waits_for, loops_with, by_worker };
                counters.store_state(state);
                assert_eq!(counters.state(), state);
            }
        }
    }
}
