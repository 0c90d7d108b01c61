//! The VALE switch: a learning bridge between ports that do not trust each other.
//!
//! One [`Bridge`] is one worker thread. Only the worker sees the ports' regions; it reads a
//! port's tx ring, decides by the destination address, and copies into the rx rings of the
//! destinations. A port can write anything into its own region: the worker reads each field
//! once, validates its copy, and uses the copy. What a port gets wrong costs that port.
//!
//! | file | idea |
//! | --- | --- |
//! | `frame.rs` | a packet on its way through the bridge |
//! | `table.rs` | which address is behind which port |
//! | `forward.rs` | where a packet goes |
//! | `port.rs` | what the bridge asks of a port, and what it counts |
//! | `ring_port.rs` | the port whose rings are in a client's region |
//! | `worker.rs` | the thread: rounds, sleep, commands |

mod forward;
mod frame;
mod port;
mod ring_port;
mod table;
mod worker;

pub use frame::{Burst, Frame, HEADER};
pub use port::{Delivered, Drops, Port, PortCounters, PortIndex, Totals};
pub use ring_port::{RingPort, RxSide, TxSide};
pub use table::Table;
pub use worker::{Bridge, MAX_PORTS};
