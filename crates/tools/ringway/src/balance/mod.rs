//! Sharing packets out: whose each is, and for how long it goes on. What moves them is [`ringway_balance`].

pub mod chooser;
mod presence;
mod run;

pub use presence::Presence;
pub use run::{finish, run};

/// What shares out by a [`chooser::Chooser`].
pub type Balancer = ringway_balance::Balancer<chooser::Chooser>;
