//! What a guest tells the host, a line of JSON for each thing, and what the repository keeps of it: a file in
//! `lab/reports` for each kernel and card.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::kernel::repository;

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
    /// Ringway's, with `-dirty` where something was not committed.
    #[serde(default)]
    pub commit: Option<String>,
    pub entries: Vec<Entry>,
}

/// The reports that the repository keeps.
fn kept() -> PathBuf {
    repository().join("lab/reports")
}

fn in_file(file: &Path, problem: impl fmt::Display) -> String {
    format!("{}: {problem}", file.display())
}

impl Report {
    /// What a guest with `card` told, of the Ringway that the repository has now.
    pub fn new(kernel: &str, card: &str, entries: Vec<Entry>) -> Report {
        let describe = ["describe", "--always", "--dirty", "--abbrev=8", "--exclude=*"];
        let output = Command::new("git").arg("-C").arg(repository()).args(describe).output();
        let commit = output.ok().filter(|output| output.status.success());
        let commit = commit.map(|output| String::from_utf8_lossy(&output.stdout).trim().into());
        Report { kernel: kernel.into(), card: card.into(), commit, entries }
    }

    /// All that are kept.
    ///
    /// # Errors
    /// A file cannot be read, or is no report.
    pub fn all() -> Result<Vec<Report>, String> {
        let folder = kept();
        let files = fs::read_dir(&folder).map_err(|e| in_file(&folder, e))?;
        let read = |file: io::Result<fs::DirEntry>| {
            let path = file.map_err(|e| in_file(&folder, e))?.path();
            let text = fs::read(&path).map_err(|e| in_file(&path, e))?;
            serde_json::from_slice(&text).map_err(|e| in_file(&path, e))
        };
        files.map(read).collect()
    }

    /// Keeps it in place of the last one of its series of kernels and its card.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn keep(&self) -> Result<(), String> {
        let folder = kept();
        fs::create_dir_all(&folder).map_err(|e| in_file(&folder, e))?;
        let series: Vec<&str> = self.kernel.split('.').take(2).collect();
        let file = folder.join(format!("{}-{}.json", series.join("."), self.card));
        let text = serde_json::to_string_pretty(self).expect("texts") + "\n";
        fs::write(&file, text).map_err(|e| in_file(&file, e))
    }

    /// The checks that failed, a line each.
    pub fn failures(&self) -> String {
        let failed = self.entries.iter().filter(|entry| entry.verdict == Verdict::Fail);
        let line = |Entry { mode, check, detail, .. }: &Entry| {
            format!("Linux {}, {}, {mode}: {check}: {detail}\n", self.kernel, self.card)
        };
        failed.map(line).collect()
    }
}
