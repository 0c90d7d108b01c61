//! The VALE switch: a learning bridge between ports that do not trust each other.
//!
//! One [`Bridge`] is one worker thread. Only the worker sees the ports' regions; it reads a
//! port's tx ring, decides by the destination address, and copies into the rx rings of the
//! destinations. A port can write anything into its own region: the worker reads each field
//! once, validates its copy, and uses the copy. What a port gets wrong costs that port.
//!
//! What a port is, and what a burst of packets is, stands in `ringway_switch_port`.
//!
//! | file | idea |
//! | --- | --- |
//! | `function.rs` | the forwarding function: decides where a packet goes |
//! | `forwarding.rs` | the built-in ones |
//! | `learning.rs`, `table.rs` | the learning function, and which address is behind which port |
//! | `loop_probe.rs` | looking for interfaces between which frames go round |
//! | `multicast.rs` | which ports are in which group of IP |
//! | `fixed.rs` | the one that is told |
//! | `spread.rs` | the one that hashes flows |
//! | `bridge_port.rs` | a port, with what the bridge knows of it |
//! | `forward.rs` | the way of a burst from its source to the others |
//! | `in_order.rs` | flows that leave the worker's path for that of a program in the kernel |
//! | `counters.rs` | what the bridge counts for a port |
//! | `lossless_queue.rs` | waiting for a lossless port |
//! | `vlan.rs` | which VLANs a port is in, and tags |
//! | `sources.rs` | which source addresses a port may send with |
//! | `access.rs` | which frames a port may send, and which it gets |
//! | `bucket.rs`, `policing.rs` | how much a port may send |
//! | `storm.rs` | how much of that is flooded |
//! | `config.rs` | how a port takes part in its bridge |
//! | `switch_mirror.rs`, `copies.rs` | copies of what ports send and receive, for another port |
//! | `ring_port.rs` | the port whose rings are in a client's region |
//! | `tx_side.rs`, `rx_side.rs` | such a ring that the bridge reads, and one that it fills |
//! | `program_port.rs` | the port of another bridge, whose program this bridge is |
//! | `offsets.rs` | data that does not begin where its buffer does |
//! | `vnet.rs` | between ports whose virtio-net headers differ |
//! | `clock.rs` | the time, as coarse as a bridge needs it |
//! | `bridge.rs`, `mailbox.rs` | a bridge as its owner has it, and what its thread is asked |
//! | `worker.rs` | the thread: rounds, and sleep |
//! | `worker/turn.rs` | a port's turn in a round |
//! | `worker/periodic.rs` | what is done from time to time: ageing, queries for groups, the look for loops |
//! | `budget.rs` | what a port may cost in one turn |
//! | `worker/leaving.rs`, `draining.rs` | a port that goes, and word of that for its owner |
//! | `worker/commands.rs` | what it does when it is asked |
//! | `worker/stepped.rs` | the same without a thread, for fuzzers |
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::unreachable,
        clippy::todo,
        clippy::unimplemented,
        clippy::string_slice
    )
)]

mod access;
mod beside;
mod bridge;
mod bridge_port;
mod bucket;
mod budget;
mod casualties;
mod clock;
mod config;
mod copies;
mod counters;
mod draining;
mod fixed;
mod forward;
mod forwarding;
mod function;
mod in_order;
mod learning;
mod loop_probe;
mod lossless_queue;
mod mailbox;
mod multicast;
mod offsets;
mod own_frames;
mod policing;
mod program_port;
mod ring_port;
mod rounds;
mod rx_side;
mod sources;
mod spread;
mod storm;
mod switch_mirror;
mod table;
mod tx_side;
mod vlan;
mod vnet;
mod worker;

pub use access::PortFilter;
pub use bridge::{Bridge, confine_workers};
pub use bucket::{FloodLimit, RateLimit};
pub use casualties::Lost;
pub use clock::{Clock, Fine, Micros, Millis};
pub use config::{Lossless, PortConfig};
pub use counters::{ByWorker, PortCounters, PortState, Totals};
pub use draining::{Draining, Remainder};
pub use forwarding::Forwarding;
pub use function::{Forward, LearningCounters, Mac, Packet, Verdict};
pub use mailbox::LearnedPage;
pub use multicast::{GroupEntry, GroupPage, Multicast};
pub use program_port::ProgramPort;
pub use ring_port::RingPort;
pub use rounds::Rounds;
pub use rx_side::RxSide;
pub use sources::SourceAddresses;
pub use switch_mirror::{MAX_MIRRORS, MirrorCounters, MirrorSources, MirrorTotals, SwitchMirror};
pub use table::{
    ABSENT, AddressFilter, Key, Learned, LearnedAddress, StaticAddress, Table, random_secret,
};
pub use tx_side::TxSide;
pub use vlan::Vlan;
pub use worker::MAX_PORTS;
#[cfg(feature = "stepped")]
pub use worker::stepped::SteppedBridge;
