//! Sending a share of packets, no faster than the rate that was asked for.

use super::options::Options;
use crate::error::Result;
use crate::rate::Pacer;
use crate::run_loop::RunLoop;
use crate::units::Rate;
use std::time::{Duration, Instant};

/// The longest sleep: a low rate would have one that reaches beyond the end of all clocks.
const NAP: Duration = Duration::from_secs(2);

/// Packets of a share, which is without end where it is 0.
pub fn whole(share: u64) -> u64 {
    if share == 0 { u64::MAX } else { share }
}

/// Has `burst` send until the share is through, or the user has had enough. `burst` is told how many
/// packets are left, and returns how many it has sent, and their bytes.
pub fn paced(
    options: &Options,
    run_loop: &RunLoop,
    share: u64,
    mut burst: impl FnMut(u64) -> Result<(u64, u64)>,
) -> Result<()> {
    let pace = |rate| Pacer::new(Rate::Packets(rate / options.threads as f64), Instant::now());
    let mut pacer = options.rate.map(pace);
    let mut left = whole(share);
    while left > 0 && !run_loop.is_interrupted() {
        if let Some(pacer) = &mut pacer {
            let now = Instant::now();
            let wait = pacer.wait(now);
            if !wait.is_zero() {
                run_loop.sleep(now + wait.min(NAP))?;
                continue;
            }
        }
        let (packets, bytes) = burst(left)?;
        left -= packets;
        if let Some(pacer) = &mut pacer {
            pacer.spend(packets, bytes);
        }
    }
    Ok(())
}
