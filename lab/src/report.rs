//! What a guest tells the host: a line of JSON for each thing.

use serde::{Deserialize, Serialize};

/// How a check came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Pass,
    Fail,
    /// Neither: what was asked for cannot be had, and Ringway says why.
    Refused,
}

/// One check, for one mode of the card.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The mode that the interface has, or that was asked for in vain; empty where it does not matter.
    pub mode: String,
    pub check: String,
    pub verdict: Verdict,
    /// What Ringway said, or what was found.
    pub detail: String,
    pub seconds: u64,
}

/// What a guest prints.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Line {
    /// A check begins: where nothing follows, it did not come back.
    Begin {
        mode: String,
        check: String,
    },
    Entry(Entry),
    /// All checks have been made.
    End,
}

/// A guest, and what it told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    pub kernel: String,
    pub card: String,
    pub entries: Vec<Entry>,
}

impl Report {
    /// The checks that failed, a line each.
    pub fn failures(&self) -> String {
        let failed = self.entries.iter().filter(|entry| entry.verdict == Verdict::Fail);
        let line = |Entry { mode, check, detail, .. }: &Entry| {
            format!("Linux {}, {}, {mode}: {check}: {detail}\n", self.kernel, self.card)
        };
        failed.map(line).collect()
    }
}
