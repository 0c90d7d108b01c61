//! How many processes the campaigns of SIGKILLs kill.

use std::{env, time::Duration};

/// What the shares of the campaigns are parts of.
const WHOLE: u32 = 400;
/// Kills of all campaigns together, unless RINGWAY_KILLS says otherwise: what each change is worth.
const TOGETHER: u32 = WHOLE / 4;

/// Kills of a campaign that has `share` of `WHOLE`.
pub fn kills(share: u32) -> u32 {
    (f64::from(share) * scale()).ceil() as u32
}

/// As long as a campaign may take that takes less than `limit` when it is whole.
pub fn kills_limit(limit: Duration) -> Duration {
    limit.mul_f64(scale().max(1.0))
}

fn scale() -> f64 {
    let given = env::var("RINGWAY_KILLS").ok();
    let given = given.map(|text| text.parse().unwrap_or_else(|e| panic!("RINGWAY_KILLS: {e}")));
    f64::from(given.unwrap_or(TOGETHER)) / f64::from(WHOLE)
}
