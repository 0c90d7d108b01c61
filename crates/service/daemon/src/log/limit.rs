//! How many events there may be of one account and kind: some at once, then a few. What is left out is counted.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use ringway_proto::EventKind;

/// Events at once.
const AT_ONCE: u32 = 20;
/// From one to the next in the long run.
const EACH: Duration = Duration::from_secs(1);
/// Accounts and kinds that are kept in mind.
const MOST: usize = 4096;

struct Bucket {
    /// When all of [`AT_ONCE`] may come again.
    full_at: Instant,
    left_out: u64,
}

/// See above.
pub struct Limits(BTreeMap<(Option<u32>, EventKind), Bucket>);

impl Limits {
    pub const fn new() -> Limits {
        Limits(BTreeMap::new())
    }

    /// Whether an event may be told: then how many were left out before it.
    pub fn admit(&mut self, account: Option<u32>, kind: EventKind, now: Instant) -> Option<u64> {
        if self.0.len() >= MOST {
            self.0.retain(|_, bucket| bucket.full_at > now || bucket.left_out > 0);
        }
        if self.0.len() >= MOST {
            self.0.pop_first();
        }
        let new = || Bucket { full_at: now, left_out: 0 };
        let bucket = self.0.entry((account, kind)).or_insert_with(new);
        let full_at = bucket.full_at.max(now) + EACH;
        if full_at > now + EACH * AT_ONCE {
            bucket.left_out += 1;
            return None;
        }
        bucket.full_at = full_at;
        Some(std::mem::take(&mut bucket.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_account_and_kind_is_no_matter_of_the_others() {
        let (mut limits, now) = (Limits::new(), Instant::now());
        let told = |limits: &mut Limits, account, kind, now| {
            (0..100).filter(|_| limits.admit(account, kind, now).is_some()).count()
        };
        for account in [None, Some(0), Some(1000)] {
            for kind in [EventKind::Refused, EventKind::PortOpen] {
                assert_eq!(told(&mut limits, account, kind, now), AT_ONCE as usize);
            }
        }
        let later = now + 5 * EACH;
        assert_eq!(limits.admit(None, EventKind::Refused, later), Some(80));
        assert_eq!(told(&mut limits, None, EventKind::Refused, later), 4);
    }

    #[test]
    fn accounts_are_forgotten() {
        let (mut limits, now) = (Limits::new(), Instant::now());
        for account in 0..3 * MOST as u32 {
            assert_eq!(limits.admit(Some(account), EventKind::Refused, now), Some(0));
            assert!(limits.0.len() <= MOST);
        }
    }
}
