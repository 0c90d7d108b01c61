//! The order of the runs.
//!
//! Every experiment is run once, then every experiment again, so that a machine that slows down or
//! warms up does it to all alike. All runs count. Beside each run the distance between the cores is measured (see
//! [`crate::distance`]); where it changed during the benchmark, the runs with the cores near and those with the cores
//! far apart are shown as well, each for themselves.

use std::io;

use crate::bench::Bench;
use crate::distance;
use crate::experiment::Experiment;
use crate::figure::{Figure, Percentiles, Spent};
use crate::record::{Clusters, Record, Summary};
use crate::scratch;

/// The cores are apart when a round trip takes so many times the shortest one seen.
const APART: f64 = 1.5;

/// One run of an experiment.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Run {
    figure: Figure,
    /// Round trip between the cores in ns, the longer of those before and after.
    distance: f64,
}

/// An experiment with its runs so far, or the reason why it has none.
pub struct Outcome {
    pub experiment: Experiment,
    runs: Vec<Run>,
    /// The shortest round trip between the cores that was seen beside any experiment.
    shortest: f64,
    cpus: String,
    pub failure: Option<io::Error>,
}

impl Outcome {
    /// The record of its runs; nothing when a run failed, or there was none.
    pub fn record(&self) -> Option<Record> {
        if self.failure.is_some() {
            return None;
        }
        let runs = &self.runs;
        let spent: Option<Spent> = runs.iter().map(|run| run.figure.spent).sum();
        Some(Record {
            name: self.experiment.subject.to_string(),
            course: self.experiment.subject.course(),
            subject: self.experiment.subject.clone(),
            summary: summary(runs)?,
            clusters: clusters(runs, self.shortest),
            cpus: self.cpus.clone(),
            core_to_core_ns: runs.iter().map(|run| run.distance).fold(0.0, f64::max),
            cycles_per_packet: median(runs.iter().map(|run| run.figure.cycles)),
            percentiles: percentiles(runs),
            lost_percent: median(runs.iter().map(|run| run.figure.lost)),
            load_arrived: median(runs.iter().map(|run| run.figure.load)),
            cpu_ns_per_packet: spent.and_then(|spent| spent.cpu_ns_per_packet()),
            own_percent: spent.and_then(|spent| spent.own_percent()),
            own_ns_per_packet: spent.and_then(|spent| spent.own_ns_per_packet()),
            origin: None,
        })
    }

    /// Why there is no record.
    pub fn why_none(&self) -> &'static str {
        if self.failure.is_some() { "failed, see above" } else { "not measured" }
    }

    fn run(&mut self, bench: &Bench, mut distance: impl FnMut() -> io::Result<f64>) {
        let before = distance();
        let figure = self.experiment.once(bench);
        let run = before
            .and_then(|before| Ok(Run { figure: figure?, distance: before.max(distance()?) }));
        match run {
            Ok(run) => {
                let unit = self.experiment.subject.unit;
                eprintln!("{:9.2} {unit}, cores {:.0} ns apart", run.figure.value, run.distance);
                self.runs.push(run);
            }
            // What runs may have got the signal as well.
            Err(_) if scratch::is_interrupted() => {}
            Err(error) => {
                eprintln!(" failed: {error}");
                self.failure = Some(error);
            }
        }
    }
}

fn summary(runs: &[Run]) -> Option<Summary> {
    let figures: Vec<f64> = runs.iter().map(|run| run.figure.value).collect();
    Summary::of(&figures)
}

/// The runs in two groups, by the distance of the cores alone; nothing if all are in one.
fn clusters(runs: &[Run], shortest: f64) -> Option<Clusters> {
    let (near, far): (Vec<Run>, Vec<Run>) =
        runs.iter().partition(|run| run.distance <= APART * shortest);
    Some(Clusters { near: summary(&near)?, far: summary(&far)? })
}

/// The median of what all runs have; nothing where one has none.
fn median(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let values: Option<Vec<f64>> = values.collect();
    Some(Summary::of(&values?)?.median)
}

fn percentiles(runs: &[Run]) -> Option<Percentiles> {
    let of = |which: fn(&Percentiles) -> f64| {
        median(runs.iter().map(|run| run.figure.percentiles.as_ref().map(which)))
    };
    Some(Percentiles {
        p50: of(|all| all.p50)?,
        p90: of(|all| all.p90)?,
        p99: of(|all| all.p99)?,
        p99_9: of(|all| all.p99_9)?,
    })
}

/// Runs every experiment of `plan` `wanted` times. An experiment that fails is not run again. An interruption ends it with
/// what there is.
pub fn run(bench: &Bench, plan: Vec<Experiment>, wanted: usize) -> io::Result<Vec<Outcome>> {
    let (here, there) = (bench.cpu(0), bench.cpu(1));
    // On a single CPU there is no distance, and two threads that spin would only wait.
    let distance = || if here == there { Ok(0.0) } else { distance::round_trip(here, there) };
    let mut shortest = distance()?;

    let outcome = |experiment: Experiment| {
        let cpus = experiment.cpus(bench);
        Outcome { experiment, runs: Vec::new(), shortest, cpus, failure: None }
    };
    let mut outcomes: Vec<Outcome> = plan.into_iter().map(outcome).collect();
    'rounds: for round in 1..=wanted {
        for outcome in &mut outcomes {
            if scratch::is_interrupted() {
                break 'rounds;
            }
            if outcome.failure.is_none() {
                eprint!("round {round}: {:<60}", outcome.experiment.subject.to_string());
                outcome.run(bench, distance);
                shortest = outcome.runs.iter().map(|run| run.distance).fold(shortest, f64::min);
            }
        }
    }
    outcomes.iter_mut().for_each(|outcome| outcome.shortest = shortest);
    Ok(outcomes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_runs_count_and_an_uneven_machine_is_shown() {
        let run = |figure: f64, distance| Run { figure: figure.into(), distance };
        let runs = [run(9.0, 330.0), run(1.0, 50.0), run(5.0, 60.0), run(8.0, 320.0)];
        let all = summary(&runs).unwrap();
        assert_eq!((all.min, all.median, all.max, all.runs), (1.0, 6.5, 9.0, 4));
        let Clusters { near, far } = clusters(&runs, 50.0).unwrap();
        assert_eq!((near.min, near.max, near.runs), (1.0, 5.0, 2));
        assert_eq!((far.min, far.max, far.runs), (8.0, 9.0, 2));
        assert_eq!(clusters(&runs[1..3], 50.0), None);
    }

    #[test]
    fn percentiles_are_medians_over_the_runs() {
        let run = |p50| {
            let percentiles = Some(Percentiles { p50, ..Percentiles::default() });
            Run { figure: Figure { percentiles, ..Figure::default() }, distance: 50.0 }
        };
        assert_eq!(percentiles(&[run(1.0), run(3.0), run(2.0)]).map(|all| all.p50), Some(2.0));
        let none = Run { figure: 1.0.into(), distance: 50.0 };
        assert_eq!(percentiles(&[run(1.0), none]), None);
    }
}
