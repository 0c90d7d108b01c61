//! The order of the runs, and which of them count.
//!
//! Every experiment is run once, then every experiment again, so that a machine that slows down or
//! warms up does it to all alike. Beside each run the distance between the cores is measured (see
//! [`crate::distance`]); runs with the cores far apart are made up for in further rounds, while there is time. Which
//! runs count depends on that distance alone, never on their figures.

use std::io;
use std::time::{Duration, Instant};

use crate::distance;
use crate::figure::{Figure, Spent};
use crate::plan::{Bench, Experiment};
use crate::record::{Record, Summary};
use crate::scratch;

/// The cores are apart when a round trip takes so many times the shortest one seen.
const APART: f64 = 1.5;

/// After so long no further round is begun: on a machine whose cores never come near, the runs that
/// there are must do.
const PATIENCE: Duration = Duration::from_secs(12 * 60);

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
    /// How many runs are asked for.
    wanted: usize,
    pub failure: Option<io::Error>,
}

impl Outcome {
    /// The record of the runs that count; nothing when a run failed, or there was none.
    pub fn record(&self) -> Option<Record> {
        if self.failure.is_some() {
            return None;
        }
        let runs = nearest(&self.runs, self.wanted);
        let figures: Vec<f64> = runs.iter().map(|run| run.figure.value).collect();
        let spent: Option<Spent> = runs.iter().map(|run| run.figure.spent).sum();
        Some(Record {
            subject: self.experiment.subject.clone(),
            summary: Summary::of(&figures)?,
            core_to_core_ns: runs.last()?.distance,
            cpu_ns_per_packet: spent.and_then(|spent| spent.cpu_ns_per_packet()),
            own_percent: spent.and_then(|spent| spent.own_percent()),
            own_ns_per_packet: spent.and_then(|spent| spent.own_ns_per_packet()),
        })
    }

    /// Why there is no record.
    pub fn why_none(&self) -> &'static str {
        if self.failure.is_some() { "failed, see above" } else { "not measured" }
    }

    fn needs_a_run(&self, shortest: f64) -> bool {
        let near = self.runs.iter().filter(|run| run.distance <= APART * shortest).count();
        self.failure.is_none() && near < self.wanted
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

/// The `wanted` runs made with the cores nearest to each other, nearest first.
fn nearest(runs: &[Run], wanted: usize) -> Vec<Run> {
    let mut runs = runs.to_vec();
    runs.sort_by(|a, b| a.distance.total_cmp(&b.distance));
    runs.truncate(wanted);
    runs
}

/// Runs every experiment of `plan` until each has been run `wanted` times with the cores near, or
/// `most` times in all, or, once it has been run `wanted` times, the whole has taken too long. An
/// experiment that fails is not run again. An interruption ends it with what there is.
pub fn run(
    bench: &Bench,
    plan: Vec<Experiment>,
    wanted: usize,
    most: usize,
) -> io::Result<Vec<Outcome>> {
    let (here, there) = (bench.cpu(0), bench.cpu(1));
    // On a single CPU there is no distance, and two threads that spin would only wait.
    let distance = || if here == there { Ok(0.0) } else { distance::round_trip(here, there) };
    let mut shortest = distance()?;

    let outcome = |experiment| Outcome { experiment, runs: Vec::new(), wanted, failure: None };
    let mut outcomes: Vec<Outcome> = plan.into_iter().map(outcome).collect();
    let begin = Instant::now();
    for round in 1..=most {
        if round > wanted && begin.elapsed() > PATIENCE {
            eprintln!("the cores were far apart for too long; what was measured so far must do");
            break;
        }
        for outcome in &mut outcomes {
            if scratch::is_interrupted() {
                return Ok(outcomes);
            }
            if outcome.needs_a_run(shortest) {
                eprint!("round {round}: {:<52}", outcome.experiment.subject.to_string());
                outcome.run(bench, distance);
                shortest = outcome.runs.iter().map(|run| run.distance).fold(shortest, f64::min);
            }
        }
    }
    Ok(outcomes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_runs_count_whatever_their_figures() {
        let run = |figure: f64, distance| Run { figure: figure.into(), distance };
        let runs = [run(9.0, 330.0), run(1.0, 50.0), run(5.0, 60.0), run(8.0, 320.0)];
        assert_eq!(nearest(&runs, 2), [run(1.0, 50.0), run(5.0, 60.0)]);
        assert_eq!(nearest(&runs, 3).last(), Some(&run(8.0, 320.0)));
    }
}
