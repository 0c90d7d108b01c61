//! Whose share it is that a user takes of what all have in common.
//!
//! A user who is given a range of ids, for containers, could be many users. What they all take is that
//! user's share: the user who owns the range and the ids in it have one account.

/// Ids that belong to a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UidRange {
    pub first: u32,
    pub count: u32,
    pub owner: u32,
}

/// The accounts of all users.
#[derive(Clone, Debug, Default)]
pub struct Accounts {
    /// By their first ids.
    ranges: Vec<UidRange>,
}

impl Accounts {
    /// Each user has an account, but for those of `ranges`. Where ranges overlap, the one that begins last
    /// counts.
    pub fn new(mut ranges: Vec<UidRange>) -> Accounts {
        ranges.sort_by_key(|range| range.first);
        Accounts { ranges }
    }

    /// The account of user `uid`, named by a user.
    pub fn of(&self, uid: u32) -> u32 {
        let below = self.ranges.partition_point(|range| range.first <= uid);
        let ranges = self.ranges.get(..below).unwrap_or_default();
        match ranges.iter().rev().find(|range| uid - range.first < range.count) {
            // Root has no share; the users of its containers have one together.
            Some(range) if range.owner == 0 => range.first,
            Some(range) => range.owner,
            None => uid,
        }
    }

    /// How a refusal calls the account of user `uid`.
    pub(crate) fn name(&self, uid: u32) -> String {
        match self.of(uid) {
            account if account == uid => format!("user {uid}"),
            account => format!("user {account}, with whom user {uid} shares,"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_a_range_share_their_owners_account() {
        let range = |first, count, owner| UidRange { first, count, owner };
        let accounts = Accounts::new(vec![
            range(200_000, 1000, 0),
            range(100_000, 65_536, 7),
            range(u32::MAX - 1, 2, 8),
        ]);
        let shared = [(7, 7), (99_999, 99_999), (100_000, 7), (165_535, 7), (165_536, 165_536)];
        for (uid, account) in shared.into_iter().chain([(0, 0), (u32::MAX, 8)]) {
            assert_eq!(accounts.of(uid), account, "{uid}");
        }
        assert_eq!(accounts.of(200_999), 200_000, "a container of root's is not root");
    }
}
