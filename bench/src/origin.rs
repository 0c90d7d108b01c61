//! Which run a row of a record is of.

use serde::{Deserialize, Serialize};

use crate::machine::Machine;

/// The run that a row is of, where that is not the record's own.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Origin {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Start of the run, UTC, ISO 8601.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// Load average of the minute before the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<f64>,
    pub command: String,
}

impl Origin {
    /// Of a run on `machine`, now.
    pub fn new(machine: &Machine, command: String) -> Origin {
        let Machine { commit, date, load, .. } = machine;
        Origin { commit: commit.clone(), date: date.clone(), load: *load, command }
    }
}
