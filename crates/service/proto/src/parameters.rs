//! What the daemon's configuration sets for all ports, where a program may want to know it.

use serde::{Deserialize, Serialize};

/// Settings that netmap has as parameters of its module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parameters {
    /// Switches at most.
    pub max_bridges: u32,
    /// Slots of the rings of interfaces.
    pub nic_slots: u32,
    /// Whether receive rings are stamped with the time at every sync.
    pub timestamps: bool,
}
