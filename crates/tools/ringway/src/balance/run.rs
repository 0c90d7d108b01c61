//! How long sharing out goes on, and how it ends.

use super::Balancer;
use crate::error::Result;
use crate::run_loop::RunLoop;
use std::time::{Duration, Instant};

/// Between two looks when nothing happens.
const PATIENCE: Duration = Duration::from_secs(1);

/// Shares out until the run is over. `report` is called again and again; it says when it is to be
/// called at the latest.
pub fn run(
    balancer: &mut Balancer,
    run_loop: &RunLoop,
    mut report: impl FnMut(&Balancer, Instant) -> Result<Option<Instant>>,
) -> Result<()> {
    let mut now = run_loop.start;
    while !run_loop.is_over(now) {
        let moved = balancer.receive(now - run_loop.start) + balancer.hand_over();
        now = Instant::now();
        let due = report(balancer, now)?;
        if moved == 0 && !balancer.is_busy() {
            run_loop.wait(&mut balancer.awaited(), due.unwrap_or(now + PATIENCE))?;
            now = Instant::now();
        }
    }
    Ok(())
}

/// Waits until the consumers have taken everything, as long as they take something, and ends files
/// that are written.
pub fn finish(balancer: &mut Balancer, run_loop: &RunLoop) -> Result<()> {
    let mut give_up = Instant::now() + PATIENCE;
    while !run_loop.is_interrupted() && Instant::now() < give_up {
        if balancer.hand_over() > 0 {
            give_up = Instant::now() + PATIENCE;
            continue;
        }
        let mut unfinished = balancer.unfinished();
        if unfinished.is_empty() {
            break;
        }
        run_loop.wait(&mut unfinished, give_up)?;
    }
    let written: Vec<_> = balancer.outputs_mut().map(|output| output.port.finish_file()).collect();
    written.into_iter().try_for_each(|written| Ok(written?))
}
