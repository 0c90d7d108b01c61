//! Names of ports that stand for the same rings: two of them in one command would be two writers, or
//! two readers, of one ring.

use crate::error::{Error, Result};
use ringway::{FileSpec, PortSpec, RingSelection};

/// Refuses a list that has rings twice. A capture file is looked at when it is opened.
pub fn check_distinct<'n>(names: impl IntoIterator<Item = &'n String>, what: &str) -> Result<()> {
    let names: Vec<_> = names.into_iter().collect();
    for (at, one) in names.iter().enumerate() {
        for other in &names[..at] {
            if are_same(one, other)? {
                let problem = format!("{what} twice, as {other} and as {one}; name it once");
                return Err(Error::Value(format!("{one}: the port is {problem}")));
            }
        }
    }
    Ok(())
}

/// Whether two names stand for a ring that both have. Monitors have rings of their own.
pub fn are_same(a: &str, b: &str) -> Result<bool> {
    if FileSpec::is_file(a) || FileSpec::is_file(b) {
        return Ok(false);
    }
    let [a, b] = [PortSpec::parse(a)?, PortSpec::parse(b)?];
    let is_monitor = |spec: &PortSpec| spec.registration.monitor.is_asked();
    Ok(a.name == b.name
        && !is_monitor(&a)
        && !is_monitor(&b)
        && overlap(a.registration.rings, b.registration.rings))
}

fn overlap(a: RingSelection, b: RingSelection) -> bool {
    use RingSelection::{All, AllAndHost, Host, One, OneHost};
    let of_queues = |rings| matches!(rings, All | AllAndHost | One(_));
    let of_stack = |rings| matches!(rings, Host | AllAndHost | OneHost(_));
    match (a, b) {
        (One(a), One(b)) | (OneHost(a), OneHost(b)) => a == b,
        _ => of_queues(a) && of_queues(b) || of_stack(a) && of_stack(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_are_told_apart_by_what_a_name_stands_for() {
        let same = [
            ("vale0:a", "vale0:a"),
            ("vale0:a", "netmap:vale0:a/x"),
            ("netmap:e", "e@mode=copy"),
            ("netmap:e-1", "netmap:e~1"),
            ("netmap:e", "netmap:e-1"),
            ("netmap:e*", "netmap:e-1"),
            ("netmap:e*", "netmap:e^"),
            ("netmap:e^", "netmap:e^0"),
        ];
        let others = [
            ("vale0:a", "vale0:b"),
            ("p{1", "p}1"),
            ("netmap:e-1", "netmap:e-2"),
            ("netmap:e", "netmap:e^"),
            ("netmap:e-1", "netmap:e^1"),
            ("vale0:a/rt", "vale0:a/rt"),
            ("vale0:a/r", "vale0:a"),
            ("file:x", "file:x"),
        ];
        for (cases, expected) in [(same, true), (others, false)] {
            for (a, b) in cases {
                assert_eq!(are_same(a, b).unwrap(), expected, "{a} and {b}");
                assert_eq!(are_same(b, a).unwrap(), expected, "{b} and {a}");
            }
        }
    }
}
