//! Keeping other traffic off a receive queue.

use serde::{Deserialize, Serialize};

/// What was changed, for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Steered {
    /// Places of the RSS table that were moved away from the queue.
    pub moved: u32,
    /// Places of the RSS table.
    pub table: u32,
    /// Whether flow rules had to be turned on.
    pub rules_turned_on: bool,
    /// Each flow and the place of its rule.
    pub rules: Vec<(String, u32)>,
}
