//! Names of switches and ports that an operator reserves for some users.
//!
//! A name of a switch stands for the switch itself: the others may not make it, nor change how it
//! works. Whether they may join it once it is there, patterns of its ports say.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::name::IFNAMSIZ;

/// Names of switches, `vale_prod*`, or of their ports, `vale0:db*`. A `*` stands for any
/// characters, of the switch or of the port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct NamePattern {
    switch: String,
    port: Option<String>,
}

impl NamePattern {
    /// Reads a pattern; `None`: no switch and no port can have a name that it stands for.
    pub fn parse(text: &str) -> Option<NamePattern> {
        let (switch, port) = match text.split_once(':') {
            Some((switch, port)) => (switch, Some(port)),
            None => (text, None),
        };
        let id = switch.strip_prefix("vale")?;
        let good = id.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'*'));
        let fits = |half: &str| half.bytes().filter(|b| *b != b'*').count() < IFNAMSIZ;
        (good && fits(switch) && port.is_none_or(fits))
            .then(|| NamePattern { switch: switch.into(), port: port.map(Into::into) })
    }

    /// Whether it stands for that switch, or for that port of it.
    fn stands_for(&self, switch: &str, port: Option<&str>) -> bool {
        matches(&self.switch, switch)
            && match (&self.port, port) {
                (None, None) => true,
                (Some(pattern), Some(port)) => matches(pattern, port),
                _ => false,
            }
    }
}

impl From<NamePattern> for String {
    fn from(pattern: NamePattern) -> String {
        pattern.to_string()
    }
}

impl TryFrom<String> for NamePattern {
    type Error = &'static str;

    fn try_from(text: String) -> std::result::Result<NamePattern, &'static str> {
        NamePattern::parse(&text).ok_or("it stands for no switch and no port")
    }
}

impl fmt::Display for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.switch)?;
        self.port.iter().try_for_each(|port| write!(f, ":{port}"))
    }
}

/// A reservation, as it concerns one user. The first that stands for a name decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reserved {
    pub pattern: NamePattern,
    /// Whether the user is one of those whom it is for.
    pub is_holder: bool,
}

/// The pattern that reserves for others a switch, or a port of it, if one does.
pub fn for_others<'a>(
    reservations: &'a [Reserved],
    switch: &str,
    port: Option<&str>,
) -> Option<&'a NamePattern> {
    let first = reservations.iter().find(|reserved| reserved.pattern.stands_for(switch, port))?;
    (!first.is_holder).then_some(&first.pattern)
}

/// Whether `name` is `pattern`, in which a `*` stands for any characters.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    // The first place that a part fits leaves most to those behind it.
    for part in parts {
        match name.split_once(part) {
            Some((_, behind)) => name = behind,
            None => return false,
        }
    }
    name.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_stand_for_switches_or_for_ports() {
        for (pattern, name, is_it) in [
            ("vale0", "vale0", true),
            ("vale0", "vale01", false),
            ("vale0", "vale0:a", false),
            ("vale*", "vale", true),
            ("vale*", "vale0:a", false),
            ("vale_prod*", "vale_prod", true),
            ("vale_prod*", "vale_prod_2", true),
            ("vale_prod*", "vale_test", false),
            ("vale*_db", "vale1_db", true),
            ("vale*_db", "vale1_db2", false),
            ("vale*a*a", "valea", false),
            ("vale*a*a", "valeba_a", true),
            ("vale0:db", "vale0:db", true),
            ("vale0:db", "vale0:db1", false),
            ("vale0:*", "vale0:", true),
            ("vale*:db*", "vale7:db:x", true),
            ("vale0:db", "vale0", false),
        ] {
            let parsed = NamePattern::parse(pattern).unwrap();
            assert_eq!(parsed.to_string(), pattern);
            let (switch, port) = match name.split_once(':') {
                Some((switch, port)) => (switch, Some(port)),
                None => (name, None),
            };
            assert_eq!(parsed.stands_for(switch, port), is_it, "{pattern} {name}");
        }
        for none in ["", "eth0", "val*", "vale-prod*", "vale 0", "vale0:0123456789abcdef"] {
            assert_eq!(NamePattern::parse(none), None, "{none}");
        }
    }
}
