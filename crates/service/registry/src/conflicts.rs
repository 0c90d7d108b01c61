//! Names that users asked for and could not have, because they are reserved for others or in use by
//! them: for the daemon's log, and for `ringway doctor`.

use std::time::Instant;

use ringway_proto::NameConflict;

use crate::{accounts::Accounts, clock, reserved::Reserved};

/// Conflicts that are kept, and of those that one account has caused.
const KEPT: usize = 64;
const KEPT_OF_ONE: usize = 8;

/// Why a user could not have a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// By the pattern of a reservation.
    Reserved(String),
    /// By this user.
    InUse(u32),
}

#[derive(Debug)]
struct Conflict {
    name: String,
    asked_by: u32,
    taken: Taken,
    count: u64,
    /// How often when that was last reported.
    reported: u64,
    last: Instant,
}

/// The last of them. A user who asks for many names forgets those that the same user asked for
/// before.
#[derive(Debug, Default)]
pub(crate) struct NameConflicts(Vec<Conflict>);

impl NameConflicts {
    pub fn add(&mut self, name: &str, asked_by: u32, taken: Taken, accounts: &Accounts) {
        let now = clock::now();
        let is_same =
            |c: &&mut Conflict| c.name == name && c.asked_by == asked_by && c.taken == taken;
        if let Some(same) = self.0.iter_mut().find(is_same) {
            (same.count, same.last) = (same.count.saturating_add(1), now);
            return;
        }
        let account = accounts.of(asked_by);
        let is_theirs = |c: &Conflict| accounts.of(c.asked_by) == account;
        if self.0.iter().filter(|c| is_theirs(c)).count() >= KEPT_OF_ONE {
            self.forget_oldest(is_theirs);
        } else if self.0.len() >= KEPT {
            self.forget_oldest(|_| true);
        }
        let (name, count, reported, last) = (name.into(), 1, 0, now);
        self.0.push(Conflict { name, asked_by, taken, count, reported, last });
    }

    fn forget_oldest(&mut self, of: impl Fn(&Conflict) -> bool) {
        let those = self.0.iter().enumerate().filter(|(_, c)| of(c));
        if let Some((oldest, _)) = those.min_by_key(|(_, c)| c.last) {
            self.0.swap_remove(oldest);
        }
    }

    /// What a user may know of: root all, others what they asked for, and what is theirs: a name
    /// that they have, or that is reserved for them.
    pub fn info(&self, uid: u32, reservations: &[Reserved]) -> Vec<NameConflict> {
        let now = clock::now();
        let is_theirs = |taken: &Taken| match taken {
            Taken::InUse(owner) => *owner == uid,
            Taken::Reserved(pattern) => reservations
                .iter()
                .any(|reserved| reserved.is_holder && reserved.pattern.to_string() == *pattern),
        };
        let may_know = |c: &&Conflict| [0, c.asked_by].contains(&uid) || is_theirs(&c.taken);
        let info = |c: &Conflict| {
            let (owner, reserved) = match &c.taken {
                Taken::InUse(owner) => (Some(*owner), None),
                Taken::Reserved(pattern) => (None, Some(pattern.clone())),
            };
            NameConflict {
                name: c.name.clone(),
                asked_by: c.asked_by,
                owner,
                reserved,
                count: c.count,
                seconds_ago: now.saturating_duration_since(c.last).as_secs(),
            }
        };
        self.0.iter().filter(may_know).map(info).collect()
    }

    /// A line for each that has come since the last call.
    pub fn take_lines(&mut self) -> Vec<String> {
        let new = self.0.iter_mut().filter(|c| c.count > c.reported);
        let line = |c: &mut Conflict| {
            let times = c.count - std::mem::replace(&mut c.reported, c.count);
            let (name, who) = (&c.name, c.asked_by);
            match &c.taken {
                Taken::Reserved(pattern) => format!(
                    "{name}: user {who} asked for it ({times} times), and `{pattern}` reserves it for others"
                ),
                Taken::InUse(owner) => format!(
                    "{name}: user {who} asked for it ({times} times), and user {owner} has it; to keep names \
                     for their users, see [[reserve]] in ringwayd(8)"
                ),
            }
        };
        new.map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reserved::NamePattern;

    /// However much one user asks for, what others asked for stays.
    #[test]
    fn a_user_forgets_the_conflicts_of_nobody_else() {
        let (mut conflicts, accounts) = (NameConflicts::default(), Accounts::default());
        conflicts.add("vale0:db", 1, Taken::InUse(2), &accounts);
        conflicts.add("vale0:db", 1, Taken::InUse(2), &accounts);
        for n in 0..1000 {
            conflicts.add(&format!("vale0:{n}"), 3, Taken::Reserved("vale0:*".into()), &accounts);
        }
        assert_eq!(conflicts.0.len(), 1 + KEPT_OF_ONE);
        let first = conflicts.info(2, &[]);
        assert_eq!((first.len(), first[0].count, first[0].owner), (1, 2, Some(2)));
        assert!(conflicts.info(3, &[]).iter().all(|c| c.reserved.is_some()));
        assert_eq!(conflicts.info(4, &[]), []);
        assert_eq!(conflicts.info(0, &[]).len(), 1 + KEPT_OF_ONE);
        // Of what is reserved, its users learn.
        let reserved = |pattern, is_holder| {
            let pattern = NamePattern::parse(pattern).unwrap();
            [Reserved { pattern, is_holder }]
        };
        for (pattern, is_holder, known) in
            [("vale0:*", true, KEPT_OF_ONE), ("vale0:*", false, 0), ("vale1:*", true, 0)]
        {
            let info = conflicts.info(4, &reserved(pattern, is_holder));
            assert_eq!(info.len(), known, "{pattern}, {is_holder}");
        }
        for uid in 10..200 {
            conflicts.add("vale0:db", uid, Taken::InUse(2), &accounts);
        }
        assert_eq!(conflicts.0.len(), KEPT);

        assert_eq!(conflicts.take_lines().len(), KEPT);
        assert_eq!(conflicts.take_lines(), [""; 0]);
        conflicts.add("vale0:db", 199, Taken::InUse(2), &accounts);
        let lines = conflicts.take_lines();
        assert!(
            lines.len() == 1 && lines[0].contains("user 199 asked for it (1 times)"),
            "{lines:?}"
        );
    }
}
