//! The NIC helper: a process with the capabilities that setting up network interfaces takes, so that the
//! broker, which hears the clients, needs none.
//!
//! ```text
//!   clients ---- broker ============ helper    operations and what comes of them: plain data, descriptors
//!                  |                   |
//!                  +---- launcher -----+       starts it, and the next one; starts the janitor
//! ```
//!
//! The three are one program, parted by `fork` before the broker has a second thread, so nothing needs to
//! be executed ever after. The helper hears the broker alone. It carries out the operations of
//! `ringway_nic_setup`, one of a kind that is typed, checked and documented there, each in a thread of its
//! own, and keeps nothing: what it makes belongs to descriptors, which the broker has when it answers.
//!
//! There are two helpers, alike but for their names: `ringwayd-nic` for what takes the kernel long, and
//! `ringwayd-quick` for questions, which do not wait for that.
//!
//! So the helper's end costs the requests that it was working on, and nothing that was set up. The
//! launcher starts another. The launcher does nothing else: it reads a byte, forks, and sends a socket. It starts
//! what reads the configuration again, too, of which the broker does not reach the files. Both end when the broker has
//! ([`BrokerEnd`]), and not before: signals to all processes of the unit do not end them.

mod broker;
mod broker_end;
mod launcher;
mod messages;
mod process;
mod reader;

pub use broker::Client;
pub use broker_end::BrokerEnd;
pub use launcher::{Launcher, Part, start};
pub use messages::receive_parcel;
pub use reader::log_doubts;
