//! A program of the user's that decides what becomes of the frames that an interface receives.

use ringway_filter::Ebpf;
use serde::{Deserialize, Serialize};

/// An action program for the receive queues that a program has: each frame goes through it before it comes to
/// the port's filter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Action {
    /// What it is called, for display.
    pub text: String,
    /// The program. It begins with the first.
    pub insns: Vec<Ebpf>,
    /// The interfaces that it may redirect to, in the order of their numbers.
    pub redirects: Vec<String>,
}
