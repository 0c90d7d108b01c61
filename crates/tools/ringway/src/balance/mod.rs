//! Sharing packets out: whose each is, and for how long it goes on. What moves them is [`ringway_balance`].

pub mod chooser;
mod presence;
mod room;
mod run;

pub use chooser::Balancer;
pub use presence::Presence;
pub use room::with_room;
pub use run::{finish, run};
