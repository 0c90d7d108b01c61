//! The table at the end of a run.

use crate::record::{Road, Unit};
use crate::rounds::Outcome;

/// One line for each experiment: median, min and max, the ratio to memif where packets are of its
/// size and go to one receiver, how far apart the cores were at most, and the target.
pub fn render(outcomes: &[Outcome]) -> String {
    let memif = memif(outcomes);
    let mut table = format!(
        "{:<32} {:>9} {:>17}  {:<13} {:>7} {:>6}  {}\n",
        "experiment", "median", "min - max", "unit", "x memif", "apart", "target"
    );
    for outcome in outcomes {
        table.push_str(line(outcome, memif).trim_end());
        table.push('\n');
    }
    if memif.is_none() {
        table.push_str("memif was not measured: no ratios to it\n");
    }
    table.push_str("apart: a cache line's round trip between the two cores\n");
    table
}

/// The median that others are compared with.
fn memif(outcomes: &[Outcome]) -> Option<f64> {
    let memif = outcomes.iter().find(|o| o.experiment.subject.experiment == Road::Memif)?;
    Some(memif.record()?.summary.median)
}

fn line(outcome: &Outcome, memif: Option<f64>) -> String {
    let subject = &outcome.experiment.subject;
    let name = subject.to_string();
    let Some(record) = outcome.record() else {
        return format!("{name:<32} failed, see above");
    };
    let summary = record.summary;
    let comparable = subject.unit == Unit::Mpps
        && subject.size.is_some_and(|size| size <= 64)
        && subject.receivers.unwrap_or(1) == 1;
    let ratio = memif.filter(|_| comparable).map(|memif| summary.median / memif);
    let target = outcome.experiment.target.map_or(String::new(), |target| {
        format!("{target}: {}", target.verdict(summary.median, memif))
    });
    format!(
        "{name:<32} {:>9.2} {:>17}  {:<13} {:>7} {:>6}  {target}",
        summary.median,
        format!("{:.2} - {:.2}", summary.min, summary.max),
        subject.unit.to_string(),
        ratio.map_or(String::new(), |ratio| format!("{ratio:.2}")),
        format!("{:.0} ns", record.core_to_core_ns),
    )
}
