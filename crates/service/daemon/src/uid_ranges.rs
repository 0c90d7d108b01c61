//! Ranges of user ids and whose they are, as in `subuid(5)`: `alice:100000:65536`.

use std::fs;

use ringway_ipc::{USERS, id_of};
use ringway_registry::UidRange;

pub const SUBUID: &str = "/etc/subuid";

/// The ranges of the machine's file, if there is one. Lines that say nothing are none.
pub fn of_machine() -> Vec<UidRange> {
    let text = fs::read_to_string(SUBUID).unwrap_or_default();
    text.lines().filter_map(|line| parse(line, |name| id_of(name, USERS))).collect()
}

/// A line of it; `id` knows users.
pub fn parse(line: &str, id: impl Fn(&str) -> Option<u32>) -> Option<UidRange> {
    let mut fields = line.trim().split(':');
    let (owner, first, count) = (fields.next()?, fields.next()?, fields.next()?);
    let range =
        UidRange { owner: id(owner)?, first: first.parse().ok()?, count: count.parse().ok()? };
    fields.next().is_none().then_some(range)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_subuid() {
        let id = |name: &str| (name == "alice").then_some(7);
        let range = UidRange { owner: 7, first: 100_000, count: 65_536 };
        assert_eq!(parse("alice:100000:65536", id), Some(range));
        for bad in ["", "# alice", "bob:1:2", "alice:1", "alice:x:2", "alice:1:2:3", "alice:-1:2"] {
            assert_eq!(parse(bad, id), None, "{bad}");
        }
    }
}
