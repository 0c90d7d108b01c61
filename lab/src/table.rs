//! `docs/kernels.md`, from what guests told.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::card::CARDS;
use crate::guest::checks::NONE;
use crate::kernel::Version;
use crate::report::{Entry, Report, Verdict};

const HEAD: &str = "\
# Kernels and cards

Made by `make lab`, which boots Debian's kernels in virtual machines with the network cards that QEMU emulates, and
tries each mode of each card there. Do not edit it.

- *in*, *out*: eight frames of each of 40 sizes, from 60 to 1514 bytes, are received, or sent, unchanged;
- *jumbo*: the same at an MTU of 9000;
- *host-rings*: `ringway bridge netmap:IF` keeps the stack going: pings of all sizes, TCP both ways;
- *switch*: the same by `ringway switch attach vale0 IF --host`, with frames of a program on the switch both ways;
- *kill*, *kill-daemon*: after `kill -9` of the program, and of the program and the daemon, the interface is as it was;
- *flap*: frames go on after either end's down and up;
- *queues*: frames go on while `ethtool -L` changes the number of queues;
- *unbind*: a program is told when the driver is taken away under traffic, and can open the interface again.

A number leads to what was found, at the end. An interface gets the first of its modes by itself. *Commit* is
Ringway's: `lab/reports` has what each guest told, and `make lab LAB='--kernel 7.2 --card igb'` makes one anew.

| card | |
| --- | --- |
";

/// The columns, by the names of checks.
const COLUMNS: [&str; 10] = [
    "in",
    "out",
    "jumbo",
    "host-rings",
    "switch",
    "kill",
    "kill-daemon",
    "flap",
    "queues",
    "unbind",
];

/// How much of a finding is shown.
const SHOWN: usize = 400;

/// Texts below the table, each once.
#[derive(Default)]
struct Notes {
    numbers: BTreeMap<String, usize>,
}

impl Notes {
    fn number(&mut self, detail: &str) -> usize {
        let plain: Vec<&str> = detail.split_whitespace().collect();
        let mut text = plain.join(" ").replace('|', "/").replace('<', "(").replace('>', ")");
        text.truncate(text.floor_char_boundary(SHOWN));
        let next = self.numbers.len() + 1;
        *self.numbers.entry(text).or_insert(next)
    }
}

/// The document.
pub fn document(reports: &[Report]) -> String {
    let mut reports: Vec<&Report> = reports.iter().collect();
    let place = |report: &Report| CARDS.iter().position(|card| card.name == report.card);
    reports.sort_by_key(|report| (Version::parse(&report.kernel), place(report)));
    let mut text = HEAD.to_string();
    for card in CARDS {
        let _ = writeln!(text, "| `{}` | {} |", card.name, card.about);
    }
    let mut notes = Notes::default();
    for of_kernel in reports.chunk_by(|one, next| one.kernel == next.kernel) {
        let _ = writeln!(text, "\n## Linux {}\n", of_kernel[0].kernel);
        let _ = writeln!(text, "| card | mode | {} | commit |", COLUMNS.join(" | "));
        let _ = writeln!(text, "| --- | --- |{}", " --- |".repeat(COLUMNS.len() + 1));
        for report in of_kernel {
            let commit = report.commit.as_deref().unwrap_or_default();
            for (mode, entries) in modes(report) {
                let cells = cells(&entries, &mut notes);
                let _ = writeln!(text, "| `{}` | {mode}{cells} | {commit} |", report.card);
            }
        }
        for report in of_kernel {
            for entry in report.entries.iter().filter(|entry| is_apart(entry)) {
                let number = notes.number(&entry.detail);
                let _ = writeln!(text, "\n`{}`, {}: **fails** {number}", report.card, entry.check);
            }
        }
    }
    let mut numbered: Vec<_> = notes.numbers.into_iter().map(|(text, n)| (n, text)).collect();
    numbered.sort();
    if !numbered.is_empty() {
        let _ = writeln!(text, "\n## What was found\n");
    }
    for (number, found) in numbered {
        let _ = writeln!(text, "{number}. `{}`", found.replace('`', "'"));
    }
    text
}

/// Whether it has no place in the table.
fn is_apart(entry: &Entry) -> bool {
    entry.verdict == Verdict::Fail && entry.mode.is_empty()
}

/// The modes, in the order of the guest, each with its entries.
fn modes(report: &Report) -> Vec<(String, Vec<&Entry>)> {
    let mut modes: Vec<(String, Vec<&Entry>)> = Vec::new();
    for entry in report.entries.iter().filter(|entry| !entry.mode.is_empty()) {
        // By itself an interface has a mode that has a line of its own, unless there is none at all.
        if entry.mode == "any" && entry.verdict == Verdict::Pass {
            continue;
        }
        match modes.iter_mut().find(|(mode, _)| *mode == entry.mode) {
            Some((_, entries)) => entries.push(entry),
            None => modes.push((entry.mode.clone(), vec![entry])),
        }
    }
    modes
}

fn cells(entries: &[&Entry], notes: &mut Notes) -> String {
    let not_open = entries.iter().find(|e| e.check == "open" && e.verdict != Verdict::Pass);
    if let Some(entry) = not_open {
        let what = if entry.verdict == Verdict::Fail { "**not opened**" } else { "refused" };
        let first = format!(" | {what} {}", notes.number(&entry.detail));
        return first + &" |".repeat(COLUMNS.len() - 1);
    }
    let mut text = String::new();
    for column in COLUMNS {
        let cell = match entries.iter().find(|entry| entry.check == column) {
            None => String::new(),
            Some(entry) if entry.verdict == Verdict::Fail => {
                format!("**fails** {}", notes.number(&entry.detail))
            }
            Some(entry) if entry.detail.starts_with(NONE) => "–".into(),
            Some(_) => "yes".into(),
        };
        let _ = write!(text, " | {cell}");
    }
    text
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::kernel::repository;

    #[test]
    fn a_failure_leads_to_what_was_found() {
        let entry = |mode: &str, check: &str, verdict, detail: &str| Entry {
            mode: mode.into(),
            check: check.into(),
            verdict,
            detail: detail.into(),
            seconds: 0,
        };
        let report = Report {
            kernel: "6.12.95+deb12".into(),
            card: "igb".into(),
            commit: Some("0123abcd".into()),
            entries: vec![
                entry("any", "open", Verdict::Pass, "copy; not zerocopy: why"),
                entry("copy", "in", Verdict::Pass, "320 frames"),
                entry("copy", "queues", Verdict::Pass, "none: one queue"),
                entry("copy", "out", Verdict::Fail, "1 of 8\nis lost"),
                entry("zerocopy", "open", Verdict::Refused, "why"),
                entry("copy", "open", Verdict::Pass, "copy"),
            ],
        };
        let text = document(&[report]);
        assert!(text.contains("## Linux 6.12.95+deb12\n"), "{text}");
        assert!(
            text.contains(
                "| `igb` | copy | yes | **fails** 1 |  |  |  |  |  |  | – |  | 0123abcd |"
            ),
            "{text}"
        );
        assert!(text.contains("| `igb` | zerocopy | refused 2 |"), "{text}");
        assert!(text.contains("1. `1 of 8 is lost`\n2. `why`\n"), "{text}");
    }

    #[test]
    fn the_document_is_of_the_reports_that_are_kept() {
        let reports = Report::all().expect("lab/reports");
        let kept =
            fs::read_to_string(repository().join("docs/kernels.md")).expect("docs/kernels.md");
        assert!(document(&reports) == kept, "`ringway-lab table > docs/kernels.md` makes it");
    }
}
