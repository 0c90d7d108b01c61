//! How long sharing out goes on, and how it ends.

use super::chooser::Balancer;
use crate::error::Result;
use crate::run_loop::RunLoop;
use std::time::{Duration, Instant};

/// Between two looks when nothing happens.
const PATIENCE: Duration = Duration::from_secs(1);

/// Shares out until the run is over. `turn` is called again and again, with how the last wait has ended; it says when
/// it is to be called at the latest.
pub fn run(
    balancer: &mut Balancer,
    run_loop: &RunLoop,
    mut turn: impl FnMut(&mut Balancer, Result<()>, Instant) -> Result<Option<Instant>>,
) -> Result<()> {
    let (mut now, mut waited) = (run_loop.start, Ok(()));
    while !run_loop.is_over(now) {
        let moved = balancer.receive(now - run_loop.start) + balancer.hand_over();
        now = Instant::now();
        let due = turn(balancer, std::mem::replace(&mut waited, Ok(())), now)?;
        if moved == 0 && !balancer.is_busy() {
            waited = run_loop.wait(&mut balancer.awaited(), due.unwrap_or(now + PATIENCE));
            now = Instant::now();
        }
    }
    waited
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
