//! The table at the end of a run.

use crate::nic;
use crate::record::{Contestant, Road, Unit};
use crate::rounds::Outcome;
use crate::target::Target;

/// What was measured between processes, then what was measured on interfaces.
pub fn render(outcomes: &[Outcome]) -> String {
    let between = if outcomes.iter().all(|outcome| outcome.experiment.is_race()) {
        String::new()
    } else {
        between_processes(outcomes)
    };
    let on_interfaces = nic::table::render(outcomes);
    let gap = if between.is_empty() || on_interfaces.is_empty() { "" } else { "\n" };
    format!("{between}{gap}{on_interfaces}")
}

/// One line for each experiment: median, min and max, the ratios to memif where packets are of its
/// size and go to one receiver, how far apart the cores were at most, and the target.
fn between_processes(outcomes: &[Outcome]) -> String {
    let memif = Memif::find(outcomes);
    let mut table = format!(
        "{:<60} {:>9} {:>17}  {:<13} {:>7} {:>7} {:>6}  {}\n",
        "experiment", "median", "min - max", "unit", "x memif", "x tuned", "apart", "target"
    );
    for outcome in outcomes.iter().filter(|outcome| !outcome.experiment.is_race()) {
        table.push_str(line(outcome, &memif).trim_end());
        table.push('\n');
    }
    table.push_str(
        "x memif: against DPDK's memif as it comes (batch 32), which the targets mean\n\
         x tuned: against memif with the best settings that were found here, the stricter peer\n\
         apart: a cache line's round trip between the two cores\n",
    );
    table
}

/// The medians that others are compared with; nothing where it was not measured.
struct Memif {
    default: Option<f64>,
    tuned: Option<f64>,
}

impl Memif {
    fn find(outcomes: &[Outcome]) -> Memif {
        let median = |contestant: Contestant| {
            let is_it = |o: &&Outcome| {
                let subject = &o.experiment.subject;
                let is_it = subject.experiment == Road::Memif && subject.contestant == contestant;
                is_it && subject.size == Some(64)
            };
            Some(outcomes.iter().find(is_it)?.record()?.summary.median)
        };
        Memif { default: median(Contestant::Dpdk), tuned: median(Contestant::DpdkTuned) }
    }
}

fn line(outcome: &Outcome, memif: &Memif) -> String {
    let subject = &outcome.experiment.subject;
    let name = subject.to_string();
    let Some(record) = outcome.record() else {
        return format!("{name:<60} {}", outcome.why_none());
    };
    let summary = record.summary;
    let comparable = subject.unit == Unit::Mpps
        && subject.size.is_some_and(|size| size <= 64)
        && subject.receivers.unwrap_or(1) == 1;
    let ratio = |memif: Option<f64>| match memif.filter(|_| comparable) {
        Some(memif) => format!("{:.2}", summary.median / memif),
        None => String::new(),
    };
    format!(
        "{name:<60} {:>9.2} {:>17}  {:<13} {:>7} {:>7} {:>6}  {}",
        summary.median,
        format!("{:.2} - {:.2}", summary.min, summary.max),
        subject.unit.to_string(),
        ratio(memif.default),
        ratio(memif.tuned),
        format!("{:.0} ns", record.core_to_core_ns),
        outcome.experiment.target.map_or(String::new(), |t| judge(t, summary.median, memif)),
    )
}

/// The target and whether it is met; where it compares with memif, also against the tuned one.
fn judge(target: Target, figure: f64, memif: &Memif) -> String {
    let verdict = target.verdict(figure, memif.default);
    match memif.tuned.filter(|_| target.is_relative()) {
        Some(tuned) => {
            format!("{target}: {verdict}; of tuned: {}", target.verdict(figure, Some(tuned)))
        }
        None => format!("{target}: {verdict}"),
    }
}
