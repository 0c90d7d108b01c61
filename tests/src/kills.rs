//! How many processes the campaigns of SIGKILLs kill.

use std::{env, time::Duration};

/// Kills of all campaigns together, as a rule.
const TOGETHER: u32 = 400;

/// Kills of a campaign that has `share` of all as a rule: in proportion, if RINGWAY_KILLS says how many
/// there are to be together.
pub fn kills(share: u32) -> u32 {
    (f64::from(share) * scale()).ceil() as u32
}

/// As long as a campaign may take that takes less than `limit` as a rule.
pub fn kills_limit(limit: Duration) -> Duration {
    limit.mul_f64(scale().max(1.0))
}

fn scale() -> f64 {
    let given = env::var("RINGWAY_KILLS").ok();
    let given = given.map(|text| text.parse().unwrap_or_else(|e| panic!("RINGWAY_KILLS: {e}")));
    f64::from(given.unwrap_or(TOGETHER)) / f64::from(TOGETHER)
}
